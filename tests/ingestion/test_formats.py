"""Files as rows; what cannot be a row is set apart, and the rest is there."""

from __future__ import annotations

import io
import json
import random
import uuid
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from hoodie.errors import UnsupportedTableError
from hoodie.ingestion.formats import FORMATS, decoder, format_of

KNOWN = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("fare", pa.decimal128(9, 2)),
        ("note", pa.string()),
    ]
)


def test_json_has_known_types_and_finds_others() -> None:
    lines = (
        b'{"id": 1, "day": "2026-01-02", "at": "2026-01-02T03:04:05Z", "fare": "1.50", "more": {"a": [1]}}\n{"id": 2}\n'
    )
    rows, bad = decoder("json")("a.jsonl", lines, KNOWN)
    assert bad == ()
    assert rows.schema.field("at").type == pa.timestamp("us", "UTC")
    assert rows.column("fare").to_pylist() == [Decimal("1.50"), None]
    assert rows.column("more").to_pylist()[0] == {"a": [1]}


def test_a_text_in_json_stays_one_also_where_it_looks_like_a_moment() -> None:
    rows, _ = decoder("json")("a", b'{"at": "2026-01-02 03:04:05", "s": {"t": "2026-01-02"}}\n', None)
    assert rows.to_pylist() == [{"at": "2026-01-02 03:04:05", "s": {"t": "2026-01-02"}}]


@pytest.mark.parametrize("at", [0, 3, 6])
@pytest.mark.parametrize(
    "wrong",
    [b"nonsense", b'{"id": "x"}', b'{"id": 1.5}', b'{"id": 9, "day": "soon"}', b"[1]", b'{"id": 1', b"\xff\xfe"],
)
def test_a_bad_line_is_set_apart_wherever_it_stands(wrong: bytes, at: int) -> None:
    lines = [b'{"id": %d}' % n for n in range(6)]
    lines.insert(at, wrong)
    rows, bad = decoder("json")("a.jsonl", b"\n".join(lines), KNOWN)
    assert rows.column("id").to_pylist() == list(range(6))
    assert [(each.origin, each.content) for each in bad] == [("a.jsonl", wrong.decode(errors="replace"))]
    assert bad[0].reason


@pytest.mark.parametrize("at", [0, 2, 5])
def test_a_record_that_does_not_fit_changes_no_type_and_takes_no_other_with_it(at: int) -> None:
    lines = [b'{"at": "2026-01-02 03:04:05", "n": %d, "s": {"t": "2026-01-02"}}' % n for n in range(5)]
    lines.insert(at, b'{"at": "2026-01-02 03:04:05", "n": "many"}')
    lines.append(b"nonsense")
    rows, bad = decoder("json")("a", b"\n".join(lines), None)
    assert rows.column("n").to_pylist() == [0, 1, 2, 3, 4]
    assert rows.schema.field("at").type == pa.string()
    assert rows.column("s").to_pylist() == [{"t": "2026-01-02"}] * 5
    assert len(bad) == 2


def test_numbers_of_json_are_of_the_wider_type_also_beside_a_bad_line() -> None:
    rows, bad = decoder("json")("a", b'{"n": 1}\nnonsense\n{"n": 1.5}\n{"m": 1}\n', None)
    assert rows.to_pylist() == [{"n": 1.0, "m": None}, {"n": 1.5, "m": None}, {"n": None, "m": 1}]
    assert len(bad) == 1


def test_a_json_file_of_bad_lines_only_has_no_rows() -> None:
    rows, bad = decoder("json")("a", b"x\n\ny\n", KNOWN)
    assert (rows.num_rows, len(bad)) == (0, 2)
    assert decoder("json")("a", b" \n", KNOWN).rows.num_rows == 0


def test_csv_has_known_types_and_empty_fields_are_null() -> None:
    rows, bad = decoder("csv")("a.csv", b'id,day,note,x\n1,2026-01-02,"a\nb",7\n2,,,\n', KNOWN)
    assert bad == ()
    assert rows.select(["id", "note", "x"]).to_pylist() == [
        {"id": 1, "note": "a\nb", "x": 7},
        {"id": 2, "note": None, "x": None},
    ]
    assert rows.schema.field("day").type == pa.date32()


def test_bad_rows_of_csv_are_set_apart() -> None:
    content = b"id,day,note\n1,2026-01-02,a\n2,soon,b\n3,2026-01-03\nx,2026-01-03,c\n5,,d\n"
    rows, bad = decoder("csv")("a.csv", content, KNOWN)
    assert rows.column("id").to_pylist() == [1, 5]
    assert rows.schema.field("day").type == pa.date32()
    assert sorted(each.reason for each in bad) == ["2 fields, not 3", *["a value is not of its column's type"] * 2]


