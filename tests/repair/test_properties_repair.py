"""A damaged hoodie.properties: what comes back from where, and that nothing is guessed."""

import re

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import OptionError, TableNotFoundError
from hoodie.format.properties import format_properties, parse_properties
from hoodie.lock.providers import coordinate
from hoodie.model.names import PROPERTIES, PROPERTIES_BACKUP, SET_ASIDE, join
from hoodie.options.parse import parse_write_options
from hoodie.repair.properties_repair import find_damage, plan_properties, repair_at
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.table import open_at
from hoodie.write.create import create_at
from tests.bucket import BucketStorage
from tests.damaged_tables import make
from tests.memory_tables import FakeClock, copy_of, new_storage, opened, snapshot_of

ORDERING = "hoodie.table.ordering.fields"
KEY = "hoodie.table.recordkey.fields"
PARTITION = "hoodie.table.partition.fields"
TYPE = "hoodie.table.type"
NAME = "hoodie.table.name"


def repair(storage, said=None):
    return repair_at(storage, coordinate(storage).lock, said, timeout_s=5)


def properties_of(storage):
    return parse_properties(storage.read(PROPERTIES).decode())


def sources(plan):
    return {each.key: (each.value, each.source) for each in plan.properties}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def made(request):
    clock = FakeClock()
    storage = new_storage(clock)
    make(storage, clock, request.param)
    return storage, clock, request.param


def test_whole_properties_are_left_alone(made):
    storage, _, _ = made
    before = storage.snapshot().files
    assert plan_properties(storage).damage is None
    assert repair(storage).damage is None
    assert storage.snapshot().files == before


def test_everything_but_the_ordering_is_known_by_the_files_of_a_table(made):
    storage, clock, table_type = made
    before, rows = properties_of(storage), snapshot_of(opened(storage, clock))
    storage.delete(PROPERTIES)
    plan = plan_properties(storage)
    assert [each.partition(":")[0] for each in plan.unknown] == [ORDERING]
    known = sources(plan)
    assert known[KEY][0] == "id"
    assert "only column" in known[KEY][1]
    assert known[PARTITION][0] == "part"
    assert known[TYPE][0] == table_type
    assert known[NAME] == ("t", "the schema in the newest commit")
    with pytest.raises(OptionError, match=ORDERING):
        repair(storage)
    assert not storage.exists(PROPERTIES)
    done = repair(storage, {ORDERING: "ts"})
    assert sources(done)[ORDERING] == ("ts", "you")
    after = properties_of(storage)
    assert after == {key: value for key, value in before.items() if key != "hoodie.table.create.schema"}
    assert snapshot_of(opened(storage, clock)) == rows


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_file_that_was_cut_anywhere_is_put_back_or_asked_for(table_type):
    """Never other values than those that were there: a cut line does not count, and what is lost is found or asked for."""
    clock = FakeClock()
    start = new_storage(clock)
    make(start, clock, table_type)
    data, before = start.read(PROPERTIES), properties_of(start)
    rows = snapshot_of(opened(start, clock))
    asked = 0
    for cut in range(0, len(data), 37):
        storage, clock = copy_of(start)
        storage.replace(PROPERTIES, data[:cut])
        plan = plan_properties(storage)
        assert plan.damage is not None, cut
        assert {each.partition(":")[0] for each in plan.unknown} <= {ORDERING}, cut
        asked += bool(plan.unknown)
        repair(storage, {ORDERING: "ts"} if plan.unknown else None)
        after = properties_of(storage)
        assert {key: before[key] for key in after if key in before} == after, cut
        assert {NAME, TYPE, KEY, PARTITION, ORDERING} <= after.keys()
        assert snapshot_of(opened(storage, clock)) == rows
    assert 3 < asked < len(range(0, len(data), 37))


