"""Which file slices a compaction takes: Apache Hudi's strategies, rule for rule. Pure: candidates in, candidates out.

Witness: integration/test_compaction_with_hudi.py, where Apache Hudi plans the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date

from hoodie.errors import OptionError
from hoodie.model.payloads import CompactionCandidate, CompactionStrategy
from hoodie.options.compaction import CompactionOptions, Strategy

Candidates = Sequence[CompactionCandidate]

_DAY = re.compile(r"(\d{1,4})[/-](\d{1,2})[/-](\d{1,2})(?!\d)")


def choose(candidates: Candidates, options: CompactionOptions, *, today: date) -> Candidates:
    """What is taken of the candidates, in the order in which it is worth doing.

    Args:
        today: in the table's time zone.

    Raises:
        OptionError: a strategy by days meets a partition that is no day, or the user's function gives what it was not given.
    """
    if options.chooses is not None:
        return _by_function(candidates, options.chooses)
    for strategy in options.strategies:
        candidates = _RULES[strategy](candidates, options, today)
    return candidates


def _by_function(candidates: Candidates, chooses: CompactionStrategy) -> list[CompactionCandidate]:
    answer: object = chooses(tuple(candidates))
    if not isinstance(answer, Iterable):
        raise OptionError(
            f"the compaction strategy returned {answer!r}: a function returns the slices to compact, or an empty list"
        )
    choice: dict[CompactionCandidate, None] = {}
    for each in answer:
        if each not in candidates:
            raise OptionError(
                f"the compaction strategy returned {each!r}, which is none of the slices that it was given"
            )
        choice[each] = None
    return list(choice)


def _bounded(candidates: Candidates, options: CompactionOptions) -> list[CompactionCandidate]:
    """The candidates in order, up to the one that passes the bound."""
    choice, left_mb = [], options.target_io_mb
    for each in candidates:
        if left_mb <= 0:
            break
        left_mb -= each.io_mb
        choice.append(each)
    return choice


def _log_file_size(candidates: Candidates, options: CompactionOptions, _: date) -> Candidates:
    large = [each for each in candidates if each.log_bytes >= options.min_log_bytes]
    return _bounded(sorted(large, key=lambda each: -each.log_bytes), options)


def _log_file_num(candidates: Candidates, options: CompactionOptions, _: date) -> Candidates:
    many = [each for each in candidates if each.log_files >= options.min_log_files]
    return _bounded(sorted(many, key=lambda each: -each.log_files), options)


def _bounded_io(candidates: Candidates, options: CompactionOptions, _: date) -> Candidates:
    return _bounded(candidates, options)


def _day_based(candidates: Candidates, options: CompactionOptions, _: date) -> Candidates:
    """The newest days first."""
    ordered = _newest_first(candidates)
    partitions = list(dict.fromkeys(each.partition_path for each in ordered))[: options.days]
    return _bounded([each for each in ordered if each.partition_path in partitions], options)


def _bounded_partition_aware(candidates: Candidates, options: CompactionOptions, today: date) -> Candidates:
    """Whatever is of the last days, or of days to come; without a bound of IO."""
    earliest = date.fromordinal(max(1, today.toordinal() - options.days))
    first = (earliest.year, earliest.month, earliest.day)
    return [each for each in _newest_first(candidates) if _day(each.partition_path) >= first]


def _unbounded_partition_aware(candidates: Candidates, options: CompactionOptions, today: date) -> Candidates:
    """What `bounded_partition_aware` leaves."""
    recent = frozenset(_bounded_partition_aware(candidates, options, today))
    return [each for each in candidates if each not in recent]


def _unbounded(candidates: Candidates, _: CompactionOptions, __: date) -> Candidates:
    return candidates


def _partition_regex(candidates: Candidates, options: CompactionOptions, _: date) -> Candidates:
    pattern = re.compile(options.partition_regex or "")
    return [each for each in candidates if pattern.search(each.partition_path)]


_RULES: dict[Strategy, Callable[[Candidates, CompactionOptions, date], Candidates]] = {
    Strategy.LOG_FILE_SIZE: _log_file_size,
    Strategy.LOG_FILE_NUM: _log_file_num,
    Strategy.BOUNDED_IO: _bounded_io,
    Strategy.DAY_BASED: _day_based,
    Strategy.BOUNDED_PARTITION_AWARE: _bounded_partition_aware,
    Strategy.UNBOUNDED_PARTITION_AWARE: _unbounded_partition_aware,
    Strategy.UNBOUNDED: _unbounded,
    Strategy.PARTITION_REGEX: _partition_regex,
}


def _newest_first(candidates: Candidates) -> list[CompactionCandidate]:
    return sorted(candidates, key=lambda each: _day(each.partition_path), reverse=True)


def _day(partition_path: str) -> tuple[int, int, int]:
    """Year, month and day of `2026/11/24`, `year=2026/month=11/day=24` or `2026-11-24`, and of partitions below them.

    Apache Hudi takes no dashes.
    """
    plain = re.sub(r"(^|/)[^/=]*=", r"\1", partition_path)
    match = _DAY.match(plain)
    if match is None:
        raise OptionError(
            f"partition {partition_path!r} is not a day, and this compaction strategy goes by days: it takes paths such as "
            "2026/11/24, year=2026/month=11/day=24 or day=2026-11-24; take another strategy"
        )
    year, month, day = match.groups()
    return int(year), int(month), int(day)
