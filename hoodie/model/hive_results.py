"""What a registration in a Hive metastore changed there."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.model.results import BriefRepr, format_count


@dataclass(frozen=True, repr=False)
class RegisteredTable(BriefRepr):
    """One table of the metastore."""

    name: str
    """With its database."""
    made: bool = False
    columns: tuple[str, ...] = ()
    """What changed of them, each as `fare added`."""
    properties_changed: bool = False
    added: tuple[str, ...] = ()
    """Partition paths."""
    updated: tuple[str, ...] = ()
    """Those that were registered anew with another place."""
    dropped: tuple[str, ...] = ()
    noted: str | None = None
    """The commit up to which it is registered by now; None as before."""

    @property
    def changed(self) -> bool:
        """Whether anything but the note of the last commit changed."""
        parts = (self.columns, self.added, self.updated, self.dropped)
        return self.made or self.properties_changed or any(parts)

    def __str__(self) -> str:
        parts = ["made"] if self.made else []
        parts += [*self.columns] if not self.made else []
        parts += ["properties changed"] if self.properties_changed else []
        for paths, what in ((self.added, "added"), (self.updated, "updated"), (self.dropped, "dropped")):
            parts += [f"{format_count(len(paths), 'partition')} {what}"] if paths else []
        return f"{self.name}: {', '.join(parts) or 'up to date'}"


@dataclass(frozen=True, repr=False)
class HiveSyncResult(BriefRepr):
    """What a registration did, or in a dry run would do."""

    tables: tuple[RegisteredTable, ...] = ()
    database_made: str | None = None
    dry_run: bool = False
    seconds: float = 0.0

    @property
    def changed(self) -> bool:
        """Whether anything but the notes of the last commit changed."""
        return self.database_made is not None or any(table.changed for table in self.tables)

    def __str__(self) -> str:
        tables = "; ".join(map(str, self.tables))
        return f"hive sync, dry run: {tables}" if self.dry_run else f"hive sync: {tables}; {self.seconds:.2f} s"
