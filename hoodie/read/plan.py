"""Which file slices a query reads, and what each task keeps of them. Pure but for the view's listing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress, zip_longest
from typing import NamedTuple

import pyarrow as pa

from hoodie.errors import InstantNotFoundError, OptionError, UnsupportedTableError
from hoodie.filegroup.changes import change_schema
from hoodie.format.timestamp_labels import with_labels_of
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.metadata.listing import by_metadata
from hoodie.model.collector import COLLECTOR_SPARED
from hoodie.model.enums import MOVES_ROWS, ChangeFormat, QueryType
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.instant import InstantRange, InstantTime, VisibleInstants, parse_instant
from hoodie.model.meta_fields import META_COLUMNS, with_meta_fields
from hoodie.model.plans import ChangeTask, ReadContext, ReadPlan, ReadTask, RowFilter, WholeSlice
from hoodie.options.read import ReadOptions
from hoodie.read.changes import in_order, plan_changes
from hoodie.read.prune import asks_for_keys_alone, choice_of, prune, sought_by
from hoodie.read.ranges import PulledRange, plan_range, refuse_cleaned
from hoodie.read.where import column_named, parse_filter
from hoodie.telemetry import note, record, span
from hoodie.timeline.moments import refuse_undone
from hoodie.timeline.pending import being_written
from hoodie.timeline.timeline import Timeline
from hoodie.view.columns import column_history
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.schema import table_schema


def pin_snapshot(context: TableContext, added: pa.Schema | None = None) -> Snapshot:
    """The newest snapshot, for plans that are made later.

    Args:
        added: columns that the write is about to add for which it is read, as far as they are not there: null in all rows.
    """
    snapshot = by_metadata(context).snapshot()
    return snapshot if added is None else snapshot.with_columns(added)


def plan_read(
    context: TableContext, options: ReadOptions, *, meta_columns: bool, snapshot: Snapshot | None = None
) -> ReadPlan:
    """The plan of a query on the newest snapshot, or on one that `pin_snapshot` gave: `plan_pinned` says more."""
    return plan_pinned(context, options, meta_columns=meta_columns, snapshot=snapshot)[0]


def plan_pinned(
    context: TableContext, options: ReadOptions, *, meta_columns: bool, snapshot: Snapshot | None = None
) -> tuple[ReadPlan, Snapshot]:
    """A plan, and the snapshot that it was made on, for plans of its parts.

    Raises:
        InstantNotFoundError: an instant of the query is not on the timeline. OptionError: a column or the filter does
            not fit. UnsupportedTableError: this release does not read such tables. MissingFileError: files are gone.
            TableNotFoundError: so is the table.
    """
    context = by_metadata(context.with_view(options.view))

    def plan(snapshot: Snapshot) -> tuple[ReadPlan, Snapshot]:
        result = _plan_on(context, snapshot, options, meta_columns=meta_columns)
        _require_merged(context, result)
        return replace(result, position=_position(snapshot, options), reads_at=_reads_at(snapshot, options)), snapshot

    about = {"table": context.config.name, "path": context.storage.uri, "query": options.query.value}
    with span("scan.plan", **about), COLLECTOR_SPARED:
        result = context.ask(plan) if snapshot is None else plan(snapshot)
        _record(context, result[0])
    return result


def _record(context: TableContext, plan: ReadPlan) -> None:
    slices = [each for task in plan.tasks for each in task.slices]
    files = sum((each.base is not None) + len(each.logs) for each in slices)
    size = sum(each.size_bytes for each in slices)
    note(files=files, bytes=size)
    record("scan.files", files, table=context.config.name)
    record("scan.bytes", size, table=context.config.name)


def _plan_on(context: TableContext, snapshot: Snapshot, options: ReadOptions, *, meta_columns: bool) -> ReadPlan:
    if options.query is QueryType.INCREMENTAL and options.changes is not ChangeFormat.LATEST_STATE:
        return _plan_changes(context, snapshot, options, meta_columns=meta_columns)
    if options.query is QueryType.INCREMENTAL:
        return _plan_incremental(context, snapshot, options, meta_columns=meta_columns)
    until = options.as_of
    then = None if until is None else _timeline_as_of(context, snapshot, until)
    of = _context_of(
        context, snapshot, options, until=until, visible=snapshot.timeline.visible(until), meta_columns=meta_columns
    )
    choice = choice_of(context, of[0], options.where)
    partitions = None if choice is None else snapshot.view.list_chosen(choice)
    slices = snapshot.view.latest_slices(partitions, until=then)
    if options.query is QueryType.READ_OPTIMIZED:
        slices = [s._replace(logs=()) for s in slices if s.base is not None]
    return _plan(
        context, snapshot, _QueryScope(slices, unlisted=0 if partitions is None else partitions.left_out), options, of
    )


def _reads_at(snapshot: Snapshot, options: ReadOptions) -> InstantTime | None:
    """The commit from whose state on the query needs files; the change feed compares each commit with the one before it."""
    timeline = snapshot.timeline
    if not timeline.commits:
        return None
    if options.query is not QueryType.INCREMENTAL:
        return (timeline if options.as_of is None else timeline.as_of(options.as_of)).needed_from
    if options.changes is not ChangeFormat.LATEST_STATE and options.begin is None:
        return timeline.commits[0].time
    position = options.end if options.changes is ChangeFormat.LATEST_STATE else options.begin
    return (timeline if position is None else timeline.completed_by(position)).needed_from


def _position(snapshot: Snapshot, options: ReadOptions) -> InstantTime | None:
    """Where a pull goes on after this query without losing a row; None where there is no such place.

    A snapshot may hold commits behind it: a write that is still pending may come to lie before them, so they are pulled again.
    """
    if options.query is QueryType.READ_OPTIMIZED or options.as_of is not None:
        return None
    reached = options.end or snapshot.timeline.readable_until(snapshot.pending_writes)
    begin = options.begin
    if reached is None or (begin is not None and begin > reached):
        return begin
    return reached


def _plan_incremental(
    context: TableContext, snapshot: Snapshot, options: ReadOptions, *, meta_columns: bool
) -> ReadPlan:
    """Rows committed in (begin, end], in their state at `end`; only the file groups that those commits touched are read."""
    pulled = plan_range(
        snapshot, options.begin, options.end, fallback=options.full_scan_fallback, table=context.storage.uri
    )
    # An incremental answer has the newest columns, whatever its end: its consumer goes on from there (as Hudi's does).
    chosen = _QueryScope(pulled.slices, span=pulled.rows, wholes=pulled.wholes)
    if not context.config.populate_meta_fields:
        require_own_rows(snapshot, pulled, options.begin, table=context.storage.uri)
        chosen = _QueryScope(pulled.slices)
    of = _context_of(context, snapshot, options, until=None, visible=pulled.visible, meta_columns=meta_columns)
    return _plan(context, snapshot, chosen, options, of)


def _plan_changes(context: TableContext, snapshot: Snapshot, options: ReadOptions, *, meta_columns: bool) -> ReadPlan:
    """What the commits in (begin, end] inserted, updated and deleted, with the newest columns; a task for each file group."""
    if not context.config.populate_meta_fields:
        raise UnsupportedTableError(
            f"table {context.storage.uri} does not store the _hoodie_ columns: its files do not show its changes"
        )
    steps = plan_changes(snapshot, options.begin, options.end, table=context.storage.uri)
    # The texts of `cdc` are those of the user's columns, whatever the door gives of rows.
    with_meta = meta_columns and options.changes is ChangeFormat.BEFORE_AFTER
    read_context, images = _context_of(
        context, snapshot, options, until=None, visible=snapshot.timeline.visible(), meta_columns=with_meta
    )
    output = change_schema(pa.schema([read_context.schema.field(name) for name in images]), options.changes)
    pruned = prune(context, snapshot, read_context, options.where, [step.slices for step in steps])
    tasks = [
        ChangeTask(
            step.instant,
            step.before,
            step.after,
            step.seen_before,
            step.seen_after,
            tuple(output.names),
            tuple(images),
            options.changes,
            step.part,
        )
        for step in in_order(compress(steps, pruned.mask))
    ]
    return ReadPlan(tuple(tasks), read_context, output, pruned.counts)


class _QueryScope(NamedTuple):
    """What a query is about, before its filter."""

    slices: Sequence[FileSlice]
    span: InstantRange | None = None
    """Only rows that were committed in it."""
    wholes: Sequence[WholeSlice | None] = ()
    """By the slices, as `ReadTask` has them."""
    unlisted: int = 0
    """As `Pruning` has it."""


def _plan(
    context: TableContext,
    snapshot: Snapshot,
    chosen: _QueryScope,
    options: ReadOptions,
    of: tuple[ReadContext, Sequence[str]],
) -> ReadPlan:
    read_context, columns = of
    tasks = [
        ReadTask(file_slice, tuple(columns), chosen.span, whole)
        for file_slice, whole in zip_longest(chosen.slices, chosen.wholes[: len(chosen.slices)])
    ]
    # Where its log records hold some columns only, rows of a range are made of the whole slice.
    candidates = [[task.slice] if task.whole is None else [task.slice, task.whole.slice] for task in tasks]
    is_newest = options.query is QueryType.SNAPSHOT and options.as_of is None and chosen.span is None
    pruned = prune(context, snapshot, read_context, options.where, candidates, is_newest=is_newest)
    if pruned.places and read_context.filter is not None and read_context.filter.key_filter is not None:
        key_filter = read_context.filter.key_filter._replace(places=pruned.places)
        read_context = replace(read_context, filter=replace(read_context.filter, key_filter=key_filter))
    output = pa.schema([read_context.schema.field(name) for name in columns])
    counts = pruned.counts._replace(unlisted=chosen.unlisted)
    return ReadPlan(tuple(compress(tasks, pruned.mask)), read_context, output, counts)


def _context_of(
    context: TableContext,
    snapshot: Snapshot,
    options: ReadOptions,
    *,
    until: InstantTime | None,
    visible: VisibleInstants,
    meta_columns: bool,
) -> tuple[ReadContext, Sequence[str]]:
    """What all tasks share, and the columns that are asked for."""
    schema = with_meta_fields(_schema_at(snapshot, until))
    default = schema.names if meta_columns else [n for n in schema.names if n not in META_COLUMNS]
    columns = _columns(options.columns, schema, default)
    row_filter = parse_filter(options.where, schema)
    if row_filter is not None and options.where is not None:
        key_filter = sought_by(options.where, context.config, schema)
        keys_alone = key_filter is not None and asks_for_keys_alone(options.where, schema)
        row_filter = replace(row_filter, key_filter=key_filter, keys_alone=keys_alone)
    if row_filter is not None and not context.config.populate_meta_fields:
        _refuse_empty_columns(context, row_filter)
    read_context = ReadContext(
        table=context.storage.uri,
        schema=schema,
        rule=context.rule,
        visible=visible,
        filter=row_filter,
        history=snapshot.history if until is None else column_history(snapshot.active, snapshot.timeline, until=until),
        unstored=unstored_of(context.config, schema),
    )
    return read_context, columns


def _refuse_empty_columns(context: TableContext, row_filter: RowFilter) -> None:
    """Raises OptionError for a filter on columns that are null in every row: it would find none, whatever is stored."""
    empty = [name for name in META_COLUMNS if name in row_filter.columns]
    if empty:
        raise OptionError(
            f"table {context.storage.uri} does not store the _hoodie_ columns (hoodie.populate.meta.fields=false), so no row has a "
            f"{empty[0]}: filter on the table's own columns"
        )


def _schema_at(snapshot: Snapshot, until: InstantTime | None) -> pa.Schema:
    """The user's columns as of an instant (None: now)."""
    newest = snapshot.schema if snapshot.schema is not None else pa.schema([])
    if until is None:
        return newest
    then = table_schema(snapshot.active, snapshot.timeline, snapshot.properties, until=until)
    return pa.schema([]) if then is None else with_labels_of(then, newest)


