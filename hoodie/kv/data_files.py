"""Data files as a seam: sorted, immutable, written once by a flush or a merge, looked into by key, and read in order.

A format is a `DataFormat` with an entry in `FORMATS`; `tests/contract/test_kv_data_files.py` says what each has to keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from hoodie.errors import OptionError
from hoodie.kv.block_file import BlockFormat
from hoodie.kv.hfile_format import HFileFormat
from hoodie.kv.rows import SortedRows
from hoodie.kv.settings import NO_COMPRESSION
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache


class DataWriter(Protocol):
    @property
    def size_bytes(self) -> int:
        """Of what was added so far, about as large as the file will be."""
        ...

    def add(self, rows: SortedRows) -> None:
        """Rows behind those that were added before."""
        ...


class DataReader(Protocol):
    """A file that is open; thread-safe.

    Raises (each method):
        CorruptFileError: what is needed of it is damaged. FileNotFoundError: it is gone.
    """

    def get(self, key: bytes, *, is_likely: bool = True) -> tuple[bool, bytes | None]:
        """Whether the file has the key, and its value; None: it says that the key is deleted.

        `is_likely`: most keys that are asked for are there, so that a filter may be asked last.
        """
        ...

    def get_many(self, keys: SortedRows) -> SortedRows:
        """Those of the keys that the file has, which come sorted and each once (`keys.values` counts for nothing)."""
        ...

    def scan(self, start: bytes | None, stop: bytes | None) -> Iterator[SortedRows]:
        """Rows from `start` on and before `stop`, in order, in batches of some MB of which none is empty."""
        ...

    def close(self) -> None: ...


class DataFormat(Protocol):
    @property
    def suffix(self) -> str: ...
    @property
    def most_key_bytes(self) -> int:
        """Longer keys no file can hold, so no writer takes them."""
        ...

    @property
    def most_value_bytes(self) -> int: ...

    @property
    def compressions(self) -> Sequence[str]:
        """Names of codecs that it can write with, "none" among them. Files say their own."""
        ...

    def create(
        self, storage: Storage, path: str, compression: str = NO_COMPRESSION
    ) -> AbstractContextManager[DataWriter]:
        """A new file, durable and whole when the block ends without an exception."""
        ...

    def open(self, storage: Storage, path: str, cache: Cache) -> DataReader: ...


FORMATS: Mapping[str, DataFormat] = {"hfile": HFileFormat(), "blocks": BlockFormat()}
DEFAULT_FORMAT = "hfile"


def format_named(name: str) -> DataFormat:
    """Raises: OptionError: there is none."""
    result = FORMATS.get(name)
    if result is None:
        raise OptionError(f"file_format={name!r} is not known; known are {', '.join(FORMATS)}")
    return result
