"""The seam of table services: what one has to say of itself. The table of them: `catalog.py`."""

from __future__ import annotations

from typing import Protocol, TypeVar

from hoodie.errors import UnsupportedTableError
from hoodie.model.instant import Instant
from hoodie.options.write import WriteOptions
from hoodie.undo.recovery import PlanOwner
from hoodie.view.context import TableContext

R_co = TypeVar("R_co", covariant=True)


def require_merged(context: TableContext) -> None:
    """Raises UnsupportedTableError where this release merges no logs of the table: a plan would only stay."""
    if context.rule.refusal and context.rule.merger is None:  # a merger of ours leaves no logs
        raise UnsupportedTableError(
            f"logs of table {context.storage.uri} cannot be merged: {context.rule.refusal}; compact it with the engine that wrote it"
        )


class Service(PlanOwner, Protocol[R_co]):
    """Work on a table besides its writes: it is planned, and later run, perhaps by another process.

    A plan on the timeline is a promise to readers and writers. So it is not deleted: who runs it claims it
    (`Transaction.claim`), and when that process dies the claim is taken back and the plan waits for the next one. Only a plan
    that holds writers up is withdrawn when its run fails or its runner dies. A service holds no state of its own; all of it
    stands on the timeline.

    A new service is one file with a class of these methods, and one entry in `catalog.SERVICES`. `scheduling.py` schedules and
    runs it, `inline.py` does so after a write, and `undo/recovery.py` takes back what its dead runners claimed.
    """

    def require_fit(self, context: TableContext) -> None:
        """Refuse a table that this is not for. Asked before anything is done to it.

        Raises:
            OptionError: its type or its options.
        """

    def is_due(self, context: TableContext, options: WriteOptions) -> bool:
        """Whether to plan and run after a write, by the options and the timeline. Without IO where the options say no."""

    def in_background(self, options: WriteOptions) -> bool:
        """Whether the writer after whose commit this is due does not wait for it."""

    def only_schedules(self, options: WriteOptions) -> bool:
        """Whether what is due after a commit is planned and left to another process to run."""

    def plan(self, context: TableContext, options: WriteOptions, *, wait_s: float) -> str | None:
        """Put a plan on the timeline, as a requested instant; gives its time, None when there is nothing to do.

        What dead writers left is gone by now. Pending writes in the way are waited for, up to `wait_s` seconds.
        """

    def run(self, context: TableContext, instant: Instant, options: WriteOptions) -> R_co:
        """Claim a requested plan and carry it out.

        Raises:
            CommitConflictError: another process was faster.
        """