def _require_merged(context: TableContext, plan: ReadPlan) -> None:
    """Raises UnsupportedTableError for logs that this release would merge wrong."""
    reason = context.config.rule.refusal
    if reason and any(each.logs for task in plan.tasks for each in task.slices):
        raise UnsupportedTableError(
            f"table {context.storage.uri} has logs that cannot be merged: {reason}; read its base files alone (query type "
            "read_optimized), or compact it by Apache Hudi first"
        )


def _timeline_as_of(context: TableContext, snapshot: Snapshot, as_of: InstantTime) -> Timeline:
    """The timeline of the state as of an instant: between two commits it is that after the earlier."""
    timeline, table = snapshot.timeline, context.storage.uri
    if not timeline.commits:
        raise InstantNotFoundError(timeline.not_found(as_of, table=table))
    refuse_undone(snapshot.active, timeline, as_of, table=table)
    first = timeline.commits[0].time
    if as_of < first:
        which = "earliest commit on the active timeline" if snapshot.archived.files else "first commit"
        raise InstantNotFoundError(
            f"instant {as_of} ({parse_instant(as_of):%Y-%m-%d %H:%M:%S}) lies before the {which} of table {table}, {first} "
            f"({parse_instant(first):%Y-%m-%d %H:%M:%S} in the time of its timeline): "
            f"there is nothing to read as of then. The latest is {timeline.commits[-1].time}"
        )
    pending = next((i for i in snapshot.pending_writes if i.time <= as_of), None)
    if pending is not None:
        below = [i.time for i in timeline.commits if i.time < pending.time]
        instead = f"Read as of {below[-1]} instead" if below else "There is no completed commit before it"
        raise InstantNotFoundError(
            f"{being_written(pending, table=table)} and lies before {as_of}: the answer would change when it "
            f"completes. {instead}"
        )
    then = timeline.as_of(as_of)
    refuse_cleaned(snapshot, then, as_of, table=table)
    return then


