"""The command `ingest`: loads new data of a folder, another table, a database or a Kafka topic into a table."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from hoodie.cli.arguments import Commands, Parser, add_options, add_source_options, columns, duration, table_path
from hoodie.cli.ingest_rounds import run_rounds
from hoodie.cli.streamer import parser_of_streamer
from hoodie.ingestion.change_logs import KINDS as LOGS
from hoodie.ingestion.ingest import OPERATIONS
from hoodie.ingestion.sources import KINDS


def register(to: Commands) -> None:
    text = "load new data from a folder, a queue of S3's notifications, a table, a database or a topic into a table; each row once"
    added = to.add_parser(
        "ingest",
        help=text,
        description=text,
        epilog="With --target-base-path it takes the flags of Apache Hudi's Streamer; --target-base-path . --help lists them.",
    )
    if isinstance(added, Parser):
        added.other_parser = parser_of_streamer
    added.add_argument(
        "source",
        metavar="SOURCE",
        type=table_path,
        help="a folder of files, or another table's, or the address of a queue, a database or a topic",
    )
    added.add_argument(
        "path", metavar="PATH", type=table_path, help="the table; with --key it is made if it does not exist"
    )
    added.add_argument(
        "--format", choices=KINDS, help="of the files (default: by their names), or of the values of a topic (json)"
    )
    added.add_argument("--name", default="ingest", help="of the source, if the table has several")
    added.add_argument("--sql", metavar="QUERY", help="a query over `source`, whose rows are written instead")
    added.add_argument("--operation", default="upsert", choices=[each.value.lower() for each in OPERATIONS])
    for option, what in (("--key", "record key"), ("--partition-by", "partition"), ("--ordering", "ordering")):
        added.add_argument(option, metavar="COLUMNS", type=columns, help=f"{what} of a table that is made")
    added.add_argument(
        "--type", "--table-type", choices=["COPY_ON_WRITE", "MERGE_ON_READ"], help="of a table that is made"
    )
    added.add_argument("--changes", choices=LOGS, help="the source is a change log of Debezium, or of AWS DMS")
    added.add_argument("--max-files", metavar="N", type=int, help="files that a round takes at most")
    added.add_argument("--max-bytes", metavar="N", type=int, help="bytes that a round takes at most")
    added.add_argument(
        "--max-rows", metavar="N", type=int, help="rows of a database or records of a topic that a round takes at most"
    )
    added.add_argument("--strict", action="store_true", help="a record that cannot be a row is an error")
    added.add_argument("--continuous", action="store_true", help="look again and again, until the process is stopped")
    added.add_argument(
        "--every", metavar="TIME", type=duration, default=10.0, help="pause of --continuous: 10s (default), 5m"
    )
    added.add_argument("--quiet", action="store_true", help="print no rounds")
    added.add_argument("--dry-run", action="store_true", help="read one round, and write nothing")
    add_source_options(
        added,
        "how to reach the storage of the source; of a database table, query and column, of a topic its consumer's properties",
    )
    add_options(added)
    added.set_defaults(alone=run)


def run(args: argparse.Namespace, options: Mapping[str, str], reached_by: Mapping[str, str]) -> int:
    """Ingest; gives the exit status."""
    return run_rounds(
        args,
        args.source,
        args.path,
        format=args.format,
        sql=args.sql,
        operation=args.operation,
        record_key=args.key,
        partition_by=args.partition_by,
        ordering=args.ordering,
        table_type=args.type,
        changes=args.changes,
        max_files=args.max_files,
        max_bytes=args.max_bytes,
        max_rows=args.max_rows,
        interval_s=args.every,
        options=options,
        storage_options=reached_by,
        source_options=dict(args.source_options),
    )
