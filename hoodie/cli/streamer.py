"""The command line of Apache Hudi's Streamer: `hoodie ingest --target-base-path …` in place of `spark-submit … HoodieStreamer`."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields

from hoodie.cli.arguments import Parser, add_options, assignment
from hoodie.cli.ingest_rounds import run_rounds
from hoodie.errors import OptionError
from hoodie.ingestion.streamer import StreamerFlags, parse_job
from hoodie.ingestion.streamer_properties import read_properties

log = logging.getLogger("hoodie")

_MARKS = ("--target-base-path", "--props", "--source-class", "--hoodie-conf")
"""Flags that `hoodie ingest` has for such a command line alone."""
_SHORTEST_PAUSE_S = 1.0
"""Hudi's default is none, which lists a folder without end."""
_WITHOUT_VALUE = "there is no Spark, and no second thread of a service"
_NO_EFFECT: Mapping[str, tuple[bool, str]] = {
    "--spark-master": (True, _WITHOUT_VALUE),
    "--spark-app-name": (True, _WITHOUT_VALUE),
    "--enable-hive-support": (False, _WITHOUT_VALUE),
    **{
        f"--{service}-scheduling-{what}": (True, _WITHOUT_VALUE)
        for service in ("delta-sync", "compact", "cluster")
        for what in ("weight", "minshare")
    },
    "--max-pending-compactions": (True, "compactions are run in turn with writes"),
    "--max-pending-clustering": (True, "clusterings are run in turn with writes"),
    "--retry-last-pending-inline-clustering": (False, "a service that died is resumed by the next one"),
    "--retry-last-pending-inline-compaction": (False, "a service that died is resumed by the next one"),
    "--commit-on-errors": (False, "records that cannot be rows are set apart, and the rest is committed"),
    "--force-empty-sync": (False, "a table is registered with each commit"),
    "--ingestion-metrics-class": (True, "hoodie metrics has the metrics of a table"),
    "--allow-commit-on-no-checkpoint-change": (False, "a source that gives all of its rows is committed each time"),
    "--retry-on-source-failures": (False, "whoever runs the command runs it again; it goes on behind the last commit"),
    "--retry-interval-seconds": (True, "whoever runs the command runs it again"),
    "--max-retry-count": (True, "whoever runs the command runs it again"),
}
"""Flag -> whether it has a value, and why it has no effect."""
_REFUSED: Mapping[str, tuple[bool, str]] = {
    "--checkpoint": (True, "give --name with a new name, and the source is read from its beginning"),
    "--ignore-checkpoint": (True, "give --name with a new name, and the source is read from its beginning"),
    "--initial-checkpoint-provider": (True, "a source is read from its beginning, or from behind the last commit"),
    "--run-bootstrap": (False, "hoodie migrate converts existing files"),
    "--bootstrap-overwrite": (False, "hoodie migrate converts existing files"),
    "--bootstrap-index-class": (True, "hoodie migrate converts existing files"),
    "--post-write-termination-strategy-class": (True, "leave --continuous out, and it ends when there is nothing new"),
    "--config-hot-update-strategy-class": (True, "stop the command, and run it with other properties"),
    "--merge-strategy-id": (True, "use --merge-mode"),
    "--record-merge-strategy-id": (True, "use --merge-mode"),
    "--merge-impl-classes": (True, "hoodie.register_merger takes a merger in Python"),
    "--record-merge-custom-implementation-classes": (True, "hoodie.register_merger takes a merger in Python"),
}
"""Flag -> whether it has a value, and what to do instead."""


def parser_of_streamer(prog: str, args: Sequence[str]) -> argparse.ArgumentParser | None:
    """The parser of this command line, if it is one of the Streamer's."""
    if not any(each.partition("=")[0] in _MARKS for each in args):
        return None
    parser = Parser(
        prog=prog, allow_abbrev=False, description="The flags of Apache Hudi's Streamer, in place of spark-submit."
    )
    parser.add_argument("--target-base-path", required=True, metavar="PATH")
    parser.add_argument("--target-table", required=True, metavar="NAME")
    parser.add_argument("--table-type", choices=["COPY_ON_WRITE", "MERGE_ON_READ"])
    parser.add_argument("--props", metavar="FILE")
    parser.add_argument("--hoodie-conf", metavar="KEY=VALUE", type=assignment, action="append", default=[])
    for flag in ("--source-class", "--schemaprovider-class", "--transformer-class", "--payload-class"):
        parser.add_argument(flag, metavar="CLASS")
    parser.add_argument("--source-ordering-fields", "--source-ordering-field", metavar="COLUMNS")
    parser.add_argument("--op", metavar="OPERATION")
    parser.add_argument("--base-file-format", metavar="FORMAT")
    parser.add_argument("--merge-mode", "--record-merge-mode", metavar="MODE")
    parser.add_argument("--sync-tool-classes", metavar="CLASSES")
    parser.add_argument("--source-limit", metavar="N", type=int)
    for flag in ("--filter-dupes", "--disable-compaction", "--continuous"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--enable-sync", "--enable-hive-sync", action="store_true")
    parser.add_argument("--min-sync-interval-seconds", metavar="N", type=float, default=0.0)
    for flag, (with_value, _) in {**_NO_EFFECT, **_REFUSED}.items():
        kind = {} if with_value else {"action": "store_const", "const": ""}
        parser.add_argument(flag, help=argparse.SUPPRESS, **kind)  # type: ignore[arg-type]
    ours = parser.add_argument_group("ours")
    ours.add_argument("--name", default="ingest", help="of the source, if the table has several")
    ours.add_argument("--strict", action="store_true", help="a record that cannot be a row is an error")
    ours.add_argument("--quiet", action="store_true", help="print no rounds")
    ours.add_argument("--dry-run", action="store_true", help="read one round, and write nothing")
    add_options(parser)
    parser.set_defaults(alone=run)
    return parser


def run(args: argparse.Namespace, options: Mapping[str, str], reached_by: Mapping[str, str]) -> int:
    """Run the job; gives the exit status."""
    present = {flag for flag in {**_NO_EFFECT, **_REFUSED} if getattr(args, flag[2:].replace("-", "_")) is not None}
    for flag in sorted(present & set(_REFUSED)):
        raise OptionError(f"{flag} of Apache Hudi's Streamer is not supported: {_REFUSED[flag][1]}")
    for flag in sorted(present):
        log.warning("%s has no effect: %s", flag, _NO_EFFECT[flag][1])
    values = {each.name: getattr(args, each.name) for each in fields(StreamerFlags)}
    flags = StreamerFlags(**{name: value for name, value in values.items() if value is not None})
    job = parse_job(flags, read_properties(args.props, args.hoodie_conf, reached_by), reached_by)
    return run_rounds(
        args,
        job.source.source,
        job.target,
        interval_s=max(args.min_sync_interval_seconds, _SHORTEST_PAUSE_S),
        format=job.source.format,
        operation=job.operation,
        record_key=job.record_key,
        ordering=job.ordering,
        table_type=job.table_type,
        sql=job.sql,
        schema=job.schema,
        options={**options, **job.options},
        storage_options=reached_by,
        source_options={**reached_by, **job.source.options}
        if job.source.is_files
        else job.source.options or reached_by,
        **({} if job.limit is None else {job.source.bound: job.limit}),
    )
