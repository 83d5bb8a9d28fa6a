"""When partitions expire."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.model.enums import ExpiryStrategy
from hoodie.options.option import combined, first_set, key, option
from hoodie.options.values import boolean, choice, one_of, paths, unless_empty, whole

_PACKAGE = "org.apache.hudi.table.action.ttl.strategy."
_CLASSES = {
    f"{_PACKAGE}KeepByTimeStrategy": ExpiryStrategy.KEEP_BY_TIME,
    f"{_PACKAGE}KeepByCreationTimeStrategy": ExpiryStrategy.KEEP_BY_CREATION_TIME,
}


_CLASS = key("hoodie.partition.ttl.strategy.class", choice(_CLASSES), None)
"""The strategy by the name of its class; it wins over the type. Classes of your own are not run."""
_TYPE = key("hoodie.partition.ttl.management.strategy.type", one_of(ExpiryStrategy), "KEEP_BY_TIME")
"""From when a partition's days are counted: from its last change, or from its creation."""


@dataclass(frozen=True)
class ExpiryOptions:
    inline: bool = option("hoodie.partition.ttl.inline", boolean(), False)
    """Delete expired partitions after writes, and in the rounds of a services job."""
    strategy: ExpiryStrategy = combined(first_set, _CLASS, _TYPE)
    days: int = option("hoodie.partition.ttl.strategy.days.retain", whole(-1), -1)
    """A partition expires after so many days; 0 and less: never."""
    selected: tuple[str, ...] | None = option(
        "hoodie.partition.ttl.strategy.partition.selected", unless_empty(paths()), None
    )
    """Only these partitions expire. Unset: any may."""
    most: int = option("hoodie.partition.ttl.strategy.max.delete.partitions", whole(1), 1000)
    """Partitions that one commit deletes at most, the longest unchanged ones first."""
