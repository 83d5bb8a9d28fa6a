"""A MERGE as DataFrames: the table is joined with the source, and what the clauses make of pairs and of single rows is one frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from pyspark_hoodie.sql_changes import BY_SOURCE, MATCHED, NOT_MATCHED, TWO_ROWS
from pyspark_hoodie.where import quoted

_KEY, _PATH, _CLAUSE, _TIMES = "hoodie_key", "hoodie_path", "hoodie_clause", "hoodie_times"
_STORED, _GIVEN = "hoodie_stored_", "hoodie_given_"
"""How copies of columns of the table and of the source begin. No other column has such a name, which both might have otherwise."""


class RowClause(NamedTuple):
    """What becomes of the rows of a case that fulfil a condition."""

    case: str
    """MATCHED, NOT_MATCHED or BY_SOURCE."""
    condition: Column | None
    values: Mapping[str, Column] | None
    """Of the columns that it sets; None: it deletes."""


class Merged(NamedTuple):
    """A joined MERGE. `target` is made by `with_stored`, and `source` by `with_given`; both may have an alias."""

    target: DataFrame
    source: DataFrame
    on: Column
    clauses: Sequence[RowClause]

    def changes(self, fields: Sequence[StructField]) -> DataFrame:
        """Key and path of stored rows, whether they go, and new values of these columns of the table."""
        return reduce(DataFrame.union, [self._changed(case, numbers, fields) for case, numbers in self._cases()])

    def counts(self) -> dict[int, int]:
        """Number of a clause -> the rows that go by it."""
        frames = [self._pairs(case).select(self._first(numbers).alias(_CLAUSE)) for case, numbers in self._cases()]
        counted = reduce(DataFrame.union, frames).where(F.col(_CLAUSE).isNotNull()).groupBy(_CLAUSE).count()
        return {row[0]: row[1] for row in counted.collect()}

    def matched(self) -> int:
        """Pairs, with a clause or without."""
        return self._pairs(MATCHED).count()

    def _cases(self) -> Iterator[tuple[str, list[int]]]:
        for case in (MATCHED, NOT_MATCHED, BY_SOURCE):
            numbers = [at for at, clause in enumerate(self.clauses) if clause.case == case]
            if numbers:
                yield case, numbers

    def _pairs(self, case: str) -> DataFrame:
        if case == NOT_MATCHED:
            return self.source.join(self.target, self.on, "left_anti")
        return self.target.join(self.source, self.on, "inner" if case == MATCHED else "left_anti")

    def _first(self, numbers: Sequence[int]) -> Column:
        """The first clause whose condition holds for a row."""
        first = F.lit(None).cast("int")
        for at in reversed(numbers):
            condition = self.clauses[at].condition
            first = F.lit(at) if condition is None else F.when(condition, F.lit(at)).otherwise(first)
        return first

    def _changed(self, case: str, numbers: Sequence[int], fields: Sequence[StructField]) -> DataFrame:
        values = {at: self.clauses[at].values for at in numbers}
        clause = F.col(_CLAUSE)
        columns = []
        for field in fields:
            value = F.lit(None).cast(field.dataType)
            for at, given in values.items():
                if given is not None:
                    stays = F.lit(None) if case == NOT_MATCHED else F.col(quoted(f"{_STORED}{field.name}"))
                    new = given.get(field.name, stays).cast(field.dataType)
                    value = F.when(clause == at, new).otherwise(value)
            columns.append(value.alias(field.name))
        deletes = [at for at, given in values.items() if given is None]
        goes = clause.isin(deletes) if deletes else F.lit(False)
        times = F.lit(1)
        is_one_delete = [self.clauses[at].condition is None for at in values] == [True] and bool(deletes)
        if case == MATCHED and not is_one_delete:  # several rows of the source may delete one row
            times = F.expr(f"count(*) OVER (PARTITION BY {_KEY}, {_PATH})")
            goes = F.when(F.col(_TIMES) > 1, F.raise_error(TWO_ROWS).cast("boolean")).otherwise(goes)
        place = [
            F.lit(None).cast("string").alias(name) if case == NOT_MATCHED else F.col(name) for name in (_KEY, _PATH)
        ]
        pairs = self._pairs(case).withColumn(_CLAUSE, self._first(numbers))
        made = pairs.select(*place, clause, times.alias(_TIMES), *columns)
        names = [F.col(quoted(field.name)) for field in fields]
        ids = [F.col(_KEY).alias(RECORD_KEY), F.col(_PATH).alias(PARTITION_PATH)]
        return made.where(clause.isNotNull()).select(*ids, goes.alias(DELETED), *names)


def with_stored(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Rows of the table, with meta columns, behind whose columns copies have names that are unique in a join."""
    keyed = rows.withColumns({_KEY: F.col(RECORD_KEY), _PATH: F.col(PARTITION_PATH)})
    return _with_copies(keyed, _STORED, names)


def with_given(source: DataFrame, names: Sequence[str]) -> DataFrame:
    """The source, with copies for `given_value`."""
    return _with_copies(source, _GIVEN, names)


def given_value(name: str) -> Column:
    """A column of the source."""
    return F.col(quoted(f"{_GIVEN}{name}"))


def _with_copies(frame: DataFrame, prefix: str, names: Sequence[str]) -> DataFrame:
    """All other columns are found as before."""
    return frame.withColumns({f"{prefix}{name}": F.col(quoted(name)) for name in names}) if names else frame
