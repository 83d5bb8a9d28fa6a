"""The gate before `start`: a scheduler closes it for a moment, so that pending writes end and no new ones begin.

A compaction plan leaves out every file group that a pending write names. Beside writers that follow each other without
a gap there would never be a moment to plan. The gate is a mark that ends with its process: a scheduler that dies
keeps nobody waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hoodie.errors import CommitConflictError, LockError
from hoodie.view.context import TableContext

GATE = "schedule"
PAUSE_S = 0.02
PATIENCE_S = 30.0
"""How long a scheduler waits for pending writes."""
_WRITER_PATIENCE_S = 2 * PATIENCE_S
"""A writer goes on after this, whatever the gate says: the plan does without its file groups then."""


@contextmanager
def closed_gate(context: TableContext) -> Iterator[None]:
    """Hold new writes back. When another scheduler does so already there is nothing to add."""
    try:
        context.liveness.hold(GATE)
    except LockError:
        yield
        return
    try:
        yield
    finally:
        context.liveness.release(GATE)


def is_closed(context: TableContext) -> bool:
    """Whether a scheduler holds new writes back."""
    return bool(context.liveness.is_alive(GATE))


def wait_at_gate(context: TableContext) -> None:
    """Let a scheduler go first."""
    waited = 0.0
    while is_closed(context) and waited < _WRITER_PATIENCE_S:
        context.clock.pause(PAUSE_S)
        waited += PAUSE_S


def planned_behind_gate(
    context: TableContext, try_to_plan: Callable[[bool], tuple[str | None, bool]], *, wait_s: float, refusal: str
) -> str | None:
    """The instant of a plan that leaves out what pending writes name; None when there is nothing to plan.

    New writes are held back, and pending ones waited for, up to `wait_s` seconds.

    Args:
        try_to_plan: is told whether to take what is free; gives the instant of its plan, and whether a write stood in the way.
        refusal: what to say where pending writes named everything all the time.

    Raises:
        CommitConflictError: they did.
    """
    waited = 0.0
    with closed_gate(context):
        while True:
            instant, busy = try_to_plan(waited >= wait_s)
            if instant is not None or not busy:
                return instant
            if waited >= wait_s:
                raise CommitConflictError(refusal)
            context.clock.pause(PAUSE_S)
            waited += PAUSE_S
