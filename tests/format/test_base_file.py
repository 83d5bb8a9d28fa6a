"""Footers of base files: those Apache Hudi wrote, and ours."""

import base64
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, KeyFieldError, UnsupportedTableError
from hoodie.format import base_file
from hoodie.format.base_file import (
    BLOOM,
    entries_for,
    footer_metadata,
    key_range,
    may_hold_by_range,
    parted_footer,
    read_footer,
)
from hoodie.format.bloom import MAX_BITS, HudiBloomFilter, bloom_size, build_bloom
from hoodie.format.properties import parse_properties
from hoodie.model.meta_fields import RECORD_KEY
from tests.golden_tables import FOLDER

BASE_FILES = [path for path in sorted(FOLDER.glob("*/table/**/*.parquet")) if ".hoodie" not in path.parts]
SIZES = {"bloom_type": "DYNAMIC_V0", "fpp": 1e-9, "num_entries": None, "max_entries": 100_000}
# Two characters whose order differs: U+1F600 is D83D DE00 in UTF-16, below U+FFEE, and F0... in UTF-8, above its EF...
EMOJI, HALFWIDTH = "\U0001f600", "\uffee"


def footer_of(values: dict[str | bytes, str | bytes], *, rows: int = 1):
    out = io.BytesIO()
    with pq.ParquetWriter(out, pa.schema([("a", pa.int64())])) as writer:
        writer.write_table(pa.table({"a": pa.array(range(rows), pa.int64())}))
        writer.add_key_value_metadata(values)
    return read_footer(pq.read_metadata(io.BytesIO(out.getvalue())), path="p/f.parquet")


def utf16(key: str) -> bytes:
    return key.encode("utf-16-be")


def test_there_are_golden_base_files():
    assert len(BASE_FILES) >= 60


@pytest.mark.parametrize("path", BASE_FILES, ids=lambda path: f"{path.parts[-3]}-{path.name[:8]}-{path.name[-25:-8]}")
def test_golden_footer_is_rebuilt_from_its_keys_byte_for_byte(path: Path):
    table = path.relative_to(FOLDER).parts[0]
    properties = parse_properties((FOLDER / table / "table/.hoodie/hoodie.properties").read_text("latin-1"))
    file = pq.ParquetFile(path)
    footer = read_footer(file.metadata, path=str(path))
    keys = file.read(columns=[RECORD_KEY])[RECORD_KEY]
    bloom = footer.bloom()
    assert isinstance(bloom, HudiBloomFilter)
    again = build_bloom("DYNAMIC_V0", keys, num_entries=bloom.row_entries, fpp=1e-9, max_entries=100_000)
    assert footer.bloom_type == "DYNAMIC_V0"
    assert base64.b64encode(again.to_bytes()) == footer.bloom_base64
    assert bloom.might_contain(keys.combine_chunks()).all()
    assert (footer.min_key, footer.max_key) == key_range(keys)
    assert footer.may_hold(keys).all()
    assert footer.record_count == len(keys)
    if footer.avro_schema_json is not None:
        assert f'"hoodie.{properties["hoodie.table.name"]}"' in footer.avro_schema_json


@pytest.mark.parametrize(
    "path", BASE_FILES[::4], ids=lambda path: f"{path.parts[-3]}-{path.name[:8]}-{path.name[-25:-8]}"
)
def test_a_footer_apart_from_its_filter_says_the_same(path: Path, monkeypatch):
    monkeypatch.setattr(base_file, "_PARTED_BYTES", 0)
    whole, parted = pq.read_metadata(path), parted_footer(memoryview(path.read_bytes()))
    assert read_footer(parted.metadata, path="p", bloom_base64=parted.bloom_base64) == read_footer(whole, path="p")
    assert parted.metadata.schema.equals(whole.schema)
    groups = range(whole.num_row_groups)
    assert [parted.metadata.row_group(n).to_dict() for n in groups] == [whole.row_group(n).to_dict() for n in groups]


