"""Columns that are added, renamed, dropped, moved and retyped: older files show them as they are now."""

import json

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import OptionError, SchemaError
from hoodie.format.column_ids import first_columns, kind_of, schema_of, type_of
from hoodie.model.columns import Column
from hoodie.model.nested import with_fields
from hoodie.options.read import ReadOptions
from hoodie.read.plan import pin_snapshot
from hoodie.read.scan import Scan
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.table import open_at
from tests.engines import Meanwhile
from tests.every_type import COLUMNS as EVERY_COLUMN
from tests.memory_tables import KEEP_ALL, Input, batch, copy_of, new_table, opened

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
VERSIONS = pytest.mark.parametrize("version", ["6", "9"])


def table_of(kind="COPY_ON_WRITE", version="6", **more):
    storage, clock = new_table(table_type=kind, more={"hoodie.write.table.version": version, **more})
    table = opened(storage, clock)
    table.upsert(batch([Input(f"k{n}", "ab"[n % 2], n, 1) for n in range(4)]))
    table.upsert(batch([Input("k1", "b", 11, 2)]))
    return storage, clock, table


def rows(scan, *names):
    found = scan.to_arrow().to_pylist()
    return {row["id"]: row[names[0]] if len(names) == 1 else tuple(row[name] for name in names) for row in found}


def slow(storage, clock, step, act):
    """The table, whose next write lets `act` happen before its step."""
    return open_at(storage, engine=Meanwhile(step, act), options=KEEP_ALL, sleep=clock.sleep)


def newest(table):
    return table._context.active.read_commit(table.timeline.commits[-1])


@KINDS
@VERSIONS
def test_older_rows_show_columns_as_they_are_now(kind, version):
    storage, clock, table = table_of(kind, version)
    before = table.timeline.commits[-1].time
    done = table.alter.rename_column("val", "worth")
    assert (done.operation, done.files) == ("ALTER_SCHEMA", 0)
    table.alter.add_column("tip", "double", after="id", doc="on top")
    table.alter.drop_column("worth")
    table.alter.add_column("worth", "string", first=True)
    table = opened(storage, clock)
    assert table.schema.names == ["worth", "id", "tip", "part", "ts", "_hoodie_is_deleted"]
    assert rows(table.scan(), "worth", "tip") == {f"k{n}": (None, None) for n in range(4)}
    table.upsert([{"id": "k2", "part": "a", "ts": 3, "worth": "much", "tip": 0.5, "_hoodie_is_deleted": None}])
    expected = {**{f"k{n}": None for n in range(4)}, "k2": "much"}
    assert rows(table.scan(), "worth") == expected
    assert rows(table.scan(where="worth = 'much'"), "tip") == {"k2": 0.5}
    assert rows(table.scan(as_of=before), "val") == {"k0": 0, "k1": 11, "k2": 2, "k3": 3}
    if kind == "MERGE_ON_READ":
        assert table.compact()
        assert rows(table.scan(query="read_optimized"), "worth") == expected
    table.cluster(sort_by=["worth"])
    assert rows(table.scan(), "worth") == expected
    assert rows(table.lookup(["k2", "k3"]), "worth") == {"k2": "much", "k3": None}
    assert rows(table.changes(since=table.timeline.commits[1].position), "worth") == {"k2": "much"}
    feed = table.changes(images="before_after", columns=["id", "worth"]).to_arrow().to_pylist()
    assert {row["after"]["worth"] for row in feed} == {None, "much"}


@KINDS
def test_each_commit_keeps_the_history_and_adds_what_its_batch_brings(kind):
    storage, _, table = table_of(kind)
    assert not storage.list(".hoodie/.schema")
    table.alter.add_column("s", pa.struct([("x", pa.int64())]), doc="a struct")
    first = table.timeline.commits[-1].time
    new = {"id": "k9", "part": "a", "val": 9, "ts": 9, "_hoodie_is_deleted": None}
    table.upsert([{**new, "s": {"x": 1}}])
    stated = json.loads(newest(table).extra["latest_schema"])
    assert stated["version_id"] == int(first)
    table.upsert([{**new, "s": {"x": 1, "y": ["a"]}, "more": 1.5}])
    stated = json.loads(newest(table).extra["latest_schema"])
    assert stated["version_id"] == int(table.timeline.commits[-1].time)
    struct = next(field for field in stated["fields"] if field["name"] == "s")
    assert struct["doc"] == "a struct"
    assert [part["name"] for part in struct["type"]["fields"]] == ["x", "y"]
    (history,) = [info for info in storage.list(".hoodie/.schema") if table.timeline.commits[-1].time in info.name]
    versions = [each["version_id"] for each in json.loads(storage.read(history.path))["schemas"]]
    assert versions == [int(table.timeline.commits[-1].time), int(first), 0]
    assert "a struct" in (newest(table).schema_json or "")


