"""Whether a bucket is whole: its metadata, its data files and its log. Changes nothing; a writer may be at work meanwhile."""

from __future__ import annotations

from typing import NamedTuple

from hoodie.errors import CorruptFileError, HoodieError
from hoodie.kv.data_files import DataFormat
from hoodie.kv.lookup import Files
from hoodie.kv.manifest import NO_WINDOW, Manifest, read_newest
from hoodie.kv.names import data_file
from hoodie.kv.wal import Replay
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache

_LOOKED_AGAIN = 5


class BucketCheck(NamedTuple):
    """What a look at one bucket has found."""

    bucket: int
    window: int | None
    """The last one that is committed; None: there is none."""
    files: int
    entries: int
    """In data files, as its metadata say; all that were read, where rows were."""
    problem: str = ""
    """Empty: it is whole."""


def check_bucket(storage: Storage, bucket: int, *, data_format: DataFormat, cache: Cache, rows: bool) -> BucketCheck:
    """Look again where a writer went on meanwhile."""
    manifest: Manifest | None = None
    for number in range(_LOOKED_AGAIN):
        try:
            manifest = read_newest(storage)
            window, entries = _looked_into(storage, manifest, data_format, cache, rows)
            return BucketCheck(bucket, None if window == NO_WINDOW else window, len(manifest.files), entries)
        except (HoodieError, FileNotFoundError) as exc:
            if manifest is None or number == _LOOKED_AGAIN - 1 or read_newest(storage).number == manifest.number:
                return BucketCheck(bucket, None, 0 if manifest is None else len(manifest.files), 0, str(exc))
    raise AssertionError("unreachable")


def _looked_into(
    storage: Storage, manifest: Manifest, data_format: DataFormat, cache: Cache, rows: bool
) -> tuple[int, int]:
    """The last window, and the number of entries."""
    for file in manifest.files:
        path = data_file(file.name)
        size = storage.stat(path).size_bytes
        if size != file.size_bytes:
            raise CorruptFileError(f"{storage.uri}/{path} has {size:,} bytes, and was written with {file.size_bytes:,}")
    log = Replay(storage, manifest.wal_from, sizes=manifest.log)
    window = max([manifest.window, *(each.id for each in log)])
    if not rows:
        return window, sum(file.entries for file in manifest.files)
    parts = Files(storage, manifest, data_format, cache).scan()
    return window, sum(len(part.keys) for part in parts)
