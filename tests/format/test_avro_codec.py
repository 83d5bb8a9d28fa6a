"""The vectorised Avro codec against fastavro, byte for byte, and against damaged and hostile bytes."""

import io
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.format.avro_codec import decode_records, encode_records
from hoodie.format.avro_schema import arrow_from_avro, avro_from_arrow, resolve_record


class Kind(NamedTuple):
    """A type: how Avro spells it, its values as fastavro writes them without logical types, and the Arrow array of those."""

    avro: Any
    plain: Any
    """The Avro type without logical types."""
    values: st.SearchStrategy[Any]
    array: Callable[[list[Any]], pa.Array]


def physical(kind: pa.DataType) -> Callable[[list[Any]], pa.Array]:
    return lambda values: pa.array(values, pa.int32() if kind.bit_width == 32 else pa.int64()).cast(kind)


def decimals(precision: int, scale: int, size: int | None) -> Kind:
    """Fixed decimals of `size` bytes, or of the bytes type when None."""
    kind = pa.decimal128(precision, scale)
    plain = {"type": "fixed", "name": "fixed", "size": size} if size else "bytes"
    avro = {**(plain if size else {"type": "bytes"}), "logicalType": "decimal", "precision": precision, "scale": scale}

    def stored(number: int) -> bytes:
        bits = (number if number >= 0 else ~number).bit_length() + 1
        return number.to_bytes(size or (bits + 7) // 8, "big", signed=True)

    def array(values: list[bytes | None]) -> pa.Array:
        numbers = [None if v is None else int.from_bytes(v, "big", signed=True) for v in values]
        return pa.array(
            [None if n is None else Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)) for n in numbers], kind
        )

    most = 10**precision - 1
    return Kind(avro, plain, st.integers(-most, most).map(stored), array)


INT = st.integers(-(1 << 31), (1 << 31) - 1)
LONG = st.one_of(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(-200, 200))
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)


def simple(avro: Any, values: st.SearchStrategy[Any], kind: pa.DataType, plain: Any = None) -> Kind:
    return Kind(avro, plain or avro, values, lambda v: pa.array(v, kind))


def logical(name: str, annotation: str, kind: pa.DataType, values: st.SearchStrategy[int] | None = None) -> Kind:
    if values is None:
        values = INT if name == "int" else LONG
    return Kind({"type": name, "logicalType": annotation}, name, values, physical(kind))


SCALARS = {
    "boolean": simple("boolean", st.booleans(), pa.bool_()),
    "int": simple("int", INT, pa.int32()),
    "long": simple("long", LONG, pa.int64()),
    "float": simple("float", st.floats(width=32), pa.float32()),
    "double": simple("double", st.floats(), pa.float64()),
    "string": simple("string", TEXT, pa.string()),
    "bytes": simple("bytes", st.binary(max_size=80), pa.binary()),
    "fixed": simple({"type": "fixed", "name": "fixed", "size": 3}, st.binary(min_size=3, max_size=3), pa.binary(3)),
    "date": logical("int", "date", pa.date32()),
    "time-millis": logical("int", "time-millis", pa.time32("ms"), st.integers(0, 86_399_999)),
    "time-micros": logical("long", "time-micros", pa.time64("us"), st.integers(0, 86_399_999_999)),
    "timestamp-micros": logical("long", "timestamp-micros", pa.timestamp("us", "UTC")),
    "timestamp-millis": logical("long", "timestamp-millis", pa.timestamp("ms", "UTC")),
    "local-timestamp-micros": logical("long", "local-timestamp-micros", pa.timestamp("us")),
    "enum": Kind(
        {"type": "enum", "name": "enum", "symbols": ["A", "B", "C"]},
        {"type": "enum", "name": "enum", "symbols": ["A", "B", "C"]},
        st.sampled_from("ABC"),
        lambda v: pa.array(v, pa.string()),
    ),
    "decimal(1,0)": decimals(1, 0, 1),
    "decimal(10,2)": decimals(10, 2, 5),
    "decimal(12,3)": decimals(12, 3, 6),
    "decimal(38,18)": decimals(38, 18, 16),
    "decimal bytes": decimals(20, 5, None),
}


def in_record(name: str, kind: Kind) -> tuple[Any, Any]:
    """The two spellings of a kind in the namespace of column `name`: fixed and enum types need names of their own."""
    return tuple(
        {**a, "namespace": name} if isinstance(a, dict) and "name" in a else a for a in (kind.avro, kind.plain)
    )


