"""How much of a long test runs where: a part of it in `make test`, more (marked `long`) in `make integration`, all in `make soak`."""

import os
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")

SOAK = bool(os.environ.get("HOODIE_SOAK"))
"""`make soak`: much more of everything."""
HUNG_S = 1_800
"""A process that takes so long hangs. Six runs of tests on two cores make each ten times as slow, so less would stop what works."""
EVERY = int(os.environ.get("HOODIE_EVERY") or 1)
"""One variant in so many runs: of each test function, or, of tests marked `long`, of each file; at least one."""


def long_but(kept: Iterable[Any], values: Iterable[Any]) -> list[Any]:
    """The values of a parameter; those that are not among `kept` are marked `long`."""
    kept = tuple(kept)
    values = list(values)
    assert all(value in values for value in kept), "what is to be kept is no value"
    return [value if value in kept else pytest.param(value, marks=pytest.mark.long) for value in values]


def soak_but(kept: Iterable[T], values: Iterable[T]) -> list[T]:
    """The values of a parameter that `make integration` runs; `make soak` runs all of them."""
    kept = tuple(kept)
    values = list(values)
    assert all(value in values for value in kept), "what is to be kept is no value"
    return values if SOAK else [value for value in values if value in kept]


def keep_a_sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out of the collected tests what `HOODIE_EVERY` does not run; it is the same each time."""
    variants = defaultdict(list)
    for item in items:
        variants[item.nodeid.partition("::" if item.get_closest_marker("long") else "[")[0]].append(item)
    # The first one differs from function to function. Else none would run on the type of table that is always named second.
    kept = {
        item for name, each in variants.items() for item in each[crc32(name.encode()) % min(EVERY, len(each)) :: EVERY]
    }
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


class Share(NamedTuple):
    """One of several parts of what a test tries."""

    number: int
    of_all: int

    def of(self, tried: Iterable[T]) -> list[T]:
        return list(tried)[self.number :: self.of_all]


def in_shares(count: int, *, often: int | None = None) -> pytest.MarkDecorator:
    """For a test that tries a place after the other: its parameter `share` takes those of the first share in `make test`.

    `make integration` tries `often` of the shares, None: all of them.
    """
    shares = [Share(number, count) for number in range(count if SOAK or often is None else often)]
    ids = [f"share {each.number + 1} of {count}" for each in shares]
    return pytest.mark.parametrize("share", long_but(shares[:1], shares), ids=ids)
