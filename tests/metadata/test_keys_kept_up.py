"""The record index of a metadata table is kept up: after each action it says where each row is."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from hoodie.engine.local import LocalEngine
from hoodie.model.names import METADATA_TABLE
from hoodie.options.table import METADATA
from hoodie.storage.cache import Cache
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault, crash_points
from hoodie.table import open_at
from hoodie.view.context import load_config
from tests.effort import long_but
from tests.key_turns import Turns
from tests.memory_tables import Input, batch, keys, new_table, opened
from tests.metadata_tables import BY_FOLDERS, KEYS, check_index, check_storage, read
from tests.rows import rows_of

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEX = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def made(kind, ordering="ts", rows=9):
    """A table with a record index, and what writes to it."""
    storage, clock = new_table(table_type=kind, ordering=ordering, more=INDEX)
    table = opened(storage, clock, INDEX | KEYS, cache=Cache())
    if rows:
        table.upsert(some(range(rows)))
    return storage, table


def some(ids, part=None, ts=1, deleted=False):
    return batch([Input(f"k{n}", part or "ab"[n % 2], n, ts, deleted) for n in ids])


def check(storage):
    check_storage(storage)
    check_index(storage)


@pytest.mark.parametrize("ordering", ["ts", None])
def test_each_action_is_in_it(kind, ordering):
    storage, table = made(kind, ordering)
    check(storage)
    table.upsert(some(range(5, 12), ts=2))
    check(storage)
    table.delete(keys([Input("k1", "b"), Input("k99", "b")]))
    check(storage)
    table.upsert(some([1, 2], part="c", ts=3))
    check(storage)
    table.upsert(some([3], ts=3, deleted=True))
    check(storage)
    table.upsert(some([4], ts=0, deleted=True))
    check(storage)
    table.upsert(some([3], ts=4))
    check(storage)
    table.insert(some([20, 21]))
    check(storage)
    table.bulk_insert(some([30, 31]))
    check(storage)
    if kind == "MERGE_ON_READ":
        table.compact()
        check(storage)
    table.cluster(["val"])
    check(storage)
    table.upsert(some(range(4), ts=5))
    check(storage)
    table.insert_overwrite(some([5, 50], part="b"))
    check(storage)
    table.clean(retain_commits=1)
    check(storage)
    table.rollback(table.timeline.commits[-1].time)
    check(storage)
    table.delete_partitions(["a"])
    check(storage)
    table.upsert(some(range(8), ts=9))
    check(storage)


def test_a_restore_builds_it_anew(kind):
    storage, table = made(kind)
    saved = table.savepoint()
    for turn in range(2, 14):
        table.upsert(some(range(turn, turn + 3), part="abc"[turn % 3], ts=turn))
    check(storage)
    table.restore(saved)
    check(storage)
    table.upsert(some(range(4), ts=20))
    check(storage)


def test_a_rollback_of_what_was_compacted_builds_it_anew(kind):
    storage, table = made(kind)
    while not any(name.endswith("001.commit") for name in storage.names(f"{METADATA_TABLE}/.hoodie")):
        table.upsert(some([1, 40 + len(table.timeline.commits)], ts=5))
    for _ in range(2):
        table.rollback(table.timeline.commits[-1].time)
        check(storage)


@pytest.mark.parametrize("version", ["6", "9"])
def test_rollbacks_of_what_is_older_than_the_index_build_it_anew(kind, version):
    storage, clock = new_table(table_type=kind, ordering="ts", more=INDEX | {"hoodie.write.table.version": version})
    table = opened(storage, clock, INDEX | {"hoodie.metadata.enable": "true"}, cache=Cache())
    table.upsert(some(range(9)))
    table.delete(keys([Input("k1", "b")]))
    table.upsert(some([3, 4, 40], ts=2))
    table.build_index("record_index")
    for _ in range(2):
        table.rollback(table.timeline.commits[-1].time)
        check(storage)
    table.upsert(some([1], ts=3))
    check(storage)


@pytest.mark.parametrize("version", ["6", "9"])
def test_a_rollback_of_what_is_newer_leaves_the_index_as_it_is(version):
    """Whether that was completed or not."""
    storage, clock = new_table(table_type="COPY_ON_WRITE", more=INDEX | {"hoodie.write.table.version": version})
    table = opened(storage, clock, INDEX | KEYS, cache=Cache())
    table.upsert(some(range(9)))

    def bases():
        return sorted(name for name in storage.names(f"{METADATA_TABLE}/record_index") if name.endswith(".hfile"))

    begin, there, faulty = storage.snapshot(), bases(), FaultStorage(storage)
    opened(faulty, clock, INDEX, cache=Cache()).upsert(some([1, 20], ts=2))
    table.rollback(table.timeline.commits[-1].time)
    check(storage)
    assert bases() == there
    completing = [call.n for call in faulty.trace if call.path.endswith("commit") and METADATA_TABLE not in call.path]
    storage.restore(begin)
    faulty.revive([Fault(completing[-1], "before")])
    with pytest.raises(InjectedFault):
        opened(faulty, clock, INDEX, cache=Cache()).upsert(some([1, 20], ts=2))
    clock.now_s += 1
    opened(storage, clock, INDEX, cache=Cache()).upsert(some([1, 21], ts=3))
    check(storage)
    assert bases() == there


def test_it_is_made_for_a_table_that_has_rows(kind):
    storage, clock = new_table(table_type=kind, ordering="ts")
    table = opened(storage, clock, cache=Cache())
    table.upsert(some(range(9)))
    table.upsert(some(range(3), ts=2))
    table.delete(keys([Input("k4", "a")]))
    opened(storage, clock, KEYS, cache=Cache()).upsert(some([0, 9], ts=3))
    check(storage)


HISTORY = 40


@pytest.mark.parametrize("seed", long_but([2], range(30)))
def test_any_history_is_in_it(kind, seed):
    chance = random.Random(seed)
    storage, table = made(kind, chance.choice(["ts", None]), rows=0)
    turns = Turns(table, chance, "abc", some)
    for turn in range(HISTORY):
        if not turns.take(turn):
            continue
        if table.timeline.commits:
            check_index(storage)
            asked = [f"k{n}" for n in chance.sample(range(30), 3)]
            whole = opened(storage, options=BY_FOLDERS, cache=Cache()).scan().to_arrow()
            found = opened(storage, cache=Cache()).lookup(asked).to_arrow()
            assert rows_of(found) == rows_of(whole.filter(pc.is_in(whole["id"], value_set=pa.array(asked))))
    check_storage(storage)


@pytest.mark.parametrize("writes_before", [0, 9])
def test_a_writer_that_dies_at_any_call_leaves_the_old_rows_or_the_new_ones(kind, writes_before):
    """After nine writes the metadata table is compacted by the next one."""
    storage, table = made(kind)
    for turn in range(writes_before):
        table.upsert(some([turn], part="c", ts=2))
    begin, old = storage.snapshot(), read(storage)
    rows = some([1, 20], part="d", ts=20)
    faulty = FaultStorage(storage)

    def write(through):
        opened(through, storage.clock, INDEX | KEYS, cache=Cache()).upsert(rows)

    write(faulty)
    new = read(storage)
    concerned = [call for call in faulty.trace if METADATA_TABLE in call.path or "commit" in call.path]
    for fault in crash_points(concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            write(faulty)
        faulty.revive()
        assert read(storage) in (old, new), fault
        opened(storage, storage.clock, INDEX | KEYS, cache=Cache()).upsert(some([2], part="d", ts=21))
        check(storage)


def test_a_clustering_that_dies_at_any_call_leaves_no_places_behind(kind):
    """A timeline begins after commits that savepoints keep, and what lies before its beginning counts as completed."""
    storage, table = made(kind)
    for commit in table.timeline.commits:
        table.savepoint(commit.time)
    begin = storage.snapshot()
    faulty = FaultStorage(storage)

    def cluster(through):
        opened(through, storage.clock, INDEX | KEYS, cache=Cache()).cluster(["val"])

    cluster(faulty)
    concerned = [call for call in faulty.trace if call.path.endswith("commit")]
    for fault in crash_points(concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            cluster(faulty)
        faulty.revive()
        later = opened(storage, storage.clock, INDEX | KEYS, cache=Cache())
        for dead in later.pending_clusterings():
            later.rollback(dead.time)
        storage.clock.now_s += 1
        later.upsert(some([1, 20], part="d", ts=20))
        check(storage)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("undo", ["restore", "rollback"])
def test_an_index_made_from_rows_that_go_is_not_asked_while_they_go(kind, version, undo):
    """They have no delta commit in the metadata table, which was made later, that would say so."""
    everywhere = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "true"}
    storage, clock = new_table(table_type=kind, more=everywhere | {"hoodie.write.table.version": version})
    writer = opened(storage, clock, everywhere, cache=Cache())
    writer.upsert(pa.concat_tables([some(range(3)), some([9], "d")]))
    writer.upsert(some(range(3), "d", ts=2))  # into the file group that is there
    table = opened(storage, clock, INDEX | KEYS, cache=Cache())
    old, new = table.timeline.commits
    table.build_index("record_index")
    begin, faulty = storage.snapshot(), FaultStorage(storage)
    states = [rows_of(table.scan(as_of=commit.time).to_arrow()) for commit in (old, new)]

    def take_back():
        dying = opened(faulty, clock, cache=Cache())
        return dying.restore(old.time) if undo == "restore" else dying.rollback(new.time)

    take_back()
    concerned = [call for call in faulty.trace if "commit" in call.path or f".{undo}" in call.path]
    for fault in (Fault(call.n, "after") for call in concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            take_back()
        reader = opened(storage, options=INDEX, cache=Cache())
        asked = [f"k{n}" for n in (0, 1, 2, 9)]
        assert rows_of(reader.lookup(asked).to_arrow()) == rows_of(reader.scan().to_arrow()), fault
        assert rows_of(reader.scan().to_arrow()) in states, fault
    opened(storage, clock, INDEX | KEYS, cache=Cache()).upsert(some([1, 20], part="e", ts=20))
    check(storage)


def test_a_stale_copy_of_the_metadata_table_is_dropped_and_no_row_is_twice_there(kind):
    storage, table = made(kind)
    copy = {
        info.path: storage.read(info.path)
        for info in storage.list(METADATA_TABLE, recursive=True)
        if not info.is_folder
    }
    table.upsert(some([20, 21], part="c"))
    storage.delete_folder(METADATA_TABLE)
    for path, data in copy.items():
        storage.create_new(path, data)
    table.upsert(some([20, 21, 22], part="d", ts=2))
    assert sorted(row["id"] for row in table.scan().to_arrow().to_pylist()) == sorted(
        f"k{n}" for n in [*range(9), 20, 21, 22]
    )
    table.upsert(some([20], part="a", ts=3))
    check(storage)


def test_without_the_option_the_index_that_is_there_is_kept_up(kind):
    storage, _ = made(kind)
    plain = opened(storage, storage.clock, INDEX, cache=Cache())
    plain.upsert(some([1, 30], part="c", ts=4))
    check(storage)
    assert METADATA in load_config(storage).raw


def test_a_write_looks_into_no_file(kind):
    _, table = made(kind)
    assert table.upsert(some([1, 2, 30], part="c", ts=3)).index == {"record index": 2}


def test_where_it_is_damaged_the_files_are_looked_into_and_the_log_says_so_once(kind, caplog):
    storage, _ = made(kind)
    for info in storage.list(f"{METADATA_TABLE}/record_index"):
        if ".log.2" in info.name:
            storage.replace(info.path, b"x" * info.size_bytes)
    cache = Cache()
    found = opened(storage, storage.clock, INDEX, cache=cache).upsert(some([1, 2, 30], part="c", ts=3))
    assert "record index" not in found.index
    opened(storage, storage.clock, INDEX, cache=cache).upsert(some([1, 2], part="d", ts=4))
    assert len([each for each in caplog.records if "sought in the files" in each.getMessage()]) == 1
    rows = opened(storage, options=BY_FOLDERS, cache=Cache()).scan().to_arrow().to_pylist()
    assert sorted(row["id"] for row in rows) == sorted(f"k{n}" for n in [*range(9), 30])
    assert {row["id"]: row["part"] for row in rows if row["id"] in ("k1", "k2", "k30")} == {
        "k1": "d",
        "k2": "d",
        "k30": "c",
    }


def test_two_writers_of_one_key_end_with_one_row(kind):
    """The other one comes when keys were looked up."""
    storage, table = made(kind)
    other = opened(storage, storage.clock, INDEX, cache=Cache())

    class Meanwhile(LocalEngine):
        def run(self, fn, tasks, *, label, at_once=1):
            found = super().run(fn, tasks, label=label, at_once=at_once)
            if "look up" in label and not getattr(self, "done", False):
                self.done = True
                other.upsert(some([1, 50], part="c", ts=3))
            return found

    engine, write = Meanwhile(1), some([1, 50], part="d", ts=4)
    open_at(storage, engine=engine, options=INDEX | KEYS, sleep=storage.clock.sleep, cache=Cache()).upsert(write)
    assert engine.done
    rows = table.scan().to_arrow().to_pylist()
    assert [row["part"] for row in rows if row["id"] in ("k1", "k50")] == ["d", "d"]
    check(storage)
