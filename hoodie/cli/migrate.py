"""The command `migrate`: a folder of Parquet files, a Delta table or an Iceberg table becomes a table."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict

from hoodie.cli.arguments import Commands, add_options, add_source_options, columns, table_path
from hoodie.cli.report import harmless_json
from hoodie.errors import harmless
from hoodie.migration.migrate import MODES, STEP_BYTES, migrate
from hoodie.migration.sources import FORMATS
from hoodie.model.migration_results import MigrationStep

DONE, DIFFERENT = 0, 1


def register(to: Commands) -> None:
    text = "convert a folder of Parquet files, a Delta table or an Iceberg table; run it again if it died"
    added = to.add_parser("migrate", help=text, description=text)
    added.add_argument(
        "source", metavar="SOURCE", type=table_path, help="the folder of the files, or of the other table"
    )
    added.add_argument("path", metavar="PATH", type=table_path, help="the folder of the new table")
    added.add_argument("--key", metavar="COLUMNS", type=columns, required=True, help="record key")
    added.add_argument(
        "--partition-by", metavar="COLUMNS", type=columns, help="partition (default: as the source; '': none)"
    )
    added.add_argument("--ordering", metavar="COLUMNS", type=columns, help="ordering")
    added.add_argument("--type", choices=["COPY_ON_WRITE", "MERGE_ON_READ"], help="of the table")
    added.add_argument("--table-version", type=int, choices=[6, 8, 9], help="of the table's format")
    added.add_argument("--name", help="of the table (default: as its folder)")
    added.add_argument("--format", choices=list(FORMATS), help="of the source (default: by what is in the folder)")
    added.add_argument("--mode", choices=list(MODES), default="copy", help="how the rows get into the table")
    added.add_argument(
        "--step-bytes",
        metavar="N",
        type=int,
        default=STEP_BYTES,
        help="bytes of source files a commit (default: 1 GiB)",
    )
    added.add_argument("--no-check", action="store_true", help="do not read source and table once more at the end")
    added.add_argument(
        "--dry-run", action="store_true", help="look at the source and all of its keys, and write nothing"
    )
    add_source_options(added, "how to reach the storage of the source")
    add_options(added)
    added.set_defaults(alone=run)


def run(args: argparse.Namespace, options: Mapping[str, str], reached_by: Mapping[str, str]) -> int:
    """Migrate; gives the exit status, 1 if source and table differ. Each step is printed when it is done."""

    def tell(step: MigrationStep) -> None:
        print(harmless_json({"step": asdict(step)}) if args.json else harmless(str(step)), flush=True)

    result = migrate(
        args.source,
        args.path,
        record_key=args.key,
        partition_by=args.partition_by,
        ordering=args.ordering,
        table_type=args.type,
        table_version=args.table_version,
        name=args.name,
        format=args.format,
        mode=args.mode,
        step_bytes=args.step_bytes,
        check=not args.no_check,
        dry_run=args.dry_run,
        options=options,
        storage_options=reached_by,
        source_options=dict(args.source_options),
        on_step=tell,
    )
    print(harmless_json({**asdict(result), "ok": result.ok}) if args.json else harmless(str(result)))
    return DONE if result.ok else DIFFERENT
