"""Tables of every merge mode: what they say after random histories, on both table types, and after a compaction."""

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.options.merging import PAYLOADS
from hoodie.options.parse import parse_write_options
from hoodie.table import open_at
from hoodie.write.create import create_at
from tests.memory_tables import FakeClock, new_storage
from tests.merge_model import Model, Record

HUDI = "org.apache.hudi.common.model."
PAYLOAD = "hoodie.datasource.write.payload.class"
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("a", pa.string()),
        pa.field("b", pa.int64()),
        pa.field("ts", pa.int64()),
        pa.field("Op", pa.string()),
    ]
)
MODES = {
    "event time": {},
    "commit time": {PAYLOAD: HUDI + "OverwriteWithLatestAvroPayload"},
    "non-defaults": {PAYLOAD: HUDI + "OverwriteNonDefaultsWithLatestAvroPayload"},
    "partial update": {PAYLOAD: HUDI + "PartialUpdateAvroPayload"},
    "dms": {PAYLOAD: HUDI + "AWSDmsAvroPayload"},
    "marker": {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "D"},
}
BOTH_TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def new_table(mode: str, table_type: str, ordering: str = "ts") -> hoodie.HoodieTable:
    clock = FakeClock()
    storage = new_storage(clock)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": ordering,
        **MODES[mode],
    }
    create_at(storage, parse_write_options(options).to_create(), schema=SCHEMA)
    return open_at(storage, engine=LocalEngine(1), sleep=clock.sleep)


def batch(*rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def snapshot(table: hoodie.HoodieTable) -> dict[str, tuple[Any, ...]]:
    names = ["a", "b", "ts", "_hoodie_commit_time"]
    return {r["id"]: tuple(r[n] for n in names) for r in table.scan(meta_columns=True).to_arrow().to_pylist()}


KEYS = "xyz"
Step = tuple[str, list[tuple[Any, ...]]]
CELLS = st.tuples(
    st.sampled_from(KEYS), st.sampled_from([None, "p", "q"]), st.sampled_from([None, 0, 7]), st.sampled_from([1, 2, 3])
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["rows", "rows", "marked", "delete"]),
        st.lists(CELLS, min_size=1, max_size=3, unique_by=lambda c: c[0]),
    ),
    min_size=1,
    max_size=5,
)


def said_what_the_model_says(mode: str, table_type: str, steps: list[Step]) -> None:
    table = new_table(mode, table_type)
    model = Model(table.config.rule)
    table.upsert(batch(*((key, "0", 1, 2, "I") for key in KEYS)))
    first = table.timeline.commits[-1].time
    base: dict[str, Record | None] = {key: Record(key, first, "0", 1, 2) for key in KEYS}
    logs: dict[str, Record] = {}

    def row_of(key: str) -> Record | None:
        stored, entry = base[key], logs.get(key)
        merged = entry if stored is None or entry is None else model.merge(entry, stored, logs=False)
        found = stored if entry is None else merged
        return None if found is None or found.dead else found

    for kind, cells in steps:
        rows = batch(*((*cell, "D" if kind == "marked" else "U") for cell in cells))
        result = table.delete(rows.select(["id"])) if kind == "delete" else table.upsert(rows)
        stats = table._context.active.read_commit(table.timeline.commits[-1]).stats()
        if any(stat.log_version is None for stat in stats) and table_type == "MERGE_ON_READ":
            base, deletes_in_logs, logs = {key: row_of(key) for key in KEYS}, logs, {}
            merges = True
        else:
            deletes_in_logs, merges = logs, table_type == "COPY_ON_WRITE"
        deletes = kind == "delete" or (kind == "marked" and mode in {"dms", "marker"})
        for key, a, b, ts in cells:
            entry = Record(
                key, str(result.instant), a, b, None if kind == "delete" else ts, "block" if deletes else "row"
            )
            stored, delete = row_of(key), deletes_in_logs.get(key)
            deleted = stored is None and delete is not None
            if delete is not None and deleted and not model.newer_counts(entry, delete, logs=True):
                merged = delete
            else:
                merged = entry if stored is None else model.merge(entry, stored, logs=False)
            if merges:
                base[key] = None if merged.dead else merged
                continue
            logs[key] = model.merge(entry, logs[key], logs=True) if key in logs else entry
            if deleted:
                assert row_of(key) == (None if merged.dead else merged), "a deleted row came back"
    found = {key: row_of(key) for key in KEYS}
    wanted = {key: (r.a, r.b, r.ts, r.time) for key, r in found.items() if r is not None}
    assert snapshot(table) == wanted
    if table_type == "MERGE_ON_READ":
        table.compact()
        assert snapshot(table) == wanted


EVERY_MODE = pytest.mark.parametrize("mode", MODES)


