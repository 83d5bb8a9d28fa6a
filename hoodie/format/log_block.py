"""The framing of log files: blocks, one after the other, whose payload stays encoded.

Witness: every log file of the golden tables scans to its last byte, and encodes back to the same bytes where the
order of the header entries (Java's hash order) is the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from hoodie.errors import CorruptBlockError, CorruptFileError
from hoodie.format.cursor import Cursor, i32, i64
from hoodie.model.enums import BlockKind, HeaderKey

MAGIC = b"#HUDI#"
_Ordinal = TypeVar("_Ordinal", BlockKind, HeaderKey)
_FORMAT_VERSION = 1
_ROLLBACK_COMMAND = "0"
_FIND_MAGIC = re.compile(re.escape(MAGIC))  # searches a memoryview without copying it
HEAD_BYTES = len(MAGIC) + 8
"""Magic and size of a block; the size counts from here."""
_SIZE_END = HEAD_BYTES
_MIN_SIZE = 4 + 4 + 4 + 8 + 4 + 8  # version, kind, empty header, content length, empty footer, total length


@dataclass(frozen=True)
class LogBlock:
    """One block of a log file, payload still encoded (and not copied from the buffer it was found in)."""

    kind: BlockKind
    header: Mapping[HeaderKey, str]
    content: memoryview | bytes
    footer: Mapping[HeaderKey, str]
    offset: int
    """Of the magic, in the buffer."""
    size_bytes: int
    """The whole block, from its magic to its last byte."""


@dataclass(frozen=True)
class CorruptBlock:
    """Bytes that are no whole block, up to the next magic or the end of the file."""

    offset: int
    size_bytes: int
    reason: str


def encode_block(kind: BlockKind, header: Mapping[HeaderKey, str], content: memoryview | bytes) -> bytes:
    """The bytes of one block, with an empty footer.

    Layout (big-endian): magic 6 | block size i64 | format version i32 | kind i32 | header | content length i64
    | content | footer | total length i64. The block size counts everything after itself; the total length
    everything before itself. A map is: count i32, then for each entry key ordinal i32, byte length i32, UTF-8.
    """
    head = b"".join((i32(_FORMAT_VERSION), i32(kind), _encode_map(header), i64(len(content))))
    foot = _encode_map({})
    size = len(head) + len(content) + len(foot) + 8
    return b"".join((MAGIC, i64(size), head, content, foot, i64(len(MAGIC) + size)))


def rollback_block(*, instant: str, target: str) -> bytes:
    """The command block of the rollback `instant`: disarms all blocks of instant `target` that precede it."""
    header = {
        HeaderKey.TARGET_INSTANT_TIME: target,
        HeaderKey.INSTANT_TIME: instant,
        HeaderKey.COMMAND_BLOCK_TYPE: _ROLLBACK_COMMAND,
    }
    return encode_block(BlockKind.COMMAND, header, b"")


def decode_block(buffer: memoryview | bytes, offset: int) -> tuple[LogBlock, int]:
    """Decode the block that starts at `offset` and return it with the offset after it.

    Layout: see `encode_block`. What follows the block is checked too: the end of the buffer, fewer than 6 bytes,
    or another magic.

    Raises:
        CorruptBlockError: (a CorruptFileError) the bytes at `offset` are no whole block; `error.offset` says where
            it broke.
    """
    view = memoryview(buffer).cast("B")
    frame = Cursor(view, offset)
    if frame.take(len(MAGIC), "magic of a log block") != MAGIC:
        raise CorruptBlockError(f"no log block begins at offset {offset}", offset=offset)
    size = frame.i64("block size")
    body = offset + _SIZE_END
    if size < _MIN_SIZE or size > len(view) - body:
        raise CorruptBlockError(
            f"log block at offset {offset} claims {size} bytes, {len(view) - body} follow", offset=offset + len(MAGIC)
        )
    after = body + size
    total = Cursor(view, after - 8).i64("total length")
    if total - len(MAGIC) != size:
        raise CorruptBlockError(
            f"log block at offset {offset} says {size} bytes in front and {total - len(MAGIC)} at its end",
            offset=after - 8,
        )
    following = view[after : after + len(MAGIC)]
    if len(following) == len(MAGIC) and following != MAGIC:
        raise CorruptBlockError(
            f"log block at offset {offset} is followed by other bytes than a log block", offset=after
        )
    inner = Cursor(view, body, after - 8)
    version = inner.i32("log format version")
    if version != _FORMAT_VERSION:
        raise CorruptBlockError(
            f"log block at offset {offset} has log format version {version}, known is {_FORMAT_VERSION}", offset=body
        )
    kind = _ordinal(BlockKind, inner.i32("block kind"), body + 4, "block kind")
    header = _decode_map(inner, "header")
    content = inner.take(inner.i64("content length"), "content")
    footer = _decode_map(inner, "footer")
    if inner.remaining:
        raise CorruptBlockError(
            f"log block at offset {offset} has {inner.remaining} bytes behind its footer", offset=inner.offset
        )
    return LogBlock(kind, header, content, footer, offset, _SIZE_END + size), after


def whole_size(head: memoryview | bytes) -> int:
    """How many bytes the block has that begins with these `HEAD_BYTES`, and the magic behind it, by its own word.

    Raises:
        CorruptBlockError: no block begins so.
    """
    frame = Cursor(memoryview(head).cast("B"), 0)
    if frame.take(len(MAGIC), "magic of a log block") != MAGIC:
        raise CorruptBlockError("no log block begins here", offset=0)
    return max(0, frame.i64("block size")) + HEAD_BYTES + len(MAGIC)


def scan_blocks(buffer: bytes | memoryview) -> Iterator[LogBlock | CorruptBlock]:
    """All blocks of a log file in order; what is no whole block comes as `CorruptBlock` and the scan goes on behind it.

    After a broken block the next magic is searched from its size field on, as Apache Hudi does. A last piece shorter
    than a magic counts as end of file. The caller decides whether a corrupt block may be skipped: only what lies
    outside committed sizes is a torn tail.

    Raises:
        CorruptFileError: at once, when the file does not begin with a log block's magic.
    """
    view = memoryview(buffer).cast("B")
    if view[: len(MAGIC)] != MAGIC[: len(view)]:
        raise CorruptFileError(f"not a log file: it begins with {bytes(view[:6])!r} instead of {MAGIC!r}")
    return _scan(view)


def _scan(view: memoryview) -> Iterator[LogBlock | CorruptBlock]:
    offset = 0
    while len(view) - offset >= len(MAGIC):
        try:
            block, after = decode_block(view, offset)
        except CorruptBlockError as error:
            match = _FIND_MAGIC.search(view, offset + len(MAGIC))
            after = match.start() if match else len(view)
            yield CorruptBlock(offset, after - offset, str(error))
        else:
            yield block
        offset = after


def _encode_map(entries: Mapping[HeaderKey, str]) -> bytes:
    parts = [i32(len(entries))]
    for key, value in entries.items():
        text = value.encode("utf-8")
        parts += (i32(key), i32(len(text)), text)
    return b"".join(parts)


def _decode_map(cursor: Cursor, what: str) -> dict[HeaderKey, str]:
    at = cursor.offset
    count = cursor.i32(f"{what} count")
    if not 0 <= count <= cursor.remaining // 8:
        raise CorruptBlockError(f"{what} at offset {at} claims {count} entries", offset=at)
    entries = {}
    for _ in range(count):
        at = cursor.offset
        key = _ordinal(HeaderKey, cursor.i32(f"{what} key"), at, f"{what} key")
        entries[key] = cursor.text(cursor.i32(f"{what} length"), f"{what} {key.name}")
    return entries


def _ordinal(kind: type[_Ordinal], value: int, offset: int, what: str) -> _Ordinal:
    try:
        return kind(value)
    except ValueError as exc:
        raise CorruptBlockError(f"unknown {what} {value} at offset {offset}", offset=offset) from exc
