"""A named consumer goes on where it stopped; what dies reads again, and of two with one name the second one is told."""

import errno
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime

import pytest

import hoodie
from hoodie.errors import CommitConflictError, CorruptFileError, InstantNotFoundError, LockError, OptionError
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault, crash_points
from hoodie.storage.local import LocalStorage
from tests.begun import begun
from tests.bucket import BucketStorage
from tests.effort import long_but
from tests.memory_tables import Input, batch, copy_of, create, new_table, opened
from tests.storages import EVERY

FILE = ".hoodie/.hoodie_py/consumers/dash.json"


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request):
    storage, clock = new_table(table_type=request.param)
    return opened(storage, clock)


def write(table, *ids, ts=1):
    return table.upsert(batch([Input(each, "p", ts, ts) for each in ids]))


def ids(scan):
    return sorted(scan.to_arrow().column("id").to_pylist())


def turn(table, name="dash"):
    """What one run of a job reads."""
    with table.consumer(name) as consumer:
        return ids(consumer.changes())


class Died(Exception):
    """The job that reads came no further."""


def dies_after(load, consumer):
    """What a run had loaded that ended with an error."""
    loaded = None
    with suppress(Died), consumer:
        loaded = load()
        raise Died
    return loaded


def test_each_run_gets_what_was_committed_since_the_last_one(table):
    assert turn(table) == []
    write(table, "a", "b")
    write(table, "c")
    assert turn(table) == ["a", "b", "c"]
    assert turn(table) == []
    last = write(table, "b", ts=2)
    assert turn(table) == ["b"]
    assert table.consumer("dash").position == last.position
    assert turn(table, "other") == ["a", "b", "c"]


def test_where_the_block_fails_the_place_stays(table):
    write(table, "a")
    consumer = table.consumer("dash")
    assert dies_after(lambda: ids(consumer.changes()), consumer) == ["a"]
    assert consumer.position is None
    write(table, "b")
    with consumer:
        assert ids(consumer.changes()) == ["a", "b"]
    assert turn(table) == []


def test_a_block_that_asks_for_nothing_moves_nothing(table):
    write(table, "a")
    with table.consumer("dash"):
        pass
    assert turn(table) == ["a"]


def test_until_the_place_is_moved_each_call_is_about_the_same_range(table):
    write(table, "a")
    with table.consumer("dash") as consumer:
        assert ids(consumer.changes()) == ["a"]
        write(table, "b")
        assert ids(consumer.changes(columns=["id"], where="val = 1")) == ["a"]
        assert [row["op"] for row in consumer.changes(images="before_after").to_arrow().to_pylist()] == ["i"]
        consumer.commit()
        assert ids(consumer.changes()) == ["b"]
    assert turn(table) == []


def test_an_early_commit_stands_when_the_block_fails_later(table):
    write(table, "a")
    consumer = table.consumer("dash")

    def load():
        consumer.changes()
        consumer.commit()
        write(table, "b")
        return ids(consumer.changes())

    assert dies_after(load, consumer) == ["b"]
    assert turn(table) == ["b"]


def test_until_ends_the_range_and_never_beyond_what_can_be_passed(table):
    first = write(table, "a")
    second = write(table, "b")
    with table.consumer("dash") as consumer:
        assert ids(consumer.changes(until=first)) == ["a"]
        with pytest.raises(OptionError, match="before"):
            consumer.changes(until="2020-01-01")
        assert ids(consumer.changes(until=second)) == ["a"]
    with table.consumer("dash") as consumer:
        with pytest.raises(OptionError, match=r"before .*its place, which seek\(\) can move back"):
            consumer.changes(until="2020-01-01")
        assert ids(consumer.changes(until="2100-01-01")) == ["b"]
    assert consumer.position == second.position
    write(table, "c")
    assert turn(table) == ["c"]


def test_a_write_in_progress_is_waited_for(table):
    write(table, "a")
    with begun(table, batch([Input("b", "q", 1, 1)])) as end:
        write(table, "c")
        assert turn(table) == ["a"]
        consumer = table.consumer("dash")
        assert consumer.lag().commits == 1
        consumer.seek("latest")
        end()
    assert turn(table) == ["b", "c"]


def test_on_a_table_without_commits_nothing_is_passed(table):
    with begun(table, batch([Input("a", "p", 1, 1)])) as end, table.consumer("dash") as consumer:
        assert ids(consumer.changes()) == []
        end()
        assert ids(consumer.changes()) == []
    assert consumer.position is None
    assert turn(table) == ["a"]


