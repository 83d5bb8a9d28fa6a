"""The stores that are measured, behind one set of verbs. Each is opened in a process of its own."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa


class Rows:
    """Keys and values of a batch, in the form that a store takes: Arrow arrays, or lists of bytes. Made outside of what is timed."""

    def __init__(self, keys: pa.Array, values: pa.Array) -> None:
        self.keys = keys
        self.values = values
        self.listed: tuple[list[bytes], list[bytes]] = ([], [])

    def list(self) -> None:
        self.listed = (self.keys.to_pylist(), self.values.to_pylist())


class Store(Protocol):
    takes_lists: bool
    folder: Path | None
    """Where its files are, if on this machine."""

    def put_many(self, rows: Rows) -> None: ...
    def put(self, key: bytes, value: bytes) -> None: ...
    def look_up(self, rows: Rows) -> int:
        """Asks for the keys; gives how many there are."""
        ...

    def end_window(self, number: int) -> None:
        """All puts so far are on storage."""
        ...

    def settle(self) -> None:
        """Memory is in files. Work in the background has ended, where the store can say so."""
        ...

    def get(self, key: bytes) -> bytes | None: ...
    def scan(self) -> int: ...
    def reopen(self) -> None:
        """With empty caches of its own."""
        ...

    def close(self) -> None: ...


class Hoodie:
    """One bucket. Look-ups of writers see memory and data files; single gets are those of a reader of data files."""

    takes_lists = False

    def __init__(self, place: str, file_format: str = "hfile", sync: str = "window") -> None:
        self.folder = None if "://" in place else Path(place)
        self._place = place
        self._format = file_format
        self._sync = sync
        self._open()

    def _open(self) -> None:
        # Only here: the environment of the others has no hoodie.
        from hoodie.kv.settings import StoreOptions  # noqa: PLC0415
        from hoodie.kv.store import open_at  # noqa: PLC0415
        from hoodie.storage.cache import Cache  # noqa: PLC0415
        from hoodie.storage.uri import open_storage  # noqa: PLC0415

        self._store = open_at(
            lambda folder: open_storage(f"{self._place}/{folder}" if folder else self._place),
            StoreOptions(sync=self._sync, keep_replaced_s=5.0),
            buckets=1,
            file_format=self._format,
            cache=Cache(),
        )
        self._writer = self._store.writer(0)
        self._reader: Any = None

    def put_many(self, rows: Rows) -> None:
        self._writer.put_many(rows.keys, rows.values)

    def put(self, key: bytes, value: bytes) -> None:
        self._writer.put(key, value)

    def look_up(self, rows: Rows) -> int:
        found = self._writer.lookup_many(rows.keys)
        return len(found) - found.null_count

    def end_window(self, number: int) -> None:
        self._writer.end_window(number)

    def settle(self) -> None:
        self._writer.flush()

    def get(self, key: bytes) -> bytes | None:
        if self._reader is None:
            self._reader = self._store.reader(0, max_age_s=None)
        found: bytes | None = self._reader.get(key)
        return found

    def scan(self) -> int:
        return sum(batch.num_rows for batch in self._store.scan())

    def reopen(self) -> None:
        self._writer.close()
        self._open()

    def close(self) -> None:
        self._writer.close()


class RocksDb:
    """Its defaults, with filters of 10 bits a key; a window ends with a sync of the log."""

    takes_lists = True

    def __init__(self, place: str) -> None:
        self.folder = Path(place)
        self._open()

    def _open(self) -> None:
        import rocksdict  # noqa: PLC0415

        self._module = rocksdict
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_max_background_jobs(2)
        table = rocksdict.BlockBasedOptions()
        table.set_bloom_filter(10.0, False)
        table.set_block_cache(rocksdict.Cache(192 * 1024 * 1024))
        options.set_block_based_table_factory(table)
        self._db = rocksdict.Rdict(str(self.folder), options)

    def put_many(self, rows: Rows) -> None:
        batch = self._module.WriteBatch(raw_mode=True)
        for key, value in zip(*rows.listed, strict=True):
            batch.put(key, value)
        self._db.write(batch)

    def put(self, key: bytes, value: bytes) -> None:
        self._db.put(key, value)

    def look_up(self, rows: Rows) -> int:
        found: list[bytes | None] = self._db.get(rows.listed[0])
        return sum(value is not None for value in found)

    def end_window(self, number: int) -> None:
        self._db.put(b"\xff window", number.to_bytes(8, "big"))
        self._db.flush_wal(True)

    def settle(self) -> None:
        self._db.flush()

    def get(self, key: bytes) -> bytes | None:
        found: bytes | None = self._db.get(key)
        return found

    def scan(self) -> int:
        return sum(1 for _ in self._db.items())

    def reopen(self) -> None:
        self._db.close()
        self._open()

    def close(self) -> None:
        self._db.close()


class Lmdb:
    """A transaction a window; a commit syncs."""

    takes_lists = True

    def __init__(self, place: str) -> None:
        self.folder = Path(place)
        self._open()

    def _open(self) -> None:
        import lmdb  # noqa: PLC0415

        self._env = lmdb.open(str(self.folder), map_size=1 << 38, subdir=True)
        self._txn: Any = None

    def _writing(self) -> Any:
        if self._txn is None:
            self._txn = self._env.begin(write=True)
        return self._txn

    def put_many(self, rows: Rows) -> None:
        with self._writing().cursor() as cursor:
            cursor.putmulti(list(zip(*rows.listed, strict=True)))

    def put(self, key: bytes, value: bytes) -> None:
        self._writing().put(key, value)

    def look_up(self, rows: Rows) -> int:
        with self._writing().cursor() as cursor:
            return len(cursor.getmulti(rows.listed[0]))

    def end_window(self, number: int) -> None:
        self._writing().put(b"\xff window", number.to_bytes(8, "big"))
        self._txn.commit()
        self._txn = None

    def settle(self) -> None:
        self._env.sync(True)

    def get(self, key: bytes) -> bytes | None:
        with self._env.begin() as txn:
            found: bytes | None = txn.get(key)
            return found

    def scan(self) -> int:
        with self._env.begin() as txn, txn.cursor() as cursor:
            return sum(1 for _ in cursor.iternext(keys=True, values=True))

    def reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        if self._txn is not None:
            self._txn.commit()
            self._txn = None
        self._env.close()


class Sqlite:
    """A table `WITHOUT ROWID`, WAL mode, `synchronous=FULL`; a transaction a window."""

    takes_lists = True

    def __init__(self, place: str) -> None:
        self.folder = Path(place)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._open()

    def _open(self) -> None:
        assert self.folder is not None
        self._db = sqlite3.connect(self.folder / "db", isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute(f"PRAGMA cache_size=-{192 * 1024}")
        self._db.execute("CREATE TABLE IF NOT EXISTS kv (k BLOB PRIMARY KEY, v BLOB) WITHOUT ROWID")

    def _begin(self) -> None:
        if not self._db.in_transaction:
            self._db.execute("BEGIN")

    def put_many(self, rows: Rows) -> None:
        self._begin()
        self._db.executemany("INSERT OR REPLACE INTO kv VALUES (?, ?)", zip(*rows.listed, strict=True))

    def put(self, key: bytes, value: bytes) -> None:
        self._begin()
        self._db.execute("INSERT OR REPLACE INTO kv VALUES (?, ?)", (key, value))

    def look_up(self, rows: Rows) -> int:
        ask = self._db.execute
        return sum(ask("SELECT v FROM kv WHERE k = ?", (key,)).fetchone() is not None for key in rows.listed[0])

    def end_window(self, number: int) -> None:
        self._begin()
        self._db.execute("INSERT OR REPLACE INTO kv VALUES (?, ?)", (b"\xff window", number.to_bytes(8, "big")))
        self._db.execute("COMMIT")

    def settle(self) -> None:
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def get(self, key: bytes) -> bytes | None:
        found = self._db.execute("SELECT v FROM kv WHERE k = ?", (key,)).fetchone()
        return None if found is None else found[0]

    def scan(self) -> int:
        return sum(1 for _ in self._db.execute("SELECT k, v FROM kv ORDER BY k"))

    def reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        self._db.close()


class SlateDb:
    """Its defaults; a window ends with a flush of the log. Its Python verbs are coroutines."""

    takes_lists = True
    folder = None

    def __init__(self, place: str) -> None:
        scheme, _, rest = place.partition("://")
        bucket, _, self._path = rest.partition("/")
        self._bucket = f"{scheme}://{bucket}"
        self._loop = asyncio.new_event_loop()
        self._open()

    def _open(self) -> None:
        import slatedb.uniffi as slatedb  # noqa: PLC0415

        self._module = slatedb
        self._db = self._do(slatedb.DbBuilder(self._path, slatedb.ObjectStore.resolve(self._bucket)).build())

    def _do(self, task: Any) -> Any:
        return self._loop.run_until_complete(task)

    def put_many(self, rows: Rows) -> None:
        batch = self._module.WriteBatch()
        for key, value in zip(*rows.listed, strict=True):
            batch.put(key, value)
        self._do(self._db.write(batch))

    def put(self, key: bytes, value: bytes) -> None:
        self._do(self._db.put(key, value))

    def look_up(self, rows: Rows) -> int:
        async def all_of() -> int:
            found = [await self._db.get(key) for key in rows.listed[0]]
            return sum(value is not None for value in found)

        found: int = self._do(all_of())
        return found

    def _flush(self, kind: Any) -> None:
        self._do(self._db.flush_with_options(self._module.FlushOptions(flush_type=kind)))

    def end_window(self, number: int) -> None:
        self._flush(self._module.FlushType.WAL)

    def settle(self) -> None:
        self._flush(self._module.FlushType.MEM_TABLE)

    def get(self, key: bytes) -> bytes | None:
        found = self._do(self._db.get(key))
        return None if found is None else bytes(found)

    def scan(self) -> int:
        async def all_of() -> int:
            rows = await self._db.scan(
                self._module.KeyRange(start=None, start_inclusive=True, end=None, end_inclusive=True)
            )
            count = 0
            while await rows.next() is not None:
                count += 1
            return count

        count: int = self._do(all_of())
        return count

    def reopen(self) -> None:
        self.close()
        self._open()

    def close(self) -> None:
        self._do(self._db.shutdown())


KINDS: Mapping[str, Callable[[str], Store]] = {
    "hoodie": Hoodie,
    "hoodie, blocks": lambda place: Hoodie(place, "blocks"),
    "hoodie, unsynced": lambda place: Hoodie(place, sync="process"),
    "RocksDB": RocksDb,
    "LMDB": Lmdb,
    "SQLite": Sqlite,
    "SlateDB": SlateDb,
}


def forget_files(folder: Path) -> None:
    """Out of the system's cache, so that the next read is one of the disk."""
    for path in _files(folder):
        with suppress(OSError):
            file = os.open(path, os.O_RDONLY)
            try:
                os.fsync(file)
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)


def size_of(folder: Path) -> int:
    """Bytes on the disk: LMDB's file has holes."""
    return sum(path.stat().st_blocks * 512 for path in _files(folder))


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.is_file())


def removed(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def keys_of(numbers: np.ndarray, stamp: np.ndarray | int = 0) -> pa.Array:
    """16 bytes each: two integers, as those of HDHT's benchmark."""
    words = np.empty((len(numbers), 2), ">u8")
    words[:, 0] = stamp
    words[:, 1] = numbers
    offsets = np.arange(0, 16 * (len(numbers) + 1), 16, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(words.tobytes())]
    )


def values_of(count: int, size: int, seed: int) -> pa.Array:
    """Random bytes, which no codec makes smaller."""
    data = np.random.default_rng(seed).bytes(count * size)
    offsets = np.arange(0, size * (count + 1), size, dtype=np.int64)
    return pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
