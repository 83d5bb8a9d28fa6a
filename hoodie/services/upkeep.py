"""Upkeep of a table without a plan on the timeline that another process could run, so that it is no `Service`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hoodie.hive.sync import sync
from hoodie.mirrors.bigquery import register
from hoodie.mirrors.delta import publish_delta
from hoodie.mirrors.iceberg import publish_iceberg
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
    is_service: bool = True
    """Whether it is left out by a writer that does no services of the table."""


ARCHIVING = Upkeep("archiving", archiving.is_due, lambda options: options.archiving.in_background, archiving.archive)
EXPIRY = Upkeep("partition expiry", expiry.is_due, lambda _: False, expiry.expire)
HIVE_SYNC = Upkeep(
    "the registration of the table",
    lambda _, options: options.hive_sync.enabled,
    lambda _: False,
    lambda context, options: sync(context, options.hive_sync),
    is_service=False,
)
BIGQUERY = Upkeep(
    "the registration of the table in BigQuery",
    lambda _, options: options.bigquery.enabled,
    lambda _: False,
    lambda context, options: register(context, options.bigquery),
    is_service=False,
)
PUBLICATIONS = tuple(
    Upkeep(
        f"the publication as {name}",
        is_due,
        lambda _: False,
        lambda context, _, publish=publish: publish(context),  # type: ignore[misc]
        is_service=False,
    )
    for name, is_due, publish in (
        ("delta", lambda _, options: options.publishes_delta, publish_delta),
        ("iceberg", lambda _, options: options.publishes_iceberg, publish_iceberg),
    )
)
UPKEEP: tuple[Upkeep, ...] = (EXPIRY, HIVE_SYNC, BIGQUERY, *PUBLICATIONS, ARCHIVING)
"""In the order in which they take their turn: what expired is no longer registered, and what is archived was."""
