"""Each byte of small files changed, and each end cut off: an error that names the file, or the very rows."""

from dataclasses import replace

import pytest

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.hfile.block import HEADER_BYTES, Coding
from hoodie.hfile.checksums import ChecksumKind
from hoodie.hfile.compression import Compression
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource
from hoodie.hfile.trailer import TRAILER_BYTES, decode_trailer, encode_trailer
from hoodie.hfile.writer import HFileOptions
from tests.effort import long_but
from tests.golden_tables import FOLDER
from tests.hfiles import binaries, hfile, numbered, opened, scanned, small

PAIRS = numbered(18)
KEYS = [key for key, _ in PAIRS]
CODINGS = [Coding(codec, kind) for codec in (Compression.NONE, Compression.GZ) for kind in ChecksumKind if kind]
GOLDEN = sorted(FOLDER.glob("v6_mdt_*/table/.hoodie/metadata/files/*.hfile"))


def everything(data):
    """What each way of reading gives, which is the same."""
    reader = HFileReader(BufferSource(data, "some.hfile"))
    rows = scanned(reader)
    assert reader.get_many(binaries(KEYS)).to_pylist() == [dict(rows).get(key) for key in KEYS]
    assert [reader.get(key) for key in KEYS[::7]] == [dict(rows).get(key) for key in KEYS[::7]]
    return rows, {name: reader.meta(name) for name in reader.meta_names}


@pytest.mark.parametrize("coding", long_but(CODINGS[2:3], CODINGS), ids=str)
def test_each_changed_byte_is_noticed_or_does_not_matter(coding):
    data = hfile(PAIRS, small(coding), metas={"bloomFilter": b"bits" * 9})
    whole = everything(data)
    assert opened(data)._opened.trailer.data_index_levels > 2
    end = len(data) - TRAILER_BYTES + 200  # behind that the trailer is empty, but for the version
    noticed = unnamed = 0
    for at in [*range(end), *range(len(data) - 8, len(data))]:
        for change in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= change
            try:
                assert everything(bytes(damaged)) == whole, at
            except (CorruptFileError, UnsupportedTableError) as error:
                unnamed += "HFile some.hfile" not in str(error)
                noticed += 1
            else:
                assert at >= len(data) - TRAILER_BYTES, f"byte {at} was not noticed"
    assert noticed > 2.9 * (len(data) - TRAILER_BYTES)
    assert not unnamed


@pytest.mark.parametrize("coding", long_but(CODINGS[:1], CODINGS[:3:2]), ids=str)
def test_each_cut_is_noticed(coding):
    data = hfile(PAIRS[:10], small(coding))
    for size in range(len(data)):
        for piece in (data[:size], data[len(data) - size :]):
            with pytest.raises(CorruptFileError, match=r"HFile some\.hfile"):
                everything(piece)


@pytest.mark.parametrize("path", GOLDEN[:1], ids=lambda path: path.name)
@pytest.mark.parametrize("change", long_but([0x01], [0x01, 0x80, 0xFF]))
def test_files_without_checksums_give_rows_or_one_error(path, change):
    """Apache Hudi's: a changed byte of a value is not noticed, and nothing else comes out than an error of ours."""
    data = path.read_bytes()
    whole = everything(data)
    noticed = 0
    for at in range(len(data) - TRAILER_BYTES + 120):
        damaged = bytearray(data)
        damaged[at] ^= change
        try:
            everything(bytes(damaged))
        except (CorruptFileError, UnsupportedTableError):
            noticed += 1
    assert noticed > 1_000  # their gzip streams have checksums of their own
    assert everything(data) == whole


def test_a_bomb_in_a_header_is_not_unpacked():
    data = bytearray(hfile(PAIRS, small(Coding(Compression.GZ, ChecksumKind.NONE))))
    data[12:16] = (0x7FFFFFFF).to_bytes(4, "big")
    with pytest.raises(CorruptFileError, match="compressed bytes claim to be 2147483647"):
        scanned(opened(bytes(data)))


def test_another_number_of_cells_than_the_trailer_tells_is_noticed():
    data = hfile(PAIRS, small(Coding()))
    at = data.index(b"\x38\x12", len(data) - TRAILER_BYTES)  # field 7 is 18
    with pytest.raises(CorruptFileError, match="its trailer tells 19 cells, 18 are there"):
        scanned(opened(data[: at + 1] + b"\x13" + data[at + 2 :]))


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (b"\x00\x00\x03", b"\x00\x00\x02", "version 2 is not read"),
        (b"KeyValue$KVComparator", b"KeyValue$MetaComparator"[:21], "in the order of"),
    ],
)
def test_other_kinds_of_hfiles_are_named(before, after, message):
    data = hfile(PAIRS)
    if message == "in the order of":
        before, after = b"hbase.KeyValue$KVComparator", b"hbase.KeyV$MetaComparator.."
    at = data.rindex(before)
    with pytest.raises(UnsupportedTableError, match=message):
        opened(data[:at] + after + data[at + len(before) :])


def test_an_index_that_leads_back_ends_in_an_error():
    """Else a few pages that name each other would be walked for ever."""
    pairs = numbered(30)
    whole = opened(hfile(pairs, small(Coding(checksum=ChecksumKind.NONE))))
    (first, *others), levels = whole._opened.root.entries, whole._opened.trailer.data_index_levels
    assert levels > 2
    whole._opened.root.entries = [first] + [other._replace(offset=first.offset) for other in others]
    with pytest.raises(CorruptFileError, match="its index leads to byte"):
        scanned(whole)
    with pytest.raises(CorruptFileError, match="its index leads to byte"):
        whole.get_many(binaries(key for key, _ in pairs))


def test_a_cell_with_a_version_in_a_file_without_is_noticed():
    data = bytearray(hfile(PAIRS, small(Coding(checksum=ChecksumKind.NONE))))
    data[HEADER_BYTES + 8 + 22] = 5  # behind the first key, whose value is empty
    with pytest.raises(CorruptFileError, match="has a version, though the file says that none has"):
        opened(bytes(data)).get(PAIRS[0][0])


def test_a_block_of_another_size_than_the_index_tells_is_noticed():
    reader = opened(hfile(PAIRS, HFileOptions(block_bytes=100, bloom_rate=None)))
    first, *others = reader._opened.root.entries
    reader._opened.root.entries = [first._replace(size_bytes=first.size_bytes + 1), *others]
    with pytest.raises(CorruptFileError, match=f"it has {first.size_bytes} bytes instead of {first.size_bytes + 1}"):
        reader.get(PAIRS[0][0])


def test_a_trailer_that_tells_another_place_of_the_file_info_is_refused():
    data = hfile(PAIRS)
    trailer = decode_trailer(data[-TRAILER_BYTES:], len(data))
    other = replace(trailer, file_info_offset=trailer.file_info_offset + 1)
    with pytest.raises(CorruptFileError, match="its file info is at byte"):
        opened(data[:-TRAILER_BYTES] + encode_trailer(other))
    assert scanned(opened(data[:-TRAILER_BYTES] + encode_trailer(trailer))) == PAIRS
