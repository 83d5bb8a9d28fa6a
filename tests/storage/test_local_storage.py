"""What a local disk adds to the promises of every Storage: twins, modes, links, processes that die."""

from __future__ import annotations

import errno
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC
from pathlib import Path

import pyarrow as pa
import pytest

from hoodie.model.instant import format_instant
from hoodie.storage.local import LocalStorage
from hoodie.storage.local_files import link_new
from hoodie.storage.paths import SCRATCH_FOLDER
from hoodie.timeline.clock import Clock

OTHER_FILE_SYSTEM = Path("/dev/shm")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "table"


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    return LocalStorage(root)


def write(storage: LocalStorage, path: str, data: bytes) -> None:
    with storage.open_output(path) as stream:
        stream.write(data)


def test_mtimes_are_cut_as_hudi_cuts_them_and_not_rounded(root: Path, storage: LocalStorage) -> None:
    write(storage, "f", b"")
    of_a_completion = [1_764_137_169_297_999_999, 1_764_137_169_297_999_500, 1_764_137_169_297_000_000]
    for mtime_ns in of_a_completion:
        os.utime(root / "f", ns=(mtime_ns, mtime_ns))
        wall = Clock(storage.now_s, UTC).wall(storage.stat("f").mtime_s)
        assert format_instant(wall) == "20251126060609297"


def test_root_is_absolute_and_survives_pickling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    storage = LocalStorage("table")
    assert storage.uri == str(tmp_path / "table")
    storage.create_new("f", b"x")
    monkeypatch.chdir("/")
    again = pickle.loads(pickle.dumps(storage))
    assert again.uri == storage.uri
    assert again.read("f") == b"x"


def test_local_path_is_where_the_system_finds_the_file(storage: LocalStorage, root: Path) -> None:
    assert storage.can.local_path("a/b") == str(root / "a/b")
    assert storage.can.local_path("") == str(root)


MAKE_FILE: dict[str, Callable[[LocalStorage], object]] = {
    "create_new": lambda storage: storage.create_new("p/f", b"new"),
    "replace": lambda storage: storage.replace("p/f", b"new"),
    "open_output": lambda storage: write(storage, "p/f", b"new"),
    "move_new": lambda storage: storage.move_new("source", "p/f"),
    "touch": lambda storage: storage.touch("p/f"),
}


@pytest.mark.parametrize("verb", sorted(MAKE_FILE))
def test_stale_checksum_twin_goes_when_a_file_is_made(storage: LocalStorage, root: Path, verb: str) -> None:
    storage.create_new("source", b"data")
    storage.create_new("p/.f.crc", b"stale")
    storage.create_new("p/.other.crc", b"good")
    MAKE_FILE[verb](storage)
    assert sorted(os.listdir(root / "p")) == [".other.crc", "f"]


@pytest.mark.parametrize("verb", ["replace", "delete", "move away"])
def test_checksum_twin_goes_with_the_file_it_was_for(storage: LocalStorage, root: Path, verb: str) -> None:
    storage.create_new("p/f", b"old")
    storage.create_new("p/.f.crc", b"of old")
    acts: dict[str, Callable[[], object]] = {
        "replace": lambda: storage.replace("p/f", b"new"),
        "delete": lambda: storage.delete("p/f"),
        "move away": lambda: storage.move_new("p/f", "elsewhere"),
    }
    acts[verb]()
    assert os.listdir(root / "p") == (["f"] if verb == "replace" else [])


def test_stale_twin_of_a_missing_file_goes_with_its_deletion(storage: LocalStorage) -> None:
    storage.create_new("p/.f.crc", b"stale")
    storage.delete("p/f")
    assert storage.list("p") == []


def test_loser_leaves_the_winners_twin_alone(storage: LocalStorage) -> None:
    storage.create_new("source", b"data")
    storage.create_new("p/f", b"of another writer")
    storage.create_new("p/.f.crc", b"its twin")
    for verb in ("create_new", "open_output", "move_new"):
        with pytest.raises(FileExistsError):
            MAKE_FILE[verb](storage)
    storage.touch("p/f")
    assert storage.read("p/.f.crc") == b"its twin"


