"""What is read of a file, and how often."""

import pytest

from hoodie.errors import CorruptFileError
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource, StorageSource
from hoodie.hfile.writer import HFileOptions
from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage
from tests.hfiles import SMALL, binaries, hfile, numbered, scanned


class Counted(BufferSource):
    """Notes each read."""

    def __init__(self, data):
        super().__init__(data, "counted.hfile")
        self.reads = []

    def read(self, offset, length):
        assert offset >= 0
        assert offset + length <= self.size_bytes
        self.reads.append((offset, length))
        return super().read(offset, length)

    def taken(self):
        reads, self.reads = self.reads, []
        return reads


LARGE = [(b"%08d" % number, b"x" * 1_000) for number in range(3_000)]


def test_a_file_is_opened_in_one_read_and_in_two_where_much_stands_at_its_end():
    source = Counted(hfile(LARGE))
    HFileReader(source)
    assert len(source.taken()) == 1
    source = Counted(hfile(LARGE, infos={b"schema": bytes(300_000)}))
    reader = HFileReader(source)
    assert len(source.taken()) == 2
    assert reader.get(LARGE[7][0]) == LARGE[7][1]


def test_a_key_takes_one_block_and_an_absent_one_none():
    source = Counted(hfile(LARGE))
    reader = HFileReader(source, Cache())
    source.taken()
    assert reader.get(LARGE[500][0]) is not None
    chunk, block = source.taken()
    assert 64 * 1024 < block[1] < 70 * 1024
    assert chunk[1] < 10 * 1024
    assert reader.get(LARGE[501][0]) is not None
    assert source.taken() == []
    assert sum(reader.get(key + b"!") is None for key, _ in LARGE[1000:1500]) == 500
    assert len(source.taken()) < 25  # what the filter lets in


def test_without_a_filter_the_block_is_read():
    source = Counted(hfile(LARGE, HFileOptions(bloom_rate=None)))
    reader = HFileReader(source, Cache())
    source.taken()
    assert reader.get(LARGE[1000][0] + b"!") is None
    assert len(source.taken()) == 1


def test_before_the_first_key_nothing_is_read():
    source = Counted(hfile(LARGE, HFileOptions(bloom_rate=None)))
    reader = HFileReader(source)
    source.taken()
    assert reader.get(b"") is None
    assert reader.get_many(binaries([b"", b"/"])).to_pylist() == [None, None]
    assert source.taken() == []


def test_neighbours_are_read_together_and_blocks_are_kept():
    source = Counted(hfile(LARGE))
    reader = HFileReader(source, Cache())
    source.taken()
    keys = binaries(key for key, _ in LARGE)
    assert reader.get_many(keys).null_count == 0
    assert len(source.taken()) == 2  # a chunk of the filter, and all blocks in one window
    assert reader.get_many(keys).null_count == 0
    assert source.taken() == []
    assert scanned(reader) == LARGE
    assert len(source.taken()) == 1


def test_of_many_absent_keys_the_filter_lets_few_through():
    source = Counted(hfile(LARGE))
    reader = HFileReader(source)
    source.taken()
    absent = binaries(key + b"!" for key, _ in LARGE[::50])
    assert reader.get_many(absent).null_count == 60
    assert len(source.taken()) <= 1 + 5
    reader = HFileReader(source)
    source.taken()
    assert reader.get_many(binaries([LARGE[0][0] + b"!"])).to_pylist() == [None]
    assert len(source.taken()) == 1  # the filter


def test_a_scan_reads_its_range_alone():
    source = Counted(hfile(LARGE))
    reader = HFileReader(source)
    source.taken()
    assert scanned(reader, LARGE[1000][0], LARGE[1001][0]) == LARGE[1000:1001]
    ((_, length),) = source.taken()
    assert length < 70 * 1024


@pytest.mark.parametrize("is_remote", [False, True])
def test_many_blocks_at_once_push_nothing_out_of_the_cache_of_a_disk(is_remote):
    source = Counted(hfile(LARGE))
    source.is_remote = is_remote
    reader = HFileReader(source, Cache(16 * 1024 * 1024))
    few = binaries(key for key, _ in LARGE[:300])  # five blocks of 64 KB
    assert reader.get_many(few).null_count == 0
    source.taken()
    assert reader.get_many(few).null_count == 0
    assert source.taken() == []
    many = binaries(key for key, _ in LARGE[::50])  # all 47 blocks
    for _ in range(2):
        source.taken()
        assert reader.get_many(many).to_pylist() == [value for _, value in LARGE[::50]]
    assert bool(source.taken()) is not is_remote
    assert reader.get_many(few).null_count == 0
    assert source.taken() == []


def test_two_files_in_one_cache_are_not_mixed_up():
    cache = Cache()
    first = HFileReader(BufferSource(hfile(numbered(50), SMALL), "a"), cache)
    second = HFileReader(BufferSource(hfile(numbered(50, start=1), SMALL), "b"), cache)
    for key, value in numbered(50):
        assert first.get(key) == value
    for key, value in numbered(50, start=1):
        assert second.get(key) == value


def test_a_file_of_a_storage_and_one_that_was_cut_meanwhile():
    storage = MemoryStorage()
    storage.create_new("data/1.hfile", hfile(LARGE))
    reader = HFileReader(StorageSource(storage, storage.stat("data/1.hfile")), Cache())
    assert reader.get(LARGE[3][0]) == LARGE[3][1]
    storage.replace("data/1.hfile", b"cut")
    with pytest.raises(
        CorruptFileError, match=r"HFile data/1.hfile: \d+ bytes from byte \d+ are asked for, 0 are there"
    ):
        reader.get(LARGE[2_999][0])


@pytest.mark.parametrize("options", [None, HFileOptions(bloom_rate=None), SMALL])
def test_blocks_that_are_not_kept_are_searched(options):
    pairs = numbered(500)
    kept, unkept = (HFileReader(BufferSource(hfile(pairs, options), "f"), cache) for cache in (Cache(), Cache(0)))
    for keys in (
        [b"key 000007"],
        [b"key", b"absent", b"key 0000070"],
        [key for key, _ in pairs[::61]],
        [b"7 7 7 7 7 7 7 "],
    ):
        assert unkept.get_many(binaries(keys)).to_pylist() == [dict(pairs).get(key) for key in keys]
        assert unkept.get_many(binaries(keys)).equals(kept.get_many(binaries(keys)))
