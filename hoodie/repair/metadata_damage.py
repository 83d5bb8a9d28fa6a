"""A metadata table that does not say which files there are: whoever lists files by it reads too few rows, or none."""

from __future__ import annotations

from collections.abc import Iterable

from hoodie.errors import MissingFileError
from hoodie.metadata.keys import FILES
from hoodie.metadata.listing import MetadataListing
from hoodie.metadata.table import MetadataTable, finished_partitions
from hoodie.model.enums import Action
from hoodie.model.files import FileSlice
from hoodie.model.findings import Repair, RepairKind
from hoodie.model.names import METADATA_TABLE
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.view import FileSystemView


def find_metadata_damage(context: TableContext, snapshot: Snapshot) -> tuple[Repair, ...]:
    """The metadata table as one thing to drop, where it is behind, damaged, or says something else than the folders.

    None while a restore or a rollback is at work or has died: whoever ends that brings the metadata table along, or builds it anew.
    """
    if not finished_partitions(context.config.raw) or snapshot.timeline.pending(Action.RESTORE, Action.ROLLBACK):
        return ()
    why = _damage(context, snapshot)
    if why is not None:
        why = _damage(context, context.snapshot_as_found())  # a writer may have gone on beside the first look
    return () if why is None else (Repair(RepairKind.METADATA_TABLE, METADATA_TABLE, why),)


def _damage(context: TableContext, snapshot: Snapshot) -> str | None:
    table = MetadataTable.open(context.storage, context.config, snapshot.timeline, context.cache)
    partitions = sorted(finished_partitions(context.config.raw))
    problem = next((f"{each}: {why}" for each in partitions if (why := table.problem_of(each)) is not None), None)
    if table.is_gone:
        return None
    return problem or (difference(context, table, snapshot) if FILES in partitions else None)


def difference(context: TableContext, table: MetadataTable, snapshot: Snapshot) -> str | None:
    """A difference between the partition `files` and the folders; None where both agree."""
    try:
        there = _counted(snapshot.view.latest_slices())
    except MissingFileError:
        return None  # the table lacks files, which is another finding
    listing = MetadataListing(table, context.listing)
    view = FileSystemView(listing, context.active, snapshot.timeline, snapshot.archived)
    try:
        in_metadata = _counted(view.latest_slices())
    except MissingFileError as exc:
        return str(exc)
    if FILES in table.reasons:
        return f"{FILES}: {table.reasons[FILES]}"
    for paths, says in ((in_metadata - there, "it names {}, which is not there"), (there - in_metadata, "it lacks {}")):
        if paths:
            return says.format(min(paths))
    return None


def _counted(slices: Iterable[FileSlice]) -> set[str]:
    """Files that commits count. Folders have others, too."""
    result: set[str] = set()
    for each in slices:
        result.update(log.path for log in each.logs if log.committed_bytes is not None)
        if each.base is not None:
            result.add(each.base.path)
    return result
