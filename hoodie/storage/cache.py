"""What a process keeps of tables between operations, all within one bound of bytes.

Files of a table never change, so what was learned from one holds as long as that file stands there. A job that writes every
minute opens its table anew each time and finds here what it kept. All tables of a process share `process_cache()`; code is
handed a `Cache` (`TableContext.cache`) and never asks for that one by itself.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cache
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from hoodie.errors import OptionError
from hoodie.storage.base import FileInfo, Storage

CAPACITY_BYTES = 192 * 1024 * 1024
"""Of all that a process keeps."""
SETTING = "HOODIE_CACHE_MB"
"""An environment variable: another bound, in megabytes."""
_LARGEST_SHARE = 3
"""No entry takes more than this part of the room: the others would be forgotten for one that may not be asked for again."""
_BESIDE_BYTES = 1024
"""What an entry takes besides its value."""

V = TypeVar("V")


class Kind(Generic[V]):
    """One kind of values, with keys of its own; kinds are constants of the modules that keep them.

    `forget` is called with a value that is dropped or replaced, under the cache's lock.
    """

    def __init__(self, name: str, *, forget: Callable[[V], None] | None = None) -> None:
        self.name = name
        self.forget = forget

    def __repr__(self) -> str:
        return f"Kind({self.name!r})"


class FileKey(NamedTuple):
    """A file as it stands there; one that was replaced in its place is another."""

    table: Hashable
    path: str
    file: Hashable


def file_key(storage: Storage, info: FileInfo) -> FileKey:
    return FileKey(storage.identity, info.path, info.identity)


class Cache:
    """The values that were asked for last, within `capacity_bytes`; thread-safe. In another process it is that one's own."""

    def __init__(self, capacity_bytes: int = CAPACITY_BYTES, *, largest_share: int = _LARGEST_SHARE) -> None:
        self.capacity_bytes = capacity_bytes
        self._largest = capacity_bytes // largest_share
        self._entries: OrderedDict[tuple[Kind[Any], Hashable], tuple[Any, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def __reduce__(self) -> tuple[Callable[[], Cache], tuple[()]]:
        return process_cache, ()

    def find(self, kind: Kind[V], key: Hashable) -> V | None:
        at = (kind, key)
        with self._lock:
            entry = self._entries.get(at)
            if entry is None:
                return None
            self._entries.move_to_end(at)
            result: V = entry[0]
            return result

    def get(self, kind: Kind[V], key: Hashable, load: Callable[[], V], size: Callable[[V], int]) -> V:
        """The value of the key, which is loaded where it is not there. Two threads may load it at the same time."""
        result = self.find(kind, key)
        if result is None:
            result = load()
            self.put(kind, key, result, size(result))
        return result

    def put(self, kind: Kind[V], key: Hashable, value: V, size_bytes: int) -> None:
        """Keep the value in place of the one before; of one that is too large neither stays."""
        with self._lock:
            self._drop((kind, key))
            size_bytes += _BESIDE_BYTES
            if size_bytes > self._largest:
                return
            self._entries[kind, key] = value, size_bytes
            self._bytes += size_bytes
            while self._bytes > self.capacity_bytes:
                self._drop(next(iter(self._entries)))

    def take(self, kind: Kind[V], key: Hashable) -> V | None:
        """Take the value out of the cache, for the caller alone."""
        with self._lock:
            entry: tuple[V | None, int] = self._entries.pop((kind, key), (None, 0))
            self._bytes -= entry[1]
            return entry[0]

    def _drop(self, at: tuple[Kind[Any], Hashable]) -> None:
        entry = self._entries.pop(at, None)
        if entry is not None:
            self._bytes -= entry[1]
            if at[0].forget is not None:
                at[0].forget(entry[0])


def process_cache() -> Cache:
    """The one that all tables of this process share.

    Raises:
        OptionError: HOODIE_CACHE_MB is no number of megabytes.
    """
    return _of_process()


@cache
def _of_process() -> Cache:
    setting = os.environ.get(SETTING, "").strip()
    if not setting:
        return Cache()
    if not setting.isdecimal():
        raise OptionError(f"{SETTING}={setting!r} is not a whole number of megabytes: set it to 512, say, or unset it")
    return Cache(int(setting) * 1024 * 1024)
