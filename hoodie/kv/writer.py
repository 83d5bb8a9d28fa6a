"""The one writer of a bucket: puts gather in memory, a window is committed to the log, and memory goes to data files beside it."""

from __future__ import annotations

import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple, TypeVar, overload
from weakref import finalize

import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CommitOutcomeUnknownError, HoodieError, OptionError, StoreFencedError
from hoodie.kv.binary import KEYS, VALUES, Binary, Many, as_array, as_bytes, listed
from hoodie.kv.data_files import DataFormat
from hoodie.kv.flush import Flusher
from hoodie.kv.lookup import Files
from hoodie.kv.manifest import NO_WINDOW, Manifest, publish, read_newest
from hoodie.kv.order import KeyOrder
from hoodie.kv.ownership import Hold
from hoodie.kv.rows import bytes_of
from hoodie.kv.settings import StoreOptions
from hoodie.kv.wal import Replay, Wal
from hoodie.kv.wal_frames import Rows
from hoodie.options.arguments import check_seconds
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache
from hoodie.storage.refusals import hoodie_errors

_FRAME_BYTES = 4 * 1024 * 1024
"""Single puts of a window go to the log when they are so many bytes."""
_TAKEN_OVER_AGAIN = 8
T = TypeVar("T")


class _Memory(NamedTuple):
    """Windows that are committed, and in no data file."""

    rows: dict[bytes, bytes | None]
    window: int


