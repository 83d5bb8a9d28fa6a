"""The lock file that only one can create: where it stands, and when it counts as left behind."""

from __future__ import annotations

import errno
import json
import logging
from dataclasses import replace

import pytest

from hoodie.errors import LockError, OptionError
from hoodie.lock.filesystem_lock import FilesystemLock
from hoodie.lock.holder import this_process
from hoodie.options.concurrency import CONCURRENCY
from hoodie.storage.memory import MemoryStorage
from tests.memory_tables import FakeClock

ELSEWHERE = json.dumps(this_process()._replace(host="elsewhere", pid=7).note()).encode()


@pytest.mark.parametrize(
    ("folder", "path"), [(None, ".hoodie/lock"), ("locks", "locks/lock"), ("memory://table/a/b/", "a/b/lock")]
)
def test_the_file_stands_where_apache_hudi_has_it_or_where_the_option_says(folder: str | None, path: str) -> None:
    storage = MemoryStorage()
    with FilesystemLock(storage, replace(CONCURRENCY, filesystem_path=folder)).held(0):
        assert [info.path for info in storage.list("", recursive=True)] == [path]
    assert storage.list("", recursive=True) == []


@pytest.mark.parametrize("folder", ["../x", "s3://other/locks"])
def test_a_folder_elsewhere_is_refused(folder: str) -> None:
    with pytest.raises(OptionError, match="does not lie in the table"):
        FilesystemLock(MemoryStorage(), replace(CONCURRENCY, filesystem_path=folder))


def test_a_file_of_another_machine_stays_until_it_is_too_old() -> None:
    clock = FakeClock()
    storage = MemoryStorage(clock=clock)
    storage.create_new(".hoodie/lock", ELSEWHERE)
    for_ever = FilesystemLock(storage, CONCURRENCY)
    expiring = FilesystemLock(storage, replace(CONCURRENCY, filesystem_expiry_s=60.0))
    clock.sleep(60)
    for lock in (for_ever, expiring):
        with pytest.raises(LockError, match="process 7 on elsewhere"):
            lock.acquire(0)
    clock.sleep(1)
    with pytest.raises(LockError):
        for_ever.acquire(0)
    expiring.acquire(0.1)
    assert expiring.is_held()
    assert [info.path for info in storage.list("", recursive=True)] == [".hoodie/lock"]


def test_a_lock_whose_file_is_gone_or_anothers_is_not_held_and_takes_nothing_away() -> None:
    storage = MemoryStorage()
    lock = FilesystemLock(storage, CONCURRENCY)
    lock.acquire(0)
    storage.replace(".hoodie/lock", ELSEWHERE)
    assert not lock.is_held()
    lock.release()
    assert storage.read(".hoodie/lock") == ELSEWHERE


def test_a_file_of_apache_hudi_holds_us_off() -> None:
    storage = MemoryStorage()
    storage.create_new(
        ".hoodie/lock", b'{\n  "lockCreateTime" : "2026-01-01 00:00:00.000",\n  "lockThreadName" : "main"\n}'
    )
    with pytest.raises(LockError, match=r"another program holds \.hoodie/lock"):
        FilesystemLock(storage, CONCURRENCY).acquire(0)


def test_a_file_that_could_not_be_deleted_is_no_error_and_makes_way_for_the_same_process(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Unreachable(MemoryStorage):
        fails = True

        def delete(self, path: str) -> None:
            if self.fails:
                raise OSError(errno.EIO, "out of reach", path)
            super().delete(path)

    storage = Unreachable()
    with caplog.at_level(logging.WARNING, "hoodie"), FilesystemLock(storage, CONCURRENCY).held(0):
        pass
    assert "could not be deleted" in caplog.text
    assert storage.exists(".hoodie/lock")
    storage.fails = False
    with FilesystemLock(storage, CONCURRENCY).held(0.1):
        assert storage.exists(".hoodie/lock")
    assert storage.list("", recursive=True) == []
