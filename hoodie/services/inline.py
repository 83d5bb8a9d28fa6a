"""What follows a commit: services that are due. Never inside the commit; their failure does not undo it."""

from __future__ import annotations

import logging

from hoodie.model.results import CommitResult
from hoodie.options.write import WriteOptions
from hoodie.services.acts import run_pending, schedule
from hoodie.services.catalog import SERVICES
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")


def after_commit(context: TableContext, options: WriteOptions) -> list[CommitResult]:
    """Plan and run each service that is due, one after another."""
    results: list[CommitResult] = []
    for action, service in SERVICES.items():
        try:
            if service.is_due(context, options):
                schedule(service, context, options, wait_s=0)
                results += run_pending(service, context, options)
        except Exception as exc:  # noqa: BLE001 - whatever it is, the caller must not take the commit for failed
            log.warning("the commit stands, but the %s after it failed and is tried again later: %s", action.value, exc)
    return results
