"""What is wrong with a table, or will be, on one page: each finding with the command that mends it. Nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator

from hoodie.errors import HoodieError
from hoodie.model.enums import Action, State, TableType, TableVersion
from hoodie.model.findings import Diagnosis, Finding, Level, Repair, RepairKind
from hoodie.model.names import METADATA_TABLE, PROPERTIES_BACKUP, SET_ASIDE
from hoodie.model.results import format_count, format_size
from hoodie.options.write import WriteOptions
from hoodie.services.archiving import archive
from hoodie.services.cleaning import preview
from hoodie.services.properties_repair import find_damage
from hoodie.services.recovery import dead_remains
from hoodie.services.repairs import kinds_of, repair
from hoodie.services.set_aside import set_aside_files, set_aside_names
from hoodie.services.validation import problems
from hoodie.storage.base import Storage
from hoodie.timeline.pending import explain_pending
from hoodie.timeline.timeline import WRITES
from hoodie.txn.heartbeat import Life, life_of
from hoodie.view.context import Snapshot, TableContext

_SHOWN = 5

_MEND_BY = {
    RepairKind.PARTITION_METADATA: "`hoodie repair PATH partition-metadata --yes` writes it anew",
    RepairKind.STRAY_FILES: "`hoodie repair PATH stray-files --yes` moves it away",
    RepairKind.PLANS: "`hoodie repair PATH plans --yes` removes it, and it is planned anew",
}


def diagnose_properties(storage: Storage) -> Diagnosis | None:
    """What is wrong where a table cannot be opened because of its properties; None when these are whole.

    Raises:
        TableNotFoundError: there is nothing of a table.
    """
    damage = find_damage(storage)
    if damage is None:
        return None
    mend = "`hoodie repair PATH properties` shows what can be put back, and from where"
    return Diagnosis((Finding("properties", Level.DAMAGE, damage, mend=mend),))


def diagnose(context: TableContext, options: WriteOptions) -> Diagnosis:
    """Everything that is found, worst first."""
    context = context.on_storage()
    snapshot = context.snapshot()
    found = list(_repairs(context))
    found += _files(context, snapshot, found)
    found += _pending(context, snapshot)
    found += _left_behind(context)
    if context.config.version is TableVersion.V6 and not any(each.level is Level.DAMAGE for each in found):
        found += _neglected(context, snapshot, options)
    found += _notes(context)
    return Diagnosis.of(found)


def _repairs(context: TableContext) -> Iterator[Finding]:
    """What `repair` would mend. It is for tables of version 6."""
    if context.config.version is not TableVersion.V6:
        return
    try:
        result = repair(context, kinds_of(None), dry_run=True)
    except HoodieError as exc:
        yield Finding("repair", Level.DAMAGE, f"files cannot be told apart: {exc}")
        return
    for kind, repairs in ((kind, result.of(kind)) for kind in RepairKind):
        level = Level.NEGLECT if kind is RepairKind.STRAY_FILES else Level.DAMAGE
        for each in repairs[:_SHOWN]:
            yield Finding(kind.value, level, f"{each.path}: {each.why}", each.path, _MEND_BY[kind])
        if len(repairs) > _SHOWN:
            more = f"{len(repairs) - _SHOWN:,} more like this"
            yield Finding(kind.value, level, more, mend=f"`hoodie repair PATH {kind.value}` lists them")
    for left in result.left[:_SHOWN]:
        yield _left(left)


def _left(left: Repair) -> Finding:
    level = Level.DAMAGE if left.kind is RepairKind.PLANS else Level.NOTE
    return Finding(left.kind.value, level, f"{left.path}: {left.why}" if left.path else left.why, left.path or None)


def _files(context: TableContext, snapshot: Snapshot, known: list[Finding]) -> Iterator[Finding]:
    """Files that are gone or cut. What is known to be mended otherwise is not said twice."""
    kinds = {each.kind for each in known if each.level is Level.DAMAGE}
    if RepairKind.PLANS.value in kinds:
        return
    for error in problems(context, snapshot):
        if RepairKind.PARTITION_METADATA.value in kinds and "the files of partition" in str(error):
            continue
        yield Finding("files", Level.DAMAGE, str(error))


def _pending(context: TableContext, snapshot: Snapshot) -> Iterator[Finding]:
    for instant in snapshot.timeline.pending():
        path = context.active.path(instant)
        life = life_of(instant.time, context)
        if life is not Life.DEAD:
            yield Finding("pending", Level.NOTE, f"{instant} is at work", path)
        elif instant.action in WRITES or instant.action is Action.ROLLBACK:
            mend = "The next write undoes it, or `hoodie rollback PATH --yes`"
            yield Finding("pending", Level.NEGLECT, f"{instant} is pending, and nobody works on it", path, mend)
        elif instant.action in (Action.COMPACTION, Action.LOGCOMPACTION) and instant.state is State.REQUESTED:
            yield Finding("pending", Level.NOTE, f"{instant} waits to be run", path, explain_pending(instant))
        else:
            yield Finding(
                "pending",
                Level.NEGLECT,
                f"{instant} is pending, and nobody works on it",
                path,
                explain_pending(instant).capitalize(),
            )


def _left_behind(context: TableContext) -> Iterator[Finding]:
    remains = dead_remains(context)
    if remains:
        yield Finding(
            "remains",
            Level.NEGLECT,
            f"{format_count(len(remains), 'dead writer')} left staged files or marks: {', '.join(remains[:_SHOWN])}",
            mend="The next write removes them, or `hoodie rollback PATH --yes`",
        )


def _neglected(context: TableContext, snapshot: Snapshot, options: WriteOptions) -> Iterator[Finding]:
    """Services that are not run, as far as it can be seen."""
    timeline = snapshot.timeline
    if len(timeline.commits) > context.tuning.neglected_commits:
        held = archive(context, options, dry_run=True).held_by
        yield Finding(
            "timeline",
            Level.NEGLECT,
            f"the timeline has {len(timeline.commits):,} commits, which every reader and writer lists"
            + (f"; they are held back by {held}" if held else ""),
            mend=None if held else "`hoodie archive PATH` moves the oldest ones to the archive",
        )
    if timeline.newest(Action.CLEAN) is None and not timeline.pending(Action.CLEAN):
        free = preview(context, options.cleaning)
        if free.files:
            yield Finding(
                "cleaning",
                Level.NEGLECT,
                f"no clean has run: {format_count(free.files, 'old file')} of {format_size(free.bytes_freed)} can go",
                mend="`hoodie clean PATH` deletes them",
            )
    if context.config.table_type is TableType.MERGE_ON_READ and not timeline.pending(Action.COMPACTION):
        counts = [len(each.logs) for each in snapshot.view.latest_slices()]
        crowded = [count for count in counts if count > context.tuning.neglected_logs]
        if crowded:
            yield Finding(
                "compaction",
                Level.NEGLECT,
                f"{format_count(len(crowded), 'file slice')} with up to {max(crowded):,} log files, which every query merges",
                mend="`hoodie compaction run PATH` merges them; hoodie.compact.inline=true lets writers do it",
            )


def _notes(context: TableContext) -> Iterator[Finding]:
    storage, config = context.storage, context.config
    if config.version is not TableVersion.V6:
        yield Finding(
            "version", Level.NOTE, f"the table has version {int(config.version)}, which hoodie reads and does not write"
        )
    elif config.metadata_partitions or storage.list(METADATA_TABLE):
        yield Finding(
            "metadata-table",
            Level.NOTE,
            "Apache Hudi has made a metadata table, which the next write by hoodie drops",
            METADATA_TABLE,
            "Give Apache Hudi's writers hoodie.metadata.enable=false",
        )
    if storage.exists(PROPERTIES_BACKUP):
        yield Finding(
            "properties", Level.NOTE, f"{PROPERTIES_BACKUP} was left by an update of the properties, which are whole"
        )
    for name in set_aside_names(storage):
        files = set_aside_files(storage, name)
        if files:
            size = sum(info.size_bytes for info in files.values())
            yield Finding(
                "set-aside",
                Level.NOTE,
                f"a repair set {format_count(len(files), 'file')} of {format_size(size)} aside as {name}",
                f"{SET_ASIDE}/{name}",
                "Delete the folder when nobody wants them back",
            )
