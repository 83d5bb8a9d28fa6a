"""Buckets of record keys against a plain reading of Java's rules, and against file ids that Apache Hudi chose."""

import json
import re
import uuid

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.hashes.of_buckets import (
    bucket_file_id,
    bucket_hashes,
    bucket_numbers,
    bucket_of_file_id,
    text_hashes,
    values_of_key,
)
from tests.golden_tables import FOLDER

FIELDS = [("a",), ("a", "b"), ("b",), ("id",)]
# Pieces of which keys are hard to take apart, and characters of one to four bytes.
PIECES = ["a", "b", "id", ",", ":", "__null__", "__empty__", "é", "€", "😀", "\n", "x"]
keys = st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
values = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"])), st.sampled_from(["__null__", "__empty__", "p:q", "p,q"])
)


def java_hash(text):
    """`String.hashCode`, unit by unit."""
    hashed = 0
    units = (text or "").encode("utf-16-be")
    for at in range(0, len(units), 2):
        hashed = (31 * hashed + int.from_bytes(units[at : at + 2], "big")) & 0xFFFFFFFF
    return hashed


def java_list_hash(texts):
    hashed = 1
    for text in texts:
        hashed = (31 * hashed + java_hash(text)) & 0xFFFFFFFF
    return hashed


@pytest.mark.parametrize(
    ("text", "hashed"), [("", 0), (None, 0), ("hello", 99162322), ("polygenelubricants", 1 << 31), ("😀", 1772899)]
)
def test_hash_of_a_text_is_that_of_java(text, hashed):
    assert text_hashes(pa.array([text], pa.string())).tolist() == [hashed]


@given(st.lists(st.one_of(st.none(), st.text()), max_size=8), st.integers(0, 3))
def test_hashes_of_texts_do_not_depend_on_their_neighbours(texts, skipped):
    array = pa.array(texts, pa.string()).slice(skipped)
    assert text_hashes(array).tolist() == [java_hash(text) for text in texts[skipped:]]


def test_hashes_of_texts_do_not_depend_on_how_many_are_hashed_at_a_time(monkeypatch):
    texts = pa.array(["", "a", None, "Grüße", "\U0001f600", "b" * 100, "a"])
    at_once = text_hashes(texts).tolist()
    monkeypatch.setattr("hoodie.hashes.of_buckets._AT_ONCE", 2)
    assert text_hashes(texts).tolist() == text_hashes(texts.slice(0)).tolist() == at_once
    assert text_hashes(texts.slice(0, 0)).tolist() == []


@given(st.lists(keys, max_size=8), st.sampled_from(FIELDS))
def test_hashes_of_any_keys_are_those_of_the_values_in_them(found, fields):
    wanted = [java_list_hash(values_of_key(key, fields)) for key in found]
    assert bucket_hashes(pa.array(found, pa.string()), fields).tolist() == wanted


@given(st.lists(st.tuples(values, values), min_size=1, max_size=6), st.sampled_from(FIELDS))
def test_composite_keys_are_hashed_by_the_values_of_their_hash_fields(rows, fields):
    found = [f"a:{first},b:{second}" for first, second in rows]
    meant = {"__null__": None, "__empty__": ""}
    wanted = []
    for key, row in zip(found, rows, strict=True):
        named = [meant.get(value, value) for name, value in zip("ab", row, strict=True) if name in fields]
        ambiguous = any(re.search(",[^:]*:", value, re.DOTALL) for value in row)
        wanted.append(java_list_hash(values_of_key(key, fields) if ambiguous else named or [key]))
    assert bucket_hashes(pa.array(found), fields).tolist() == wanted


@pytest.mark.parametrize(
    ("key", "fields", "parsed"),
    [
        ("a:b", ("a",), ["a:b"]),  # without a comma the whole key counts
        ("x,y", ("x",), ["x,y"]),
        ("a:1,b:2", ("b",), ["2"]),
        ("a:1,b:2", ("b", "a"), ["1", "2"]),  # in the key's order
        ("a:__null__,b:__empty__", ("a", "b"), [None, ""]),
        ("a:p,q,b:2", ("a", "b"), ["p,q", "2"]),
        ("a:10:30:05,b:2", ("a", "b"), ["10:30:05", "2"]),
        ("a:p,q:r,b:2", ("a", "b"), ["p", "2"]),  # Hudi takes `q` for a field
        ("id:a,b", ("id",), ["a,b"]),
        ("a:1,b:2", ("id",), ["a:1,b:2"]),  # no hash field in it
        ("a:1,b:x:y", ("a",), ["1"]),  # Hudi 1.2.0 never comes back from this one
        (",:", ("id",), [",:"]),
        ("a:x,", ("a",), ["x,"]),
    ],
)
def test_keys_are_taken_apart_as_hudi_does(key, fields, parsed):
    assert values_of_key(key, fields) == parsed


# (key, hash fields, bucket of 64): file ids that Apache Hudi 1.2.0 chose.
OBSERVED = [
    ("id:a,b", ("id",), 54),
    ("id:id:a,b", ("id",), 23),
    ("a:b,c", ("id",), 31),
    ("id:a,b:c", ("id",), 0),
    (",:", ("id",), 45),
    ("id::,", ("id",), 17),
    ("a,:b", ("id",), 50),
    ("id:a,:b", ("id",), 0),
    ("x:y,z:w", ("id",), 33),
    ("id:x:y,z:w", ("id",), 22),
    ("id:id:1,2:3", ("id",), 49),
]


def test_odd_keys_lie_where_hudi_puts_them():
    for key, fields, bucket in OBSERVED:
        assert bucket_numbers(pa.array([key]), fields, 64).tolist() == [bucket], key


def test_every_row_of_the_golden_table_lies_in_its_bucket():
    rows = json.loads((FOLDER / "v6_bucket" / "expected.json").read_text())["snapshot"]
    found = bucket_numbers(pa.array([row["_hoodie_record_key"] for row in rows]), ("id",), 4)
    assert found.tolist() == [int(row["_hoodie_file_name"].lstrip(".")[:8]) for row in rows]
    assert len(rows) > 20


def test_keys_in_several_chunks_and_more_than_one_piece():
    texts = [f"key-{n}" for n in range(300_000)]
    chunked = pa.chunked_array([texts[:100], [], texts[100:]], pa.string())
    found = bucket_hashes(chunked, ("id",))
    picked = [0, 99, 100, 262_144, 299_999]
    assert found[picked].tolist() == [java_list_hash([texts[n]]) for n in picked]
    assert bucket_hashes(pa.chunked_array([], pa.string()), ("id",)).dtype == np.uint32


def test_file_ids_of_buckets():
    file_id = bucket_file_id(37)
    assert bucket_of_file_id(file_id) == 37
    assert uuid.UUID(file_id.removesuffix("-0"))
    assert bucket_of_file_id("0000000a-1234") is None
    assert bucket_of_file_id("0000001") is None
    assert bucket_of_file_id("٠٠٠٠٠٠٠١-1") is None
