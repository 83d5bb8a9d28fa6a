"""Every way of merging that tables know: we and Apache Hudi write one table in turns, and read the same rows in all views.

Histories are random (the seed is fixed) over a few keys: late rows, ties, nulls, deletes by operation, by
`_hoodie_is_deleted` and by a marker, several rows of one key in a batch.
"""

import datetime as dt
import itertools
import random
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.options.mergers import register_merger
from integration import rust_peer
from integration.hudi_client import PeerError, read_options
from integration.views import View, ours, views_of
from tests.effort import soak_but
from tests.rows import rows_of

MODEL = "org.apache.hudi.common.model."
BOTH_TYPES = pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("part", pa.string()),
        pa.field("a", pa.string()),
        pa.field("b", pa.int64()),
        pa.field("ts", pa.int64()),
        pa.field("Op", pa.string()),
        pa.field("_hoodie_is_deleted", pa.bool_()),
    ]
)


RUST_REFUSES = {
    "several ordering fields": "Multiple ordering fields",
    "non-defaults": "a merger of its own",
    "partial update": "a merger of its own",
    "dms": "a merger of its own",
}
"""Modes that hudi-rs 0.5.0 does not have, and what it says of them."""


class Mode(NamedTuple):
    options: dict[str, str]
    ordering: str = "ts"
    codes: tuple[str, ...] = ("U",)
    """Values of `Op`."""


MODES = {
    "event time": Mode({}),
    "commit time": Mode({"hoodie.datasource.write.payload.class": f"{MODEL}OverwriteWithLatestAvroPayload"}),
    "no ordering field": Mode({}, ordering=""),
    "several ordering fields": Mode({}, ordering="ts,a"),
    "part of a column": Mode({}, ordering="s.ts"),
    "non-defaults": Mode(
        {"hoodie.datasource.write.payload.class": f"{MODEL}OverwriteNonDefaultsWithLatestAvroPayload"}
    ),
    "partial update": Mode({"hoodie.datasource.write.payload.class": f"{MODEL}PartialUpdateAvroPayload"}),
    "dms": Mode({"hoodie.datasource.write.payload.class": f"{MODEL}AWSDmsAvroPayload"}, codes=("I", "U", "U", "D")),
    "delete marker": Mode(
        {"hoodie.payload.delete.field": "Op", "hoodie.payload.delete.marker": "X"}, codes=("U", "U", "X")
    ),
}