@pytest.mark.parametrize(
    "entries",
    [
        {"a": "b"},
        {"a": f"\x18{chr(len(BLOOM))}{BLOOM}\x18\x01x"},
        {"a": f"\x18{chr(len(BLOOM))}{BLOOM}\x18\x00"},
        {f"a{BLOOM}": "b"},
    ],
    ids=["none", "value", "value that changes nothing", "key"],
)
def test_a_footer_without_a_filter_stays_whole(entries, monkeypatch):
    monkeypatch.setattr(base_file, "_PARTED_BYTES", 0)
    out = io.BytesIO()
    with pq.ParquetWriter(out, pa.schema([("a", pa.int64())])) as writer:
        writer.add_key_value_metadata(entries)
    data = out.getvalue()
    assert [parted_footer(memoryview(each)) for each in (data, data[:-1], data[4:6], b"")] == [None] * 4


@pytest.mark.parametrize("bloom_type", ["SIMPLE", "DYNAMIC_V0", "PYBLOOM_LIVE"])
def test_footer_comes_back_from_parquet_as_it_was_given(bloom_type):
    keys = pa.chunked_array([["b", "é"], ["a"]])
    footer = footer_of(footer_metadata(keys, **SIZES | {"bloom_type": bloom_type}, avro_schema_json="{}"), rows=3)
    assert (footer.record_count, footer.min_key, footer.max_key) == (3, "a", "é")
    assert footer.bloom_type == bloom_type
    assert footer.bloom().might_contain(pa.array(["a", "b", "c", "é"])).tolist() == [True, True, False, True]
    assert footer.avro_schema_json == "{}"


def test_keys_of_the_footer_are_those_of_hudi():
    keys = pa.array(["a"])
    with_schema = footer_metadata(keys, **SIZES, avro_schema_json="{}")
    assert set(with_schema) == {
        "org.apache.hudi.bloomfilter",
        "hoodie_bloom_filter_type_code",
        "hoodie_min_record_key",
        "hoodie_max_record_key",
        "parquet.avro.schema",
        "writer.model.name",
    }
    # Readers take an absent type code as SIMPLE, and Hudi writes none.
    simple = footer_metadata(keys, **SIZES | {"bloom_type": "SIMPLE"}, avro_schema_json=None)
    assert set(simple) == {"org.apache.hudi.bloomfilter", "hoodie_min_record_key", "hoodie_max_record_key"}


@pytest.mark.parametrize(("records", "entries"), [(0, 100), (5, 100), (101, 101), (2_000, 2_000)])
def test_filter_is_sized_by_the_records_in_one_row(records, entries):
    keys = pa.array([f"k{i}" for i in range(records)], pa.string())
    bloom = footer_of(footer_metadata(keys, **SIZES | {"max_entries": 10}, avro_schema_json=None)).bloom()
    assert (bloom.row_entries, len(bloom.rows), bloom.newest_count) == (entries, 1, records)


def test_a_file_of_very_many_rows_gets_the_largest_filter_that_a_footer_carries():
    entries = entries_for(1 << 40, 1e-9)
    assert 9_000_000 < entries < 10_000_000
    assert bloom_size(entries, 1e-9)[0] <= MAX_BITS < bloom_size(entries, 1e-9)[0] + 44
    assert entries_for(9_000_000, 1e-9) == 9_000_000


def test_given_entries_make_rows_up_to_the_maximum():
    keys = pa.array([f"k{i}" for i in range(500)])
    values = footer_metadata(keys, **SIZES | {"num_entries": 100, "max_entries": 250}, avro_schema_json=None)
    bloom = footer_of(values).bloom()
    assert (bloom.row_entries, len(bloom.rows)) == (100, 3)


def test_a_file_without_rows_has_no_bounds_and_a_filter():
    footer = footer_of(footer_metadata(pa.array([], pa.string()), **SIZES, avro_schema_json=None))
    assert (footer.min_key, footer.max_key) == (None, None)
    assert not footer.bloom().might_contain(pa.array(["a"])).any()


def test_null_keys_are_refused():
    with pytest.raises(KeyFieldError, match="1 of 2"):
        footer_metadata(pa.array(["a", None]), **SIZES, avro_schema_json=None)


