"""Schemas whose columns have ids, as commits and history files hold them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.internal_schema import parse_internal_schema, parse_schema_history
from hoodie.model.columns import Column, ColumnHistory, ColumnSet

SCHEMA = {
    "max_column_id": 7,
    "version_id": 20261121131716350,
    "type": "record",
    "fields": [
        {"id": 0, "name": "id", "optional": True, "type": "string"},
        {
            "id": 1,
            "name": "s",
            "optional": True,
            "type": {"type": "record", "fields": [{"id": 4, "name": "x", "optional": True, "type": "decimal(5, 2)"}]},
        },
        {
            "id": 2,
            "name": "l",
            "optional": True,
            "type": {"type": "array", "element_id": 5, "element": "int", "element_optional": True},
        },
        {
            "id": 3,
            "name": "m",
            "optional": True,
            "type": {
                "type": "map",
                "key_id": 6,
                "key": "string",
                "value_id": 7,
                "value": "long",
                "value_optional": True,
            },
        },
    ],
}
COLUMNS = (
    Column(0, "id", kind="string"),
    Column(1, "s", (Column(4, "x", kind="decimal(5, 2)"),), "record"),
    Column(2, "l", (Column(5, "element", kind="int"),), "array"),
    Column(3, "m", (Column(6, "key", kind="string", optional=False), Column(7, "value", kind="long")), "map"),
)
TEXT = json.dumps(SCHEMA)


def test_a_schema_gives_version_and_columns_with_their_parts():
    assert parse_internal_schema(TEXT, path="c") == ColumnSet(20261121131716350, COLUMNS, 7)


def test_a_history_gives_columns_by_version():
    older = {**SCHEMA, "version_id": 0, "fields": SCHEMA["fields"][:1]}
    text = json.dumps({"schemas": [SCHEMA, older]})
    newest = ColumnSet(20261121131716350, COLUMNS, 7)
    assert parse_schema_history(text, path="h") == [newest, ColumnSet(0, COLUMNS[:1], 7)]


def test_a_file_has_the_columns_of_the_version_that_its_commit_names_else_of_the_newest_before_it():
    old, new = ColumnSet(0, (Column(1, "a"),), 1), ColumnSet(20260101000000000, (Column(1, "b"),), 1)
    history = ColumnHistory("t", new, (old, new), {"20260103000000000": 0})
    assert history.at("20251231235959999") == old
    assert history.at("20260101000000000") == history.at("20260102000000") == new
    assert history.at("20260103000000000") == old
    assert ColumnHistory("t", new, (new,), {}).at("20251231000000000") is None


@pytest.mark.parametrize("cut", range(0, len(TEXT)))
def test_a_schema_that_is_cut_anywhere_is_damaged(cut):
    with pytest.raises(CorruptFileError, match="the commit"):
        parse_internal_schema(TEXT[:cut], path="the commit")


@pytest.mark.parametrize(
    "change",
    [
        {"version_id": None},
        {"version_id": -1},
        {"fields": None},
        {"fields": [*SCHEMA["fields"], SCHEMA["fields"][0]]},
        {"fields": [{"id": "0", "name": "a", "type": "int"}]},
        {"fields": [{"id": 0, "name": None, "type": "int"}]},
        {"fields": [{"id": 0, "name": "a", "type": {"type": "set"}}]},
        {"fields": [{"id": 0, "name": "a", "type": ["int"]}]},
    ],
    ids=str,
)
def test_what_is_no_schema_is_damaged(change):
    with pytest.raises(CorruptFileError):
        parse_internal_schema(json.dumps({**SCHEMA, **change}), path="c")


def test_nesting_without_end_is_damaged():
    deep = '{"type":"array","element_id":%d,"element":'
    text = "".join(deep % n for n in range(1, 5000)) + '"int"' + "}" * 4999
    with pytest.raises(CorruptFileError):
        parse_internal_schema(json.dumps(SCHEMA)[:-2] + ',{"id":0,"name":"z","type":' + text + "}]}", path="c")


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_any_json_is_read_or_damaged(found):
    for parse in (parse_internal_schema, parse_schema_history):
        with pytest.raises(CorruptFileError):
            parse(json.dumps(found), path="c")