def nullable(kind: Kind, *, first: bool = True) -> Kind:
    def union(avro: Any) -> list[Any]:
        return ["null", avro] if first else [avro, "null"]

    return Kind(union(kind.avro), union(kind.plain), st.none() | kind.values, kind.array)


@st.composite
def kinds(draw: st.DrawFn, name: str, levels: int, *, repeats: bool) -> Kind:
    shape = draw(st.sampled_from(["scalar", "scalar", "struct", *(["array", "map"] * repeats)])) if levels else "scalar"
    if shape == "scalar":
        scalar = SCALARS[draw(st.sampled_from(sorted(SCALARS)))]
        avro, plain = in_record(name, scalar)
        kind = Kind(avro, plain, scalar.values, scalar.array)
    elif shape == "struct":
        fields = [draw(kinds(f"{name}_{i}", levels - 1, repeats=repeats)) for i in range(draw(st.integers(1, 3)))]
        avro, plain = (
            {"type": "record", "name": name, "fields": [{"name": f"f{i}", "type": f[j]} for i, f in enumerate(fields)]}
            for j in (0, 1)
        )
        kind = Kind(
            avro,
            plain,
            st.fixed_dictionaries({f"f{i}": f.values for i, f in enumerate(fields)}),
            lambda values: struct_array(fields, values),
        )
    else:
        inner = draw(kinds(f"{name}_i", levels - 1, repeats=repeats))
        if shape == "array":
            kind = Kind(
                {"type": "array", "items": inner.avro},
                {"type": "array", "items": inner.plain},
                st.lists(inner.values, max_size=4),
                lambda values: list_array(inner, values),
            )
        else:
            kind = Kind(
                {"type": "map", "values": inner.avro},
                {"type": "map", "values": inner.plain},
                st.dictionaries(TEXT, inner.values, max_size=3),
                lambda values: map_array(inner, values),
            )
    null = draw(st.sampled_from(["no", "first", "last"]))
    return kind if null == "no" else nullable(kind, first=null == "first")


def struct_array(fields: list[Kind], values: list[Any]) -> pa.Array:
    children = [f.array([None if v is None else v[f"f{i}"] for v in values]) for i, f in enumerate(fields)]
    items = [
        pa.field(f"f{i}", a.type, nullable=isinstance(f.avro, list)) for i, (f, a) in enumerate(zip(fields, children))
    ]
    return pa.StructArray.from_arrays(children, fields=items, mask=pa.array([v is None for v in values], pa.bool_()))


def offsets(values: list[Any]) -> pa.Array:
    ends = np.cumsum([0, *(len(v or ()) for v in values)])
    return pa.array(ends, pa.int32())


def list_array(inner: Kind, values: list[Any]) -> pa.Array:
    items = inner.array([item for v in values for item in v or ()])
    kind = pa.list_(pa.field("element", items.type, nullable=isinstance(inner.avro, list)))
    return pa.ListArray.from_arrays(
        offsets(values), items, type=kind, mask=pa.array([v is None for v in values], pa.bool_())
    )


def map_array(inner: Kind, values: list[Any]) -> pa.Array:
    keys = pa.array([key for v in values for key in v or ()], pa.string())
    items = inner.array([item for v in values for item in (v or {}).values()])
    kind = pa.map_(pa.string(), pa.field("value", items.type, nullable=isinstance(inner.avro, list)))
    return pa.MapArray.from_arrays(
        offsets(values), keys, items, type=kind, mask=pa.array([v is None for v in values], pa.bool_())
    )


class Case(NamedTuple):
    avro: dict[str, Any]
    table: pa.Table
    reference: list[bytes]
    """What fastavro writes for each row."""


def make_case(columns: list[Kind], rows: list[dict[str, Any]]) -> Case:
    avro, plain = (
        {"type": "record", "name": "r", "fields": [{"name": f"c{i}", "type": c[j]} for i, c in enumerate(columns)]}
        for j in (0, 1)
    )
    arrays = [column.array([row[f"c{i}"] for row in rows]) for i, column in enumerate(columns)]
    schema = pa.schema(
        [pa.field(f"c{i}", a.type, nullable=isinstance(c.avro, list)) for i, (c, a) in enumerate(zip(columns, arrays))]
    )
    parsed = fastavro.parse_schema(plain)
    reference = []
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, row)
        reference.append(stream.getvalue())
    return Case(avro, pa.Table.from_arrays(arrays, schema=schema), reference)


