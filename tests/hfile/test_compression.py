"""Framings of Hadoop's codecs."""

import struct
import zlib
from contextlib import suppress

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, OptionError, UnsupportedTableError
from hoodie.hfile.compression import KNOWN, Compression, check_known, compress, decompress

FRAMED = (Compression.SNAPPY, Compression.LZ4, Compression.ZSTD)


@pytest.mark.parametrize("codec", KNOWN)
@given(st.binary(max_size=500), st.integers(0, 3))
def test_content_comes_back(codec, data, times):
    raw = data * (1 + times * 400)
    assert decompress(codec, memoryview(compress(codec, raw)), len(raw)) == raw


@pytest.mark.parametrize("codec", FRAMED)
def test_a_large_content_is_cut_into_frames_that_fit_the_buffers_of_hadoop(codec):
    raw = bytes(1_000_000)
    stored = memoryview(bytes(compress(codec, raw)))
    frames, at = [], 0
    while at < len(stored):
        size, packed = struct.unpack_from(">II", stored, at)
        frames.append(size)
        at += 8 + packed
    assert sum(frames) == len(raw)
    assert max(frames) < 256 * 1024


def test_pieces_of_one_frame_are_joined():
    packed = [pa.Codec("snappy").compress(piece, asbytes=True) for piece in (b"abc", b"de")]
    stored = struct.pack(">I", 5) + b"".join(struct.pack(">I", len(each)) + each for each in packed)
    assert decompress(Compression.SNAPPY, memoryview(stored), 5) == b"abcde"


def test_a_bare_frame_of_zstd_is_read():
    stored = pa.Codec("zstd").compress(b"abc" * 50, asbytes=True)
    assert decompress(Compression.ZSTD, memoryview(stored), 150) == b"abc" * 50


def test_gz_is_a_gzip_stream():
    assert zlib.decompress(compress(Compression.GZ, b"abc"), 31) == b"abc"


@pytest.mark.parametrize("cut", range(1, 9))
def test_a_gzip_stream_whose_own_checksum_is_cut_off_is_refused(cut):
    """What Apache Hudi writes has no other one."""
    stored = bytes(compress(Compression.GZ, b"0123456789" * 10))
    with pytest.raises(CorruptFileError, match="not a gzip stream of 100 bytes"):
        decompress(Compression.GZ, memoryview(stored[:-cut]), 100)


@pytest.mark.parametrize("codec", KNOWN)
@pytest.mark.parametrize("claim", [0, 99, 101, 1 << 20, (1 << 31) - 1])
def test_another_size_than_the_header_says_is_refused(codec, claim):
    stored = memoryview(compress(codec, b"0123456789" * 10))
    with pytest.raises(CorruptFileError):
        decompress(codec, stored, claim)


@pytest.mark.parametrize("codec", [Compression.GZ, *FRAMED])
@given(st.binary(max_size=60))
def test_any_bytes_are_content_or_refused(codec, data):
    with suppress(CorruptFileError):
        decompress(codec, memoryview(data), 40)


def test_a_bomb_is_neither_written_nor_read():
    bomb = bytes(70 * 1024 * 1024)
    with pytest.raises(OptionError, match="refuse"):
        compress(Compression.ZSTD, bomb)
    with pytest.raises(CorruptFileError, match="claim to be"):
        decompress(Compression.GZ, memoryview(bytes(50)), len(bomb))


def test_other_codecs_are_named():
    with pytest.raises(UnsupportedTableError, match="BZIP2 is not known here; known are NONE, GZ, SNAPPY, LZ4, ZSTD"):
        check_known(Compression.BZIP2)
