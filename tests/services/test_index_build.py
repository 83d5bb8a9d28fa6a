"""Indexes are built beside writers and dropped: whoever dies, and whoever comes meanwhile."""

import pytest

from hoodie.errors import CommitConflictError, CorruptFileError, OptionError, UnsupportedTableError
from hoodie.format.index_plans import IndexPlan, decode_index_plan, encode_index_plan
from hoodie.metadata.keys import BLOOM_FILTERS, COLUMN_STATS, FILES, PARTITION_STATS, RECORD_INDEX
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.services.index_build import end_dead_builds
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from tests.effort import long_but
from tests.memory_tables import Input, batch, keys, new_table, opened
from tests.metadata_tables import BY_FOLDERS, check_bounds, check_storage, read

INDEXES = (COLUMN_STATS, BLOOM_FILTERS, RECORD_INDEX)
BOTH = ("COPY_ON_WRITE", "MERGE_ON_READ")


class Meanwhile(FaultStorage):
    """Somebody acts when a data file is read for the first time after an indexing was put on the timeline."""

    def __init__(self, inner, act):
        super().__init__(inner)
        self._act = act

    def _reads(self, path):
        begun = any(name.endswith(".indexing.inflight") for name in self.inner.names(".hoodie"))
        if self._act is not None and begun and path.endswith(".parquet"):
            act, self._act = self._act, None
            act()

    def open_input(self, path, *, mapped=True):
        self._reads(path)
        return super().open_input(path, mapped=mapped)

    def read(self, path, offset=0, length=None):
        self._reads(path)
        return super().read(path, offset, length)


def rows(count, val=0):
    return batch([Input(f"k{number:02}", "ab"[number % 2], val, val) for number in range(count)])


def new(table_type, version="6"):
    storage, clock = new_table(table_type=table_type, more={"hoodie.write.table.version": version})
    table = opened(storage, clock, cache=Cache())
    table.upsert(rows(12))
    table.upsert(rows(5, 1))
    table.delete(keys([Input("k07", "b")]))
    return storage, clock


def another(storage, clock=None, options=None):
    """The table in another process."""
    return opened(storage, clock, options, cache=Cache())


def indexings(storage):
    return [each for each in another(storage).timeline if each.action is Action.INDEXING]


def check(storage, names):
    check_storage(storage)
    table = another(storage)
    assert set(table.config.metadata_partitions) == {FILES, *names}
    for name in (FILES, *names):
        found = table.index(name).check()
        assert found, found
        assert (found.missing, found.surplus) == (0, 0), found
    assert all(each.is_completed for each in indexings(storage))


@pytest.mark.parametrize("version", long_but(["6", "9"], ["6", "8", "9"]))
@pytest.mark.parametrize("table_type", BOTH)
def test_each_index_of_an_existing_table_is_built_and_kept_up_by_later_writes(table_type, version):
    storage, clock = new(table_type, version)
    table = another(storage, clock)
    assert table.build_index(FILES) is None
    for name in INDEXES:
        assert table.build_index(name) == table.timeline.instants[-1].time
        assert table.build_index(name) is None
    check(storage, INDEXES)
    another(storage, clock).upsert(rows(20, 2))
    another(storage, clock).delete(keys([Input("k01", "b")]))
    check(storage, INDEXES)
    assert [each.state for each in another(storage).indexes()] == ["ready"] * 5
    if version != "6":
        table.build_index(PARTITION_STATS)
        another(storage, clock).upsert(rows(7, 3))
        check_bounds(storage)


@pytest.mark.parametrize("table_type", BOTH)
@pytest.mark.parametrize("name", INDEXES)
def test_a_write_in_the_midst_of_a_build_is_in_the_index(table_type, name):
    storage, clock = new(table_type)

    def act():
        assert [(each.name, each.state) for each in another(storage).indexes()][-1] == (name, "building")
        another(storage, clock).upsert(rows(9, 3))
        another(storage, clock).upsert(rows(30, 4))
        another(storage, clock).delete(keys([Input("k03", "b")]))

    assert another(Meanwhile(storage, act), clock).build_index(name) is not None
    check(storage, [name])
    assert read(storage) == read(storage, BY_FOLDERS)


@pytest.mark.parametrize("table_type", long_but(BOTH[1:], BOTH))
def test_services_in_the_midst_of_a_build_change_nothing(table_type):
    storage, clock = new(table_type)

    def act():
        table = another(storage, clock)
        if table_type == "MERGE_ON_READ":
            table.compact()
        table.upsert(rows(4, 5))
        table.rollback(table.timeline.commits[-1].time)
        table.cluster(sort_by="ts")
        table.clean(retain_commits=1)

    for name in INDEXES:
        assert another(Meanwhile(storage, act), clock).build_index(name) is not None
    check(storage, INDEXES)


