"""Block framing: bytes, torn tails, damage anywhere, and every log file of the golden tables."""

import struct
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptBlockError, CorruptFileError
from hoodie.format.log_block import (
    MAGIC,
    CorruptBlock,
    LogBlock,
    decode_block,
    encode_block,
    rollback_block,
    scan_blocks,
)
from hoodie.model.enums import BlockKind, HeaderKey

GOLDEN = Path(__file__).parent.parent / "golden"
LOGS = sorted(path for path in GOLDEN.rglob(".*.log.*") if not path.name.endswith(".crc"))
HEADER = {HeaderKey.INSTANT_TIME: "20260101000000000", HeaderKey.SCHEMA: '{"é": 1}'}
BLOCK = encode_block(BlockKind.AVRO_DATA, HEADER, b"payload")
OTHER = encode_block(BlockKind.DELETE, {HeaderKey.INSTANT_TIME: "1"}, b"")


def test_block_has_the_layout_of_the_format():
    size, version, kind = struct.unpack_from(">qii", OTHER, 6)
    assert OTHER[:6] == b"#HUDI#"
    assert size == len(OTHER) - 14
    assert (version, kind) == (1, 1)
    assert OTHER[22:35] == bytes.fromhex("00000001 00000000 00000001 31")
    assert OTHER[35:43] == bytes(8)  # content length
    assert OTHER[43:47] == bytes(4)  # no footer
    assert struct.unpack(">q", OTHER[47:]) == (size + 6,)


def test_rollback_block_is_the_one_that_hudi_writes():
    path = next(path for path in LOGS if "v6_mor_logs" in str(path) and ".log.5_0" in path.name)
    assert rollback_block(instant="20261121075615150", target="20261121075610585") == path.read_bytes()


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.relative_to(GOLDEN).parts[0]}-{path.name[-22:]}")
def test_golden_log_file_scans_to_its_end_and_encodes_back(path):
    data = path.read_bytes()
    blocks = list(scan_blocks(data))
    assert blocks
    assert all(isinstance(block, LogBlock) for block in blocks)
    assert b"".join(encode_block(block.kind, block.header, block.content) for block in blocks) == data
    assert blocks[0].offset == 0
    assert sum(block.size_bytes for block in blocks) == len(data)


def test_golden_tables_have_every_kind_that_is_written():
    kinds = Counter(block.kind for path in LOGS for block in scan_blocks(path.read_bytes()))
    written = set(BlockKind) - {BlockKind.CORRUPT}
    assert set(kinds) == written


@given(
    st.sampled_from(BlockKind),
    st.dictionaries(st.sampled_from(HeaderKey), st.text(st.characters(exclude_categories=["Cs"]))),
    st.binary(),
)
def test_decode_gives_what_was_encoded(kind, header, content):
    data = encode_block(kind, header, content)
    block, after = decode_block(b"xx" + data, 2)
    assert after == len(data) + 2
    assert (block.kind, block.header, bytes(block.content), block.footer) == (kind, header, content, {})
    assert (block.offset, block.size_bytes) == (2, len(data))


@pytest.mark.parametrize("cut", range(len(MAGIC), len(BLOCK)))  # a shorter tail is end of file
def test_scan_keeps_whole_blocks_and_reports_the_torn_tail(cut):
    whole, tail = scan_blocks(BLOCK + BLOCK[:cut])
    assert bytes(whole.content) == b"payload"
    assert isinstance(tail, CorruptBlock)
    assert (tail.offset, tail.size_bytes) == (len(BLOCK), cut)


@pytest.mark.parametrize("cut", range(len(MAGIC)))
def test_tail_shorter_than_a_magic_is_end_of_file(cut):
    assert len(list(scan_blocks(BLOCK + BLOCK[:cut]))) == 1
    assert list(scan_blocks(BLOCK[:cut])) == []


