"""The table services that there are."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.model.enums import Action
from hoodie.services.base import Service
from hoodie.services.cleaning import CLEANING
from hoodie.services.clustering import CLUSTERING
from hoodie.services.compaction import COMPACTION
from hoodie.services.log_compaction import LOG_COMPACTION

_ALL: tuple[Service[object], ...] = (COMPACTION, LOG_COMPACTION, CLUSTERING, CLEANING)
SERVICES: Mapping[Action, Service[object]] = {service.action: service for service in _ALL}
"""Each by the action of its plans, in the order in which they take their turn after a write. A new service goes here."""
