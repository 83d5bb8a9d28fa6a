"""Tables that Apache Hudi wrote, their timelines put back instant by instant: what follows shows what a listing shows."""

import shutil

import pytest

from hoodie.model.enums import Action
from hoodie.model.instant import InstantTime
from hoodie.model.names import name_of
from hoodie.storage.local import LocalStorage
from hoodie.view.context import TableContext
from tests.followed import Counting, check_followed, follower
from tests.golden_tables import FOLDER

TABLES = sorted(path.parent.name for path in FOLDER.glob("v*/expected.json"))


def state_files(context: TableContext, storage):
    """The files of the timeline by instant time, in the order of times."""
    folder = context.config.timeline_folder
    found = {}
    for name in storage.names(folder):
        instant = context.active._layout.parse(name)
        if instant is not None:
            found.setdefault(instant.time, []).append(f"{folder}/{name}")
    return dict(sorted(found.items(), key=lambda each: InstantTime(each[0])))


def put_back_cleaned_files(table, context):
    """Files that commits name and cleans have deleted, with as many bytes; only names and sizes matter here."""
    for commit in context.active.load().commits:
        for stat in context.active.read_commit(commit).stats():
            path = table.path / stat.path
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(bytes(stat.file_size_bytes))


@pytest.mark.parametrize("name", TABLES)
def test_a_golden_table_is_followed(name, golden, tmp_path):
    table = golden(name)
    storage = LocalStorage(table.path)
    context = follower(storage)
    cleans = [i for i in context.active.load() if i.action is Action.CLEAN and i.is_completed]
    whole = {instant.time: instant for instant in cleans}
    cleaned = {time: context.active.read_cleaned(clean) for time, clean in whole.items()}
    put_back_cleaned_files(table, context)
    files = state_files(context, storage)
    times = list(files)
    aside = tmp_path / "aside"
    aside.mkdir()
    for path in [path for time in times[1:] for path in files[time]]:
        shutil.move(table.path / path, aside / name_of(path))
    counting = Counting(storage)
    context = follower(counting)
    check_followed(context)
    for time in times[1:]:
        for each in cleaned.get(time, ()):
            for deleted in each.deleted:
                (table.path / each.partition_path / deleted).unlink(missing_ok=True)
        for path in files[time]:
            shutil.move(aside / name_of(path), table.path / path)
        counting.listed.clear()
        context.snapshot().view.latest_slices()
        is_restore = any(".restore" in path for path in files[time])
        is_at_work = time not in whole and any(".clean" in path for path in files[time])
        assert bool(counting.listed) == (is_restore or is_at_work)
        check_followed(context)
    stands = tuple(i for i in context.active.load() if i.action is not Action.CLEAN or i.is_completed)
    assert tuple(i for i in context.synced.timeline if i in stands) == stands