@pytest.mark.parametrize("cut", range(len(MAGIC), len(BLOCK)))
def test_block_behind_a_torn_one_is_found(cut):
    torn, whole = scan_blocks(BLOCK[:cut] + OTHER)
    assert isinstance(torn, CorruptBlock)
    assert (torn.offset, torn.size_bytes) == (0, cut)
    assert whole.kind is BlockKind.DELETE
    assert whole.offset == cut


@pytest.mark.parametrize("at", range(len(MAGIC), len(BLOCK)))
@pytest.mark.parametrize("change", [0x01, 0x80, 0xFF])
def test_changed_byte_never_hides_the_next_block_or_stops_the_scan(at, change):
    data = bytearray(BLOCK + OTHER)
    data[at] ^= change
    *first, last = scan_blocks(bytes(data))
    assert last.kind is BlockKind.DELETE
    assert last.offset == len(BLOCK)
    assert len(first) == 1
    changed = first[0]
    # Framing has no checksum: only the texts, keys, content and kind may change unseen.
    if isinstance(changed, LogBlock):
        assert changed.size_bytes == len(BLOCK)
        assert (changed.kind, dict(changed.header), bytes(changed.content)) != (BlockKind.AVRO_DATA, HEADER, b"payload")
    else:
        assert changed.size_bytes == len(BLOCK)


def test_bytes_behind_a_block_that_are_no_magic_make_it_corrupt_as_in_hudi():
    (found,) = scan_blocks(BLOCK + b"\x00" * 6)
    assert isinstance(found, CorruptBlock)
    assert found.size_bytes == len(BLOCK) + 6


@pytest.mark.parametrize("data", [b"PAR1xx", b"X", b"#HUDI", b"#HUDX#" + BLOCK, b"\x00" + BLOCK])
def test_file_that_is_no_log_is_refused_before_anything_is_iterated(data):
    if MAGIC.startswith(data):
        assert list(scan_blocks(data)) == []
    else:
        with pytest.raises(CorruptFileError, match="not a log file"):
            scan_blocks(data)


@pytest.mark.parametrize("size", [-1, 0, 31, 1 << 40, (1 << 63) - 1, -(1 << 63)])
def test_hostile_block_size_is_an_error_with_its_offset(size):
    data = bytearray(BLOCK)
    data[6:14] = struct.pack(">q", size)
    with pytest.raises(CorruptBlockError) as caught:
        decode_block(bytes(data), 0)
    assert caught.value.offset == 6


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [
        (14, 2, "log format version 2"),
        (18, 7, "unknown block kind 7"),
        (22, -1, "claims -1 entries"),
        (22, 1 << 30, "claims 1073741824 entries"),
        (26, 99, "unknown header key 99"),
        (30, -5, "takes -5 bytes"),
        (30, 1 << 30, "takes 1073741824 bytes"),
    ],
)
def test_scan_says_what_is_wrong_with_a_block(at, value, reason):
    data = bytearray(BLOCK)
    data[at : at + 4] = struct.pack(">i", value)
    (found,) = scan_blocks(bytes(data))
    assert isinstance(found, CorruptBlock)
    assert reason in found.reason


def test_bytes_between_footer_and_total_length_are_corrupt():
    size = len(OTHER) - 14 + 3
    data = MAGIC + struct.pack(">q", size) + OTHER[14:-8] + b"xyz" + struct.pack(">q", size + 6)
    (found,) = scan_blocks(data)
    assert isinstance(found, CorruptBlock)
    assert "3 bytes behind its footer" in found.reason


def test_content_is_not_copied():
    data = bytearray(BLOCK)
    (block,) = scan_blocks(memoryview(data))
    data[BLOCK.index(b"payload")] = ord("P")
    assert bytes(block.content) == b"Payload"


def test_arrow_buffers_are_taken():
    (block,) = scan_blocks(memoryview(pa.py_buffer(BLOCK)))  # a view of signed bytes
    assert bytes(block.content) == b"payload"


def test_no_log_block_at_the_offset():
    with pytest.raises(CorruptBlockError, match="no log block begins at offset 1"):
        decode_block(BLOCK, 1)
