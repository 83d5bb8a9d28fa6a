"""Which partitions and file groups an overwrite replaces: values in, values out."""

import pytest

from hoodie.model.enums import WriteOperation
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.options.write import WriteOptions
from hoodie.write.operation_rules import OperationRules
from hoodie.write.overwrite import matching_partitions, overwritten_partitions, replacing
from hoodie.write.plan import WritePlan

STORED = ["", "2026/01/01", "2026/01/02", "2026/02/01", "city=a+b", "city=a", "x%2Ay"]
T = "20260101000000000"


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["2026/01/*"], ["2026/01/01", "2026/01/02"]),
        (["2026*"], ["2026/01/01", "2026/01/02", "2026/02/01"]),
        (["*/01"], ["2026/01/01", "2026/02/01"]),
        (["2026/01"], []),
        (["city=a", "city=a", "nowhere"], ["city=a"]),
        (["city=a+*"], ["city=a+b"]),  # what means something in regular expressions is text
        (["city=%2A"], ["city=a", "city=a+b"]),
        (["*"], STORED),
        ([""], [""]),
        ([], []),
    ],
)
def test_patterns_name_stored_partitions(patterns, expected):
    assert matching_partitions(patterns, STORED) == tuple(sorted(expected))


def overwritten(operation, *, of_rows=(), **options):
    given = WriteOptions(operation=operation, **options)
    replaces = OperationRules.of(operation, given).replaces
    return overwritten_partitions(operation, replaces, given, of_rows=of_rows, stored=["a", "b", "c"])


def test_insert_overwrite_replaces_the_stored_partitions_of_its_rows():
    assert overwritten(WriteOperation.INSERT_OVERWRITE, of_rows=["c", "new", "a"]) == ("a", "c")
    assert overwritten(WriteOperation.INSERT_OVERWRITE) == ()


def test_insert_overwrite_with_static_partitions_replaces_these():
    static = ("b", "nowhere")
    assert overwritten(WriteOperation.INSERT_OVERWRITE, of_rows=["a"], static_partitions=static) == ("b",)


def test_insert_overwrite_table_replaces_all():
    assert overwritten(WriteOperation.INSERT_OVERWRITE_TABLE, of_rows=["new"]) == ("a", "b", "c")


def test_delete_partition_takes_the_option_else_the_rows():
    assert overwritten(WriteOperation.DELETE_PARTITION, of_rows=["a"], partitions_to_delete=("b", "c*")) == ("b", "c")
    assert overwritten(WriteOperation.DELETE_PARTITION, of_rows=["a", "new"]) == ("a",)
    assert overwritten(WriteOperation.DELETE_PARTITION, of_rows=["a"], partitions_to_delete=()) == ()


def test_replaced_groups_stand_in_the_plan_with_what_they_were():
    slices = [FileSlice(FileGroupId("a", name), T, None, ()) for name in ("f2-0", "f1-0")]
    plan = replacing(WritePlan((), {}, frozenset({"new"})), ["a", "b"], slices, all_of_it=False)
    assert plan.replaced == {"a": ("f1-0", "f2-0"), "b": ()}
    assert plan.based_on == {FileGroupId("a", "f1-0"): T, FileGroupId("a", "f2-0"): T}
    assert plan.absent_in == {"a", "b", "new"}
    assert replacing(plan, [], [], all_of_it=True).absent_in is None
