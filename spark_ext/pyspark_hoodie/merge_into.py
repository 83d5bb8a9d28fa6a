"""`df.mergeInto` of a hoodie table: hoodie keeps the clauses until `merge()` carries them out.

In a classic session Spark carries them out, on a table that already has the columns that the MERGE adds. On Connect the client makes
one DataFrame of the changed rows, as `sql_changes.py` does for statements, and commits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from hoodie.errors import OptionError, SchemaError, TableNotFoundError
from hoodie.model.meta_fields import META_COLUMNS
from pyspark_hoodie import sql_catalog
from pyspark_hoodie.frame_marks import is_classic
from pyspark_hoodie.merge_frames import Merged, RowClause, given_value, with_given, with_stored
from pyspark_hoodie.sql_added import adding
from pyspark_hoodie.sql_changes import BY_SOURCE, MATCHED, NOT_MATCHED, assigned_column
from pyspark_hoodie.sql_entries import entry_of
from pyspark_hoodie.sql_evolution import lacking, only
from pyspark_hoodie.sql_reads import Parts
from pyspark_hoodie.sql_table import CatalogTable
from pyspark_hoodie.sql_words import Words, within
from pyspark_hoodie.where import quoted

_METHODS = {MATCHED: "whenMatched", NOT_MATCHED: "whenNotMatched", BY_SOURCE: "whenNotMatchedBySource"}
"""Those of Spark's writer."""
_DELETE, _UPDATE, _INSERT, _UPDATE_ALL, _INSERT_ALL = "delete", "update", "insert", "updateAll", "insertAll"


class _Clause(NamedTuple):
    case: str
    condition: Column | None
    verb: str
    """The method that ended it."""
    assignments: Mapping[str, Column]

    @property
    def takes_all(self) -> bool:
        return self.verb in (_UPDATE_ALL, _INSERT_ALL)