def test_a_whole_backup_wins_over_what_is_left(made):
    storage, clock, _ = made
    data, rows = storage.read(PROPERTIES), snapshot_of(opened(storage, clock))
    for damaged in (None, b"", data[: len(data) // 2]):
        storage.delete(PROPERTIES)
        if damaged is not None:
            storage.create_new(PROPERTIES, damaged)
        storage.replace(PROPERTIES_BACKUP, data)
        plan = plan_properties(storage)
        assert not plan.unknown
        assert {source for _, source in sources(plan).values()} == {PROPERTIES_BACKUP}
        done = repair(storage)
        assert properties_of(storage) == parse_properties(data.decode())
        assert not storage.exists(PROPERTIES_BACKUP)
        assert storage.read(join(SET_ASIDE, done.set_aside, PROPERTIES_BACKUP)) == data
        assert snapshot_of(opened(storage, clock)) == rows


def test_a_torn_backup_helps_with_its_lines(made):
    storage, _, _ = made
    data = storage.read(PROPERTIES)
    storage.delete(PROPERTIES)
    storage.replace(PROPERTIES_BACKUP, data[:-5])
    plan = plan_properties(storage)
    assert plan.unknown == ()
    assert sources(plan)[ORDERING] == ("ts", f"what is left of {PROPERTIES_BACKUP}")


def test_a_wrong_checksum_is_computed_anew_and_nothing_else_changes(made):
    storage, _, _ = made
    before = properties_of(storage)
    text = storage.read(PROPERTIES).decode()
    storage.replace(PROPERTIES, text.replace(before["hoodie.table.checksum"], "12345").encode())
    assert "checksum" in find_damage(storage)
    plan = plan_properties(storage)
    assert plan.unknown == ()
    changed = {key: source for key, (_, source) in sources(plan).items() if source != PROPERTIES}
    assert changed == {"hoodie.table.checksum": "computed from the names of table and database"}
    repair(storage)
    assert properties_of(storage) == before


URL_ENCODE = "hoodie.datasource.write.partitionpath.urlencode"


@pytest.mark.parametrize(
    ("key", "malformed"),
    [
        (NAME, ""),
        (TYPE, "COPY"),
        ("hoodie.table.version", "six"),
        ("hoodie.populate.meta.fields", "tru"),
        ("hoodie.datasource.write.hive_style_partitioning", "no"),
        ("hoodie.table.checksum", "many"),
    ],
)
def test_a_malformed_value_is_put_right_where_the_files_show_it(made, key, malformed):
    storage, clock, _ = made
    before = properties_of(storage)
    storage.replace(PROPERTIES, format_properties({**before, key: malformed}, comment=()).encode())
    repair(storage)
    assert properties_of(storage) == before
    assert opened(storage, clock).scan().count() == 8


def test_a_malformed_value_is_asked_for_where_no_file_shows_it(made):
    storage, clock, _ = made
    before = properties_of(storage)
    storage.replace(PROPERTIES, format_properties({**before, URL_ENCODE: "no"}, comment=()).encode())
    assert [each.partition(":")[0] for each in plan_properties(storage).unknown] == [URL_ENCODE]
    with pytest.raises(OptionError, match="--set"):
        repair(storage)
    repair(storage, {URL_ENCODE: "false"})
    assert properties_of(storage) == before
    assert opened(storage, clock).scan().count() == 8


def test_columns_that_could_be_the_key_are_named_and_none_is_taken():
    storage = MemoryStorage()
    options = {"hoodie.table.name": "twins"}
    create_at(
        storage,
        hoodie.options.parse.parse_write_options(
            {**options, "hoodie.datasource.write.recordkey.field": "id"}
        ).to_create(),
    )
    open_at(storage).upsert(pa.table({"id": ["a", "b"], "same": ["a", "b"], "other": ["b", "a"]}))
    storage.delete(PROPERTIES)
    plan = plan_properties(storage)
    unknown = {each.partition(":")[0]: each for each in plan.unknown}
    assert set(unknown) == {KEY, ORDERING}
    assert "id, same" in unknown[KEY]
    assert sources(plan)[TYPE][0] == "COPY_ON_WRITE"
    assert "the table's own folder" in [
        s for k, (_, s) in sources(plan).items() if k == PARTITION
    ] or PARTITION not in sources(plan)
    repair(storage, {KEY: "id", ORDERING: ""})
    assert open_at(storage).config.record_key_fields == ("id",)
    assert open_at(storage).config.ordering_fields == ()


def test_keys_that_name_their_columns_and_folders_that_do_are_believed():
    storage = MemoryStorage()
    create_at(
        storage,
        hoodie.options.parse.parse_write_options(
            {
                "hoodie.table.name": "my_trips",
                "hoodie.datasource.write.recordkey.field": "a,b",
                "hoodie.datasource.write.partitionpath.field": "region,day",
                "hoodie.datasource.write.hive_style_partitioning": "true",
                "hoodie.datasource.write.precombine.field": "n",
            }
        ).to_create(),
    )
    open_at(storage).upsert(
        pa.table({"a": ["x", "y"], "b": [1, 2], "region": ["eu", "us"], "day": ["1", "2"], "n": [5, 6]})
    )
    before = properties_of(storage)
    storage.delete(PROPERTIES)
    known = sources(plan_properties(storage, {ORDERING: "n"}))
    assert known[KEY] == ("a,b", "the keys of 2 rows, which name their columns")
    assert known[PARTITION] == ("region,day", "the names of the folders")
    repair(storage, {ORDERING: "n"})
    after = properties_of(storage)
    assert {key: value for key, value in before.items() if after.get(key) != value} == {}
    assert open_at(storage).scan().count() == 2


def test_no_table_is_no_damage():
    with pytest.raises(TableNotFoundError):
        find_damage(MemoryStorage())


@pytest.mark.parametrize("kind", [MemoryStorage, BucketStorage])
@pytest.mark.parametrize("backup", [True, False])
def test_after_a_crash_at_any_step_the_next_repair_ends_it(kind, backup):
    clock = FakeClock()
    start = new_storage(clock, kind)
    make(start, clock)
    data, rows = start.read(PROPERTIES), snapshot_of(opened(start, clock))
    start.replace(PROPERTIES, data[:100])
    if backup:
        start.create_new(PROPERTIES_BACKUP, data)
    traced, _ = copy_of(start)
    faults = FaultStorage(traced)
    repair(faults, {ORDERING: "ts"})
    points = list(crash_points(faults.trace))
    assert len(points) > 6
    for fault in points:
        storage, clock = copy_of(start)
        with pytest.raises(InjectedFault):
            repair(FaultStorage(storage, [fault]), {ORDERING: "ts"})
        bare, clock = copy_of(storage)
        assert bare.exists(PROPERTIES)
        if backup:  # readers go by it all the time
            assert snapshot_of(opened(bare, clock)) == rows
        repair(bare, {ORDERING: "ts"})
        assert find_damage(bare) is None
        assert snapshot_of(opened(bare, clock)) == rows
        kept = [bare.read(i.path) for i in bare.list(SET_ASIDE, recursive=True) if i.path.endswith(".properties")]
        assert data[:100] in kept


def test_the_public_door(tmp_path):
    table = hoodie.create_table(tmp_path, record_key="id", ordering="n")
    table.upsert([{"id": "a", "n": 1}, {"id": "b", "n": 1}])
    (tmp_path / PROPERTIES).unlink()
    assert hoodie.repair_properties(tmp_path).unknown
    assert "not known: hoodie.table.ordering.fields" in str(hoodie.repair_properties(tmp_path))
    assert hoodie.repair_properties(tmp_path, {ORDERING: "n"}, dry_run=False).set_aside
    assert hoodie.open_table(tmp_path).scan().count() == 2


LOST = {
    "empty": lambda storage: storage.replace(PROPERTIES, b""),
    "blank": lambda storage: storage.replace(PROPERTIES, b"\n \n"),
    "missing": lambda storage: storage.delete(PROPERTIES),
}


@pytest.mark.parametrize("lose", LOST.values(), ids=LOST)
def test_lost_properties_are_one_story_at_every_door(lose, tmp_path, capsys):
    path = tmp_path / "table"
    hoodie.create_table(path, record_key="id").upsert({"id": [1, 2], "n": [1, 3]})
    lose(LocalStorage(path))
    command = f"`hoodie repair {path} properties`"
    said = r"hoodie\.properties is (empty|missing)"
    assert hoodie.is_table(path)
    with pytest.raises(hoodie.CorruptFileError, match=said) as caught:
        hoodie.open_table(path)
    assert command in str(caught.value)
    with pytest.raises(hoodie.TableExistsError, match=said) as caught:
        hoodie.create_table(path, record_key="n")
    assert command in str(caught.value)
    assert re.search(said, str(hoodie.repair_properties(path)))
    assert main(["show", str(path)]) == 1
    assert main(["doctor", str(path)]) == 1
    shown = capsys.readouterr()
    assert re.search(said, shown.out)
    assert re.search(said, shown.err)
    known = {"hoodie.table.recordkey.fields": "id", "hoodie.table.ordering.fields": ""}
    hoodie.repair_properties(path, known, dry_run=False)
    assert hoodie.open_table(path).scan().count() == 2


def test_an_empty_folder_is_no_table(tmp_path):
    assert not hoodie.is_table(tmp_path)
    with pytest.raises(hoodie.TableNotFoundError):
        hoodie.repair_properties(tmp_path)


@pytest.mark.parametrize(
    "option", ["hoodie.populate.meta.fields=false", "hoodie.datasource.write.drop.partition.columns=true"]
)
def test_what_files_leave_out_is_seen_in_them(option):
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("v", pa.string())])
    storage = MemoryStorage()
    create_at(
        storage,
        parse_write_options(
            {
                "hoodie.table.name": "t",
                "hoodie.datasource.write.recordkey.field": "id",
                "hoodie.datasource.write.partitionpath.field": "city",
                **dict([option.split("=")]),
            }
        ).to_create(),
        schema=schema,
    )
    rows = pa.table({"id": [1, 2], "city": ["a", "b"], "v": ["x", "y"]}, schema=schema)
    open_at(storage).upsert(rows)
    storage.delete(PROPERTIES)
    repair(storage, {ORDERING: "", KEY: "id", PARTITION: "city"})
    assert properties_of(storage)[option.split("=")[0]] == option.split("=")[1]
    table = open_at(storage)
    table.upsert(rows)
    assert sorted(table.scan(columns=["id", "city"]).to_arrow().to_pylist(), key=str) == [
        {"id": 1, "city": "a"},
        {"id": 2, "city": "b"},
    ]
