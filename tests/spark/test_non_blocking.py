"""Non-blocking writers under Spark: their tasks begin buckets with logs, in file groups that others begin, too."""

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException

import hoodie
from hoodie.errors import OptionError
from tests.begun import begun
from tests.non_blocking import NON_BLOCKING
from tests.spark.conftest import options_of

pytestmark = pytest.mark.spark

BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2", **NON_BLOCKING}
STAGED = {"hoodie.python.driver.max.bytes": "0"}
DDL = "id string, part string, qty int, ts long"


def test_spark_and_an_embedded_writer_append_to_the_same_buckets_at_once(door, tmp_path):
    path = str(tmp_path / "t")
    given = options_of(hoodie_datasource_write_table_type="MERGE_ON_READ") | BUCKET

    def save(qty, ids, **more):
        frame = door.createDataFrame([(f"k{n}", "ab"[n % 2], qty, qty) for n in ids], DDL).repartition(3)
        frame.write.format("hoodie").options(**given, **STAGED, **more).mode("append").save(path)

    with pytest.raises((OptionError, AnalysisException), match="it has version 6"):
        save(1, range(4))
    assert not hoodie.is_table(path)
    given["hoodie.write.table.version"] = "9"
    save(1, range(4))
    rows = pa.table({"id": ["k0", "k1", "k9"], "part": ["a", "b", "b"], "qty": [2, 2, 2], "ts": [2, 2, 2]})
    table = hoodie.open_table(path, options=NON_BLOCKING)
    fits = pa.schema([("id", "string"), ("part", "string"), ("qty", "int32"), ("ts", "int64")])
    with begun(table, rows.cast(fits)) as end:
        save(3, [1, 2, 20])
        end()
    found = {row["id"]: row["qty"] for row in hoodie.open_table(path).scan().to_arrow().to_pylist()}
    assert found == {"k0": 2, "k1": 3, "k2": 3, "k3": 1, "k9": 2, "k20": 3}
    assert table.compact()
    assert all(each.base and not each.logs for each in hoodie.open_table(path).files())
