"""A table published in another format: it shows the base files of the newest commit, whatever came in between."""

import json
from decimal import Decimal
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import OptionError, SchemaError, UnsupportedTableError
from hoodie.mirrors.delta import APP, schema_string
from hoodie.mirrors.delta_log import FOLDER, read_state
from hoodie.mirrors.iceberg import INSTANT, iceberg_files
from hoodie.model.enums import LakeFormat
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from tests.effort import long_but
from tests.golden_tables import copy_golden, golden_names
from tests.memory_tables import Input, batch, new_table, opened
from tests.published_histories import HISTORIES, NULLS, published_history

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
FORMATS = pytest.mark.parametrize("format", list(LakeFormat))
ROWS = [Input(f"k{n}", f"p{n % 3}", n, n) for n in range(9)]


def bases(table):
    plan = table.scan(query="read_optimized").plan
    return {task.slice.base.path for task in plan.tasks}


def published(storage, format="delta"):
    if format == "delta":
        return {unquote(path) for path in read_state(storage).files}
    return {path.removeprefix(f"{storage.uri}/") for path in iceberg_files(storage)}


def make(kind="COPY_ON_WRITE"):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock)
    table.insert(batch(ROWS))
    return storage, clock, table


@FORMATS
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_published_follows_the_table(kind, format):
    storage, _, table = make(kind)
    first = table.publish(format)
    assert (first.added, first.removed, first.instant) == (3, 0, table.timeline.commits[-1].time)
    table.upsert(batch([Input("k0", "p0", 20, 50)]))
    second = table.publish(format)
    on_log = kind == "MERGE_ON_READ"
    assert (second.changed, second.added, second.removed) == ((False, 0, 0) if on_log else (True, 1, 1))
    table.delete_partitions(["p1"])
    last = table.publish(format)
    table.clean(retain_commits=1)
    assert published(storage, format) == bases(table)
    assert all(storage.exists(path) for path in published(storage, format))
    again = table.publish(format)
    assert (again.changed, again.version) == (False, last.version)
    assert str(again).endswith("already")
    if format == "delta":
        assert read_state(storage).transactions == {APP: int(last.instant)}
    else:
        metadata = json.loads(storage.read(f"metadata/v{last.version}.metadata.json"))
        assert metadata["snapshots"][-1]["summary"][INSTANT] == last.instant


def test_a_file_is_described_by_its_footer():
    storage, _, table = make()
    table.publish("delta")
    for path, each in read_state(storage).files.items():
        stats = json.loads(each["stats"])
        assert stats["numRecords"] == 3
        assert stats["minValues"]["part"] == stats["maxValues"]["part"] == path[:2]
        assert each["size"] == storage.stat(path).size_bytes


@FORMATS
def test_a_publication_that_dies_leaves_a_whole_version_or_none(format):
    storage, clock, table = make()
    table.publish(format)
    before = published(storage, format)
    table.upsert(batch([Input("k0", "p0", 20, 50)]))
    kept, after = storage.snapshot(), bases(table)
    traced = FaultStorage(storage)
    opened(traced, clock).publish(format)
    for fault in crash_points(traced.trace):
        storage.restore(kept)
        with pytest.raises(InjectedFault):
            opened(FaultStorage(storage, [fault]), clock).publish(format)
        assert published(storage, format) in (before, after)
        opened(storage, clock).publish(format)
        assert published(storage, format) == after
        hint = "metadata/version-hint.text"
        assert not storage.exists(hint) or storage.exists(f"metadata/v{storage.read(hint).decode()}.metadata.json")
        assert format == "delta" or storage.read(hint) == b"2"


@FORMATS
@pytest.mark.parametrize("depth", [1, 3])
def test_of_publications_at_once_the_newest_state_stays(monkeypatch, depth, format):
    storage, clock, table = make()
    create, others = storage.create_new, []

    def late(path, data, **how):
        if path.endswith(".json") and len(others) < depth:  # meanwhile there is a commit, and somebody publishes it
            others.append(path)
            other = opened(storage, clock)
            other.upsert(batch([Input("k0", "p0", 20 + len(others), 50 + len(others))]))
            other.publish(format)
        create(path, data, **how)

    monkeypatch.setattr(storage, "create_new", late)
    table.publish(format)
    assert published(storage, format) == bases(opened(storage, clock))


