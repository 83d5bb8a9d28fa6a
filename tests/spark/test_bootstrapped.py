"""Tables that Apache Hudi bootstrapped, and bootstraps, on Spark."""

import pytest
from pyspark.sql.types import StructType

import hoodie
from hoodie.errors import TableExistsError
from tests.bootstrapped import bootstrapped
from tests.migrated_sources import ROWS, parquet_folder, rows_of

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("name", ["mor6_plain", "cow9_mixed"])
def test_rows_are_those_that_hudi_reads(spark, tmp_path, name):
    found = bootstrapped(tmp_path, name)
    frame = spark.read.format("hoodie").load(str(found.table))
    rows = [row.asDict(recursive=True) for row in frame.select(*found.rows[0]).orderBy("id").collect()]
    assert rows == found.rows
    assert frame.where("qty > 110").count() == sum(row["qty"] > 110 for row in found.rows)


def test_a_job_and_a_call_make_a_table_of_files(enabled, tmp_path):
    """The DataFrame of such a job is empty."""
    source, empty = parquet_folder(tmp_path / "s"), enabled.createDataFrame([], StructType([]))
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.operation": "bootstrap",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "day",
        "hoodie.bootstrap.base.path": str(source),
    }
    writer = empty.write.format("hoodie").options(**options)
    writer.mode("overwrite").save(str(tmp_path / "t"))
    writer.mode("ignore").save(str(tmp_path / "t"))
    with pytest.raises(TableExistsError, match="already"):
        writer.mode("overwrite").save(str(tmp_path / "t"))
    call = "CALL run_bootstrap(table => 'u', table_type => 'MERGE_ON_READ', bootstrap_path => '{}', base_path => '{}',"
    call += " rowKey_field => 'id', partition_path_field => 'day', selector_class => '{}')"
    selector = "org.apache.hudi.client.bootstrap.selector.FullRecordBootstrapModeSelector"
    assert enabled.sql(call.format(source, tmp_path / "u", selector)).collect()[0].status == 0
    for name, kind in (("t", "COPY_ON_WRITE"), ("u", "MERGE_ON_READ")):
        assert enabled.read.format("hoodie").load(str(tmp_path / name)).count() == ROWS.num_rows
        table = hoodie.open_table(tmp_path / name)
        assert rows_of(table.scan().to_arrow()) == rows_of(ROWS)
        assert (table.config.table_type.value, table.config.name) == (kind, name)
