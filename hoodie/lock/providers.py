"""Who grants the lock of a table: chosen by the option `hoodie.write.lock.provider` and by the table's storage.

A new provider is a file beside this one with its `Lock` and `Liveness`, an entry in `PROVIDERS` with what makes them, and its
name in `options/keys.LOCK_PROVIDER`. Where a storage of a new kind brings its own lock, the entry is in `BY_STORAGE`.
`tests/contract/test_lock.py` says what each has to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hoodie.errors import UnsupportedTableError
from hoodie.lock.base import WAITING, Coordination, Waiting
from hoodie.lock.file_lock import FileLock
from hoodie.lock.in_process import InProcessLiveness, InProcessLock
from hoodie.lock.liveness import FileLiveness
from hoodie.options.keys import LOCK_PROVIDER
from hoodie.options.services import CONCURRENCY, ConcurrencyOptions
from hoodie.storage.base import Storage
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage

Maker = Callable[[Storage, ConcurrencyOptions, Waiting], Coordination]
"""Makes what coordinates the writers of a table. Every open table has one, also for reading: connect when it is used first."""


def coordinate(storage: Storage, options: ConcurrencyOptions = CONCURRENCY, waiting: Waiting = WAITING) -> Coordination:
    """The lock and the liveness marks of the table in this storage.

    Raises:
        UnsupportedTableError: the provider has none for such a storage.
    """
    return PROVIDERS[options.lock_provider](storage.lock_root, options, waiting)


def _by_storage(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    maker = next((BY_STORAGE[kind] for kind in type(storage).__mro__ if kind in BY_STORAGE), None)
    if maker is None:
        raise UnsupportedTableError(
            f"there is no lock for tables in {storage.uri}: writing is supported on a local disk and in memory://"
        )
    return maker(storage, options, waiting)


def _by_file(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    return Coordination(FileLock(storage, waiting), FileLiveness(storage, waiting))


def _in_process(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    return Coordination(InProcessLock(storage, waiting), InProcessLiveness(storage))


PROVIDERS: Mapping[str, Maker] = {LOCK_PROVIDER.default: _by_storage}
"""By the name in `hoodie.write.lock.provider`."""

BY_STORAGE: Mapping[type[Storage], Maker] = {LocalStorage: _by_file, MemoryStorage: _in_process}
"""What a storage gets that no provider was named for."""
