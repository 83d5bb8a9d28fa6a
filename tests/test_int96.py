"""INT96 timestamps of all years are read right, and rewritten."""

import pyarrow.parquet as pq
import pytest

from hoodie.format.parquet_file import stored_schema
from tests.int96 import MOMENTS, int96_table, rows


def by_id(scan):
    return scan.to_arrow().sort_by("id").to_pylist()


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_moments_of_all_years(tmp_path, table_type):
    table = int96_table(tmp_path / "t", table_type)
    file = next((tmp_path / "t").glob("*.parquet"))
    assert {pq.ParquetFile(file).schema.column(i).physical_type for i in range(7, 9)} == {"INT96"}
    for scan in (table.scan(), table.scan(query="read_optimized"), table.changes()):
        assert by_id(scan) == rows().to_pylist()
    assert by_id(table.scan(where="at > timestamp '9999-01-01 00:00:00'")) == rows().slice(4).to_pylist()
    assert by_id(table.scan(where="at < timestamp '0002-01-01 00:00:00'")) == rows().slice(0, 1).to_pylist()
    table.upsert(rows(ts=1).slice(1, 1))
    if table_type == "merge_on_read":
        table.compact()
    assert [row["at"] for row in by_id(table.scan())] == MOMENTS
    assert table.validate(deep=True)
    table.cluster()
    newest = max((tmp_path / "t").glob("*.parquet"), key=lambda path: path.name.rpartition("_")[2])
    assert "INT96" not in {pq.ParquetFile(newest).schema.column(i).physical_type for i in range(8)}
    assert [row["at"] for row in by_id(table.scan())] == MOMENTS


def test_a_footer_alone_tells_moments_from_local_times(tmp_path):
    int96_table(tmp_path / "t", "copy_on_write")
    file = pq.ParquetFile(next((tmp_path / "t").glob("*.parquet")))
    assert file.schema_arrow.field("at").type.tz is None
    found = stored_schema(file)
    for name in ("at", "inside", "listed"):
        assert found.field(name).type == rows().schema.field(name).type
