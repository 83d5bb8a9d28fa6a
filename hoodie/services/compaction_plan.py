"""Which file slices a compaction takes, in one plan or in several. Pure: candidates in, candidates out.

The strategies are Apache Hudi's, rule for rule (integration/test_compaction_with_hudi.py, where Apache Hudi plans the same tables).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date

from hoodie.errors import OptionError
from hoodie.model.files import FileSlice
from hoodie.model.payloads import CompactionCandidate, CompactionOperation, CompactionPlan, CompactionStrategy
from hoodie.options.compaction import CompactionOptions, Strategy

MOST_PLANS = 16
"""Of one planner: each is three files on the timeline, which everybody lists."""
_MB = 1024 * 1024


def plan_compaction(
    slices: Iterable[FileSlice],
    *,
    options: CompactionOptions,
    today: date,
    new_file_bytes: int,
    part_bytes: int | None = None,
) -> tuple[CompactionPlan, ...]:
    """One plan of the slices that the options' strategy takes, or several that follow its order; none where it takes none. Pure.

    Args:
        slices: latest slices, not merged over pending compactions, that no pending write or compaction names.
        today: in the table's time zone; some strategies go by it.
        new_file_bytes: what a base file is taken to have where there is none yet.
        part_bytes: about so much is read and written for each of several plans; None: one plan.
    """
    offered = {candidate_of(each, new_file_bytes=new_file_bytes): each for each in slices if each.logs}
    chosen = choose(tuple(offered), options, today=today)
    plans = []
    for part in _parts(chosen, part_bytes):
        missing = {each.partition_path: None for each in offered if each not in part}
        operations = tuple(operation_of(offered[each], each) for each in part)
        plans.append(CompactionPlan(operations, missing_partitions=tuple(missing)))
    return tuple(plans)


def candidate_of(file_slice: FileSlice, *, new_file_bytes: int) -> CompactionCandidate:
    """The slice by its sizes, as strategies look at it."""
    log_bytes = sum(log.size_bytes for log in file_slice.logs)
    base_bytes = file_slice.base.rows_bytes if file_slice.base else 0
    return CompactionCandidate(
        partition_path=file_slice.group.partition_path,
        file_id=file_slice.group.file_id,
        log_files=len(file_slice.logs),
        log_bytes=log_bytes,
        base_bytes=base_bytes,
        read_mb=(log_bytes + base_bytes) // _MB,
        write_mb=(base_bytes or new_file_bytes) // _MB,
    )


def _parts(chosen: Sequence[CompactionCandidate], part_bytes: int | None) -> list[dict[CompactionCandidate, None]]:
    """The slices in their order, cut where a plan has enough; at most `MOST_PLANS`, and the rest is left to the next planner."""
    parts: list[dict[CompactionCandidate, None]] = []
    size = 0
    for each in chosen:
        io_bytes = each.log_bytes + 2 * each.base_bytes
        if not parts or (part_bytes is not None and size + io_bytes > part_bytes):
            if len(parts) == MOST_PLANS:
                break
            parts.append({})
            size = 0
        parts[-1][each] = None
        size += io_bytes
    return parts


def operation_of(file_slice: FileSlice, sizes: CompactionCandidate) -> CompactionOperation:
    """The slice as a plan names it."""
    return CompactionOperation(
        partition_path=sizes.partition_path,
        file_id=sizes.file_id,
        base_instant=file_slice.base_instant,
        data_file=file_slice.base.name if file_slice.base else None,
        log_files=tuple(log.name for log in file_slice.logs),
        metrics={
            "TOTAL_LOG_FILES": float(sizes.log_files),
            "TOTAL_LOG_FILES_SIZE": float(sizes.log_bytes),
            "TOTAL_IO_READ_MB": float(sizes.read_mb),
            "TOTAL_IO_WRITE_MB": float(sizes.write_mb),
            "TOTAL_IO_MB": float(sizes.io_mb),
        },
        bootstrap_file=file_slice.base.source_uri if file_slice.base else None,
    )


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
