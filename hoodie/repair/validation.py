"""Whether the newest snapshot of a table is complete: the damage that checks find, and how much they checked."""

from __future__ import annotations

from hoodie.errors import HoodieError
from hoodie.model.findings import Level, ValidationResult
from hoodie.options.write import WriteOptions
from hoodie.repair.check_rows import Rows
from hoodie.repair.checks import run_checks
from hoodie.repair.look import Look
from hoodie.view.context import TableContext


def validate(context: TableContext, options: WriteOptions, *, deep: bool) -> ValidationResult:
    """Look at the newest state of the table. Nothing is changed."""
    look = Look(context.on_storage(), options)
    findings = tuple(run_checks(look, deep=deep, levels=frozenset({Level.DAMAGE})))
    try:
        commits, slices = len(look.snapshot.timeline.commits), look.snapshot.view.latest_slices()
    except HoodieError:
        return ValidationResult(findings)
    rows = look.rows
    return ValidationResult(
        findings,
        commits=commits,
        partitions=len({each.group.partition_path for each in slices}),
        file_groups=len(slices),
        size_bytes=sum(each.size_bytes for each in slices),
        rows=rows.total if isinstance(rows, Rows) else None,
    )
