"""Which slices a compaction takes: values in, a plan out."""

from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.model.payloads import CompactionOperation
from hoodie.services.compaction_plan import plan_compaction

T = "20260101000000001"
MB = 1024 * 1024


def file_slice(file_id, *logs, base=0, partition="p"):
    """Sizes in bytes; without a base file when that is None."""
    found = None if base is None else BaseFile(partition, file_id, T, f"{file_id}.parquet", base)
    names = tuple(LogFile(partition, file_id, T, n, f".{file_id}.log.{n}", size) for n, size in enumerate(logs, 1))
    return FileSlice(FileGroupId(partition, file_id), T, found, names)


def planned(slices, *, excluded=(), most=10**12):
    groups = frozenset(FileGroupId("p", file_id) for file_id in excluded)
    return plan_compaction(slices, excluded=groups, target_io_bytes=most)


def ids(plan):
    return [operation.file_id for operation in plan.operations]


def test_slices_with_the_largest_logs_come_first():
    assert ids(planned([file_slice("a", 5), file_slice("b", 1, 1, 8), file_slice("c", 7, base=100)])) == ["b", "c", "a"]


def test_slices_without_logs_are_left_out():
    assert ids(planned([file_slice("a"), file_slice("b", 1), file_slice("c", base=5)])) == ["b"]
    assert planned([]).operations == ()


def test_excluded_groups_are_left_out_of_their_partition_only():
    slices = [file_slice("a", 3), file_slice("b", 2), file_slice("a", 1, partition="q")]
    assert [(o.partition_path, o.file_id) for o in planned(slices, excluded=["a"]).operations] == [
        ("p", "b"),
        ("q", "a"),
    ]


def test_a_plan_ends_where_its_io_would_pass_the_bound():
    # A slice costs its logs once and its base file twice: 10 + 2 * 5, 8 + 2 * 1, 6.
    slices = [file_slice("a", 10, base=5), file_slice("b", 8, base=1), file_slice("c", 6)]
    assert ids(planned(slices, most=36)) == ["a", "b", "c"]
    assert ids(planned(slices, most=35)) == ["a", "b"]
    assert ids(planned(slices, most=30)) == ["a", "b"]
    assert ids(planned(slices, most=29)) == ["a"]


def test_a_plan_takes_one_slice_however_large():
    assert ids(planned([file_slice("a", 10, base=5), file_slice("b", 1)], most=1)) == ["a"]


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
