"""Expiry of partitions: those that are older than the table keeps them are deleted, as `delete_partitions` does it.

How old a partition is is told by instants alone, never by modification times. Its last change is the newest instant among its live
file slices: of a base file, which a compaction or clustering makes as well, or of a log. Apache Hudi's KEEP_BY_TIME looks at base
files only: on a merge-on-read table it deletes a partition whose rows were updated yesterday, if all of that stands in logs
(integration/test_expiry_with_hudi.py). Its creation is what the file says that makes the folder a partition. That file outlives a
`delete_partitions`, so rows that came after one count from there.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from hoodie.errors import CommitConflictError, CommitOutcomeUnknownError, CorruptFileError, HoodieError
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.properties import parse_properties_file
from hoodie.model.enums import Action, ExpiryStrategy, HeaderKey, WriteOperation
from hoodie.model.files import FileSlice
from hoodie.model.instant import InstantTime, hours_before, is_instant_time
from hoodie.model.names import PARTITION_METADATA, join
from hoodie.model.service_results import ExpiryResult
from hoodie.options.cleaning import ExpiryOptions
from hoodie.options.compatibility import check_writable
from hoodie.options.write import WriteOptions
from hoodie.services.catalog import SERVICES
from hoodie.storage.base import Storage
from hoodie.storage.cache import Kind
from hoodie.timeline.clock import Clock
from hoodie.undo.recovery import rollback_failed
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.attempt import Attempt
from hoodie.write.batch import batch_of_no_rows

_TRIES = 3
_OLDEST_KEPT: Kind[str] = Kind("since when the oldest partition that has not expired is there")
"""Nothing that a write does makes a partition older, so until this one expires there is nothing to look for."""


class _PartitionAges(NamedTuple):
    expired: tuple[str, ...]
    """Longest untouched first."""
    oldest_kept: str
    """Of the others the earliest moment from which days are counted."""


def is_due(context: TableContext, options: WriteOptions) -> bool:
    """Where the options say so, and a partition may have expired. No IO until the oldest one does."""
    expiry = options.expiry
    if not (expiry.inline and expiry.days > 0 and context.config.partition_fields):
        return False
    oldest = context.cache.find(_OLDEST_KEPT, _key(context.storage, expiry))
    return oldest is None or oldest < _cutoff(context.clock, expiry)


def expire(context: TableContext, options: WriteOptions, *, dry_run: bool = False) -> ExpiryResult:
    """Delete the partitions that have expired, in one replacecommit.

    Raises:
        CommitConflictError: other writers wrote to these partitions all the time.
    """
    check_writable(context.config)
    started = time.monotonic()
    if not dry_run:
        rollback_failed(context, SERVICES)
    for tries in range(1, _TRIES + 1):
        snapshot = context.snapshot()
        due = _find(context, snapshot, options.expiry)
        chosen = due.expired[: options.expiry.most]
        more = len(due.expired) - len(chosen)
        if dry_run:
            return ExpiryResult(None, chosen, more, dry_run=True, seconds=time.monotonic() - started)
        try:
            instant = _delete(context, options, snapshot, chosen) if chosen else None
            break
        except CommitConflictError:
            rollback_failed(context, SERVICES)
            if tries == _TRIES:
                raise
        except CommitOutcomeUnknownError:
            raise
        except Exception:
            with suppress(HoodieError, OSError):  # the error that brought us here is the one to report
                rollback_failed(context, SERVICES)
            raise
    if not more:
        context.cache.put(_OLDEST_KEPT, _key(context.storage, options.expiry), due.oldest_kept, len(due.oldest_kept))
    return ExpiryResult(instant, chosen, more, seconds=time.monotonic() - started)


def _delete(
    context: TableContext, options: WriteOptions, snapshot: Snapshot, partitions: Collection[str]
) -> str | None:
    """A write that replaces all that is in them, as it was when they were found to have expired."""
    operation = WriteOperation.DELETE_PARTITION
    batch = replace(batch_of_no_rows(context, operation), found_on=snapshot.timeline, partitions=frozenset(partitions))
    delete_options = replace(options, operation=operation, partitions_to_delete=None)
    return Attempt(context, batch, delete_options, snapshot).run().instant


def _key(storage: Storage, expiry: ExpiryOptions) -> tuple[object, ExpiryOptions]:
    return storage.identity, expiry


def _cutoff(clock: Clock, expiry: ExpiryOptions) -> InstantTime:
    """What lies before this instant has expired."""
    return hours_before(clock.now(), 24 * expiry.days)


# -- which -------------------------------------------------------------------------------------------------------------


def _find(context: TableContext, snapshot: Snapshot, expiry: ExpiryOptions) -> _PartitionAges:
    now, cutoff = context.clock.now(), _cutoff(context.clock, expiry)
    if expiry.days <= 0 or not context.config.partition_fields:
        return _PartitionAges((), now)
    slices: dict[str, list[FileSlice]] = {}
    for file_slice in snapshot.view.written_slices(expiry.selected or snapshot.view.every_partition()):
        slices.setdefault(file_slice.group.partition_path, []).append(file_slice)
    since = (
        _created(context, snapshot, sorted(slices))
        if expiry.strategy is ExpiryStrategy.KEEP_BY_CREATION_TIME
        else _changed(context.storage, snapshot, slices, cutoff)
    )
    expired = sorted((moment, path) for path, moment in since.items() if moment < cutoff)
    live_moments = [moment for moment in since.values() if moment >= cutoff]
    return _PartitionAges(tuple(path for _, path in expired), min([now, *live_moments]))


def _changed(
    storage: Storage, snapshot: Snapshot, slices: Mapping[str, Sequence[FileSlice]], cutoff: InstantTime
) -> dict[str, InstantTime]:
    """Partition path -> its last change."""
    changed = {path: max(_newest_of(each) for each in of_partition) for path, of_partition in slices.items()}
    start = snapshot.timeline.start
    if start is not None and start < cutoff:
        return changed  # what no active commit says more of is older than that
    # Logs of archived commits: their blocks say when they were written. Looked into only where it decides.
    for path, of_partition in slices.items():
        untold = [log.path for each in of_partition for log in each.logs if not log.committed_entries]
        if untold and changed[path] < cutoff:
            newest = storage.each(partial(_newest_block, storage), untold)
            changed[path] = max([changed[path], *newest])
    return changed


def _newest_of(file_slice: FileSlice) -> InstantTime:
    logged = (time for log in file_slice.logs for time, _ in log.committed_entries)
    return max([file_slice.base_instant, *logged])


def _newest_block(storage: Storage, path: str) -> InstantTime:
    try:
        blocks = list(scan_blocks(storage.read(path)))
    except FileNotFoundError:
        return InstantTime()
    return max(
        (InstantTime(b.header.get(HeaderKey.INSTANT_TIME, "")) for b in blocks if isinstance(b, LogBlock)),
        default=InstantTime(),
    )


def _created(context: TableContext, snapshot: Snapshot, partitions: Sequence[str]) -> dict[str, InstantTime]:
    """Partition path -> its creation; without those of which nobody knows."""
    emptied: dict[str, InstantTime] = {}
    replacing = [i for i in snapshot.timeline.commits if i.action is Action.REPLACECOMMIT]
    for instant, metadata in zip(replacing, context.active.read_commits(replacing), strict=True):
        if metadata.operation is WriteOperation.DELETE_PARTITION:
            emptied.update(dict.fromkeys(metadata.replaced_file_ids, instant.time))
    times = context.storage.each(partial(_stated_creation, context.storage), partitions)
    return {
        path: max(created, emptied.get(path, created))
        for path, created in zip(partitions, times, strict=True)
        if created is not None
    }


def _stated_creation(storage: Storage, partition_path: str) -> InstantTime | None:
    path = join(partition_path, PARTITION_METADATA)
    try:
        created = parse_properties_file(storage.read(path), path=path).get("commitTime", "")
    except (FileNotFoundError, CorruptFileError):
        return None
    return InstantTime(created) if is_instant_time(created) else None
