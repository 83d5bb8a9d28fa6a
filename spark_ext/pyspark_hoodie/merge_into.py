"""`df.mergeInto` of a hoodie table: hoodie keeps the clauses until `merge()` carries them out.

In a classic session Spark carries them out, on a table that already has the columns that the MERGE adds. On Connect the client makes
one DataFrame of the changed rows, as `sql_changes.py` does for statements, and commits it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from hoodie.errors import OptionError, SchemaError, TableNotFoundError
from hoodie.model.meta_fields import META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from pyspark_hoodie import sql_catalog
from pyspark_hoodie.frame_marks import is_classic
from pyspark_hoodie.sql_added import adding
from pyspark_hoodie.sql_changes import BY_SOURCE, MATCHED, NOT_MATCHED, TWO_ROWS, assigned_column
from pyspark_hoodie.sql_entries import entry_of
from pyspark_hoodie.sql_evolution import lacking, only
from pyspark_hoodie.sql_reads import Parts
from pyspark_hoodie.sql_table import CatalogTable
from pyspark_hoodie.sql_words import Words, within
from pyspark_hoodie.where import quoted

_METHODS = {MATCHED: "whenMatched", NOT_MATCHED: "whenNotMatched", BY_SOURCE: "whenNotMatchedBySource"}
"""Those of Spark's writer."""
_DELETE, _UPDATE, _INSERT, _UPDATE_ALL, _INSERT_ALL = "delete", "update", "insert", "updateAll", "insertAll"
_KEY, _PATH, _CLAUSE, _TIMES = "hoodie_key", "hoodie_path", "hoodie_clause", "hoodie_times"
_STORED, _GIVEN = "hoodie_stored_", "hoodie_given_"
"""How copies of columns of the table and of the source begin. No other column has such a name, which both might have otherwise."""


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
        writer = self._merge_into(_with_copies(self._source, _GIVEN, common), self._name, self._condition)
        for clause in self._clauses:
            when = getattr(writer, _METHODS[clause.case])(clause.condition)
            verb, assignments = clause.verb, clause.assignments
            if self._evolves and clause.takes_all:
                verb = verb.removesuffix("All")
                assignments = {quoted(name): _copy(_GIVEN, name) for name in common}
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
            return {name: _copy(_GIVEN, there[name.lower()]) for name in names if name.lower() in there}
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
        fields = table.schema.fields
        rows = table.rows([*table.schema.names, *META_COLUMNS])
        keyed = rows.withColumns({_KEY: F.col(RECORD_KEY), _PATH: F.col(PARTITION_PATH)})
        source = _with_copies(self._source, _GIVEN, common)
        copied = _with_copies(keyed, _STORED, table.schema.names)
        target = _with_long_names(copied, self._parts, table.schema.names, source.columns).alias(self._target)
        joined = {
            MATCHED: (target, source, "inner"),
            NOT_MATCHED: (source, target, "left_anti"),
            BY_SOURCE: (target, source, "left_anti"),
        }
        frames = []
        for case, (left, right, how) in joined.items():
            numbers = [at for at, clause in enumerate(self._clauses) if clause.case == case]
            if numbers:
                pairs = left.join(right, self._condition, how)
                new_values = {at: values[at] for at in numbers}
                frames.append(self._of_case(case, pairs, new_values, [] if only_deletes else fields))
        return reduce(lambda one, other: one.union(other), frames)

    def _of_case(
        self, case: str, pairs: DataFrame, values: Mapping[int, dict[str, Column] | None], fields: Sequence[StructField]
    ) -> DataFrame:
        """What the first clause makes of a row whose condition holds; `values` are those of clauses, by their numbers."""
        first = F.lit(None).cast("int")
        for at in reversed(list(values)):
            condition = self._clauses[at].condition
            first = F.lit(at) if condition is None else F.when(condition, F.lit(at)).otherwise(first)
        clause = F.col(_CLAUSE)
        columns = []
        for field in fields:
            value = F.lit(None).cast(field.dataType)
            for at, given in values.items():
                if given is not None:
                    stays = F.lit(None) if case == NOT_MATCHED else _copy(_STORED, field.name)
                    new = given.get(field.name, stays).cast(field.dataType)
                    value = F.when(clause == at, new).otherwise(value)
            columns.append(value.alias(field.name))
        deletes = [at for at, given in values.items() if given is None]
        goes = clause.isin(deletes) if deletes else F.lit(False)
        times = F.lit(1)
        is_one_delete = [self._clauses[at].condition is None for at in values] == [True] and bool(deletes)
        if case == MATCHED and not is_one_delete:  # several rows of the source may delete one row
            times = F.expr(f"count(*) OVER (PARTITION BY {_KEY}, {_PATH})")
            goes = F.when(F.col(_TIMES) > 1, F.raise_error(TWO_ROWS).cast("boolean")).otherwise(goes)
        place = [
            F.lit(None).cast("string").alias(name) if case == NOT_MATCHED else F.col(name) for name in (_KEY, _PATH)
        ]
        made = pairs.withColumn(_CLAUSE, first).select(*place, clause, times.alias(_TIMES), *columns)
        names = [F.col(quoted(field.name)) for field in fields]
        ids = [F.col(_KEY).alias(RECORD_KEY), F.col(_PATH).alias(PARTITION_PATH)]
        return made.where(clause.isNotNull()).select(*ids, goes.alias(DELETED), *names)


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


def _with_copies(frame: DataFrame, prefix: str, names: Sequence[str]) -> DataFrame:
    """The frame, behind whose columns copies have names that are unique in a join. All others are found as before."""
    return frame.withColumns({f"{prefix}{name}": F.col(quoted(name)) for name in names}) if names else frame


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


def _copy(prefix: str, name: str) -> Column:
    return F.col(quoted(f"{prefix}{name}"))