def history(seed: int, mode: Mode, *, steps: int = 5, keys: int = 24) -> list[tuple[str, list[dict[str, Any]]]]:
    """(operation, rows) of each step; the first one inserts all keys."""
    chance = random.Random(seed)
    nullable = mode.ordering != "ts,a"  # Apache Hudi cannot compare a null among several ordering fields
    found = []
    for step in range(steps):
        rows = []
        for key in range(keys):
            if step and chance.random() < 0.4:
                continue
            for _ in range(2 if step and chance.random() < 0.2 else 1):
                rows.append(
                    {
                        "id": f"k{key}",
                        "part": f"p{key % 2}",
                        "a": chance.choice([None, f"a{step}"] if nullable else ["x", "y"]),
                        "b": chance.choice([None, 0, 10 * step + 1]),
                        "ts": (ts := chance.choice([1, 2, 3])),
                        "s": {"ts": ts, "x": step},
                        "Op": chance.choice(mode.codes) if step else "I",
                        "_hoodie_is_deleted": bool(step and chance.random() < 0.15),
                    }
                )
        deletes = step in (2, 4) and chance.random() < 0.8
        found.append(("delete" if deletes else "upsert", rows[: len(rows) // 3] if deletes else rows))
    return found


def schema_of(mode: Mode) -> pa.Schema:
    nested = pa.field("s", pa.struct([("ts", pa.int64()), ("x", pa.int64())]))
    return SCHEMA.append(nested) if mode.ordering.startswith("s.") else SCHEMA


def disagreements(hudi, path) -> list[View]:
    """The views that Apache Hudi reads otherwise than we do, or fails to read."""
    views = list(views_of(path))
    answers = hudi.read_many(
        path, [read_options(view.query, begin=view.begin, end=view.end, as_of=view.as_of) for view in views]
    )
    return [
        view
        for view, answer in zip(views, answers, strict=True)
        if isinstance(answer, PeerError) or rows_of(answer) != ours(path, view)
    ]


BLOOM: dict[str, str] = {}
BUCKET = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "1"}
FIRST = [("COPY_ON_WRITE", True), ("MERGE_ON_READ", False)]


@pytest.mark.parametrize(("table_type", "first_is_hudi"), FIRST)
@pytest.mark.parametrize("name", MODES)
def test_in_turns_we_and_hudi_merge_alike(hudi, tmp_path, name, table_type, first_is_hudi):
    mode = MODES[name]
    path, schema = tmp_path / "t", schema_of(mode)
    options = {
        "hoodie.table.name": path.name,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": mode.ordering,
        "hoodie.datasource.write.table.type": table_type,
        **mode.options,
    }
    options = {key: value for key, value in options.items() if value}
    for step, (operation, rows) in enumerate(history(7, mode)):
        data = pa.Table.from_pylist(rows, schema=schema)
        if (step % 2 == 0) == first_is_hudi:
            more = {"hoodie.datasource.write.operation": operation}
            hudi.write(path, data, options | more, mode="append" if step else "overwrite")
            continue
        if not step:
            hoodie.create_table(
                path,
                schema,
                record_key="id",
                partition_by="part",
                ordering=mode.ordering.split(",") if mode.ordering else None,
                table_type=table_type,
                options=mode.options,
            )
        table = hoodie.open_table(path)
        table.delete(data.select(["id", "part"])) if operation == "delete" else table.upsert(data)
    assert disagreements(hudi, path) == []
    if table_type == "MERGE_ON_READ":
        before = rows_of(hoodie.open_table(path).scan().to_arrow())
        hoodie.open_table(path).compact()
        assert rows_of(hoodie.open_table(path).scan().to_arrow()) == before
        assert ours(path, View()) == hudi.read(path).rows


class Again(NamedTuple):
    """A table whose rows are deleted and written again, with nulls."""

    table_type: str
    compacted: str
    """When: never, between the delete and the second upsert, or after that."""
    null_is_filled: bool
    """If Apache Hudi writes the second upsert: ours makes a new base file of the slice, which has nothing of the deleted row."""


AGAIN = [
    Again("COPY_ON_WRITE", "never", null_is_filled=False),
    Again("MERGE_ON_READ", "never", null_is_filled=True),
    Again("MERGE_ON_READ", "between", null_is_filled=False),
    Again("MERGE_ON_READ", "after", null_is_filled=True),
]


@pytest.mark.parametrize("writer", ["ours", "hudi", "hudi, then ours"])
@pytest.mark.parametrize("again", AGAIN, ids=[f"{each.table_type}-{each.compacted}" for each in AGAIN])
@pytest.mark.parametrize("name", ["non-defaults", "partial update"])
def test_values_of_a_deleted_row_come_back_only_where_hudi_wrote_behind_its_delete_in_a_log(
    hudi, tmp_path, name, again, writer
):
    path, mode = tmp_path / "t", MODES[name]
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": again.table_type,
        **mode.options,
    }

    def write(operation: str, rows: list[dict[str, Any]]) -> None:
        data = pa.Table.from_pylist(rows, schema=SCHEMA)
        if writer == "hudi" or (writer != "ours" and data["b"][0].as_py() != 2):
            hudi.write(path, data, {**options, "hoodie.datasource.write.operation": operation}, mode="append")
        else:
            table = hoodie.open_table(path)
            table.delete(data.select(["id", "part"])) if operation == "delete" else table.upsert(data)

    def compact(when: str) -> None:
        if when != again.compacted:
            return
        if writer != "ours" and when == "between":
            always = {"hoodie.compact.inline.max.delta.commits": "1"}
            hudi.run_compaction(path, op="scheduleAndExecute", options=always)
        else:
            hoodie.open_table(path).compact()

    if writer == "ours":
        hoodie.create_table(
            path,
            SCHEMA,
            record_key="id",
            partition_by="part",
            ordering="ts",
            table_type=again.table_type,
            options=mode.options,
        )
    row = {"part": "p", "Op": "U", "_hoodie_is_deleted": False}
    write("upsert", [{**row, "id": name, "a": "old", "b": 1, "ts": 1} for name in ("operation", "column", "stays")])
    write("delete", [{**row, "id": "operation", "ts": 2}])
    write("upsert", [{**row, "id": "column", "ts": 2, "_hoodie_is_deleted": True}])
    compact("between")
    write("upsert", [{**row, "id": name, "a": None, "b": 2, "ts": 3} for name in ("operation", "column", "stays")])
    compact("after")
    table = hoodie.open_table(path)
    assert bool(table.timeline.compactions) == (
        again.compacted != "never" and (writer == "hudi" or again.compacted == "between")
    )
    found = table.scan().to_arrow().to_pylist()
    brought = "old" if again.null_is_filled and writer == "hudi" else None
    assert {each["id"]: (each["a"], each["b"]) for each in found} == {
        "operation": (brought, 2),
        "column": (brought, 2),
        "stays": ("old", 2),
    }
    assert disagreements(hudi, path) == []


@pytest.mark.parametrize(
    ("first", "index"),
    soak_but([("ours", BLOOM), ("hudi", BUCKET)], itertools.product(["ours", "hudi"], [BLOOM, BUCKET])),
)
def test_hudi_goes_on_with_a_slice_that_was_written_anew_for_deleted_rows(hudi, tmp_path, first, index):
    path = tmp_path / "t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        **index,
    }

    def write(writer: str, operation: str, *rows: tuple[str, int, str], deleted: bool = False) -> None:
        more = {"part": "p", "b": 1, "Op": "U", "_hoodie_is_deleted": deleted}
        data = pa.Table.from_pylist([{**more, "id": i, "ts": ts, "a": a} for i, ts, a in rows], schema=SCHEMA)
        if writer == "hudi":
            hudi.write(path, data, {**options, "hoodie.datasource.write.operation": operation}, mode="append")
        else:
            table = hoodie.open_table(path)
            table.delete(data.select(["id", "part"])) if operation == "delete" else table.upsert(data)

    def reads(wanted: dict[str, str]) -> None:
        found = hoodie.open_table(path).scan().to_arrow().to_pylist()
        assert {each["id"]: each["a"] for each in found} == wanted
        assert disagreements(hudi, path) == []
        assert rust_peer.read(path) == ours(path, View())

    if first == "ours":
        hoodie.create_table(
            path,
            SCHEMA,
            record_key="id",
            partition_by="part",
            ordering="ts",
            table_type="MERGE_ON_READ",
            options=index,
        )
    write(first, "upsert", ("a", 5, "old"), ("b", 5, "old"), ("c", 5, "old"))
    write(first, "delete", ("a", 5, ""))
    write(first, "upsert", ("b", 7, ""), deleted=True)
    write(first, "upsert", ("c", 6, "in a log"))
    write("ours", "upsert", ("a", 4, "new"), ("b", 6, "late"), ("c", 1, "late"))
    stats = hoodie.open_table(path)._context.active.read_commit(hoodie.open_table(path).timeline.commits[-1]).stats()
    assert [stat.log_version for stat in stats] == [None]
    reads({"a": "new", "c": "in a log"})
    write("hudi", "upsert", ("a", 4, "by hudi"), ("c", 5, "late"), ("d", 1, "by hudi"))
    reads({"a": "by hudi", "c": "in a log", "d": "by hudi"})
    write("hudi", "delete", ("a", 5, ""), ("d", 5, ""))
    write("ours", "upsert", ("a", 1, "again"))
    reads({"a": "again", "c": "in a log"})
    hudi.run_compaction(path, op="scheduleAndExecute", options={"hoodie.compact.inline.max.delta.commits": "1"})
    write("hudi", "upsert", ("a", 2, "last"))
    reads({"a": "last", "c": "in a log"})