def test_a_dropped_column_never_lends_its_number():
    _, _, table = table_of()
    table.alter.add_column("a", "int32")
    highest = json.loads(newest(table).extra["latest_schema"])["max_column_id"]
    table.alter.drop_column("a")
    table.alter.add_column("b", "int32")
    stated = json.loads(newest(table).extra["latest_schema"])
    assert stated["max_column_id"] == highest + 1


@KINDS
def test_what_a_table_has_already_is_no_commit(kind):
    _, _, table = table_of(kind)
    before = len(table.timeline.commits)
    assert table.alter.change_type("val", "int64").instant is None
    assert table.alter.set_nullable("val").instant is None
    assert table.alter.move_column("val", after="part").instant is None
    assert len(table.timeline.commits) == before


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        (lambda alter: alter.rename_column("id", "key"), SchemaError, "keys, partition paths or the order of rows"),
        (lambda alter: alter.drop_column("part"), SchemaError, "made of 'part'"),
        (lambda alter: alter.change_type("ts", "string"), SchemaError, "given another type"),
        (lambda alter: alter.drop_column("_hoodie_commit_time"), OptionError, "kept by the table itself"),
        (lambda alter: alter.drop_column("nothing"), OptionError, "no column 'nothing'; there are id"),
        (lambda alter: alter.add_column("VAL", "string"), SchemaError, "there is a column 'val'"),
        (lambda alter: alter.add_column("val.x", "string"), SchemaError, "is no struct"),
        (lambda alter: alter.add_column("nothing.x", "string"), OptionError, "no column 'nothing'"),
        (lambda alter: alter.add_column("a b", "string"), SchemaError, "name that Avro does not allow"),
        (lambda alter: alter.add_column("x", "strng"), SchemaError, "did you mean 'string'"),
        (lambda alter: alter.add_column("x", "null"), SchemaError, "cannot hold values"),
        (lambda alter: alter.add_column("x", "string", after="y"), OptionError, "no column 'y'"),
        (lambda alter: alter.add_column("x", "string", after="val", first=True), OptionError, "not both"),
        (lambda alter: alter.move_column("val"), OptionError, "needs after"),
        (lambda alter: alter.change_type("val", "int32"), SchemaError, "cannot all hold"),
        (lambda alter: alter.change_type("val", "decimal(18, 0)"), SchemaError, "cannot all hold"),
        (lambda alter: alter.change_type("val", "array<int64>"), SchemaError, "cannot all hold"),
        (lambda alter: alter.rename_column("val", "TS"), SchemaError, "there is a column 'ts'"),
        (lambda alter: alter.rename_column("val", ""), SchemaError, "name"),
    ],
)
def test_what_readers_could_not_follow_is_refused(change, error, says):
    _, _, table = table_of()
    before = table.timeline.commits
    with pytest.raises(error, match=says):
        change(table.alter)
    assert table.timeline.commits == before
    assert not table.timeline.pending()


def test_a_required_column_may_become_nullable():
    path = "memory://required"
    table = hoodie.create_table(
        path, pa.schema([("id", pa.string()), pa.field("n", pa.int64(), False)]), record_key="id"
    )
    table.insert([{"id": "a", "n": 1}])
    table.alter.set_nullable("n")
    table.upsert([{"id": "a", "n": None}])
    assert rows(table.scan(), "n") == {"a": None}


def test_a_table_without_rows_changes_its_columns():
    table = hoodie.create_table("memory://empty", {"id": "string", "n": "int64"}, record_key="id")
    table.alter.rename_column("n", "m")
    assert table.schema.names == ["id", "m"]
    table.upsert([{"id": "a", "m": 1}])
    assert rows(table.scan(), "m") == {"a": 1}
    with pytest.raises(OptionError, match="no columns yet"):
        hoodie.create_table("memory://bare", record_key="id").alter.drop_column("n")


def test_nested_columns_change_by_their_paths():
    table = hoodie.create_table("memory://nested", record_key="id", table_type="MERGE_ON_READ")
    row = {"id": "a", "s": {"x": 1, "y": {"z": "z"}}, "l": [{"q": 1}, None], "m": {"k": 1}}
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("s", pa.struct([("x", pa.int32()), ("y", pa.struct([("z", pa.string())]))])),
            ("l", pa.list_(pa.struct([("q", pa.int64())]))),
            ("m", pa.map_(pa.string(), pa.int32())),
        ]
    )
    table.upsert(pa.Table.from_pylist([{**row, "m": [("k", 1)]}], schema=schema))
    alter = table.alter
    alter.rename_column("s.y.z", "zz")
    alter.add_column("s.y.w", "int64", first=True)
    alter.drop_column("s.x")
    alter.add_column("s.x", "int32")
    alter.rename_column("l.element.q", "r")
    alter.change_type("m.value", "string")
    alter.move_column("l", after="id")
    with pytest.raises(SchemaError, match="the last one of its struct"):
        alter.drop_column("l.element.r")
    with pytest.raises(SchemaError, match="is no struct"):
        alter.drop_column("l.element")
    found = table.scan().to_arrow()
    assert found.column_names == ["id", "l", "s", "m"]
    assert found.to_pylist() == [
        {"id": "a", "l": [{"r": 1}, None], "s": {"y": {"w": None, "zz": "z"}, "x": None}, "m": [("k", "1")]}
    ]


