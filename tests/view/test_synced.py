"""A listing that is fed by the timeline: what it lists, what it follows, and what makes it list anew."""

import random
import threading
from dataclasses import replace

import pytest

from hoodie.errors import MissingFileError, OptionError
from hoodie.format.layout import V6, V9
from hoodie.model.enums import Action
from hoodie.model.names import HOODIE, SET_ASIDE, name_of
from hoodie.options.parse import parse_view_options
from hoodie.options.values import ViewStore
from hoodie.storage.cache import Cache
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.table import HoodieTable
from tests.followed import FOLLOWS, Counting, by_listing, check_followed, follower, moved, slices
from tests.memory_tables import Input, batch, copy_of, create, new_table, opened, plain, snapshot_of

FOLLOWING = {"hoodie.filesystem.view.incr.timeline.sync.enable": "true"}


def filled(table_type="MERGE_ON_READ"):
    storage, clock = new_table(table_type=table_type)
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 1, 1), Input("l", "b", 1, 1), Input("m", "c/d", 1, 1)]))
    table.upsert(batch([Input("k", "a", 2, 2)]))
    return storage, clock, table


def counted(storage):
    """A follower that has seen the whole table, and the listings that it makes from now on."""
    counting = Counting(storage)
    context = follower(counting)
    context.snapshot().view.latest_slices()
    assert counting.listed
    counting.listed.clear()
    return context, counting.listed


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_after_the_first_look_nothing_is_listed(table_type):
    storage, _, table = filled(table_type)
    context, listed = counted(storage)
    for turn in range(3, 12):
        table.upsert(batch([Input("k", "a", turn, turn), Input(f"n{turn}", f"new{turn % 3}", 1, 1)]))
        assert slices(context) == by_listing(storage)
        if turn % 4 == 0:
            table.compact() if table_type == "MERGE_ON_READ" else table.cluster()
            table.clean(retain_commits=2)
            table.insert_overwrite(batch([Input("l", "b", turn, turn)]))
            assert slices(context) == by_listing(storage)
    assert listed == []
    assert check_followed(context) > 3


def test_a_partition_is_listed_when_it_is_asked_for_first_and_only_it():
    storage, _, table = filled()
    counting = Counting(storage)
    context = follower(counting)
    context.snapshot().view.latest_slices(["b"])
    context.snapshot().view.latest_slices(["b"])
    assert counting.listed == ["b"]
    table.upsert(batch([Input("l", "b", 2, 2), Input("k", "a", 3, 3)]))
    assert context.snapshot().view.latest_slices(["b"]) == [s for s in by_listing(storage) if s.group[0] == "b"]
    assert counting.listed == ["b"]
    context.snapshot().view.latest_slices()
    assert counting.listed[1:], "the whole table, in one go"
    before = len(counting.listed)
    assert slices(context) == by_listing(storage)
    assert len(counting.listed) == before


def test_what_begins_or_is_completed_while_a_partition_is_listed_is_known():
    storage, clock, _ = filled()
    begun = f"{HOODIE}/20991231000000000.deltacommit.requested"

    class Overtaken(FaultStorage):
        def list(self, folder, *, recursive=False):
            found = super().list(folder, recursive=recursive)
            if folder == "a" and not storage.exists(begun):
                opened(storage, clock).upsert(batch([Input("k", "a", 3, 3), Input("l", "b", 3, 3)]))
                storage.create_new(begun, b"")
            return found

    context = follower(Overtaken(storage))
    context.snapshot().view.latest_slices(["a"])
    assert begun.endswith(f"{context.synced.timeline.instants[-1]}")
    assert context.snapshot().view.latest_slices(["a"]) == [s for s in by_listing(storage) if s.group[0] == "a"]
    check_followed(context)


def test_what_is_undone_while_a_partition_is_listed_was_not_lost():
    storage, clock, table = filled("COPY_ON_WRITE")
    before = by_listing(storage)

    class Overtaken(FaultStorage):
        def list(self, folder, *, recursive=False):
            found = super().list(folder, recursive=recursive)
            if folder == "a" and len(table.timeline.commits) > 1:
                opened(storage, clock).rollback(table.timeline.commits[-1].time)
            return found

    context = follower(Overtaken(storage))
    view = context.snapshot().view
    view.latest_slices(["b"])
    assert view.latest_slices(["a"]) == [s for s in before if s.group[0] == "a"]
    assert slices(context) == by_listing(storage)
    check_followed(context)


