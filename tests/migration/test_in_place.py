"""A folder of Parquet files becomes a table where it is: whole or not at all, read and written as any other."""

from contextlib import suppress
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
import hoodie.write.keys
from hoodie.cli.__main__ import main
from hoodie.errors import OptionError, SchemaError, TableExistsError, TableNotFoundError
from hoodie.migration import in_place
from hoodie.migration.in_place import InPlace, options_of
from hoodie.migration.migrate import migrate
from hoodie.migration.progress import start_of
from hoodie.migration.source import Rows
from hoodie.migration.sources import opener_of
from hoodie.model.enums import WriteOperation
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.storage.memory import MemoryStorage
from hoodie.storage.uri import open_storage
from hoodie.write.schema import storable
from tests.memory_tables import OwnClock, opened
from tests.migrated_sources import ROWS, parquet_folder, rows_of
from tests.servers.s3 import shared_moto
from tests.storages import write


def stored(target):
    return rows_of(hoodie.open_table(target).scan().to_arrow())


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_rows_stay_in_the_source_until_they_are_written_anew(tmp_path, kind, version):
    source = parquet_folder(tmp_path / "s")
    before = {path: path.read_bytes() for path in source.rglob("*.parquet")}
    asked = {"record_key": "id", "mode": "in_place", "table_type": kind, "table_version": version}
    plan = migrate(source, tmp_path / "t", dry_run=True, **asked)
    assert (plan.planned_steps, plan.source_rows, (tmp_path / "t").exists()) == (1, 30, False)
    done = migrate(source, tmp_path / "t", **asked)
    assert (done.ok, done.target_rows, [step.rows for step in done.steps]) == (True, 30, [30])
    assert stored(tmp_path / "t") == rows_of(ROWS)
    assert {name for path in (tmp_path / "t").rglob("*.parquet") for name in pq.read_schema(path).names[5:]} == set()
    again = migrate(source, tmp_path / "t", **asked)
    assert (again.done_before, again.steps, again.ok) == (6, (), True)
    table = hoodie.open_table(tmp_path / "t")
    assert table.upsert(ROWS.slice(0, 3)).updated == 3
    assert stored(tmp_path / "t") == rows_of(ROWS)
    assert table.lookup(["k04"]).count() == 1
    assert main(["check", str(tmp_path / "t"), "--rows"]) == 0
    assert {path: path.read_bytes() for path in source.rglob("*.parquet")} == before