def test_a_checkpoint_says_what_the_versions_say():
    storage, _, table = make()
    for n in range(22):
        table.upsert(batch([Input("k0", "p0", n, 50 + n)]))
        assert table.publish("delta").version == n
    state = read_state(storage)
    names = storage.names(FOLDER)
    (checkpoint,) = (name for name in names if name.endswith(".parquet"))
    assert json.loads(storage.read(f"{FOLDER}/_last_checkpoint"))["version"] == 20
    assert pq.read_table(pa.BufferReader(storage.read(f"{FOLDER}/{checkpoint}"))).num_rows == 6
    for name in names:
        if name.endswith(".json") and int(name[:20]) <= 20:
            storage.delete(f"{FOLDER}/{name}")
    assert read_state(storage).files.keys() == state.files.keys()
    assert not table.publish("delta").changed
    storage.delete(f"{FOLDER}/{checkpoint}")
    with pytest.raises(hoodie.HoodieError, match="has no version 0"):
        table.publish("delta")


@FORMATS
def test_writes_publish_by_option(caplog, format):
    storage, clock, _ = make()
    table = opened(storage, clock, {f"hoodie.python.publish.{format}": "true"})
    table.upsert(batch([Input("k0", "p0", 20, 50)]))
    assert published(storage, format) == bases(table)
    for path in (f"{FOLDER}/{2:020}.json", "metadata/v3.metadata.json"):
        storage.create_new(path, b"no JSON")
    table.upsert(batch([Input("k0", "p0", 21, 51)]))
    assert f"the commit stands, but the publication as {format} after it failed" in caplog.text


