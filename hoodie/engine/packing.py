"""Items -> parts of so many, and tasks of different weight -> few groups of about the same weight. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

T = TypeVar("T")

GROUPS_PER_CORE = 4
"""At most: enough that none waits long for the last one."""
WORTH_A_GROUP_BYTES = 64 * 1024 * 1024
"""What takes a core about half a second. To start another task in a Python worker takes a twentieth of that."""

OPENING_BYTES = 512 * 1024
"""Opening a file slice and merging it takes as long as so many of its bytes, however small it is."""
WORTH_A_TASK_BYTES = 4 * 1024 * 1024
"""What takes as long as another task takes to start."""


def in_parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Neighbours together, `size` of them in each part but the last."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def groups_for(weights: Sequence[int], cores: int) -> int:
    """How many groups tasks of so many bytes are worth: as many for each core, so that all cores end at about the same time."""
    return cores * min(GROUPS_PER_CORE, max(1, sum(weights) // (WORTH_A_GROUP_BYTES * cores)))


def slices_in_order(weights: Sequence[int], cores: int, *, most_bytes: int) -> list[range]:
    """Positions of file slices of so many bytes, neighbours together, for tasks that read them one after the other.

    A task has about `most_bytes` at most; all cores have as many, where tasks are worth starting. No group is empty.
    """
    costs = np.asarray(weights, np.int64) + OPENING_BYTES
    total = int(costs.sum())
    for_each_core = -(-total // (most_bytes * cores))
    count = min(len(costs), max(1, min(for_each_core * cores, total // min(WORTH_A_TASK_BYTES, most_bytes))))
    middles = costs.cumsum() - costs / 2
    starts = np.flatnonzero(np.diff((middles * count / max(total, 1)).astype(np.int64), prepend=-1))
    return [range(start, end) for start, end in pairwise([*starts.tolist(), len(costs)])]


def packed(weights: Sequence[int], groups: int) -> list[list[int]]:
    """Positions of the tasks of each group, ascending; no group is empty, and the heaviest task stands in the first group.

    The heaviest task not yet placed goes to the lightest group (LPT: at most 4/3 of the best possible makespan).
    """
    count = min(groups, len(weights))
    members: list[list[int]] = [[] for _ in range(count)]
    # Of groups of one weight the one with fewer tasks: those that weigh nothing are spread as well.
    lightest = [(0, 0, group) for group in range(count)]
    for at in sorted(range(len(weights)), key=lambda at: (-weights[at], at)):
        weight, tasks, group = heapq.heappop(lightest)
        members[group].append(at)
        heapq.heappush(lightest, (weight + weights[at], tasks + 1, group))
    return [sorted(group) for group in members]
