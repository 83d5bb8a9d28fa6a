"""Tables of other formats become Hudi tables: all rows, each once, over deaths, and nothing where keys repeat."""

import json
import subprocess
import sys
from contextlib import suppress
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema, write_deltalake

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import (
    CorruptFileError,
    DuplicateKeyError,
    KeyFieldError,
    OptionError,
    SchemaError,
    StorageError,
    TableChangedError,
    TableNotFoundError,
)
from hoodie.migration.copying import check, compared, copy_steps, digest
from hoodie.migration.migrate import migrate
from hoodie.migration.source import Rows
from hoodie.migration.sources import opener_of
from hoodie.options.parse import parse_write_options
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.storage.memory import MemoryStorage
from hoodie.write.create import create_at
from hoodie.write.schema import storable
from tests.memory_tables import OwnClock, opened
from tests.migrated_sources import ROWS, delta_table, iceberg_table, parquet_folder, rows_of, with_deletion_vector


def stored(target):
    return hoodie.open_table(target).scan().to_arrow()


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("version", [6, 9])
def test_a_folder_of_parquet_files_is_copied(tmp_path, kind, version):
    source, told = parquet_folder(tmp_path / "s"), []
    result = hoodie.migrate(
        source,
        tmp_path / "t",
        record_key="id",
        table_type=kind,
        table_version=version,
        step_bytes=1,
        on_step=told.append,
    )
    assert result.ok, result
    assert (result.format, result.files, result.source_rows, result.target_rows) == ("parquet", 6, 30, 30)
    assert [step.done for step in told] == [1, 2, 3, 4, 5, 6]
    assert told == list(result.steps)
    table = hoodie.open_table(tmp_path / "t")
    assert (table.config.table_type, table.config.version, table.config.partition_fields) == (kind, version, ("day",))
    assert rows_of(table.scan().to_arrow()) == rows_of(ROWS)
    assert table.upsert(ROWS.slice(0, 3)).updated == 3


def test_folders_without_names_are_values_of_the_columns_that_files_lack(tmp_path):
    source = parquet_folder(tmp_path / "s", hive=False)
    with pytest.raises(KeyFieldError, match="day"):
        migrate(source, tmp_path / "t", record_key="id", ordering="day")
    with pytest.raises(OptionError, match="as many partition columns as there are folders"):
        migrate(source, tmp_path / "t", record_key="id", partition_by=["day", "hour"])
    assert migrate(source, tmp_path / "t", record_key="id", partition_by="day").ok
    assert rows_of(stored(tmp_path / "t")) == rows_of(ROWS)


def test_a_whole_number_in_the_name_of_a_folder_is_one_unless_its_text_says_more(tmp_path):
    for day, hour in (("01", 1), ("02", 12)):
        (tmp_path / f"s/day={day}/hour={hour}").mkdir(parents=True)
        pq.write_table(pa.table({"id": [hour]}), tmp_path / f"s/day={day}/hour={hour}/a.parquet")
    assert migrate(tmp_path / "s", tmp_path / "t", record_key="id").partition_by == ("day", "hour")
    assert sorted(stored(tmp_path / "t").to_pylist(), key=str) == [
        {"id": 1, "day": "01", "hour": 1},
        {"id": 12, "day": "02", "hour": 12},
    ]


def test_columns_that_some_files_lack_are_null_and_narrower_numbers_widen(tmp_path):
    (tmp_path / "s").mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int32())}), tmp_path / "s/a.parquet")
    pq.write_table(pa.table({"id": pa.array([2], pa.int64()), "x": ["x"]}), tmp_path / "s/b.parquet")
    assert migrate(tmp_path / "s", tmp_path / "t", record_key="id").ok
    assert rows_of(stored(tmp_path / "t"), "id", "x") == [{"id": 1, "x": None}, {"id": 2, "x": "x"}]
    pq.write_table(pa.table({"id": ["c"]}), tmp_path / "s/c.parquet")
    with pytest.raises(SchemaError, match=r"c\.parquet do not fit"):
        migrate(tmp_path / "s", tmp_path / "u", record_key="id")


