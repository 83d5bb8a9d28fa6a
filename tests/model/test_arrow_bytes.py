"""What rows take once they are written out, and cuts by that: a dictionary of a few texts can stand for more than an array holds."""

import numpy as np
import pyarrow as pa
import pytest

from hoodie.filegroup.conform import as_type, conform
from hoodie.model import arrow_bytes
from hoodie.model.arrow_bytes import array_bytes, array_pieces, in_one_chunk, pieces_of, rows_bytes, wide_type

LONG = "x" * 1000
CODES = pa.array([0, 1, None] * 10, pa.int32())
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([10, 20], pa.int32()), pa.array([LONG, "y"]).cast(pa.string_view()))
LISTS = pa.ListViewArray.from_arrays([0, 0, 1, 0], [2, 1, 1, 1], pa.array([LONG, "y"]))
"""They share their values."""
CATEGORY = pa.DictionaryArray.from_arrays(CODES, pa.array([LONG, "y"]))


@pytest.mark.parametrize(
    ("array", "least", "most"),
    [
        (CATEGORY, 10_010, 10_200),
        (CATEGORY.slice(1, 2), 1, 20),
        (pa.StructArray.from_arrays([CATEGORY], ["x"]).slice(0, 3), 1001, 1100),
        (pa.ListArray.from_arrays(pa.array([0, 10, 20, 30], pa.int32()), CATEGORY).slice(1, 1), 3000, 3200),
        (
            pa.MapArray.from_arrays(pa.array([0, 10, 20, 30], pa.int32()), pa.array(map(str, range(30))), CATEGORY)[
                1:2
            ],
            3000,
            3300,
        ),
        (pa.array(["abc", LONG, None, "z"]).cast(pa.string_view()).slice(1, 2), 1000, 1100),
        (pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array([LONG]).cast(pa.string_view())), 1001, 1001),
        (pa.array([1, 1, 2]).dictionary_encode(), 12, 12),
        (RUNS, 10_010, 10_500),
        (RUNS.slice(9, 11), 1_010, 1_300),
        (pa.StructArray.from_arrays([RUNS], ["x"]), 10_010, 10_500),
        (pa.array([LONG, "y"]).slice(1, 1), 1, 20),
        (LISTS, 3_000, 3_100),
        (LISTS.slice(1, 1), 1_000, 1_100),
        (pa.array([[1, 2], None, []], pa.large_list_view(pa.int64())), 40, 40),
        (
            pa.ExtensionArray.from_storage(pa.json_(pa.string_view()), pa.array([LONG, "1"]).cast(pa.string_view())),
            1001,
            1100,
        ),
    ],
)
def test_dictionaries_and_views_count_what_these_rows_show_of_them(array, least, most):
    assert least <= array_bytes(array) <= most
    assert rows_bytes(pa.table({"a": array})) == array_bytes(array)


@pytest.mark.parametrize("values", [[LONG] * 10 + ["y"] * 3000, ["y"] * 3000 + [LONG] * 10, [LONG], []])
@pytest.mark.parametrize("encode", [False, True])
def test_no_piece_is_much_larger_than_asked_for_wherever_the_large_values_stand(values, encode):
    array = pa.array(values, pa.string())
    array = array.dictionary_encode() if encode else array
    pieces = list(array_pieces(array, 2500))
    assert pa.chunked_array(pieces, array.type).to_pylist() == values
    assert all(array_bytes(piece) <= 5000 for piece in pieces)
    assert [p.num_rows for p in pieces_of(pa.table({"a": array}), 2500)] == list(map(len, pieces))


@pytest.mark.parametrize("kind", [pa.string(), pa.binary()])
def test_texts_that_lie_beyond_the_short_offsets_are_taken_piece_by_piece(kind):
    wide = wide_type(kind)
    data = pa.py_buffer(np.zeros((1 << 31) + 16, np.uint8))  # the system makes no pages for zeros that nobody looks at
    offsets = pa.py_buffer(np.array([0, 1 << 31, (1 << 31) + 3, (1 << 31) + 5], np.int64))
    array = pa.Array.from_buffers(wide, 3, [None, offsets, data]).slice(1)
    found = as_type(pa.chunked_array([array]), kind)
    assert found.type == kind
    assert found.to_pylist() == (["\0" * 3, "\0" * 2] if kind == pa.string() else [b"\0" * 3, b"\0" * 2])


def test_what_short_offsets_do_not_reach_gets_long_ones_and_comes_back(monkeypatch):
    monkeypatch.setattr(arrow_bytes, "MOST_BYTES", 100)
    kinds = {
        "text": (pa.string(), LONG),
        "struct": (pa.struct([("x", pa.string()), ("n", pa.int32())]), {"x": LONG, "n": 1}),
        "list": (pa.list_(pa.binary()), [b"a" * 1000, None]),
        "map": (pa.map_(pa.string(), pa.list_(pa.string())), [("k", [LONG])]),
        "short": (pa.string(), "s"),
        "number": (pa.int64(), 1),
    }
    schema = pa.schema([(name, kind) for name, (kind, _) in kinds.items()])
    piece = pa.table({name: [value, None] for name, (_, value) in kinds.items()}, schema=schema)
    rows = pa.concat_tables([piece, piece])
    whole = in_one_chunk(rows)
    assert [column.num_chunks for column in whole.columns] == [1] * len(kinds)
    assert {f.name for f in whole.schema if f.type != schema.field(f.name).type} == {"text", "struct", "list", "map"}
    assert conform(whole, schema, path="f").equals(rows)
