"""HFiles for tests: made of pairs, read back as pairs."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from hoodie.hfile.block import Coding
from hoodie.hfile.key_value import Column
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource
from hoodie.hfile.writer import HFileOptions, HFileWriter
from hoodie.storage.cache import Cache

Pairs = Sequence[tuple[bytes, bytes]]

SMALL = HFileOptions(block_bytes=100, index_page_bytes=60, index_least_entries=2, bloom_chunk_bytes=128)
"""Many blocks, several levels of the index and several chunks of the filter from few keys."""


def small(coding: Coding, *, bloom_rate: float | None = 0.01, column: Column | None = None) -> HFileOptions:
    """As `SMALL`, stored otherwise."""
    return HFileOptions(
        block_bytes=SMALL.block_bytes,
        coding=coding,
        column=column or Column(),
        bloom_rate=bloom_rate,
        bloom_chunk_bytes=SMALL.bloom_chunk_bytes,
        index_page_bytes=SMALL.index_page_bytes,
        index_least_entries=SMALL.index_least_entries,
    )


def numbered(count: int, *, start: int = 0) -> list[tuple[bytes, bytes]]:
    """Sorted keys with values of all lengths from 0 to 40."""
    return [(b"key %06d" % number, b"%d " % number * (number % 8)) for number in range(start, start + count)]


def hfile(
    pairs: Pairs,
    options: HFileOptions | None = None,
    *,
    batches: int = 1,
    metas: Mapping[str, bytes] | None = None,
    infos: Mapping[bytes, bytes] | None = None,
) -> bytes:
    """The bytes of a file that is written in so many batches."""
    out = io.BytesIO()
    writer = HFileWriter(out, options)
    size = max(1, -(-len(pairs) // batches))
    for start in range(0, len(pairs), size):
        part = pairs[start : start + size]
        writer.write(binaries(key for key, _ in part), binaries(value for _, value in part))
    for name, content in (metas or {}).items():
        writer.add_meta(name, content)
    for entry, value in (infos or {}).items():
        writer.add_info(entry, value)
    writer.finish()
    assert writer.size_bytes == len(out.getvalue())
    return out.getvalue()


def binaries(data: Iterable[bytes | None]) -> pa.Array:
    return pa.array(list(data), pa.binary())


def opened(data: bytes | memoryview, cache: Cache | None = None) -> HFileReader:
    return HFileReader(BufferSource(data, "some.hfile"), cache)


def scanned(
    reader: HFileReader, start: bytes | None = None, stop: bytes | None = None, *, prefix: bytes | None = None
) -> list[tuple[bytes, bytes]]:
    """What a scan gives, as pairs."""
    return [
        pair
        for batch in reader.scan(start, stop, prefix=prefix)
        for pair in zip(batch["key"].to_pylist(), batch["value"].to_pylist())
    ]
