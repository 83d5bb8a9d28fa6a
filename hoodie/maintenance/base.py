"""The base of methods of table services: an open table, embedded or on Spark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.model.enums import Action
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.results import CommitResult
from hoodie.options.arguments import check_seconds, parse_options
from hoodie.options.moments import Moment
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.timeline.clock import zone_of
from hoodie.timeline.moments import instant_of
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext

if TYPE_CHECKING:
    import hoodie.services.budget
    import hoodie.services.catalog
    import hoodie.services.scheduling

AtWork = tuple[TableContext, WriteOptions]


class OpenTable(ABC):
    """What the methods of table services need of the open table that has them."""

    @property
    @abstractmethod
    def uri(self) -> str: ...

    @property
    @abstractmethod
    def config(self) -> TableConfig: ...

    @property
    @abstractmethod
    def timeline(self) -> Timeline: ...

    def _instant(self, moment: Moment, instants: Callable[[Timeline], Sequence[Instant]]) -> InstantTime:
        """The instant that a moment means, of those of the timeline that it may fall on."""
        zone = zone_of(self.config.timezone)
        return instant_of(moment, lambda: instants(self.timeline), name="instant", zone=zone, table=self.uri)

    @abstractmethod
    def _at_work(self, options: Mapping[str, str] | None = None) -> AtWork:
        """The table among the writers that the options speak of, and these options."""

    def _working(self, options: Mapping[str, str] | None, arguments: Mapping[str, str]) -> AtWork:
        """The same, where arguments of a method stand for options."""
        return self._at_work({**parse_options(options), **arguments})

    def _schedule(self, action: Action, at_work: AtWork, *, wait_s: float) -> str | None:
        """What the methods `schedule_…` give: the instant of a plan, None when there is nothing to do."""
        check_seconds(wait_s, "wait_s")
        return hoodie.services.scheduling.schedule(hoodie.services.catalog.REWRITING[action], *at_work, wait_s=wait_s)

    def _run(
        self, action: Action, at_work: AtWork, *, instant: Moment | None, budget_s: float | None
    ) -> list[CommitResult]:
        """What the methods `run_…` give: the results of the plans that this call ran itself."""
        check_seconds(budget_s, "budget_s", or_none=True)
        instant_time = None if instant is None else self._instant(instant, lambda timeline: timeline.pending(action))
        return hoodie.services.scheduling.run_pending(
            hoodie.services.catalog.REWRITING[action],
            *at_work,
            instant=instant_time,
            budget=hoodie.services.budget.Budget(budget_s),
        )
