"""Merging field by field, in both stages, against a model that walks the records of each key one by one."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.filegroup.fold import Entries, combined_rows, fold, folded_rows, usable_values
from hoodie.filegroup.merge import fills_by_event_time, latest_of_each, unconditional, without_value
from hoodie.filegroup.stored_merge import Newer, merge_with_stored
from hoodie.model.enums import Fill, MergeMode
from hoodie.model.meta_fields import COMMIT_TIME, RECORD_KEY
from hoodie.model.plans import MergeRule
from tests.merge_model import Model, Record

EVENT, COMMIT = MergeMode.EVENT_TIME_ORDERING, MergeMode.COMMIT_TIME_ORDERING
RULES = {
    "event": MergeRule(EVENT, ("ts",)),
    "commit": MergeRule(COMMIT, ("ts",)),
    "event, nulls give way": MergeRule(EVENT, ("ts",), fill=Fill.NULLS),
    "commit, nulls give way": MergeRule(COMMIT, ("ts",), fill=Fill.NULLS),
    "event, a marker gives way": MergeRule(EVENT, ("ts",), fill=Fill.UNAVAILABLE, unavailable="?"),
    "payload of partial updates": MergeRule(EVENT, ("ts",), fill=Fill.NULLS, payload=True),
    "payload of non-defaults": MergeRule(COMMIT, ("ts",), fill=Fill.NULLS, payload=True),
}
SCHEMA = pa.schema(
    [(RECORD_KEY, pa.string()), (COMMIT_TIME, pa.string()), ("a", pa.string()), ("b", pa.int64()), ("ts", pa.int64())]
)


def record(time):
    return st.builds(
        Record,
        key=st.sampled_from("xy"),
        time=st.just(time),
        a=st.sampled_from([None, "?", f"a{time}"]),
        b=st.sampled_from([None, 0, int(time)]),
        ts=st.sampled_from([None, 1, 2, 3]),
        kind=st.sampled_from(["row", "row", "row", "delete", "block"]),
    )


LOGS = st.integers(0, 7).flatmap(lambda n: st.tuples(*(record(str(i + 1)) for i in range(n))))
BASE = st.tuples(*(record("0").map(lambda r, key=key: r._replace(key=key, kind="row")) for key in "xyz"))


def table(records):
    return pa.Table.from_pylist(
        [{RECORD_KEY: r.key, COMMIT_TIME: r.time, "a": r.a, "b": r.b, "ts": r.ts} for r in records], schema=SCHEMA
    )


def entries_of(logs, rule):
    data = table(logs)
    dead = np.array([r.dead for r in logs], dtype=bool)
    ordering = data["ts"].combine_chunks()
    always = unconditional(dead, ordering, rule)
    wins = always | without_value(ordering) if fills_by_event_time(rule) else always
    block = np.array([r.kind == "block" for r in logs], dtype=bool)
    keys = data[RECORD_KEY].combine_chunks()
    return data, Entries(keys, ordering, dead, wins, always, block, np.where(dead, -1, np.arange(len(logs))))


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=60)
@given(logs=LOGS, base=BASE)
def test_logs_are_folded_and_meet_the_base_as_record_by_record(name, logs, base):
    rule = RULES[name]
    model = Model(rule)
    expected = {}
    for found in logs:
        held = expected.get(found.key)
        expected[found.key] = found if held is None else model.merge(found, held, logs=True)
    data, entries = entries_of(logs, rule)
    usable = usable_values(data, rule)
    folded = fold(entries, usable, rule)
    dead = entries.is_delete[folded.entries]
    live = np.flatnonzero(~dead)
    rows = folded_rows(data, folded, live)
    assert {row[RECORD_KEY]: row for row in rows.to_pylist()} == {
        key: dict(zip(SCHEMA.names, found[:5])) for key, found in expected.items() if not found.dead
    }
    if not usable and not fills_by_event_time(rule):
        quick = latest_of_each(
            entries.keys, entries.ordering, entries.yields, rule, block_deletes=entries.block_deletes
        )
        assert quick.tolist() == folded.entries.tolist()

    order = np.concatenate([live, np.flatnonzero(dead)])
    chosen = folded.entries[order]
    newer = Newer(
        keys=entries.keys.take(pa.array(chosen)),
        rows=rows,
        ordering=entries.ordering.take(pa.array(folded.ordering[order])),
        is_delete=entries.is_delete[chosen],
        commit_time_deletes=entries.yields[chosen],
    )
    met = merge_with_stored(table(base).to_batches()[0], newer, rule, np.zeros(len(chosen), dtype=bool))
    final = {}
    for stored in base:
        found = expected.get(stored.key)
        final[stored.key] = stored if found is None else model.merge(found, stored, logs=False)
    merged = pa.concat_tables([pa.Table.from_batches([met.unchanged]), met.merged])
    assert {row[RECORD_KEY]: row for row in merged.to_pylist()} == {
        key: dict(zip(SCHEMA.names, found[:5])) for key, found in final.items() if not found.dead
    }


def test_columns_that_a_block_lacks_are_those_of_the_older_record_also_under_a_late_one():
    data = table([Record("x", "1", "a1", 1, 5), Record("x", "2", None, 2, 6), Record("x", "3", "late", None, 1)])
    keys = data[RECORD_KEY].combine_chunks()
    none = np.zeros(3, dtype=bool)
    entries = Entries(keys, data["ts"].combine_chunks(), none, none, none, none, np.arange(3))
    usable = {"a": np.array([True, False, True]), "b": np.array([True, True, False])}
    folded = fold(entries, usable, RULES["event"])
    assert folded_rows(data, folded, np.arange(1)).to_pylist() == [dict(zip(SCHEMA.names, ("x", "2", "a1", 2, 6)))]


def test_rows_without_a_value_of_their_own_keep_the_stored_one():
    stored = table([Record("x", "1", "a1", 1, 5), Record("y", "1", "a2", 2, 5)])
    newer = table([Record("x", "2", None, 7, 6), Record("y", "2", None, 8, 4)])
    usable = {"a": np.array([False, False])}
    found = combined_rows(stored, newer, np.array([True, False]), RULES["event"], usable_newer=usable)
    assert found.select(["a", "b", COMMIT_TIME]).to_pylist() == [
        {"a": "a1", "b": 7, COMMIT_TIME: "2"},
        {"a": "a2", "b": 2, COMMIT_TIME: "1"},
    ]


def test_nested_columns_give_way_as_a_whole():
    kind = pa.struct([("p", pa.int64()), ("q", pa.list_(pa.string()))])
    schema = pa.schema([(RECORD_KEY, pa.string()), ("deep", kind), ("ts", pa.int64())])
    older = pa.Table.from_pylist([{RECORD_KEY: "x", "deep": {"p": 1, "q": ["a"]}, "ts": 1}], schema=schema)
    for deep in (None, {"p": None, "q": None}):
        newer = pa.Table.from_pylist([{RECORD_KEY: "x", "deep": deep, "ts": 2}], schema=schema)
        rule = RULES["event, nulls give way"]
        (row,) = combined_rows(older, newer, np.array([True]), rule).to_pylist()
        assert row["deep"] == (deep or {"p": 1, "q": ["a"]})