@pytest.mark.parametrize("mode", ["copy", "in_place"])
def test_a_file_that_lacks_a_column_that_others_have_takes_it_from_its_folder(tmp_path, mode):
    days = [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 3)]
    for number, day in enumerate(days):
        rows = pa.table({"id": [number], "day": [day]})
        (tmp_path / f"s/day={day}").mkdir(parents=True)
        pq.write_table(rows if number == 1 else rows.drop_columns(["day"]), tmp_path / f"s/day={day}/1.parquet")
    assert migrate(tmp_path / "s", tmp_path / "t", record_key="id", mode=mode).ok
    assert sorted(hoodie.open_table(tmp_path / "t").scan().to_arrow()["day"].to_pylist()) == days
    (tmp_path / "s/day=soon").mkdir()
    pq.write_table(pa.table({"id": [9]}), tmp_path / "s/day=soon/1.parquet")
    with pytest.raises(SchemaError, match=r"day=soon, and other files have a column 'day' of date32"):
        migrate(tmp_path / "s", tmp_path / "u", record_key="id", mode=mode)


@pytest.mark.parametrize("mode", ["copy", "in_place"])
def test_a_column_that_is_null_in_all_files_is_left_out_and_told(tmp_path, mode):
    """pandas writes no type for it."""
    (tmp_path / "s").mkdir()
    for number in range(2):
        pq.write_table(pa.table({"id": [number], "n": pa.nulls(1), "v": ["x"]}), tmp_path / f"s/{number}.parquet")
    done = migrate(tmp_path / "s", tmp_path / "t", record_key="id", mode=mode)
    assert (done.ok, done.columns) == (True, ("id", "v"))
    assert done.notes == ("columns with nothing but null and no type are left out: n",)
    table = hoodie.open_table(tmp_path / "t")
    assert table.upsert([{"id": 1, "v": "y", "n": 7}]).updated == 1
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [
        {"id": 0, "v": "x", "n": None},
        {"id": 1, "v": "y", "n": 7},
    ]


def test_a_source_without_rows_is_told(tmp_path):
    DeltaTable.create(tmp_path / "d", schema=Schema.from_arrow(pa.schema([("id", pa.int64())])))
    (tmp_path / "p").mkdir()
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "p/1.parquet")
    for mode in ("copy", "in_place"):
        with pytest.raises(OptionError, match="has no files, so no rows: make the table by"):
            migrate(tmp_path / "d", tmp_path / "t", record_key="id", mode=mode)
    with pytest.raises(OptionError, match="has no rows, and in place its files are the table"):
        migrate(tmp_path / "p", tmp_path / "t", record_key="id", mode="in_place")
    assert not (tmp_path / "t").exists()
    assert migrate(tmp_path / "p", tmp_path / "t", record_key="id").ok


def test_a_delta_table_is_copied_at_the_version_that_was_begun_with(tmp_path):
    source = delta_table(tmp_path / "s")
    DeltaTable(source).delete("id = 'k04'")
    assert migrate(source, tmp_path / "t", record_key="id", step_bytes=1).ok
    write_deltalake(
        source, pa.table({**dict(zip(ROWS.schema.names, ROWS.slice(0, 1).columns)), "id": ["new"]}), mode="append"
    )
    again = migrate(source, tmp_path / "t", record_key="id")
    assert (again.version, again.done_before, again.steps, again.ok) == ("3", again.files, (), True)
    expected = [row for row in rows_of(ROWS) if row["id"] != "k04"]
    assert rows_of(stored(tmp_path / "t")) == expected