@pytest.mark.parametrize("version", [V6, V9])
def test_what_a_rollback_takes_back_whose_instant_a_restore_takes_away_is_not_kept(version):
    at, died = 0, True
    while died:
        at += 1
        more = {"hoodie.write.table.version": str(int(version.version))}
        storage, clock = new_table(table_type="COPY_ON_WRITE", more=more)
        table = opened(storage, clock)
        saved = table.upsert(batch([Input("k", "a", 1, 1)]))
        table.upsert(batch([Input("l", "b", 1, 1)]))
        newest = table.upsert(batch([Input("m", "a", 2, 2)])).instant
        context, _ = counted(storage)
        try:
            opened(FaultStorage(storage, [Fault(at, "after")]), clock).rollback(newest)
            died = False
        except InjectedFault:
            slices(context)
        opened(storage, clock).restore(saved)
        slices(context)
        names = {name for path in ("a", "b") for name in context.synced._files.store.get(path) or ()}
        assert names <= {name_of(info.path) for path in ("a", "b") for info in storage.list(path)}
    assert at > 5


def test_a_log_that_a_rollback_wrote_goes_with_the_slice_that_the_next_one_takes_away():
    storage, clock, table = filled()
    compaction = table.schedule_compaction()
    context, _ = counted(storage)

    class Dies(FaultStorage):
        def create_new(self, path, data, **options):
            if path.endswith(".deltacommit"):
                raise InjectedFault(path)
            return super().create_new(path, data, **options)

    with pytest.raises(InjectedFault):
        opened(Dies(storage), clock).upsert(batch([Input("k", "a", 3, 3)]))
    assert opened(storage, clock).rollback()
    table.run_compaction()
    table.rollback(compaction)
    assert [i.action for i in table.timeline][-2:] == [Action.ROLLBACK] * 2
    check_followed(context)


def test_who_follows_and_writes_lists_nothing_either():
    storage, clock, _ = filled()
    counting = Counting(storage)
    table = opened(counting, clock, FOLLOWING, cache=Cache())
    table.upsert(batch([Input("k", "a", 3, 3), Input("l", "b", 3, 3)]))
    table.scan().to_arrow()
    counting.listed.clear()
    for turn in range(4, 9):
        table.upsert(batch([Input("k", "a", turn, turn)]))
        assert table.scan().count() == 3
        opened(storage, clock).compact()  # who runs one looks for what an earlier try has left
        table.schedule_compaction()
        table.clean(retain_commits=2)
    assert counting.listed == []


def test_metadata_that_came_and_went_unseen_make_it_list_anew():
    storage, _, table = filled()
    context, listed = counted(storage)
    for turn in range(3, 12):
        table.upsert(batch([Input("k", "a", turn, turn)]))
    table.compact()
    table.clean(retain_commits=1)
    table.archive(min_commits=1)
    assert slices(context) == by_listing(storage)
    assert listed
    assert check_followed(context) > 0


def test_archiving_of_what_was_seen_is_no_reason_to_list():
    storage, _, table = filled()
    context, listed = counted(storage)
    for turn in range(3, 15):
        table.upsert(batch([Input("k", "a", turn, turn)]))
        slices(context)
        if turn % 4 == 0:
            table.clean(retain_commits=1)
            slices(context)
            table.archive(min_commits=2)
        assert slices(context) == by_listing(storage)
    assert listed == []
    assert check_followed(context) > 0


def test_metadata_that_cannot_be_read_make_it_list_anew():
    storage, _, table = filled("COPY_ON_WRITE")
    context, listed = counted(storage)
    for turn in range(3):
        table.upsert(batch([Input("k", "a", turn, 10 + turn)]))
    table.clean(retain_commits=1)
    (clean,) = [name for name in storage.names(HOODIE) if name.endswith(".clean")]
    storage.replace(f"{HOODIE}/{clean}", b"Obj\x01 no metadata")
    slices(context)
    assert listed
    group = next(iter(slices(context))).group
    assert context.snapshot().view.group_of(group) == _listed_group(context, group)


