"""The words of compactions: Apache Hudi's strategies and triggers, by its names and by our short ones."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from hoodie.options.class_names import one_name
from hoodie.options.values import Kind, did_you_mean


class Strategy(StrEnum):
    """Which file slices a compaction takes; the rule of each is in `services/compaction_choice.py`."""

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
    known = {strategy.value: strategy for strategy in Strategy}
    for name, strategy in STRATEGY_CLASSES.items():
        known[name.lower()] = known[name.rpartition(".")[2].lower()] = strategy
    listed = ", ".join(Strategy)

    def read(value: str) -> tuple[Strategy, ...]:
        parts = [one_name(part.strip()) for part in value.split(",")]
        if len(parts) > 1 and parts[0].lower().rpartition(".")[2] in _COMPOSITE:
            parts = parts[1:]
        found = []
        for part in parts:
            if part.lower().rpartition(".")[2] in _COMPOSITE:
                raise ValueError("names no strategies: give those that follow each other, with commas between them")
            if part.lower() not in known:
                hint = did_you_mean(part.rpartition(".")[2], known)
                raise ValueError(f"has {part!r}, and it can be {listed}" + (f"; {hint}" if hint else ""))
            found.append(known[part.lower()])
        return tuple(found)

    return Kind(f"{listed}, or the classes of Apache Hudi; several with commas between them are a chain", read)