def test_a_second_builder_is_refused_and_another_index_is_built_beside():
    storage, clock = new("COPY_ON_WRITE")

    def act():
        with pytest.raises(CommitConflictError, match="is being run by another process"):
            another(storage, clock).build_index(COLUMN_STATS)
        with pytest.raises(CommitConflictError, match="is being run by another process"):
            another(storage, clock).drop_index(COLUMN_STATS)
        another(storage, clock).build_index(BLOOM_FILTERS)

    assert another(Meanwhile(storage, act), clock).build_index(COLUMN_STATS) is not None
    check(storage, [BLOOM_FILTERS, COLUMN_STATS])


def test_who_finds_the_index_built_or_the_metadata_table_dropped_meanwhile_leaves_it_so():
    storage, clock = new("COPY_ON_WRITE")
    wants = {"hoodie.metadata.index.column.stats.enable": "true"}
    another(Meanwhile(storage, lambda: another(storage, clock, wants).upsert(rows(3, 7))), clock).build_index(
        COLUMN_STATS
    )
    check(storage, [COLUMN_STATS])

    def drop():
        another(storage, clock, BY_FOLDERS).upsert(rows(3, 8))

    with pytest.raises(CommitConflictError, match="dropped the metadata table"):
        another(Meanwhile(storage, drop), clock).build_index(BLOOM_FILTERS)
    assert another(storage).config.metadata_partitions == ()
    assert all(each.is_completed for each in indexings(storage))


@pytest.mark.long
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("name", INDEXES)
def test_a_builder_that_dies_at_any_call_leaves_a_table_that_the_next_one_gives_the_index(name, version):
    storage, clock = new("MERGE_ON_READ", version)
    another(storage, clock).build_index(FILES)
    begin, rows_before, now_s = storage.snapshot(), read(storage), clock.now_s
    faulty = FaultStorage(storage)
    another(faulty, clock).build_index(name)
    for fault in crash_points(faulty.trace):
        storage.restore(begin)
        clock.now_s = now_s
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            another(faulty, clock).build_index(name)
        faulty.revive()
        assert read(storage) == rows_before, fault
        clock.sleep(3600)
        another(storage, clock).upsert(rows(2, 9))  # holds nobody up
        assert read(storage) == read(storage, BY_FOLDERS), fault
        another(storage, clock).build_index(name)
        check(storage, [name])


@pytest.mark.parametrize("name", [FILES, COLUMN_STATS])
def test_who_dies_while_an_index_is_dropped_leaves_nothing_that_is_believed(name):
    storage, clock = new("COPY_ON_WRITE")
    another(storage, clock).build_index(COLUMN_STATS)
    begin, faulty = storage.snapshot(), FaultStorage(storage)
    assert another(faulty, clock).drop_index(name)
    assert not another(storage, clock).drop_index(name)
    for fault in crash_points(faulty.trace):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            another(faulty, clock).drop_index(name)
        faulty.revive()
        assert read(storage) == read(storage, BY_FOLDERS), fault
        clock.sleep(3600)
        another(storage, clock).upsert(rows(3, 8))
        assert read(storage) == read(storage, BY_FOLDERS), fault
        another(storage, clock).drop_index(name)
        there = {info.name for info in storage.list(METADATA_TABLE)}
        assert name not in there
        assert name not in storage.read(PROPERTIES).decode().partition("partitions=")[2]


@pytest.mark.parametrize("table_type", BOTH)
def test_bounds_of_partitions_come_after_those_of_files_and_go_with_them(table_type):
    storage, clock = new_table(table_type=table_type, more={"hoodie.write.table.version": "9"})
    another(storage, clock).upsert(rows(12))
    with pytest.raises(UnsupportedTableError, match="build column_stats first"):
        another(storage, clock).build_index(PARTITION_STATS)
    assert indexings(storage) == []
    another(storage, clock).build_index(COLUMN_STATS)
    another(storage, clock).build_index(PARTITION_STATS)
    another(storage, clock).upsert(rows(7, 5))
    another(storage, clock).delete(keys([Input("k03", "b")]))
    found = another(storage).index(PARTITION_STATS).check()
    assert (bool(found), found.checked, found.missing) == (True, 16, 0), found
    assert another(storage, clock).drop_index(COLUMN_STATS)
    assert another(storage).config.metadata_partitions == (FILES,)