def test_parquet_and_avro_are_read_whole() -> None:
    data = pa.table({"id": [1, 2], "note": ["a", None]})
    pq.write_table(data, sink := io.BytesIO())
    assert decoder("parquet")("a", sink.getvalue(), None).rows.equals(data)
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
    }
    fastavro.writer(sink := io.BytesIO(), schema, data.to_pylist())
    assert decoder("avro")("a", sink.getvalue(), None).rows.to_pylist() == data.to_pylist()


@pytest.mark.parametrize(
    ("kind", "values", "stored"),
    [
        ({"type": "string", "logicalType": "uuid"}, [str(uuid.UUID(int=1))], None),
        ({"type": "int", "logicalType": "date"}, [10**7, -(10**7), 1], pa.date32()),
        ({"type": "long", "logicalType": "timestamp-millis"}, [2**50, 1], pa.timestamp("us", "UTC")),
        ({"type": "long", "logicalType": "timestamp-micros"}, [2**62, -(2**62)], pa.timestamp("us", "UTC")),
        ({"type": "long", "logicalType": "local-timestamp-micros"}, [2**62, 1], pa.timestamp("us")),
        ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, [Decimal("-1.50")], None),
    ],
)
@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_values_of_avro_are_those_of_arrow_and_not_those_that_python_has(
    kind: Any, values: list[Any], stored: pa.DataType | None, codec: str
) -> None:
    """Python has no UUID that Arrow takes, and no days before the year 1 and after 9999."""
    parts = {"a": {"type": "array", "items": kind}, "m": {"type": "map", "values": ["null", kind]}, "v": ["null", kind]}
    fields = [{"name": name, "type": part} for name, part in parts.items()]
    schema: Any = {"type": "record", "name": "r", "fields": fields}
    rows = [{"a": values, "m": {"k": each}, "v": each} for each in values]
    fastavro.writer(sink := io.BytesIO(), schema, rows, codec=codec)
    found, bad = decoder("avro")("a", sink.getvalue(), None)
    assert not bad
    if stored is None:
        assert found.column("v").to_pylist() == values
        assert found.column("a").to_pylist()[0] == values
        return
    scale = 1000 if kind["logicalType"] == "timestamp-millis" else 1
    whole = pa.int32() if stored == pa.date32() else pa.int64()
    assert found.column("v").cast(stored).cast(whole).to_pylist() == [each * scale for each in values]
    items = pc.list_flatten(found.column("a")).cast(stored).cast(whole).to_pylist()
    assert items == [each * scale for each in values] * len(values)


def test_an_avro_file_of_what_no_column_can_have_is_named() -> None:
    schema: Any = {"type": "record", "name": "r", "fields": [{"name": "v", "type": ["int", "string"]}]}
    fastavro.writer(sink := io.BytesIO(), schema, [{"v": 1}])
    with pytest.raises(UnsupportedTableError, match=r"^day/a\.avro: column 'v' is a union of int"):
        decoder("avro")("day/a.avro", sink.getvalue(), None)
    fastavro.writer(sink := io.BytesIO(), {"type": "long"}, [1])
    assert "not a record" in decoder("avro")("a", sink.getvalue(), None).bad[0].reason


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_a_damaged_file_is_one_bad_record(kind: str) -> None:
    rows, bad = decoder(kind)("a", b"nonsense" * 9, None)
    assert rows.num_rows == 0
    assert "cannot be read" in bad[0].reason


@pytest.mark.parametrize("indent", [None, 1])
def test_an_array_of_objects_is_told_from_lines_of_them(indent: int | None) -> None:
    rows, bad = decoder("json")("a.json", json.dumps([{"id": 1}, {"id": 2}], indent=indent).encode(), None)
    assert rows.num_rows == 0
    assert bad[0].reason == "it is an array: each line has to be one object"


def test_formats_are_known_by_the_ends_of_names() -> None:
    assert {kind: format_of(f"A{ends[0].upper()}") for kind, (_, ends) in FORMATS.items()} == {k: k for k in FORMATS}
    assert format_of("a.txt") is format_of("a.gz") is format_of("a.txt.gz") is None
    assert format_of("A.CSV.GZ") == "csv"


