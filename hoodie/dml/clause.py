"""The clauses of a MERGE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


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
