"""A system that takes no more: one error that names the file and says what to do; the table is as it was."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path

import pytest

from hoodie.errors import AccessDeniedError, HoodieError, StorageFullError
from hoodie.storage.faults import Fault, FaultStorage
from hoodie.storage.local import LocalStorage
from tests.memory_tables import Input, batch, create, opened, snapshot_of

ERRORS = {
    errno.ENOSPC: (StorageFullError, "make room"),
    errno.EDQUOT: (StorageFullError, "make room"),
    errno.EROFS: (AccessDeniedError, "give this user permission to write"),
    errno.EACCES: (AccessDeniedError, "give this user permission for it"),
}


def table_at(folder: Path) -> LocalStorage:
    storage = LocalStorage(folder / "t")
    create(storage, table_type="MERGE_ON_READ")
    opened(storage).upsert(batch([Input("k", "a", 1, 1)]))
    return storage


@pytest.mark.parametrize("number", ERRORS)
@pytest.mark.parametrize("at", [3, 8])
def test_what_the_system_refuses_is_said_plainly(tmp_path: Path, number: int, at: int) -> None:
    storage = table_at(tmp_path)
    before = snapshot_of(opened(storage))
    kind, advice = ERRORS[number]
    with pytest.raises(kind, match=advice) as caught:
        opened(FaultStorage(storage, [Fault(at, error_number=number)])).upsert(batch([Input("k", "a", 2, 2)]))
    assert isinstance(caught.value, HoodieError)
    assert caught.value.errno == number
    assert storage.uri in str(caught.value)
    assert snapshot_of(opened(storage)) == before
    opened(storage).upsert(batch([Input("l", "a", 2, 2)]))
    assert len(snapshot_of(opened(storage))) == 2


def test_files_that_may_not_grow_any_more_are_one_error(tmp_path: Path) -> None:
    storage = table_at(tmp_path)
    before = snapshot_of(opened(storage))
    many = batch([Input(os.urandom(20).hex(), "a", n, 1) for n in range(20_000)])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    try:
        with pytest.raises(StorageFullError, match="make room"):
            opened(storage).bulk_insert(many)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert snapshot_of(opened(storage)) == before
