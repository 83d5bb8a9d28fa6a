"""The command `metrics`: the state of a table in the text format of Prometheus, for a scrape or a file of its node exporter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from hoodie.cli.arguments import Commands, add_command
from hoodie.cli.report import Report
from hoodie.format.prometheus import sample
from hoodie.model.enums import Action
from hoodie.model.instant import parse_instant
from hoodie.model.results import CommitResult
from hoodie.table import HoodieTable
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext


class Metric(NamedTuple):
    """One family: a gauge with a value for each set of labels."""

    name: str
    help: str
    values: Sequence[tuple[Mapping[str, str], float]]


def register(to: Commands) -> None:
    add_command(
        to,
        "metrics",
        "print the table's state in the text format of Prometheus",
        lambda context, t, _: report(metrics(context, t), {"table": t.config.name, "path": t.uri}),
    )


def metrics(context: TableContext, table: HoodieTable) -> Iterator[Metric]:
    """What whoever runs a table is asked about it. Files are counted, and none is opened."""
    timeline, slices, now = table.timeline, table.files(), parse_instant(context.clock.now())
    bases = [each.base for each in slices if each.base is not None]
    logs = [log for each in slices for log in each.logs]

    def gauge(name: str, text: str, value: float) -> Metric:
        return Metric(name, text, [({}, value)])

    yield gauge("partitions", "Partitions with files.", len(table.partitions()))
    yield gauge("file_groups", "File groups.", len(slices))
    yield gauge(
        "file_groups_with_logs", "File groups that a compaction would merge.", sum(bool(s.logs) for s in slices)
    )
    yield gauge("base_files_bytes", "Size of the newest base files.", sum(base.size_bytes for base in bases))
    yield gauge("log_files", "Log files of the newest file slices.", len(logs))
    yield gauge("log_files_bytes", "Size of these log files.", sum(log.size_bytes for log in logs))
    yield gauge("scan_files", "Files that a query of all rows opens.", len(bases) + len(logs))
    yield from _written(context, timeline)
    yield gauge("commits", "Completed commits on the active timeline.", len(timeline.commits))
    yield gauge("savepoints", "Savepoints.", len(table.savepoints()))
    if timeline.latest_commit is not None:
        latest = timeline.latest_commit
        wrote = context.active.read_commit(latest)
        last = CommitResult.of(latest.time, wrote.operation, wrote.stats(), replaced=wrote.replaced_file_ids)
        age = now - parse_instant(latest.position)
        yield gauge("latest_commit_age_seconds", "Time since the latest commit.", age.total_seconds())
        kinds = {"inserted": last.inserted, "updated": last.updated, "deleted": last.deleted}
        yield Metric("latest_commit_rows", "Rows of it.", [({"kind": kind}, rows) for kind, rows in kinds.items()])
        yield gauge("latest_commit_bytes", "Bytes that it wrote.", last.bytes_written)
    pending = timeline.pending()
    actions = sorted({each.action.value for each in pending})
    counted = [({"action": name}, float(sum(each.action.value == name for each in pending))) for name in actions]
    yield Metric(
        "pending_instants", "Writes and services at work, planned or dead.", counted or [({"action": "none"}, 0)]
    )
    ages_s = [(now - parse_instant(each.time)).total_seconds() for each in pending]
    yield gauge("pending_oldest_age_seconds", "Age of the oldest of them.", max(ages_s, default=0.0))
    consumers = table.consumers()
    behind = [({"consumer": each.name}, float(each.lag.commits)) for each in consumers]
    yield Metric("consumer_lag_commits", "Commits that a named consumer has not read.", behind)
    late = [({"consumer": each.name}, each.lag.seconds) for each in consumers]
    yield Metric("consumer_lag_seconds", "Age of the first of them.", late)


def _written(context: TableContext, timeline: Timeline) -> Iterator[Metric]:
    """What the commits of the active timeline wrote, and for what; and the tries that were in vain."""
    commits = list(context.active.read_commits(timeline.commits))
    by_kind = {"writes": 0.0, "services": 0.0}
    for commit in commits:
        kind = "services" if commit.moves_rows else "writes"
        by_kind[kind] += sum(stat.total_bytes for stat in commit.stats())
    yield Metric("written_bytes", "Bytes that these commits wrote.", [({"by": k}, v) for k, v in by_kind.items()])
    brought = [stat.changed_bytes for each in commits if not each.moves_rows for stat in each.stats()]
    yield Metric("changed_bytes", "Bytes of the rows that they brought, as they are stored.", [({}, sum(brought))])
    undone = sum(each.action is Action.ROLLBACK for each in timeline if each.is_completed)
    yield Metric("rollbacks", "Tries on the active timeline that were undone.", [({}, float(undone))])


def report(all_metrics: Iterable[Metric], labels: Mapping[str, str]) -> Report:
    """Each metric as two lines about it and its values; `labels`: those of all."""
    lines: list[str] = []
    data: dict[str, Any] = {}
    for metric in all_metrics:
        name = f"hoodie_{metric.name}"
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} gauge"]
        for more, value in metric.values:
            lines.append(sample(name, {**labels, **more}, value))
        data[name] = [{**more, "value": value} for more, value in metric.values]
    return Report(data, tuple(lines))
