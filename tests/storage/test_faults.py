"""What each fault leaves behind, and that nothing runs on after a crash."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from hoodie.storage.base import ConditionalStorage, Storage
from hoodie.storage.faults import TEARABLE, Call, Fault, FaultStorage, InjectedFault, Moment, Verb, crash_points
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage
from hoodie.storage.paths import SCRATCH_FOLDER
from tests.bucket import BucketStorage

INNER: dict[str, Callable[[Path], Storage]] = {
    "local": lambda folder: LocalStorage(folder / "table"),
    "memory": lambda folder: MemoryStorage(),
}


@pytest.fixture(params=sorted(INNER))
def inner(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """A storage with a few files and folders in it."""
    storage = INNER[request.param](tmp_path)
    if request.node.callspec.params.get("verb") == "swap" and not isinstance(storage, ConditionalStorage):
        pytest.skip("a disk cannot compare and swap")
    storage.create_new("old", b"old bytes")
    storage.create_new("source", b"source bytes")
    storage.mkdirs("staging")
    for n in range(4):
        storage.create_new(f"folder/{n}", b"x")
    return storage


def write(storage: Storage, path: str, data: bytes) -> None:
    with storage.open_output(path) as stream:
        stream.write(data)


DATA = b"0123456789"
ACTS: dict[Verb, Callable[[Storage], object]] = {
    "create_new": lambda storage: storage.create_new("new", DATA),
    "replace": lambda storage: storage.replace("old", DATA),
    "swap": lambda storage: storage.swap("old", DATA, storage.read_tagged("old")[1]),
    "move_new": lambda storage: storage.move_new("source", "new"),
    "rename_folder": lambda storage: storage.rename_folder("folder", "renamed"),
    "open_output": lambda storage: write(storage, "new", DATA),
    "delete": lambda storage: storage.delete("old"),
    "delete_folder": lambda storage: storage.delete_folder("folder"),
    "mkdirs": lambda storage: storage.mkdirs("made/folder"),
    "touch": lambda storage: storage.touch("new"),
}
PATHS: dict[Verb, str] = {
    "create_new": "new",
    "replace": "old",
    "swap": "old",
    "move_new": "source -> new",
    "rename_folder": "folder -> renamed",
    "open_output": "new",
    "delete": "old",
    "delete_folder": "folder",
    "mkdirs": "made/folder",
    "touch": "new",
}


def files(storage: Storage) -> dict[str, bytes]:
    """Content by path; unfinished files, whose names are chance, as `<scratch>`."""
    shown = {}
    for info in storage.list("", recursive=True):
        name = "<scratch>" if info.path.startswith(f"{SCRATCH_FOLDER}/") else info.path
        assert name not in shown
        shown[name] = storage.read(info.path)
    return shown


def test_every_verb_is_covered_here() -> None:
    assert set(ACTS) == set(PATHS) == set(get_args(Verb)) - {"copy_file", "delete_all", "open_log", "sync_log"}


@pytest.mark.parametrize(("moment", "left"), [("before", "abc"), ("torn", "bc"), ("after", "")])
def test_files_that_are_deleted_together_are_there_or_some_are_gone(moment: Moment, left: str) -> None:
    inner = MemoryStorage()
    for name in "abc":
        inner.create_new(name, b"x")
    storage = FaultStorage(inner, [Fault(1, moment)])
    with pytest.raises(InjectedFault):
        storage.delete_all(["a", "b", "c"])
    assert [(call.verb, call.path) for call in storage.trace] == [("delete_all", "a, b, c")]
    assert list(inner.names("")) == list(left)


@pytest.mark.parametrize(("moment", "left"), [("before", b"one"), ("torn", b"onet"), ("after", b"onetwo")])
def test_what_a_log_syncs_is_there_or_is_not(moment: Moment, left: bytes) -> None:
    inner = MemoryStorage()
    storage = FaultStorage(inner, [Fault(3, moment)])
    output = storage.open_log("log")
    output.write([b"o", memoryview(b"ne")])
    output.sync()
    output.write([b"two"])
    with pytest.raises(InjectedFault):
        output.sync()
    assert [(call.verb, call.path) for call in storage.trace] == [
        ("open_log", "log"),
        ("sync_log", "log"),
        ("sync_log", "log"),
    ]
    assert inner.read("log") == left
    with pytest.raises(InjectedFault):
        output.write([b"three"])
    with pytest.raises(TypeError, match="cannot append"):
        FaultStorage(BucketStorage()).open_log("log")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_copy_is_made_or_is_not(moment: Moment) -> None:
    bucket = BucketStorage()
    bucket.create_new("old", b"old bytes")
    storage = FaultStorage(bucket, [Fault(1, moment)])
    with pytest.raises(InjectedFault):
        storage.copy_file("old", "folder/new")
    assert [(call.verb, call.path) for call in storage.trace] == [("copy_file", "old -> folder/new")]
    assert bucket.exists("folder/new") == (moment == "after")
    storage.revive()
    storage.copy_file("old", "folder/new")
    assert bucket.read("folder/new") == b"old bytes"


@pytest.mark.parametrize("verb", ACTS)
def test_without_a_plan_every_verb_does_its_work_and_is_traced(inner: Storage, verb: Verb) -> None:
    expected = MemoryStorage()
    for path, data in files(inner).items():
        expected.create_new(path, data)
    ACTS[verb](expected)
    storage = FaultStorage(inner)
    ACTS[verb](storage)
    assert files(inner) == files(expected)
    assert storage.trace == (Call(1, verb, PATHS[verb]),)


@pytest.mark.parametrize("verb", ACTS)
def test_crash_before_a_call_leaves_what_was_there(inner: Storage, verb: Verb) -> None:
    before = files(inner)
    crash(inner, verb, "before")
    assert files(inner) == (before | {"new": b""} if verb == "open_output" else before)
    assert not inner.exists("made")
    assert not inner.exists("renamed")


@pytest.mark.parametrize("verb", ACTS)
def test_crash_after_a_call_leaves_its_work_done(inner: Storage, verb: Verb) -> None:
    expected = MemoryStorage()
    for path, data in files(inner).items():
        expected.create_new(path, data)
    ACTS[verb](expected)
    crash(inner, verb, "after")
    assert files(inner) == files(expected)
    assert inner.exists("made/folder") == (verb == "mkdirs")


TORN: dict[Verb, dict[str, bytes]] = {
    "create_new": {"<scratch>": b"01234"},
    "replace": {"<scratch>": b"01234"},
    "move_new": {"new": b"source bytes"},
    "open_output": {"new": b"01234"},
}


@pytest.mark.parametrize("verb", ACTS)
def test_torn_call_leaves_half_of_its_work(inner: Storage, verb: Verb) -> None:
    expected = files(inner) | TORN.get(verb, {})
    if verb == "delete_folder":
        del expected["folder/0"], expected["folder/1"]
    assert (expected != files(inner)) == (verb in TEARABLE)
    crash(inner, verb, "torn")
    assert files(inner) == expected


def crash(inner: Storage, verb: Verb, moment: Moment) -> None:
    storage = FaultStorage(inner, [Fault(1, moment)])
    with pytest.raises(InjectedFault, match=f"{moment} call 1, {verb} {PATHS[verb]}"):
        ACTS[verb](storage)
    assert storage.is_dead
    assert storage.trace == (Call(1, verb, PATHS[verb]),)


@pytest.mark.parametrize(
    ("cut", "left"), [(None, b"01234"), (0, b""), (3, b"012"), (-1, b"012345678"), (10, b"012345678"), (-99, b"")]
)
def test_torn_write_stops_at_the_cut_and_never_at_the_end(inner: Storage, cut: int | None, left: bytes) -> None:
    storage = FaultStorage(inner, [Fault(1, "torn", cut=cut)])
    with pytest.raises(InjectedFault):
        storage.create_new("new", DATA)
    assert files(inner)["<scratch>"] == left


def test_torn_publication_leaves_its_half_in_the_folder_it_went_through(inner: Storage) -> None:
    storage = FaultStorage(inner, [Fault(1, "torn")])
    with pytest.raises(InjectedFault):
        storage.create_new("new", DATA, via="staging")
    (left,) = inner.list("staging")
    assert inner.read(left.path) == b"01234"
    assert not inner.exists("new")


def test_torn_publication_does_not_bring_a_fenced_folder_back(inner: Storage) -> None:
    storage = FaultStorage(inner, [Fault(1, "torn")])
    inner.rename_folder("staging", "fenced")
    with pytest.raises(InjectedFault):
        storage.create_new("new", DATA, via="staging")
    assert not inner.exists("staging")


@pytest.mark.parametrize("moment", get_args(Moment))
def test_crash_hides_what_the_call_itself_would_have_said(inner: Storage, moment: Moment) -> None:
    before = files(inner)
    for act in (
        lambda storage: storage.move_new("source", "old"),
        lambda storage: storage.move_new("absent", "new"),
        lambda storage: storage.delete_folder("absent"),
    ):
        storage = FaultStorage(inner, [Fault(1, moment)])
        with pytest.raises(InjectedFault):
            act(storage)
    assert files(inner) == before


def test_the_nth_call_fails_and_reads_are_not_counted(inner: Storage) -> None:
    storage = FaultStorage(inner, [Fault(3)])
    storage.create_new("a", b"1")
    storage.read("a")
    storage.list("")
    storage.exists("b")
    storage.now_s()
    storage.replace("a", b"2")
    with pytest.raises(InjectedFault):
        storage.create_new("b", b"3")
    assert [call.n for call in storage.trace] == [1, 2, 3]
    assert (inner.read("a"), inner.exists("b")) == (b"2", False)


def test_output_counts_when_its_block_ends(inner: Storage) -> None:
    storage = FaultStorage(inner)
    with storage.open_output("first") as stream:
        stream.write(b"x")
        storage.create_new("second", b"y")
    assert storage.trace == (Call(1, "create_new", "second"), Call(2, "open_output", "first"))


def test_failed_call_of_the_inner_storage_counts_and_is_told(inner: Storage) -> None:
    storage = FaultStorage(inner)
    with pytest.raises(FileExistsError):
        storage.create_new("old", b"x")
    assert storage.trace == (Call(1, "create_new", "old"),)
    assert not storage.is_dead


def test_dead_process_does_nothing_until_it_is_revived(inner: Storage) -> None:
    storage = FaultStorage(inner, [Fault(1)])
    with pytest.raises(InjectedFault):
        storage.touch("new")
    left = files(inner)
    reads: list[Callable[[Storage], object]] = [
        lambda dead: dead.read("old"),
        lambda dead: dead.open_input("old"),
        lambda dead: dead.list(""),
        lambda dead: dead.stat("old"),
        lambda dead: dead.exists("old"),
        lambda dead: dead.now_s(),
    ]
    for act in [*reads, *ACTS.values()]:
        with pytest.raises(InjectedFault, match="died at call 1, touch new"):
            act(storage)
    assert files(inner) == left
    assert storage.uri == inner.uri
    storage.revive()
    assert not storage.is_dead
    assert storage.trace == ()
    assert storage.read("old") == b"old bytes"
    storage.touch("new")
    assert storage.trace == (Call(1, "touch", "new"),)


def test_revived_process_meets_the_faults_of_its_new_plan(inner: Storage) -> None:
    storage = FaultStorage(inner, [Fault(1), Fault(2)])
    with pytest.raises(InjectedFault):
        storage.touch("new")
    storage.revive([Fault(3)])
    storage.touch("new")
    storage.touch("new")
    with pytest.raises(InjectedFault, match="call 3"):
        storage.touch("new")


def test_clean_up_code_cannot_catch_a_crash(inner: Storage) -> None:
    storage = FaultStorage(inner, [Fault(1, "torn")])
    cleaned = []

    def commit() -> None:
        try:
            storage.create_new("new", DATA)
        except Exception:
            cleaned.append("no")
            raise

    with pytest.raises(InjectedFault):
        commit()
    assert cleaned == []


def test_output_open_during_a_crash_keeps_what_was_written(inner: Storage) -> None:
    storage = FaultStorage(inner, [Fault(1)])

    def stream_and_die() -> None:
        with storage.open_output("new") as stream:
            stream.write(b"half")
            storage.touch("other")

    with pytest.raises(InjectedFault, match="call 1, touch other"):
        stream_and_die()
    assert inner.read("new") == b"half"


@pytest.mark.parametrize("moment", get_args(Moment))
@pytest.mark.parametrize("verb", ACTS)
def test_error_strikes_once_and_life_goes_on(inner: Storage, verb: Verb, moment: Moment) -> None:
    storage = FaultStorage(inner, [Fault(1, moment, error_number=errno.EIO)])
    with pytest.raises(OSError, match=f"injected {moment} call 1, {verb}") as caught:
        ACTS[verb](storage)
    assert caught.value.errno == errno.EIO
    assert not storage.is_dead
    storage.create_new("next", b"x")
    assert [call.n for call in storage.trace] == [1, 2]
    assert inner.read("next") == b"x"


def test_error_is_of_the_class_that_its_number_has_in_python(inner: Storage) -> None:
    storage = FaultStorage(inner, [Fault(1, error_number=errno.EACCES)])
    with pytest.raises(PermissionError):
        storage.touch("new")


def test_crash_points_are_two_for_each_call_and_three_where_it_tears(inner: Storage) -> None:
    storage = FaultStorage(inner)
    storage.create_new("new", DATA)
    storage.delete("new")
    assert list(crash_points(storage.trace)) == [
        Fault(1, "before"),
        Fault(1, "torn"),
        Fault(1, "after"),
        Fault(2, "before"),
        Fault(2, "after"),
    ]


def test_plan_that_could_not_strike_is_refused(inner: Storage) -> None:
    with pytest.raises(ValueError, match="from 1"):
        Fault(0)
    with pytest.raises(ValueError, match=r"\[2, 2\]"):
        FaultStorage(inner, [Fault(2), Fault(2, "after")])