@pytest.mark.parametrize("nested", [False, True])
def test_a_column_of_numbers_is_one_however_many_of_them_are_not_finite(nested: bool) -> None:
    """Also if a part that can be read alone has no other, and is the longest."""
    few, many = [{"f": 1.5}], [{"f": "NaN"}, {"f": None}, {"f": "-Infinity"}, {"f": None}] * 2
    for rows in ([*few, *many], [*many, *few]):
        values = [{"after": {**row, "l": [row["f"]]}} if nested else row for row in rows]
        found, bad = decoder("json")("a.json", "\n".join(map(json.dumps, values)).encode(), None)
        assert (found.num_rows, bad) == (9, ())
        column = pc.struct_field(found.column("after"), "f") if nested else found.column("f")
        assert sorted(map(str, column.drop_null().to_pylist())) == ["-inf", "-inf", "1.5", "nan", "nan"]
    only, _ = decoder("json")("a.json", b'{"f": "NaN"}\n{"f": null}', None)
    assert only.schema.field("f").type == pa.string()


def test_a_text_is_no_number_but_nan_in_a_column_of_numbers_and_stays_a_text_elsewhere() -> None:
    lines = b'{"f": 0.5}\n{"f": 1.5, "s": "NaN", "l": [{"x": 1.0}]}\n'
    lines += b'{"f": "NaN", "s": "a", "l": [{"x": "-Infinity"}]}\n{"f": "1.5"}\n{"f": "NaN"'
    rows, bad = decoder("json")("a.json", lines, None)
    assert rows.schema.field("s").type == pa.string()
    assert [str(row) for row in rows.to_pylist()] == [
        "{'f': 0.5, 's': None, 'l': None}",
        "{'f': 1.5, 's': 'NaN', 'l': [{'x': 1.0}]}",
        "{'f': nan, 's': 'a', 'l': [{'x': -inf}]}",
    ]
    assert len(bad) == 2


LIKE_TABLES = pa.schema(
    [
        ("id", pa.int64()),
        ("price", pa.decimal128(10, 2)),
        ("of", pa.struct([("day", pa.date32()), ("price", pa.decimal128(5, 1))])),
        ("days", pa.list_(pa.date32())),
        ("counts", pa.map_(pa.string(), pa.int64())),
        ("parts", pa.list_(pa.struct([("prices", pa.map_(pa.string(), pa.decimal128(5, 1)))]))),
        ("any", pa.json_(pa.string())),
        ("low", pa.float32()),
        ("corners", pa.list_(pa.float32(), 2)),
    ]
)


def test_json_fits_every_type_of_a_table() -> None:
    lines = [
        b'{"id": 1, "price": 12.5, "of": {"day": "2026-01-02", "price": 1}, "days": ["2026-01-03", null], "any": "x"}',
        b'{"id": 2, "price": "7", "counts": {"a": 1, "b": null}, "parts": [{"prices": {"k": 0.5}}, {"prices": null}, null]}',
        b'{"id": 3, "counts": {}, "any": {"deep": [1, 0.1, null]}, "low": 0.5, "corners": [1, 2.5], "of": {"more": true}}',
        b'{"id": 4, "price": 0.005}',
        b'{"id": 5, "low": 1e39}',
        b'{"id": 6, "counts": {"a": "x"}}',
        b'{"id": 7, "of": {"day": "soon"}}',
        b'{"id": 8, "corners": [1]}',
        b'{"id": 9, "any": null}',
    ]
    rows, bad = decoder("json")("a", b"\n".join(lines), LIKE_TABLES)
    assert [json.loads(each.content)["id"] for each in bad] == [4, 5, 6, 7, 8]
    assert all(rows.schema.field(each.name).type == each.type for each in LIKE_TABLES if each.name != "of")
    one, two, three, nine = rows.to_pylist()
    assert (one["price"], two["price"]) == (Decimal("12.50"), Decimal("7.00"))
    assert one["of"] == {"day": date(2026, 1, 2), "price": Decimal("1.0"), "more": None}
    assert one["days"] == [date(2026, 1, 3), None]
    assert [each["counts"] for each in (one, two, three)] == [None, [("a", 1), ("b", None)], []]
    assert two["parts"] == [{"prices": [("k", Decimal("0.5"))]}, {"prices": None}, None]
    assert [each["any"] for each in (one, two, three, nine)] == ['"x"', None, '{"deep": [1, 0.1, null]}', None]
    assert (three["low"], three["corners"], three["of"]["more"]) == (0.5, [1.0, 2.5], True)