def _columns(names: Sequence[str] | None, schema: pa.Schema, default: Sequence[str]) -> Sequence[str]:
    if names is None:
        return default
    return list(dict.fromkeys(column_named(name, schema.names) for name in names))


# -- Incremental queries of a table whose rows do not store the commit that wrote them (hoodie.populate.meta.fields=false).
#
# What is known of its rows is known of its files: a log block names its instant, and a file that began its file group
# holds rows of its own commit alone. A base file that was merged from an older one holds rows of other commits, too, and
# nothing tells which.
# (Apache Hudi 1.2.0 refuses every incremental query of such a table.)


def require_own_rows(snapshot: Snapshot, pulled: PulledRange, begin: InstantTime | None, *, table: str) -> None:
    """Fail unless all rows of the range's slices were committed in it.

    Raises:
        UnsupportedTableError: a file holds rows of other commits, too, or may hold them.
    """
    if not pulled.slices:
        return
    if pulled.visible.until is None:  # the newest files in place of those of the range
        raise _unknown(table, "the files of the range are gone, and the newest ones")
    if begin is None or not begin.strip("0"):
        return  # all rows as of its end
    span = InstantRange(begin, pulled.until)
    timeline = snapshot.timeline
    merged = next((i for i in timeline.completed_in(span) if i.time in timeline.log_compactions), None)
    if merged is not None:
        raise _unknown(table, f"the logs that log compaction {merged.time} wrote")
    for file_slice in pulled.slices:
        if file_slice.base is not None and not _began_its_group(snapshot, file_slice, file_slice.base):
            raise _unknown(table, file_slice.base.path)


def _began_its_group(snapshot: Snapshot, file_slice: FileSlice, base: BaseFile) -> bool:
    commit = snapshot.timeline.commit_at.get(base.instant)
    if commit is None:
        return False
    metadata = snapshot.active.read_commit(commit)
    if metadata.operation in MOVES_ROWS or commit.time in snapshot.timeline.compactions:
        return False
    stats = metadata.write_stats.get(file_slice.group.partition_path, ())
    return any(stat.file_id == base.file_id and stat.prev_commit is None for stat in stats)


def _unknown(table: str, what: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        f"table {table} does not store the _hoodie_ columns (hoodie.populate.meta.fields=false), and {what} may hold rows of other "
        "commits than those of the range, so its changes are not known: read the whole table, and go on from that scan's position "
        "(a consumer: seek('latest') first)"
    )
