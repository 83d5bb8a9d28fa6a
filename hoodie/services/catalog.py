"""The table services that there are."""

from __future__ import annotations

from collections.abc import Mapping

from hoodie.model.enums import Action
from hoodie.services.base import Service
from hoodie.services.compaction import COMPACTION

SERVICES: Mapping[Action, Service] = {service.action: service for service in (COMPACTION,)}
"""Each by the action of its plans, in the order in which they take their turn after a write. A new service goes here."""
