"""`delete(where=…)` beside another writer, who is acknowledged in the middle of it: the outcome is that of one after the other."""

from contextlib import suppress

import pytest

from hoodie.errors import CommitConflictError, LockError
from hoodie.model.enums import TableType
from hoodie.storage.faults import FaultStorage
from tests.effort import long_but
from tests.memory_tables import FakeClock, Input, batch, copy_of, create, keys, new_storage, opened

EXPIRED = "val < 0"
STEPS = (6, 27, 48, 62, 69, 76, 83)
"""Calls of the delete before which the other writer comes: while it looks, plans, writes, publishes."""
STORED = [Input("a", "x", -1, 1), Input("b", "x", 1, 1), Input("c", "x", -1, 1), Input("d", "y", -1, 1)]

KINDS = {
    "copy-on-write": ("COPY_ON_WRITE", {}),
    "merge-on-read": ("MERGE_ON_READ", {}),
    "buckets": ("MERGE_ON_READ", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}),
}


def compacted(table):
    """A compaction; none where the delete has its instant and so is in the way, nor of a table without logs."""
    if table.config.table_type is TableType.MERGE_ON_READ:
        with suppress(CommitConflictError):
            table.compact()


OTHERS = {
    # It renews a, lets b expire, and adds another row that has expired.
    "upsert": lambda t: t.upsert(batch([Input("a", "x", 2, 2), Input("b", "x", -2, 2), Input("e", "x", -2, 2)])),
    "renewal": lambda t: t.upsert(batch([Input("d", "y", 2, 2)])),
    "overwrite": lambda t: t.insert_overwrite(batch([Input("a", "x", 2, 0), Input("e", "x", -2, 0)])),
    "emptied partition": lambda t: (t.delete_partitions(["x"]), t.upsert(batch([Input("e", "x", -2, 0)]))),
    "compaction": compacted,
    "renewal and compaction": lambda t: (t.upsert(batch([Input("a", "x", 2, 2)])), compacted(t)),
    "deletion and return": lambda t: (t.delete(keys([Input("a", "x")])), t.upsert(batch([Input("a", "x", 2, 0)]))),
}


class Watched(FaultStorage):
    """Runs `meanwhile` once before the n-th call, of whatever kind; later, as long as it does not get the lock."""

    def __init__(self, inner, at=None, meanwhile=None):
        super().__init__(inner)
        self.at, self.meanwhile, self.steps = at, meanwhile, 0

    def _step(self):
        self.steps += 1
        if self.meanwhile is not None and self.steps >= self.at:
            meanwhile, self.meanwhile = self.meanwhile, None
            try:
                meanwhile()
            except LockError:
                self.meanwhile = meanwhile

    def _living(self):
        self._step()
        return super()._living()


def prepared(kind):
    table_type, options = KINDS[kind]
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type=table_type, more={k: v for k, v in options.items() if "index" in k})
    opened(storage, clock, options).upsert(batch(STORED))
    opened(storage, clock, options).upsert(batch([Input("c", "x", -2, 1)]))
    return storage, clock


def rows(storage, clock):
    found = opened(storage, clock).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["part"], row["val"]) for row in found)


def one_after_the_other(kind, *actions):
    storage, clock = prepared(kind)
    for act in actions:
        act(opened(storage, clock))
    return rows(storage, clock)


def delete(table):
    return table.delete(where=EXPIRED)


@pytest.mark.parametrize("other", long_but(["deletion and return"], OTHERS))
@pytest.mark.parametrize("kind", KINDS)
def test_another_writer_in_the_middle_loses_nothing(kind, other):
    wanted = [one_after_the_other(kind, delete, OTHERS[other]), one_after_the_other(kind, OTHERS[other], delete)]
    start, _ = prepared(kind)
    for step in STEPS:
        storage, clock = copy_of(start)
        watched = Watched(storage, step, lambda s=storage, c=clock: OTHERS[other](opened(s, c)))
        delete(opened(watched, clock))
        if watched.meanwhile is not None:
            watched.meanwhile()
        assert rows(storage, clock) in wanted, f"step {step}"


@pytest.mark.parametrize("kind", KINDS)
def test_writers_elsewhere_do_not_make_it_start_anew(kind, monkeypatch):
    storage, clock = prepared(kind)
    table = opened(storage, clock)
    was, evaluated = table.scan, []

    def scan(*args, **more):
        found = was(*args, **more)
        evaluated.append(found)
        opened(storage, clock).insert(batch([Input(f"n{len(evaluated)}", "z", 1)]))
        return found

    monkeypatch.setattr(table, "scan", scan)
    assert table.delete(where="id = 'd'").instant is not None
    assert len(evaluated) == 1