def test_whole_numbers_of_json_keep_their_digits() -> None:
    """As floats both ids would be 12345678901234567168, one record of two."""
    lines = b'{"id": 12345678901234567890, "n": 1}\n{"id": 12345678901234567891, "n": 9007199254740993}\n{"id": 3, "n": 1.5}\n'
    rows, bad = decoder("json")("a", lines, None)
    assert rows.to_pylist() == [{"id": Decimal(12345678901234567890), "n": 1.0}, {"id": Decimal(3), "n": 1.5}]
    assert [each.reason for each in bad] == ["a whole number has more digits than a float holds"]
    again, bad = decoder("json")("b", b'{"id": 12345678901234567892}\n{"id": 5}', rows.schema)
    assert again["id"].to_pylist() == [Decimal(12345678901234567892), Decimal(5)]
    for nested in (b'{"n": [1.5, 9007199254740993]}', b'{"n": {"m": {"x": 9007199254740993, "y": 1}, "z": 0.5}}'):
        kind = decoder("json")("a", nested.replace(b"9007199254740993", b"0.5"), None).rows.schema
        assert len(decoder("json")("a", nested, kind).bad) == 1
    floats = (
        b'{"x": 12345678901234567000, "id": 9007199254740993}\n{"x": 1e300, "id": 2}\n{"x": 18014398509481984, "id": 3}'
    )
    rows, bad = decoder("json")("a", floats, None)
    assert bad == ()
    assert rows["x"].to_pylist() == [1.2345678901234567e19, 1e300, 2.0**54]
    assert rows["id"].to_pylist() == [9007199254740993, 2, 3]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-32"])
def test_text_that_is_not_utf_8_is_never_a_value(encoding: str) -> None:
    lines = ['{"id": 1, "note": "caf\u00e9"}', '{"id": 2, "note": "tea"}']
    rows, bad = decoder("json")("a", "\n".join(lines).encode(encoding), KNOWN)
    assert [row["note"] for row in rows.to_pylist()] == (["tea"] if encoding in ("latin-1", "cp1252") else [])
    assert bad[0].reason == "it is not UTF-8 text"
    for schema in (None, KNOWN):
        rows, bad = decoder("csv")("a.csv", "id,note\n1,caf\u00e9\n".encode(encoding), schema)
        assert (rows.num_rows, [each.reason for each in bad]) == (0, ["the file cannot be read: it is not UTF-8 text"])


@pytest.mark.parametrize(
    "deep", [b"[" * 200_000, b'{"a":' * 200_000, b'[{"b\\"]}":' * 5_000], ids=["list", "object", "both"]
)
def test_json_that_is_nested_too_deep_is_bad(deep: bytes) -> None:
    """Arrow's reader would end the process."""
    content = b'{"id": 1, "x": %s}\n{"id": 2, "note": "%s"}' % (deep, b"[{" * 5_000)
    rows, bad = decoder("json")("a", content, KNOWN)
    assert rows["id"].to_pylist() == [2]
    assert "deep" in bad[0].reason


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["01234", "99999"], ["01234", "99999"]),
        (["0", "7"], [0, 7]),
        (["0x1F", "10"], ["0x1F", "10"]),
        (["-0XFF", ""], ["-0XFF", None]),
        (["+4712345678", "5"], ["+4712345678", "5"]),
        ([" 007", " +1"], [" 007", " +1"]),
        (["+1.5", "-2.5"], [1.5, -2.5]),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"]),
        (["10000000000000001", "1.5"], ["10000000000000001", "1.5"]),
        (["10000000000000000", "1.5"], [1e16, 1.5]),
        (["9" * 40, "1"], ["9" * 40, "1"]),
        (["1e400", "1"], ["1e400", "1"]),
        (["-inf", "1"], [float("-inf"), 1.0]),
        (["10:30", "11:00:01"], ["10:30", "11:00:01"]),
        (["2026-01-01 10:00:00.123456789"], ["2026-01-01 10:00:00.123456789"]),
        (["2026-01-01 10:00:00.5", ""], [datetime(2026, 1, 1, 10, 0, 0, 500_000), None]),
    ],
)
def test_values_of_a_new_column_of_csv_are_kept_as_they_are(values: list[str], expected: list[object]) -> None:
    content = "id,v\n" + "".join(f"{number},{value}\n" for number, value in enumerate(values))
    assert decoder("csv")("a.csv", content.encode(), None).rows["v"].to_pylist() == expected


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_a_number_of_csv_that_is_too_large_for_its_column_is_bad(kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.int64()), ("v", kind)])
    rows, bad = decoder("csv")("a.csv", b"id,v\n1,1e400\n2,0.5\n3,Infinity\n", schema)
    assert rows["v"].to_pylist() == [0.5, float("inf")]
    assert "1e400" in bad[0].content


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ('id,a,b\n1,x,y\n2,z,"open\n3,x,y\n4,x,y\n', [1]),
        ('id,a,b\n1,x,y\n2,"open\n3,x,y\n4,x,y\n', [1]),
        ('id,a,b\n1,5" pipe,y\n2,x,y\n', [1, 2]),
        ('id,a,b\n1,"5"" pipe",y\n2,x,"y\nz"', [1, 2]),
        ('id,a,b\n1,x,y\n2,x,"', [1]),
    ],
)
@pytest.mark.parametrize("schema", [None, pa.schema([("id", pa.int64()), ("a", pa.string()), ("b", pa.string())])])
def test_a_quote_that_does_not_end_takes_no_lines_with_it_in_silence(
    content: str, ids: list[int], schema: pa.Schema | None
) -> None:
    rows, bad = decoder("csv")("a.csv", content.encode(), schema)
    assert rows["id"].to_pylist() == ids
    assert len(bad) == (1 if ids == [1] else 0)


