"""When compactions are due, and which file slices they take; log compactions, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hoodie.errors import OptionError
from hoodie.model.payloads import CompactionStrategy
from hoodie.options.class_names import one_name
from hoodie.options.option import combined, key, option, option_name
from hoodie.options.values import Kind, boolean, did_you_mean, fraction, one_of, regex, whole


class Strategy(StrEnum):
    """Which file slices a compaction takes; the rule of each is in `services/compaction_plan.py`."""

    LOG_FILE_SIZE = "log_file_size"
    LOG_FILE_NUM = "log_file_num"
    BOUNDED_IO = "bounded_io"
    DAY_BASED = "day_based"
    BOUNDED_PARTITION_AWARE = "bounded_partition_aware"
    UNBOUNDED_PARTITION_AWARE = "unbounded_partition_aware"
    UNBOUNDED = "unbounded"
    PARTITION_REGEX = "partition_regex"


class Trigger(StrEnum):
    """What makes a compaction due after a write."""

    NUM_COMMITS = "NUM_COMMITS"
    NUM_COMMITS_AFTER_LAST_REQUEST = "NUM_COMMITS_AFTER_LAST_REQUEST"
    TIME_ELAPSED = "TIME_ELAPSED"
    NUM_AND_TIME = "NUM_AND_TIME"
    NUM_OR_TIME = "NUM_OR_TIME"


_PACKAGE = "org.apache.hudi.table.action.compact.strategy."
STRATEGY_CLASSES: Mapping[str, Strategy] = {
    f"{_PACKAGE}LogFileSizeBasedCompactionStrategy": Strategy.LOG_FILE_SIZE,
    f"{_PACKAGE}LogFileNumBasedCompactionStrategy": Strategy.LOG_FILE_NUM,
    f"{_PACKAGE}BoundedIOCompactionStrategy": Strategy.BOUNDED_IO,
    f"{_PACKAGE}DayBasedCompactionStrategy": Strategy.DAY_BASED,
    f"{_PACKAGE}BoundedPartitionAwareCompactionStrategy": Strategy.BOUNDED_PARTITION_AWARE,
    f"{_PACKAGE}UnBoundedPartitionAwareCompactionStrategy": Strategy.UNBOUNDED_PARTITION_AWARE,
    f"{_PACKAGE}UnBoundedCompactionStrategy": Strategy.UNBOUNDED,
    f"{_PACKAGE}PartitionRegexBasedCompactionStrategy": Strategy.PARTITION_REGEX,
}
_COMPOSITE = ("composite", "compositecompactionstrategy")


def strategies() -> Kind[tuple[Strategy, ...]]:
    """Our short names, and Apache Hudi's classes with or without their package; several with commas between them are a chain."""
    by_name = {strategy.value: strategy for strategy in Strategy}
    for name, strategy in STRATEGY_CLASSES.items():
        by_name[name.lower()] = by_name[name.rpartition(".")[2].lower()] = strategy
    names = ", ".join(Strategy)

    def read(value: str) -> tuple[Strategy, ...]:
        parts = [one_name(part.strip()) for part in value.split(",")]
        if len(parts) > 1 and parts[0].lower().rpartition(".")[2] in _COMPOSITE:
            parts = parts[1:]
        result = []
        for part in parts:
            if part.lower().rpartition(".")[2] in _COMPOSITE:
                raise ValueError("names no strategies: give a comma list of them")
            if part.lower() not in by_name:
                hint = did_you_mean(part.rpartition(".")[2], by_name)
                raise ValueError(f"has {part!r}, and it can be {names}" + (f"; {hint}" if hint else ""))
            result.append(by_name[part.lower()])
        return tuple(result)

    return Kind(f"{names}, or the classes of Apache Hudi; several with commas between them are a chain", read)


MEMORY_LIMIT = key("hoodie.python.memory.limit.mb", whole(64), 1024)
"""Without Spark: how many MB a write may hold of its own. Half of it is for rows of the batch; more rows wait in files, beside a
table on a local disk, otherwise in TMPDIR. As many files are written at once as fit into the other half, at least one. RECIPES.md
says what else counts as memory of the process."""


