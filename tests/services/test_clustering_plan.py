"""Which files a clustering takes together, by Apache Hudi's rules."""

from dataclasses import replace

import pytest

from hoodie.model.enums import PartitionFilter
from hoodie.model.files import BaseFile, FileGroupId, FileSlice, LogFile
from hoodie.options.clustering import ClusteringOptions
from hoodie.services.clustering_plan import chosen_partitions, plan_clustering

SORTED = ClusteringOptions(sort_columns=("a",), target_bytes=100, small_file_limit=90, max_group_bytes=200)
DAYS = ["2026/01/01", "2026/01/02", "2026/01/03", "other"]


def file_slice(file_id, size, *, part="p", logs=0):
    base = BaseFile(part, file_id, "1", f"{file_id}_0-0-0_1.parquet", size) if size else None
    found = tuple(LogFile(part, file_id, "1", n, f".{file_id}_1.log.{n}_0-0-0", 10) for n in range(1, 1 + logs))
    return FileSlice(FileGroupId(part, file_id), "1", base, found)


def planned(slices, options, **more):
    return [
        ([each.file_id for each in g.slices], g.output_groups) for g in plan_clustering(slices, options, **more).groups
    ]


def test_the_largest_files_go_first_up_to_the_size_of_a_group_and_large_ones_stay():
    slices = [file_slice("a", 50), file_slice("b", 80), file_slice("c", 70), file_slice("d", 60), file_slice("e", 90)]
    assert planned(slices, SORTED) == [(["b", "c"], 2), (["d", "a"], 2)]
    assert planned(slices, replace(SORTED, max_groups=1)) == [(["b", "c"], 2)]


def test_what_others_are_about_to_change_is_left_out():
    slices = [file_slice("a", 50), file_slice("b", 80)]
    assert planned(slices, SORTED, excluded=frozenset({FileGroupId("p", "a")})) == [(["b"], 1)]


@pytest.mark.parametrize(
    ("options", "logs", "taken"),
    [
        (SORTED, 0, True),
        (replace(SORTED, single_files=False), 0, False),
        (replace(SORTED, sort_columns=()), 0, False),
        (replace(SORTED, sort_columns=()), 1, True),
    ],
)
def test_a_file_alone_is_taken_where_something_comes_of_it(options, logs, taken):
    assert bool(planned([file_slice("a", 50, logs=logs)], options)) is taken


def test_partitions_are_never_mixed():
    slices = [file_slice("a", 50, part="p"), file_slice("b", 50, part="q")]
    assert planned(slices, SORTED) == [(["a"], 1), (["b"], 1)]


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ({}, DAYS),
        ({"regex": r"2026/01/0[12]"}, DAYS[:2]),
        ({"selected": ("other", "gone")}, DAYS[3:]),
        ({"partitions": frozenset({"2026/01/02"})}, DAYS[1:2]),
        ({"partition_filter": PartitionFilter.RECENT_DAYS, "lookback": 2, "skip": 1}, DAYS[1:3]),
        (
            {"partition_filter": PartitionFilter.SELECTED_PARTITIONS, "begin": "2026/01/02", "end": "2026/01/03"},
            DAYS[1:3],
        ),
    ],
)
def test_partitions_are_chosen(asked, chosen):
    assert list(chosen_partitions(DAYS, ClusteringOptions(**asked))) == chosen