@pytest.mark.parametrize("start", ["earliest", "latest", "moment"])
def test_where_a_new_consumer_begins(table, start):
    first = write(table, "a")
    write(table, "b")
    consumer = table.consumer("dash", start=first if start == "moment" else start)
    write(table, "c")
    expected = {"earliest": ["a", "b", "c"], "latest": ["c"], "moment": ["b", "c"]}[start]
    # It is there from its first use on: another start, and a block without a question, change nothing.
    assert table.consumer("dash", start="latest").position == consumer.position
    assert turn(table) == expected


def test_seek_goes_anywhere_at_once(table):
    first = write(table, "a")
    second = write(table, "b")
    assert turn(table) == ["a", "b"]
    consumer = table.consumer("dash")
    consumer.seek(first)
    assert turn(table) == ["b"]
    consumer = table.consumer("dash")
    consumer.seek("earliest")
    assert (consumer.position, turn(table)) == (None, ["a", "b"])
    consumer = table.consumer("dash")
    consumer.seek("2100-01-01")  # what comes until then would be missed
    assert consumer.position == second.position
    with pytest.raises(OptionError, match="not an instant"):
        consumer.seek("soon")


def test_seek_forgets_what_was_asked_for(table):
    first = write(table, "a")
    write(table, "b")
    with table.consumer("dash") as consumer:
        consumer.changes()
        consumer.seek(first)
    assert turn(table) == ["b"]


def test_lag_counts_commits_that_changed_rows(table):
    consumer = table.consumer("dash")
    assert (consumer.lag().commits, consumer.lag().seconds) == (0, 0)
    write(table, "a")
    write(table, "a", ts=2)
    table.compact() if table.config.table_type == "MERGE_ON_READ" else table.cluster(sort_by=["id"])
    table._context.clock.pause(90)
    lag = consumer.lag()
    assert lag.commits == 2
    assert 90 <= lag.seconds < 100
    assert str(lag).startswith("2 commits, 9")
    assert turn(table) == ["a"]
    assert str(table.consumer("dash").lag()) == "none"


def test_lag_counts_what_was_archived(table):
    for n in range(6):
        write(table, "a", ts=n)
    consumer = table.consumer("dash")
    assert len(table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=2).instants) == 4
    assert consumer.lag().commits == 6
    assert turn(table) == ["a"]


def test_a_pull_goes_on_over_the_archive(table):
    write(table, "a")
    turn(table)
    for n in range(6):
        write(table, f"k{n}")
    assert len(table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=2).instants) > 1
    assert turn(table) == [f"k{n}" for n in range(6)]


def test_consumers_are_listed_with_their_lag(table):
    assert table.consumers() == []
    position = write(table, "a").position
    turn(table, "b.second")
    table.consumer("a-first")
    write(table, "b")
    first, second = table.consumers()
    assert (first.name, first.position, first.lag.commits) == ("a-first", None, 2)
    assert (second.name, second.position, second.lag.commits) == ("b.second", position, 1)
    assert 0 <= table._context.storage.now_s() - second.moved_at_ms / 1000 < 60
    table.drop_consumer("a-first")
    assert [each.name for each in table.consumers()] == ["b.second"]
    with pytest.raises(OptionError, match=r"no consumer 'a-first'; its consumers: b.second"):
        table.drop_consumer("a-first")
    assert turn(table, "a-first") == ["a", "b"]


@pytest.mark.parametrize(
    "name", ["", "../x", "a/b", ".hidden", "a" * 101, "a\0", "ä", "a b", "a\n", "-o", None, 7, "con:sumer"]
)
def test_names_that_are_no_file_names_are_refused(table, name):
    for use in (table.consumer, table.drop_consumer):
        with pytest.raises(OptionError, match="is not a name for a consumer"):
            use(name)
    assert table.consumers() == []


def test_a_restore_to_before_the_place_is_told(table):
    kept = write(table, "a")
    write(table, "b")
    place = write(table, "c").position
    turn(table)
    table.restore(kept.instant)
    write(table, "d")
    with pytest.raises(InstantNotFoundError) as error, table.consumer("dash") as consumer:
        consumer.changes()
    for part in ("consumer 'dash' stands at", place, "took the table back to", kept.instant, "seek("):
        assert part in str(error.value)
    assert consumer.position == place
    with pytest.raises(InstantNotFoundError, match="took the table back to"):
        consumer.seek(place)
    consumer.seek(kept)
    assert turn(table) == ["d"]


