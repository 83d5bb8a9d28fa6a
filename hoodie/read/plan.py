"""Which file slices a query reads, and what each task keeps of them. Pure but for the view's listing."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from hoodie.errors import InstantNotFoundError, OptionError, UnsupportedTableError
from hoodie.model.enums import Action, MergeMode, QueryType, TableType, TableVersion
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import InstantRange, sort_key
from hoodie.model.meta_fields import META_COLUMNS, with_meta_fields
from hoodie.model.plans import ReadContext, ReadPlan, ReadTask
from hoodie.options.read import ReadOptions
from hoodie.read.where import parse_filter
from hoodie.txn.context import Snapshot, TableContext
from hoodie.view.schema import table_schema


def plan_read(context: TableContext, options: ReadOptions, *, meta_columns: bool) -> ReadPlan:
    """The plan of a query on the newest snapshot.

    Raises:
        InstantNotFoundError: an instant of the query is not on the timeline. OptionError: a column or the filter does
            not fit. UnsupportedTableError: this release does not read such tables.
    """
    require_readable(context)
    snapshot = context.snapshot()
    if options.query is QueryType.INCREMENTAL:
        return _plan_incremental(context, snapshot, options, meta_columns=meta_columns)
    until = _as_of(snapshot, options.as_of, context.storage.uri)
    slices = snapshot.view.latest_slices(until=until)
    if options.query is QueryType.READ_OPTIMIZED:
        slices = [s._replace(logs=()) for s in slices if s.base is not None]
    return _plan(context, snapshot, slices, options, until=until, span=None, meta_columns=meta_columns)


def _plan_incremental(
    context: TableContext, snapshot: Snapshot, options: ReadOptions, *, meta_columns: bool
) -> ReadPlan:
    """Rows committed in (begin, end], in their state at `end`; only the file groups that those commits touched are read."""
    timeline, table = snapshot.timeline, context.storage.uri
    limit = timeline.readable_until()
    end = options.end or limit
    if options.end is not None and timeline.latest_commit is not None:
        pending = next((i for i in timeline.pending_writes if sort_key(i.time) <= sort_key(options.end)), None)
        if pending is not None:
            raise InstantNotFoundError(
                f"instant {pending} of table {table} is still being written and lies in the range that ends at {options.end}; "
                f"its rows would be missed for ever by whoever goes on from there. Pull until {limit} instead"
            )
    span = InstantRange(options.begin, end)
    if (
        options.begin is not None
        and end is not None
        and sort_key(options.begin) > sort_key(end)
        and options.end is not None
    ):
        raise OptionError(
            f"the range of the incremental query is empty: it begins at {options.begin} and ends at {options.end}"
        )
    instants = timeline.completed_in(span) if end is not None else ()
    touched: dict[FileGroupId, None] = {}
    for instant in instants:
        for stat in context.active.read_commit(instant).stats():
            touched[FileGroupId(stat.partition_path, stat.file_id)] = None
    slices = []
    for group in touched:
        piece = snapshot.view.slice_of(group, until=end)
        if piece is not None:
            slices.append(_of_range(piece, span))
        elif snapshot.view.slice_of(group) is not None:
            raise InstantNotFoundError(
                f"the files of table {table} as of instant {end} were cleaned (file group {group.file_id} in partition "
                f"{group.partition_path!r}); pull from a later instant, or read the whole table once"
            )
    return _plan(context, snapshot, slices, options, until=end, span=span, meta_columns=meta_columns)


def _of_range(piece: FileSlice, span: InstantRange) -> FileSlice:
    """The slice without a base file that is older than the range: none of its rows counts, so it need not be read."""
    if piece.base is None or span.begin is None or sort_key(piece.base.instant) > sort_key(span.begin):
        return piece
    return piece._replace(base=None)


def _plan(
    context: TableContext,
    snapshot: Snapshot,
    slices: Sequence[FileSlice],
    options: ReadOptions,
    *,
    until: str | None,
    span: InstantRange | None,
    meta_columns: bool,
) -> ReadPlan:
    # An incremental answer has the newest columns, whatever its end: its consumer goes on from there (as Hudi's does).
    schema_at = until if span is None else None
    user_schema = table_schema(snapshot.active, snapshot.timeline, snapshot.properties, until=schema_at)
    schema = with_meta_fields(user_schema if user_schema is not None else pa.schema([]))
    default = schema.names if meta_columns else [n for n in schema.names if n not in META_COLUMNS]
    columns = _columns(options.columns, schema, default)
    read_context = ReadContext(
        table=context.storage.uri,
        schema=schema,
        rule=context.rule,
        visible=snapshot.timeline.visible(until, span.begin if span else None),
        filter=parse_filter(options.where, schema),
    )
    tasks = tuple(ReadTask(piece, tuple(columns), span) for piece in slices)
    output = pa.schema([schema.field(name) for name in columns])
    return ReadPlan(tasks, read_context, output, files_total=len(slices))


def require_readable(context: TableContext) -> None:
    """Raises UnsupportedTableError for tables whose rows this release would get wrong."""
    config = context.config
    if config.version is not TableVersion.V6:
        raise UnsupportedTableError(
            f"table {context.storage.uri} has version {int(config.version)}; this release reads and writes version 6 only"
        )
    if config.table_type is TableType.MERGE_ON_READ and config.merge_mode is MergeMode.CUSTOM:
        raise UnsupportedTableError(
            f"table {context.storage.uri} merges records with a custom payload, which this release cannot run; "
            "read it with query type read_optimized of Apache Hudi, or compact it there first"
        )
    if config.table_type is TableType.MERGE_ON_READ and len(config.ordering_fields) > 1:
        raise UnsupportedTableError(
            f"table {context.storage.uri} orders records by several columns ({', '.join(config.ordering_fields)}); this release "
            "merges by one. Compact it with Apache Hudi and query it read_optimized"
        )


def _as_of(snapshot: Snapshot, as_of: str | None, table: str) -> str | None:
    """The instant up to which an as-of query sees; between two commits it is the state after the earlier one."""
    if as_of is None:
        return None
    timeline = snapshot.timeline
    if not timeline.commits or sort_key(as_of) < sort_key(timeline.commits[0].time):
        raise InstantNotFoundError(timeline.not_found(as_of, table=table))
    pending = next((i for i in timeline.pending_writes if sort_key(i.time) <= sort_key(as_of)), None)
    if pending is not None and pending.action is not Action.COMPACTION:
        raise InstantNotFoundError(
            f"instant {pending} of table {table} is still being written and lies before {as_of}: the answer would change when it "
            f"completes. Read as of {timeline.readable_until()} instead"
        )
    return as_of


def _columns(wanted: Sequence[str] | None, schema: pa.Schema, default: Sequence[str]) -> Sequence[str]:
    if wanted is None:
        return default
    unknown = [name for name in wanted if name not in schema.names]
    if unknown:
        raise OptionError(f"column {unknown[0]!r} is not in the table; the columns are {', '.join(schema.names)}")
    return list(dict.fromkeys(wanted))
