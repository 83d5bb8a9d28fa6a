"""What footers of ours state of floating columns: nothing that loses a row in a reader to whom NaN is a value like others."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hoodie.errors import CorruptFileError
from hoodie.filegroup.base_writer import close_parquet, has_dictionary
from hoodie.format.parquet_footer import floating_leaves, has_floats, sound_footer

NAN = float("nan")
NESTED = pa.schema(
    [
        ("id", pa.string()),
        ("s", pa.struct([("n", pa.int64()), ("f", pa.float32()), ("deep", pa.struct([("f", pa.float64())]))])),
        ("l", pa.list_(pa.float64())),
        ("m", pa.map_(pa.string(), pa.struct([("a", pa.int32()), ("f", pa.float64())]))),
        ("f", pa.float64()),
    ]
)
LEAVES = [
    "id",
    "s.n",
    "s.f",
    "s.deep.f",
    "l.list.element",
    "m.key_value.key",
    "m.key_value.value.a",
    "m.key_value.value.f",
    "f",
]


def rows(s=1.0, deep=1.0, item=1.0, value=1.0, f=1.0):
    row = {
        "id": "a",
        "s": {"n": 1, "f": s, "deep": {"f": deep}},
        "l": [2.0, item],
        "m": [("k", {"a": 1, "f": value})],
        "f": f,
    }
    empty = dict.fromkeys(NESTED.names)
    return pa.Table.from_pylist([row, empty], schema=NESTED)


def written(tables, entries=None):
    sink, footers, nan, edits = pa.BufferOutputStream(), [], [], False
    writer = pq.ParquetWriter(sink, tables[0].schema, store_schema=False, metadata_collector=footers)
    for group, table in enumerate(tables):
        with_nan, zero = floating_leaves(table)
        nan += [(group, leaf) for leaf in with_nan]
        edits |= bool(with_nan) or has_dictionary(table.schema, zero, LEAVES)
        writer.write_table(table)
    close_parquet(writer, sink, footers, nan=nan, edits=edits, entries=entries or {})
    return sink.getvalue()


def stated(data):
    """Leaf path -> (null count, least, greatest) for each row group."""
    metadata = pq.read_metadata(pa.BufferReader(data))
    found = {}
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            said = column.statistics
            bounds = (said.min, said.max) if said.has_min_max else (None, None)
            found.setdefault(column.path_in_schema, []).append((said.null_count, *bounds))
    return found


@pytest.mark.parametrize(
    ("nan", "path"),
    [
        ({"s": NAN}, "s.f"),
        ({"deep": NAN}, "s.deep.f"),
        ({"item": NAN}, "l.list.element"),
        ({"value": NAN}, "m.key_value.value.f"),
        ({"f": NAN}, "f"),
        ({}, None),
    ],
    ids=str,
)
def test_a_chunk_with_nan_states_no_bounds_and_others_all(nan, path):
    table = rows(**nan)
    assert [LEAVES[leaf] for leaf in floating_leaves(table).nan] == ([path] if path else [])
    data = written([rows(), table, rows()])
    assert pq.read_table(pa.BufferReader(data)).slice(0, 2) == rows()
    plain = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables([rows()] * 3), plain, row_group_size=2)
    expected = stated(plain.getvalue())
    found = stated(data)
    assert list(found) == LEAVES
    for leaf in LEAVES:
        for group, said in enumerate(found[leaf]):
            without = leaf == path and group == 1
            assert said == ((expected[leaf][group][0], None, None) if without else expected[leaf][group]), (leaf, group)


def test_slices_and_what_stands_below_nulls_are_looked_at_without_fault():
    table = pa.concat_tables([rows(f=NAN), rows(deep=NAN), rows()])
    for begin in range(table.num_rows):
        for size in range(table.num_rows - begin + 1):
            part = table.slice(begin, size)
            certain = set(floating_leaves(pa.Table.from_pylist(part.to_pylist(), schema=NESTED)).nan)
            assert certain <= floating_leaves(part).nan


def test_entries_of_the_footer_are_there_once_whatever_its_columns_are():
    entries = {"name": "text", "long": "x" * 70_000}
    for table in (rows(), rows().select(["id"]), rows().slice(0, 0)):
        data = written([table], entries)
        found = pq.read_metadata(pa.BufferReader(data)).metadata
        assert {key.decode(): value.decode() for key, value in found.items()} == entries
        assert pq.read_table(pa.BufferReader(data)).replace_schema_metadata(None).cast(table.schema) == table


@pytest.mark.parametrize(
    ("values", "nan", "zero"),
    [
        ([1.0, 2.0], False, False),
        ([-1.0, 2.0], False, True),
        ([-0.0], False, True),
        ([None, 0.0], False, True),
        ([None, -3.0], False, False),
        ([NAN, 3.0], True, False),
        ([NAN, -3.0, None, 1.0], True, True),
        ([NAN], True, False),
        ([None], False, False),
        ([], False, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()], ids=str)
def test_nan_and_values_around_zero_are_seen_in_whatever_chunks(kind, values, nan, zero):
    whole = pa.chunked_array([pa.array(values, kind)], kind)
    apart = pa.chunked_array([pa.array([value], kind) for value in values], kind)
    for column in (whole, apart):
        listed = pa.chunked_array(
            [pa.array([chunk.to_pylist()], pa.list_(kind)) for chunk in column.chunks], pa.list_(kind)
        )
        found = floating_leaves(pa.table({"n": [1] * len(column), "f": column}))
        assert (1 in found.nan, 1 in found.zero) == (nan, zero)
        found = floating_leaves(pa.table({"l": listed}))
        assert (0 in found.nan, 0 in found.zero) == (nan, zero)


@pytest.mark.parametrize("columns", [1, 14, 15, 16, 200])
def test_wide_files_and_many_row_groups(columns):
    table = pa.table({f"c{n}": [0.0, -0.0, NAN if n % 3 == 0 else None] for n in range(columns)})
    for groups in (1, 14, 15, 16):
        data = written([table] * groups, {"k": "v"})
        metadata = pq.read_metadata(pa.BufferReader(data))
        assert (metadata.num_columns, metadata.num_row_groups, metadata.num_rows) == (columns, groups, 3 * groups)
        for n, said in enumerate(stated(data).values()):
            assert said == [(0, None, None) if n % 3 == 0 else (1, -0.0, 0.0)] * groups
        assert pq.read_table(pa.BufferReader(data)).num_rows == 3 * groups


def test_a_footer_of_another_shape_is_an_error():
    class Strange:
        num_row_groups = num_columns = 0
        schema = None

        def write_metadata_file(self, sink):
            sink.write(b"PAR1" + b"\x1b" * 9 + b"\0\0\0\0PAR1")

    with pytest.raises(CorruptFileError):
        sound_footer(Strange(), [], {})


def test_which_types_have_floats():
    assert [has_floats(field.type) for field in NESTED] == [False, True, True, True, True]
    assert not has_floats(pa.dictionary(pa.int32(), pa.string()))