@st.composite
def cases(draw: st.DrawFn, *, repeats: bool) -> Case:
    columns = [draw(kinds(f"c{i}", 2, repeats=repeats)) for i in range(draw(st.integers(1, 5)))]
    row = st.fixed_dictionaries({f"c{i}": column.values for i, column in enumerate(columns)})
    return make_case(columns, draw(st.lists(row, max_size=6)))


def encoded(table: pa.Table, avro: dict[str, Any]) -> list[bytes]:
    return encode_records(table, avro).to_pylist()


def decoded(records: list[bytes], avro: dict[str, Any]) -> pa.Table:
    ends = np.cumsum([len(record) for record in records], dtype=np.int64)
    starts = ends - np.array([len(record) for record in records], dtype=np.int64)
    return decode_records(b"".join(records), starts, ends, resolve_record(avro))


def check(case: Case) -> None:
    assert encoded(case.table, case.avro) == case.reference
    back = decoded(case.reference, case.avro)
    back.validate(full=True)
    assert back.schema == arrow_from_avro(case.avro)
    assert back.schema.equals(case.table.schema)
    # NaN equals nothing in Arrow, so equal means: the same bytes again, and the same nulls and values where there is none.
    assert encoded(back, case.avro) == case.reference
    if "nan" not in repr(case.reference) and not has_nan(case.table):
        assert back.equals(case.table)


def has_nan(table: pa.Table) -> bool:
    return any("nan" in str(column.combine_chunks()) for column in table.columns)


@pytest.mark.parametrize("name", sorted(SCALARS))
@pytest.mark.parametrize("null", [None, "first", "last"])
@given(data=st.data())
@settings(max_examples=12)
def test_column_of_each_type_has_fastavros_bytes_and_comes_back(name, null, data):
    kind = SCALARS[name] if null is None else nullable(SCALARS[name], first=null == "first")
    rows = data.draw(st.lists(st.fixed_dictionaries({"c0": kind.values}), max_size=8))
    check(make_case([kind], rows))


@given(cases(repeats=False))
@settings(max_examples=150)
def test_records_of_scalars_and_structs_have_fastavros_bytes_and_come_back(case):
    check(case)


@given(cases(repeats=True))
@settings(max_examples=200)
def test_records_with_arrays_and_maps_have_fastavros_bytes_and_come_back(case):
    check(case)


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("string", ["", "é", "日本", "\U0001f600", "x" * 63, "x" * 64, "x" * 8191, "x" * 8192, "\x00"]),
        ("long", [0, -1, 1, 63, 64, -64, -65, (1 << 63) - 1, -(1 << 63), *(1 << s for s in range(0, 63, 7))]),
        ("int", [0, (1 << 31) - 1, -(1 << 31)]),
        ("double", [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 5e-324, 1.7976931348623157e308]),
        ("timestamp-micros", [(1 << 63) - 1, -(1 << 63), 0, -1]),
    ],
)
def test_extreme_values(kind, values):
    check(make_case([nullable(SCALARS[kind])], [{"c0": value} for value in [None, *values, None]]))


def test_nan_keeps_its_bits_in_and_beside_arrays():
    bits = pa.array([0x7FC00001, 0x7F800001, -1], pa.int32())  # quiet, signalling, negative
    floats = pa.Array.from_buffers(pa.float32(), 3, bits.buffers())
    table = pa.table({"f": floats, "a": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), floats)})
    avro = avro_from_arrow(table.schema, table_name="t")
    back = decoded(encoded(table, avro), avro)
    assert back["f"].combine_chunks().view(pa.int32()).equals(bits)
    assert back["a"].combine_chunks().flatten().view(pa.int32()).equals(bits)


def test_more_rows_than_go_through_at_once():
    rows = 40_000
    table = pa.table(
        {
            "i": pa.array(np.arange(rows)),
            "s": pa.array([None if i % 7 == 0 else f"row {i}" for i in range(rows)]),
            "n": pa.nulls(rows, pa.float64()),
        }
    )
    avro = avro_from_arrow(table.schema, table_name="t")
    assert decoded(encoded(table, avro), avro).equals(table)


