"""Which file store and checkpoint the options choose: where a new store goes. What a process follows all its openings share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

from hoodie.format.layout import Layout
from hoodie.options.values import ViewStore
from hoodie.options.view import ViewOptions
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, Kind
from hoodie.storage.uri import open_storage
from hoodie.view.checkpoint import Checkpoint
from hoodie.view.embedded_store import EmbeddedStore
from hoodie.view.file_store import FileStore, MemoryStore
from hoodie.view.spilled_store import SpilledStore
from hoodie.view.synced import SyncedFiles

_SYNCED: Kind[SyncedFiles] = Kind("followed files")
_MOST_BYTES = 32 * 1024 * 1024
"""More it does not count for among what a process keeps, where nothing may take more than a third, if it was asked for."""

STORES: Mapping[ViewStore, Callable[[ViewOptions], FileStore]] = {
    ViewStore.MEMORY: lambda options: MemoryStore(),
    ViewStore.SPILLABLE_DISK: lambda options: SpilledStore(options.spill_bytes, options.spill_folder),
    ViewStore.EMBEDDED_KV_STORE: lambda options: EmbeddedStore(options.rocksdb_folder),
}


class _Key(NamedTuple):
    table: Hashable
    options: ViewOptions


def synced_files(storage: Storage, cache: Cache, layout: Layout, options: ViewOptions) -> SyncedFiles:
    """What this process knows of the table's files, else what a checkpoint says, else nothing.

    Raises:
        OptionError: the store needs a package that is not installed, or the checkpoint's address cannot be opened.
    """
    key = _Key(storage.identity, options)
    result = cache.find(_SYNCED, key)
    if result is None:
        result = _new(storage, layout, options)
    most = sys.maxsize if options.follows is None else _MOST_BYTES
    cache.put(_SYNCED, key, result, min(result.store.memory_bytes, most))
    return result


def _new(storage: Storage, layout: Layout, options: ViewOptions) -> SyncedFiles:
    store = STORES[options.store](options)
    if options.checkpoint is None:
        return SyncedFiles(store)
    checkpoint = Checkpoint.of(open_storage(options.checkpoint), storage.uri)
    result = checkpoint.load(store, layout) or SyncedFiles(store)
    result.save = checkpoint.save
    return result
