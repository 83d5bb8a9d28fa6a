"""What keeps a table in shape and has no plan on the timeline that anybody could run later, so that it is no `Service`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoodie.options.write import WriteOptions
from hoodie.services import archiving, expiry
from hoodie.view.context import TableContext


@dataclass(frozen=True)
class Upkeep:
    """One kind of it: after a write, and in the rounds of a services job."""

    name: str
    """As the end of `the commit stands, but … after it failed`."""
    is_due: Callable[[TableContext, WriteOptions], bool]
    in_background: Callable[[WriteOptions], bool]
    run: Callable[[TableContext, WriteOptions], object]
    """Raises CommitConflictError where another process does the same."""


ARCHIVING = Upkeep("archiving", archiving.is_due, lambda options: options.archiving.in_background, archiving.archive)
EXPIRY = Upkeep("partition expiry", expiry.is_due, lambda _: False, expiry.expire)
UPKEEP: tuple[Upkeep, ...] = (EXPIRY, ARCHIVING)
"""In the order in which they take their turn."""
