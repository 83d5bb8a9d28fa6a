"""A table that lives long costs what it cost when it was young: the short form of `benchmarks/long_run.py`, without a clock."""

import pytest

from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage
from tests.effort import long_but
from tests.memory_tables import FakeClock, Input, batch, create, opened, snapshot_of
from tests.placed import in_memory

pytestmark = in_memory("its calls are counted in memory")

SERVICES = {
    "hoodie.compact.inline": "true",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "9",
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    # Less than by default, so that what is kept is soon as much as it ever will be.
    "hoodie.clean.commits.retained": "4",
    "hoodie.keep.min.commits": "6",
    "hoodie.keep.max.commits": "8",
}
WINDOW, WARM, WINDOWS = 30, 2, 2
"""Commits that are summed up; how many such until the retention is reached; and how many are compared after that."""
KEYS = 8
VERBS = (
    *(
        "read",
        "open_input",
        "open_output",
        "create_all",
        "create_new",
        "replace",
        "move_new",
        "move_all_new",
        "rename_folder",
    ),
    *("list", "names", "stat", "exists", "delete", "delete_folder", "mkdirs"),
)


class Counted(MemoryStorage):
    """Counts its calls, and the files of the archive that are read."""

    calls = archive_files = 0

    def read(self, path, offset=0, length=None):
        self.archive_files += path.startswith(".hoodie/history/")
        return super().read(path, offset, length)

    def __getattribute__(self, name):
        if name in VERBS:
            self.calls += 1
        return super().__getattribute__(name)


@pytest.mark.parametrize("kind", long_but(["MERGE_ON_READ"], ["MERGE_ON_READ", "COPY_ON_WRITE"]))
def test_with_all_services_calls_instants_and_files_stay_what_they_were(kind):
    clock = FakeClock()
    storage = Counted(clock=clock)
    create(storage, table_type=kind)
    first, second = (opened(storage, clock, SERVICES, cache=Cache()) for _ in range(2))
    expected, replica, position = {}, {}, None
    calls, instants, files = [], [], []
    for number in range(WINDOW * (WARM + WINDOWS)):
        writer, half = (second, "b") if number % 5 == 4 else (first, "a")
        rows = [Input(f"{half}{n}", f"p{n % 2}", number, number) for n in range(number % 3, KEYS)]
        before = storage.calls
        writer.upsert(batch(rows))
        cost = storage.calls - before
        expected |= {row.id: number for row in rows}
        if number % 7 == 0:
            changes = opened(storage, clock, cache=Cache()).changes(since=position)
            replica |= {row["id"]: row["val"] for row in changes.to_arrow().to_pylist()}
            position = changes.position
        if number % WINDOW == 0:
            for each in (calls, instants, files):
                each.append(0)
        calls[-1] += cost
        instants[-1] = max(instants[-1], len(first.timeline))
        files[-1] = max(files[-1], sum(1 for info in storage.list("", recursive=True) if not info.is_folder))
    changes = opened(storage, clock, cache=Cache()).changes(since=position)
    replica |= {row["id"]: row["val"] for row in changes.to_arrow().to_pylist()}
    pulling, before = opened(storage, clock, cache=Cache()), storage.archive_files
    assert pulling.archived_instants()
    first_look = storage.archive_files - before
    assert first_look
    assert pulling.archived_instants()
    assert storage.archive_files - before == first_look, "who looks again reads only what came since"
    assert {row[0]: row[2] for row in snapshot_of(opened(storage, clock, cache=Cache()))} == expected == replica
    before = storage.archive_files
    assert before
    snapshot_of(opened(storage, clock, cache=Cache()))
    assert storage.archive_files == before, "a snapshot needs nothing of the archive, which grows for ever"
    for counted in (calls, instants, files):
        assert max(counted[WARM:]) <= 1.15 * counted[WARM - 1], (calls, instants, files)
    assert len(first.history(archived=True)) > len(first.history()) + WINDOW * WARM
