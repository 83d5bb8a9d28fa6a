"""A services job as a method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import hoodie.services
from hoodie.maintenance.base import OpenTable
from hoodie.options.arguments import check_seconds

if TYPE_CHECKING:
    import hoodie.services.job
    from hoodie.services.job import ServicesJob


class Job(OpenTable):
    def services(
        self, *, every_s: float = 300, budget_s: float | None = 120, options: Mapping[str, str] | None = None
    ) -> ServicesJob:
        """Table services beside an ingest loop: in a `with` block a thread runs the due services, round after round.

        A round rolls dead writers back, runs pending plans, compacts, cleans and archives. docs/SERVICES.md says when each of them
        is due. Give the writers `hoodie.table.services.enabled=false`, so that they leave all of it to this job.

        Errors of a round are logged once and are in its result. They do not end the job. At the end of the block the job starts
        nothing more and finishes the work in progress. Any number of jobs, in any process, may serve one table.

        Args:
            every_s: from the beginning of a round to that of the next.
            budget_s: a round starts no more work after so many seconds; None is no limit.
            options: Hudi's options of services.

        Returns:
            The job, to be entered by `with`. Its `last` and `rounds` say what was done.

        Example:
            >>> with table.services(every_s=60) as job:
            ...     for batch in batches:
            ...         table.upsert(batch)
            >>> job.last
        """
        check_seconds(every_s, "every_s")
        check_seconds(budget_s, "budget_s", or_none=True)
        self._at_work(options)  # names a wrong option now, and not in the first round
        return hoodie.services.job.ServicesJob(
            lambda: self._at_work(options), uri=self.uri, every_s=every_s, budget_s=budget_s
        )
