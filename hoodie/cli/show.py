"""Commands that only look: show, timeline, commits, files, schema."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hoodie.cli.arguments import Commands, add_archived, add_command, add_limit
from hoodie.cli.report import Report, format_pairs, format_table
from hoodie.errors import OptionError
from hoodie.model.files import FileSlice, LogFile
from hoodie.model.instant import Instant
from hoodie.model.results import CommitResult, format_count, format_size
from hoodie.table import HoodieTable
from hoodie.timeline.pending import explain_pending
from hoodie.timeline.timeline import Timeline

_SIZE = "size"


def register(to: Commands) -> None:
    add_command(to, "show", "the table on one page", lambda _, t, __: show(t))
    command = add_command(
        to,
        "timeline",
        "instants and their states",
        lambda _, t, a: timeline(t, limit=a.limit or None, archived=a.archived),
    )
    add_limit(command)
    add_archived(command)
    command = add_command(
        to,
        "commits",
        "what each completed commit did",
        lambda _, t, a: commits(t, limit=a.limit or None, archived=a.archived),
    )
    add_limit(command)
    add_archived(command)
    command = add_command(to, "files", "the newest file slices", lambda _, t, a: files(t, partition=a.partition))
    command.add_argument("--partition", metavar="P", help="only this partition path")
    command = add_command(
        to,
        "explain",
        "which files a query opens",
        lambda _, t, a: explain(t, where=a.where, as_of=a.as_of, since=a.since, until=a.until),
    )
    command.add_argument("--where", metavar="CONDITION", help="rows to read, as SQL-like text")
    command.add_argument("--as-of", metavar="TIME", help="as of an instant, 2026-01-31, '2 hours ago'")
    command.add_argument("--since", metavar="TIME", help="an incremental pull of the commits after this time")
    command.add_argument("--until", metavar="TIME", help="where that pull ends (default: the latest commit)")
    add_command(to, "schema", "columns, types and their roles", lambda _, t, __: schema(t))


def show(table: HoodieTable) -> Report:
    """The table on one page: configuration, timeline, and what its newest file slices hold."""
    config, timeline, slices = table.config, table.timeline, table.files()
    logs = [log for file_slice in slices for log in file_slice.logs]
    bases = [file_slice.base for file_slice in slices if file_slice.base is not None]
    data: dict[str, Any] = {
        "path": table.uri,
        "name": config.name,
        "table_type": config.table_type.value,
        "table_version": int(config.version),
        "record_key": list(config.record_key_fields),
        "partition_by": list(config.partition_fields),
        "ordering": list(config.ordering_fields),
        "merge_mode": config.merge_mode.value,
        "commits": len(timeline.commits),
        "first_commit": timeline.commits[0].time if timeline.commits else None,
        "latest_commit": timeline.latest_commit.time if timeline.latest_commit else None,
        "pending": [str(instant) for instant in timeline.pending()],
        "partitions": len(table.partitions()),
        "file_groups": len(slices),
        "file_groups_with_logs": sum(1 for file_slice in slices if file_slice.logs),
        "base_files": len(bases),
        "base_bytes": sum(base.size_bytes for base in bases),
        "log_files": len(logs),
        "log_bytes": sum(log.size_bytes for log in logs),
    }
    commits = str(data["commits"])
    if timeline.commits:
        commits += f", {data['first_commit']} to {data['latest_commit']}"
    pairs = [
        ("path", table.uri),
        ("table", f"{config.name}, {config.table_type.value}, version {int(config.version)}"),
        ("record key", ", ".join(config.record_key_fields) or "(generated)"),
        ("partitioned by", ", ".join(config.partition_fields) or "(not partitioned)"),
        ("ordering", f"{', '.join(config.ordering_fields) or '(none)'} ({config.merge_mode.value})"),
        ("commits", commits),
        (
            "pending",
            "; ".join(f"{each} ({explain_pending(each, table=table.uri)})" for each in timeline.pending()) or "none",
        ),
        ("partitions", f"{data['partitions']:,}"),
        ("file groups", f"{len(slices):,}, {data['file_groups_with_logs']:,} with logs"),
        ("base files", f"{len(bases):,}, {format_size(data['base_bytes'])}"),
        ("log files", f"{len(logs):,}, {format_size(data['log_bytes'])}"),
    ]
    return Report(data, tuple(format_pairs(pairs)))


def timeline(table: HoodieTable, *, limit: int | None, archived: bool = False) -> Report:
    """Every instant in the state that it has reached, oldest first: of the active timeline, or of the archived one too."""
    active = table.timeline
    older = table.archived_instants() if archived else ()
    instants, hint = _last((*older, *active.instants), limit)
    archived_instants = frozenset(older)
    entries = [
        {
            "instant": i.time,
            "action": i.action.value,
            "state": i.state.value,
            "compaction": i.time in active.compactions,
            "log_compaction": i.time in active.log_compactions,
            **({"completed": i.completion} if active.by_completion else {}),
            **({"archived": i in archived_instants} if archived else {}),
        }
        for i in instants
    ]
    header = ("instant", "action", "state", *(("completed",) if active.by_completion else ()))
    rows = [
        (
            i.time,
            _action(i, active),
            f"{i.state.value}, archived" if i in archived_instants else i.state.value,
            *((i.completion or "-",) if active.by_completion else ()),
        )
        for i in instants
    ]
    return Report({"instants": entries}, (*format_table(header, rows), *hint))


def _action(instant: Instant, timeline: Timeline) -> str:
    if instant.time in timeline.compactions:
        return f"{instant.action.value} (compaction)"
    return (
        f"{instant.action.value} (log compaction)" if instant.time in timeline.log_compactions else instant.action.value
    )


def commits(table: HoodieTable, *, limit: int | None, archived: bool = False) -> Report:
    """What each completed commit did, oldest first; `archived`: those of the archived timeline too."""
    results, hint = _last(table.history(archived=archived), limit)
    timed = any(r.completed for r in results)
    header = (
        "instant",
        *(("completed",) if timed else ()),
        "operation",
        "inserted",
        "updated",
        "deleted",
        "files",
        _SIZE,
    )
    rows = [
        (
            str(r.instant),
            *((r.completed or "-",) if timed else ()),
            r.operation.value.lower(),
            r.inserted,
            r.updated,
            r.deleted,
            r.files,
            format_size(r.bytes_written),
        )
        for r in results
    ]
    return Report({"commits": [commit_data(r) for r in results]}, (*format_table(header, rows), *hint))


def commit_data(result: CommitResult) -> dict[str, Any]:
    """What a commit did as plain values; only what its metadata holds."""
    names = ("instant", "operation", "inserted", "updated", "deleted", "files", "bytes_written")
    values = asdict(result)
    timed = {"completed": result.completed} if result.completed else {}
    return {name: values[name] for name in names} | timed | {"operation": result.operation.value.lower()}


def files(table: HoodieTable, *, partition: str | None) -> Report:
    """The newest slice of each file group: its base file and its logs."""
    slices = [s for s in table.files() if partition is None or s.group.partition_path == partition]
    header = ("partition", "file group", "base instant", "base", "logs", "log bytes")
    rows = [
        (
            s.group.partition_path or "(root)",
            s.group.file_id,
            s.base_instant,
            format_size(s.base.size_bytes) if s.base else "-",
            len(s.logs),
            format_size(_bytes(s.logs)),
        )
        for s in slices
    ]
    total = format_count(len(slices), "file group") + f", {format_size(sum(s.size_bytes for s in slices))}"
    return Report({"file_slices": [_slice_data(s) for s in slices]}, (*format_table(header, rows), total))


def explain(
    table: HoodieTable,
    *,
    where: str | None,
    as_of: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> Report:
    """Which files a query reads, and what left the others out; with `since` or `until` it is an incremental pull."""
    pull = since is not None or until is not None
    if pull and as_of is not None:
        raise OptionError("--as-of does not go with --since and --until: a pull of changes has its own end")
    scan = table.changes(since, until, where=where) if pull else table.scan(where=where, as_of=as_of)
    names = [file.name for task in scan.plan.tasks for file in (task.slice.base, *task.slice.logs) if file is not None]
    return Report(
        {**scan.plan.pruning._asdict(), "read": len(scan.plan.tasks), "files": names}, tuple(scan.explain().split("\n"))
    )


def _slice_data(file_slice: FileSlice) -> dict[str, Any]:
    return {
        "partition": file_slice.group.partition_path,
        "file_id": file_slice.group.file_id,
        "base_instant": file_slice.base_instant,
        "base_file": file_slice.base.name if file_slice.base else None,
        "base_bytes": file_slice.base.size_bytes if file_slice.base else 0,
        "log_files": [log.name for log in file_slice.logs],
        "log_bytes": _bytes(file_slice.logs),
    }


def _bytes(logs: Sequence[LogFile]) -> int:
    return sum(log.size_bytes for log in logs)


def schema(table: HoodieTable) -> Report:
    """The table's columns, without the meta columns."""
    table_schema = table.schema
    if table_schema is None:
        return Report({"columns": []}, ("the table has no commit yet, and so no columns",))
    config = table.config
    roles = {
        "record key": config.record_key_fields,
        "partition": config.partition_fields,
        "ordering": config.ordering_fields,
    }
    columns: list[dict[str, Any]] = [
        {
            "name": field.name,
            "type": str(field.type),
            "nullable": field.nullable,
            "roles": [role for role, names in roles.items() if field.name in {n.split(".")[0] for n in names}],
        }
        for field in table_schema
    ]
    rows = [(c["name"], c["type"], "yes" if c["nullable"] else "no", ", ".join(c["roles"])) for c in columns]
    return Report({"columns": columns}, tuple(format_table(("column", "type", "nullable", "role"), rows)))


def _last(values: Sequence[Any], limit: int | None) -> tuple[Sequence[Any], tuple[str, ...]]:
    """The newest values, and a line that says when some were left out."""
    if limit is None or len(values) <= limit:
        return values, ()
    return values[-limit:], (f"({len(values) - limit:,} older not shown; --limit 0 shows all)",)
