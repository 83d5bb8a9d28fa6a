"""How many calls that change the storage the actions make that `test_every_step.py` does not stop: each is a place to die at.

One more is one more: look at it, and at the tests that stop the action, then raise the number.
"""

import pytest

from hoodie.storage.faults import FaultStorage
from hoodie.storage.memory import MemoryStorage
from tests.bucket import BucketStorage
from tests.crash.actions import CHANGES, FIRST, MORE
from tests.memory_tables import FakeClock, batch, create, keys, new_storage, opened
from tests.placed import in_memory

pytestmark = in_memory("in memory the numbers are the same in every run")

KINDS = {"memory": MemoryStorage, "bucket": BucketStorage}
CALLS = {
    "creation": (1, 1),
    "insert": (15, 13),
    "bulk_insert": (15, 13),
    "delete": (17, 15),
    "schedule_compaction": (1, 1),
    "clean": (11, 11),
    "archive": (13, 13),
    "scan": (0, 0),
}
"""In a storage that renames, and in one that copies."""

ACTS = {
    "insert": lambda table: table.insert(batch(row._replace(id=f"new {row.id}") for row in FIRST)),
    "bulk_insert": lambda table: table.bulk_insert(batch(row._replace(id=f"new {row.id}") for row in FIRST)),
    "delete": lambda table: table.delete(keys(CHANGES[:2])),
    "schedule_compaction": lambda table: table.schedule_compaction(),
    "clean": lambda table: table.clean(retain_commits=1),
    "archive": lambda table: table.archive(min_commits=2),
    "scan": lambda table: table.scan().to_arrow(),
}


def calls_of(name: str, kind: str) -> int:
    clock = FakeClock()
    storage = FaultStorage(new_storage(clock, KINDS[kind]))
    create(storage, table_type="MERGE_ON_READ")
    if name == "creation":
        return len(storage.trace)
    for rows in (FIRST, MORE, CHANGES):
        opened(storage, clock).upsert(batch(rows))
        opened(storage, clock).compact()
    opened(storage, clock).upsert(batch(MORE))
    storage.revive()
    ACTS[name](opened(storage, clock))
    return len(storage.trace)


@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_changing_calls_is_known(kind):
    number = list(KINDS).index(kind)
    assert {name: calls_of(name, kind) for name in CALLS} == {name: each[number] for name, each in CALLS.items()}
