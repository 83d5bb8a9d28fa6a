"""Who grants the lock of a table: chosen by the option `hoodie.write.lock.provider` and by the table's storage.

A new provider is a file beside this one with its `Grant` and `GrantedLock`, an entry in `PROVIDERS` with what makes it,
and its names in `options/values.LockProvider`. Where a storage of a new kind brings its own lock, the entry is in
`BY_STORAGE`; one that can compare and swap needs none. `tests/contract/test_lock.py` says what each has to keep.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import hoodie.lock
from hoodie.errors import UnsupportedTableError
from hoodie.lock.base import WAITING, Coordination, Liveness, Waiting
from hoodie.lock.file_lock import FileLock
from hoodie.lock.in_process import InProcessLiveness, InProcessLock
from hoodie.lock.liveness import FileLiveness
from hoodie.options.concurrency import CONCURRENCY, ConcurrencyOptions
from hoodie.options.values import LockProvider
from hoodie.storage.base import ConditionalStorage, Storage
from hoodie.storage.hdfs import HdfsStorage
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import MemoryStorage

if TYPE_CHECKING:
    import hoodie.lock.dynamodb
    import hoodie.lock.filesystem_lock
    import hoodie.lock.hive
    import hoodie.lock.storage_liveness
    import hoodie.lock.storage_lock
    import hoodie.lock.zookeeper


LEFT_BEHIND_S = 600.0
"""After so long a lock file counts as left behind, where no provider was named: a write holds it for moments."""

Maker = Callable[[Storage, ConcurrencyOptions, Waiting], Coordination]
"""Makes what coordinates the writers of a table. Every open table has one, also for reading: connect when it is used first."""


def coordinate(storage: Storage, options: ConcurrencyOptions = CONCURRENCY, waiting: Waiting = WAITING) -> Coordination:
    """The lock and the liveness marks of the table in this storage.

    Raises:
        UnsupportedTableError: the provider has none for such a storage. OptionError: an option that it needs is missing.
    """
    return PROVIDERS[options.lock_provider](storage.lock_root, options, waiting)


def liveness_of(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Liveness:
    """The marks that go with a lock which is not the storage's own."""
    if storage.can.local_root is not None:
        return FileLiveness(storage, waiting)
    return hoodie.lock.storage_liveness.StorageLiveness(storage, options)


def _by_storage(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    maker = next((BY_STORAGE[kind] for kind in type(storage).__mro__ if kind in BY_STORAGE), None)
    if maker is None and isinstance(storage, ConditionalStorage):
        maker = _in_storage
    if maker is None:
        raise UnsupportedTableError(
            f"there is no lock for tables in {storage.uri}: name one by hoodie.write.lock.provider, such as zookeeper"
        )
    return maker(storage, options, waiting)


def _by_file(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    return Coordination(FileLock(storage, waiting), FileLiveness(storage, waiting), "the lock file of this machine")


def _in_process(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    return Coordination(InProcessLock(storage, waiting), InProcessLiveness(storage), "a lock of this process")


def _in_storage(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    lock = hoodie.lock.storage_lock.StorageLock(storage, options, waiting)
    return Coordination(lock, liveness_of(storage, options, waiting), LockProvider.STORAGE.value)


def _in_zookeeper(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    lock = hoodie.lock.zookeeper.ZooKeeperLock(storage, options, waiting)
    return Coordination(lock, liveness_of(storage, options, waiting), LockProvider.ZOOKEEPER.value)


def _in_hive(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    lock = hoodie.lock.hive.HiveLock(storage, options, waiting)
    return Coordination(lock, liveness_of(storage, options, waiting), LockProvider.HIVE_METASTORE.value)


def _in_dynamodb(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    lock = hoodie.lock.dynamodb.DynamoLock(storage, options, waiting)
    return Coordination(lock, liveness_of(storage, options, waiting), LockProvider.DYNAMODB.value)


def _in_filesystem(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    lock = hoodie.lock.filesystem_lock.FilesystemLock(storage, options, waiting)
    return Coordination(lock, liveness_of(storage, options, waiting), LockProvider.FILESYSTEM.value)


def _in_filesystem_unasked(storage: Storage, options: ConcurrencyOptions, waiting: Waiting) -> Coordination:
    """Nobody was told that a lock file may stay where its machine died, so it does not stay for ever."""
    return _in_filesystem(
        storage, replace(options, filesystem_expiry_s=options.filesystem_expiry_s or LEFT_BEHIND_S), waiting
    )


PROVIDERS: Mapping[LockProvider, Maker] = {
    LockProvider.IN_PROCESS: _by_storage,
    LockProvider.STORAGE: _in_storage,
    LockProvider.FILESYSTEM: _in_filesystem,
    LockProvider.ZOOKEEPER: _in_zookeeper,
    LockProvider.ZOOKEEPER_IMPLICIT: _in_zookeeper,
    LockProvider.HIVE_METASTORE: _in_hive,
    LockProvider.DYNAMODB: _in_dynamodb,
    LockProvider.DYNAMODB_IMPLICIT: _in_dynamodb,
}
"""By what `hoodie.write.lock.provider` says."""

BY_STORAGE: Mapping[type[Storage], Maker] = {
    LocalStorage: _by_file,
    MemoryStorage: _in_process,
    HdfsStorage: _in_filesystem_unasked,
}
"""What a storage gets that no provider was named for; others, if they can, the lock in the storage."""
