"""A merge that keeps to its memory gives the rows of one that holds all: whatever is in the logs, and however little it may hold."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.filegroup.log_entries import BoundedEntries, latest
from hoodie.filegroup.log_scan import CollectedEntries
from hoodie.filegroup.spill import KeySet, SpilledRows
from hoodie.model.enums import Fill, MergeMode
from hoodie.model.plans import MergeRule, Room
from tests.effort import long_but

SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("ts", pa.int64()), ("val", pa.int64())])
RULES = {
    "event time": MergeRule(MergeMode.EVENT_TIME_ORDERING, ("ts",)),
    "commit time": MergeRule(MergeMode.COMMIT_TIME_ORDERING),
    "field by field": MergeRule(MergeMode.EVENT_TIME_ORDERING, ("ts",), fill=Fill.NULLS),
}
KEYS = st.sampled_from([f"k{n}" for n in range(6)])
TIMES = st.one_of(st.none(), st.integers(-1, 4))
ROWS = st.lists(st.tuples(KEYS, TIMES, st.one_of(st.none(), st.integers(0, 99)), st.booleans()), min_size=1, max_size=6)
DELETES = st.lists(st.tuples(KEYS, TIMES), min_size=1, max_size=4)
BLOCKS = st.lists(st.one_of(ROWS, DELETES), max_size=10)


def fill(found, blocks):
    for block in blocks:
        keys = pa.chunked_array([[row[0] for row in block]], pa.string())
        times = pa.array([row[1] for row in block], pa.int64())
        if len(block[0]) == 2:
            found._add_keys(keys, times if found.kind is not None else None)
        else:
            table = pa.table([keys, times, pa.array([row[2] for row in block], pa.int64())], schema=found.schema)
            found._add_rows(table, np.array([row[3] for row in block]))


def said(records):
    """By key: deleted or its row, its ordering value, whether it wins in any case."""
    live = records.live
    rows = [str(row) for row in records.data.to_pylist()]
    ordering = [None] * len(records.keys) if records.ordering is None else records.ordering.to_pylist()
    return {
        key: (rows[at] if at < live else None, ordering[at], bool(records.commit_time_deletes[at]))
        for at, key in enumerate(records.keys.to_pylist())
    }


@settings(deadline=None, max_examples=100, derandomize=True)
@given(blocks=BLOCKS, memory=st.sampled_from([1, 200, 700, 3000, 10**9]))
@pytest.mark.parametrize("rule", long_but(["event time"], RULES))
def test_entries_from_disk_come_to_what_they_come_to_in_memory(rule, blocks, memory):
    whole = CollectedEntries(SCHEMA, RULES[rule])
    fill(whole, blocks)
    with BoundedEntries(SCHEMA, RULES[rule], Room(memory), expected=20) as bounded:
        fill(bounded, blocks)
        bounded.finished()
        if bounded.parts:
            parts = [said(bounded.of_part(part)) for part in range(bounded.parts)]
            assert sum(map(len, parts)) == len({key for part in parts for key in part})
            found = {key: value for part in parts for key, value in part.items()}
        else:
            found = said(bounded.reduced())
        assert memory == 10**9 or not blocks or bounded.parts or memory >= 200
    assert found == said(whole.reduced())


def test_rows_come_back_by_part_in_their_order(tmp_path):
    keys = [f"key{n % 50}" for n in range(1000)]
    table = pa.table([keys, range(1000), range(1000)], schema=SCHEMA)
    with SpilledRows(SCHEMA, 7, folder=str(tmp_path)) as spilled:
        for start in range(0, 1000, 90):
            spilled.add(table.slice(start, 90))
        assert list(tmp_path.iterdir()) == []  # without a name: nothing stays behind a process that dies
        parts = [pa.Table.from_batches(spilled.read(part), SCHEMA) for part in range(7)]
    assert sorted(value for part in parts for value in part["val"].to_pylist()) == list(range(1000))
    for part in parts:
        assert part["val"].to_pylist() == sorted(part["val"].to_pylist())
    by_key = [set(part["_hoodie_record_key"].to_pylist()) for part in parts]
    assert sum(map(len, by_key)) == 50
    assert sum(1 for each in by_key if each) > 3


def test_a_key_set_never_says_no_to_a_key_that_it_has():
    hashes = np.random.default_rng(1).integers(0, 2**64, 5000, dtype=np.uint64)
    keys = KeySet(64 * 1024)
    keys.add(hashes[:2500])
    assert keys.may_have(hashes[:2500]).all()
    assert keys.may_have(hashes[2500:]).mean() < 0.02


def test_entries_that_lost_are_forgotten_on_the_way():
    """So that a key that was written a thousand times takes no more room than another one."""
    names = [*SCHEMA.names, "*deleted", "*block", "*ordering"]
    columns = [["k"] * 1000, range(1000), range(1000), [False] * 1000, [False] * 1000, range(1000)]
    assert latest(pa.table(columns, names=names), RULES["event time"])["val"].to_pylist() == [999]
