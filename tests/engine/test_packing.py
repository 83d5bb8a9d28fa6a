"""Groups of tasks: all tasks, no empty group, no group much heavier than need be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.engine.packing import WORTH_A_GROUP_BYTES, WORTH_A_TASK_BYTES, groups_for, in_parts, packed, slices_in_order


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(1, 12))
def test_every_task_is_in_one_group_and_no_group_is_empty(weights, groups):
    found = packed(weights, groups)
    assert sorted(at for group in found for at in group) == list(range(len(weights)))
    assert all(group == sorted(group) and group for group in found)
    assert len(found) == min(groups, len(weights))


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=60), st.integers(1, 12))
def test_the_heaviest_group_is_near_the_best_possible(weights, groups):
    heaviest = max(sum(weights[at] for at in group) for group in packed(weights, groups))
    assert heaviest <= sum(weights) / min(groups, len(weights)) + max(weights)


def test_one_heavy_task_stands_alone_and_first():
    heavy, *others = packed([1, 1, 1, 100, 1, 1], 3)
    assert heavy == [3]
    assert sorted(map(len, others)) == [2, 3]


@pytest.mark.parametrize(
    ("total", "cores", "groups"),
    [(0, 2, 2), (1, 2, 2), (3.9, 2, 2), (4, 2, 4), (7.5, 2, 6), (8, 2, 8), (1000, 2, 8), (8, 1, 4), (5, 100, 100)],
)
def test_little_work_has_a_task_for_each_core_and_much_has_more(total, cores, groups):
    weight = int(total * WORTH_A_GROUP_BYTES) // 10
    assert groups_for([weight] * 10 + [10], cores) == groups


@pytest.mark.parametrize(("count", "sizes"), [(0, []), (1, [1]), (6, [3, 3]), (7, [3, 3, 1])])
def test_parts_are_of_one_size_but_the_last_and_have_every_item_in_its_turn(count, sizes):
    parts = in_parts(range(count), 3)
    assert [len(part) for part in parts] == sizes
    assert [item for part in parts for item in part] == list(range(count))


@given(st.lists(st.integers(0, 10**9), max_size=60), st.integers(1, 12), st.integers(1, 10**9))
def test_slices_of_a_task_are_neighbours_and_every_slice_has_one(weights, cores, most_bytes):
    found = slices_in_order(weights, cores, most_bytes=most_bytes)
    assert [at for group in found for at in group] == list(range(len(weights)))
    assert all(found)


@pytest.mark.parametrize(
    ("slices", "size", "cores", "tasks"),
    [
        (1, 10, 8, 1),
        (8, 10, 8, 1),  # not worth another task
        (2000, 10_000, 2, 16),
        (2000, 10_000, 100, 100),
        (20, WORTH_A_TASK_BYTES, 8, 8),
        (20, WORTH_A_GROUP_BYTES, 8, 20),
    ],
)
def test_small_slices_share_a_task_and_large_ones_have_their_own(slices, size, cores, tasks):
    assert len(slices_in_order([size] * slices, cores, most_bytes=WORTH_A_GROUP_BYTES)) == tasks
