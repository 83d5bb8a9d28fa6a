"""Readers of a bucket, in any process: they see data files alone, in states that a writer has made whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar, overload

import pyarrow as pa

from hoodie.errors import CorruptFileError, MissingFileError, OptionError, TableChangedError
from hoodie.kv.binary import KEYS, VALUES, Binary, Many, as_array, as_bytes, listed
from hoodie.kv.data_files import DataFormat
from hoodie.kv.lookup import Files
from hoodie.kv.manifest import NO_WINDOW, read_newest
from hoodie.kv.order import KeyOrder
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache
from hoodie.storage.refusals import with_hoodie_errors

T = TypeVar("T")
_ASKED_AGAIN = 8


@with_hoodie_errors
class BucketReader:
    """Made by `KeyValueStore.reader`. Sees a state for as long as was said, and then a newer one, if there is one. Thread-safe."""

    def __init__(
        self, storage: Storage, data_format: DataFormat, order: KeyOrder, cache: Cache, *, max_age_s: float | None
    ) -> None:
        self._storage = storage
        self._format = data_format
        self._order = order
        self._cache = cache
        self._max_age_s = max_age_s
        self._files: Files | None = None
        self.refresh()

    def refresh(self) -> None:
        """See the newest state from now on.

        Raises:
            TableChangedError: the bucket is not there any more: the store was given others.
        """
        self._seen_s = time.monotonic()
        newest = read_newest(self._storage)
        if self._files is not None and newest.number < self._files.manifest.number:
            raise TableChangedError(f"{self._storage.uri} is gone: the store was given other buckets, open it again")
        self._files = Files(self._storage, newest, self._format, self._cache)

    @property
    def window(self) -> int | None:
        """The last window all of whose rows are seen; None: none is."""
        window = self._current().manifest.window
        return None if window == NO_WINDOW else window

    def __repr__(self) -> str:
        return f"<BucketReader of {self.uri}: window {self.window}>"

    @property
    def uri(self) -> str:
        """Where the bucket lies."""
        return self._storage.uri

    @overload
    def get(self, key: bytes) -> bytes | None: ...
    @overload
    def get(self, key: bytes, default: T) -> bytes | T: ...
    def get(self, key: bytes, default: T | None = None) -> bytes | T | None:
        """The value of a key in data files, else `default`."""
        stored = self._order.stored(as_bytes(key, "get"))
        value = self._ask(lambda files: files.get(stored))
        return default if value is None else value

    def __getitem__(self, key: bytes) -> bytes:
        """Raises KeyError where the key has no value."""
        result = self.get(key)
        if result is None:
            raise KeyError(key)
        return result

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def get_many(self, keys: Many) -> Binary:
        """Values in the order of the keys, a list of bytes or an Arrow array; null where there is none."""
        stored = self._order.stored_many(as_array(keys, KEYS, "keys"))
        return self._ask(lambda files: files.get_many(stored))

    def scan(
        self,
        start: bytes | None = None,
        stop: bytes | None = None,
        *,
        prefix: bytes | None = None,
        reverse: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Rows in the order of keys, from `start` on and before `stop`, or those whose keys begin with `prefix`, of one state.

        Args:
            reverse: the same rows, the last key first. Rows of one range of data files wait in memory for that.

        Returns:
            Record batches of `key` (binary) and `value` (large binary).

        Raises (while it is read):
            MissingFileError: the scan took longer than the writer keeps files that it has merged.
        """
        if prefix is not None:
            if start is not None or stop is not None or self._order.encode is not None:
                raise OptionError("prefix goes alone, and with the lexicographic order")
            prefix = as_bytes(prefix, "scan")
            start, stop = prefix, _after(prefix)
        low, high = (None if key is None else self._order.stored(as_bytes(key, "scan")) for key in (start, stop))
        try:
            for rows in self._current().scan(low, high, reverse=reverse):
                yield pa.record_batch([self._order.shown_many(rows.keys), rows.values.cast(VALUES)], ["key", "value"])
        except FileNotFoundError as exc:
            raise MissingFileError(
                f"a data file of {self._storage.uri} is gone, which the scan began with ({exc}). Its writer keeps files that it has "
                "merged for keep_replaced_s seconds: scan again, or let it keep them for longer"
            ) from exc

    def items(
        self, start: bytes | None = None, stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values in order, from `start` on and before `stop`."""
        for batch in self.scan(start, stop, reverse=reverse):
            yield from zip(listed(batch["key"]), listed(batch["value"]), strict=True)

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values in order."""
        return self.items()

    def close(self) -> None:
        """Nothing is held; for `with`."""

    def __enter__(self) -> BucketReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _current(self) -> Files:
        if self._max_age_s is not None and time.monotonic() - self._seen_s > self._max_age_s:
            self.refresh()
        assert self._files is not None  # since `__init__`
        return self._files

    def _ask(self, question: Callable[[Files], T]) -> T:
        """The answer of the state that is seen; where files of it are gone because the writer went on, of the newest one."""
        files = self._current()
        for _ in range(_ASKED_AGAIN):
            try:
                return question(files)
            except FileNotFoundError as exc:
                number = files.manifest.number
                self.refresh()
                files = self._current()
                if files.manifest.number == number:
                    raise CorruptFileError(
                        f"a data file of {self._storage.uri} is gone, and the newest state of the bucket names it: {exc}"
                    ) from exc
        return question(files)


def _after(prefix: bytes) -> bytes | None:
    """The smallest key that is greater than all that begin so; None: there is none."""
    cut = prefix.rstrip(b"\xff")
    return cut[:-1] + bytes([cut[-1] + 1]) if cut else None
