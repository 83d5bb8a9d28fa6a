"""Markers that a server gathers into a few files, as Apache Hudi's own server writes them."""

import errno
import json
import signal
import subprocess
import sys
import threading
import uuid
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
import urllib3

import hoodie.timeline_server
from hoodie.model.instant import next_instant
from hoodie.model.names import name_of
from hoodie.publish.marker_files import encode_markers, read_marker_files
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.storage.memory import MemoryStorage
from hoodie.timeline_server.markers import MarkerFolders, marker_folder
from tests.bucket import BucketStorage
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


NAMES = [f"a/{n}.parquet.marker.CREATE" for n in range(6)]


class OneThenAll(FaultStorage):
    """The first marker is being written until all others wait, or have failed: they come in one batch."""

    markers: MarkerFolders
    answers: dict[str, object]
    begun: threading.Event

    def replace(self, path, data):
        if path.endswith("/MARKERS0"):
            self.begun.set()
            while len(self.markers._of(FOLDER).pending) + len(self.answers) < len(NAMES):
                """Others come."""
        super().replace(path, data)


def asked_at_once(storage):
    """Ask for all markers; what became of each."""
    storage.markers = MarkerFolders(storage)
    answers = storage.answers = {}
    storage.begun = threading.Event()

    def create(name):
        try:
            answers[name] = storage.markers.create(FOLDER, name)
        except (InjectedFault, OSError) as exc:
            answers[name] = exc
        storage.begun.set()

    threads = [threading.Thread(target=create, args=(name,)) for name in NAMES]
    for each in threads:
        each.start()
        storage.begun.wait()
    for each in threads:
        each.join()
    return answers


def on_storage(storage):
    return [name for each in read_marker_files(storage, FOLDER).values() for name in each]


@pytest.mark.parametrize("error", [None, errno.EIO])
@pytest.mark.parametrize("kind", [MemoryStorage, BucketStorage])
def test_a_server_that_dies_at_any_call_has_every_marker_that_it_has_answered_and_the_next_one_goes_on(kind, error):
    traced = OneThenAll(kind())
    assert all(answer is True for answer in asked_at_once(traced).values())
    assert [name_of(call.path) for call in traced.trace if call.verb == "replace"] == [
        *("MARKERS.type", "MARKERS0", "MARKERS1")
    ], "five of the six came in one batch"
    for fault in crash_points(traced.trace):
        storage = kind()
        answers = asked_at_once(OneThenAll(storage, [replace(fault, error_number=error)]))
        made = {name for name, answer in answers.items() if answer is True}
        assert made != set(NAMES) or error is not None, fault
        found = on_storage(storage)
        assert made <= set(found) <= set(NAMES), fault
        assert len(found) == len(set(found)), fault
        after = MarkerFolders(storage)
        assert after.all(FOLDER) == sorted(found), fault
        assert {name for name in NAMES if not after.create(FOLDER, name)} == set(found), fault
        assert sorted(on_storage(storage)) == NAMES, fault
        assert storage.read(f"{FOLDER}/MARKERS.type") == b"TIMELINE_SERVER_BASED"


def test_a_server_that_is_killed_in_a_batch_leaves_markers_for_the_rollback_and_the_next_server(tmp_path):
    table = made(tmp_path)
    rows = table.scan().to_arrow()
    storage = table._context.storage
    instant = next_instant(datetime(2026, 11, 25, tzinfo=UTC), table.timeline.commits[-1].time)
    for state in ("requested", "inflight"):
        storage.create_new(f".hoodie/{instant}.deltacommit.{state}", b"")
    folder = f".hoodie/.temp/{instant}"
    command = [sys.executable, "-m", "hoodie", "timeline-server", storage.uri, "--json"]
    answered = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        said = json.loads(process.stdout.readline())
        asking = Asking(SimpleNamespace(**said), table)
        where = {"markerdirpath": f"{asking.path}/{folder}"}

        def write(number):
            """As a task of Apache Hudi does it: first the marker, then the file."""
            with suppress(urllib3.exceptions.HTTPError):
                for n in range(1000):
                    name = f"a/{uuid.uuid4()}-0_{number}-{n}-0_{instant}.parquet"
                    asking.request("POST", "/v1/hoodie/marker/create", **where, markername=f"{name}.marker.CREATE")
                    storage.create_new(name, b"begun", durable=False)
                    answered.append(name)
                    if len(answered) == 40:
                        process.kill()

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert process.wait() == -signal.SIGKILL
    assert 40 <= len(answered) < 4000
    with hoodie.timeline_server.start(storage.uri) as server:
        answer = Asking(server, table).request("GET", "/v1/hoodie/marker/create-and-merge", **where)
        assert {f"{name}.marker.CREATE" for name in answered} <= set(json.loads(answer.data))
    table.rollback()
    assert not any(storage.exists(name) for name in answered)
    assert not storage.exists(folder)
    assert table.scan().to_arrow().equals(rows)
    assert not table.timeline.pending()


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
