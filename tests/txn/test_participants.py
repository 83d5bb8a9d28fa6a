"""Who takes part in the completion of an instant is called under the lock, with what changes, and can end the action."""

import pytest

from hoodie.errors import UnsupportedTableError
from hoodie.model.change import Change, change_of_undoing
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.payloads import RollbackMetadata, RollbackPartition
from hoodie.timeline.timeline import WRITES
from hoodie.txn import participants
from tests.memory_tables import Input, batch, data_files, keys, new_table, opened, snapshot_of

COW, MOR = "COPY_ON_WRITE", "MERGE_ON_READ"
T, OLDER = "20260101000000002", "20260101000000001"


def rows(*ids, part="a", ts=1):
    return batch([Input(each, part, ts, ts) for each in ids])


class Ledger:
    """Keeps the list of data files by what it is told: what a metadata table would hold."""

    def __init__(self):
        self.files = {}
        self.calls = []
        self.refuses = ()

    def before_plan(self, context, properties):
        assert context.lock.is_held()
        self.calls.append("plan")

    def takes_part(self, action):
        return True

    def before_removal(self, context, time):
        pass

    def before_completion(self, context, change, properties):
        assert context.lock.is_held()
        assert change.instant.state is State.COMPLETED
        assert not context.active.exists(change.instant)
        self.calls.append(change)
        if change.instant.action in self.refuses:
            raise UnsupportedTableError("not kept up to date")
        for path, names in change.added.items():
            self.files.setdefault(path, {}).update(names)
        for path, names in change.removed.items():
            for name in names:
                self.files.get(path, {}).pop(name, None)

    @property
    def changes(self):
        return [each for each in self.calls if isinstance(each, Change)]

    @property
    def actions(self):
        return [each.instant.action for each in self.changes]


@pytest.fixture
def ledger(monkeypatch):
    one = Ledger()
    monkeypatch.setattr(participants, "participants_of", lambda context: (one,))
    return one


def check(ledger, storage):
    assert {path: names for path, names in ledger.files.items() if names} == data_files(storage)


def test_a_participant_is_called_before_the_plan_and_before_the_completed_file(ledger):
    storage, clock = new_table(table_type=COW)
    opened(storage, clock).upsert(rows("k"))
    plan, change = ledger.calls
    assert plan == "plan"
    assert change.instant.action is Action.COMMIT
    assert sorted(change.added) == sorted(change.commit.write_stats) == ["a"]


@pytest.mark.parametrize("table_type", [COW, MOR])
def test_what_participants_are_told_adds_up_to_what_is_stored(ledger, table_type):
    """After every action, so that no listing is needed."""
    storage, clock = new_table(table_type=table_type)
    table = opened(storage, clock)

    def after(act, *actions):
        before = len(ledger.changes)
        result = act()
        assert ledger.actions[before:] == list(actions)
        check(ledger, storage)
        return result

    write = Action.COMMIT if table_type == COW else Action.DELTACOMMIT
    for part in ("a", "b"):
        after(lambda part=part: table.upsert(rows("1", "2", part=part)), write)
    for ts in (2, 3):
        after(lambda ts=ts: table.upsert(rows("1", "2", ts=ts)), write)
    saved = after(table.savepoint, Action.SAVEPOINT)
    after(lambda: table.delete(keys([Input("1", "a")])), write)
    if table_type == MOR:
        after(lambda: table.compact_logs(blocks=2), Action.DELTACOMMIT)
        after(table.compact, Action.COMMIT)
    after(lambda: table.cluster(sort_by="val"), Action.REPLACECOMMIT)
    replaced = ledger.changes[-1].replaced
    assert replaced
    for ts in (5, 6):
        after(lambda ts=ts: table.upsert(rows("2", "3", ts=ts)), write)
    undone = table.timeline.latest_commit
    after(lambda: table.rollback(undone.time), Action.ROLLBACK)
    assert ledger.changes[-1].undone == ((undone.time, undone.action),)
    after(lambda: table.restore(saved), Action.RESTORE)
    assert len(ledger.changes[-1].undone) > 2
    after(lambda: table.drop_savepoint(saved))
    for ts in (7, 8):
        after(lambda ts=ts: table.upsert(rows("1", "2", ts=ts)), write)
    after(lambda: table.delete_partitions(["b"]), Action.REPLACECOMMIT)
    if table_type == MOR:
        after(table.compact, Action.COMMIT)
    after(lambda: table.clean({"hoodie.clean.commits.retained": "1"}), Action.CLEAN)
    assert any(ledger.changes[-1].removed.values())
    assert set(ledger.actions) >= {*WRITES, Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.SAVEPOINT} - (
        {Action.DELTACOMMIT} if table_type == COW else set()
    )


def test_a_participant_that_refuses_ends_the_write(ledger):
    storage, clock = new_table(table_type=COW)
    ledger.refuses = (Action.COMMIT,)
    with pytest.raises(UnsupportedTableError, match="not kept up to date"):
        opened(storage, clock).upsert(rows("k"))
    assert snapshot_of(opened(storage)) == []
    assert not opened(storage).timeline.commits


def test_an_action_that_a_participant_refused_is_carried_on_by_the_next_process(ledger):
    """Its files are gone, and the participant hears of them again."""
    storage, clock = new_table(table_type=COW)
    for ts in range(1, 5):
        opened(storage, clock).upsert(rows("k", ts=ts))
    one_kept = {"hoodie.clean.commits.retained": "1"}
    ledger.refuses = (Action.CLEAN,)
    with pytest.raises(UnsupportedTableError, match="not kept up to date"):
        opened(storage, clock).clean(one_kept)
    assert opened(storage).timeline.pending(Action.CLEAN)
    first, ledger.refuses = ledger.changes[-1], ()
    opened(storage, clock).clean(one_kept)
    assert not opened(storage).timeline.pending(Action.CLEAN)
    assert ledger.changes[-1] == first
    check(ledger, storage)


def test_an_undoing_names_files_by_partition_and_the_logs_that_disarm():
    part = RollbackPartition(
        "p=1", deleted=("s3://t/p=1/x.parquet",), rollback_log_files={"s3://t/p=1/.f_1.log.2_0-0-0": 9}
    )
    metadata = RollbackMetadata(T, 0, ((OLDER, Action.COMMIT),), (part, RollbackPartition("p=2")))
    instant = Instant(T, Action.ROLLBACK, State.COMPLETED)
    assert change_of_undoing(instant, [metadata]) == Change(
        instant, {"p=1": {".f_1.log.2_0-0-0": 9}}, {"p=1": ["x.parquet"]}, undone=((OLDER, Action.COMMIT),)
    )