def test_slices_chunks_and_wider_arrow_types_are_encoded_as_what_they_mean():
    words = pa.chunked_array([["x", "a", None], ["b"]])
    table = pa.table(
        {
            "a": words.cast(pa.large_string()),
            "b": pa.chunked_array([words.combine_chunks().dictionary_encode()]),
            "c": pa.array([9, 1, None, 2], pa.int8()),
            "d": pa.array([0, 1_000, None, 3_000], pa.timestamp("ns", "Europe/Paris")),
            "e": pa.array([[9], [1, 2], None, []], pa.large_list(pa.int16())),
            "f": pa.array([None, {"x": 1}, {"x": None}, None], pa.struct([("x", pa.uint8())])),
            "g": pa.array([[("z", 0)], [("k", 1)], None, [("l", None)]], pa.map_(pa.string(), pa.int64())),
            "h": pa.array([True, False, None, True]),
            "i": pa.array([Decimal("1.5"), Decimal("-2.5"), None, Decimal("0.0")], pa.decimal128(10, 1)),
            "j": pa.array([b"zz", b"aa", None, b"bb"], pa.binary(2)),
        }
    )
    avro = avro_from_arrow(table.schema, table_name="t")
    wanted = arrow_from_avro(avro)
    part = table.slice(1)
    back = decoded(encoded(part, avro), avro)
    assert back.schema == wanted
    assert back.to_pylist() == part.cast(wanted).to_pylist()
    assert encoded(part.combine_chunks(), avro) == encoded(part, avro)


def test_columns_are_found_by_name():
    table = pa.table({"b": ["x"], "a": pa.array([1], pa.int32())})
    avro = avro_from_arrow(table.select(["a", "b"]).schema, table_name="t")
    assert encoded(table, avro) == [b"\x02\x02\x02\x02x"]


def required(*columns: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "r", "fields": [{"name": n, "type": t} for n, t in columns]}


ENUM = {"type": "enum", "name": "e", "symbols": ["A"]}


