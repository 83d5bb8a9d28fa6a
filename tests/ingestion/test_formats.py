"""Files as rows; what cannot be a row is set apart, and the rest is there."""

from __future__ import annotations

import io
import json
from decimal import Decimal

import fastavro
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

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


@pytest.mark.parametrize("kind", ["parquet", "avro"])
def test_a_damaged_file_is_one_bad_record(kind: str) -> None:
    rows, bad = decoder(kind)("a", b"nonsense" * 9, None)
    assert rows.num_rows == 0
    assert "cannot be read" in bad[0].reason


def test_formats_are_known_by_the_ends_of_names() -> None:
    assert {kind: format_of(f"A{ends[0].upper()}") for kind, (_, ends) in FORMATS.items()} == {k: k for k in FORMATS}
    assert format_of("a.txt") is None


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