def _listed_group(context, group):
    return context.on_storage().snapshot().view.group_of(group)


def test_a_commit_with_a_smaller_instant_that_is_completed_later_is_followed():
    storage, _, table = filled()
    table.upsert(batch([Input("k", "a", 3, 3), Input("x", "a", 3, 3)]))
    late = table.timeline.commits[-1]
    table.upsert(batch([Input("l", "b", 4, 4)]))
    path = table._context.active.path(late)
    data = storage.read(path)
    storage.delete(path)  # as if its writer was still at work
    context, listed = counted(storage)
    assert slices(context) == by_listing(storage)
    rows = plain(HoodieTable(context).scan(meta_columns=True))
    storage.create_new(path, data)
    assert slices(context) == by_listing(storage)
    assert plain(HoodieTable(context).scan(meta_columns=True)) == snapshot_of(opened(storage)) != rows
    assert listed == []


def test_while_a_clean_is_at_work_its_partitions_are_listed_each_time():
    storage, clock, table = filled("COPY_ON_WRITE")
    for turn in range(3):
        table.upsert(batch([Input("k", "a", turn, 10 + turn)]))
    context, listed = counted(storage)

    class Stops(FaultStorage):
        def delete(self, path):
            super().delete(path)
            if path.endswith(".parquet"):
                listed.clear()
                assert slices(context) == by_listing(storage)
                looked.update(listed)
                check_followed(context)
                seen.append(path)

    seen, looked = [], set()
    opened(Stops(storage), clock).clean(retain_commits=1)
    assert len(seen) > 1
    assert looked == {"a"}, "and no partition that it leaves alone"
    listed.clear()
    assert slices(context) == by_listing(storage)
    assert listed == []
    check_followed(context)


def test_files_that_a_repair_moved_away_are_not_shown_any_more():
    storage, clock, table = filled()
    path = next(log.path for each in by_listing(storage) for log in each.logs)
    stray = path.replace(".log.1", ".log.7")
    storage.create_new(stray, b"no block")
    context, listed = counted(storage)
    assert stray in {log.path for each in slices(context) for log in each.logs}
    clock.sleep(1)
    done = table.repair("stray-files", dry_run=False, older_than_s=0)
    assert [each.path for each in done.repairs] == [stray]
    table.upsert(batch([Input("l", "b", 4, 4)]))
    assert slices(context) == by_listing(storage)
    assert listed
    assert check_followed(context) > 0


class AsksWhatIsSetAside(FaultStorage):
    def __init__(self, inner):
        super().__init__(inner)
        self.asked = 0

    def list(self, folder, *, recursive=False):
        self.asked += folder == SET_ASIDE
        return super().list(folder, recursive=recursive)


def test_what_repairs_set_aside_is_listed_only_where_the_timeline_shows_that_there_is_any():
    storage, clock, table = filled()
    path = next(log.path for each in by_listing(storage) for log in each.logs)
    storage.create_new(path.replace(".log.1", ".log.7"), b"no block")
    asking = AsksWhatIsSetAside(storage)
    context = follower(asking)
    for _ in range(3):
        table.upsert(batch([Input("l", "b", 4, 4)]))
        assert slices(context) == by_listing(storage)
    assert asking.asked == 0
    clock.sleep(1)
    done = table.repair("stray-files", dry_run=False, older_than_s=0)
    assert slices(context) == by_listing(storage), "nothing was committed since"
    assert asking.asked > 0
    table.undo_repair(done.set_aside)
    assert slices(context) == by_listing(storage)


def test_a_file_that_was_put_back_is_seen_by_an_opening_that_never_saw_it_away():
    storage, clock, table = filled()
    path = next(log.path for each in by_listing(storage) for log in each.logs)
    storage.create_new(path.replace(".log.1", ".log.7"), b"no block")
    clock.sleep(1)
    done = table.repair("stray-files", dry_run=False, older_than_s=0)
    first = follower(storage)
    assert slices(first) == by_listing(storage)
    table.undo_repair(done.set_aside)
    assert slices(moved(first, storage)) == by_listing(storage)


