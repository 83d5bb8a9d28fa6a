"""A file group with many changed rows: several tasks write its log files, and readers see one set of rows."""

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hoodie
from hoodie.model.names import ROW_COPIES
from hoodie.table import open_at
from tests.small_files import SIZED

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("val", pa.int64()), ("ts", pa.int64())])
ROWS = 400


FEW_BYTES = replace(SIZED, append_bytes=4_000, chunk_bytes=5_000)
"""A log takes several tasks, and rows of one key come in several chunks."""


def tuned(table, tuning):
    return open_at(table._context.storage, tuning=tuning)


def batch(rows):
    """`rows`: (number, val, ts)."""
    found = [{"id": f"k{number}", "part": "p", "val": val, "ts": ts} for number, val, ts in rows]
    batches = pa.Table.from_pylist(found, schema=SCHEMA).to_batches(max_chunksize=100)
    return pa.RecordBatchReader.from_batches(SCHEMA, batches)


def values(scan):
    """{number: val}; a key that stands twice fails."""
    rows = scan.to_arrow().to_pylist()
    found = {int(row["id"][1:]): row["val"] for row in rows}
    assert len(found) == len(rows), "a key is there twice"
    return found


def logs_of(table):
    (file_slice,) = table.files()
    return file_slice.logs


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"hoodie.python.mor.row.copies": "false"},
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"},
    ],
)
def test_all_views_have_each_row_once_and_the_latest(tmp_path, more):
    table = hoodie.create_table(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="part", ordering="ts", table_type="MERGE_ON_READ", options=more
    )  # fmt: skip
    table = tuned(table, FEW_BYTES)
    options = {key: value for key, value in more.items() if "copies" in key}
    table.upsert(batch([(n, n, 1) for n in range(ROWS)]), options)
    expected, states = {n: n for n in range(ROWS)}, []
    random_ = random.Random(7)
    for number in range(3):
        ts = 2 + number
        # Several rows of a key in one batch, the one that counts anywhere among them; late rows, which lose.
        changed = [(random_.randrange(ROWS), random_.randrange(10**6), ts * 1000 + at) for at in range(600)]
        late = [(number, -1, 0) for number, *_ in changed[:50]]
        mixed = [*changed, *late]
        random_.shuffle(mixed)
        before = {log.name for log in logs_of(table)}
        result = table.upsert(batch(mixed), options)
        expected |= {number: val for number, val, _ in changed}  # ts ascends in `changed`
        new = [log for log in logs_of(table) if log.name not in before]
        assert len(new) > 3
        assert len({log.version for log in new}) == len(new)
        assert result.updated == len({number for number, *_ in mixed})
        assert result.inserted == 0
        states.append((result.instant, dict(expected)))
        assert values(table.scan()) == expected
    gone = range(0, ROWS, 7)
    table.delete(batch([(n, 0, None) for n in gone]), options)
    expected = {number: val for number, val in expected.items() if number not in gone}
    assert values(table.scan()) == expected
    for instant, state in states:
        assert values(table.scan(as_of=instant)) == state
    (first, one), (second, two) = states[:2]
    assert values(table.changes(first, second)) == {n: two[n] for n in two if two[n] != one[n]}
    assert (tmp_path / "t" / ROW_COPIES).is_dir() == ("hoodie.python.mor.row.copies" not in more)
    table.compact()
    assert not logs_of(table)
    assert values(hoodie.open_table(tmp_path / "t").scan(query="read_optimized")) == expected


def test_a_group_that_is_not_hot_has_one_log_file_a_commit(tmp_path):
    table = hoodie.create_table(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="part", ordering="ts", table_type="MERGE_ON_READ"
    )
    table = tuned(table, replace(SIZED, append_bytes=1_000_000, chunk_bytes=5_000))
    table.upsert(batch([(n, n, 1) for n in range(ROWS)]))
    table.upsert(batch([(n, -n, 2) for n in range(ROWS)]))
    assert len(logs_of(table)) == 1
    assert sum(values(table.scan()).values()) == -np.arange(ROWS).sum()