def test_bounds_and_filters_go_by_the_column_and_not_by_its_name():
    _, _, table = table_of("COPY_ON_WRITE")
    table.alter.rename_column("val", "old")
    table.alter.add_column("val", "int64")
    table.upsert([{"id": "k7", "part": "a", "ts": 1, "val": 2, "old": 700, "_hoodie_is_deleted": None}])
    assert rows(table.scan(where="old = 2"), "val") == {"k2": None}
    assert rows(table.scan(where="val = 2"), "old") == {"k7": 700}
    assert rows(table.scan(where="val is null"), "old") == {"k0": 0, "k1": 11, "k2": 2, "k3": 3}
    assert table.scan(where="old > 100").count() == 1


def test_savepoint_restore_and_rollback_take_columns_back():
    _, _, table = table_of()
    table.savepoint()
    table.alter.rename_column("val", "worth")
    table.rollback(table.timeline.commits[-1])
    assert rows(table.scan(), "val")["k1"] == 11
    table.alter.drop_column("val")
    table.upsert([{"id": "k1", "part": "b", "ts": 5, "_hoodie_is_deleted": None}])
    table.restore(table.savepoints()[-1])
    assert rows(table.scan(), "val") == {"k0": 0, "k1": 11, "k2": 2, "k3": 3}
    table.alter.rename_column("val", "worth")
    assert rows(table.scan(), "worth")["k1"] == 11


@VERSIONS
def test_the_history_outlives_its_commits(version):
    storage, clock, table = table_of("COPY_ON_WRITE", version)
    table.alter.rename_column("val", "worth")
    table.alter.drop_column("worth")
    table.alter.add_column("worth", "int64")
    for n in range(8):
        table.upsert([{"id": f"n{n}", "part": "c", "ts": n, "worth": n, "_hoodie_is_deleted": None}])
    table.clean(retain_commits=1)
    table.archive(min_commits=2)
    assert len(table.timeline.commits) < 6
    assert len(storage.list(".hoodie/.schema")) > len(table.timeline.commits)
    table.upsert([{"id": "n9", "part": "c", "ts": 9, "worth": 9, "_hoodie_is_deleted": None}])
    assert len(storage.list(".hoodie/.schema")) <= len(table.timeline.commits) + 1
    assert rows(opened(storage, clock).scan(where="part = 'b'"), "worth") == {"k1": None, "k3": None}


@KINDS
@VERSIONS
@pytest.mark.parametrize("step", ["look up keys", "write files"])
def test_a_write_at_work_goes_again_with_the_columns_of_now(kind, version, step):
    storage, clock, table = table_of(kind, version)
    other = slow(storage, clock, step, lambda: table.alter.add_column("more", "int64", after="id"))
    new = {"id": "k2", "part": "a", "val": 5, "ts": 7, "_hoodie_is_deleted": None}
    other.upsert([new])
    assert opened(storage, clock).schema.names[:2] == ["id", "more"]
    assert rows(opened(storage, clock).scan(), "val", "more")["k2"] == (5, None)
    other = slow(storage, clock, step, lambda: table.alter.rename_column("val", "worth"))
    with pytest.raises(SchemaError, match="renamed or dropped column 'val' of table"):
        other.upsert([{**new, "more": 1}])
    assert "val" not in opened(storage, clock).schema.names


@VERSIONS
def test_a_compaction_at_work_does_not_take_a_change_back(version):
    storage, clock, table = table_of("MERGE_ON_READ", version)
    assert table.schedule_compaction() is not None
    other = slow(storage, clock, "compact", lambda: table.alter.rename_column("val", "worth"))
    assert other.run_compaction()
    table.upsert([{"id": "k0", "part": "a", "ts": 7, "worth": 5, "_hoodie_is_deleted": None}])
    assert rows(opened(storage, clock).scan(), "worth") == {"k0": 5, "k1": 11, "k2": 2, "k3": 3}
    assert table.schedule_compaction() is not None
    table.alter.drop_column("worth")
    table.alter.add_column("worth", "int64")
    assert table.run_compaction()
    assert rows(opened(storage, clock).scan(), "worth") == dict.fromkeys(["k0", "k1", "k2", "k3"])


