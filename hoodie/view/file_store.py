"""The file store seam: the names and sizes of the files of each partition, put and given partition by partition.

Where a new store goes: a `FileStore` beside `spilled_store.py` and `embedded_store.py`, chosen in `stores.py`.
`tests/contract/test_file_store.py` says what it has to keep.

A partition is one text of bytes in every store: a table of a million files takes a few objects for each partition then, and not
several for each file.

    count u32 | size i64 of each file, little-endian | names, sorted, with NUL between them
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from hoodie.errors import CorruptFileError

Files = Mapping[str, int]
"""Name -> size in bytes of each file of a partition, in the order of the names."""

_COUNT = struct.Struct("<I")
_SIZES = np.dtype("<i8")
BESIDE_BYTES = 200
"""About what a partition takes in memory besides its path and its files."""


class FileStore(Protocol):
    """Partition path -> files. What was put last is given; nothing is durable. Not thread-safe: its owner takes turns."""

    @property
    def memory_bytes(self) -> int:
        """About what it holds in memory, paths of partitions included."""
        ...

    def get(self, partition_path: str) -> Files | None:
        """None where nothing was put, or it was dropped since."""
        ...

    def put(self, partition_path: str, files: Files) -> None: ...

    def drop(self, partition_path: str) -> None:
        """Forget a partition; nothing happens when it is not there."""
        ...

    def partitions(self) -> Sequence[str]:
        """The paths of all that were put, sorted."""
        ...

    def clear(self) -> None: ...

    def close(self) -> None:
        """Give back what it holds on disk. It is not asked any more. May be called twice."""
        ...


class MemoryStore:
    """`FileStore` in memory: 80 bytes for a file of a usual name."""

    def __init__(self) -> None:
        self._texts: dict[str, bytes] = {}
        self._bytes = 0

    @property
    def memory_bytes(self) -> int:
        return self._bytes

    def get(self, partition_path: str) -> Files | None:
        text = self._texts.get(partition_path)
        return None if text is None else decode_files(text)

    def put(self, partition_path: str, files: Files) -> None:
        self.drop(partition_path)
        text = encode_files(files)
        self._texts[partition_path] = text
        self._bytes += bytes_of(partition_path, text)

    def drop(self, partition_path: str) -> None:
        text = self._texts.pop(partition_path, None)
        if text is not None:
            self._bytes -= bytes_of(partition_path, text)

    def partitions(self) -> Sequence[str]:
        return sorted(self._texts)

    def clear(self) -> None:
        self._texts.clear()
        self._bytes = 0

    def close(self) -> None:
        self.clear()


def bytes_of(partition_path: str, text: bytes) -> int:
    """About what a partition takes in memory."""
    return len(partition_path) + len(text) + BESIDE_BYTES


def encode_files(files: Files) -> bytes:
    """One partition as bytes, the same for equal files."""
    names = sorted(files)
    sizes = np.array([files[name] for name in names], dtype=_SIZES)
    return _COUNT.pack(len(names)) + sizes.tobytes() + "\0".join(names).encode("utf-8", "surrogatepass")


def decode_files(text: bytes) -> Files:
    """The files of a partition.

    Raises:
        CorruptFileError: the bytes are none of `encode_files`.
    """
    try:
        (count,) = _COUNT.unpack_from(text)
        begin = _COUNT.size + count * _SIZES.itemsize
        sizes = np.frombuffer(text, _SIZES, count, _COUNT.size)
        names = text[begin:].decode("utf-8", "surrogatepass").split("\0") if count else []
    except (struct.error, ValueError) as exc:
        raise CorruptFileError(f"{len(text)} bytes are not a list of files: {exc}") from exc
    if len(names) != count:
        raise CorruptFileError(f"a list of {count} files has {len(names)} names")
    return dict(zip(names, sizes.tolist(), strict=True))