@pytest.mark.parametrize(
    ("column", "avro", "message"),
    [
        (pa.array([1, None], pa.int32()), "int", "column 'c' has 1 nulls"),
        (pa.array([1], pa.uint64()), "long", "column 'c' is uint64"),
        (pa.array([1 << 40]), "int", "column 'c' is int64 and does not fit the table's int32"),
        (pa.array(["5"]), "int", "column 'c' is string"),
        (pa.array([5]), "string", "column 'c' is int64"),
        (pa.array([1.5]), "long", "column 'c' is double"),
        (pa.array([1.5]), "float", "column 'c' is double"),
        (pa.array(["B"]), ENUM, "other than its schema's symbols"),
        (
            pa.array([1], pa.timestamp("ns", "UTC")),
            {"type": "long", "logicalType": "timestamp-micros"},
            "would lose data",
        ),
        (pa.array([1], pa.timestamp("us")), {"type": "long", "logicalType": "timestamp-micros"}, "cast it first"),
        (
            pa.array([Decimal("1.55")]),
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
            "does not fit the table's decimal",
        ),
        pytest.param(
            pa.array([{"y": 1, "x": 2}]),
            {"type": "record", "name": "s", "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "long"}]},
            "column 'c' is struct<y",
            marks=pytest.mark.skipif(
                pa.__version__.startswith("21."), reason="pyarrow 21 puts the fields in order itself"
            ),
        ),
    ],
)
def test_column_that_does_not_fit_is_named(column, avro, message):
    with pytest.raises(SchemaError, match=message):
        encoded(pa.table({"c": column}), required(("c", avro)))


def test_null_in_a_required_field_of_a_struct_is_named():
    table = pa.table({"c": pa.array([{"x": None}], pa.struct([("x", pa.int32())]))})
    inner = {"type": "record", "name": "s", "fields": [{"name": "x", "type": "int"}]}
    with pytest.raises(SchemaError, match="c"):
        encoded(table, required(("c", inner)))


def test_decimal_beyond_its_own_type_is_not_cut_in_silence():
    wide = pa.array([Decimal(10) ** 30], pa.decimal128(38, 0))
    forged = pa.Array.from_buffers(pa.decimal128(4, 0), 1, wide.buffers())
    with pytest.raises(SchemaError, match="more digits"):
        encoded(pa.table({"c": forged}), avro_from_arrow(pa.schema([("c", pa.decimal128(4, 0))]), table_name="t"))


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c"], ["a", "x"], ["a", "b", "b"]])
def test_missing_and_unknown_columns_are_named(names):
    table = pa.Table.from_arrays([pa.array([1])] * len(names), names=names)
    with pytest.raises(SchemaError, match="columns do not match"):
        encoded(table, required(("a", "long"), ("b", "long")))


# --- damaged bytes ---------------------------------------------------------------------------------------------

FLAT = make_case(
    [
        nullable(SCALARS["string"]),
        SCALARS["boolean"],
        nullable(SCALARS["int"], first=False),
        SCALARS["double"],
        nullable(SCALARS["enum"]),
        SCALARS["decimal(10,2)"],
        nullable(SCALARS["bytes"]),
    ],
    [
        {"c0": "é" * 40, "c1": True, "c2": -300, "c3": 2.5, "c4": "B", "c5": b"\x00\x00\x00\x01\x00", "c6": b"\x80"},
        {"c0": None, "c1": False, "c2": None, "c3": 0.0, "c4": None, "c5": b"\xff\xff\xff\xff\xff", "c6": None},
    ],
)
NESTED = make_case(
    [
        nullable(SCALARS["string"]),
        Kind(
            {"type": "array", "items": ["null", "int"]},
            {"type": "array", "items": ["null", "int"]},
            st.none(),
            lambda v: list_array(nullable(SCALARS["int"]), v),
        ),
        Kind(
            {"type": "map", "values": "boolean"},
            {"type": "map", "values": "boolean"},
            st.none(),
            lambda v: map_array(SCALARS["boolean"], v),
        ),
    ],
    [{"c0": "k", "c1": [1, None, -500], "c2": {"a": True, "é": False}}, {"c0": None, "c1": [], "c2": {}}],
)
BOTH = pytest.mark.parametrize("case", [FLAT, NESTED], ids=["columns", "fastavro"])


@BOTH
def test_the_damaged_cases_are_whole_to_begin_with(case):
    check(case)


@BOTH
@pytest.mark.parametrize("row", [0, 1])
def test_record_cut_at_any_length_is_corrupt(case, row):
    whole = case.reference[row]
    for cut in range(len(whole)):
        with pytest.raises(CorruptFileError):
            decoded([case.reference[0], whole[:cut], case.reference[1]], case.avro)


@BOTH
def test_bytes_behind_a_record_are_corrupt(case):
    with pytest.raises(CorruptFileError):
        decoded([case.reference[0] + b"\x00", case.reference[1]], case.avro)


@BOTH
def test_no_changed_byte_gives_anything_but_an_error_or_another_whole_record(case):
    whole = case.reference[0]
    for at in range(len(whole)):
        for value in {whole[at] ^ 1, whole[at] ^ 0x80, 0, 1, 2, 0xFF}:
            damaged = whole[:at] + bytes([value]) + whole[at + 1 :]
            try:
                table = decoded([damaged, case.reference[1]], case.avro)
            except CorruptFileError:
                continue
            assert encoded(table, case.avro) == [damaged, case.reference[1]]


@BOTH
@given(data=st.binary(max_size=60))
@settings(max_examples=300)
def test_arbitrary_bytes_give_an_error_or_a_record_that_is_these_bytes(case, data):
    try:
        table = decoded([data], case.avro)
    except CorruptFileError:
        return
    assert encoded(table, case.avro) == [data]


def long_of(value: int) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, "long", value)
    return stream.getvalue()


ARRAY = {"type": "array", "items": ["null", "int"]}