def _memory_bytes(size_bytes: int | None, share: float, limit_mb: int) -> int:
    return size_bytes or int(limit_mb * 1024 * 1024 * share)


_MEMORY = key("hoodie.memory.compaction.max.size", whole(1), None)
"""Bytes that a compaction, or a clustering, may hold in memory, on Spark each of its tasks; the rest goes to disk. Unset: a
part of `hoodie.python.memory.limit.mb`."""
_MEMORY_SHARE = key("hoodie.memory.compaction.fraction", fraction(), 0.6)
"""The part of `hoodie.python.memory.limit.mb` that a compaction, or a clustering, may hold, if the option above is
unset."""


@dataclass(frozen=True)
class CompactionOptions:
    inline: bool = option("hoodie.compact.inline", boolean(), False)
    """Compact after a write when it is due."""
    schedules_only: bool = option("hoodie.compact.schedule.inline", boolean(), False)
    """Schedule a compaction after a write when it is due, and leave it to another process to run it."""
    in_background: bool = option("hoodie.datasource.compaction.async.enable", boolean(), False)
    """Compact when it is due in a thread of the writing process, which does not wait for it (Apache Hudi: in streams only, and
    there by default)."""
    trigger: Trigger = option("hoodie.compact.inline.trigger.strategy", one_of(Trigger), "NUM_COMMITS")
    """Trigger of a compaction after a write: delta commits since the last one, or since its last plan, time since then,
    both, or one of both."""
    max_delta_commits: int = option("hoodie.compact.inline.max.delta.commits", whole(1), 5)
    """Delta commits after which compaction is due."""
    max_delta_s: int = option("hoodie.compact.inline.max.delta.seconds", whole(1), 3600)
    """Seconds after which compaction is due, where the trigger looks at time."""
    strategies: tuple[Strategy, ...] = option("hoodie.compaction.strategy", strategies(), "log_file_size")
    """Which file slices a compaction takes."""
    chooses: CompactionStrategy | None = None
    """A function of the user's own in their place."""
    target_io_mb: int = option("hoodie.compaction.target.io", whole(0), 512_000)
    """Megabytes that one compaction reads and writes; the slice that passes them is the last one."""
    min_log_bytes: int = option("hoodie.compaction.logfile.size.threshold", whole(0), 0)
    """Strategy log_file_size: bytes of logs that a slice has at least."""
    min_log_files: int = option("hoodie.compaction.logfile.num.threshold", whole(0), 0)
    """Strategy log_file_num: log files that a slice has at least."""
    days: int = option("hoodie.compaction.daybased.target.partitions", whole(1), 10)
    """Strategy day_based: so many of the newest days. bounded_partition_aware: days back from today; unbounded_partition_aware:
    the days before those."""
    partition_regex: str | None = option("hoodie.compaction.partition.path.regex", regex(), None)
    """Strategy partition_regex: a regular expression that the partition paths contain."""
    memory_bytes: int = combined(_memory_bytes, _MEMORY, _MEMORY_SHARE, MEMORY_LIMIT)
    """Of the process, or of each task of a cluster."""
    budget_s: float | None = None
    """So long whoever plans has to run it; then several small plans are made, each a part of that."""

    def check(self) -> None:
        """Refuse options that contradict each other."""
        if Strategy.PARTITION_REGEX in self.strategies and self.partition_regex is None:
            raise OptionError(
                f"the compaction strategy {Strategy.PARTITION_REGEX} needs {option_name(CompactionOptions, 'partition_regex')}, which "
                "chooses the partitions"
            )


@dataclass(frozen=True)
class LogCompactionOptions:
    enabled: bool = option("hoodie.log.compaction.enable", boolean(), False)
    """Merge log files into larger ones when that is due: by a services job, and after writes in the way in which compactions are
    done, in the background with `hoodie.datasource.compaction.async.enable`, only planned with
    `hoodie.compact.schedule.inline`."""
    inline: bool = option("hoodie.log.compaction.inline", boolean(), False)
    """Merge log files into larger ones after a write when that is due."""
    blocks: int = option("hoodie.log.compaction.blocks.threshold", whole(1), 5)
    """Logs that a file slice has got since its last log compaction when the next one takes it, and delta commits after which to
    look."""
