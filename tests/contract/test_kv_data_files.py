"""What each format of data files has to keep."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.kv.data_files import FORMATS
from hoodie.kv.rows import NOTHING, SortedRows
from hoodie.storage.cache import Cache
from hoodie.storage.memory import MemoryStorage

BYTES = st.one_of(st.binary(max_size=12), st.integers(0, 50).map(lambda n: b"k%02d" % n))
VALUES = st.one_of(st.none(), st.binary(max_size=50), st.just(b"v" * 3_000))
ROWS = st.dictionaries(BYTES, VALUES, max_size=40)


@pytest.fixture(scope="module", params=FORMATS)
def data_format(request):
    return FORMATS[request.param]


def arrays(rows):
    return SortedRows(
        pa.array([key for key, _ in rows], pa.binary()), pa.array([value for _, value in rows], pa.large_binary())
    )


def written(data_format, rows, parts=1, storage=None):
    storage = storage or MemoryStorage()
    rows = sorted(rows.items())
    with data_format.create(storage, "data/f") as writer:
        step = max(1, -(-len(rows) // parts))
        for start in range(0, len(rows), step):
            writer.add(arrays(rows[start : start + step]))
    assert writer.size_bytes == storage.stat("data/f").size_bytes
    return storage


def plain(rows):
    return list(zip(rows.keys.to_pylist(), rows.values.to_pylist(), strict=True))


def test_each_codec_gives_the_rows_back_and_says_itself(data_format):
    rows = {b"%04d" % n: b"the same text " * 9 for n in range(2_000)} | {b"0007": None}
    sizes = {}
    for codec in data_format.compressions:
        storage = MemoryStorage()
        with data_format.create(storage, "data/f", codec) as writer:
            writer.add(arrays(sorted(rows.items())))
        reader = data_format.open(storage, "data/f", Cache())
        assert [row for part in reader.scan(None, None) for row in plain(part)] == sorted(rows.items())
        assert reader.get(b"0007") == (True, None)
        assert reader.get(b"0008") == (True, rows[b"0008"])
        sizes[codec] = storage.stat("data/f").size_bytes
    plain_bytes = sizes.pop("none")
    assert all(size < plain_bytes / 3 for size in sizes.values())


@settings(deadline=None)
@given(rows=ROWS, parts=st.integers(1, 4), asked=st.sets(BYTES), bounds=st.tuples(st.none() | BYTES, st.none() | BYTES))
def test_rows_come_back(data_format, rows, parts, asked, bounds):
    reader = data_format.open(written(data_format, rows, parts), "data/f", Cache())
    assert [row for part in reader.scan(None, None) for row in plain(part)] == sorted(rows.items())
    for key in {*asked, *rows}:
        for is_likely in (False, True):
            assert reader.get(key, is_likely=is_likely) == ((True, rows[key]) if key in rows else (False, None))
    keys = sorted({*asked, *rows})
    found = reader.get_many(SortedRows(pa.array(keys, pa.binary()), NOTHING.values))
    assert plain(found) == [(key, rows[key]) for key in keys if key in rows]
    start, stop = bounds
    expected = [
        (key, value)
        for key, value in sorted(rows.items())
        if (start is None or key >= start) and (stop is None or key < stop)
    ]
    assert [row for part in reader.scan(start, stop) for row in plain(part)] == expected
    reader.close()


def test_a_file_of_many_blocks(data_format):
    rows = {b"%08d" % n: b"%d" % n * (n % 90) for n in range(20_000)}
    reader = data_format.open(written(data_format, rows, 3), "data/f", Cache())
    assert sum(len(part.keys) for part in reader.scan(None, None)) == len(rows)
    for n in range(0, 20_000, 777):
        assert reader.get(b"%08d" % n) == (True, rows[b"%08d" % n])
        assert reader.get(b"%08dx" % n) == (False, None)
    assert [key for part in reader.scan(b"00000100", b"00000103") for key in part.keys.to_pylist()] == [
        b"00000100",
        b"00000101",
        b"00000102",
    ]


def test_every_damaged_byte_is_told_or_does_not_matter(data_format):
    rows = {b"k%02d" % n: (b"v%d" % n) * 3 for n in range(12)} | {b"gone": None}
    storage = written(data_format, rows)
    content, told = storage.read("data/f"), []
    for at in range(len(content)):
        for damaged in (content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :], content[:at]):
            other = MemoryStorage()
            other.create_new("data/f", damaged)
            try:
                reader = data_format.open(other, "data/f", Cache())
                found = [row for part in reader.scan(None, None) for row in plain(part)]
                looked = {key: reader.get(key) for key in rows}
            except (CorruptFileError, UnsupportedTableError) as error:  # a flip may make it one of another kind
                told.append("data/f" in str(error))
            else:
                assert found == sorted(rows.items()), at
                assert looked == {key: (True, value) for key, value in rows.items()}, at
    assert all(told)
    assert len(told) > len(content)


def test_a_block_that_was_read_is_kept_within_the_caches_bound(data_format):
    class Counting(MemoryStorage):
        reads = 0

        def read(self, *args, **how):
            self.reads += 1
            return super().read(*args, **how)

        def open_input(self, *args, **how):
            self.reads += 1
            return super().open_input(*args, **how)

    rows = {b"%08d" % n: b"v" * 100 for n in range(5_000)}
    storage = written(data_format, rows, storage=Counting())
    reader = data_format.open(storage, "data/f", Cache())
    reader.get(b"00001000")
    before = storage.reads
    assert reader.get(b"00001001") == (True, b"v" * 100)
    assert storage.reads == before
    small = data_format.open(storage, "data/f", Cache(1))
    small.get(b"00001000")
    before = storage.reads
    assert small.get(b"00001000") == (True, b"v" * 100)
    assert storage.reads > before
