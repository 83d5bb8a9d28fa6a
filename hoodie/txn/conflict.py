"""Whether a write may still be published on the timeline as it is now. Pure: values in, a reason or nothing out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import Instant
from hoodie.model.payloads import CommitMetadata

BasedOn = Mapping[FileGroupId, str]
"""Existing file group -> base instant of the slice that the write was planned on."""


def find_conflict(
    *,
    based_on: BasedOn,
    inserted_partitions: frozenset[str],
    current: Mapping[FileGroupId, FileSlice | None],
    others: Iterable[tuple[Instant, CommitMetadata]],
) -> str | None:
    """The reason why a write must not be published, or None.

    Args:
        current: the slices of `based_on`'s groups now; None when a group was replaced or is gone.
        others: writes that were completed since this one started, compactions among them.
    """
    for group, base_instant in based_on.items():
        now = current.get(group)
        where = f"file group {group.file_id} in partition {group.partition_path!r}"
        if now is None:
            return f"{where} was replaced by another write"
        if now.base_instant != base_instant:
            return f"{where} moved from slice {base_instant} to {now.base_instant} in the meantime"
    for instant, metadata in others:
        for stat in metadata.stats():
            group = FileGroupId(stat.partition_path, stat.file_id)
            if group in based_on:
                # A compaction too: it may have dropped a deleted key that this write's log brings back. Such a key would be
                # in no base file, and a look-up made between the two commits would take it for new.
                return f"{instant} changed file group {group.file_id} in partition {group.partition_path!r} too"
            if not metadata.compacted and stat.num_inserts and stat.partition_path in inserted_partitions:
                # Both may have inserted the same key, each into a file that the other could not see.
                return f"{instant} inserted into partition {stat.partition_path!r} too"
    return None
