"""A writer that was taken for dead while it was paused, before it had put its files in place, tries again."""

import pytest

from hoodie.filegroup import small_files
from hoodie.publish.publishers import publisher_of
from hoodie.write import attempt
from tests.bucket import BucketStorage
from tests.memory_tables import FakeClock, Input, batch, create, new_storage, opened


def fenced(monkeypatch, step, storage):
    """Another process rolls back just before the step, the first time."""
    module = small_files if step == "run_write" else attempt
    plain, others = getattr(module, step), publisher_of(storage, leased=True)
    seen = []

    def paused(*args, **kwargs):
        context = args[1] if step == "run_write" else args[0]
        instant = context.instant if step == "run_write" else args[1]
        if not seen:
            others.fence(instant)
        seen.append(instant)
        return plain(*args, **kwargs)

    monkeypatch.setattr(module, step, paused)
    return seen


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("kind", ["bucket", "leased folder"])
@pytest.mark.parametrize("step", ["run_write", "publish_files"])
def test_it_writes_under_another_instant(kind, step, table_type, monkeypatch):
    clock = FakeClock()
    storage = BucketStorage(clock=clock) if kind == "bucket" else new_storage(clock)
    if kind == "leased folder":
        monkeypatch.setattr("hoodie.lock.in_process.InProcessLock.is_leased", True)
    create(storage, table_type=table_type)
    opened(storage, clock).upsert(batch([Input("a", "p")]))
    seen = fenced(monkeypatch, step, storage)
    done = opened(storage, clock).upsert(batch([Input("b", "p")]))
    assert done.instant == seen[-1] != seen[0]
    table = opened(storage, clock)
    assert table.scan().to_arrow().num_rows == 2
    assert [instant.time for instant in table.timeline if not instant.is_completed] == []