def test_what_cannot_be_published_says_so(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    with pytest.raises(SchemaError, match="no columns yet"):
        table.publish("delta")
    with pytest.raises(OptionError, match="the formats are delta, iceberg"):
        table.publish("parquet")
    with pytest.raises(SchemaError, match="column 'at': column 'x': Delta Lake has no type for time64"):
        schema_string(pa.schema([("at", pa.struct([("x", pa.time64("us"))]))]))
    storage, _, foreign = make()
    storage.create_new(f"{FOLDER}/{0:020}.json", b'{"metaData":{"id":"x","configuration":{}}}')
    storage.create_new("metadata/v1.metadata.json", b"{}")
    for format in LakeFormat:
        with pytest.raises(UnsupportedTableError, match="hoodie has not published"):
            foreign.publish(format)


def test_a_renamed_column_is_published_when_older_files_are_rewritten(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert({"id": [1, 2], "n": [1, 2], "m": [3, 4]})
    table.publish("delta")
    table.alter.rename_column("n", "other")
    with pytest.raises(UnsupportedTableError, match=r"column 'other' of table .* has another name in older files"):
        table.publish("delta")
    table.upsert({"id": [1], "other": [5], "m": [3]})
    assert table.publish("delta").changed


@pytest.mark.parametrize("published_before", [False, True])
def test_columns_that_only_files_have_do_not_disturb(tmp_path, published_before):
    """PyIceberg refuses a file with a column, or a field at any depth, that the mapping of names lacks."""
    part = pa.struct([("x", pa.int64()), ("y", pa.string())])
    rows = pa.table(
        {
            "id": [1, 2],
            "gone": ["a", "b"],
            "one": pa.array([{"x": 1, "y": "q"}, None], part),
            "many": pa.array([[{"x": 1, "y": "q"}], []], pa.list_(part)),
            "named": pa.array(
                [[("k", {"x": 1, "y": "q"})], []], pa.map_(pa.string(), part)
            ),  # PyIceberg 0.12 has no null map
            "lost": pa.array([{"x": 1, "y": "q"}, None], part),
        }
    )
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.upsert(rows)
    if published_before:
        table.publish("iceberg")
    for name in ("gone", "lost", "one.x", "many.element.y", "named.value.x"):
        table.alter.drop_column(name)
    for rest in (["one", "many", "named"], ["one", "many", "named", "gone"]):
        table.publish("iceberg")
        found = StaticTable.from_metadata(str(tmp_path / "t")).scan().to_arrow().sort_by("id")
        assert found.to_pylist() == table.scan().to_arrow().select(found.column_names).sort_by("id").to_pylist()
        assert found.column_names == ["id", *rest]
        if "gone" not in rest:
            table.insert_overwrite_table(table.scan().to_arrow())  # no file has it any more
            table.alter.add_column("gone", "int")


def test_a_table_that_was_moved_says_what_to_do(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert({"id": [1]})
    for format in LakeFormat:
        table.publish(format)
    (tmp_path / "t").rename(tmp_path / "u")
    moved = hoodie.open_table(tmp_path / "u")
    assert not moved.publish("delta").changed
    with pytest.raises(UnsupportedTableError, match=r"was published at .*: move its folder metadata away"):
        moved.publish("iceberg")
    (tmp_path / "u" / "metadata").rename(tmp_path / "old")
    assert moved.publish("iceberg").added == 1


def test_the_command(tmp_path, capsys):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    table.insert({"id": [1]})
    assert main(["publish", str(tmp_path / "t"), "--as", "delta", "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("dry run: delta version 0 shows instant ")
    assert not (tmp_path / "t" / FOLDER).exists()
    assert main(["publish", str(tmp_path / "t"), "--as", "delta", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["added"] == 1


# -- Read by others.


def rows(table):
    return sorted(map(repr, table.to_pylist()))


def read_back(path, names):
    """The rows as delta-rs, DataFusion, polars, duckdb and PyIceberg have them."""
    iceberg = pytest.importorskip("pyiceberg.table")
    deltalake = pytest.importorskip("deltalake")
    duckdb = pytest.importorskip("duckdb")
    pl = pytest.importorskip("polars")
    table = deltalake.DeltaTable(path)
    columns = ", ".join(f'"{name}"' for name in names)
    dataset = table.to_pyarrow_dataset()
    yield "delta-rs", dataset.to_table(names)
    query = deltalake.QueryBuilder().register("t", table).execute(f"SELECT {columns} FROM t")
    yield "DataFusion", pa.table(query.read_all())
    yield "polars", pl.scan_delta(str(path)).select(names).collect().to_arrow()
    yield "PyIceberg", iceberg.StaticTable.from_metadata(str(path)).scan().to_arrow().select(names)
    yield "duckdb", duckdb.sql(f"SELECT {columns} FROM dataset").arrow().read_all()


@pytest.mark.parametrize(("kind", "left_out"), HISTORIES)
def test_others_read_the_rows_of_the_read_optimized_view(tmp_path, kind, left_out):
    path = tmp_path / "t"
    for step, there in published_history(path, kind, left_out=left_out):
        for engine, found in read_back(path, there.column_names):
            assert rows(found) == rows(there), (engine, step)


RICH = pa.schema(
    [
        ("id", pa.int64()),
        ("flag", pa.bool_()),
        ("real", pa.float64()),
        ("money", pa.decimal128(9, 2)),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("text", pa.string()),
        ("never", pa.int64()),
        ("part", pa.struct([("x", pa.int64())])),
    ]
)


def rich(ids, length):
    """Every third value is null, and no file has bounds for all columns: one has a long text, or a day that Python has not."""
    of = {
        "flag": lambda n: n % 2 == 0,
        "real": lambda n: n / 2 if n % 4 else float("nan"),
        "money": Decimal,
        "bytes": lambda n: b"%d" % n,
        "day": lambda n: n if length else 10_000_000,
        "at": lambda n: n * 86_400_000_000,
        "text": lambda n: chr(97 + n % 20) * length,
        "part": lambda n: {"x": n},
    }
    columns = {name: [None if n % 3 == 0 else value(n) for n in ids] for name, value in of.items()}
    return pa.table({**columns, "id": ids, "never": [None] * len(ids)}, schema=RICH)


def as_older_releases_had_it(log):
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    for each in actions:
        if "metaData" in each:
            each["metaData"]["configuration"].pop("delta.dataSkippingStatsColumns", None)
        if "add" in each:
            bounds = {"minValues": {"id": 0}, "maxValues": {"id": 100}, "nullCount": {"id": 0}}
            each["add"]["stats"] = json.dumps({"numRecords": 6, **bounds})
    log.write_text("".join(f"{json.dumps(each)}\n" for each in actions))


@pytest.mark.parametrize("by_older_release", [False, True])
def test_filters_by_any_column_find_the_rows(tmp_path, by_older_release):
    """Files that are left out by their bounds have no such row, whether a column has bounds, only nulls, or is new."""
    deltalake = pytest.importorskip("deltalake")
    pl = pytest.importorskip("polars")
    path = tmp_path / "t"
    small = {"hoodie.parquet.small.file.limit": "0"}
    table = hoodie.create_table(path, RICH, record_key="id", options=small)
    for number, length in enumerate([1, 10_000, 50, 0]):
        table.insert(rich(list(range(10 * number, 10 * number + 6)), length))
    table.publish("delta")
    if by_older_release:
        as_older_releases_had_it(path / FOLDER / f"{0:020}.json")
    table.alter.add_column("new", "long")
    assert (table.publish("delta").added, table.publish("delta").changed) == (0, False)
    table.insert(pa.table({"id": [100], "new": [5]}), options=NULLS)
    assert table.publish("delta").added == 1
    there = table.scan().to_arrow()
    dataset = deltalake.DeltaTable(path).to_pyarrow_dataset()
    lazy = pl.scan_delta(str(path))
    for name in there.column_names:
        column = there.column(name)
        filters = [pc.field(name).is_null(), pc.field(name).is_valid()]
        if not pa.types.is_nested(column.type):
            values = column.drop_null().unique().slice(0, 12)
            filters += [pc.field(name) == value for value in values]
            filters += [pc.field(name) >= value for value in values]
        for each in filters:
            expected = sorted(there.filter(each)["id"].to_pylist())
            assert sorted(dataset.to_table(["id"], filter=each)["id"].to_pylist()) == expected, each
    for name, value in {"flag": True, "real": 2.0, "text": "e" * 10_000, "never": 1, "new": 5}.items():
        expected = sorted(there.filter(pc.field(name) == value)["id"].to_pylist())
        assert sorted(lazy.filter(pl.col(name) == value).select("id").collect()["id"]) == expected, name


def test_older_files_keep_their_bounds_where_a_column_comes_or_is_widened(tmp_path):
    table = hoodie.create_table(tmp_path, {"id": "int32", "n": "int32"}, record_key="id")
    table.insert([{"id": n, "n": n} for n in range(3)])
    table.publish("delta")
    table.alter.add_column("new", "long")
    table.alter.change_type("n", "long")
    table.publish("delta")
    log = (tmp_path / FOLDER / f"{1:020}.json").read_text().splitlines()
    (stats,) = (json.loads(each["add"]["stats"]) for each in map(json.loads, log) if "add" in each)
    bounds = (stats["minValues"], stats["maxValues"], stats["nullCount"])
    assert bounds == ({"id": 0, "n": 0}, {"id": 2, "n": 2}, {"id": 0, "n": 0, "new": 3})


FEW = ["v6_cow_simple", "v6_mor_pending_compaction", "v9_mor"]


@pytest.mark.parametrize("name", long_but(FEW, golden_names()))
def test_others_read_what_apache_hudi_wrote(name, tmp_path):
    path = copy_golden(name, tmp_path).path
    table = hoodie.open_table(path)
    for format in LakeFormat:
        table.publish(format)
    there = table.scan(query="read_optimized").to_arrow()
    for engine, found in read_back(path, there.column_names):
        assert found.num_rows == there.num_rows, engine
        if engine not in ("polars", "duckdb"):  # which have types of their own
            left_out = ["nested"] if engine == "PyIceberg" and "nested" in found.column_names else []
            # PyIceberg 0.12 gives an empty list for a null list of structs.
            assert rows(found.drop_columns(left_out)) == rows(there.drop_columns(left_out)), engine
