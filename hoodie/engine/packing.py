"""Items -> parts of so many, and tasks of different weight -> few groups of about the same weight. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

GROUPS_PER_CORE = 4
"""At most: enough that none waits long for the last one."""
WORTH_A_GROUP_BYTES = 64 * 1024 * 1024
"""What takes a core about half a second. To start another task in a Python worker takes a twentieth of that."""


def in_parts(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Neighbours together, `size` of them in each part but the last."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def groups_for(weights: Sequence[int], cores: int) -> int:
    """How many groups tasks of so many bytes are worth: as many for each core, so that all cores end at about the same time."""
    return cores * min(GROUPS_PER_CORE, max(1, sum(weights) // (WORTH_A_GROUP_BYTES * cores)))


def packed(weights: Sequence[int], groups: int) -> list[list[int]]:
    """Positions of the tasks of each group, ascending; no group is empty, and the heaviest task stands in the first group.

    The heaviest task not yet placed goes to the lightest group (LPT: at most 4/3 of the best possible makespan).
    """
    count = min(groups, len(weights))
    found: list[list[int]] = [[] for _ in range(count)]
    # Of groups of one weight the one with fewer tasks: those that weigh nothing are spread as well.
    lightest = [(0, 0, group) for group in range(count)]
    for at in sorted(range(len(weights)), key=lambda at: (-weights[at], at)):
        weight, tasks, group = heapq.heappop(lightest)
        found[group].append(at)
        heapq.heappush(lightest, (weight + weights[at], tasks + 1, group))
    return [sorted(group) for group in found]
