"""What a clean deletes: pure rules over the timeline and the file groups, as Apache Hudi 1.2 has them for version 6.

By commits and by hours there is a first commit whose state stays readable; every slice that no reader of that commit or of a
later one can see goes. By versions each file group keeps its newest slices. Apache Hudi keeps what savepoints and pending
compactions need. These rules keep more in a few cases, each of which is safe for whoever cleans next:

- A slice without a base file continues the one before it, so that one stays with it.
- By hours, too, nothing goes that the readers of the last commit before a pending write can see: pulls stop there.
- What a pending clustering reads stays, and what a query of this process reads.
- Where instants state their completion, the commits that count are those that were completed last.
- What a named consumer of the change feed has not read stays for some time (`consumer_needs.py`).

Leftovers of failed writes in the partitions that are looked at go as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from hoodie.model.enums import CleanPolicy
from hoodie.model.files import FileGroup, FileGroupId, FileSlice
from hoodie.model.instant import Instant, InstantTime, hours_before
from hoodie.model.names import COMPLETES_AS, parse_base_file, parse_log_file
from hoodie.model.payloads import CommitMetadata
from hoodie.options.cleaning import CleaningOptions
from hoodie.storage.base import FileInfo
from hoodie.timeline.timeline import WRITES, Timeline

WRITING = tuple({*WRITES, *COMPLETES_AS})
"""Actions that read files of the table while they are pending."""


def earliest_to_retain(
    timeline: Timeline,
    options: CleaningOptions,
    *,
    now: InstantTime,
    last: InstantTime | None,
    read_at: Iterable[InstantTime] = (),
) -> Instant | None:
    """By commits or by hours: the first commit whose state stays readable; None when nothing is to be cleaned.

    Args:
        now: the time of the storage's clock, as an instant.
        last: what the clean before kept; this one never keeps less sharply what is gone already.
        read_at: instants whose state queries of this process are reading, or named consumers need.
    """
    commits = timeline.commits
    if options.policy is CleanPolicy.KEEP_LATEST_BY_HOURS:
        since = hours_before(now, options.hours)
        kept = [i for i in commits if i.position >= since]
    else:
        kept = sorted(commits, key=attrgetter("position"))[-options.commits :] if len(commits) > options.commits else []
    # Where instants state when they were completed, one that began earlier may be among the last to be completed. Those who read
    # before that need what it took the place of.
    earliest = min(kept, key=attrgetter("time"), default=None)
    if earliest is None:
        return None
    pending = timeline.pending(*WRITING)
    if pending and earliest.time > pending[0].time:
        earliest = _last(commits, before=pending[0].time)
    for time in read_at:
        if earliest is not None and earliest.time > time:
            earliest = _last(commits, before=time, or_at=True)
    if earliest is not None and last is not None:
        passed = [i for i in commits if last <= i.time < earliest.time]
        earliest = passed[options.at_once] if len(passed) > options.at_once else earliest
    return None if earliest is None or (last is not None and earliest.time < last) else earliest


def _last(commits: Sequence[Instant], *, before: InstantTime, or_at: bool = False) -> Instant | None:
    return next((i for i in reversed(commits) if i.time < before or (or_at and i.time == before)), None)


def touched_partitions(metadata: CommitMetadata, *, compacted: bool) -> set[str]:
    """Partitions in which a commit put something in the place of older files. New file groups make nothing old."""
    return {path for path, file_ids in metadata.replaced_file_ids.items() if file_ids} | {
        path
        for path, stats in metadata.write_stats.items()
        if any(stat.log_version is None and (compacted or stat.prev_commit is not None) for stat in stats)
    }


@dataclass(frozen=True)
class CleanRules:
    """What decides over the files of every partition."""

    policy: CleanPolicy
    earliest: InstantTime | None
    """By commits and by hours: the first commit whose state stays readable."""
    versions: int
    replaced: Mapping[FileGroupId, InstantTime]
    """File group -> the replacecommit that replaced it."""
    scheduled: Mapping[FileGroupId, InstantTime] = field(default_factory=dict)
    """File group -> where the slice begins that its pending compaction reads."""
    protected_names: frozenset[str] = frozenset()
    """Names of files that savepoints hold or pending clusterings read."""
    read_at: tuple[InstantTime, ...] = ()
    """Instants whose state somebody reads, or a pending write builds on."""
    followed_from: InstantTime | None = None
    """An instant whose state, and that of every commit after it, a named consumer needs. It is among `read_at`, too."""
    start: InstantTime | None = None
    """Where the active timeline begins, for leftovers of failed writes; None: they stay."""
    instant_times: frozenset[InstantTime] = frozenset()
    """Times of all instants on it, pending or completed."""
    is_archived: Callable[[str], bool] = bool
    """Whether an instant is on the archived timeline. Asked of what looks like a leftover; by default all are."""

    @property
    def by_versions(self) -> bool:
        return self.policy is CleanPolicy.KEEP_LATEST_FILE_VERSIONS


class PartitionPlan(NamedTuple):
    """What goes in one partition."""

    names: tuple[str, ...]
    size_bytes: int
    emptied: bool
    """Whether no file group is left."""
    readable_from: InstantTime | None
    """By versions: from this instant on all of the partition is still there; None: nothing goes, or the rules say it."""


def plan_partition(groups: Sequence[FileGroup], rules: CleanRules, infos: Sequence[FileInfo] = ()) -> PartitionPlan:
    """Which files of a partition go.

    Args:
        groups: all of it, replaced ones and pending compactions' slices included.
        infos: its files, where they were just listed: leftovers are found among them only.
    """
    sizes: dict[str, int] = {}
    doomed_slices: set[tuple[str, str]] = set()
    since: list[InstantTime] = []
    keeps_files = False
    for group in groups:
        dead = dead_slices(group, rules)
        for file_slice in dead:
            doomed_slices.add((group.id.file_id, file_slice.base_instant))
            files = (*((file_slice.base,) if file_slice.base else ()), *file_slice.logs)
            sizes.update({file.name: file.size_bytes for file in files})
        keeps_files = keeps_files or len(dead) < len(group.slices)
        if rules.by_versions and dead:
            live_slices = [s for s in group.slices if s not in dead]
            since.append(
                live_slices[0].base_instant if live_slices else rules.replaced.get(group.id, dead[-1].base_instant)
            )
    for info in infos:
        name = info.name
        if (
            name not in sizes
            and not info.is_folder
            and (_is_cdc_of(name, doomed_slices) or _is_leftover(name, groups, rules))
        ):
            sizes[name] = info.size_bytes
    emptied = bool(groups) and not keeps_files and all(group.id in rules.replaced for group in groups)
    return PartitionPlan(tuple(sorted(sizes)), sum(sizes.values()), emptied, max(since, default=None))


def dead_slices(group: FileGroup, rules: CleanRules) -> tuple[FileSlice, ...]:
    """The slices of a file group that go, oldest first."""
    slices = group.slices
    replaced = rules.replaced.get(group.id)
    if replaced is not None:
        candidates = set(range(len(slices))) if _replaced_for_good(replaced, rules) else set()
    elif rules.by_versions:
        candidates = _beyond_versions(group, rules)
    else:
        # The last one before the earliest commit is what that commit's readers see.
        candidates = {n for n, each in enumerate(slices) if _is_before(each.base_instant, rules.earliest)}
        candidates -= {max(candidates, default=-1)}
    if not candidates:
        return ()
    live = {
        n
        for n, each in enumerate(slices)
        if n not in candidates or _is_held(each, rules) or _is_scheduled(group.id, each, rules)
    }
    live |= {n for time in rules.read_at if (n := _seen_at(slices, time)) is not None and replaced is None}
    if rules.followed_from is not None:
        live |= {n for n, each in enumerate(slices) if each.base_instant > rules.followed_from}
    # A slice without a base file is read together with those before it, back to the next base file.
    for n in sorted(live, reverse=True):
        at = n
        while slices[at].base is None and at:
            at -= 1
            live.add(at)
    return tuple(each for n, each in enumerate(slices) if n not in live)


def _replaced_for_good(replaced: InstantTime, rules: CleanRules) -> bool:
    if any(time < replaced for time in rules.read_at):
        return False
    return rules.by_versions or _is_before(replaced, rules.earliest)


def _beyond_versions(group: FileGroup, rules: CleanRules) -> set[int]:
    free = [n for n, each in enumerate(group.slices) if not _is_scheduled(group.id, each, rules)]
    keep = rules.versions - (group.id in rules.scheduled)
    return set(free[: max(0, len(free) - max(0, keep))])


def _seen_at(slices: Sequence[FileSlice], time: InstantTime) -> int | None:
    numbers = [n for n, each in enumerate(slices) if each.base_instant <= time]
    return numbers[-1] if numbers else None


def _is_before(time: InstantTime, earliest: InstantTime | None) -> bool:
    return earliest is not None and time < earliest


def _is_held(file_slice: FileSlice, rules: CleanRules) -> bool:
    base = file_slice.base
    return (base is not None and base.name in rules.protected_names) or any(
        log.name in rules.protected_names for log in file_slice.logs
    )


def _is_scheduled(group: FileGroupId, file_slice: FileSlice, rules: CleanRules) -> bool:
    begins = rules.scheduled.get(group)
    return begins is not None and file_slice.base_instant >= begins


def _is_cdc_of(name: str, doomed_slices: set[tuple[str, str]]) -> bool:
    log = parse_log_file(name)
    return log is not None and bool(log.suffix) and (log.file_id, log.base_instant) in doomed_slices


def _is_leftover(name: str, groups: Sequence[FileGroup], rules: CleanRules) -> bool:
    """Whether a file is of a write that failed: one that is neither pending nor completed, and is too young to be archived.

    A base file counts nowhere then. A log counts where a later write went on in its group, which active commits would tell.
    """
    base, log = parse_base_file(name), parse_log_file(name)
    slice_of_file = (base.file_id, base.instant) if base else (log.file_id, log.base_instant) if log else None
    if rules.start is None or slice_of_file is None or slice_of_file[1] <= rules.start:
        return False
    file_id, time = slice_of_file
    before = rules.earliest or max(rules.instant_times, default=None)
    if time in rules.instant_times or name in rules.protected_names or not _is_before(time, before):
        return False
    group = next((each for each in groups if each.id.file_id == file_id), None)
    alone = group is not None and all(
        each.base is None and all(item.committed_bytes is None for item in each.logs) for each in group.slices
    )
    return (base is not None or alone) and not rules.is_archived(time)
