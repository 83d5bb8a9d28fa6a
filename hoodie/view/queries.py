"""Which states of tables queries of this process are reading right now: a clean keeps their files.

Queries of other processes are not seen. What they have is the number of commits, or hours, that cleans keep.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from threading import Lock

from hoodie.model.instant import InstantTime


class Reading:
    """Stands for a query as long as somebody holds it: what runs its tasks does. In another process it stands for nothing."""

    __slots__ = ("__weakref__", "as_of", "table")

    def __init__(self, table: Hashable = None, as_of: InstantTime | None = None) -> None:
        self.table = table
        """As `Storage.identity` has it."""
        self.as_of = as_of
        """The oldest instant whose state the query reads; None: it reads none that a clean could take."""
        if as_of is not None:
            with _guard:
                _readings.add(self)

    def __reduce__(self) -> tuple[type[Reading], tuple[()]]:
        return Reading, ()


_guard = Lock()
_readings: weakref.WeakSet[Reading] = weakref.WeakSet()


def read_at(table: Hashable) -> tuple[InstantTime, ...]:
    """The instants whose state queries of this process read in a table, each once."""
    with _guard:
        there = list(_readings)
    return tuple(sorted({each.as_of for each in there if each.table == table and each.as_of is not None}))
