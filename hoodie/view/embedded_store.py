"""A file store in RocksDB, by the package rocksdict: a log-structured store in a folder of this process, which goes with it."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from typing import Any

from hoodie.errors import OptionError
from hoodie.view.file_store import Files, decode_files, encode_files

_BUFFER_BYTES = 8 * 1024 * 1024
_MEMORY_BYTES = 4 * _BUFFER_BYTES
"""About what RocksDB takes: what was written last, and blocks that were read."""


class EmbeddedStore:
    """`FileStore` that keeps next to nothing in memory."""

    def __init__(self, folder: str | None = None) -> None:
        """`folder`: where its own folder is made; None: the machine's place for such files.

        Raises:
            OptionError: rocksdict is not installed.
        """
        self._rocksdict = _rocksdict()
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
        self._folder = tempfile.mkdtemp(prefix="hoodie-view-", dir=folder)
        self._finalizer = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._number = 0
        self._db: Any = self._new_database()

    @property
    def memory_bytes(self) -> int:
        return _MEMORY_BYTES

    def get(self, partition_path: str) -> Files | None:
        text = self._db.get(_key(partition_path))
        return None if text is None else decode_files(text)

    def put(self, partition_path: str, files: Files) -> None:
        self._db.put(_key(partition_path), encode_files(files), self._unlogged)

    def drop(self, partition_path: str) -> None:
        self._db.delete(_key(partition_path), self._unlogged)

    def partitions(self) -> Sequence[str]:
        return sorted(key.decode("utf-8", "surrogatepass") for key in self._db.keys())  # noqa: SIM118 - no dictionary

    def clear(self) -> None:
        self._db.close()
        shutil.rmtree(self._path, ignore_errors=True)
        self._db = self._new_database()

    def close(self) -> None:
        if self._finalizer.alive:
            self._db.close()
            self._finalizer()

    def _new_database(self) -> Any:
        self._number += 1
        self._path = os.path.join(self._folder, str(self._number))
        options = self._rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(_BUFFER_BYTES)
        self._unlogged = self._rocksdict.WriteOptions()
        self._unlogged.disable_wal = True  # nothing is read again by another process
        return self._rocksdict.Rdict(self._path, options=options)


def _key(partition_path: str) -> bytes:
    return partition_path.encode("utf-8", "surrogatepass")


def _rocksdict() -> Any:
    try:
        import rocksdict  # noqa: PLC0415 - an optional extra
    except ImportError as exc:
        raise OptionError(
            "hoodie.filesystem.view.type=EMBEDDED_KV_STORE keeps the files of the table in RocksDB, which needs rocksdict: install "
            "hoodie with the extra `rocksdb`, or choose SPILLABLE_DISK"
        ) from exc
    return rocksdict