@KINDS
@pytest.mark.parametrize("moment", ["before", "after"])
def test_who_dies_at_any_call_leaves_the_columns_before_or_after(kind, moment):
    whole, _, table = table_of(kind)
    table.alter.add_column("more", "int64")
    before = table.schema.names
    for at in range(1, 200):
        storage, clock = copy_of(whole)
        try:
            opened(FaultStorage(storage, [Fault(at, moment)]), clock).alter.rename_column("val", "worth")
            died = False
        except InjectedFault:
            died = True
        table = opened(storage, clock)
        renamed = "worth" in table.schema.names
        assert renamed or table.schema.names == before
        assert rows(table.scan(), "worth" if renamed else "val") == {"k0": 0, "k1": 11, "k2": 2, "k3": 3}
        table.rollback()
        if "val" in table.schema.names:
            table.alter.rename_column("val", "worth")
        table.upsert([{"id": "k0", "part": "a", "ts": 9, "worth": 5, "more": 1, "_hoodie_is_deleted": None}])
        assert rows(table.scan(), "worth") == {"k0": 5, "k1": 11, "k2": 2, "k3": 3}
        if not died:
            assert at > 5
            return
    pytest.fail("it never ended")


def test_every_type_is_kept_by_its_name():
    schema = pa.schema([(name, kind) for name, (kind, _) in EVERY_COLUMN.items()])
    assert schema_of(first_columns(schema, meta_columns=True, docs={}).columns) == schema


@pytest.mark.parametrize("kind", ["timestamp-millis", "TIMESTAMP_MILLIS"])
def test_kinds_are_read_as_apache_hudi_writes_them(kind):
    assert type_of(Column(1, "c", kind=kind)) == pa.timestamp("ms", "UTC")
    assert kind_of(pa.timestamp("ms", "UTC")) == "timestamp_millis"


@KINDS
@pytest.mark.parametrize("renamed", [False, True])
def test_a_write_reads_the_columns_that_it_is_about_to_add(kind, renamed):
    """As nulls, also where older files find their columns by a history; the table itself gets them with the rows."""
    _, _, table = table_of(kind)
    if renamed:
        table.alter.rename_column("val", "worth")
    context = table._context
    snapshot = pin_snapshot(context, pa.schema([("ts", pa.string()), ("more", pa.float64())]))
    kinds = dict(zip(snapshot.schema.names, snapshot.schema.types, strict=True))
    assert (kinds["ts"], kinds["more"]) == (table.schema.field("ts").type, pa.float64())
    plan = Scan(context, ReadOptions(columns=("id", "more")), meta_columns=False, snapshot=snapshot)
    assert rows(plan, "more") == dict.fromkeys(["k0", "k1", "k2", "k3"])
    assert "more" not in table.schema.names


def test_a_type_gets_the_fields_that_another_has_beside_its_own():
    def of(leaf, **more):
        fields = {"a": leaf, **more}
        return pa.struct(
            [("x", pa.list_(pa.struct(fields))), ("y", pa.map_(pa.string(), pa.struct(fields))), ("z", leaf)]
        )

    with_more = with_fields(of(pa.int32()), of(pa.string(), b=pa.string()))
    assert with_more == of(pa.int32(), b=pa.string())
    assert with_fields(with_more, of(pa.int32())) == with_more
    assert with_fields(pa.struct([("A", pa.int32())]), pa.struct([("b", pa.int8()), ("a", pa.int8())])) == pa.struct(
        [("A", pa.int32()), ("b", pa.int8())]
    )
    assert with_fields(pa.int32(), of(pa.int32())) == pa.int32()


@KINDS
@VERSIONS
def test_whole_numbers_of_keys_partitions_and_the_order_become_wider(kind, version, tmp_path):
    table = hoodie.create_table(
        tmp_path / "t",
        {"id": "int32", "ts": "int32", "part": "int32"},
        record_key="id",
        partition_by="part",
        ordering="ts",
        table_type=kind,
        options={"hoodie.write.table.version": version},
    )
    table.upsert([{"id": n, "ts": 5, "part": 7} for n in range(4)])
    table.upsert([{"id": 1, "ts": 6, "part": 7}])
    table.delete(where="id = 3")
    for name in ("id", "ts", "part"):
        table.alter.change_type(name, "int64")
    table = hoodie.open_table(tmp_path / "t")
    wide = 1 << 40
    table.upsert([{"id": 0, "ts": wide, "part": 7}, {"id": 1, "ts": 4, "part": 7}, {"id": wide, "ts": 1, "part": wide}])
    table.delete(where="id = 2")
    if kind == "MERGE_ON_READ":
        table.compact()
    assert rows(table.scan(), "ts", "part") == {0: (wide, 7), 1: (6, 7), wide: (1, wide)}
    assert rows(table.scan(where=f"id = {wide} and part = {wide}"), "ts") == {wide: 1}
