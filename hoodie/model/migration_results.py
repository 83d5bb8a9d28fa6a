"""What a migration did, or would do."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.model.results import format_count


@dataclass(frozen=True, repr=False)
class MigrationStep:
    """Files of the source whose rows one commit has."""

    number: int
    """From 0 on, also of those of earlier runs."""
    files: int
    done: int
    """Files of the source that are written by now."""
    of: int
    """Files of the source."""
    rows: int
    instant: str | None
    """Of the commit; None where another process has written the same step."""
    seconds: float = 0.0

    def __str__(self) -> str:
        written = f"{format_count(self.rows, 'row')} of {format_count(self.files, 'file')}"
        instant = f"instant {self.instant or 'of another process'}"
        return f"step {self.number}: {written}, {self.done} of {self.of} files done; {instant}; {self.seconds:.2f} s"

    def __repr__(self) -> str:
        return f"<MigrationStep {self}>"


@dataclass(frozen=True)
class ColumnCheck:
    """A column as the source has it, and as the table has it afterwards."""

    column: str
    """`*`: whole rows."""
    source_nulls: int
    target_nulls: int
    source_hash: str
    """The sum of the hashes of all values, which does not depend on the order of the rows."""
    target_hash: str

    @property
    def ok(self) -> bool:
        """Whether both have the same values, as far as nulls and hashes tell."""
        return self.source_nulls == self.target_nulls and self.source_hash == self.target_hash


@dataclass(frozen=True, repr=False)
class MigrationResult:
    """What one call did."""

    source: str
    target: str
    format: str
    """parquet, delta or iceberg."""
    version: str | None
    """Of the source, which was read: a version of Delta, a snapshot of Iceberg."""
    mode: str
    files: int
    """Of the source."""
    bytes: int
    planned_steps: int
    """That this call had to do."""
    columns: tuple[str, ...]
    partition_by: tuple[str, ...]
    notes: tuple[str, ...] = ()
    """Parts of the source that are not migrated, and other remarks."""
    done_before: int = 0
    """Files that an earlier run has written."""
    steps: tuple[MigrationStep, ...] = ()
    source_rows: int | None = None
    """None: not counted, where the source does not say it and nothing was checked."""
    target_rows: int | None = None
    """None: not checked."""
    checks: tuple[ColumnCheck, ...] = ()
    dry_run: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """False if the check found that source and table differ."""
        return all(each.ok for each in self.checks) and self.target_rows in (None, self.source_rows)

    @property
    def differing(self) -> tuple[str, ...]:
        """Columns that differ."""
        return tuple(each.column for each in self.checks if not each.ok)

    def __str__(self) -> str:
        version = f" at version {self.version}" if self.version else ""
        rows = format_count(self.source_rows, "row") if self.source_rows is not None else "rows that are not counted"
        lines = [
            f"{self.format} {self.source}{version}: {format_count(self.files, 'file')}, {self.bytes:,} bytes, {rows}",
            f"into {self.target}, partitioned by {', '.join(self.partition_by) or 'nothing'}, mode {self.mode}",
        ]
        lines += [f"note: {note}" for note in self.notes]
        if self.done_before:
            lines.append(f"{format_count(self.done_before, 'file')} written by an earlier run")
        if self.dry_run:
            return "\n".join([*lines, f"dry run: {format_count(self.planned_steps, 'step')}, nothing written"])
        lines.append(f"{format_count(len(self.steps), 'step')} written in {self.seconds:.1f} s")
        if self.target_rows is None:
            lines.append("not checked")
        elif self.ok:
            same = format_count(self.target_rows, "row")
            lines.append(f"checked: {same}, and the hashes of {format_count(len(self.columns), 'column')} are the same")
        else:
            differ = ", ".join(self.differing) or "none"
            lines.append(
                f"DIFFERENT: {self.target_rows} rows in the table, {self.source_rows} in the source; columns: {differ}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<MigrationResult {self.source} -> {self.target}, {len(self.steps)} steps, ok={self.ok}>"
