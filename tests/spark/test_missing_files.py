"""Spark plans as the embedded engine does: a committed file that is gone is named in an error, and a deleted table is not found."""

import shutil

import pyarrow as pa
import pytest

import hoodie
from tests.effort import long_but

pytestmark = pytest.mark.spark


LOSSES = ["file", "partition", "partition metadata", "table"]


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("lost", long_but(["file", "table"], LOSSES))
def test_what_is_lost_is_told(load, tmp_path, table_type, lost):
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id", partition_by="p", ordering="ts", table_type=table_type)
    for version in (1, 2):
        table.upsert(pa.table({"id": ["a", "b"], "p": ["x", "y"], "ts": [version] * 2, "v": [version] * 2}))
    (file_slice,) = [each for each in table.files() if each.group.partition_path == "x"]
    assert load(path).count() == 2
    before = load(path)
    told = "x/"
    match lost:
        case "file":
            told = (file_slice.logs[-1] if file_slice.logs else file_slice.base).path
            (path / told).unlink()
        case "partition":
            shutil.rmtree(path / "x")
        case "partition metadata":
            (path / "x" / ".hoodie_partition_metadata").unlink()
        case "table":
            shutil.rmtree(path)
            told = str(path)
    with pytest.raises(Exception, match=r"gone|no table|FileNotFound|does not exist") as error:
        load(path).count()
    assert told in str(error.value)
    if lost in ("partition", "table"):  # a plan of before may do without one log: its rows are there as a copy too
        with pytest.raises(Exception, match=r"gone|no table|FileNotFound|FILE_NOT_EXIST|does not exist"):
            before.collect()