def test_a_run_that_dies_at_any_step_leaves_no_table_or_all_of_it_and_the_next_one_ends(tmp_path):
    source = opener_of(parquet_folder(tmp_path / "s"), None, None, None)(None)
    rows = Rows(source, storable(source.schema))
    like = hoodie.create_table(
        f"memory://{tmp_path.name}",
        source.schema,
        record_key="id",
        partition_by="day",
        name="t",
        options={**options_of(source, {}), "hoodie.write.table.version": "9"},
    )
    context, write = like._context, like._request_for(WriteOperation.BULK_INSERT, {}).write
    keys = hoodie.write.keys.table_keys(context, context.snapshot(), write)

    def run(storage):
        return list(InPlace(storage, like.config, source, start_of(source), rows, keys, ["id", "day"], write).steps())

    clock = OwnClock()
    storage = FaultStorage(MemoryStorage())
    run(storage)
    points = list(crash_points(storage.trace))
    died = 0
    for point in points[:: max(1, len(points) // 25)]:
        storage = FaultStorage(MemoryStorage())
        storage.revive([point])
        with suppress(InjectedFault):
            run(storage)
        storage.revive()
        try:
            found = rows_of(opened(storage, clock).scan().to_arrow())
        except TableNotFoundError:
            died += 1
            found = None
        assert found in (None, rows_of(ROWS)), point
        if found is None:
            run(storage)
        assert rows_of(opened(storage, clock).scan().to_arrow()) == rows_of(ROWS), point
    assert died


def test_what_was_begun_with_other_files_is_left_to_who_began_it(tmp_path):
    source = parquet_folder(tmp_path / "s")
    asked = {"record_key": "id", "mode": "in_place"}
    migrate(source, tmp_path / "t", **asked)
    (tmp_path / "t/.hoodie/hoodie.properties").unlink()  # as it is before the last step
    (tmp_path / "t/.hoodie/.aux/.bootstrap/begun.json").write_text('{"identity": "x", "completion": "", "made_ms": 0}')
    before = {path: path.read_bytes() for path in (tmp_path / "t").rglob("*") if path.is_file()}
    assert not hoodie.is_table(tmp_path / "t")
    with pytest.raises(TableNotFoundError, match="a migration in place began there"):
        hoodie.open_table(tmp_path / "t")
    with pytest.raises(TableExistsError, match="a migration in place makes a table"):
        hoodie.create_table(tmp_path / "t", record_key="id")
    with pytest.raises(TableExistsError, match="with other arguments"):
        migrate(source, tmp_path / "t", **asked)
    assert {path: path.read_bytes() for path in (tmp_path / "t").rglob("*") if path.is_file()} == before


def test_a_table_that_comes_to_be_meanwhile_stays_as_it_is(tmp_path, monkeypatch):
    source = parquet_folder(tmp_path / "s")

    def write_index(storage, *given, **more):
        (tmp_path / "t/.hoodie/.aux/.bootstrap/begun.json").rename(tmp_path / "note")  # as if it had not been seen
        hoodie.create_table(tmp_path / "t", record_key="id", partition_by="day")
        (tmp_path / "note").rename(tmp_path / "t/.hoodie/.aux/.bootstrap/begun.json")

    monkeypatch.setattr(in_place, "write_index", write_index)
    with pytest.raises(TableExistsError, match="another table came to be"):
        migrate(source, tmp_path / "t", record_key="id", mode="in_place")
    hoodie.open_table(tmp_path / "t").upsert(ROWS.slice(0, 2))
    assert len(stored(tmp_path / "t")) == 2


def test_what_cannot_be_done_in_place_is_refused_and_makes_nothing(tmp_path):
    source = parquet_folder(tmp_path / "s")
    asked = {"record_key": "id", "mode": "in_place"}
    for options, why in (
        ({"hoodie.index.type": "BUCKET"}, "BUCKET"),
        ({"hoodie.populate.meta.fields": "false"}, "populate"),
    ):
        with pytest.raises(OptionError, match=why):
            migrate(source, tmp_path / "t", options=options, **asked)
    with pytest.raises(OptionError, match="rows of partitions"):
        migrate(source, tmp_path / "u", partition_by=["day", "n"], **asked)
    (tmp_path / "moments/x").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1], "at": pa.array([1], pa.timestamp("us"))}), tmp_path / "moments/x/a.parquet")
    with pytest.raises(OptionError, match=r"not read back as timestamp\[us\]"):
        migrate(tmp_path / "moments", tmp_path / "t", partition_by="at", **asked)
    pq.write_table(
        pa.table({"id": [1], "a": [date(2026, 1, 1)], "b": [date(2026, 1, 2)]}), tmp_path / "moments/x/a.parquet"
    )
    with pytest.raises(OptionError, match="a second date"):
        migrate(tmp_path / "moments", tmp_path / "t", partition_by=["a", "b"], **asked)
    pq.write_table(pa.table({"id": [1], "a": pa.nulls(1, pa.date32())}), tmp_path / "moments/x/a.parquet")
    with pytest.raises(OptionError, match="no date that is null"):
        migrate(tmp_path / "moments", tmp_path / "w", partition_by="a", **asked)
    (tmp_path / "n").mkdir()
    pq.write_table(pa.table({"id": ["a"], "at": pa.array([1], pa.timestamp("ns"))}), tmp_path / "n/a.parquet")
    with pytest.raises(SchemaError, match="nanoseconds"):
        migrate(tmp_path / "n", tmp_path / "t", **asked)
    (tmp_path / "d").mkdir()
    for name, digits in (("a", 5), ("b", 7)):
        kind = pa.decimal128(digits, 2)
        pq.write_table(pa.table({"id": [name], "x": pa.array(["1.25"]).cast(kind)}), tmp_path / f"d/{name}.parquet")
    with pytest.raises(SchemaError, match=r"nothing is converted"):
        migrate(tmp_path / "d", tmp_path / "v", **asked)
    assert not list(tmp_path.rglob("hoodie.properties"))
    migrate(source, tmp_path / "c", record_key="id")
    with pytest.raises(OptionError, match="was begun with"):
        migrate(source, tmp_path / "c", **asked)


def test_names_with_signs_wide_types_and_moments_of_int96(tmp_path):
    (tmp_path / "s").mkdir()
    rows = pa.table({"id": [1, 2], "at": pa.array([0, 1], pa.timestamp("us", "UTC"))})
    pq.write_table(rows, tmp_path / "s/a b%20+c.parquet", use_deprecated_int96_timestamps=True)
    pq.write_table(rows.set_column(0, "id", pa.array([3, 4], pa.int32())), tmp_path / "s/b.parquet")
    assert migrate(tmp_path / "s", tmp_path / "t", record_key="id", mode="in_place").ok
    assert hoodie.open_table(tmp_path / "t").scan(where="id = 1").count() == 1


@pytest.mark.parametrize("version", [6, 9])
def test_files_of_a_bucket_are_reached_as_the_table_is(tmp_path, version):
    """Names of their folders with signs, too."""
    server = shared_moto()
    source, target, folder = server.new_uri(), server.new_uri(), parquet_folder(tmp_path / "s")
    storage = open_storage(source, server.options)
    for path in folder.rglob("*.parquet"):
        write(storage, str(path.relative_to(folder)), path.read_bytes())
    reached = {"storage_options": server.options, "source_options": server.options}
    assert migrate(source, target, record_key="id", mode="in_place", table_version=version, **reached).ok
    table = hoodie.open_table(target, storage_options=server.options)
    assert table.upsert(ROWS.slice(0, 3)).updated == 3
    assert rows_of(table.scan().to_arrow()) == rows_of(ROWS)
