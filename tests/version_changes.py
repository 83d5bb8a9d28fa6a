"""Upgrades and downgrades that die: what both have to hold at each of their storage calls."""

from collections.abc import Callable
from typing import Any

import pytest

from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.table import HoodieTable
from tests.memory_tables import copy_of, opened, plain


def check_deaths(
    whole: Any,
    change: Callable[[HoodieTable], object],
    versions: tuple[int, int],
    check: Callable[[Any, HoodieTable], None],
    *,
    moment: str,
    every: int = 1,
) -> None:
    """Each `every`-th call fails once: the table has one of the two versions and all rows, and the next change ends it.

    `check`: what holds of the storage and the table afterwards, beside that.
    """
    storage, clock = copy_of(whole)
    expected = plain(opened(storage, clock).scan(meta_columns=True))
    commits = [i.time for i in opened(storage, clock).timeline.commits]
    for at in range(1, 500, every):
        storage, clock = copy_of(whole)
        try:
            change(opened(FaultStorage(storage, [Fault(at, moment)]), clock))
            died = False
        except InjectedFault:
            died = True
        table = opened(storage, clock)
        assert int(table.config.version) in versions
        assert plain(table.scan(meta_columns=True)) == expected
        change(opened(storage, clock))
        table = opened(storage, clock)
        assert int(table.config.version) == versions[1]
        assert plain(table.scan(meta_columns=True)) == expected
        assert [i.time for i in table.timeline.commits][: len(commits)] == commits
        check(storage, table)
        if not died:
            assert at > 20
            return
    pytest.fail("it never ended")