LATER_VERSIONS = [
    ("9", "non-defaults"),
    ("9", "partial update"),
    ("9", "dms"),
    ("9", "delete marker"),
    ("9", "several ordering fields"),
    ("8", "partial update"),
]


@pytest.mark.parametrize(("version", "name"), LATER_VERSIONS)
def test_what_hudi_writes_in_later_versions_is_merged_as_it_does(hudi, tmp_path, version, name):
    mode = MODES[name]
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": mode.ordering,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.write.table.version": version,
        **mode.options,
    }
    for step, (operation, rows) in enumerate(history(5, mode, steps=4)):
        more = {"hoodie.datasource.write.operation": operation}
        data = pa.Table.from_pylist(rows, schema=SCHEMA)
        hudi.write(tmp_path / "t", data, options | more, mode="append" if step else "overwrite")
    assert hoodie.open_table(tmp_path / "t").config.version == int(version)
    assert disagreements(hudi, tmp_path / "t") == []


UTC = dt.UTC
ORDERINGS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int with nulls": (pa.int32(), [None, -1, 0, 1]),
    "double": (pa.float64(), [-1.5, 0.0, 2.5]),
    "float": (pa.float32(), [-1.5, 0.0, 2.5]),
    "string": (pa.string(), ["", "a", "b", "ä"]),
    "decimal": (pa.decimal128(10, 2), [Decimal("-1.50"), Decimal("0.00"), Decimal("2.00")]),
    "date": (pa.date32(), [dt.date(1969, 1, 1), dt.date(2024, 1, 1), dt.date(2025, 1, 1)]),
    "timestamp": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2025, 1, 1, tzinfo=UTC)],
    ),
    "bool": (pa.bool_(), [False, True]),
}