@pytest.mark.parametrize("row", ["1,2,3", "x,y,z"])
def test_csv_with_a_name_twice_is_bad(row: str) -> None:
    for schema in (None, KNOWN):
        rows, bad = decoder("csv")("a.csv", f"id,n,n\n{row}\n".encode(), schema)
        assert (rows.num_rows, bad[0].reason) == (0, "the file cannot be read: more than one column is named n")


@pytest.mark.parametrize("content", ["id,note", 'id,"note', "id,note\r", '"', ","])
def test_a_header_alone_has_no_rows(content: str) -> None:
    for schema in (None, KNOWN):
        assert decoder("csv")("a.csv", content.encode(), schema).rows.num_rows == 0


def test_parquet_with_text_that_is_not_utf_8_is_bad() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"id": [1], "note": ["caf\u00e9"]}), out, use_dictionary=False, compression="none")
    rows, bad = decoder("parquet")("a.parquet", out.getvalue().replace("caf\u00e9".encode(), b"cafe\xe9"), None)
    assert rows.num_rows == 0
    assert "UTF8" in bad[0].reason


@pytest.mark.parametrize("kind", ["json", "csv", "parquet", "avro"])
def test_damage_of_any_kind_is_told(kind: str) -> None:
    """Bytes of good files are changed, cut and put in: what comes is rows that can be read, or bad records, and no other error."""
    chance = random.Random(7)
    pieces = ["{", "}", "[", "]", "null", "1e99999999999999999999", '"', '"a"', "\u00e9", ",", ":", "\n", '{"id": 1}\n']
    good = _a_good_file(kind)
    for number in range(100):
        content = bytearray(good)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(content) + 1)
            match chance.randrange(4):
                case 0:
                    content[at : at + 1] = bytes([chance.randrange(256)])
                case 1:
                    del content[at : at + chance.randint(1, 20)]
                case 2:
                    content[at:at] = chance.choice(pieces).encode()
                case _:
                    del content[at:]
        rows, bad = decoder(kind)("a", bytes(content), LIKE_TABLES if number % 2 else None)
        rows.validate(full=True)
        assert all(each.reason for each in bad)


def _a_good_file(kind: str) -> bytes:
    rows = [{"id": n, "note": "\u00e9" * n, "counts": {"a": n}} for n in range(9)]
    out = io.BytesIO()
    match kind:
        case "json":
            return (
                b'null\n{"of": {"day": "2026-01-01"}, "price": 1.5, "any": [1]}\n'
                + "\n".join(map(json.dumps, rows)).encode()
            )
        case "csv":
            return 'id,note,low\n1,"a, ""b""",0.5\n2,\u00e9,\n"3","x\ny",1e5\n'.encode()
        case "parquet":
            pq.write_table(pa.Table.from_pylist(rows), out)
        case _:
            kinds = {"id": "long", "note": ["null", "string"], "counts": {"type": "map", "values": "int"}}
            fields = [{"name": name, "type": its_type} for name, its_type in kinds.items()]
            fastavro.writer(out, {"type": "record", "name": "row", "fields": fields}, rows)
    return out.getvalue()


@pytest.mark.parametrize(
    "content", ["null", "null\nnull\n", 'null\n{"id": 1}', ' \r\n null\n{"id": 1}', "\ufeffnull\n", '{"id": 1}\nnull']
)
@pytest.mark.parametrize("schema", [None, KNOWN, LIKE_TABLES])
def test_null_in_the_place_of_an_object_is_a_row_of_nothing(content: str, schema: pa.Schema | None) -> None:
    """Arrow's reader ends the process at one in front."""
    rows, bad = decoder("json")("a", content.encode(), schema)
    ids = [row.get("id") for row in rows.to_pylist()]
    nothing = [None] * content.count("null") if schema else []  # there is no column at all
    assert (sorted(ids, key=str), bad) == ([1, None] if "1" in content else nothing, ())