def test_a_base_file_that_counts_nowhere_is_not_kept_for_it_may_go_without_a_word():
    storage, clock, table = filled("COPY_ON_WRITE")

    class DiesBeforeItCompletes(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            if path.endswith(".commit"):
                raise InjectedFault(path)
            super().create_new(path, data, via=via, durable=durable)

    with pytest.raises(InjectedFault):
        opened(DiesBeforeItCompletes(storage), clock).upsert(batch([Input("k", "a", 3, 3)]))
    (failed,) = table.timeline.pending()
    table.rollback()
    late = f"a/late-0_9-9-9_{failed.time}.parquet"
    storage.create_new(late, b"a copy that came late")
    context, listed = counted(storage)
    for turn in range(4, 8):
        table.upsert(batch([Input("k", "a", turn, turn)]))
        slices(context)
    table.archive(min_commits=1)
    assert not storage.exists(late)
    assert slices(context) == by_listing(storage)
    assert listed == []
    check_followed(context)


def test_a_file_that_is_gone_is_told_and_one_that_is_back_is_seen():
    storage, _, _ = filled("COPY_ON_WRITE")
    context, _ = counted(storage)
    table = HoodieTable(context)
    path = next(each.base.path for each in slices(context) if each.group.partition_path == "a")
    data = storage.read(path)
    storage.delete(path)
    with pytest.raises(MissingFileError):
        table.scan().to_arrow()
    with pytest.raises(MissingFileError, match="nothing since has taken its place"):
        table.scan().to_arrow()
    storage.create_new(path, data)
    assert table.scan().count() == 3


def test_another_table_at_the_address_is_another_one():
    storage, clock, _ = filled()
    context, _ = counted(storage)
    for info in storage.list("", recursive=True):
        storage.delete(info.path)
    clock.sleep(1)
    create(storage, table_type="COPY_ON_WRITE")
    opened(storage, clock).upsert(batch([Input("k", "z", 1, 1)]))
    assert [each.group.partition_path for each in slices(context)] == ["z"]
    check_followed(context)


def test_an_older_copy_that_was_put_back_is_listed():
    storage, clock, table = filled()
    older, _ = copy_of(storage)
    table.upsert(batch([Input("k", "a", 3, 3)]))
    context, _ = counted(storage)
    storage.restore(older.snapshot())
    assert slices(context) == by_listing(storage)
    opened(storage, clock).upsert(batch([Input("k", "a", 4, 4), Input("z", "z", 4, 4)]))
    assert slices(context) == by_listing(storage)
    check_followed(context)


def test_a_reader_who_began_before_is_answered_as_of_now_without_a_listing():
    storage, _, table = filled()
    context, listed = counted(storage)
    before = context.snapshot()
    table.upsert(batch([Input("k", "a", 3, 3), Input("z", "z", 3, 3)]))
    slices(context)
    seen = before.view.latest_slices()
    assert {each.group.partition_path for each in seen} == {"a", "b", "c/d"}
    assert listed == []
    assert slices(context) == by_listing(storage)
    assert listed == []


def test_a_reader_who_began_before_anything_was_known_is_no_reason_to_list_anew():
    storage, _, table = filled()
    counting = Counting(storage)
    context = follower(counting)
    before = context.snapshot()
    table.upsert(batch([Input("k", "a", 3, 3), Input("z", "z", 3, 3)]))
    slices(context)
    counting.listed.clear()
    assert {each.group.partition_path for each in before.view.latest_slices()} == {"a", "b", "c/d"}
    assert slices(context) == by_listing(storage)
    assert counting.listed == []


def test_who_judges_what_is_stored_looks_at_the_storage():
    storage, _, _ = filled()
    context, listed = counted(storage)
    table = HoodieTable(context)
    for judge in (table.doctor, table.validate, table.savepoint):
        listed.clear()
        judge()
        assert listed, judge


@pytest.mark.parametrize("store", ["MEMORY", "SPILLABLE_DISK", "EMBEDDED_KV_STORE"])
def test_openings_of_a_process_share_what_is_known_and_ask_their_own_storage(store, tmp_path):
    options = FOLLOWING | {"hoodie.filesystem.view.type": store}
    create(LocalStorage(tmp_path), table_type="MERGE_ON_READ")
    opened(LocalStorage(tmp_path)).upsert(batch([Input("k", "a", 1, 1)]))
    cache = Cache()
    first, second = Counting(LocalStorage(tmp_path)), Counting(LocalStorage(tmp_path))
    assert opened(first, options=options, cache=cache).scan().count() == 1
    assert first.listed
    first.listed.clear()
    assert opened(second, options=options, cache=cache).scan().count() == 1
    opened(LocalStorage(tmp_path)).upsert(batch([Input("l", "b", 1, 1)]))
    assert opened(second, options=options, cache=cache).scan().count() == 2
    assert first.listed == second.listed == []


def test_threads_that_read_and_write_through_one_opening_get_whole_answers():
    storage, clock, _ = filled()
    context = follower(storage)
    table = HoodieTable(context)
    errors = []

    def read():
        try:
            for _ in range(20):
                assert table.scan().count() >= 3
        except BaseException as error:  # noqa: BLE001 - told by the main thread
            errors.append(error)

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    writer = opened(storage, clock)
    for turn in range(3, 13):
        writer.upsert(batch([Input("k", "a", turn, turn), Input(f"n{turn}", f"p{turn % 2}", 1, 1)]))
        if turn % 4 == 0:
            writer.compact()
    for thread in threads:
        thread.join()
    assert errors == []
    assert slices(context) == by_listing(storage)
    check_followed(context)


@pytest.mark.parametrize("store", [ViewStore.SPILLABLE_DISK, ViewStore.EMBEDDED_KV_STORE])
def test_every_store_shows_the_same(store, tmp_path):
    rng = random.Random(3)
    storage, _, table = filled()
    options = replace(FOLLOWS, type=store, spill_bytes=300, spill_folder=str(tmp_path), rocksdb_folder=str(tmp_path))
    context = follower(storage, options)
    for turn in range(3, 15):
        table.upsert(batch([Input(f"k{rng.randrange(9)}", f"p{rng.randrange(5)}", turn, turn) for _ in range(4)]))
        if turn % 5 == 0:
            table.compact()
            table.clean(retain_commits=1)
        assert slices(context) == by_listing(storage)
        check_followed(context)
    assert plain(HoodieTable(context).scan(meta_columns=True)) == snapshot_of(opened(storage))


def test_a_table_of_a_storage_that_has_no_partitions_is_followed():
    storage = MemoryStorage()
    create(storage, table_type="MERGE_ON_READ", more={"hoodie.datasource.write.partitionpath.field": ""})
    table = opened(storage)
    table.upsert(batch([Input("k", "a", 1, 1)]))
    context, listed = counted(storage)
    for turn in range(2, 5):
        table.upsert(batch([Input("k", "a", turn, turn), Input(f"n{turn}", "a", turn, turn)]))
        assert slices(context) == by_listing(storage)
    assert listed == []
    check_followed(context)


def test_options_are_those_of_apache_hudi():
    found = parse_view_options(
        {
            "hoodie.filesystem.view.incr.timeline.sync.enable": "true",
            "hoodie.filesystem.view.type": "remote_first",
            "hoodie.filesystem.view.secondary.type": "SPILLABLE_DISK",
            "hoodie.filesystem.view.spillable.mem": "5000",
            "hoodie.table.name": "not judged here",
        },
        defaults={"hoodie.filesystem.view.spillable.dir": "/spilled", "hoodie.filesystem.view.type": "MEMORY"},
    )
    assert found.follows
    assert found.store is ViewStore.SPILLABLE_DISK
    assert (found.spill_bytes, found.spill_folder) == (5000, "/spilled")
    with pytest.raises(OptionError, match="REMOTE_ONLY"):
        parse_view_options({"hoodie.filesystem.view.type": "disk"})
    assert not parse_view_options({}).follows
