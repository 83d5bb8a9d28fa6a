"""All table services."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.model.enums import Action
from hoodie.model.results import CommitResult
from hoodie.services.base import Service
from hoodie.services.cleaning import CLEANING
from hoodie.services.clustering import CLUSTERING
from hoodie.services.compaction import COMPACTION
from hoodie.services.log_compaction import LOG_COMPACTION

_REWRITING: tuple[Service[CommitResult], ...] = (COMPACTION, LOG_COMPACTION, CLUSTERING)
REWRITING = {service.action: service for service in _REWRITING}
"""Those that write files and commit them: users schedule and run each by `schedule_…` and `run_…`."""
SERVICES: Mapping[Action, Service[object]] = {**REWRITING, CLEANING.action: CLEANING}
"""Each by the action of its plans, in the order in which they take their turn after a write. A new service goes here."""
