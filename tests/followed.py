"""A view that follows the timeline beside one that has just listed the storage: they have to show the same."""

from dataclasses import replace

from hoodie.engine.local import LocalEngine
from hoodie.model.files import FileGroup
from hoodie.model.names import HOODIE
from hoodie.options.view import ViewOptions
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage
from hoodie.view.context import TableContext
from hoodie.view.view import FileSystemView
from tests.memory_tables import opened

FOLLOWS = ViewOptions(follows=True)


def follower(storage, options=FOLLOWS):
    """An opening of a table that follows it, as if in a process of its own."""
    return TableContext.open(storage, LocalEngine(1), cache=Cache(), view=options)


def moved(context, storage):
    """The same follower, of a storage to which the table was copied."""
    there = follower(storage, context.view_options)
    there.synced._files = context.synced._files
    return there


class Counting(FaultStorage):
    """Notes the folders outside of `.hoodie` that are listed."""

    def __init__(self, inner):
        super().__init__(inner)
        self.listed = []

    def list(self, folder, *, recursive=False):
        if not folder.startswith(HOODIE):
            self.listed.append(folder)
        return super().list(folder, recursive=recursive)


def slices(context):
    return context.snapshot().view.latest_slices()


def by_listing(storage):
    return opened(storage)._context.snapshot().view.latest_slices()


def check_followed(context):
    """Compare every partition; gives the number of file groups."""
    snapshot = context.snapshot()
    followed = snapshot.view
    listed = FileSystemView(context.listing, context.active, snapshot.timeline, snapshot.archived)
    partitions = {*listed.every_partition(), *followed.every_partition()}
    count = 0
    for path in sorted(partitions):
        known = followed.file_groups(path)
        names = {log.name for group in known for each in group.slices for log in each.logs}
        expected = _counted(listed.file_groups(path), names)
        found = _counted(known, names)
        if found != expected:
            only_followed = [each for each in found if each not in expected]
            only_listed = [each for each in expected if each not in found]
            raise AssertionError(
                f"{path}: only followed {only_followed}; only listed {only_listed}; {snapshot.timeline.instants}"
            )
        count += len(expected)
    # A partition that only a write that failed has made has no files.
    with_files = {path for path in listed.partitions() if any(g.slices for g in followed.file_groups(path))}
    assert with_files <= set(followed.partitions())
    return count


class Followers:
    """Of one table: one that looks at every step, one at every third, and one that begins from a checkpoint each time."""

    def __init__(self, storage, checkpoint):
        self._storage = storage
        self._checkpointed = replace(FOLLOWS, checkpoint=checkpoint)
        self._quick, self._slow = follower(storage), follower(storage)
        self.steps = 0

    @property
    def quick(self):
        return self._quick

    def check(self):
        self.steps += 1
        check_followed(self._quick)
        if self.steps % 3 == 0:
            check_followed(self._slow)
        if self.steps % 2 == 0:
            check_followed(follower(self._storage, self._checkpointed))


def _counted(groups, known):
    """The groups without logs that no commit names, but for those that are known: of writes that failed or are at work."""
    found = []
    for group in groups:
        slices = []
        for each in group.slices:
            logs = tuple(log for log in each.logs if log.committed_bytes is not None or log.name in known)
            if each.base is not None or logs:
                slices.append(each._replace(logs=logs))
        if slices or group.missing:
            found.append(FileGroup(group.id, tuple(slices), group.missing))
    return found
