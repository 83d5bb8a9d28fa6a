"""Registration in a Hive metastore. Against Apache Hudi's own: integration/test_hive_sync_with_hudi.py."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import HiveSyncError, OptionError
from hoodie.hive.sync import LAST_COMMIT, LAST_COMPLETION, sync
from hoodie.model.hive_results import HiveSyncResult
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.values import Extractor, HiveViews
from hoodie.services import upkeep
from hoodie.table import HoodieTable
from tests.effort import long_but
from tests.metastore_tables import Catalog, Killed

OPTIONS = HiveSyncOptions(table="trips")
Root: TypeAlias = str | Path
SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("fare", pa.int32()), ("ts", pa.int64())])


def table_at(
    path: Root, *, kind: str = "COPY_ON_WRITE", partition_by: str | None = "city", **options: Any
) -> HoodieTable:
    return hoodie.create_table(
        f"{path}/trips", SCHEMA, record_key="id", partition_by=partition_by, ordering="ts", table_type=kind, **options
    )


def write(t: HoodieTable, *cities: str, ts: int = 1, **more: Any) -> str:
    rows = [{"id": f"{city}{ts}", "city": city, "fare": 1, "ts": ts, **more} for city in cities]
    named = [*SCHEMA, *(pa.field(name, pa.float64()) for name in more)]
    instant = t.upsert(pa.Table.from_pylist(rows, pa.schema(named))).instant
    assert instant is not None
    return instant


def registered(t: HoodieTable, catalog: Catalog, options: HiveSyncOptions = OPTIONS, **how: Any) -> HiveSyncResult:
    return sync(t._context, replace(options, database=catalog.database, **catalog.options), **catalog.way, **how)


def cities(catalog: Catalog, name: str = "trips") -> set[str]:
    return {city for (city,) in catalog.table(name).partitions}


# -- what is registered ------------------------------------------------------------------------------------------------


def test_a_copy_on_write_table_has_one_name(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    instant = write(t, "rome", "oslo")
    done = registered(t, catalog)
    assert done.database_made == catalog.database
    (made,) = done.tables
    assert made.made
    assert made.added == ("oslo", "rome")
    assert made.noted == instant
    found = catalog.table("trips")
    assert list(found.columns)[5:] == ["id", "fare", "ts"]
    assert found.columns["fare"] == "int"
    assert found.partition_columns == {"city": "string"}
    assert found.input_format == "HoodieParquetInputFormat"
    assert found.parameters[LAST_COMMIT] == instant
    assert found.parameters[LAST_COMPLETION] >= instant
    assert found.parameters["EXTERNAL"] == "TRUE"
    assert found.serde["path"] == t.uri
    assert found.serde["hoodie.query.as.ro.table"] == "false"
    assert found.partitions == {("rome",): "rome", ("oslo",): "oslo"}
    assert not catalog.has("trips_rt")


def test_a_merge_on_read_table_has_a_name_for_each_view_and_its_own(root: Root, catalog: Catalog) -> None:
    t = table_at(root, kind="MERGE_ON_READ")
    write(t, "rome")
    assert [each.name.partition(".")[2] for each in registered(t, catalog).tables] == ["trips_ro", "trips_rt", "trips"]
    views = {name: catalog.table(name) for name in ("trips_ro", "trips_rt", "trips")}
    formats = {name: found.input_format for name, found in views.items()}
    assert formats["trips_ro"] == "HoodieParquetInputFormat"
    assert formats["trips_rt"] == formats["trips"] == "HoodieParquetRealtimeInputFormat"
    said = {name: found.serde["hoodie.query.as.ro.table"] for name, found in views.items()}
    assert said == {"trips_ro": "true", "trips_rt": "false", "trips": "false"}


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (replace(OPTIONS, snapshot_by_name=False), {"trips_ro": "true", "trips_rt": "false"}),
        (replace(OPTIONS, skips_ro_suffix=True), {"trips": "true", "trips_rt": "false"}),
        (replace(OPTIONS, views=HiveViews.RO), {"trips": "true"}),
        (replace(OPTIONS, views=HiveViews.RT), {"trips": "false"}),
    ],
)
def test_options_choose_the_names(
    root: Root, catalog: Catalog, options: HiveSyncOptions, names: dict[str, str]
) -> None:
    t = table_at(root, kind="MERGE_ON_READ")
    write(t, "rome")
    for _ in range(2):
        done = registered(t, catalog, options)
        assert {each.name.partition(".")[2] for each in done.tables} == set(names)
        assert {name: catalog.table(name).serde["hoodie.query.as.ro.table"] for name in names} == names


def test_a_table_without_partitions(root: Root, catalog: Catalog) -> None:
    t = table_at(root, partition_by=None)
    write(t, "rome")
    registered(t, catalog)
    found = catalog.table("trips")
    assert "city" in found.columns
    assert found.partition_columns == {}
    assert found.partitions == {}


def test_a_table_without_rows_is_registered_by_the_columns_it_was_made_with(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    registered(t, catalog)
    assert LAST_COMMIT not in catalog.table("trips").parameters
    write(t, "rome")
    registered(t, catalog)
    assert cities(catalog) == {"rome"}


def test_a_long_schema_is_cut_into_parts_and_parts_that_are_left_over_go(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")
    registered(t, catalog, replace(OPTIONS, schema_length=100))
    parts = _parts(catalog)
    assert len(parts) > 2
    registered(t, catalog)
    assert _parts(catalog) == ["".join(parts)]


def _parts(catalog: Catalog) -> list[str]:
    said = catalog.table("trips").parameters
    count = int(said["spark.sql.sources.schema.numParts"])
    assert sum(name.startswith("spark.sql.sources.schema.part.") for name in said) == count
    return [said[f"spark.sql.sources.schema.part.{number}"] for number in range(count)]


def test_properties_of_the_users_own_are_registered_and_those_of_others_stay(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")
    registered(t, catalog)
    catalog.change("trips", lambda table: table.parameters.update(owner_team="data"))
    options = replace(OPTIONS, table_properties={"a": "1"}, serde_properties={"b": "2"}, for_spark=False)
    (done,) = registered(t, catalog, options).tables
    assert done.properties_changed
    found = catalog.table("trips")
    assert (found.parameters["a"], found.parameters["owner_team"], found.serde["b"]) == ("1", "data", "2")


# -- what changed ------------------------------------------------------------------------------------------------------


def test_a_second_registration_asks_only_for_partitions_that_were_written(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome", "oslo")
    registered(t, catalog)
    write(t, "bern", "rome", ts=2)
    catalog.forget()
    (done,) = registered(t, catalog).tables
    assert done.added == ("bern",)
    assert "get_partitions" not in catalog.calls
    assert catalog.told() == ["add_partitions_req", "alter_table_with_environment_context"]
    assert cities(catalog) == {"rome", "oslo", "bern"}


def test_without_a_commit_in_between_nothing_is_told(root: Root, catalog: Catalog) -> None:
    t = table_at(root, kind="MERGE_ON_READ")
    write(t, "rome")
    registered(t, catalog)
    catalog.forget()
    assert not registered(t, catalog).changed
    assert catalog.told() == []


def test_partitions_that_were_deleted_are_dropped(tmp_path: Path, catalog: Catalog) -> None:
    t = table_at(tmp_path, kind="MERGE_ON_READ")
    write(t, "rome", "oslo", "bern")
    registered(t, catalog)
    t.delete_partitions(["oslo"])
    t.delete_partitions(["bern"])
    write(t, "bern", ts=2)
    done = registered(t, catalog)
    assert {each.dropped for each in done.tables} == {("oslo",)}
    assert cities(catalog, "trips_rt") == cities(catalog, "trips_ro") == {"rome", "bern"}
    assert (tmp_path / "trips" / "oslo").exists()


def test_an_overwrite_leaves_the_partitions_that_have_rows(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome", "oslo")
    registered(t, catalog)
    t.insert_overwrite_table([{"id": "x", "city": "bern", "fare": 1, "ts": 3}])
    registered(t, catalog)
    assert cities(catalog) == {"bern"}


def test_new_columns_and_wider_types_are_changed_also_for_partitions(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")
    registered(t, catalog)
    t.upsert(
        pa.table({"id": ["b"], "city": ["rome"], "fare": pa.array([1 << 40], pa.int64()), "ts": [2], "tip": [0.5]})
    )
    (done,) = registered(t, catalog).tables
    assert done.columns == ("fare: int to bigint", "tip added")
    found = catalog.table("trips")
    assert found.columns["fare"] == found.partition_columns_of_files["rome",]["fare"] == "bigint"
    assert found.columns["tip"] == "double"
    assert '"tip"' in found.parameters["spark.sql.sources.schema.part.0"]


def test_a_type_that_cannot_become_the_tables_is_refused_and_on_demand_registered_anew(
    root: Root, catalog: Catalog
) -> None:
    t = table_at(root)
    write(t, "rome")
    registered(t, catalog)

    def spoil(table: Any) -> None:
        next(field for field in table.sd.cols if field.name == "fare").type = "string"

    catalog.change("trips", spoil)
    catalog.forget()
    with pytest.raises(HiveSyncError, match=r"fare: string to int.*recreate_table_on_error"):
        registered(t, catalog)
    assert catalog.told() == []
    (done,) = registered(t, catalog, replace(OPTIONS, recreates=True)).tables
    assert done.made
    assert catalog.table("trips").columns["fare"] == "int"
    assert cities(catalog) == {"rome"}


def test_a_name_that_another_table_has_is_not_taken(root: Root, catalog: Catalog) -> None:
    other = table_at(f"{root}/other")
    write(other, "rome")
    registered(other, catalog)
    t = table_at(f"{root}/mine")
    write(t, "oslo")
    with pytest.raises(HiveSyncError, match="another place"):
        registered(t, catalog)
    assert cities(catalog) == {"rome"}
    by_another_scheme = replace(OPTIONS, path=f"other:{other.uri.partition(':')[2] or other.uri}")
    assert not registered(other, catalog, by_another_scheme, dry_run=True).tables[0].made


def test_comments_are_those_of_the_schema_and_a_comment_made_by_hand_stays(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")
    registered(t, catalog)

    def say(table: Any) -> None:
        next(field for field in table.sd.cols if field.name == "fare").comment = "in euro"

    catalog.change("trips", say)
    write(t, "rome", ts=2, tip=1.5)
    registered(t, catalog)
    assert catalog.table("trips").comments == {"fare": "in euro"}


# -- where the timeline does not tell ----------------------------------------------------------------------------------


def test_what_was_missed_is_found_when_the_last_commit_is_not_known(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome", "oslo")
    registered(t, catalog)
    t.delete_partitions(["oslo"])
    write(t, "bern", ts=2)
    catalog.change("trips", lambda table: table.parameters.update({LAST_COMMIT: "20200101000000000"}))
    (done,) = registered(t, catalog).tables
    assert (done.added, done.dropped) == (("bern",), ("oslo",))


def test_after_a_restore_all_partitions_are_compared(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    kept = write(t, "rome")
    write(t, "oslo", ts=2)
    registered(t, catalog)
    t.savepoint(kept)
    t.restore(kept)
    write(t, "bern", ts=3)
    registered(t, catalog)
    assert cities(catalog) == {"rome", "bern"}
    t.restore(kept)
    (done,) = registered(t, catalog).tables
    assert done.noted == kept
    assert cities(catalog) == {"rome"}


def test_a_commit_that_ended_after_a_later_one_was_registered_is_not_missed(tmp_path: Path, catalog: Catalog) -> None:
    t = table_at(tmp_path)
    write(t, "rome")
    early = write(t, "oslo", ts=2)
    late = write(t, "bern", ts=3)
    timeline = tmp_path / "trips" / ".hoodie"
    (path,) = [each for each in timeline.rglob(f"{early}*") if each.suffix == ".commit"]
    aside = tmp_path / path.name
    path.rename(aside)
    (tmp_path / "trips" / "oslo").rename(tmp_path / "oslo")
    registered(hoodie.open_table(t.uri), catalog)
    assert cities(catalog) == {"rome", "bern"}
    (tmp_path / "oslo").rename(tmp_path / "trips" / "oslo")
    path.write_bytes(aside.read_bytes())  # only now it is completed
    (done,) = registered(hoodie.open_table(t.uri), catalog).tables
    assert done.noted == late
    assert done.added == ("oslo",)


def test_a_partition_that_somebody_added_elsewhere_stays(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")
    registered(t, catalog)
    catalog.add_partition("trips", catalog.location("trips").removesuffix("trips") + "elsewhere", "mars")
    assert not registered(t, catalog, replace(OPTIONS, incremental=False)).changed
    assert cities(catalog) == {"rome", "mars"}


def test_partitions_are_compared_each_time_if_so_asked(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")
    registered(t, catalog)
    catalog.drop_partition("trips", "rome")
    assert not registered(t, catalog).changed
    assert registered(t, catalog, replace(OPTIONS, incremental=False)).tables[0].added == ("rome",)


def test_a_path_that_the_extractor_cannot_read_is_named(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")
    with pytest.raises(OptionError, match=r"'rome' is not 1 values .*partition_extractor_class"):
        registered(t, catalog, replace(OPTIONS, extractor=Extractor.SLASH_DAY))


def test_a_dry_run_tells_nothing_and_says_what_would_be_told(root: Root, catalog: Catalog) -> None:
    t = table_at(root, kind="MERGE_ON_READ")
    write(t, "rome")
    done = registered(t, catalog, dry_run=True)
    assert catalog.told() == []
    assert all(each.made and each.added == ("rome",) for each in done.tables)
    assert registered(t, catalog).tables == done.tables
    assert not registered(t, catalog, dry_run=True).changed


# -- what goes wrong ---------------------------------------------------------------------------------------------------


def history(t: HoodieTable) -> None:
    """Partitions come and go, and a column comes, since the first registration."""
    write(t, "bern", ts=2)
    t.delete_partitions(["oslo"])
    write(t, "rome", ts=3, tip=0.5)


def assert_right(catalog: Catalog, t: HoodieTable) -> None:
    for name in ("trips_ro", "trips_rt"):
        found = catalog.table(name)
        assert found.partitions == {("rome",): "rome", ("bern",): "bern"}
        assert found.columns["tip"] == "double"
        assert all(columns["tip"] == "double" for columns in found.partition_columns_of_files.values())
        latest = t.timeline.latest_commit
        assert latest is not None
        assert found.parameters[LAST_COMMIT] == latest.time


ENDS = ["killed before", "killed after", "fails before", "fails after"]
TWO = replace(OPTIONS, snapshot_by_name=False)
MANY = 100
SAMPLE = 5 if "HOODIE_TEST_HIVE" in os.environ else 1
"""A real metastore takes its time: there every fifth call."""


@pytest.mark.parametrize("first", long_but([False], [True, False]), ids=["first", "later"])
@pytest.mark.parametrize("kind", long_but(["killed after", "fails before"], ENDS))
def test_a_registration_that_stops_at_any_call_is_made_up_for_by_the_next_one(
    root: Root, catalog: Catalog, kind: str, first: bool
) -> None:
    for number in range(1, MANY, SAMPLE):
        t = table_at(f"{root}/{number}", kind="MERGE_ON_READ")
        options = replace(TWO, recreates=True)  # the names are taken over from the table before
        write(t, "rome", "oslo")
        if not first:
            registered(t, catalog, options)
        history(t)
        catalog.forget()
        stopped = []

        def stop(call: str, n: int, stopped: list[str] = stopped, at: int = number) -> None:
            if n == at:
                stopped.append(call)
                raise Killed if kind.startswith("killed") else ConnectionResetError("gone")

        setattr(catalog, kind.partition(" ")[2], stop)
        with suppress(Killed, HiveSyncError):
            registered(t, catalog, options)
        catalog.before = catalog.after = lambda call, n: None
        if not stopped:
            assert_right(catalog, t)
            assert number > 10
            return
        registered(t, catalog, options)
        assert_right(catalog, t)
    pytest.fail("endless")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_two_registrations_at_once_end_as_one_after_the_other(root: Root, catalog: Catalog, moment: str) -> None:
    """The second one begins and ends while the first one is at some call, and the table has moved on in between."""
    for number in range(1, MANY, SAMPLE):
        t = table_at(f"{root}/{number}", kind="MERGE_ON_READ")
        options = replace(TWO, recreates=True)
        write(t, "rome", "oslo")
        registered(t, catalog, options)
        write(t, "lima", ts=2)
        catalog.forget()
        met: list[str] = []

        def overtake(call: str, n: int, met: list[str] = met, at: int = number, t: HoodieTable = t) -> None:
            if n == at and not met:
                met.append(call)
                t.delete_partitions(["lima"])
                history(t)
                registered(t, catalog, TWO)

        setattr(catalog, moment, overtake)
        registered(t, catalog, options)
        catalog.before = catalog.after = lambda call, n: None
        if not met:
            assert number > 10
            return
        assert cities(catalog, "trips_ro") == cities(catalog, "trips_rt") == {"rome", "bern"}
        registered(t, catalog, TWO)
        assert_right(catalog, t)
    pytest.fail("endless")


def test_who_is_overtaken_does_all_of_it_once_more(root: Root, catalog: Catalog) -> None:
    """It adds a partition that was deleted, and whose registration the other one has dropped."""
    t = table_at(root)
    write(t, "rome")
    registered(t, catalog)
    write(t, "lima", ts=2)

    def overtake(call: str, n: int) -> None:
        if call == "add_partitions_req":
            catalog.before = lambda call, n: None
            t.delete_partitions(["lima"])
            registered(t, catalog)
            assert cities(catalog) == {"rome"}

    catalog.before = overtake
    registered(t, catalog)
    assert cities(catalog) == {"rome"}


def test_a_metastore_that_refuses_is_quoted_without_what_may_be_secret(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")

    def refuse(call: str, n: int) -> None:
        if call == "create_table":
            raise PermissionError("read only")

    catalog.before = refuse
    secret = replace(OPTIONS, table_properties={"token": "s3cr3t"}, serde_properties={"password": "s3cr3t"})
    with pytest.raises(HiveSyncError, match=r"failed at create_table: PermissionError: read only") as caught:
        registered(t, catalog, secret)
    assert "s3cr3t" not in str(caught.value)


def test_a_metastore_that_is_read_only_costs_a_warning_and_no_commit_and_the_next_commit_repairs_it(
    root: Root, catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(upkeep, "sync", partial(sync, **catalog.way))
    t = table_at(root)
    said = {"enable": "true", "metastore.uris": "thrift://nobody:1", "database": catalog.database, "table": "trips"}
    said["mode"] = catalog.mode
    options = {f"hoodie.datasource.hive_sync.{name}": value for name, value in said.items()}
    options["hoodie.aws.glue.region"] = "us-east-1"

    def refuse(call: str, n: int) -> None:
        if call not in catalog.asking:
            raise PermissionError("read only")

    catalog.before = refuse
    for city in ("rome", "oslo"):
        caplog.clear()
        t.upsert({"id": [city], "city": [city], "fare": [1], "ts": [1]}, options=options)
        warned = [record.getMessage() for record in caplog.records if "commit stands" in record.getMessage()]
        assert len(warned) == 1
        assert warned[0].startswith("the commit stands, but the registration of the table after it failed")
        assert "read only" in warned[0]
    assert t.scan().count() == 2
    catalog.before = lambda call, n: None
    t.upsert({"id": ["lima"], "city": ["lima"], "fare": [1], "ts": [1]}, options=options)
    assert cities(catalog) == {"rome", "oslo", "lima"}


def test_the_time_of_all_calls_together_is_bounded(root: Root, catalog: Catalog) -> None:
    t = table_at(root)
    write(t, "rome")
    with pytest.raises(HiveSyncError, match="took more than"):
        registered(t, catalog, replace(OPTIONS, timeout_s=1e-9))
    assert catalog.calls == []
