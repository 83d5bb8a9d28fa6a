"""Which changes of registered columns are made, and which are refused."""

import pytest

from hoodie.hive.evolution import Column, changes


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("int", "bigint"),
        ("INT", "double"),
        ("bigint", "timestamp"),
        ("float", "double"),
        ("date", "string"),
        ("decimal(10,2)", "decimal(12,3)"),
        ("struct<a:int>", "struct<a:int,b:string>"),
    ],
)
def test_wider_types(before: str, after: str) -> None:
    found = changes([Column("c", before)], [Column("C", after)])
    assert found.descriptions == (f"c: {before.lower()} to {after}",)
    assert not found.refused


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("bigint", "int"),
        ("double", "float"),
        ("string", "int"),
        ("decimal(10,2)", "decimal(10,3)"),
        ("decimal(10,2)", "double"),
        ("int", "struct<a:int>"),
        ("boolean", "string"),
    ],
)
def test_others_are_refused(before: str, after: str) -> None:
    found = changes([Column("c", before)], [Column("c", after)])
    assert found.refused == (f"c: {before} to {after}",)
    assert not found.descriptions


def test_spaces_and_case_are_no_change() -> None:
    assert not changes([Column("C", "STRUCT< `a` : INT >")], [Column("c", "struct<a:int>")]).descriptions


def test_columns_that_come_and_go() -> None:
    assert changes([Column("a", "int")], [Column("b", "int")]).descriptions == ("b added", "a removed")
