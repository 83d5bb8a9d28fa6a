"""The commands `check`, `validate` and `doctor`: whether a table, such as a copy of one, is whole, and what it lacks."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from hoodie.cli.arguments import Commands, UnopenedTable, add_command, add_storage_command
from hoodie.cli.report import Report, format_pairs
from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.model.findings import Diagnosis, Finding, Level
from hoodie.model.results import format_count, format_size
from hoodie.repair.doctor import diagnose_properties
from hoodie.table import HoodieTable
from hoodie.view.context import TableContext


def register(to: Commands) -> None:
    added = add_command(to, "check", "check that the table, or a copy of it, is whole", check)
    added.add_argument("--rows", action="store_true", help="read all rows of the newest state, too")
    added = add_command(to, "validate", "check every file and, with --deep, every row of the newest state", validate)
    added.add_argument("--deep", action="store_true", help="read all rows: keys, footers and bloom filters")
    added = add_storage_command(to, "doctor", "find out what is wrong with the table, and how to mend it", doctor)
    added.add_argument("--deep", action="store_true", help="read all rows, also of a table of more than 64 MB")


def check(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """Every file of the newest state is there with all the bytes that its commit states; modification times are as they were.

    Raises:
        CorruptFileError: something is wrong; the text names the file and what to do.
    """
    validation = table.validate()
    for problem in validation.problems:
        raise CorruptFileError(f"table {context.storage.uri}: {problem}")
    data: dict[str, object] = {
        "commits": validation.commits,
        "file_groups": validation.file_groups,
        "bytes": validation.size_bytes,
    }
    pairs = [
        ("commits", f"{validation.commits:,}"),
        ("file groups", f"{validation.file_groups:,}"),
        ("size", format_size(validation.size_bytes)),
    ]
    if args.rows:
        data["rows"] = sum(batch.num_rows for batch in table.scan().to_reader())
        pairs.append(("rows read", f"{data['rows']:,}"))
    return Report(data, ("the table is whole", *format_pairs(pairs)))


def validate(context: TableContext, table: HoodieTable, args: argparse.Namespace) -> Report:
    """All problems of the newest state at once; the status is 1 when there is one."""
    validation = table.validate(deep=args.deep)
    data: dict[str, object] = {
        "valid": validation.is_valid,
        "problems": _finding_data(validation.problems),
        "commits": validation.commits,
        "partitions": validation.partitions,
        "file_groups": validation.file_groups,
        "bytes": validation.size_bytes,
        "rows": validation.rows,
    }
    pairs = [
        ("commits", f"{validation.commits:,}"),
        ("partitions", f"{validation.partitions:,}"),
        ("file groups", f"{validation.file_groups:,}"),
        ("size", format_size(validation.size_bytes)),
        *([] if validation.rows is None else [("rows read", f"{validation.rows:,}")]),
    ]
    head = "the table is whole" if validation else format_count(len(validation.problems), "problem")
    return Report(data, (head, *map(str, validation.problems), *format_pairs(pairs)), failed=not validation)


def doctor(opening: UnopenedTable, args: argparse.Namespace) -> Report:
    """What is wrong with the table, also when it cannot be opened; the status is 1 when something asks for a mend."""
    try:
        _, table = opening.table()
    except (CorruptFileError, UnsupportedTableError, FileNotFoundError):
        damage = diagnose_properties(opening.storage)
        if damage is None:
            raise
    else:
        damage = table.doctor(deep=args.deep or None)
    return _doctor_report(damage)


def _doctor_report(diagnosis: Diagnosis) -> Report:
    data = {"healthy": diagnosis.is_healthy, "findings": _finding_data(diagnosis.findings)}
    lines: list[str] = []
    for level, head in ((Level.DAMAGE, "damaged"), (Level.NEGLECT, "neglected"), (Level.NOTE, "worth knowing")):
        those = [each for each in diagnosis.findings if each.level is level]
        if those:
            lines.append(f"{head}:")
            lines += [line for each in those for line in _lines(each)]
    return Report(
        data,
        ("the table is healthy", *lines) if diagnosis.is_healthy else tuple(lines),
        failed=not diagnosis.is_healthy,
    )


def _lines(finding: Finding) -> Iterable[str]:
    yield f"  - {finding.what}"
    if finding.mend:
        yield f"    {finding.mend}"


def _finding_data(findings: Iterable[Finding]) -> list[Mapping[str, Any]]:
    return [{"kind": f.kind, "level": f.level.value, "what": f.what, "path": f.path, "mend": f.mend} for f in findings]
