"""A process dies at every call that changes the storage: what takes part in completions has the files of the completed instants."""

import pytest

from hoodie.model.names import parse_base_file, parse_log_file
from hoodie.txn import participants
from tests.crash.actions import crash
from tests.crash.scenes import scene_of
from tests.effort import long_but
from tests.memory_tables import Input, batch, copy_of, data_files, left_by, opened

ACTIONS = [
    "rollback of the newest commit",
    *("copy-on-write upsert", "merge-on-read upsert", "insert_overwrite", "delete_partitions", "load in one pass"),
    *("compaction", "log compaction", "clustering", "restore", "restore of logs", "expiry"),
]


class Changes:
    """Keeps the last change of each instant, whether that was completed or not."""

    def __init__(self):
        self.by_time = {}

    def before_plan(self, context, properties):
        pass

    def takes_part(self, action):
        return True

    def before_removal(self, context, time):
        pass

    def before_completion(self, context, change, properties):
        self.by_time.pop(change.instant.time, None)
        self.by_time[change.instant.time] = change

    def files(self, start, timeline):
        """Those of the table, by what was so at the start and by the instants that are completed."""
        found = {path: dict(names) for path, names in start.items()}
        for change in self.by_time.values():
            if any(each.time == change.instant.time and each.is_completed for each in timeline):
                for path, names in change.added.items():
                    found.setdefault(path, {}).update(names)
                undone = {time for time, _ in change.undone}
                for path, names in found.items():
                    gone = {name for name in names if instant_of(name) in undone} | {*change.removed.get(path, ())}
                    found[path] = {name: size for name, size in names.items() if name not in gone}
        return found


def instant_of(name):
    base, log = parse_base_file(name), parse_log_file(name)
    return base.instant if base else log.base_instant if log else None


@pytest.mark.parametrize("name", long_but(ACTIONS[:1], ACTIONS))
def test_a_death_at_any_step_leaves_participants_with_the_files_of_completed_instants(name, monkeypatch):
    scene = scene_of(name)
    for fault in scene.points():
        storage, clock = copy_of(scene.start)
        start, one = data_files(storage), Changes()
        monkeypatch.setattr(participants, "participants_of", lambda context, one=one: (one,))
        assert crash(storage, clock, scene.action, fault), fault
        bare, clock = left_by(storage)
        opened(bare, clock).upsert(batch([Input("next", "a", 1, 1)]))
        told, found = one.files(start, opened(bare, clock).timeline), data_files(bare)
        for path in {*told, *found}:
            names, there = told.get(path, {}), found.get(path, {})
            assert names.items() <= there.items(), (fault, path)
            # What a dead writer appended stays, and does not count.
            assert all(parse_log_file(each) for each in there.keys() - names.keys()), (fault, path)
