"""Folders of a TIMESTAMP column that Apache Hudi's SQL has made: their names are times, where its other writers make numbers."""

from datetime import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import UnsupportedTableError


def rows(n):
    at = pa.array([datetime(2020, 1, 1, 1, 2, 3)], pa.timestamp("us"))
    return pa.table({"id": ["a"], "at": at, "n": [n]})


@pytest.mark.parametrize("folder", ["2020-01-01 01:02:03", "at=2020-01-01 01%3A02%3A03"])
def test_no_key_comes_to_stand_in_two_folders(tmp_path, folder):
    path = tmp_path / "t"
    hoodie.create_table(path, record_key="id", partition_by="at").upsert(rows(1))
    (file,) = path.glob("*/*.parquet")
    number, size = file.parent.name, file.stat().st_size
    stored = pq.ParquetFile(file).read()
    at = stored.column_names.index("_hoodie_partition_path")
    pq.write_table(stored.set_column(at, "_hoodie_partition_path", pa.array([folder])), file)
    (commit,) = (path / ".hoodie").glob("*.commit")
    text = commit.read_text().replace(number, folder).replace(str(size), str(file.stat().st_size))
    commit.write_text(text)
    file.parent.rename(path / folder)
    with pytest.raises(UnsupportedTableError, match="TIMESTAMP column 'at'"):
        hoodie.open_table(path).upsert(rows(2))
    assert hoodie.open_table(path).scan().to_arrow()["n"].to_pylist() == [1]
    assert not hoodie.open_table(path).doctor().findings
