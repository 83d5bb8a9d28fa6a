"""`_hoodie_commit_seqno` names a row within its commit: no two rows of one commit share it, whichever file they are in."""

import pyarrow as pa
import pytest

from hoodie.model.enums import TableType
from hoodie.options.table_options import TableOptions
from hoodie.storage.memory import MemoryStorage
from hoodie.table import open_at
from hoodie.write.create import create_at


@pytest.mark.parametrize("kind", list(TableType))
def test_rows_of_one_commit_have_different_sequence_numbers(kind):
    storage = MemoryStorage(f"memory://seqno-{kind}")
    create_at(storage, TableOptions(name="t", table_type=kind, record_key_fields=("id",), partition_fields=("part",)))
    table = open_at(storage)

    def rows(first, last):
        ids = range(first, last)
        return pa.table({"id": [str(i) for i in ids], "part": [f"p{i % 3}" for i in ids]})

    # Files of a few rows: each partition gets several new groups; the upsert changes old groups and adds new ones.
    small = {"hoodie.parquet.max.file.size": "2000", "hoodie.parquet.small.file.limit": "0"}
    first = table.bulk_insert(rows(0, 2000), small)
    second = table.upsert(rows(1000, 3000), small)
    assert first.files > 3
    assert second.files > 6
    stored = table.scan(columns=["_hoodie_commit_time", "_hoodie_commit_seqno"]).to_arrow()
    assert stored.num_rows == 3000
    assert len(set(stored.column("_hoodie_commit_seqno").to_pylist())) == 3000
    assert set(stored.column("_hoodie_commit_time").to_pylist()) == {first.instant, second.instant}
