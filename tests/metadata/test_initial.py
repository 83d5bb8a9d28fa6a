"""Who has `hoodie.metadata.enable=true` gets a metadata table, built from a listing when no other instant is pending."""

import json
from random import Random

import pytest

from hoodie.format.properties import parse_properties
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from tests.effort import long_but
from tests.memory_tables import Input, batch, opened
from tests.memory_tables import new_table as made_table
from tests.metadata_tables import BY_FOLDERS, SCHEMA, check_storage, opened_metadata, read

ASKED = {"hoodie.metadata.enable": "true"}
TYPES = ["COPY_ON_WRITE", "MERGE_ON_READ"]


@pytest.fixture(params=long_but(["6", "9"], ["6", "8", "9"]))
def version(request):
    return request.param


@pytest.fixture
def new_table(version):
    def make(*, table_type, more=None):
        return made_table(table_type=table_type, more={"hoodie.write.table.version": version, **(more or {})})

    return make


def rows(*ids, part="a", ts=1):
    return batch([Input(each, part, ts, ts) for each in ids])


def asking(storage, clock):
    return opened(storage, clock, ASKED, cache=Cache())


def named(storage):
    return parse_properties(storage.read(PROPERTIES).decode()).get("hoodie.table.metadata.partitions")


@pytest.mark.parametrize("table_type", TYPES)
@pytest.mark.parametrize("more", [{}, {"hoodie.datasource.write.partitionpath.field": ""}], ids=["partitions", "none"])
def test_a_new_table_has_one_from_its_first_write_on(table_type, more, new_table):
    storage, clock = new_table(table_type=table_type, more=more)
    table = asking(storage, clock)
    for ts in range(1, 4):
        table.upsert(rows("1", "2", ts=ts))
        assert named(storage) == "files"
        check_storage(storage)
    table.upsert(rows("3", part="b"))
    table.delete(rows("1").select(["id", "part"]))
    check_storage(storage)
    if table_type == "MERGE_ON_READ":
        table.compact()
        check_storage(storage)
    table.clean(retain_commits=1)
    check_storage(storage)
    table.rollback(table.timeline.latest_commit.time)
    check_storage(storage)


def test_its_records_have_the_schema_of_apache_hudi(new_table):
    """With meta columns: hudi-rs reads no file group in which only some files have them."""
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    asking(storage, clock).upsert(rows("1"))
    written = json.loads(opened_metadata(storage).schema_of("files"))
    assert [field["name"] for field in written["fields"]] == [field["name"] for field in json.loads(SCHEMA)["fields"]]


@pytest.mark.parametrize("table_type", TYPES)
def test_it_is_built_for_the_files_that_are_there(table_type, new_table):
    storage, clock = new_table(table_type=table_type)
    table = opened(storage, clock, cache=Cache())
    for ts in range(1, 4):
        table.upsert(rows("1", "2", ts=ts))
    table.upsert(rows("3", part="b"))
    assert named(storage) is None
    asking(storage, clock).upsert(rows("1", ts=5))
    check_storage(storage)
    opened(storage, clock, cache=Cache()).upsert(rows("4", part="c"))  # whoever writes keeps it up
    check_storage(storage)
    opened(storage, clock, BY_FOLDERS, cache=Cache()).upsert(rows("5", part="c"))
    assert named(storage) is None
    assert not storage.exists(METADATA_TABLE)


def test_a_handle_that_was_opened_before_keeps_it_up(new_table):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    old = opened(storage, clock, cache=Cache())
    for ts in range(1, 4):
        old.upsert(rows("1", ts=ts))
    asking(storage, clock).upsert(rows("1", ts=5))
    old.clean(retain_commits=1)
    check_storage(storage)
    old.rollback(old.timeline.latest_commit.time)
    check_storage(storage)


def test_it_is_not_built_beside_a_pending_instant(new_table):
    """By Apache Hudi's rule: what that writes is not known."""
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock, cache=Cache())
    for ts in range(1, 4):
        table.upsert(rows("1", ts=ts))
    assert table.schedule_compaction()
    asking(storage, clock).upsert(rows("2"))
    assert named(storage) is None
    table.compact()
    asking(storage, clock).upsert(rows("3"))
    check_storage(storage)


@pytest.mark.parametrize("table_type", TYPES)
def test_a_writer_that_dies_at_any_call_leaves_one_that_shows_all_or_none(table_type, new_table):
    storage, clock = new_table(table_type=table_type)
    opened(storage, clock, cache=Cache()).upsert(rows("1", "2"))
    begin, old = storage.snapshot(), read(storage)
    faulty = FaultStorage(storage)
    asking(faulty, clock).upsert(rows("1", ts=2))
    new = read(storage)
    concerned = [each for each in faulty.trace if METADATA_TABLE in each.path or each.path == PROPERTIES]
    for fault in crash_points(concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            asking(faulty, clock).upsert(rows("1", ts=2))
        faulty.revive()
        found = read(storage)
        assert found == read(storage, BY_FOLDERS), fault
        assert found in (old, new), fault
        asking(storage, clock).upsert(rows("2", ts=3))
        check_storage(storage)


STEPS = ("upsert", "upsert", "upsert", "delete", "compact", "clean", "rollback", "savepoint", "restore", "overwrite")


@pytest.mark.parametrize("seed", long_but([0, 1], range(12)))
@pytest.mark.parametrize("table_type", TYPES)
def test_it_shows_what_the_folders_show_whatever_is_done(table_type, seed, new_table):
    random = Random(seed)
    storage, clock = new_table(table_type=table_type)
    saved = None
    for ts in range(1, 26):
        # A process of its own for each step: of three that write, one did not ask for the metadata table.
        table = opened(storage, clock, ASKED if random.random() < 0.7 else {}, cache=Cache())
        step, ids = random.choice(STEPS), random.sample("123456789", 3)
        commits = [each for each in table.timeline.commits if each.time not in table.timeline.compactions]
        if step == "delete":
            table.delete(rows(*ids, part=random.choice("ab")).select(["id", "part"]))
        elif step == "compact" and table_type == "MERGE_ON_READ":
            table.compact()
        elif step == "clean":
            table.clean(retain_commits=1)
        elif step == "rollback" and commits and commits[-1] == table.timeline.latest_commit and not saved:
            table.rollback(commits[-1].time)
        elif step == "savepoint" and commits and not saved:
            saved = table.savepoint()
        elif step == "restore" and saved:
            table.restore(saved)
            table.drop_savepoint(saved)
            saved = None
        elif step == "overwrite":
            table.insert_overwrite(rows(*ids, part=random.choice("ab"), ts=ts))
        else:
            table.upsert(rows(*ids, part=random.choice("abc"), ts=ts))
        if named(storage):
            check_storage(storage)
    asking(storage, clock).upsert(rows("1", ts=99))
    check_storage(storage)
