"""Runs are merged batch by batch, whatever their batches are."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from hoodie.kv.lookup import side_by_side
from hoodie.kv.rows import SortedRows, merged

KEYS = st.sets(st.binary(max_size=2), max_size=12)
BATCHED = st.tuples(KEYS, st.lists(st.integers(1, 4), min_size=12, max_size=12))


def batches(run, keys, sizes):
    """Sorted rows whose values tell the run, in batches of these sizes; keys of one byte are deleted."""
    keys, start = sorted(keys), 0
    for size in sizes:
        some = keys[start : start + size]
        start += size
        if some:
            values = [None if len(key) == 1 else b"%d" % run for key in some]
            yield SortedRows(pa.array(some, pa.binary()), pa.array(values, pa.large_binary()))


@given(st.lists(BATCHED, max_size=4))
def test_merged_step_by_step_they_are_what_they_are_merged_at_once(runs):
    found = []
    for parts in side_by_side([batches(run, *each) for run, each in enumerate(runs)]):
        rows = merged(parts, drop_deletes=False)
        found += zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True)
        assert sum(len(part.keys) for part in parts) >= 1, "each step goes on"
    expected = {key: None if len(key) == 1 else b"%d" % run for run, (keys, _) in enumerate(runs) for key in keys}
    assert found == sorted(expected.items())


def test_a_batch_of_each_run_is_in_memory():
    asked = []

    def run(number):
        for turn in range(5):
            asked.append((number, turn))
            keys = [b"%d%d%d" % (turn, n, number) for n in range(9)]
            yield SortedRows(pa.array(keys, pa.binary()), pa.array(keys, pa.large_binary()))

    for turn, _ in enumerate(side_by_side([run(0), run(1)])):
        assert {each for each in asked if each[1] > turn // 2 + 1} == set()