@BOTH_TYPES
@EVERY_MODE
@settings(max_examples=6)
@given(steps=STEPS)
def test_a_table_says_what_the_model_says_after_any_history(mode, table_type, steps):
    said_what_the_model_says(mode, table_type, steps)


@pytest.mark.long
@BOTH_TYPES
@EVERY_MODE
@settings(max_examples=12)
@given(steps=STEPS)
def test_a_table_says_what_the_model_says_after_more_histories(mode, table_type, steps):
    said_what_the_model_says(mode, table_type, steps)


# Rows of one key in a batch: (a, b, ts, deleted?) of both, and what is left of them, as Apache Hudi 1.2.0 leaves it.
LATER, EARLIER = ("2", None, 2), ("1", 7, 1)
IN_A_BATCH = {
    ("event time", LATER, EARLIER): LATER,
    ("commit time", LATER, EARLIER): EARLIER,
    ("non-defaults", LATER, EARLIER): LATER,
    ("dms", LATER, EARLIER): LATER,
    ("partial update", LATER, EARLIER): ("2", 7, 2),
    ("partial update", EARLIER, LATER): ("2", 7, 2),
    ("commit time", EARLIER, LATER): LATER,
    ("non-defaults", EARLIER, LATER): LATER,
}


@BOTH_TYPES
@pytest.mark.parametrize(("mode", "one", "other"), IN_A_BATCH)
def test_rows_of_one_key_in_a_batch_are_reduced_by_the_modes_own_rule(mode, one, other, table_type):
    table = new_table(mode, table_type)
    table.upsert(batch(("k", *one, "U"), ("k", *other, "U")))
    assert snapshot(table)["k"][:3] == IN_A_BATCH[mode, one, other]


@BOTH_TYPES
def test_several_ordering_fields_are_compared_as_a_tuple(table_type):
    table = new_table("event time", table_type, ordering="ts,a")
    table.upsert(batch(("x", "m", 1, 2, ""), ("y", "m", 1, 2, ""), ("z", "m", 1, 2, ""), ("w", "m", 1, 2, "")))
    table.upsert(batch(("x", "l", 2, 2, ""), ("y", "n", 2, 2, ""), ("z", "a", 2, 3, ""), ("w", "m", 2, 2, "")))
    assert {key: row[1] for key, row in snapshot(table).items()} == {"x": 1, "y": 2, "z": 2, "w": 2}
    table.delete(pa.table({"id": ["x"]}))
    assert set(snapshot(table)) == {"y", "z", "w"}


def test_a_writer_may_bring_a_delete_marker_to_a_table_that_stores_none():
    table = new_table("event time", "MERGE_ON_READ")
    table.upsert(batch(("x", "1", 1, 1, ""), ("y", "1", 1, 1, "")))
    table.upsert(
        batch(("x", "1", 1, 2, "gone"), ("y", "1", 5, 2, "D")),
        {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "gone"},
    )
    assert {key: row[1] for key, row in snapshot(table).items()} == {"y": 5}


@BOTH_TYPES
def test_debezium_positions_are_compared_as_numbers(table_type):
    name = "org.apache.hudi.common.model.debezium.MySqlDebeziumAvroPayload"
    schema = pa.schema(
        [("id", pa.string()), ("v", pa.int64()), ("_event_seq", pa.string()), ("_change_operation_type", pa.string())]
    )
    clock = FakeClock()
    storage = new_storage(clock)
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": table_type,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "_event_seq",
        PAYLOAD: name,
    }
    create_at(storage, parse_write_options(options).to_create(), schema=schema)
    table = open_at(storage, engine=LocalEngine(1), sleep=clock.sleep)

    def upsert(*rows: tuple[Any, ...]) -> dict[str, int]:
        table.upsert(pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema))
        return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}

    assert upsert(("x", 1, "001.9", "i"), ("y", 1, "002.5", "i"), ("z", 1, "1.1", "i")) == {"x": 1, "y": 1, "z": 1}
    # "10" is more than "9", and "001.99" is before "002.5", whatever the texts say.
    assert upsert(("x", 2, "001.10", "u"), ("y", 2, "001.99", "u"), ("z", 2, "1.1", "u")) == {"x": 2, "y": 1, "z": 2}
    assert upsert(("x", 3, "001.1", "d")) == {"y": 1, "z": 2}  # a delete counts whatever its position
    with pytest.raises(hoodie.SchemaError, match="'_event_seq' holds a value that is no"):
        upsert(("y", 3, "7", "u"))


def test_every_known_payload_class_can_be_asked_for():
    for name, rule in PAYLOADS.items():
        found = parse_write_options({PAYLOAD: name}).table
        assert (found.payload == name) == rule.payload
