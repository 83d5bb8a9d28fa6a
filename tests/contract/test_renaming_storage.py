"""What every RenamingStorage promises beside the contract of Storage, held against each implementation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hoodie.storage.base import RenamingStorage
from tests.storages import OUTSIDE, RENAMING, paths, write


@pytest.fixture(params=sorted(RENAMING))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> RenamingStorage:
    return RENAMING[request.param](tmp_path)


def test_implementation_satisfies_the_protocol(storage: RenamingStorage) -> None:
    assert isinstance(storage, RenamingStorage)


def test_output_whose_folder_was_renamed_away_fails_when_it_ends(storage: RenamingStorage) -> None:
    def write_while_fenced() -> None:
        with storage.open_output("staging/f") as stream:
            stream.write(b"data")
            storage.rename_folder("staging", "fenced")

    with pytest.raises(FileNotFoundError):
        write_while_fenced()
    assert not storage.exists("staging")
    assert storage.exists("fenced/f")


def test_create_all_makes_each_file_below_the_folder(storage: RenamingStorage) -> None:
    storage.mkdirs("staging/T")
    storage.create_all(
        [("staging/T/f", b"1"), ("staging/T/g", memoryview(b"22")), ("staging/T/a/h", b"")], within="staging/T"
    )
    assert paths(storage, "", recursive=True) == ["staging/T/a/h", "staging/T/f", "staging/T/g"]
    assert [storage.read(f"staging/T/{name}") for name in ("a/h", "f", "g")] == [b"", b"1", b"22"]
    storage.create_all([], within="staging/T")


def test_create_all_neither_replaces_nor_brings_a_folder_back_nor_leaves_it(storage: RenamingStorage) -> None:
    storage.mkdirs("staging/T")
    storage.create_new("staging/T/f", b"other")
    with pytest.raises(FileExistsError):
        storage.create_all([("staging/T/e", b"1"), ("staging/T/f", b"1")], within="staging/T")
    with pytest.raises(ValueError):
        storage.create_all([("staging/T/g", b"1"), ("staging/f", b"1")], within="staging/T")
    assert storage.read("staging/T/f") == b"other"
    storage.rename_folder("staging/T", "staging/fenced")
    with pytest.raises(FileNotFoundError):
        storage.create_all([("staging/T/g", b"1")], within="staging/T")
    with pytest.raises(FileNotFoundError):
        storage.create_all([("staging/T/a/g", b"1")], within="staging/T")
    assert not storage.exists("staging/T")


def test_create_new_via_a_folder_publishes_and_leaves_it_empty(storage: RenamingStorage) -> None:
    storage.mkdirs("staging/T")
    storage.create_new("T.commit", b"data", via="staging/T")
    assert storage.read("T.commit") == b"data"
    assert storage.list("staging/T") == []


def test_create_new_via_a_folder_that_was_renamed_away_publishes_nothing(storage: RenamingStorage) -> None:
    storage.mkdirs("staging/T")
    storage.rename_folder("staging/T", "staging/T.rolled")
    with pytest.raises(FileNotFoundError):
        storage.create_new("new/T.commit", b"data", via="staging/T")
    assert not storage.exists("new")
    assert not storage.exists("staging/T")


def test_fenced_writer_hears_of_the_fence_also_when_the_name_is_taken(storage: RenamingStorage) -> None:
    storage.create_new("T.commit", b"other")
    with pytest.raises(FileNotFoundError):
        storage.create_new("T.commit", b"data", via="staging/T")
    assert storage.read("T.commit") == b"other"


def test_move_new_gives_the_file_its_name_and_keeps_its_mtime(storage: RenamingStorage) -> None:
    write(storage, "staging/f", b"data")
    before = storage.stat("staging/f").mtime_s
    storage.move_new("staging/f", "a/b/f")
    assert storage.read("a/b/f") == b"data"
    assert storage.stat("a/b/f").mtime_s == before
    assert not storage.exists("staging/f")


def test_move_all_new_gives_each_file_its_name(storage: RenamingStorage) -> None:
    for name in ("f", "g", "h"):
        write(storage, f"staging/{name}", name.encode())
    storage.move_all_new([("staging/f", "a/f"), ("staging/g", "a/g"), ("staging/h", "b/h")])
    assert paths(storage, "", recursive=True) == ["a/f", "a/g", "b/h"]
    assert [storage.read(path) for path in ("a/f", "a/g", "b/h")] == [b"f", b"g", b"h"]
    storage.move_all_new([])


def test_move_all_new_stops_at_the_first_name_that_is_taken(storage: RenamingStorage) -> None:
    for name in ("f", "g", "h"):
        write(storage, f"staging/{name}", name.encode())
    storage.create_new("a/g", b"another's")
    with pytest.raises(FileExistsError):
        storage.move_all_new([("staging/f", "a/f"), ("staging/g", "a/g"), ("staging/h", "a/h")])
    assert paths(storage, "", recursive=True) == ["a/f", "a/g", "staging/g", "staging/h"]
    assert storage.read("a/g") == b"another's"


def test_move_new_never_replaces(storage: RenamingStorage) -> None:
    storage.create_new("source", b"mine")
    storage.create_new("target", b"other")
    with pytest.raises(FileExistsError):
        storage.move_new("source", "target")
    assert storage.read("source") == b"mine"
    assert storage.read("target") == b"other"


def test_move_new_of_a_missing_source_is_file_not_found_error(storage: RenamingStorage) -> None:
    storage.create_new("taken", b"x")
    for target in ("taken", "new/target"):
        with pytest.raises(FileNotFoundError):
            storage.move_new("staging/absent", target)
    assert storage.read("taken") == b"x"
    assert not storage.exists("new")


def test_rename_folder_takes_all_along(storage: RenamingStorage) -> None:
    storage.create_new("a/x", b"1")
    storage.create_new("a/b/y", b"2")
    storage.mkdirs("a/empty")
    storage.create_new("ab", b"3")
    storage.rename_folder("a", "new/parent/c")
    assert not storage.exists("a")
    assert paths(storage, "new/parent/c") == ["new/parent/c/b", "new/parent/c/empty", "new/parent/c/x"]
    assert storage.read("new/parent/c/b/y") == b"2"
    assert storage.read("ab") == b"3"


@pytest.mark.parametrize("taken", ["empty", "full", "file"])
def test_rename_folder_never_replaces(storage: RenamingStorage, taken: str) -> None:
    storage.create_new("a/x", b"1")
    storage.mkdirs("empty")
    storage.create_new("full/y", b"2")
    storage.create_new("file", b"3")
    with pytest.raises(FileExistsError):
        storage.rename_folder("a", taken)
    assert storage.read("a/x") == b"1"


def test_rename_folder_that_is_not_there_is_file_not_found_error(storage: RenamingStorage) -> None:
    with pytest.raises(FileNotFoundError):
        storage.rename_folder("absent", "new/a")
    assert not storage.exists("new")


def test_rename_folder_into_itself_is_refused(storage: RenamingStorage) -> None:
    storage.create_new("a/x", b"1")
    with pytest.raises(OSError, match="a/b/c"):
        storage.rename_folder("a", "a/b/c")
    assert storage.read("a/x") == b"1"


def test_open_output_makes_folders_only_below_the_one_that_must_stand(storage):
    storage.mkdirs("staging/t")
    with storage.open_output("staging/t/p/q/f", within="staging/t") as stream:
        stream.write(b"1")
    assert storage.read("staging/t/p/q/f") == b"1"
    storage.rename_folder("staging/t", "staging/t.gone")
    with pytest.raises(FileNotFoundError), storage.open_output("staging/t/p/q/f", within="staging/t"):
        pass
    assert not storage.exists("staging/t")
    with pytest.raises(ValueError, match="does not lie in"), storage.open_output("other/f", within="staging/t.gone"):
        pass


def test_files_are_moved_and_folders_renamed(storage: RenamingStorage) -> None:
    storage.mkdirs("folder")
    storage.create_new("file", b"x")
    with pytest.raises(IsADirectoryError):
        storage.move_new("folder", "other")
    with pytest.raises(NotADirectoryError):
        storage.rename_folder("file", "other")
    assert storage.read("file") == b"x"


@pytest.mark.parametrize("path", OUTSIDE)
def test_path_that_could_leave_the_root_is_refused_everywhere(storage: RenamingStorage, path: str) -> None:
    storage.create_new("f", b"x")
    storage.mkdirs("d")
    acts: list[Callable[[], object]] = [
        lambda: storage.create_new("new", b"x", via=path),
        lambda: storage.move_new(path, "new"),
        lambda: storage.move_new("f", path),
        lambda: storage.rename_folder(path, "new"),
        lambda: storage.rename_folder("d", path),
    ]
    for act in acts:
        with pytest.raises(ValueError) as caught:
            act()
        assert repr(path) in str(caught.value)
    assert {"d", "f"} <= set(paths(storage, ""))
    assert "new" not in paths(storage, "")


def test_the_root_itself_is_never_renamed(storage: RenamingStorage) -> None:
    storage.create_new("d/f", b"x")
    for act in (lambda: storage.rename_folder("", "x"), lambda: storage.rename_folder("d", "")):
        with pytest.raises(ValueError):
            act()
    assert storage.read("d/f") == b"x"
