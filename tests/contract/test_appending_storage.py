"""Files that grow: what a log needs of a disk, of HDFS and of memory."""

from pathlib import Path

import pytest

from hoodie.storage.base import AppendingStorage, LogOutput
from hoodie.storage.local import LocalStorage
from tests.storages import RENAMING


@pytest.fixture(params=RENAMING)
def appending(request: pytest.FixtureRequest, tmp_path: Path) -> AppendingStorage:
    """What can rename can append, so far."""
    storage = RENAMING[request.param](tmp_path)
    assert isinstance(storage, AppendingStorage)
    return storage


def grown(storage: AppendingStorage, *parts: bytes, durable: bool = True) -> LogOutput:
    output = storage.open_log("a/b/log")
    for part in parts:
        output.write([part])
        output.sync(durable=durable)
    return output


@pytest.mark.parametrize("durable", [True, False])
def test_what_was_synced_can_be_read_once_the_file_is_closed(appending: AppendingStorage, durable: bool) -> None:
    output = grown(appending, b"one", b"two", durable=durable)
    output.write([b"th", memoryview(b"ree"), b""])
    output.sync()
    output.close()
    assert appending.read("a/b/log") == b"onetwothree"
    assert appending.read("a/b/log", 2, 3) == b"etw"
    assert appending.names("a/b") == ["log"]


def test_a_name_is_taken_once(appending: AppendingStorage) -> None:
    grown(appending, b"one").close()
    with pytest.raises(FileExistsError):
        appending.open_log("a/b/log")
    appending.create_new("a/f", b"x")
    with pytest.raises(FileExistsError):
        appending.open_log("a/f")
    assert appending.read("a/b/log") == b"one"


def test_many_parts_come_in_their_order(appending: AppendingStorage) -> None:
    parts = [b"%d," % n for n in range(3_000)]
    output = appending.open_log("log")
    output.write(parts)
    output.sync()
    output.close()
    assert appending.read("log") == b"".join(parts)


def test_a_log_that_was_ended_keeps_what_was_synced_and_takes_no_more(appending: AppendingStorage) -> None:
    output = grown(appending, b"one")
    appending.end_log("a/b/log")
    appending.end_log("a/b/log")
    assert appending.read("a/b/log") == b"one"
    if isinstance(appending.lock_root, LocalStorage):
        output.close()
        return  # there a lock keeps a second writer away
    with pytest.raises(OSError, match=r".+"):
        _go_on(output)
    assert appending.read("a/b/log") == b"one"


def _go_on(output: LogOutput) -> None:
    output.write([b"two"])
    output.sync()
