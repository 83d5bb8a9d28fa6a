"""The clauses of a MERGE, and what they would do: the answer of `Merge.explain`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from hoodie.model.html import html_rows
from hoodie.model.plans import COLUMNAR_SHRINK, AppendTask, CreateTask, MergeTask
from hoodie.model.results import format_count, format_size

if TYPE_CHECKING:
    from hoodie.write.plan import WritePlan


class Case(Enum):
    """Which rows a clause is about."""

    MATCHED = "matched"
    NOT_MATCHED = "not_matched"
    NOT_MATCHED_BY_SOURCE = "not_matched_by_source"


@dataclass(frozen=True)
class Clause:
    case: Case
    condition: str | None
    updates: Mapping[str, Any] | None = None
    """Column -> expression of SQL, or a value."""
    all_columns: bool = False
    """Columns take the values that the source has under their names."""

    @property
    def deletes(self) -> bool:
        return self.updates is None and not self.all_columns

    @property
    def text(self) -> str:
        """As SQL writes it, but for the values."""
        what = "insert" if self.case is Case.NOT_MATCHED else "delete" if self.deletes else "update"
        condition = f" and {self.condition}" if self.condition else ""
        columns = " *" if self.all_columns else f" {', '.join(self.updates)}" if self.updates else ""
        return f"when {self.case.value.replace('_', ' ')}{condition} then {what}{columns}"


@dataclass
class Tally:
    """Counts the rows of a MERGE while it is worked out."""

    source_rows: int = 0
    by_clause: Counter[int] = field(default_factory=Counter)
    matched: int = 0
    """Pairs of a stored row and one of the source, with a clause or without."""


@dataclass(frozen=True)
class ClauseRows:
    """A clause, and how many rows go by it."""

    clause: str
    change: str
    """"updated", "deleted" or "inserted"."""
    rows: int


@dataclass(frozen=True, repr=False)
class MergePlan:
    """What a MERGE would do to the table as it is now. Nothing has been written."""

    table: str
    source_rows: int
    matched: int
    """Rows of the source that have a stored row beside them, also where no clause fits them."""
    clauses: tuple[ClauseRows, ...]
    partitions: int
    """In which files would be written."""
    rewritten: int
    """File groups that would get a new base file in place of their newest one."""
    appended: int
    """File groups that would get log files."""
    created: int
    """New file groups."""
    bytes_to_write: int
    """An estimate: by the sizes of the files that are rewritten, and of the rows in memory."""

    @property
    def inserted(self) -> int:
        return self._rows("inserted")

    @property
    def updated(self) -> int:
        return self._rows("updated")

    @property
    def deleted(self) -> int:
        return self._rows("deleted")

    @property
    def file_groups(self) -> int:
        """All that would be written to."""
        return self.rewritten + self.appended + self.created

    def _rows(self, change: str) -> int:
        return sum(each.rows for each in self.clauses if each.change == change)

    def __str__(self) -> str:
        lines = [self._title()]
        lines += [f"  {each.clause}: {format_count(each.rows, 'row')} {each.change}" for each in self.clauses]
        return "\n".join([*lines, f"  {self._files()}"])

    def __repr__(self) -> str:
        return f"<MergePlan {self}>"

    def _repr_html_(self) -> str:
        rows = [(each.clause, each.change, each.rows) for each in self.clauses]
        return html_rows(f"{self._title()}; {self._files()}", ("clause", "rows are", "rows"), rows)

    def _title(self) -> str:
        return (
            f"MERGE into {self.table}, not run: {self.matched:,} of {format_count(self.source_rows, 'row')} of the source "
            "meet a stored row"
        )

    def _files(self) -> str:
        if not self.file_groups:
            return "writes nothing"
        kinds = ((self.rewritten, "rewritten"), (self.appended, "with new logs"), (self.created, "new"))
        parts = ", ".join(f"{count:,} {what}" for count, what in kinds if count)
        where = format_count(self.partitions, "partition")
        return f"writes about {format_size(self.bytes_to_write)} to {format_count(self.file_groups, 'file group')} in {where}: {parts}"

    @classmethod
    def of(cls, table: str, clauses: Sequence[Clause], tally: Tally, plan: WritePlan | None) -> MergePlan:
        """`plan`: None where there is nothing to write."""
        tasks = plan.tasks if plan is not None else ()
        groups = {
            kind: {(task.partition_path, task.file_id) for task in tasks if isinstance(task, kind)}
            for kind in (MergeTask, AppendTask, CreateTask)
        }
        return cls(
            table=table,
            source_rows=tally.source_rows,
            matched=tally.matched,
            clauses=tuple(
                ClauseRows(clause.text, _change(clause), tally.by_clause[number])
                for number, clause in enumerate(clauses)
            ),
            partitions=len({task.partition_path for task in tasks}),
            rewritten=len(groups[MergeTask]),
            appended=len(groups[AppendTask]),
            created=len(groups[CreateTask]),
            bytes_to_write=sum(
                # A log has rows in Avro, which are about as large as in memory.
                task.size_bytes if isinstance(task, AppendTask) else task.size_bytes // COLUMNAR_SHRINK
                for task in tasks
            ),
        )


def _change(clause: Clause) -> str:
    return "inserted" if clause.case is Case.NOT_MATCHED else "deleted" if clause.deletes else "updated"
