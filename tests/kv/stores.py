"""Stores in memory for tests: of files that can grow, as on a disk, or of objects that appear whole."""

from contextlib import suppress

import pyarrow as pa

from hoodie.kv.settings import StoreOptions
from hoodie.kv.store import open_at
from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage
from tests.bucket import BucketStorage

KINDS = {"files": MemoryStorage, "objects": BucketStorage}
SMALL = StoreOptions(flush_size=10_000, flush_interval_count=10_000, max_wal_file_size=2_000, max_file_size=400)


class Place:
    """The folders of a store, each a storage of its own, by name."""

    def __init__(self, kind="files", *, wrap=lambda storage: storage):
        self.kind = kind
        self.folders = {}
        self.wrap = wrap

    def __call__(self, folder):
        if folder not in self.folders:
            self.folders[folder] = KINDS[self.kind](f"memory://{folder or 'store'}")
        if not folder:
            self.folders[""].delete_folder = self._delete
        found = self.folders[folder]
        return self.wrap(found) if folder else found

    def store(self, options=SMALL, **how):
        return open_at(self, options, cache=Cache(), **how)

    def _delete(self, path):
        for folder, storage in self.folders.items():
            if folder.startswith(f"{path}/"):
                storage._files.clear()

    def elsewhere(self):
        """The very files, in a process that knows nothing of what this one holds."""
        found = Place(self.kind)
        for folder, storage in self.folders.items():
            other = found.folders[folder] = KINDS[self.kind](storage.uri, clock=storage.clock)
            other._files, other._folders = storage._files, storage._folders
        return found

    def after_a_crash(self):
        """The same files, as another process finds them: what was held is not held any more."""
        found = Place(self.kind)
        for folder, storage in self.folders.items():
            copy = found.folders[folder] = KINDS[self.kind](storage.uri, clock=storage.clock)
            for info in storage.list("", recursive=True):
                if not info.is_folder and "/.hoodie_py/live/" not in info.path:
                    copy.create_new(info.path, storage.read(info.path))
        return found


def binary(values):
    return pa.array(values, pa.binary())


def committed(writer):
    """All rows that count, in memory or in files."""
    writer.flush()
    return scanned(writer)


def scanned(writer):
    rows = {}
    for part in writer._flusher.files.scan():
        keys = part.keys.to_pylist()
        assert keys == sorted(set(keys))
        rows.update(zip(keys, part.values.to_pylist(), strict=True))
    return rows


def abandon(writer):
    """As if its process had died."""
    with suppress(BaseException):
        writer._pool.shutdown(wait=True)
    with suppress(BaseException):
        writer._hold.abandon()
