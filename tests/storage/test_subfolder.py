"""A folder of a storage is a storage."""

import pytest

from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.storage.subfolder import FolderStorage


@pytest.fixture(params=["memory", "local"])
def whole(request, tmp_path):
    return MemoryStorage() if request.param == "memory" else LocalStorage(str(tmp_path))


def test_paths_are_relative_to_the_folder(whole):
    below = FolderStorage(whole, "a/b")
    whole.create_new("a/b/c/d", b"0123456789")
    whole.create_new("a/beside", b"")
    below.create_new("top", b"x")
    assert [info.path for info in below.list("")] == ["c", "top"]
    assert [info.path for info in below.list("", recursive=True)] == ["c/d", "top"]
    assert [info.path for info in below.list("c")] == ["c/d"]
    assert below.list("no such folder") == []
    assert below.names("c") == ["d"]
    assert (below.stat("c/d").path, below.stat("c/d").size_bytes) == ("c/d", 10)
    assert below.read("c/d", 2, 3) == b"234"
    assert whole.read("a/b/top") == b"x"
    with below.open_input("top") as file:
        assert file.read() == b"x"
    assert (below.uri, below.lock_root) == (f"{whole.uri}/a/b", whole.lock_root)


def test_what_is_changed_is_changed_in_the_whole(whole):
    below = FolderStorage(whole, "a")
    with below.open_output("one") as out:
        out.write(b"1")
    below.replace("two", b"2")
    below.mkdirs("sub")
    below.touch("sub/three")
    assert {info.path for info in whole.list("a", recursive=True)} == {"a/one", "a/two", "a/sub/three"}
    below.delete("one")
    below.delete_folder("sub")
    assert [info.path for info in whole.list("a", recursive=True)] == ["a/two"]
    assert below.exists("two")
    assert not below.exists("one")
    with pytest.raises(FileNotFoundError):
        below.read("one")


def test_two_folders_are_two_storages(whole):
    assert FolderStorage(whole, "a").identity == FolderStorage(whole, "a").identity
    assert FolderStorage(whole, "a").identity not in {FolderStorage(whole, "b").identity, whole.identity}
    local = FolderStorage(whole, "a").can.local_root
    assert local == whole.can.local_path("a")