@pytest.mark.parametrize(
    ("avro", "data"),
    [
        (["null", "string"], long_of(2)),
        (["null", "string"], long_of(-1) + long_of(1) + b"a"),
        (["null", "string"], b"\x80\x00"),  # branch 0, padded
        ("string", long_of(-1)),
        ("string", long_of(1 << 62)),
        ("string", long_of(-(1 << 63))),
        ("string", long_of(1) + b"\xff"),
        ("string", long_of(3) + "\ud800".encode("utf-8", "surrogatepass")),
        ("bytes", long_of((1 << 63) - 1)),
        ("long", b"\x80" * 10 + b"\x00"),
        ("long", b"\xff" * 9 + b"\x02"),
        ("long", b"\x81\x00"),
        ("int", long_of(1 << 31)),
        ("int", long_of(-(1 << 31) - 1)),
        ({"type": "int", "logicalType": "time-millis"}, long_of(86_400_000)),
        ("boolean", b"\x02"),
        (ENUM, long_of(1)),
        (ENUM, long_of(-1)),
        ({"type": "fixed", "name": "x", "size": (1 << 31) - 1}, b"\x00" * 8),
        ({"type": "fixed", "name": "x", "size": 2, "logicalType": "decimal", "precision": 2}, b"\x7f\xff"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, long_of(0)),
        ({"type": "bytes", "logicalType": "decimal", "precision": 2}, long_of(1) + b"\x7f"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38}, long_of(17) + b"\x00" * 17),
        (ARRAY, long_of(1 << 40)),
        (ARRAY, long_of(1) + long_of(-1) + long_of(5) + long_of(0)),
        (ARRAY, long_of(1) + long_of(2) + long_of(0)),
        (ARRAY, long_of(-1) + long_of(1 << 40) + long_of(0)),
        (ARRAY, long_of(1)),
        (ARRAY, long_of(1) + long_of(1) + long_of(1 << 40) + long_of(0)),
        ({"type": "array", "items": "string"}, long_of(1) + long_of(1) + b"\xff" + long_of(0)),
        ({"type": "array", "items": "string"}, long_of(1) + long_of(-5) + long_of(0)),
        ({"type": "map", "values": "int"}, 2 * (long_of(1) + long_of(1) + b"a" + long_of(1)) + long_of(0)),
        ({"type": "map", "values": "int"}, long_of(1) + long_of(1) + b"\xff" + long_of(1) + long_of(0)),
        ({"type": "array", "items": "boolean"}, long_of(1) + b"\x02" + long_of(0)),
        ({"type": "array", "items": ENUM}, long_of(1) + long_of(-1) + long_of(0)),
    ],
)
def test_hostile_record_is_corrupt(avro, data):
    with pytest.raises(CorruptFileError):
        decoded([data], required(("c", avro)))


@pytest.mark.parametrize("length", [-1, 3, 1 << 31, 1 << 62])
@pytest.mark.parametrize("kind", ["string", "bytes"])
def test_length_is_checked_before_the_bytes_are_touched(kind, length):
    # The record behind it has enough bytes, so only the check of the length itself keeps the read inside the record.
    with pytest.raises(CorruptFileError, match="a length that is negative or longer than the record"):
        decoded([long_of(length) + b"ab", long_of(40) + b"x" * 40], required(("c", kind)))


def test_columns_whose_nulls_stand_for_far_more_than_their_bytes_are_refused():
    wide = {"type": "record", "name": "w", "fields": [{"name": f"x{i}", "type": "double"} for i in range(10_000)]}
    with pytest.raises(CorruptFileError, match="values"):
        decoded([b"\x00"] * 100_000, required(("c", ["null", wide])))
    items = {"type": "array", "items": ["null", wide]}
    with pytest.raises(CorruptFileError, match="more values than they have bytes"):
        decoded([long_of(100_000) + b"\x00" * 100_001], required(("c", items)))


def test_items_without_bytes_are_refused_before_they_are_counted():
    # 20 million nulls in a few bytes: the type itself is refused.
    with pytest.raises(UnsupportedTableError):
        decoded([long_of(20_000_000) + b"\x00"], required(("c", {"type": "array", "items": "null"})))


def test_decimal_of_the_bytes_type_may_be_longer_than_needed():
    # Other writers pad; Java's does not.
    avro = required(("c", {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 1}))
    assert decoded([long_of(3) + b"\xff\xff\x80"], avro)["c"].to_pylist() == [Decimal("-12.8")]


def test_no_rows():
    for case in (FLAT, NESTED):
        assert encoded(case.table.slice(0, 0), case.avro) == []
        assert decoded([], case.avro).schema == case.table.schema


def test_bytes_of_a_record_by_hand():
    table = pa.table({"a": pa.array([1, None], pa.int32()), "s": ["hé", None], "d": [1.0, None]})
    avro = avro_from_arrow(table.schema, table_name="t")
    assert encoded(table, avro) == [b"\x02\x02" + b"\x02\x06h\xc3\xa9" + b"\x02" + struct.pack("<d", 1.0), bytes(3)]