def test_a_dropped_index_of_columns_is_built_anew_with_others():
    storage, clock = new("COPY_ON_WRITE")
    for columns in ("val", "ts"):
        option = {"hoodie.metadata.index.column.stats.column.list": columns}
        another(storage, clock).build_index(COLUMN_STATS, option)
        (info,) = (each for each in another(storage).indexes() if each.name == COLUMN_STATS)
        assert (info.columns[-1], info.covered, info.files) == (columns, 2, 2)
        assert another(storage, clock).drop_index(COLUMN_STATS)


@pytest.mark.parametrize("damaged", [FILES, RECORD_INDEX])
def test_a_damaged_index_is_named_and_built_anew(damaged):
    storage, clock = new("COPY_ON_WRITE")
    another(storage, clock).build_index(RECORD_INDEX)
    storage.delete_folder(f"{METADATA_TABLE}/{damaged}")
    states = {each.name: each.state for each in another(storage).indexes()}
    assert states[damaged] == "damaged"
    assert not another(storage).index(damaged).check()
    another(storage, clock).build_index(damaged)
    another(storage, clock).build_index(RECORD_INDEX)
    check(storage, [RECORD_INDEX])


def test_plans_of_apache_hudi_stay_until_the_index_is_dropped():
    storage, clock = new("COPY_ON_WRITE")
    table = another(storage, clock)
    table.build_index(FILES)
    time = table.timeline.latest_time
    context, plan = table._context, IndexPlan((BLOOM_FILTERS,), time)
    requested = Instant(context.clock.allot(time), Action.INDEXING, State.REQUESTED)
    context.active.create(requested, encode_index_plan(plan))
    end_dead_builds(context)
    table.upsert(rows(3, 6))
    assert [each.name for each in another(storage).indexes()][-1] == BLOOM_FILTERS
    with pytest.raises(CommitConflictError, match="planned by Apache Hudi"):
        another(storage, clock).build_index(BLOOM_FILTERS)
    another(storage, clock).build_index(COLUMN_STATS)
    another(storage, clock).drop_index(BLOOM_FILTERS)
    assert [each.is_completed for each in indexings(storage)] == [True]


def test_what_cannot_be_built_is_said():
    storage, clock = new("COPY_ON_WRITE")
    table = another(storage, clock)
    with pytest.raises(OptionError, match="no index 'colum_stats'; choose from files, column_stats"):
        table.build_index("colum_stats")
    with pytest.raises(OptionError, match="leave them out"):
        table.build_index(COLUMN_STATS, {"hoodie.metadata.enable": "false"})
    with pytest.raises(OptionError, match="no index 'record_index' that can be checked; those are: none"):
        table.index(RECORD_INDEX).check()
    context = table._context
    pending = Instant(context.clock.allot(table.timeline.latest_time), Action.CLEAN, State.REQUESTED)
    context.active.create(pending, b"")
    with pytest.raises(CommitConflictError, match=r"clean.* is pending; try again"):
        table.build_index(COLUMN_STATS, {"hoodie.metadata.index.check.timeout.seconds": "1"})


@pytest.mark.parametrize("cut", [0, 1, -20, -1])
def test_a_plan_is_read_as_it_was_written_and_damage_is_an_error(cut):
    plan = IndexPlan((COLUMN_STATS, RECORD_INDEX), "20260101000000000", {"who": "me"})
    data = encode_index_plan(plan)
    assert decode_index_plan(data, path="p") == plan
    with pytest.raises(CorruptFileError, match=r"^p: no readable HoodieIndexPlan"):
        decode_index_plan(data[:cut], path="p")


@pytest.mark.parametrize("version", ["6", "9"])
def test_one_that_is_built_again_may_have_fewer_file_groups(version):
    """Commits of the metadata table name files of the former one."""
    storage, clock = new("COPY_ON_WRITE", version)
    table = another(storage, clock)
    for groups in ("6", "2"):
        table.build_index(RECORD_INDEX, {"hoodie.metadata.record.index.min.filegroup.count": groups})
        another(storage, clock).upsert(rows(3, int(groups)))
        assert another(storage).index(RECORD_INDEX).check()
        table.drop_index(RECORD_INDEX)
    table.build_index(RECORD_INDEX, {"hoodie.metadata.record.index.min.filegroup.count": "3"})
    lost = [each for each in storage.list(f"{METADATA_TABLE}/{RECORD_INDEX}") if "-0002-0_" in each.name]
    for each in lost:
        storage.delete(each.path)
    found = another(storage).index(RECORD_INDEX).check()
    assert "is gone" in found.problems[0]