def test_rows_that_a_deletion_vector_takes_away_are_not_copied(tmp_path):
    source = delta_table(tmp_path / "s")
    path = with_deletion_vector(source, [0, 2])
    gone = set(pq.ParquetFile(source / path.replace("%2520", "%20")).read().take([0, 2]).column("id").to_pylist())
    result = migrate(source, tmp_path / "t", record_key="id")
    assert result.ok
    assert (result.source_rows, "deletion vectors of 1 files" in str(result)) == (28, True)
    assert rows_of(stored(tmp_path / "t")) == [row for row in rows_of(ROWS) if row["id"] not in gone]


@pytest.mark.parametrize("partitioned", [True, False])
def test_an_iceberg_table_is_copied_at_the_snapshot_that_was_begun_with(tmp_path, partitioned):
    table = iceberg_table(tmp_path, partitioned=partitioned)
    table.delete("id == 'k04'")
    result = migrate(table, tmp_path / "t", record_key="id", step_bytes=1)
    assert result.ok
    assert (result.format, result.source_rows) == ("iceberg", 29)
    assert result.partition_by == (("day",) if partitioned else ())
    table.append(ROWS.slice(4, 1))
    again = migrate(table.location(), tmp_path / "t", record_key="id")
    assert (again.version, again.steps, again.ok) == (result.version, (), True)
    assert rows_of(stored(tmp_path / "t")) == [row for row in rows_of(ROWS) if row["id"] != "k04"]


def test_keys_that_repeat_are_told_and_nothing_is_written(tmp_path):
    source = parquet_folder(tmp_path / "s")
    again = ROWS.filter(pa.array([day == "mon" for day in ROWS["day"].to_pylist()])).slice(0, 2).drop_columns(["day"])
    pq.write_table(again, source / "day=mon/again.parquet")
    pq.write_table(again, source / "day=tue%20wed/again.parquet")  # another partition: a key of its own
    for dry_run in (True, False):
        with pytest.raises(
            DuplicateKeyError, match=r"2 record keys more than once, 4 rows(.|\n)*2 times: 'k00' in partition 'mon'"
        ):
            migrate(source, tmp_path / "t", record_key="id", dry_run=dry_run)
        assert not (tmp_path / "t").exists()
    with pytest.raises(DuplicateKeyError, match="2 record keys more than once, 6 rows"):
        migrate(source, tmp_path / "t", record_key="id", partition_by=[])


def test_a_row_without_a_key_is_told_with_its_file(tmp_path):
    (tmp_path / "s").mkdir()
    pq.write_table(pa.table({"id": ["a", None]}), tmp_path / "s/a.parquet")
    with pytest.raises(KeyFieldError, match=r"a\.parquet"):
        migrate(tmp_path / "s", tmp_path / "t", record_key="id")
    assert not (tmp_path / "t").exists()


def test_a_dry_run_writes_nothing(tmp_path):
    result = migrate(parquet_folder(tmp_path / "s"), tmp_path / "t", record_key="id", step_bytes=1, dry_run=True)
    assert (result.planned_steps, result.source_rows, result.steps) == (6, 30, ())
    assert not (tmp_path / "t").exists()