class BucketWriter:
    """Made by `KeyValueStore.writer`; closes as a context manager. Not thread-safe.

    An error while a window is written leaves the writer of no use: open a new one, which says by `last_window` what was committed.
    """

    def __init__(
        self,
        storage: Storage,
        what: str,
        data_format: DataFormat,
        order: KeyOrder,
        options: StoreOptions,
        cache: Cache,
        hold: Hold,
        *,
        accept_loss: bool = False,
    ) -> None:
        self._storage = storage
        self._what = what
        self._format = data_format
        self._order = order
        self._options = options
        self._hold = hold
        self._failure: BaseException | None = None
        self._is_closed = False
        self._window: dict[bytes, bytes | None] = {}
        self._window_bytes = 0
        self._unlogged: dict[bytes, bytes | None] = {}
        self._unlogged_bytes = 0
        self._memory: dict[bytes, bytes | None] = {}
        self._memory_bytes = 0
        self._windows = 0
        self._last = NO_WINDOW
        self._frozen: _Memory | None = None
        manifest = self._take_over(accept_loss)
        self._finalizer = finalize(self, _let_go, self._wal, hold, what)
        self._finalizer.atexit = False
        self._flusher = Flusher(storage, what, data_format, options, cache, manifest)
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="hoodie-kv")
        self._flushing: Future[None] | None = None

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "failed" if self._failure is not None else f"window {self.last_window}"
        return f"<BucketWriter of {self._what}: {state}>"

    @property
    def uri(self) -> str:
        """Where the bucket lies."""
        return self._storage.uri

    # -- rows

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of a key, in the window that is open."""
        if type(key) is not bytes or type(value) is not bytes:
            key, value = as_bytes(key, "put"), as_bytes(value, "put")
        self._set(key, value, len(value))

    def delete(self, key: bytes) -> None:
        """Take a key away, in the window that is open."""
        self._set(as_bytes(key, "delete"), None, 0)

    __setitem__ = put
    __delitem__ = delete

    @hoodie_errors
    def put_many(self, keys: Many, values: Many) -> None:
        """Set many values; of a key that comes twice the last one counts.

        Args:
            keys: a list of bytes, or an Arrow array of them, without nulls.
            values: as many; null deletes the key.
        """
        self._check()
        keys, values = as_array(keys, KEYS, "keys"), as_array(values, VALUES, "values")
        if keys.null_count:
            raise OptionError(f"put_many got {keys.null_count} keys that are null")
        if len(keys) != len(values):
            raise OptionError(f"put_many got {len(keys):,} keys and {len(values):,} values")
        keys = self._order.stored_many(keys)
        self._check_sizes(_longest(keys), _longest(values))
        self._log_single()
        with self._failing():
            self._wal.add(Rows(keys, values))
        self._window.update(zip(listed(keys), listed(values), strict=True))
        self._window_bytes += bytes_of(keys) + bytes_of(values)

    def delete_many(self, keys: Many) -> None:
        """Take many keys away, in the window that is open."""
        array = as_array(keys, KEYS, "keys")
        self.put_many(array, pa.nulls(len(array), VALUES))

    def get_uncommitted(self, key: bytes) -> bytes | None:
        """The value in memory: of the open window, and of committed ones that are in no data file yet; else None."""
        return self._in_memory(self._order.stored(as_bytes(key, "get_uncommitted")))[1]

    @overload
    def get(self, key: bytes) -> bytes | None: ...
    @overload
    def get(self, key: bytes, default: T) -> bytes | T: ...
    def get(self, key: bytes, default: T | None = None) -> bytes | T | None:
        """The value in memory, else the one in data files, else `default`."""
        value = self.lookup(key)
        return default if value is None else value

    def __getitem__(self, key: bytes) -> bytes:
        """Raises KeyError where the key has no value."""
        result = self.lookup(key)
        if result is None:
            raise KeyError(key)
        return result

    def __contains__(self, key: bytes) -> bool:
        return self.lookup(key) is not None

    @hoodie_errors
    def lookup(self, key: bytes) -> bytes | None:
        """The value in memory, else the one in data files; None: the key has none."""
        stored = self._order.stored(as_bytes(key, "lookup"))
        is_there, value = self._in_memory(stored)
        return value if is_there else self._flusher.files.get(stored)

    @hoodie_errors
    def lookup_many(self, keys: Many) -> Binary:
        """Values in the order of the keys; null where there is none."""
        self._check()
        stored = listed(self._order.stored_many(as_array(keys, KEYS, "keys")))
        answers = [self._in_memory(key) for key in stored]
        absent = [key for key, (is_there, _) in zip(stored, answers, strict=True) if not is_there]
        if not absent:
            return pa.array([value for _, value in answers], VALUES)
        rest = iter(listed(self._flusher.files.get_many(pa.array(absent, KEYS))))
        return pa.array([value if is_there else next(rest) for is_there, value in answers], VALUES)

    @property
    def files(self) -> Files:
        """What is in data files now."""
        return self._flusher.files

    # -- windows

    @property
    def last_window(self) -> int | None:
        """The last window that is committed; None: there is none yet."""
        return None if self._last == NO_WINDOW else self._last

    def end_window(self, window_id: int) -> bool:
        """Commit what was put since the last end as a window: on storage when this returns, whole or not at all.

        False, and nothing of it counts, where a window of that number or a later one is committed already: a stream that begins
        anew gives its windows again.

        Raises:
            StoreFencedError: another writer has taken the bucket over. CommitOutcomeUnknownError: the storage failed; open a new
                writer, and look at its `last_window`.
        """
        self._check()
        if type(window_id) is not int or not NO_WINDOW < window_id < -NO_WINDOW:
            raise OptionError(f"window {window_id!r} is not a whole number of 64 bits")
        if window_id <= self._last:
            self.drop_window()
            return False
        self._log_single()
        with self._failing():
            if self._hold.is_lost():
                raise self._fenced("it gave no sign of life for too long")
            self._wal.end(window_id)
            if self._hold.is_lost():
                # Another may have taken over, and flushed and dropped the segment by whose number this one would have failed.
                raise CommitOutcomeUnknownError(
                    f"this writer of {self._what} gave no sign of life for too long while it wrote window {window_id}, and another "
                    "may have taken over. Open a new writer and look at its last_window"
                )
        self._last = window_id
        self._memory.update(self._window)
        self._memory_bytes += self._window_bytes
        self._windows += 1
        self._begin_window()
        self._flush_if_due()
        return True

    def drop_window(self) -> None:
        """Forget what was put since the last end."""
        self._check()
        self._unlogged, self._unlogged_bytes = {}, 0
        with self._failing():
            self._wal.end(None)
        self._begin_window()

    # -- data files

    @hoodie_errors
    def flush(self) -> None:
        """Write all committed windows to data files, and wait for it."""
        self._check()
        self._wait()
        if self._memory:
            self._freeze()
        self._wait()

    @hoodie_errors
    def compact(self) -> None:
        """Flush, and merge all files of the bucket into one run."""
        self.flush()
        self._flusher.merge_all()

    @hoodie_errors
    def purge(self, *, start: bytes | None = None, stop: bytes | None = None, older_than_s: float | None = None) -> int:
        """Drop rows for good: those of a range, from `start` on and before `stop`, or files whose rows are all older than so many
        seconds. Gives the number of bytes of files that went.
        """
        if older_than_s is None and start is None and stop is None:
            raise OptionError("purge needs a range of keys, or an age")
        check_seconds(older_than_s, "older_than_s", or_none=True)
        if older_than_s is not None and (start is not None or stop is not None):
            raise OptionError("purge takes a range of keys or an age, not both")
        self.flush()
        if older_than_s is not None:
            return self._flusher.purge_older(older_than_s)
        bounds = [None if key is None else self._order.stored(as_bytes(key, "purge")) for key in (start, stop)]
        return self._flusher.purge_range(*bounds)

    # -- the end

    @hoodie_errors
    def close(self) -> None:
        """End the writer. What is committed stays; the open window is dropped. Memory is not flushed: the log has it."""
        if self._is_closed:
            return
        self._is_closed = True
        self._finalizer.detach()
        try:
            self._pool.shutdown(wait=True)
            if self._failure is None:
                self._raise_of_flush()
                with suppress(
                    OSError, HoodieError
                ):  # else a cut log cannot be told from a torn one: nothing is lost by it
                    self._flusher.note_log(self._wal.synced)
        finally:
            try:
                self._wal.close()
            except (OSError, HoodieError):
                if self._failure is None:
                    raise
            finally:
                self._hold.let_go()

    def __enter__(self) -> BucketWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and self._failure is None:
            self._failure = error
        self.close()

    # -- how

    def _take_over(self, accept_loss: bool) -> Manifest:
        for _ in range(_TAKEN_OVER_AGAIN):
            manifest = read_newest(self._storage)
            sizes = () if accept_loss else manifest.log
            self._memory, self._memory_bytes, self._windows, self._last = {}, 0, 0, manifest.window
            log = Replay(self._storage, manifest.wal_from, ends=True, sizes=sizes)
            for window in log:
                if window.id <= self._last:
                    continue
                for rows in window.rows:
                    self._memory.update(zip(listed(rows.keys), listed(rows.values), strict=True))
                    self._memory_bytes += bytes_of(rows.keys) + bytes_of(rows.values)
                self._windows += 1
                self._last = window.id
            next_manifest = Manifest(
                manifest.number + 1,
                manifest.epoch + 1,
                manifest.wal_from,
                manifest.window,
                manifest.files,
                manifest.old_files,
                sizes,
            )
            try:
                self._wal = Wal(
                    self._storage,
                    next_manifest.epoch,
                    log.last + 1,
                    most_bytes=self._options.max_wal_file_size,
                    durable=self._options.sync == "window",
                )
            except FileExistsError:
                continue  # the one before was only paused, and has written meanwhile
            try:
                publish(self._storage, next_manifest)
            except FileExistsError:
                self._wal.close()
                continue
            return next_manifest
        raise StoreFencedError(f"{self._what} could not be taken over: another writer goes on writing to it")

    def _set(self, key: bytes, value: bytes | None, value_bytes: int) -> None:
        if self._failure is not None or self._is_closed:
            self._check()
        key = self._order.stored(key)
        size = len(key)
        if size > self._format.most_key_bytes or value_bytes > self._format.most_value_bytes:
            self._check_sizes(size, value_bytes)
        size += value_bytes
        self._window[key] = self._unlogged[key] = value
        self._window_bytes += size
        self._unlogged_bytes += size
        if self._unlogged_bytes >= _FRAME_BYTES:
            self._log_single()

    def _check_sizes(self, key_bytes: int, value_bytes: int) -> None:
        """What the log takes, data files must take, too."""
        for name, size, most in (
            ("key", key_bytes, self._format.most_key_bytes),
            ("value", value_bytes, self._format.most_value_bytes),
        ):
            if size > most:
                raise OptionError(
                    f"a {name} for {self._what} takes {size:,} bytes; its data files hold {name}s of at most {most:,}"
                )

    def _in_memory(self, key: bytes) -> tuple[bool, bytes | None]:
        self._check()
        frozen = self._frozen
        for rows in (self._window, self._memory, {} if frozen is None else frozen.rows):
            if key in rows:
                return True, rows[key]
        return False, None

    def _log_single(self) -> None:
        if not self._unlogged:
            return
        unlogged, self._unlogged, self._unlogged_bytes = self._unlogged, {}, 0
        with self._failing():
            self._wal.add(Rows(pa.array(unlogged.keys(), KEYS, size=len(unlogged)), _values(unlogged)))

    def _begin_window(self) -> None:
        self._window, self._window_bytes = {}, 0

    def _flush_if_due(self) -> None:
        options = self._options
        is_due = (
            len(self._memory) >= options.flush_size
            or self._windows >= options.flush_interval_count
            or self._memory_bytes >= options.flush_bytes
        )
        if is_due and self._memory:
            self._wait()  # what was frozen before is still in memory: so much and no more
            self._freeze()

    def _freeze(self) -> None:
        with self._failing():
            segment = self._wal.roll()
        self._wal.forget(self._flusher.manifest.wal_from)
        self._frozen = frozen = _Memory(self._memory, self._last)
        self._memory, self._memory_bytes, self._windows = {}, 0, 0
        self._flushing = self._pool.submit(self._flush, frozen, segment)

    def _flush(self, frozen: _Memory, segment: int) -> None:
        self._flusher.flush(frozen.rows, window=frozen.window, wal_from=segment)
        self._frozen = None
        self._flusher.merge_if_due()

    def _wait(self) -> None:
        flushing, self._flushing = self._flushing, None
        if flushing is not None:
            with self._failing():
                flushing.result()

    def _raise_of_flush(self) -> None:
        if self._flushing is not None:
            self._wait()

    def _check(self) -> None:
        if self._failure is not None:
            raise HoodieError(
                f"this writer of {self._what} has failed, open a new one: {self._failure}"
            ) from self._failure
        if self._is_closed:
            raise HoodieError(f"this writer of {self._what} is closed: open a new one")
        if self._flushing is not None and self._flushing.done():
            self._wait()

    def _failing(self) -> _StorageErrors:
        return _StorageErrors(self)

    def _is_overtaken(self) -> bool:
        with suppress(OSError, HoodieError):
            return read_newest(self._storage).epoch > self._flusher.manifest.epoch
        return False

    def _fenced(self, why: str) -> StoreFencedError:
        return StoreFencedError(
            f"another writer has taken {self._what} over, or may have: {why}. Nothing of the window counts"
        )


def _let_go(wal: Wal, hold: Hold, what: str) -> None:
    """Of a writer that nobody holds any more: as if its process had died."""
    warnings.warn(
        f"a writer of {what} was never closed: use it in a `with`, or close it", ResourceWarning, stacklevel=2
    )
    with suppress(OSError, HoodieError):
        wal.close()
    hold.abandon()


class _StorageErrors:
    """An error of the storage in this block is the end of the writer, and is told as what it means."""

    def __init__(self, writer: BucketWriter) -> None:
        self._writer = writer

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            return
        writer = self._writer
        failure: BaseException = error
        if isinstance(error, FileExistsError) and not isinstance(error, HoodieError):
            failure = writer._fenced("it took the next number")
        elif isinstance(error, OSError) and not isinstance(error, HoodieError) and writer._is_overtaken():
            failure = writer._fenced("it goes by a later state of the bucket")
        elif isinstance(error, OSError) and not isinstance(error, HoodieError):
            failure = CommitOutcomeUnknownError(
                f"the storage of {writer._what} failed ({error}): it is not known whether the window is committed. "
                "Open a new writer and look at its last_window, or at the store's"
            )
        writer._failure = failure
        if failure is not error:
            raise failure from error


def _values(rows: dict[bytes, bytes | None]) -> Binary:
    return pa.array(rows.values(), VALUES, size=len(rows))


def _longest(array: Binary) -> int:
    return int(pc.max(pc.binary_length(array)).as_py() or 0)
