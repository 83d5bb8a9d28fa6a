"""Which slices a compaction takes, and in how many plans: values in, plans out."""

from datetime import date

import pytest

from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.payloads import CompactionOperation
from hoodie.options.compaction import CompactionOptions, Strategy
from hoodie.services.compaction_plan import MOST_PLANS, plan_compaction

T = "20260101000000001"
MB = 1024 * 1024


def file_slice(file_id, *logs, base=0, partition="p"):
    """Sizes in bytes; without a base file when that is None."""
    found = None if base is None else BaseFile(partition, file_id, T, f"{file_id}.parquet", base)
    names = tuple(LogFile(partition, file_id, T, n, f".{file_id}.log.{n}", size) for n, size in enumerate(logs, 1))
    return FileSlice(FileGroupId(partition, file_id), T, found, names)


def plans(slices, *, part_bytes=None, **options):
    return plan_compaction(
        slices,
        options=CompactionOptions(**options),
        today=date(2026, 1, 1),
        new_file_bytes=120 * MB,
        part_bytes=part_bytes,
    )


def planned(slices, **options):
    (found,) = plans(slices, **options)
    return found


def ids(plan):
    return [operation.file_id for operation in plan.operations]


def test_slices_with_the_largest_logs_come_first():
    assert ids(planned([file_slice("a", 5), file_slice("b", 1, 1, 8), file_slice("c", 7, base=100)])) == ["b", "c", "a"]


def test_slices_without_logs_are_left_out():
    assert ids(planned([file_slice("a"), file_slice("b", 1), file_slice("c", base=5)])) == ["b"]
    assert plans([]) == ()


def test_partitions_with_slices_that_were_left_out_are_named():
    slices = [file_slice("a", 3 * MB, partition="q"), file_slice("b", 2 * MB), file_slice("c", MB, partition="r")]
    assert planned(slices, target_io_mb=1).missing_partitions == ("p", "r")
    assert planned(slices).missing_partitions == ()


def test_an_operation_names_the_files_and_what_they_cost():
    plan = planned([file_slice("a", 2 * MB, 3 * MB, base=4 * MB + 1), file_slice("b", 1, base=None)])
    assert plan.version == 2
    assert plan.operations[0] == CompactionOperation(
        partition_path="p",
        file_id="a",
        base_instant=T,
        data_file="a.parquet",
        log_files=(".a.log.1", ".a.log.2"),
        metrics={
            "TOTAL_LOG_FILES": 2.0,
            "TOTAL_LOG_FILES_SIZE": 5.0 * MB,
            "TOTAL_IO_READ_MB": 9.0,
            "TOTAL_IO_WRITE_MB": 4.0,
            "TOTAL_IO_MB": 13.0,
        },
    )
    assert plan.operations[1].data_file is None
    assert plan.operations[1].metrics["TOTAL_IO_WRITE_MB"] == 120  # as large as files get


def test_plans_for_a_budget_follow_the_order_of_the_strategy():
    # A slice costs its logs once and its base file twice: 10 + 2 * 5, 8 + 2 * 1, 6.
    slices = [file_slice("a", 10, base=5), file_slice("b", 8, base=1), file_slice("c", 6)]
    assert [ids(plan) for plan in plans(slices, part_bytes=36)] == [["a", "b", "c"]]
    assert [ids(plan) for plan in plans(slices, part_bytes=35)] == [["a", "b"], ["c"]]
    assert [ids(plan) for plan in plans(slices, part_bytes=1)] == [["a"], ["b"], ["c"]]
    assert [plan.missing_partitions for plan in plans(slices, part_bytes=35)] == [("p",), ("p",)]


def test_there_are_only_so_many_plans_and_what_is_left_is_for_the_next_planner():
    slices = [file_slice(f"f{n:02}", 100 - n) for n in range(MOST_PLANS + 5)]
    found = plans(slices, part_bytes=1)
    assert [ids(plan) for plan in found] == [[f"f{n:02}"] for n in range(MOST_PLANS)]
    taken = {ids(plan)[0] for plan in found}
    later = plans([each for each in slices if each.group.file_id not in taken], part_bytes=1)
    assert [ids(plan) for plan in later] == [[f"f{n:02}"] for n in range(MOST_PLANS, MOST_PLANS + 5)]


@pytest.mark.parametrize("strategy", Strategy)
def test_no_strategy_takes_a_slice_twice(strategy):
    slices = [file_slice(f"f{n}", n % 4 * MB, base=n * MB, partition=f"2025/12/{n + 20}") for n in range(1, 9)]
    found = plans(slices, strategies=(strategy,), target_io_mb=40, days=5, partition_regex="2")
    taken = [name for plan in found for name in ids(plan)]
    assert taken
    assert len(taken) == len(set(taken))
