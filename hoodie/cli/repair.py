"""The command `repair`: what is damaged beside the rows. A dry run unless --yes is given."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from hoodie.cli.arguments import Commands, UnopenedTable, add_storage_command, assignment, duration
from hoodie.cli.report import Report, format_table
from hoodie.errors import OptionError
from hoodie.lock.providers import coordinate
from hoodie.model.findings import YOUNG_S, PropertiesRepair, Repair, RepairKind, RepairResult
from hoodie.model.names import hoodie_command
from hoodie.model.results import format_count
from hoodie.repair.properties_repair import plan_properties, repair_at
from hoodie.table import HoodieTable
from hoodie.txn.heartbeat import undisturbed

_DRY = "dry run: nothing was changed; add --yes to do it"


def register(to: Commands) -> None:
    added = add_storage_command(
        to, "repair", "mend damage outside of the rows; a dry run unless --yes is given", repair
    )
    added.add_argument(
        "what",
        metavar="WHAT",
        nargs="?",
        choices=[kind.value for kind in RepairKind],
        help="partition-metadata, stray-files, plans, metadata-table, bootstrap-index or properties (default: all but properties)",
    )
    added.add_argument(
        "--set",
        dest="known",
        metavar="PROPERTY=VALUE",
        type=assignment,
        action="append",
        default=[],
        help="properties: a value that you know; it wins over the value that is found. An empty one says that there is none",
    )
    added.add_argument(
        "--older-than",
        metavar="TIME",
        type=duration,
        default=YOUNG_S,
        help="younger files are left alone: 90s, 5m, 1h (default 1h)",
    )
    added.add_argument("--undo", metavar="NAME", help="put back the files that the repair of this name moved away")
    added.add_argument("--yes", action="store_true", help="do it")


def repair(opening: UnopenedTable, args: argparse.Namespace) -> Report:
    """Mend, or say what would be mended."""
    if args.known and args.what != RepairKind.PROPERTIES:
        raise OptionError("--set goes with `hoodie repair PATH properties`")
    if args.undo:
        _, table = opening.table()
        paths = table.undo_repair(args.undo)
        return Report({"put_back": paths}, (f"{format_count(len(paths), 'file')} put back", *paths))
    if args.what == RepairKind.PROPERTIES:
        return _properties(opening, dict(args.known), really=args.yes)
    _, table = opening.table()
    result = table.repair(args.what, dry_run=not args.yes, older_than_s=args.older_than)
    return _report(result, table)


def _report(result: RepairResult, table: HoodieTable) -> Report:
    data = {
        "dry_run": result.dry_run,
        "repairs": _data(result.repairs),
        "left_alone": _data(result.left),
        "set_aside": result.set_aside,
    }
    lines = [f"{each.path}: {each.why}" for each in result.repairs]
    lines += [f"left alone: {each.path}: {each.why}" if each.path else each.why for each in result.left]
    if result.set_aside:
        lines.append(
            f"moved away as {result.set_aside}: {hoodie_command('repair', table.uri, '--undo', result.set_aside)} puts the files back"
        )
    lines.append(_DRY if result.dry_run and result.repairs else str(result))
    return Report(data, tuple(lines))


def _data(repairs: Iterable[Repair]) -> list[dict[str, object]]:
    return [{"kind": r.kind.value, "path": r.path, "why": r.why, "bytes": r.size_bytes} for r in repairs]


def _properties(opening: UnopenedTable, given_values: dict[str, str], *, really: bool) -> Report:
    if really:
        concurrency = opening.concurrency()
        lock = coordinate(opening.storage, concurrency).lock
        with undisturbed():
            result = repair_at(opening.storage, lock, given_values, timeout_s=concurrency.lock_timeout_s)
    else:
        result = plan_properties(opening.storage, given_values)
    return _properties_report(result)


def _properties_report(result: PropertiesRepair) -> Report:
    data = {
        "dry_run": result.dry_run,
        "damage": result.damage,
        "properties": [{"key": p.key, "value": p.value, "source": p.source} for p in result.properties],
        "unknown": list(result.unknown),
        "set_aside": result.set_aside,
    }
    if result.damage is None:
        return Report(data, (str(result),))
    lines = [result.damage]
    if result.properties:
        lines += format_table(("property", "value", "from"), [(p.key, p.value, p.source) for p in result.properties])
    lines += [f"not known, {each}" for each in result.unknown]
    if result.unknown:
        lines.append("give the missing values: --set PROPERTY=VALUE; an empty value says that there is none")
    elif result.dry_run:
        lines.append(_DRY)
    else:
        lines.append(
            "the properties were written"
            + (f"; the old file is kept as {result.set_aside}" if result.set_aside else "")
        )
    return Report(data, tuple(lines))