def test_a_restore_after_the_place_is_none_of_its_business(table):
    write(table, "a")
    saved = write(table, "b")
    turn(table)
    write(table, "c")
    table.restore(saved.instant)
    write(table, "d")
    assert turn(table) == ["d"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", "{}", "[" * 100_000),
        '{"position": 7, "before_images": false, "moved_at_ms": 1, "revision": "a"}',
        '{"position": "99999999999999999", "before_images": false, "moved_at_ms": 1, "revision": "a"}',
        '{"position": null, "before_images": false, "moved_at_ms": 1' + "0" * 30 + ', "revision": "a"}',
        '{"position": "x", "before_images": false, "moved_at_ms": 1, "revision": "a"}',
        '{"position": null, "before_images": 1, "moved_at_ms": 1, "revision": "a"}',
    ],
)
def test_a_damaged_place_is_told_and_can_be_dropped(table, text, caplog):
    write(table, "a")
    turn(table)
    table._context.storage.replace(FILE, text.encode())
    with pytest.raises(CorruptFileError, match=r"consumers/dash\.json .*--drop dash"):
        table.consumer("dash")
    assert table.consumers() == []
    assert "dash" in caplog.text
    table.drop_consumer("dash")
    assert turn(table) == ["a"]


@pytest.mark.parametrize("name", ["v9_cow", "v9_mor"])
def test_a_table_that_is_only_read_has_consumers_by_completion_times(golden, name):
    path = golden(name).path
    table = hoodie.open_table(path)
    until = table.timeline.commits[0].position
    with table.consumer("dash") as consumer:
        first = consumer.changes(until=until).to_arrow().num_rows
        assert first == table.changes(until=until).count() > 0
    with table.consumer("dash") as consumer:
        assert consumer.position == until
        assert consumer.lag().commits == len(table.timeline.commits) - 1
        assert consumer.changes().count() == table.changes(since=until).count()
    assert table.consumer("dash").position == table.timeline.latest_position


# -- every storage ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=sorted(EVERY))
def storage(request, tmp_path):
    storage = EVERY[request.param](tmp_path)
    create(storage, table_type="COPY_ON_WRITE")
    return storage


def test_on_every_storage_places_are_kept_and_the_second_of_two_is_told(storage):
    table = opened(storage)
    write(table, "a")
    one, other = table.consumer("dash"), table.consumer("dash")
    write(table, "b")
    with one:
        assert ids(one.changes()) == ["a", "b"]
    assert ids(other.changes()) == ["a", "b"]
    with pytest.raises(CommitConflictError) as error, other:
        pass
    for part in ("consumer 'dash'", "was moved by this process", "the beginning", one.position):
        assert part in str(error.value)
    with pytest.raises(CommitConflictError):
        other.seek("earliest")
    assert turn(opened(storage)) == []
    with other:  # the next block begins at the place as it is by now
        assert ids(other.changes()) == []
    write(table, "c")
    last = table.consumer("dash")
    last.changes()
    table.drop_consumer("dash")
    with pytest.raises(CommitConflictError, match="was dropped by another process"), last:
        pass
    assert table.consumers() == []
    with pytest.raises(OptionError, match="no consumer 'dash'"), last:
        pass


def test_of_many_at_once_one_moves_the_place(tmp_path):
    for storage in (LocalStorage(tmp_path / "t"), BucketStorage()):
        create(storage, table_type="COPY_ON_WRITE")
        table = opened(storage)
        write(table, "a")
        consumers = [table.consumer("dash") for _ in range(8)]

        def run(consumer):
            try:
                with consumer:
                    consumer.changes()
            except CommitConflictError:
                return 0
            return 1

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(run, consumers)) == 1


def test_of_many_that_make_it_all_have_the_same_one(tmp_path):
    storage = LocalStorage(tmp_path / "t")
    create(storage, table_type="COPY_ON_WRITE")
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: opened(storage).consumer("dash")._stored.place.revision, range(8)))
    assert len(set(made)) == 1


# -- dying --------------------------------------------------------------------------------------------------------------

KINDS = {"swap": BucketStorage, "lock": None}
"""How a place is moved: compared and swapped, or replaced under the table lock."""


def scene(kind, tmp_path):
    """A storage with a consumer that has read "a", and not "b"."""
    storage = LocalStorage(tmp_path / "t") if KINDS[kind] is None else KINDS[kind]()
    create(storage, table_type="COPY_ON_WRITE")
    table = opened(storage)
    write(table, "a")
    turn(table)
    write(table, "b")
    return storage