@pytest.fixture(params=[0o022, 0o027, 0o002])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_files_and_folders_get_the_modes_of_the_umask(storage: LocalStorage, root: Path, umask: int) -> None:
    storage.create_new("created", b"x")
    storage.replace("replaced", b"x")
    storage.touch("touched")
    write(storage, "staging/moved", b"x")
    storage.move_new("staging/moved", "p/moved")
    for name in ("created", "replaced", "touched", "p/moved"):
        assert stat.S_IMODE((root / name).stat().st_mode) == 0o666 & ~umask
    for name in ("p", SCRATCH_FOLDER):
        assert stat.S_IMODE((root / name).stat().st_mode) == 0o777 & ~umask


def test_failed_write_leaves_nothing_in_scratch(storage: LocalStorage) -> None:
    not_bytes: bytes = "text"  # type: ignore[assignment]
    for act in (storage.create_new, storage.replace):
        with pytest.raises(TypeError):
            act("f", not_bytes)
    assert storage.list("", recursive=True) == []


@pytest.mark.skipif(
    not OTHER_FILE_SYSTEM.is_dir() or not os.access(OTHER_FILE_SYSTEM, os.W_OK), reason="needs a second file system"
)
def test_table_over_two_file_systems_is_refused_with_a_reason(
    storage: LocalStorage, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = OTHER_FILE_SYSTEM / tmp_path_factory.mktemp("elsewhere").name / str(os.getpid())
    elsewhere.mkdir(parents=True)
    if elsewhere.stat().st_dev == root.parent.stat().st_dev:
        pytest.skip("needs a second file system")
    try:
        write(storage, "source", b"data")
        with pytest.raises(OSError, match="one file system that has hard links") as caught:
            link_new(str(root / "source"), str(elsewhere / "f"))  # as where a folder of the table is a mount point
        assert caught.value.errno == errno.EXDEV
        assert os.listdir(elsewhere) == []
        assert [info.path for info in storage.list("", recursive=True)] == ["source"]
    finally:
        elsewhere.rmdir()
        elsewhere.parent.rmdir()


def test_folder_deletion_stops_at_links(storage: LocalStorage, root: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_bytes(b"x")
    storage.mkdirs("a/b")
    os.symlink(kept, root / "a/b/link")
    os.symlink(kept, root / "link")
    with pytest.raises(NotADirectoryError):
        storage.delete_folder("link")
    storage.delete_folder("a")
    assert not storage.exists("a")
    assert (kept / "file").read_bytes() == b"x"


def test_listing_leaves_out_what_vanishes_meanwhile(storage: LocalStorage) -> None:
    storage.create_new("p/stays", b"x")

    def come_and_go() -> None:
        for n in range(50):
            write(storage, f"p/{n}/f", b"x")
            storage.delete_folder(f"p/{n}")

    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(come_and_go)
        while not going.done():
            assert "p/stays" in [info.path for info in storage.list("p", recursive=True)]
        going.result()


def test_two_may_delete_one_folder_at_once(storage: LocalStorage) -> None:
    for n in range(200):
        storage.touch(f"p/{n % 20}/{n}")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(storage.delete_folder, ["p", "p"]))
    assert not storage.exists("p")


WRITE_UNTIL_KILLED = """
import itertools, sys
from hoodie.storage.local import LocalStorage
storage = LocalStorage(sys.argv[1])
for n in itertools.count():
    storage.create_new(f"p/created{n}", b"x" * 300_000)
    storage.replace("p/replaced", b"y" * 300_000)
    print(n, flush=True)
"""


def test_killed_writer_leaves_whole_files_and_scratch_only(storage: LocalStorage, root: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WRITE_UNTIL_KILLED, str(root)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        assert process.stdout is not None
        for _ in range(5):
            assert process.stdout.readline()
        process.kill()
    published = storage.list("p", recursive=True)
    assert len(published) > 5
    assert {info.size_bytes for info in published} == {300_000}
    outside = [info.path for info in storage.list("", recursive=True) if not info.path.startswith("p/")]
    assert all(path.startswith(f"{SCRATCH_FOLDER}/.") for path in outside)


# -- interleavings: the audit hook acts right before the system call that it is told

INTERLEAVED = """
import os, sys
from hoodie.storage.local import LocalStorage
root, event = sys.argv[1], sys.argv[2]
storage = LocalStorage(root)
storage.mkdirs("staging/T")
armed = True
def act_once(name, args):
    global armed
    if armed and name == event and not (name == "os.remove" and str(args[0]).endswith(".crc")):
        armed = False
        if "fence" in sys.argv:
            os.rename(root + "/staging/T", root + "/staging/T.fenced")
        if "link" in sys.argv:
            os.link(args[0], args[1])
def attempt(act):
    sys.addaudithook(act_once)
    try:
        act()
    except OSError as exc:
        print(type(exc).__name__)
    else:
        print("done")
"""
CREATE = "attempt(lambda: storage.create_new('p/f', b'data', via='staging/T'))"
MOVE = """
with storage.open_output("staging/T/f") as stream:
    stream.write(b"data")
attempt(lambda: storage.move_new("staging/T/f", "p/f"))
"""


def run_interleaved(root: Path, act: str, event: str, deed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", INTERLEAVED + act, str(root), event, deed],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.stdout.strip()


@pytest.mark.parametrize("act", [CREATE, MOVE], ids=["create_new", "move_new"])
def test_fence_between_writing_and_linking_publishes_nothing(storage: LocalStorage, root: Path, act: str) -> None:
    assert run_interleaved(root, act, "os.link", "fence") == "FileNotFoundError"
    assert not storage.exists("p/f")
    assert [info.path for info in storage.list("staging")] == ["staging/T.fenced"]


@pytest.mark.parametrize("act", [CREATE, MOVE], ids=["create_new", "move_new"])
def test_fence_after_linking_comes_too_late_and_the_writer_hears_success(
    storage: LocalStorage, root: Path, act: str
) -> None:
    assert run_interleaved(root, act, "os.remove", "fence") == "done"
    assert storage.read("p/f") == b"data"
    assert not storage.exists("staging/T")


def test_link_that_was_made_though_the_server_denies_it_counts_as_won(storage: LocalStorage, root: Path) -> None:
    assert run_interleaved(root, CREATE, "os.link", "link") == "done"
    assert storage.read("p/f") == b"data"
    assert storage.list("staging/T") == []


def test_names_of_a_folder_that_comes_while_it_is_looked_for(tmp_path, monkeypatch):
    storage, scandir = LocalStorage(tmp_path), os.scandir

    def misses_it(path):
        monkeypatch.setattr(os, "scandir", scandir)
        storage.create_new("a/f", b"")
        raise FileNotFoundError(path)

    monkeypatch.setattr(os, "scandir", misses_it)
    assert storage.names("a") == ["f"]


def test_small_files_are_read_at_once_and_large_ones_mapped(storage: LocalStorage) -> None:
    for name, data, kind in (("small", b"rows", pa.BufferReader), ("large", b"rows" * 10_000, pa.MemoryMappedFile)):
        write(storage, name, data)
        with storage.open_input(name) as source:
            assert (type(source), source.read()) == (kind, data)


def test_a_file_that_cannot_be_mapped_is_named(
    storage: LocalStorage, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow's error has its path in the text alone."""

    def refuse(path: str, mode: str) -> None:
        raise OSError(errno.EACCES, f"Failed to open local file '{path}'")

    write(storage, "file", b"rows" * 10_000)
    monkeypatch.setattr(pa, "memory_map", refuse)
    with pytest.raises(PermissionError) as caught:
        storage.open_input("file")
    assert caught.value.filename == str(root / "file")
