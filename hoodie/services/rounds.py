"""The rounds of a services job: they run the due services of a table one by one, while its writers go on.

What is due: dead writers are rolled back first. Plans that wait on the timeline are run, oldest first, whoever made them. A
service is planned when the options' numbers say so (`hoodie.compact.inline.max.delta.commits`, what cleans and the archive keep),
whether or not writers are to do it themselves: whoever starts a services job asks for the work. What deletes rows for good, and
what is off unless an option asks, is done only where an option asks.

Several jobs may serve one table. Each plan has one runner, by its claim; a piece that another process works on is left to it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from hoodie.errors import CommitConflictError, HoodieError
from hoodie.model.enums import Action
from hoodie.model.instant import Instant
from hoodie.model.service_results import RECOVERY, ServiceRound, ServiceRun
from hoodie.options.write import WriteOptions
from hoodie.services.base import Service
from hoodie.services.budget import Budget
from hoodie.services.catalog import SERVICES
from hoodie.services.index_build import end_dead_builds
from hoodie.services.scheduling import run_pending, schedule
from hoodie.services.upkeep import UPKEEP, Upkeep
from hoodie.timeline.active import ActiveTimeline
from hoodie.txn.gate import PATIENCE_S
from hoodie.txn.heartbeat import undisturbed
from hoodie.undo.recovery import recover
from hoodie.view.context import TableContext

GATE_S = 2.0
"""So long a plan waits for pending writes, and holds back new ones; twice as long after each time that it could plan nothing, up to
`PATIENCE_S`: a table whose writers never leave a moment would not be compacted at all."""

Piece = Callable[[], Sequence[object]]


@dataclass
class Rounds:
    """What one job over one table remembers from one round to the next."""

    budget_s: float | None
    """A round begins nothing more after so many seconds."""
    is_stopped: Callable[[], bool] = lambda: False
    """Whether to begin nothing more at all."""
    clock: Callable[[], float] = time.monotonic
    _patience_s: dict[Action, float] = field(default_factory=dict)
    """Of each service that could plan nothing the last time."""
    _first: int = 0
    """The part of the round that it begins with: where the last one had to end."""
    _runs: list[ServiceRun] = field(default_factory=list)
    _started: float = 0.0

    @undisturbed()
    def run(self, context: TableContext, options: WriteOptions) -> ServiceRound:
        """One round. Errors of its pieces are in the result; none is raised."""
        began, self._started, self._runs = datetime.now(UTC), self.clock(), []
        options = asked_for(options)
        recovered = self._do(RECOVERY, partial(_recovered, context), only_if_done=True)
        unfinished = False
        if recovered.error is None:
            unfinished = self._parts(context, options)
        return ServiceRound(
            context.storage.uri,
            began.strftime("%Y-%m-%dT%H:%M:%SZ"),
            tuple(self._runs),
            unfinished,
            self.clock() - self._started,
        )

    def _parts(self, context: TableContext, options: WriteOptions) -> bool:
        """Each part once, in a circle; whether the time was over before."""
        parts: list[Callable[[], bool]] = [
            partial(self._pending, context, options),
            *(partial(self._serve, service, context, options) for service in SERVICES.values()),
            *(partial(self._keep_up, upkeep, context, options) for upkeep in UPKEEP),
        ]
        first, self._first = self._first % len(parts), 0
        for number in (*range(first, len(parts)), *range(first)):
            if not self._may_begin():
                self._first = number
                return True
            if not parts[number]():
                # What has a long queue must not keep the others waiting for ever.
                self._first = (number + 1) % len(parts)
                return True
        return False

    def _pending(self, context: TableContext, options: WriteOptions) -> bool:
        """Run what waits on the timeline; False when the time was over before the last of it."""
        try:
            pending = _waiting(context.active)
        except (HoodieError, OSError) as exc:
            self._runs.append(ServiceRun("timeline", error=_message(exc)))
            return True
        for instant in pending:
            if not self._may_begin():
                return False
            service = SERVICES[instant.action]
            self._do(service.action.value, partial(run_pending, service, context, options, instant=instant.time))
        return True

    def _serve(self, service: Service[object], context: TableContext, options: WriteOptions) -> bool:
        """Plan what is due, and run it."""

        def act() -> Sequence[object]:
            if not service.is_due(context, options) or context.active.load().pending(service.action):
                return ()  # what is pending was run just now, or another process runs it: its turn is first
            wait_s = self._patience_s.pop(service.action, GATE_S)
            left_s = self._left_s()
            # Plans are made so that some fit into the time: one that has begun is not interrupted.
            fitting = replace(options, compaction=replace(options.compaction, budget_s=left_s))
            try:
                planned = schedule(service, context, fitting, wait_s=wait_s)
            except CommitConflictError:
                self._patience_s[service.action] = min(2 * wait_s, PATIENCE_S)
                raise
            budget = Budget(left_s, self.clock, is_stopped=self.is_stopped)
            return () if planned is None else run_pending(service, context, options, budget=budget)

        self._do(service.action.value, act, only_if_done=True)
        return True

    def _keep_up(self, upkeep: Upkeep, context: TableContext, options: WriteOptions) -> bool:
        self._do(
            upkeep.name,
            lambda: (upkeep.run(context, options),) if upkeep.is_due(context, options) else (),
            only_if_done=True,
        )
        return True

    def _do(self, name: str, piece: Piece, *, only_if_done: bool = False) -> ServiceRun:
        """Do a piece and take note of it; `only_if_done`: not where there was nothing to do."""
        started = self.clock()
        results: Sequence[object] = ()
        error = deferral = None
        try:
            results = piece()
        except CommitConflictError as exc:
            deferral = _message(exc)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the other pieces, tables and rounds go on
            error = _message(exc)
        run = ServiceRun(name, tuple(results), error, deferral, self.clock() - started)
        if run.did or error is not None or deferral is not None or not only_if_done:
            self._runs.append(run)
        return run

    def _may_begin(self) -> bool:
        return self._left_s() != 0 and not self.is_stopped()

    def _left_s(self) -> float | None:
        return None if self.budget_s is None else max(0.0, self.budget_s - (self.clock() - self._started))


def asked_for(options: WriteOptions) -> WriteOptions:
    """The options as a services job takes them: what writers may leave to it is due by its numbers alone, and waited for."""
    return replace(
        options,
        compaction=replace(options.compaction, inline=True),
        log_compaction=replace(
            options.log_compaction, inline=options.log_compaction.inline or options.log_compaction.enabled
        ),
        cleaning=replace(options.cleaning, automatic=True, in_background=False),
        archiving=replace(options.archiving, automatic=True, in_background=False),
    )


def _waiting(active: ActiveTimeline) -> list[Instant]:
    """The plans of services that are not completed, oldest first."""
    return sorted(active.load().pending(*SERVICES), key=lambda instant: instant.time)


def _message(error: Exception) -> str:
    text = str(error)
    return text if isinstance(error, HoodieError) and text else f"{type(error).__name__}: {text}".rstrip(": ")


def _recovered(context: TableContext) -> Sequence[str]:
    undone = recover(context, SERVICES)
    end_dead_builds(context)
    return undone
