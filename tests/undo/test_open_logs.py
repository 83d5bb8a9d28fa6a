"""Log files that another program holds open on HDFS: queries go on beside it, and a rollback closes those of a dead one."""

import errno

import pytest

from hoodie.errors import CommitConflictError
from hoodie.filegroup.log_blocks import live_blocks
from hoodie.model.enums import Action
from hoodie.model.names import heartbeat_path, name_of, parse_log_file
from hoodie.storage.capabilities import Capabilities
from hoodie.storage.faults import InjectedFault
from hoodie.storage.memory import MemoryStorage
from hoodie.table import open_at
from tests.engines import Dies
from tests.memory_tables import FakeClock, Input, batch, create, leftovers, new_storage, opened, snapshot_of


class Leased(MemoryStorage):
    """Files with a lease on them cannot be read, as with hdfs-native."""

    can = Capabilities(is_remote=True)

    def __init__(self, uri="memory://leased", *, clock):
        super().__init__(uri, clock=clock)
        self.held = set()
        self.ended = []

    def _content(self, path):
        if path in self.held:
            raise OSError(errno.EBUSY, "a writer holds the file open", path)
        return super()._content(path)

    def end_log(self, path):
        super().end_log(path)
        self.held.discard(path)
        self.ended.append(path)


@pytest.fixture
def table():
    """A table with two commits, the second of which wrote a log."""
    clock = FakeClock()
    storage = new_storage(clock, Leased)
    create(storage, table_type="MERGE_ON_READ")
    without = {"hoodie.python.mor.row.copies": "false"}
    opened(storage, clock).upsert(batch([Input("k", "a", 1, 1), Input("l", "a", 1, 1)]), without)
    opened(storage, clock).upsert(batch([Input("k", "a", 2, 2)]), without)
    return storage, clock


def foreign_write(storage, clock):
    """A pending write of another program, which holds the log that it writes open; gives its instant and the log's path."""
    with pytest.raises(InjectedFault):
        open_at(storage, engine=Dies("write files"), sleep=clock.sleep).upsert(batch([Input("k", "a", 99, 99)]))
    context = opened(storage, clock)._context
    (instant,) = context.active.load().pending_writes
    staging = context.publisher.staging(instant.time)
    (staged,) = [i.path for i in storage.list(staging) if parse_log_file(i.name)]
    path = f"a/{name_of(staged)}"
    storage.move_new(staged, path)
    storage.delete_folder(staging)
    context.liveness.release(instant.time)
    storage.held.add(path)
    return instant.time, path


def values(storage, clock):
    return {row[0]: row[2] for row in snapshot_of(opened(storage, clock))}


def test_queries_go_on_beside_a_writer_that_holds_a_log_open(table):
    storage, clock = table
    first = opened(storage, clock).timeline.commits[0].time
    instant, path = foreign_write(storage, clock)
    storage.touch(heartbeat_path(instant))
    assert values(storage, clock) == {"k": 2, "l": 1}
    pulled = opened(storage, clock).changes(since=first).to_arrow()
    assert pulled.column("val").to_pylist() == [2]
    (piece,) = opened(storage, clock)._context.snapshot().view.latest_slices()
    found = live_blocks(storage, piece.logs, opened(storage, clock).timeline.visible())
    assert found.odd == (path,), "what is merged of the others does not stand for it"
    assert storage.held == {path}


def test_a_log_that_a_commit_wrote_is_never_passed_over(table):
    """A file system may be asked too early for a file that was just closed, and an older writer may append to one."""
    storage, clock = table
    (path,) = [i.path for i in storage.list("a") if parse_log_file(i.name)]
    storage.held.add(path)
    with pytest.raises(OSError, match="holds the file open"):
        snapshot_of(opened(storage, clock))


def test_nor_one_that_may_be_of_a_commit_that_was_archived(table):
    storage, clock = table
    _, path = foreign_write(storage, clock)
    context = opened(storage, clock)._context
    (piece,) = context.snapshot().view.latest_slices()
    visible = context.active.load().without({piece.base_instant}).visible()
    with pytest.raises(OSError, match="holds the file open"):
        live_blocks(storage, [log for log in piece.logs if log.path == path], visible)


def test_the_next_write_closes_what_a_dead_writer_holds_open_and_takes_it_back(table):
    storage, clock = table
    instant, path = foreign_write(storage, clock)
    storage.delete(heartbeat_path(instant))
    opened(storage, clock).upsert(batch([Input("l", "a", 3, 3)]))
    assert path in storage.ended
    timeline = opened(storage, clock).timeline
    assert instant not in {i.time for i in timeline}
    plan = opened(storage, clock)._context.active.read_rollback_plan(
        next(i.time for i in timeline if i.action is Action.ROLLBACK)
    )
    assert [name_of(path) in request.log_blocks for request in plan.requests] == [True]
    assert values(storage, clock) == {"k": 2, "l": 3}
    opened(storage, clock).compact()
    assert values(storage, clock) == {"k": 2, "l": 3}
    assert leftovers(storage) == []


def test_nothing_is_closed_while_another_program_may_write(table):
    storage, clock = table
    dead, _ = foreign_write(storage, clock)
    storage.delete(heartbeat_path(dead))
    living = str(int(dead) + 1)
    for state in ("requested", "inflight"):
        storage.create_new(f".hoodie/{living}.deltacommit.{state}", b"")
    storage.touch(heartbeat_path(living))
    with pytest.raises(CommitConflictError, match=living):
        opened(storage, clock).rollback(dead)
    assert storage.ended == []


def test_a_writer_of_ours_held_none(table):
    storage, clock = table
    with pytest.raises(InjectedFault):
        open_at(storage, engine=Dies("write files"), sleep=clock.sleep).upsert(batch([Input("k", "a", 99, 99)]))
    opened(storage, clock).upsert(batch([Input("l", "a", 3, 3)]))
    assert values(storage, clock) == {"k": 2, "l": 3}
    assert storage.ended == []
