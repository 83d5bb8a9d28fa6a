"""Small batches are put together; rows, their order and their schema stay."""

import pyarrow as pa
import pytest

from hoodie.engine.gather import gathered

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.struct([("l", pa.list_(pa.string()))]))])


def rows(first, count):
    numbers = range(first, first + count)
    return pa.record_batch(
        [pa.array(numbers, pa.int64()), pa.array([{"l": [str(n)]} for n in numbers], SCHEMA.field("s").type)],
        schema=SCHEMA,
    )


@pytest.mark.parametrize("size", [1, 7, 1000, 4095, 4096, 10_000])
def test_rows_and_order_stay_and_small_batches_become_few(size):
    batches = [rows(first, size) for first in range(0, 20_000, size)]
    found = list(gathered(batches))
    assert pa.Table.from_batches(found).equals(pa.Table.from_batches(batches))
    assert len(found) <= min(len(batches), 20)


def test_large_batches_and_those_between_them_keep_their_place():
    sizes = [1, 1, 0, 5000, 3, 3, 3, 5000, 0, 2]
    batches = [rows(sum(sizes[:at]), size) for at, size in enumerate(sizes)]
    found = list(gathered(batches))
    assert pa.Table.from_batches(found)["n"].to_pylist() == list(range(sum(sizes)))
    assert [batch for batch in found if batch.num_rows == 5000] == [batches[3], batches[7]]
    assert list(gathered([])) == []


def test_who_stops_early_has_drawn_no_more_than_twice_of_what_came():
    drawn = []

    def batches():
        for at in range(1000):
            drawn.append(at)
            yield rows(at, 1)

    taken = 0
    for batch in gathered(batches()):
        taken += batch.num_rows
        assert len(drawn) <= 2 * taken + 1
        if taken > 100:
            break


def test_memory_is_bounded():
    wide = pa.record_batch({"t": ["x" * 1_000_000]})
    assert max(batch.nbytes for batch in gathered([wide] * 50)) < 6_000_000


def test_dictionaries_of_different_values_and_those_that_do_not_fit_into_one():
    def encoded(first):
        return pa.record_batch(
            [
                pa.array([str(first + n) for n in range(100)])
                .dictionary_encode()
                .cast(pa.dictionary(pa.int8(), pa.string()))
            ],
            ["d"],
        )

    for count in (1, 2, 30):
        batches = [encoded(100 * at) for at in range(count)]
        found = list(gathered(batches))
        assert [value for batch in found for value in batch["d"].to_pylist()] == [str(n) for n in range(100 * count)]
