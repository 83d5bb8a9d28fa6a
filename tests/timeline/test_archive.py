"""The archived timeline of both layouts as it lies on storage."""

import pytest

from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.format.layout import V6, V8
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.instant import Instant
from hoodie.storage.cache import Cache
from hoodie.timeline.archive import ArchivedTimeline
from tests.golden_tables import FOLDER
from tests.memory_tables import FakeClock, new_storage

OF_V6 = FOLDER / "v6_archived/table/.hoodie/history"
OF_V9 = FOLDER / "v9_archived/table/.hoodie/timeline/history"


def archive(source, *, layout, without=()):
    storage = new_storage(FakeClock())
    for file in source.iterdir():
        if file.name not in without:
            storage.create_new(f"h/{file.name}", file.read_bytes())
    return storage, ArchivedTimeline(storage, "h", layout=layout, cache=Cache())


@pytest.mark.parametrize(("source", "layout", "count"), [(OF_V6, V6, 4), (OF_V9, V8, 7)])
def test_the_writes_and_what_they_said(source, layout, count):
    _, found = archive(source, layout=layout)
    assert len(found.commits) == count
    assert [i.time for i in found.commits] == sorted(i.time for i in found.commits)
    metadata = found.read_commits(found.commits)
    assert sorted(metadata) == [i.time for i in found.commits]
    assert all(list(each.stats()) for each in metadata.values())


def test_completion_times_are_known_in_layout_2():
    _, found = archive(OF_V9, layout=V8)
    assert found.completions["20261121135455334"] == "20261121135457021"
    assert "20261121135452159" not in found.completions  # a clean
    assert archive(OF_V6, layout=V6)[1].completions == {}


@pytest.mark.parametrize("layout", [V6, V8])
def test_without_an_archive_there_is_nothing(layout):
    found = ArchivedTimeline(new_storage(FakeClock()), "nowhere", layout=layout, cache=Cache())
    assert found.files == found.instants == found.commits == ()
    assert found.read_commits(()) == {}


def test_the_manifest_that_the_version_file_names_counts():
    storage, found = archive(OF_V9, layout=V8, without={"_version_"})
    assert len(found.files) == 3  # without it the greatest
    storage.create_new("h/_version_", b"1\n")
    assert len(ArchivedTimeline(storage, "h", layout=V8, cache=Cache()).files) == 1
    storage.replace("h/_version_", b"77")
    assert len(ArchivedTimeline(storage, "h", layout=V8, cache=Cache()).files) == 3


def test_files_of_the_folder_that_no_manifest_lists_do_not_count():
    storage, _ = archive(OF_V9, layout=V8)
    storage.create_new("h/20270101000000000_20270101000000001_0.parquet", b"half written")
    assert len(ArchivedTimeline(storage, "h", layout=V8, cache=Cache()).instants) == 8


def test_instants_that_were_archived_twice_count_once():
    storage, once = archive(OF_V6, layout=V6)
    (name,) = once.files
    storage.create_new("h/.commits_.archive.2_1-0-1", storage.read(f"h/{name}"))
    assert ArchivedTimeline(storage, "h", layout=V6, cache=Cache()).instants == once.instants


@pytest.mark.parametrize(("source", "layout"), [(OF_V6, V6), (OF_V9, V8)])
def test_the_instants_of_a_file_are_decoded_once_in_a_process(source, layout):
    storage, first = archive(source, layout=layout)
    cache = Cache()
    first = ArchivedTimeline(storage, "h", layout=layout, cache=cache)
    assert first.instants
    for name in first.files:
        storage.delete(f"h/{name}")
    second = ArchivedTimeline(storage, "h", layout=layout, cache=cache)
    second.__dict__["files"] = first.files  # as if it had listed them before
    second._infos = first._infos
    assert second.instants == first.instants


def test_a_file_that_is_gone_is_an_error_that_names_it():
    _, found = archive(OF_V9, layout=V8, without={"20261121135441719_20261121135445296_0.parquet"})
    with pytest.raises(CorruptFileError, match="20261121135441719_20261121135445296_0"):
        _ = found.instants


@pytest.mark.parametrize(("source", "layout"), [(OF_V6, V6), (OF_V9, V8)])
def test_a_commit_that_is_not_archived_is_an_error(source, layout):
    _, found = archive(source, layout=layout)
    absent = Instant("20270101000000000", Action.COMMIT, State.COMPLETED)
    with pytest.raises(InstantNotFoundError, match="20270101000000000"):
        found.read_commits([absent])


def test_only_the_files_that_can_hold_a_commit_are_read():
    _, found = archive(OF_V9, layout=V8)
    wanted = Instant("20261121135455334", Action.DELTACOMMIT, State.COMPLETED)
    (metadata,) = found.read_commits([wanted]).values()
    assert metadata.operation is WriteOperation.DELETE
