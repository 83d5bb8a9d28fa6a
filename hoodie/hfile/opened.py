"""Opens an HFile: its last bytes in one read, or in two where much has to be known before anything else is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.hfile.block import HEADER_BYTES, BlockKind, content_of, decode_block
from hoodie.hfile.bloom import BloomMeta, decode_bloom_meta
from hoodie.hfile.compression import check_known
from hoodie.hfile.file_info import BLOOM_TYPE, ENCODING, cells_of, decode_file_info
from hoodie.hfile.index import Entry, IndexPage, decode_root, page_of, tolerant_root
from hoodie.hfile.key_value import Cells
from hoodie.hfile.source import Source
from hoodie.hfile.trailer import TRAILER_BYTES, Trailer, decode_trailer

_TAIL_BYTES = 128 * 1024
_MOST_OPEN_BYTES = 256 * 1024 * 1024
"""More than this no file has in the part that is read first."""
_MIDDLE_KEY_BYTES = 16


@dataclass(frozen=True)
class Opened:
    """What is known of a file before any of its data blocks is read."""

    trailer: Trailer
    root: IndexPage
    metas: Mapping[bytes, Entry]
    info: Mapping[bytes, bytes]
    cells: Cells
    bloom: BloomMeta | None


@contextmanager
def naming(source: Source, what: str) -> Iterator[None]:
    """Errors of what is decoded inside tell the file and the part."""
    try:
        yield
    except CorruptFileError as exc:
        raise CorruptFileError(f"HFile {source.name}: {what}: {exc}") from exc
    except UnsupportedTableError as exc:
        raise UnsupportedTableError(f"HFile {source.name}: {what}: {exc}") from exc


def open_hfile(source: Source) -> Opened:
    """Raises CorruptFileError and UnsupportedTableError."""
    tail_start = max(0, source.size_bytes - _TAIL_BYTES)
    tail = source.read(tail_start, source.size_bytes - tail_start)
    with naming(source, "its trailer"):
        trailer = decode_trailer(tail[-TRAILER_BYTES:], source.size_bytes)
        check_known(trailer.compression)
        start, end = trailer.load_on_open_offset, source.size_bytes - TRAILER_BYTES
        if end - start > _MOST_OPEN_BYTES:
            raise CorruptFileError(f"it says that {end - start} bytes have to be read first")
    body = tail[: len(tail) - TRAILER_BYTES]
    # What is missing in front of the tail takes a second read.
    head = source.read(start, tail_start - start) if start < tail_start else b""
    section = memoryview(b"".join((head, body[max(0, start - tail_start) :])))
    return _parsed(source, trailer, section)


def _parsed(source: Source, trailer: Trailer, section: memoryview) -> Opened:
    blocks = _Blocks(source, trailer, section)
    content = blocks.take(BlockKind.ROOT_INDEX)
    with naming(source, "its data index"):
        root = page_of(tolerant_root(content, trailer.data_index_count, behind=_behind_root(trailer)))
        check_places(root, trailer)
    content = blocks.take(BlockKind.ROOT_INDEX)
    with naming(source, "its meta index"):
        metas, end = decode_root(content, trailer.meta_index_count)
        if end != len(content):
            raise CorruptFileError(f"{len(content) - end} bytes follow its {len(metas)} entries")
        check_places(IndexPage(metas), trailer)
    if blocks.offset != trailer.file_info_offset:
        raise CorruptFileError(
            f"HFile {source.name}: its file info is at byte {blocks.offset}, the trailer says {trailer.file_info_offset}"
        )
    content = blocks.take(BlockKind.FILE_INFO)
    with naming(source, "its file info"):
        info = decode_file_info(content)
        if ENCODING in info and info[ENCODING] != b"NONE":
            raise UnsupportedTableError(f"its data blocks have the encoding {info[ENCODING]!r}")
        cells = cells_of(info)
    bloom = None
    while blocks.more:
        kind, content = blocks.any()
        if kind == BlockKind.BLOOM_META and info.get(BLOOM_TYPE) == b"ROW":
            with naming(source, "its bloom filter"):
                bloom = decode_bloom_meta(content)
                if bloom is not None:
                    check_places(bloom.chunks, trailer)
    return Opened(trailer, root, {entry.key: entry for entry in metas}, info, cells, bloom)


def _behind_root(trailer: Trailer) -> int:
    return _MIDDLE_KEY_BYTES if trailer.data_index_levels > 1 else 0


def check_places(page: IndexPage, trailer: Trailer) -> None:
    """Whether all blocks of a page lie in front of the part that is read first.

    Raises:
        CorruptFileError: one does not.
    """
    for entry in page.entries:
        if not (
            entry.offset >= 0
            and entry.size_bytes >= HEADER_BYTES
            and entry.offset + entry.size_bytes <= trailer.load_on_open_offset
        ):
            raise CorruptFileError(f"it has a block of {entry.size_bytes} bytes at byte {entry.offset}")


class _Blocks:
    """The blocks of the part that is read first, in their order."""

    def __init__(self, source: Source, trailer: Trailer, section: memoryview) -> None:
        self._source = source
        self._trailer = trailer
        self._section = section
        self._at = 0

    @property
    def offset(self) -> int:
        """Of the next one, in the file."""
        return self._trailer.load_on_open_offset + self._at

    @property
    def more(self) -> bool:
        return self._at < len(self._section)

    def any(self) -> tuple[BlockKind, memoryview]:
        with naming(self._source, f"the block at byte {self.offset}"):
            block = decode_block(self._section, self._at)
            content = content_of(block, self._trailer.compression)
        self._at += block.size_bytes
        return block.kind, content

    def take(self, expected: BlockKind) -> memoryview:
        offset = self.offset
        kind, content = self.any()
        if kind != expected:
            raise CorruptFileError(
                f"HFile {self._source.name}: the block at byte {offset} is {kind.name} instead of {expected.name}"
            )
        return content