def test_every_crash_leaves_a_table_that_the_next_run_completes(tmp_path):
    source = opener_of(parquet_folder(tmp_path / "s", files=1), None, None, None)(None)
    rows = Rows(source, storable(source.schema))

    def run(storage, clock):
        return list(copy_steps(opened(storage, clock), rows, 1, {}))

    def made():
        inner, clock = MemoryStorage(), OwnClock()
        request = parse_write_options({"hoodie.archive.automatic": "false"})
        options = request.to_create().__class__(record_key_fields=("id",), partition_fields=("day",))
        create_at(inner, options, schema=source.schema)
        return FaultStorage(inner), clock

    storage, clock = made()
    assert [step.rows for step in run(storage, clock)] == [10, 10, 10]
    points = list(crash_points(storage.trace))
    for point in points[:: max(1, len(points) // 12)]:
        storage, clock = made()
        storage.revive([point])
        with suppress(InjectedFault):
            run(storage, clock)
        storage.revive()
        clock.now_s += 3600
        run(storage, clock)
        table = opened(storage, clock)
        found = check(table, rows)
        assert (found.source_rows, found.target_rows) == (30, 30), point
        assert all(each.ok for each in found.columns), point
        assert rows_of(table.scan().to_arrow()) == rows_of(ROWS), point


def test_a_killed_process_goes_on_and_another_one_beside_it_writes_nothing_twice(tmp_path):
    source = parquet_folder(tmp_path / "s")
    script = (
        "import os, sys, hoodie\n"
        "hoodie.migrate(sys.argv[1], sys.argv[2], record_key='id', step_bytes=1,\n"
        "               on_step=lambda step: step.number == 2 and os._exit(9))"
    )
    died = subprocess.run([sys.executable, "-c", script, source, tmp_path / "t"], check=False)
    assert (died.returncode, stored(tmp_path / "t").num_rows) == (9, 15)

    def beside(step):
        if step.number == 3:
            assert migrate(source, tmp_path / "t", record_key="id", check=False).steps[0].number == 4

    result = migrate(source, tmp_path / "t", record_key="id", step_bytes=1, on_step=beside)
    assert (result.done_before, [step.number for step in result.steps], result.ok) == (3, [3], True)
    assert rows_of(stored(tmp_path / "t")) == rows_of(ROWS)


@pytest.mark.parametrize("step_bytes", [1, 1 << 30])
def test_a_step_that_another_run_takes_meanwhile_is_written_once(tmp_path, monkeypatch, step_bytes):
    source, read, others = parquet_folder(tmp_path / "s"), Rows.reader, []
    arguments = {"record_key": "id", "check": False}

    def late(rows, pieces):
        if not others:
            others.append(hoodie.open_table(tmp_path / "t"))
            hoodie.migrate(source, tmp_path / "t", step_bytes=step_bytes, **arguments)
        return read(rows, pieces)

    monkeypatch.setattr(Rows, "reader", late)
    hoodie.migrate(source, tmp_path / "t", step_bytes=1, **arguments)
    assert rows_of(stored(tmp_path / "t")) == rows_of(ROWS)


def test_a_source_that_changed_is_not_gone_on_with(tmp_path):
    source = parquet_folder(tmp_path / "s")
    with pytest.raises(ZeroDivisionError):
        migrate(source, tmp_path / "t", record_key="id", step_bytes=1, on_step=lambda _: 1 / 0)
    with pytest.raises(OptionError, match="was begun with record_key_fields"):
        migrate(source, tmp_path / "t", record_key="n")
    pq.write_table(pa.table({"id": ["z"]}), source / "day=mon/zz.parquet")
    with pytest.raises(OptionError, match="has other files than that had"):
        migrate(source, tmp_path / "t", record_key="id")


@pytest.mark.parametrize("goes", [True, False])
def test_a_file_that_changes_or_goes_during_the_migration_is_an_error(tmp_path, goes):
    source = parquet_folder(tmp_path / "s")
    last = source / "day=tue%20wed/1.parquet"

    def act(step):
        if step.number == 0:
            last.unlink()
            if not goes:
                pq.write_table(pa.table({"id": ["z"]}), last)

    with pytest.raises(TableChangedError, match="when the migration was planned"):
        migrate(source, tmp_path / "t", record_key="id", step_bytes=1, on_step=act)


def test_the_check_sees_one_other_value(tmp_path):
    source, plain = tmp_path / "s", {"compression": "none", "use_dictionary": False, "write_statistics": False}
    source.mkdir()
    pq.write_table(pa.table({"id": ["a", "b"], "n": [1, 2]}), source / "0.parquet", **plain)
    assert migrate(source, tmp_path / "t", record_key="id").ok
    pq.write_table(pa.table({"id": ["a", "b"], "n": [2, 1]}), source / "0.parquet", **plain)  # of the same size
    result = migrate(source, tmp_path / "t", record_key="id")
    assert (result.ok, result.differing) == (False, ("*",))
    pq.write_table(pa.table({"id": ["a", "b"], "n": [1, 3]}), source / "0.parquet", **plain)
    assert migrate(source, tmp_path / "t", record_key="id").differing == ("*", "n")
    assert main(["migrate", str(source), str(tmp_path / "t"), "--key", "id"]) == 1


def test_the_check_sees_values_that_change_places_in_their_rows():
    pairs = [(1, 2), (2, 3), (3, 1)]
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    one, other = (
        digest(pa.table({"a": a, "b": b}, schema).to_batches(), schema)
        for a, b in (zip(*pairs, strict=True), zip(*[pair[::-1] for pair in pairs], strict=True))
    )
    assert [each.column for each in compared(one, other) if not each.ok] == ["*"]


def test_files_that_are_left_out_are_told(tmp_path):
    source = parquet_folder(tmp_path / "s")
    (source / "day=mon/000000_0").write_bytes((source / "day=mon/0.parquet").read_bytes())
    (source / "_temporary").mkdir()
    (source / "_temporary/0.parquet").write_bytes(b"half")
    result = migrate(source, tmp_path / "t", record_key="id")
    assert (result.ok, result.source_rows) == (True, 30)
    assert "2 files left out, hidden or not named .parquet, such as _temporary/0.parquet" in str(result)


def test_wrong_sources_and_targets_are_told(tmp_path):
    source = parquet_folder(tmp_path / "s")
    (tmp_path / "empty").mkdir()
    other = hoodie.create_table(tmp_path / "other", record_key="id")
    other.upsert([{"id": 1}])
    cases = [
        (TableNotFoundError, "no Parquet file", tmp_path / "empty", tmp_path / "t", {}),
        (OptionError, "is a Hudi table already", tmp_path / "other", tmp_path / "t", {}),
        (OptionError, "has rows, and no migration", source, tmp_path / "other", {}),
        (OptionError, "would be in the folder of its source", source, source / "t", {}),
        (OptionError, "format='orc'", source, tmp_path / "t", {"format": "orc"}),
        (OptionError, "mode='move'", source, tmp_path / "t", {"mode": "move"}),
        (StorageError, r"1\.parquet", source / "day=mon/1.parquet", tmp_path / "t", {}),
        (OptionError, "step_bytes=0", source, tmp_path / "t", {"step_bytes": 0}),
        (OptionError, "neither a path nor", 7, tmp_path / "t", {}),
        (TableNotFoundError, "no metadata of an Iceberg table", source, tmp_path / "t", {"format": "iceberg"}),
        (TableNotFoundError, "no Delta table", source, tmp_path / "t", {"format": "delta"}),
    ]
    for error, text, given, target, arguments in cases:
        with pytest.raises(error, match=text):
            migrate(given, target, record_key="id", **arguments)
    with pytest.raises(OptionError, match="names no column"):
        migrate(source, tmp_path / "t", record_key=[])
    (source / "day=mon/broken.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(CorruptFileError, match=r"broken\.parquet"):
        migrate(source, tmp_path / "t", record_key="id")
    assert not (tmp_path / "t").exists()


def test_the_command_prints_steps_and_the_check(tmp_path, capsys):
    source = parquet_folder(tmp_path / "s")
    line = ["migrate", str(source), str(tmp_path / "t"), "--key", "id", "--type", "MERGE_ON_READ", "--step-bytes", "1"]
    assert main([*line, "--dry-run"]) == 0
    assert "dry run: 6 steps, nothing written" in capsys.readouterr().out
    assert main(line) == 0
    out = capsys.readouterr().out
    assert "step 5: 5 rows of 1 file, 6 of 6 files done" in out
    assert "checked: 30 rows, and the hashes of 5 columns are the same" in out
    assert main([*line, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"] is True
