"""What every Storage promises, held against each implementation."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.storage.base import Storage
from hoodie.storage.local import LocalStorage
from tests.storages import EVERY, FOLDERED, OUTSIDE, paths, takes_name, write


@pytest.fixture(params=sorted(EVERY))
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    return EVERY[request.param](tmp_path)


with_folders = pytest.mark.parametrize("storage", sorted(FOLDERED), indirect=True)
"""What only storages with folders promise, which may be empty."""


def test_implementation_satisfies_the_protocol(storage: Storage) -> None:
    assert isinstance(storage, Storage)


def test_a_file_has_one_identity_until_another_one_stands_there(storage: Storage) -> None:
    storage.create_new("a/f", b"1")
    first = storage.stat("a/f").identity
    assert [info.identity for info in storage.list("a")] == [first]
    storage.replace("a/f", b"2")
    second = storage.stat("a/f").identity
    storage.delete("a/f")
    storage.create_new("a/f", b"22")
    assert len({first, second, storage.stat("a/f").identity}) == 3
    assert {storage.identity} == {storage.identity}


# -- reading


def test_nothing_is_there_before_the_first_write(storage: Storage) -> None:
    assert not storage.exists("")
    assert storage.list("") == []
    assert storage.list("a/b", recursive=True) == []


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (3, 4, b"3456"),
        (8, 100, b"89"),
        (10, None, b""),
        (99, 5, b""),
        (0, 0, b""),
    ],
)
def test_read_gives_the_range_as_far_as_it_is_there(
    storage: Storage, offset: int, length: int | None, expected: bytes
) -> None:
    storage.create_new("f", b"0123456789")
    assert storage.read("f", offset, length) == expected


@pytest.mark.parametrize(("offset", "length"), [(-1, None), (0, -1)])
def test_read_refuses_a_negative_range(storage: Storage, offset: int, length: int) -> None:
    storage.create_new("f", b"x")
    with pytest.raises(ValueError, match="'f'"):
        storage.read("f", offset, length)


@pytest.mark.parametrize("path", ["absent", "no/folder/absent", "file/below"])
def test_missing_file_is_file_not_found_error(storage: Storage, path: str) -> None:
    storage.create_new("file", b"x")
    with pytest.raises(FileNotFoundError):
        storage.read(path)
    with pytest.raises(FileNotFoundError):
        storage.open_input(path)
    with pytest.raises(FileNotFoundError):
        storage.stat(path)
    assert not storage.exists(path)
    storage.delete(path)
    assert storage.list(path) == []


@with_folders
def test_a_folder_is_no_file(storage: Storage) -> None:
    storage.mkdirs("folder")
    for act in (
        lambda: storage.read("folder"),
        lambda: storage.open_input("folder"),
        lambda: storage.replace("folder", b"x"),
        lambda: storage.delete("folder"),
        lambda: storage.touch("folder"),
    ):
        with pytest.raises(IsADirectoryError):
            act()
    with pytest.raises(FileExistsError):
        storage.create_new("folder", b"x")
    with pytest.raises(FileExistsError), storage.open_output("folder"):
        pass


@with_folders
def test_a_file_is_no_folder(storage: Storage) -> None:
    storage.create_new("file", b"x")
    for act in (
        lambda: storage.list("file"),
        lambda: storage.names("file"),
        lambda: storage.delete_folder("file"),
        lambda: storage.create_new("file/below", b"x"),
        lambda: storage.replace("file/below", b"x"),
        lambda: storage.touch("file/below"),
        lambda: storage.mkdirs("file/below"),
    ):
        with pytest.raises(NotADirectoryError):
            act()
    with pytest.raises(FileExistsError):
        storage.mkdirs("file")
    assert storage.read("file") == b"x"


def test_input_is_seekable_and_ends(storage: Storage) -> None:
    storage.create_new("f", b"0123456789")
    storage.create_new("empty", b"")
    with storage.open_input("f") as stream:
        stream.seek(4)
        assert stream.read(2) == b"45"
        assert stream.size() == 10
    with storage.open_input("empty") as stream:
        assert stream.read() == b""


def test_parquet_written_into_an_output_reads_back(storage: Storage) -> None:
    table = pa.table({"key": ["a", "b"], "value": [1, 2]})
    with storage.open_output("staging/f.parquet") as stream:
        pq.write_table(table, stream)
    with storage.open_input("staging/f.parquet") as source:
        assert pq.read_table(source).equals(table)


@pytest.mark.parametrize("rows", [2, 600_000])
def test_arrow_batches_written_into_an_output_read_back(storage: Storage, rows: int) -> None:
    """Many rows go in parts to an object store, as buffers that Arrow hands over uncopied."""
    table = pa.table({"key": range(rows), "value": range(rows)})
    with storage.open_output("f.arrow") as stream, pa.ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
    with storage.open_input("f.arrow") as source:
        assert pa.ipc.open_file(source).read_all().equals(table)


# -- streaming out


def test_output_closed_by_the_writer_is_kept(storage: Storage) -> None:
    with storage.open_output("f") as stream:
        stream.write(b"whole")
        stream.close()
    assert storage.read("f") == b"whole"


def test_output_refuses_a_taken_name(storage: Storage) -> None:
    storage.create_new("f", b"first")
    with pytest.raises(FileExistsError), storage.open_output("f"):
        pass
    assert storage.read("f") == b"first"


@with_folders
def test_output_is_exclusive_from_the_moment_it_opens(storage: Storage) -> None:
    with storage.open_output("f") as stream:
        stream.write(b"first")
        with pytest.raises(FileExistsError), storage.open_output("f"):
            pass
    assert storage.read("f") == b"first"


@with_folders
def test_output_left_by_an_exception_keeps_what_was_written(storage: Storage) -> None:
    def write_half() -> None:
        with storage.open_output("a/f") as stream:
            stream.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert storage.read("a/f") == b"half"


@with_folders
@pytest.mark.parametrize("another_takes_the_name", [False, True])
def test_output_that_was_deleted_while_open_fails_when_it_ends(storage: Storage, another_takes_the_name: bool) -> None:
    def write_while_deleted() -> None:
        with storage.open_output("f") as stream:
            stream.write(b"data")
            storage.delete("f")
            if another_takes_the_name:
                storage.create_new("f", b"another's")

    with pytest.raises(FileNotFoundError):
        write_while_deleted()
    assert not storage.exists("f") or storage.read("f") == b"another's"


# -- publishing


def test_create_new_publishes_the_bytes_and_makes_parents(storage: Storage) -> None:
    storage.create_new("a/b/c", b"data")
    assert storage.read("a/b/c") == b"data"
    assert storage.stat("a/b/c")[:2] == ("a/b/c", 4)


def test_published_bytes_are_a_copy_of_any_buffer(storage: Storage) -> None:
    data = bytearray(b"data")
    storage.create_new("created", data)
    storage.replace("replaced", memoryview(data))
    write(storage, "written", data)
    data[0] = 0
    assert [storage.read(path) for path in ("created", "replaced", "written")] == [b"data"] * 3


def test_create_new_never_replaces(storage: Storage) -> None:
    storage.create_new("f", b"first")
    with pytest.raises(FileExistsError):
        storage.create_new("f", b"second")
    assert storage.read("f") == b"first"


def test_create_new_leaves_no_other_file(storage: Storage) -> None:
    storage.create_new("f", b"first")
    with pytest.raises(FileExistsError):
        storage.create_new("f", b"second")
    storage.replace("f", b"third")
    assert paths(storage, "", recursive=True) == ["f"]


def test_replace_puts_a_whole_file_whether_or_not_one_was_there(storage: Storage) -> None:
    storage.replace("a/f", b"first, and longer")
    storage.replace("a/f", b"second")
    assert storage.read("a/f") == b"second"


def test_reader_that_opened_before_a_replace_keeps_the_old_file(storage: Storage) -> None:
    storage.replace("f", b"old")
    with storage.open_input("f") as stream:
        storage.replace("f", b"new content")
        assert stream.read() == b"old"


def test_what_need_not_last_is_there_for_everybody_all_the_same(storage: Storage) -> None:
    storage.create_new("a/f", b"data", durable=False)
    assert storage.read("a/f") == b"data"
    with pytest.raises(FileExistsError):
        storage.create_new("a/f", b"other", durable=False)


def test_names_are_those_of_the_files_in_a_folder(storage: Storage) -> None:
    for path in ("f", "a/g", "a/h", "a/b/i"):
        storage.create_new(path, b"")
    storage.mkdirs("a/empty")
    assert sorted(storage.names("")) == ["f"]
    assert sorted(storage.names("a")) == ["g", "h"]
    assert list(storage.names("a/empty")) == list(storage.names("absent")) == list(storage.names("f/below")) == []


# -- folders and listings


def test_list_gives_files_and_folders_sorted_by_path(storage: Storage) -> None:
    for path in ("p/b", "p/a-b", "p/a/x", "p/a.b", "q/y", "top"):
        storage.replace(path, path.encode())
    assert paths(storage, "p") == ["p/a", "p/a-b", "p/a.b", "p/b"]
    assert [info.is_folder for info in storage.list("p")] == [True, False, False, False]
    assert paths(storage, "p", recursive=True) == ["p/a-b", "p/a.b", "p/a/x", "p/b"]
    assert "top" in paths(storage, "")
    assert all(info.size_bytes == len(info.path) for info in storage.list("p", recursive=True))


def test_list_takes_no_folder_with_the_same_beginning(storage: Storage) -> None:
    storage.create_new("a/x", b"")
    storage.create_new("ab/y", b"")
    assert paths(storage, "a", recursive=True) == ["a/x"]


def test_list_and_stat_agree(storage: Storage) -> None:
    storage.create_new("a/f", b"data")
    storage.create_new("a/b/g", b"")
    folder, file = storage.list("a")
    assert file == storage.stat("a/f")
    # When a folder changed, a listing may leave out.
    assert folder == storage.stat("a/b")._replace(mtime_s=folder.mtime_s, identity=folder.identity)


@with_folders
def test_folder_stays_when_its_last_file_goes(storage: Storage) -> None:
    storage.create_new("a/f", b"x")
    storage.delete("a/f")
    assert storage.stat("a").is_folder
    assert storage.list("a") == []


def test_delete_removes_a_file_if_it_is_there(storage: Storage) -> None:
    storage.create_new("f", b"x")
    storage.delete("f")
    storage.delete("f")
    assert not storage.exists("f")


def test_delete_folder_removes_all_below_and_nothing_beside(storage: Storage) -> None:
    for path in ("a/x", "a/b/c/y", "ab/z"):
        storage.create_new(path, b"x")
    storage.delete_folder("a")
    storage.delete_folder("a")
    assert not storage.exists("a")
    assert storage.read("ab/z") == b"x"


@with_folders
def test_mkdirs_makes_the_way_and_may_be_repeated(storage: Storage) -> None:
    storage.mkdirs("a/b/c", durable=False)
    storage.mkdirs("a/b/c")
    assert [storage.stat(path).is_folder for path in ("", "a", "a/b", "a/b/c")] == [True] * 4
    assert storage.list("a", recursive=True) == []


# -- time


def test_touch_makes_an_empty_file_and_never_changes_bytes(storage: Storage) -> None:
    storage.touch("a/heartbeat")
    assert storage.read("a/heartbeat") == b""
    storage.replace("a/heartbeat", b"data")
    storage.touch("a/heartbeat")
    assert storage.read("a/heartbeat") == b"data"


def test_clock_is_the_one_that_stamps_files(storage: Storage) -> None:
    storage.create_new("first", b"")
    before = storage.now_s()
    storage.create_new("f", b"")
    storage.touch("g")
    after = storage.now_s()
    # Many stores tell the time to the second. Where their clock is not this machine's, it is known to half a second.
    assert before - 0.5 <= storage.stat("f").mtime_s <= storage.stat("g").mtime_s <= after + 1.5


def test_asking_the_clock_leaves_no_file_and_makes_no_table(storage: Storage) -> None:
    storage.now_s()
    assert not storage.exists("")
    storage.create_new("f", b"")
    storage.now_s()
    assert paths(storage, "", recursive=True) == ["f"]


# -- paths


@pytest.mark.parametrize("path", OUTSIDE)
def test_path_that_could_leave_the_root_is_refused_everywhere(storage: Storage, path: str) -> None:
    storage.create_new("f", b"x")
    storage.create_new("d/f", b"x")
    acts: list[Callable[[], object]] = [
        lambda: storage.read(path),
        lambda: storage.open_input(path),
        lambda: storage.open_output(path).__enter__(),
        lambda: storage.create_new(path, b"x"),
        lambda: storage.replace(path, b"x"),
        lambda: storage.list(path),
        lambda: storage.stat(path),
        lambda: storage.exists(path),
        lambda: storage.delete(path),
        lambda: storage.delete_folder(path),
        lambda: storage.mkdirs(path),
        lambda: storage.touch(path),
    ]
    for act in acts:
        with pytest.raises(ValueError) as caught:
            act()
        assert repr(path) in str(caught.value)
    assert {"d", "f"} <= set(paths(storage, ""))
    assert "new" not in paths(storage, "")


def test_the_root_itself_is_listed_but_never_changed_as_a_whole(storage: Storage) -> None:
    storage.create_new("d/f", b"x")
    assert storage.stat("").is_folder
    for act in (
        lambda: storage.delete_folder(""),
        lambda: storage.delete(""),
        lambda: storage.create_new("", b"x"),
        lambda: storage.touch(""),
    ):
        with pytest.raises(ValueError):
            act()
    assert storage.read("d/f") == b"x"


def test_unusual_names_are_names(storage: Storage) -> None:
    names = ["a b", "day=2024-01-01", "50%2F", "..x", "x..", "ä/ö", "日", "a:b", "a\\b", "-rf", "*", "new\nline", "'\""]
    names = [name for name in names if takes_name(storage, name)]
    for name in names:
        storage.create_new(f"p/{name}", name.encode())
    assert paths(storage, "p", recursive=True) == sorted(f"p/{name}" for name in names)
    assert all(storage.read(f"p/{name}") == name.encode() for name in names)


@given(st.text(alphabet=st.sampled_from("./a\0\\:é "), max_size=12))
def test_any_accepted_path_stays_below_the_root(path: str) -> None:
    storage = LocalStorage("/some/root")
    try:
        absolute = storage.can.local_path(path)
    except ValueError:
        return
    assert absolute is not None
    assert os.path.normpath(absolute) == absolute
    assert absolute == "/some/root" or absolute.startswith("/some/root/")


def test_open_output_that_need_not_be_durable_is_whole_for_other_readers(storage):
    with storage.open_output("staging/rows", durable=False) as stream:
        stream.write(b"12")
        stream.write(b"3")
    assert storage.read("staging/rows") == b"123"
    with pytest.raises(FileExistsError), storage.open_output("staging/rows", durable=False):
        pass


def test_files_of_the_same_bytes_that_are_made_together_have_lives_of_their_own(storage: Storage) -> None:
    names = [f"folder{number}/file" for number in range(4)]
    storage.create_missing([(name, b"same") for name in names] + [("folder0/other", b"other")])
    storage.replace(names[0], b"new")
    storage.delete(names[1])
    storage.create_missing([(name, b"again") for name in names[:2]])
    expected = [b"new", b"again", b"same", b"same", b"other"]
    assert [storage.read(name) for name in (*names, "folder0/other")] == expected