def move(storage):
    with opened(storage).consumer("dash") as consumer:
        assert ids(consumer.changes()) == ["b"]


def first_use(storage):
    opened(storage).consumer("new", start="latest")


def announce(storage):
    opened(storage).consumer("dash").changes(images="before_after")


def drop(storage):
    opened(storage).drop_consumer("dash")


ACTS = {"move": move, "first use": first_use, "announce": announce, "drop": drop}


def state(storage):
    """What others see of the consumers."""
    return {each.name: (each.position, each.before_images) for each in opened(storage).consumers()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("act", long_but(["move"], ACTS))
def test_stopped_at_every_call_the_place_is_the_old_one_or_the_new_one(act, kind, tmp_path):
    traced = FaultStorage(scene(kind, tmp_path / "traced"))
    before = state(traced)
    ACTS[act](traced)
    after = {name: images for name, (_, images) in state(traced).items()}
    trace = [call for call in traced.trace if ".hoodie_py/consumers" in call.path]
    assert trace
    for number, fault in enumerate(crash_points(traced.trace)):
        storage = scene(kind, tmp_path / str(number))
        old = state(storage)
        assert len(old) == len(before)
        with pytest.raises(InjectedFault):
            ACTS[act](FaultStorage(storage, [fault]))
        found = state(storage)
        assert found == old or {name: images for name, (_, images) in found.items()} == after
        # Whoever comes next goes on without help, and sees the rest, perhaps once more.
        rest = turn(opened(storage))
        assert rest in ([], ["b"]) if "dash" in found else rest == ["a", "b"]
        if found == old and act == "move":
            assert rest == ["b"]
        assert turn(opened(storage)) == []


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("kind", KINDS)
def test_where_the_answer_is_lost_the_place_is_looked_at(kind, moment, tmp_path):
    storage = scene(kind, tmp_path)
    failing = FaultStorage(storage)
    consumer = opened(failing).consumer("dash")
    consumer.changes()
    old = consumer.position
    failing.revive([Fault(1, moment, errno.EIO)])
    if moment == "before":
        with pytest.raises(OSError, match="injected"):
            consumer.commit()
        assert consumer.position == old
        consumer.commit()  # the same object tries again
    else:
        consumer.commit()
    assert consumer.position == opened(storage).consumer("dash").position > old
    write(opened(storage), "c")
    with opened(storage).consumer("dash") as later:
        assert ids(later.changes()) == ["c"]


def test_an_effect_that_was_taken_for_a_failure_is_no_stranger():
    """The answer is lost, and so is the look that follows: when the same reader tries again, what stands there is its own."""

    class Deaf(FaultStorage):
        deaf = False

        def swap(self, path, data, tag):
            found = super().swap(path, data, tag)
            if self.deaf:
                raise OSError(errno.EIO, "the answer was lost", path)
            return found

        def read_tagged(self, path):
            if self.deaf:
                raise OSError(errno.EIO, "no answer", path)
            return super().read_tagged(path)

    deaf = Deaf(scene("swap", None))
    consumer = opened(deaf).consumer("dash")
    consumer.changes()
    deaf.deaf = True
    with pytest.raises(OSError, match="the answer was lost"):
        consumer.commit()
    deaf.deaf = False
    consumer.commit()
    assert turn(opened(deaf)) == []


def test_a_reader_that_was_paused_does_not_move_the_place_back(table):
    write(table, "a")
    paused = table.consumer("dash")
    paused.changes()
    write(table, "b")
    assert turn(table) == ["a", "b"]
    with pytest.raises(CommitConflictError):
        paused.commit()
    assert turn(table) == []


def test_a_lost_lock_moves_nothing(tmp_path, monkeypatch):
    storage = scene("lock", tmp_path)
    consumer = opened(storage).consumer("dash")
    consumer.changes()
    with monkeypatch.context() as patch:
        patch.setattr(type(consumer._context.lock), "is_held", lambda _: False)
        with pytest.raises(LockError, match="its place is as it was"):
            consumer.commit()
    assert turn(opened(storage)) == ["b"]


def test_the_file_is_small_and_plain(table):
    position = write(table, "a").position
    turn(table)
    note = json.loads(table._context.storage.read(FILE))
    assert (note["position"], note["before_images"]) == (position, False)
    assert datetime.fromtimestamp(note["moved_at_ms"] / 1000, UTC).year >= 2025
    assert len(table._context.storage.read(FILE)) < 500
    copied, clock = copy_of(table._context.storage)
    write(opened(copied, clock), "b")
    assert turn(opened(copied, clock)) == ["b"]