def ordered(name: str) -> tuple[pa.Schema, list[tuple[str, list[dict[str, Any]]]]]:
    kind, values = ORDERINGS[name]
    schema = pa.schema(
        [("id", pa.string()), ("part", pa.string()), ("v", pa.int32()), ("x", kind), ("_hoodie_is_deleted", pa.bool_())]
    )
    chance = random.Random(name)
    found = []
    for step in range(4):
        rows = [
            {
                "id": f"k{k}",
                "part": "p",
                "v": step,
                "x": chance.choice(values),
                "_hoodie_is_deleted": bool(step and chance.random() < 0.25),
            }
            for k in range(24)
            if not step or chance.random() < 0.7
        ]
        found.append(("delete" if step == 2 else "upsert", rows[:8] if step == 2 else rows))
    return schema, found


@BOTH_TYPES
@pytest.mark.parametrize("name", ORDERINGS)
def test_hudi_reads_our_tables_with_ordering_values_of_every_type(hudi, tmp_path, name, table_type):
    schema, steps = ordered(name)
    table = hoodie.create_table(
        tmp_path / "t", schema, record_key="id", partition_by="part", ordering="x", table_type=table_type
    )
    for operation, rows in steps:
        data = pa.Table.from_pylist(rows, schema=schema)
        table.delete(data.select(["id", "part"])) if operation == "delete" else table.upsert(data)
    assert disagreements(hudi, tmp_path / "t") == []


def add(older: pa.Table, newer: pa.Table) -> pa.Table:
    """The sum of `b`, the rest of the newer row."""
    total = pc.add(pc.fill_null(older["b"], 0), pc.fill_null(newer["b"], 0))
    return newer.set_column(newer.schema.get_field_index("b"), newer.schema.field("b"), total)


@BOTH_TYPES
def test_hudi_reads_a_table_with_a_merger_of_ours_and_refuses_to_write_it(hudi, tmp_path, table_type):
    register_merger("add_b", add)
    path = tmp_path / "t"
    table = hoodie.create_table(
        path,
        SCHEMA,
        record_key="id",
        partition_by="part",
        ordering="ts",
        table_type=table_type,
        options={"hoodie.python.merger": "add_b"},
    )
    for operation, rows in history(3, MODES["event time"]):
        data = pa.Table.from_pylist(rows, schema=SCHEMA)
        table.delete(data.select(["id", "part"])) if operation == "delete" else table.upsert(data)
    assert not list(path.rglob("*.log.*"))
    assert disagreements(hudi, path) == []
    assert rust_peer.read(path) == ours(path, View())
    before = ours(path, View())
    with pytest.raises(PeerError, match=r"hoodie\.python\.merger\.add_b"):
        hudi.write(
            path,
            pa.Table.from_pylist(history(3, MODES["event time"])[1][1], schema=SCHEMA),
            {
                "hoodie.table.name": "t",
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": "part",
                "hoodie.datasource.write.precombine.field": "ts",
                "hoodie.datasource.write.table.type": table_type,
            },
        )
    assert ours(path, View()) == before


@pytest.mark.parametrize("name", MODES)
def test_hudi_rs_reads_what_we_write_or_refuses_it(tmp_path, name):
    mode = MODES[name]
    table = hoodie.create_table(
        tmp_path / "t",
        schema_of(mode),
        record_key="id",
        partition_by="part",
        ordering=mode.ordering.split(",") if mode.ordering else None,
        table_type="MERGE_ON_READ",
        options=mode.options,
    )
    for operation, rows in history(11, mode):
        data = pa.Table.from_pylist(rows, schema=schema_of(mode))
        table.delete(data.select(["id", "part"])) if operation == "delete" else table.upsert(data)
    if name in RUST_REFUSES:
        with pytest.raises(Exception, match=RUST_REFUSES[name]):
            rust_peer.read(tmp_path / "t")
        return
    same = rust_peer.read(tmp_path / "t") == ours(tmp_path / "t", View())
    assert same == (name != "part of a column")  # hudi-rs 0.5.0 takes the later commit's row there
