"""The downgrade of a table of version 9 to 8, or of either to 6, on request (Apache Hudi: `UpgradeDowngrade`).

As the upgrade goes (`services/upgrade.py`), the other way round. Logs are named with their own instants up to here, with that of their
slice in version 6: so a merge-on-read table is compacted in full, and what came before is cleaned. From 9 to 8 only the properties
change. The old archive of version 6, which an upgrade leaves, is replaced: the newer one has all of it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from hoodie.errors import CommitConflictError, UnsupportedTableError
from hoodie.filegroup.row_copies import drop_row_copies, row_copies_of
from hoodie.format.downgraded import downgraded_entries, downgraded_file
from hoodie.format.layout import LAYOUTS, V6, V8
from hoodie.model.enums import Action, CleanPolicy, TableVersion
from hoodie.model.instant import InstantTime
from hoodie.model.names import COMPLETES_AS, HOODIE, join
from hoodie.model.service_results import UpgradeResult
from hoodie.options.table import TableConfig, parse_table_config
from hoodie.options.table_changes import downgraded_properties
from hoodie.options.write import WriteOptions
from hoodie.services.cleaning import CLEANING
from hoodie.services.scheduling import run_pending, schedule
from hoodie.services.version_change import change_version, put_properties
from hoodie.timeline.archive_writer import ArchiveWriter
from hoodie.timeline.timeline import WRITES, Timeline
from hoodie.txn.critical import under_lock
from hoodie.view.consumers import encode_place, place_path, stored_places
from hoodie.view.context import Snapshot, TableContext

log = logging.getLogger("hoodie")


def downgrade(context: TableContext, options: WriteOptions, version: TableVersion, *, dry_run: bool) -> UpgradeResult:
    """Make the table one of this version, or say what that would do.

    Raises:
        UnsupportedTableError: the version is not an earlier one, or cannot say how the table merges.
        CommitConflictError: writes or services are pending, and not dead, or a savepoint keeps logs; nothing was changed, but for
            compactions and cleans that were due.
    """
    context = context.on_storage()
    config, layout = context.config, LAYOUTS[version]
    if config.layout is layout:
        if layout is V6 and not dry_run:
            with under_lock(context):  # of a downgrade that died
                context.storage.delete_folder(V8.folder)
        return UpgradeResult(int(version), int(version), dry_run=dry_run)
    if version > config.version:
        raise UnsupportedTableError(
            f"table {context.storage.uri} has version {int(config.version)}, which is less than {int(version)}: upgrade it"
        )
    properties = downgraded_properties(config, layout)

    def move(snapshot: Snapshot) -> None:
        _require_no_logs(context, snapshot)
        _move(context, snapshot, properties)

    return change_version(
        context,
        options,
        layout,
        properties,
        move=move,
        after_compaction=lambda: _clean_all(context, options),
        verb="downgraded",
        dry_run=dry_run,
    )


def _clean_all(context: TableContext, options: WriteOptions) -> None:
    """Delete the slices with logs, which the compaction replaced."""
    newest = replace(options.cleaning, policy=CleanPolicy.KEEP_LATEST_FILE_VERSIONS, versions=1, incremental=False)
    clean = replace(options, cleaning=newest)
    schedule(CLEANING, context, clean)
    run_pending(CLEANING, context, clean)


def _require_no_logs(context: TableContext, snapshot: Snapshot) -> None:
    for partition in snapshot.view.every_partition():
        for group in snapshot.view.file_groups(partition):
            if any(each.logs for each in group.slices):
                raise CommitConflictError(
                    f"table {context.storage.uri} was not downgraded: file group {group.id.file_id} in partition {partition!r} "
                    "has logs, which version 6 would take for those of another slice. A write came after the compaction, or a "
                    "savepoint, a consumer or a query keeps them: downgrade again without these"
                )


def _move(context: TableContext, snapshot: Snapshot, properties: Mapping[str, str]) -> None:
    """Put the timeline and the archive of version 6 beside those of now; then the properties, then take the others away."""
    storage, config = context.storage, context.config
    then = parse_table_config(dict(properties), uri=storage.uri)
    active = {(i.time, i.action) for i in snapshot.timeline}
    # Nobody reads either while the table is of a later version: what is there is of before the upgrade, or of a downgrade that died.
    storage.delete_folder(then.history_folder)
    stale = [info.path for info in storage.list(HOODIE) if not info.is_folder and V6.parse(info.name) is not None]
    storage.each(storage.delete, stale)
    _put_archive(context, then, active)
    files = context.active.state_files(active)
    contents = storage.each(storage.read, [info.path for _, info in files])
    state_files = [
        (join(HOODIE, V6.file_name(instant._replace(completion=None))), downgraded_file(instant, data, path=info.path))
        for (instant, info), data in zip(files, contents, strict=True)
    ]
    storage.each(lambda each: storage.replace(*each), state_files)
    places = [place for place in stored_places(storage) if place.position is not None]
    put_properties(context, properties, verb="downgraded")
    # From here on the table is of the other version. A place that is not moved gives its last commits once more.
    for place in places:
        moved = replace(place, position=_position(snapshot.timeline, place.position or InstantTime("")))
        storage.replace(place_path(place.name), encode_place(moved))
    drop_row_copies(storage, of=frozenset(row_copies_of(storage)))
    storage.delete_folder(config.timeline_folder)
    log.info("downgraded table %s to version %d", storage.uri, int(V6.version))


def _put_archive(context: TableContext, then: TableConfig, active: set[tuple[InstantTime, Action]]) -> None:
    storage, folder = context.storage, context.config.history_folder
    writer = ArchiveWriter(storage, then.history_folder, layout=V6)
    for name in context.archived().files:
        path = join(folder, name)
        entries = downgraded_entries(storage.read(path), path=path)
        # One that is on both timelines lost its archiver, and is archived again.
        files = [
            each
            for each in entries
            if (each.instant.time, COMPLETES_AS.get(each.instant.action, each.instant.action)) not in active
        ]
        if files:
            writer.add(files, timeline=folder)
    writer.merge()


def _position(timeline: Timeline, position: InstantTime) -> InstantTime:
    """A position as an instant time: of the last write before the first one that was completed after it."""
    writes = [i for i in timeline if i.is_completed and i.action in WRITES]
    later = min((i.time for i in writes if i.position > position), default=None)
    before = [i.time for i in writes if later is None or i.time < later]
    return max(before, default=position)
