"""How old versions of files are cleaned, and old commits archived."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hoodie.errors import OptionError
from hoodie.model.enums import CleanPolicy, ExpiryStrategy
from hoodie.options.option import Keys, combined, first_set, fixed, key, option, option_name
from hoodie.options.values import boolean, choice, one_of, paths, unless_empty, whole


@dataclass(frozen=True)
class CleaningOptions:
    automatic: bool = option("hoodie.clean.automatic", boolean(), True)
    """Delete old versions of files after a write, once there are more than are kept."""
    in_background: bool = option("hoodie.clean.async.enabled", boolean(), False)
    """Clean in a thread of the writing process, which does not wait for it."""
    policy: CleanPolicy = option("hoodie.clean.policy", one_of(CleanPolicy), "KEEP_LATEST_COMMITS")
    """Which old versions are kept: what the last commits or hours need, or so many versions of each file."""
    commits: int = option("hoodie.clean.commits.retained", whole(1), 10)
    """Commits whose state can still be read after a clean."""
    hours: int = option("hoodie.clean.hours.retained", whole(1), 24)
    """With policy KEEP_LATEST_BY_HOURS: hours whose commits can still be read after a clean."""
    versions: int = option("hoodie.clean.fileversions.retained", whole(1), 3)
    """With policy KEEP_LATEST_FILE_VERSIONS: versions of each file that are kept. Files that an overwrite replaced go at once."""
    trigger_commits: int = option("hoodie.clean.trigger.max.commits", whole(1), 1)
    """Commits since the last clean after which one is due again."""
    incremental: bool = option("hoodie.clean.incremental.enabled", boolean(), True)
    """Plan cleans from the commits since the last one. false: list the whole table each time."""
    at_once: int = option("hoodie.clean.max.commits.to.clean", whole(1), 9223372036854775807)
    """Commits that one clean passes over at most, so that a table that was not cleaned for long is cleaned in steps."""
    multiple: bool = option("hoodie.clean.multiple.enabled", boolean(), False)
    """Plan a further clean while another one is pending."""
    consumer_hours: int = option("hoodie.python.consumer.hours.retained", whole(0), 48)
    """Files and commits that a named consumer of the change feed has not read yet are kept by cleans and archiving for so many
    hours after they were committed. 0: not at all."""

    OTHERS: ClassVar[Keys] = (
        fixed(
            "hoodie.clean.trigger.strategy",
            "NUM_COMMITS",
            "there is no other",
            "How it is decided when a clean is due.",
        ),
    )


@dataclass(frozen=True)
class ArchivingOptions:
    automatic: bool = option("hoodie.archive.automatic", boolean(), True)
    """Move the oldest commits to the archived timeline after a write, once there are more than `hoodie.keep.max.commits`."""
    in_background: bool = option("hoodie.archive.async", boolean(), False)
    """Archive in a thread of the writing process, which does not wait for it."""
    min_commits: int = option("hoodie.keep.min.commits", whole(1), 20)
    """Commits that stay on the active timeline when others are archived."""
    max_commits: int = option("hoodie.keep.max.commits", whole(2), 30)
    """Commits on the active timeline beyond which the oldest are archived; more than `hoodie.keep.min.commits`."""
    beyond_savepoints: bool = option("hoodie.archive.beyond.savepoint", boolean(), False)
    """Archive commits after a savepoint, too. The commits of savepoints stay."""
    waits_for_cleans: bool = option("hoodie.archive.block.on.latest.clean.ectr", boolean(), False)
    """Keep the commits that the next clean looks at, also where this writer does not clean."""

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if self.min_commits >= self.max_commits:
            least, most = (option_name(ArchivingOptions, each) for each in ("min_commits", "max_commits"))
            raise OptionError(
                f"{most}={self.max_commits} has to be more than {least}={self.min_commits}: beyond the "
                "first the oldest commits are archived, and the second says how many stay"
            )


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