class MergeInto:
    """In place of Spark's MergeIntoWriter, with its methods."""

    def __init__(self, source: DataFrame, name: str, condition: Column, merge_into: Callable[..., Any]) -> None:
        """`merge_into` is Spark's own method of the DataFrame."""
        self._source, self._name, self._condition, self._merge_into = source, name, condition, merge_into
        self._spark: Any = source.sparkSession
        self._parts = Words(name).name("a table")
        self._target = self._parts[-1] if "/" not in self._parts[-1] else "hoodie_target"
        """What expressions call the table."""
        self._clauses: list[_Clause] = []
        self._evolves = False

    def whenMatched(self, condition: Column | None = None) -> _WhenMatched:
        return _WhenMatched(self, MATCHED, condition)

    def whenNotMatched(self, condition: Column | None = None) -> _WhenNotMatched:
        return _WhenNotMatched(self, NOT_MATCHED, condition)

    def whenNotMatchedBySource(self, condition: Column | None = None) -> _WhenNotMatchedBySource:
        return _WhenNotMatchedBySource(self, BY_SOURCE, condition)

    def withSchemaEvolution(self) -> MergeInto:
        self._evolves = True
        return self

    def merge(self) -> None:
        if not self._clauses:
            raise OptionError(
                f"mergeInto({self._name!r}) does nothing: add whenMatched(), whenNotMatched() or another clause"
            )
        carry_out = self._by_spark if is_classic(self._spark) else self._by_client
        if not self._evolves:
            carry_out()
            return
        table = sql_catalog.table_of(self._spark, self._name)
        added = lacking(table, only(self._source.schema.fields, self._assigned()))
        with adding(self._spark, table.uri, added):
            carry_out()

    def add(self, clause: _Clause) -> MergeInto:
        self._clauses.append(clause)
        return self

    def _assigned(self) -> set[tuple[str, ...]] | None:
        """Columns and fields, in lower case, that a clause gives to the table; None: all of the source's."""
        if any(clause.takes_all for clause in self._clauses):
            return None
        paths = [self._column_parts(key) for clause in self._clauses for key in clause.assignments]
        return {tuple(part.lower() for part in path) for path in paths}

    def _column_parts(self, key: str) -> list[str]:
        words = Words(key)
        parts = words.name("a column to set")
        if not words.is_over:
            words.refuse(f"{key!r} names no column")
        return within(parts, self._parts)

    def _common(self, names: Iterable[str]) -> list[str]:
        """Which columns of the source updateAll and insertAll take, of those that the table has."""
        if not any(clause.takes_all for clause in self._clauses):
            return []
        lower_names = {name.lower() for name in names}
        return [name for name in self._source.columns if name.lower() in lower_names]

    def _by_spark(self) -> None:
        """For updateAll and insertAll Spark wants all of the table's columns: where some may lack, those of the source are named."""
        common = self._common(self._spark.table(self._name).columns) if self._evolves else []
        writer = self._merge_into(with_given(self._source, common), self._name, self._condition)
        for clause in self._clauses:
            when = getattr(writer, _METHODS[clause.case])(clause.condition)
            verb, assignments = clause.verb, clause.assignments
            if self._evolves and clause.takes_all:
                verb = verb.removesuffix("All")
                assignments = {quoted(name): given_value(name) for name in common}
            writer = getattr(when, verb)(*([assignments] if verb in (_UPDATE, _INSERT) else []))
        writer.merge()

    def _by_client(self) -> None:
        entry = entry_of(self._spark, self._parts)
        if entry is None:
            raise TableNotFoundError(f"there is no table {self._name} any more")
        table = Parts(self._spark).table(entry)
        table.require_changeable("MERGE")
        names = table.schema.names
        common = self._common(names)
        absent = sorted({name.lower() for name in names} - {name.lower() for name in common})
        if absent and not self._evolves and any(clause.takes_all for clause in self._clauses):
            raise SchemaError(f"the rows for table {self._name} lack its column {absent[0]}")
        values = [self._values(clause, names, common) for clause in self._clauses]
        deletes = all(each is None for each in values)
        table.change(lambda: self._changes(table, common, values, only_deletes=deletes), deletes=deletes)

    def _values(self, clause: _Clause, names: Sequence[str], common: Iterable[str]) -> dict[str, Column] | None:
        """New values of the table's columns that the clause sets; None: it deletes."""
        if clause.verb == _DELETE:
            return None
        if clause.takes_all:
            there = {name.lower(): name for name in common}
            return {name: given_value(there[name.lower()]) for name in names if name.lower() in there}
        found: dict[str, Column] = {}
        for key, value in clause.assignments.items():
            name = assigned_column(self._column_parts(key), names)
            if name in found:
                raise OptionError(f"{clause.verb} sets column {name} twice")
            found[name] = value
        return found

    def _changes(
        self,
        table: CatalogTable,
        common: Sequence[str],
        values: Sequence[dict[str, Column] | None],
        *,
        only_deletes: bool,
    ) -> DataFrame:
        """Key and path of stored rows, whether they go, and new values."""
        names = table.schema.names
        source = with_given(self._source, common)
        stored = with_stored(table.rows([*names, *META_COLUMNS]), names)
        target = _with_long_names(stored, self._parts, names, source.columns).alias(self._target)
        clauses = [RowClause(each.case, each.condition, new) for each, new in zip(self._clauses, values, strict=True)]
        return Merged(target, source, self._condition, clauses).changes([] if only_deletes else table.schema.fields)


class _When:
    def __init__(self, writer: MergeInto, case: str, condition: Column | None) -> None:
        self._writer, self._case, self._condition = writer, case, condition

    def _end(self, verb: str, assignments: Mapping[str, Column] | None = None) -> MergeInto:
        return self._writer.add(_Clause(self._case, self._condition, verb, dict(assignments or {})))


class _WhenMatched(_When):
    def updateAll(self) -> MergeInto:
        return self._end(_UPDATE_ALL)

    def update(self, assignments: Mapping[str, Column]) -> MergeInto:
        return self._end(_UPDATE, assignments)

    def delete(self) -> MergeInto:
        return self._end(_DELETE)


class _WhenNotMatched(_When):
    def insertAll(self) -> MergeInto:
        return self._end(_INSERT_ALL)

    def insert(self, assignments: Mapping[str, Column]) -> MergeInto:
        return self._end(_INSERT, assignments)


class _WhenNotMatchedBySource(_WhenMatched):
    def updateAll(self) -> MergeInto:
        raise OptionError(
            "whenNotMatchedBySource().updateAll() has no row of the source to take: use update({…}), or delete()"
        )


def _with_long_names(frame: DataFrame, table: Sequence[str], names: Sequence[str], others: Sequence[str]) -> DataFrame:
    """The frame with a struct `db`, whose field `t` has the columns: so Spark finds `db.t.column`, as an alias has one part alone.

    Args:
        table: the parts of its name. others: columns that it is joined with.
    """
    used_names = {name.lower() for name in (*frame.columns, *others)}
    for at, first in enumerate(table[:-1]):
        value = F.struct(*[F.col(quoted(name)) for name in names])
        for part in reversed(table[at + 1 :]):
            value = F.struct(value.alias(part))
        frame = frame if first.lower() in used_names else frame.withColumn(first, value)
    return frame
