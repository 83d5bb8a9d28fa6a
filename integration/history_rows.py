"""The rows that a history leaves behind, worked out in plain Python, without a file and without Arrow.

Where the answer depends on where a writer put a row, the model says so instead of guessing: a key is *unsure* when it was
removed from a merge-on-read table and written again with an ordering value below the greatest that it ever had. Then the
two stages of Hudi's merge and the compactions in between decide (Hudi itself is then the only judge).
"""

from collections.abc import Iterable
from typing import Any

from integration.histories import DELETED, MOR, Shape, Step, Values, key_of

Key = tuple[Any, ...]


class ExpectedRows:
    """One dict entry a key; `unsure` keys are left out of every comparison."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.unsure: set[Key] = set()
        self._rows: dict[Key, Values] = {}
        self._greatest: dict[Key, tuple[Any, ...]] = {}
        """The greatest ordering value of each key since its file group was made."""
        self._saved: tuple[set[Key], dict[Key, Values], dict[Key, tuple[Any, ...]]] | None = None
        """All of this as it was at the savepoint."""

    @property
    def rows(self) -> list[Values]:
        return [row for key, row in self._rows.items() if key not in self.unsure]

    def keep_sure(self, rows: Iterable[Values], key: Any) -> list[Values]:
        """Those of some reader's rows that can be compared."""
        return [row for row in rows if key(row) not in self.unsure]

    def apply(self, step: Step) -> None:
        operation = step.operation.partition("+")[0]
        if operation == "upsert":
            self._upsert(step.rows)
        elif operation == "delete":
            for row in step.rows:
                self._remove(key_of(self.shape, row))
        elif operation in {"insert", "bulk_insert", "partial"}:
            self._upsert(step.rows, partial=operation == "partial")
        elif operation in {"insert_overwrite", "delete_partition"}:
            self._forget({self._partition(key_of(self.shape, row)) for row in step.rows})
        elif operation == "insert_overwrite_table":
            self._forget({self._partition(key) for key in self._greatest})
        elif operation == "savepoint":
            self._saved = self.unsure.copy(), self._rows.copy(), self._greatest.copy()
        elif operation == "restore" and self._saved is not None:
            unsure, rows, greatest = self._saved
            self.unsure, self._rows, self._greatest = unsure.copy(), rows.copy(), greatest.copy()
        if operation.startswith("insert_overwrite"):
            self._upsert(step.rows)

    def _upsert(self, rows: Iterable[Values], *, partial: bool = False) -> None:
        batch: dict[Key, Values] = {}
        for row in rows:
            key = key_of(self.shape, row)
            if key not in batch or self._ordering(row) >= self._ordering(batch[key]):
                batch[key] = row
        for key, row in batch.items():
            if row.get(DELETED) and None in self._values(row):
                self._remove(key)  # as the operation does: it always wins
            else:
                self._merge(key, row, partial=partial)

    def _merge(self, key: Key, row: Values, *, partial: bool) -> None:
        new = self._ordering(row)
        greatest = self._greatest.get(key, new)
        self._greatest[key] = max(new, greatest)
        if key in self.unsure or key not in self._rows:
            if self.shape.table_type == MOR and new < greatest:
                self.unsure.add(key)
                return
            self.unsure.discard(key)
        elif new < self._ordering(self._rows[key]):
            return
        if row.get(DELETED):
            self._rows.pop(key, None)
        else:
            self._rows[key] = self._rows.get(key, {}) | row if partial else row

    def _forget(self, partitions: set[Key]) -> None:
        """These partitions begin anew."""
        for known in (self._rows, self._greatest):
            for key in [key for key in known if self._partition(key) in partitions]:
                del known[key]
        self.unsure = {key for key in self.unsure if self._partition(key) not in partitions}

    def _partition(self, key: Key) -> Key:
        return key[: len(self.shape.partition_fields)]

    def _remove(self, key: Key) -> None:
        self._rows.pop(key, None)
        self.unsure.discard(key)

    def _ordering(self, row: Values) -> tuple[Any, ...]:
        return tuple(value or 0 if self.shape.null_ordering else value for value in self._values(row))

    def _values(self, row: Values) -> tuple[Any, ...]:
        return tuple(row[name] for name in self.shape.ordering_fields) if self.shape.event_time else ()