def test_a_footer_without_hudi_keys_rules_nothing_out():
    footer = footer_of({})
    assert footer.bloom() is None
    assert footer.bloom_type is None
    assert footer.may_hold(pa.array(["a", "z"])).all()


def test_one_bound_alone_rules_nothing_out():
    footer = footer_of({"hoodie_min_record_key": "m"})
    assert (footer.min_key, footer.max_key) == (None, None)
    assert footer.may_hold(pa.array(["a", "z"])).all()


def test_filter_of_an_old_table_is_found_under_its_old_key():
    data = build_bloom("SIMPLE", pa.array(["a"]), num_entries=10, fpp=0.01, max_entries=0).to_bytes()
    footer = footer_of({"com.uber.hoodie.bloomfilter": base64.b64encode(data)})
    assert footer.bloom_type == "SIMPLE"
    assert footer.bloom().might_contain(pa.array(["a", "b"])).tolist() == [True, False]


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"org.apache.hudi.bloomfilter": "no base64!"}, CorruptFileError),
        ({"org.apache.hudi.bloomfilter": "AAAA"}, CorruptFileError),
        ({"org.apache.hudi.bloomfilter": "AAAA", "hoodie_bloom_filter_type_code": "CUCKOO"}, UnsupportedTableError),
    ],
)
def test_a_filter_that_does_not_decode_names_the_file_only_when_it_is_asked_for(values, error):
    footer = footer_of(values | {"hoodie_min_record_key": "a", "hoodie_max_record_key": "b"})
    assert footer.max_key == "b"
    with pytest.raises(error, match=r"p/f\.parquet"):
        footer.bloom()


def test_a_bound_that_is_no_text_names_the_file():
    with pytest.raises(CorruptFileError, match=r"p/f\.parquet.*hoodie_min_record_key"):
        footer_of({"hoodie_min_record_key": b"\xff", "hoodie_max_record_key": "a"})


def test_bounds_are_in_the_order_of_java_strings():
    keys = pa.array([HALFWIDTH, EMOJI, "\ud7ff"])
    assert key_range(keys) == ("\ud7ff", HALFWIDTH)
    assert key_range(pa.array([HALFWIDTH, EMOJI])) == (EMOJI, HALFWIDTH)
    # A slice is judged by its own keys only.
    assert key_range(keys[:2]) == (EMOJI, HALFWIDTH)


def test_a_bound_with_a_supplementary_character_prunes_by_both_orders_other_keys_too():
    # Written in UTF-16 order: by UTF-8 bytes alone the range looks empty.
    assert may_hold_by_range(pa.array([HALFWIDTH, "a"]), min_key=EMOJI, max_key=HALFWIDTH).tolist() == [True, False]


# Characters around all edges of the two orders, so that random texts meet them.
EDGES = st.text(st.sampled_from("a\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=3)


@given(st.lists(EDGES, min_size=1, max_size=6), st.lists(EDGES, max_size=4), st.integers(0, 3))
def test_bounds_and_pruning_equal_a_plain_model(keys, others, skip):
    array = pa.array(["\U0010ffff"] * skip + keys)[skip:]
    by_utf16, by_utf8 = sorted(keys, key=utf16), sorted(keys, key=str.encode)
    assert key_range(array) == (by_utf16[0], by_utf16[-1])
    assert key_range(pa.chunked_array([array[:1], array[1:]])) == (by_utf16[0], by_utf16[-1])
    probes = pa.array(keys + others, pa.large_string())
    # Bounds of a writer of either order never rule out a key that the file holds.
    for low, high in ((by_utf16[0], by_utf16[-1]), (by_utf8[0], by_utf8[-1])):
        may = may_hold_by_range(probes, min_key=low, max_key=high)
        assert may[: len(keys)].all()
        inside = [
            utf16(low) <= utf16(key) <= utf16(high) or low.encode() <= key.encode() <= high.encode()
            for key in keys + others
        ]
        assert may.tolist() == inside
