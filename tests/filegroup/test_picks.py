"""Rows by their numbers, where one array does not hold all values of a column."""

import numpy as np
import pyarrow as pa
import pytest

from hoodie.filegroup.picks import column_at, in_few_batches, rows_at
from hoodie.model import arrow_bytes
from tests.memory_tables import new_table, opened

SCHEMA = pa.schema(
    [("n", pa.int64()), ("s", pa.string()), ("x", pa.struct([("t", pa.string())])), ("l", pa.list_(pa.binary()))]
)
ROWS = pa.concat_tables(
    pa.table({"n": [n], "s": ["x" * n], "x": [{"t": "y" * n} if n % 3 else None], "l": [[b"z" * n]]}, schema=SCHEMA)
    for n in range(50)
)


@pytest.mark.parametrize("most_bytes", [1, 100, 10_000_000])
@pytest.mark.parametrize("numbers", [[], [3], [49, 0, 7, 7, 7, 20], list(range(49, -1, -1)), [-1, 4, -1, 2], [-1]])
def test_rows_come_in_the_order_of_their_numbers_whatever_an_array_holds(most_bytes, numbers, monkeypatch):
    monkeypatch.setattr(arrow_bytes, "MOST_BYTES", most_bytes)
    found = rows_at(ROWS, np.array(numbers, np.int64))
    assert found.schema == SCHEMA
    rows = ROWS.to_pylist()
    assert found.to_pylist() == [rows[n] if n >= 0 else dict.fromkeys(SCHEMA.names) for n in numbers]
    assert column_at(ROWS["s"], np.array(numbers, np.int64)).to_pylist() == [r["s"] for r in found.to_pylist()]
    assert pa.Table.from_batches(in_few_batches(ROWS), SCHEMA).equals(ROWS)


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize(
    "merging", [{}, {"hoodie.compaction.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}]
)
def test_a_table_is_the_same_however_much_an_array_holds(kind, merging, monkeypatch):
    def history():
        storage, clock = new_table(table_type=kind, more=merging)
        table = opened(storage, clock)
        for turn in range(3):
            ids = [str(n) for n in range(turn, 40 + turn, turn + 1)]
            given = {"id": ids, "part": ["p"] * len(ids), "val": [turn] * len(ids), "ts": [turn] * len(ids)}
            table.upsert(
                pa.table({**given, "text": [f"{n}{'x' * 300}" for n in ids], "in": [{"t": n * 99} for n in ids]})
            )
            table.delete([{"id": str(turn), "part": "p"}])
        begin = table.history()[0].instant
        feed = table.changes(since=begin, images="before_after").to_arrow().to_pylist()
        seen = [table.scan().to_arrow().sort_by("id").to_pylist(), sorted([r["op"], str(r["after"])] for r in feed)]
        if kind == "MERGE_ON_READ":
            table.compact()
        table.cluster(sort_by="text")
        return [*seen, table.scan().to_arrow().sort_by("id").to_pylist()]

    expected = history()
    monkeypatch.setattr(arrow_bytes, "MOST_BYTES", 1000)
    assert history() == expected
