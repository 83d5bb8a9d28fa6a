"""A bucket as a dictionary: keys of a wrong type are one error everywhere, and rows come from either end."""

import gc
import random
from contextlib import suppress

import pyarrow as pa
import pytest

from hoodie.errors import OptionError
from tests.kv.stores import KINDS, SMALL, Place, committed

TEXTS = ("oslo", None, 7, 1.5, ["a"], object())


def filled(rows, **how):
    store = Place().store(buckets=1, **how)
    with store.writer(0) as writer:
        writer.put_many(list(rows), list(rows.values()))
        writer.end_window(1)
        writer.flush()
    return store


@pytest.mark.parametrize("key", TEXTS)
def test_a_key_that_is_not_bytes_is_one_error_everywhere(key):
    store = filled({b"oslo": b"17"})
    reader = store.reader(0)
    with store.writer(0) as writer:
        for act in (
            lambda: writer.put(key, b"1"),
            lambda: writer.delete(key),
            lambda: writer.lookup(key),
            lambda: writer.get(key),
            lambda: writer.get_uncommitted(key),
            lambda: writer[key],
            lambda: key in writer,
            lambda: writer.lookup_many([b"oslo", 7 if key is None else key]),
            lambda: reader.get(key),
            lambda: reader[key],
            lambda: key in reader,
            lambda: reader.get_many([b"oslo", 7 if key is None else key]),
            lambda: list(reader.scan(7 if key is None else key)),
            lambda: list(reader.scan(prefix=7 if key is None else key)),
            lambda: store.bucket_of(key),
        ):
            with pytest.raises(OptionError, match="takes bytes, not"):
                act()


def test_a_bucket_reads_and_writes_as_a_dictionary_does():
    store = Place().store(buckets=1)
    with store.writer(0) as writer:
        writer[b"a"] = b"1"
        writer.put_many([b"b", bytearray(b"c"), b"d"], [b"2", b"3", b"4"])
        del writer[b"d"]
        writer.delete_many([b"c"])
        assert (writer[b"a"], writer.get(b"c"), writer.get(b"c", b"none"), b"b" in writer) == (
            b"1",
            None,
            b"none",
            True,
        )
        with pytest.raises(KeyError):
            writer[b"c"]
        assert writer.lookup_many([b"b", b"c"]).to_pylist() == [b"2", None]
        writer.end_window(5)
        assert "window 5" in repr(writer)
        writer.flush()
    assert "closed" in repr(writer)
    reader = store.reader(0)
    assert list(reader.items()) == [(b"a", b"1"), (b"b", b"2")]
    assert list(reader.items(b"b", reverse=True)) == [(b"b", b"2")]
    assert (reader[b"a"], reader.get(b"x", 0), b"a" in reader, b"c" in reader) == (b"1", 0, True, False)
    assert reader.get(memoryview(b"a")) == b"1"
    assert "window 5" in repr(reader)
    with pytest.raises(KeyError):
        reader[b"c"]


@pytest.mark.parametrize("order", ["lexicographic", "descending"])
@pytest.mark.parametrize("merged", [False, True])
def test_rows_come_from_the_last_to_the_first(order, merged):
    chance = random.Random(7)
    store = Place().store(buckets=1, order=order)
    with store.writer(0) as writer:
        for window in range(1, 7):
            keys = [b"%03d" % chance.randrange(400) for _ in range(80)]
            writer.put_many(keys, [None if chance.random() < 0.3 else b"%d" % window for _ in keys])
            writer.end_window(window)
            writer.flush()
        if merged:
            writer.compact()
    reader = store.reader(0)
    for bounds in ((), (b"100",), (None, b"200"), (b"100", b"300"), (b"300", b"100")):
        forth = list(reader.items(*bounds))
        assert list(reader.items(*bounds, reverse=True)) == forth[::-1]
    assert len(list(reader.items())) > 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_writer_that_nobody_holds_lets_its_bucket_go(kind):
    store = Place(kind).store(buckets=1)

    def cell(window):
        writer = store.writer(0)
        writer.put(b"a", b"%d" % window)
        writer.end_window(window)
        writer.put(b"b", b"of no window")
        raise ZeroDivisionError

    def run(window):
        with suppress(ZeroDivisionError):
            cell(window)
        gc.collect()

    for window in (1, 2):
        with pytest.warns(ResourceWarning, match="a writer of bucket 0 .* was never closed"):
            run(window)
    with store.writer(0) as writer:
        assert writer.last_window == 2
        assert committed(writer) == {b"a": b"2"}


def test_the_last_window_is_known_without_a_writer():
    store = Place().store(buckets=2)
    assert store.last_window(0) is None
    with store.writer(0) as writer:
        writer.put(b"a", b"1")
        writer.end_window(3)
        assert store.last_window(0) == 3
        writer.flush()
        writer.end_window(4)
        assert (store.last_window(0), store.last_window(1)) == (4, None)


def test_values_of_arrow_arrays_of_other_binary_types_are_taken():
    with Place().store(SMALL, buckets=1).writer(0) as writer:
        writer.put_many(pa.array([b"a"], pa.large_binary()), pa.array([b"1"], pa.binary(1)))
        assert writer[b"a"] == b"1"
