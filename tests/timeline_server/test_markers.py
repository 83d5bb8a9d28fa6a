"""Markers that a server gathers into a few files, as Apache Hudi's own server writes them."""

import json
import threading

import pytest

import hoodie.timeline_server
from hoodie.publish.marker_files import encode_markers, read_marker_files
from hoodie.storage.memory import MemoryStorage
from hoodie.timeline_server.markers import MarkerFolders, marker_folder
from tests.timeline_server.asking import Asking, made

FOLDER = ".hoodie/.temp/20260101000000000"


def test_a_marker_is_on_storage_when_it_is_answered():
    storage = MemoryStorage()
    markers = MarkerFolders(storage)
    assert not markers.exists(FOLDER)
    assert markers.create(FOLDER, "a/x.parquet.marker.CREATE")
    assert storage.read(f"{FOLDER}/MARKERS.type") == b"TIMELINE_SERVER_BASED"
    assert storage.read(f"{FOLDER}/MARKERS0") == b"a/x.parquet.marker.CREATE\n"
    assert not markers.create(FOLDER, "a/x.parquet.marker.CREATE")
    assert markers.create(FOLDER, "a/.y.log.1_0-0-0.marker.APPEND")
    assert markers.append(FOLDER) == ["a/.y.log.1_0-0-0.marker.APPEND"]
    assert markers.create_and_merge(FOLDER) == ["a/x.parquet.marker.CREATE"]
    assert markers.all(FOLDER) == sorted([*markers.append(FOLDER), *markers.create_and_merge(FOLDER)])


def test_a_server_that_starts_later_goes_on_with_the_files_there_are():
    storage = MemoryStorage()
    names = [f"a/{n}.parquet.marker.CREATE" for n in range(50)]
    first = MarkerFolders(storage)
    assert all(first.create(FOLDER, name) for name in names)
    second = MarkerFolders(storage)
    assert second.all(FOLDER) == sorted(names)
    assert not second.create(FOLDER, names[0])
    assert second.create(FOLDER, "a/new.parquet.marker.CREATE")
    found = [name for each in read_marker_files(storage, FOLDER).values() for name in each]
    assert sorted(found) == sorted([*names, "a/new.parquet.marker.CREATE"])


def test_markers_that_come_at_the_same_time_share_files():
    storage = MemoryStorage()
    markers = MarkerFolders(storage)
    made = []

    def create(number):
        for n in range(20):
            made.append((markers.create(FOLDER, f"a/{number}-{n}.marker.CREATE"), markers.create(FOLDER, "a/same")))

    threads = [threading.Thread(target=create, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert all(mine for mine, _ in made)
    assert sum(same for _, same in made) == 1
    files = read_marker_files(storage, FOLDER)
    assert len(files) <= 20
    assert sorted(name for each in files.values() for name in each) == markers.all(FOLDER)
    assert len(markers.all(FOLDER)) == 161


class FullStorage(MemoryStorage):
    is_full = False

    def replace(self, path, data):
        if self.is_full:
            raise OSError("full")
        super().replace(path, data)


def test_a_marker_that_could_not_be_written_was_not_made():
    storage = FullStorage()
    markers = MarkerFolders(storage)
    assert markers.create(FOLDER, "a/one")
    storage.is_full = True
    with pytest.raises(OSError, match="full"):
        markers.create(FOLDER, "a/two")
    storage.is_full = False
    assert markers.all(FOLDER) == ["a/one"]
    assert markers.create(FOLDER, "a/two")
    assert MarkerFolders(storage).all(FOLDER) == ["a/one", "a/two"]


def test_a_folder_that_was_deleted_has_none():
    storage = MemoryStorage()
    markers = MarkerFolders(storage)
    markers.create(FOLDER, "a/one")
    assert markers.delete(FOLDER)
    assert not markers.delete(FOLDER)
    assert markers.all(FOLDER) == []
    assert markers.create(FOLDER, "a/one")


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "x" * 5000])
def test_a_name_has_one_line(name):
    with pytest.raises(ValueError, match="one line"):
        MarkerFolders(MemoryStorage()).create(FOLDER, name)


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        (FOLDER, True),
        (".hoodie/.temp", False),
        (".hoodie/.temp/..", False),
        (".hoodie/.temp/2026/x", False),
        (".hoodie", False),
        ("a/b", False),
        ("", False),
    ],
)
def test_only_folders_of_markers_are_touched(path, is_one):
    assert (marker_folder(path) is not None) is is_one


def test_names_are_read_as_they_were_written():
    storage = MemoryStorage()
    storage.create_new(f"{FOLDER}/MARKERS7", encode_markers(["ä/x", "b/y"]))
    storage.create_new(f"{FOLDER}/MARKERS.type", b"TIMELINE_SERVER_BASED")
    assert read_marker_files(storage, FOLDER) == {7: ["ä/x", "b/y"]}


def test_markers_by_requests(tmp_path):
    table = made(tmp_path)
    with hoodie.timeline_server.start(table._context.storage.uri) as server:
        asking = Asking(server, table)
        folder = {"markerdirpath": f"{asking.path}/{FOLDER}"}

        def ask(method, name, **more):
            answer = asking.request(method, f"/v1/hoodie/marker/{name}", **folder, **more)
            assert answer.status == 200, answer.data
            return json.loads(answer.data)

        assert ask("GET", "dir/exists") is False
        assert ask("POST", "create", markername="a/x.marker.CREATE") is True
        assert ask("POST", "create", markername="a/x.marker.CREATE") is False
        assert ask("POST", "create", markername="a/y.marker.APPEND") is True
        assert ask("GET", "dir/exists") is True
        assert ask("GET", "all") == ["a/x.marker.CREATE", "a/y.marker.APPEND"]
        assert ask("GET", "create-and-merge") == ["a/x.marker.CREATE"]
        assert ask("GET", "append") == ["a/y.marker.APPEND"]
        assert ask("POST", "dir/delete") is True
        assert ask("GET", "all") == []
        assert asking.request("POST", "/v1/hoodie/marker/create", **folder).status == 500
        assert asking.request("DELETE", "/v1/hoodie/marker/all", **folder).status == 404
        elsewhere = {"markerdirpath": str(tmp_path / "other" / FOLDER)}
        assert asking.request("POST", "/v1/hoodie/marker/dir/delete", **elsewhere).status == 400
