"""A MERGE by record key on Spark, whose source is small: the table is not joined as a whole (`sql_merging.java`).

The source comes to the driver. Where its rows alone say what becomes of them, they are an upsert. Else the stored rows that have
their keys are read, as many columns as the query needs, and Spark runs its query on these rows. Columns that no clause sets are
not read where the write has the stored rows anyway.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from hoodie.errors import SchemaError
from hoodie.keygen.generator import KeyGenerator
from hoodie.model.enums import TableType
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.read.condition import Among, Condition, Filled, Joined
from hoodie.write.keys import key_columns
from hoodie.write.placement import is_global, looks_up
from pyspark_hoodie.arrow_frame import arrow_frame
from pyspark_hoodie.dataframe import RowsHere
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.schema import given_schema, spark_schema
from pyspark_hoodie.small_batch import TooLargeError, collected, is_small
from pyspark_hoodie.sql_pairs import Clause, Pairs

_DELETE, _UPDATE, _INSERT = 1, 2, 3
"""What a clause does, as Spark's query says it."""


class Target(NamedTuple):
    """The table of a MERGE."""

    config: TableConfig
    write: WriteOptions
    keygen: Callable[[], KeyGenerator]
    """Makes its keys."""
    schema: pa.Schema
    """Its columns, and the meta columns of keys and paths."""
    stored: Callable[[Sequence[str], Condition], pa.Table]
    """Columns of the stored rows that fulfil a condition."""

    @property
    def completes(self) -> bool:
        """Whether the write takes columns that no clause sets over without a read of its own. To logs it writes whole rows, of
        which a read here costs less: it has row copies.
        """
        return self.config.table_type is TableType.COPY_ON_WRITE or self.write.some_columns

    @property
    def of_places(self) -> set[str]:
        """The columns that keys and paths are made of, or of parts of them."""
        return {name.partition(".")[0] for name in key_columns(self.config)}


class _Source(NamedTuple):
    rows: pa.Table
    """Behind its columns what else was asked for."""
    keys: pa.Table
    """What the keys of the table equal in each row."""

    @property
    def there(self) -> pa.Table:
        """The keys that are no nulls."""
        return self.keys.filter(self.has_key)

    @property
    def has_key(self) -> pa.ChunkedArray:
        return reduce(pc.and_, map(pc.is_valid, self.keys.columns))

    @property
    def is_single(self) -> bool:
        """Each key comes once."""
        there = self.there
        return bool(there.group_by(there.column_names).aggregate([]).num_rows == there.num_rows)

    def partners(self, target: Target, names: Sequence[str]) -> pa.Table:
        """Columns of the stored rows that have its keys."""
        return target.stored(names, _having(self.there, target))


def changes_of(query: DataFrame, columns: Sequence[int], ids: Sequence[int], names: Sequence[str]) -> DataFrame:
    """What the query of a statement makes of stored rows, as a write takes it: key and path of the stored row, whether it goes, and
    new values.

    Args:
        columns: where in a row of the query the values of the table's columns `names` are. ids: where key and path are.
    """
    plain = [f"c{at}" for at in range(len(query.columns))]
    values = query.toDF(*plain)
    key, path = (values[plain[at]] for at in ids)
    found = [key.alias(RECORD_KEY), path.alias(PARTITION_PATH), (values[plain[0]] == F.lit(_DELETE)).alias(DELETED)]
    found += [values[plain[at]].alias(name) for at, name in zip(columns, names, strict=bool(columns))]
    return values.select(*found)


def small_merge(
    query: DataFrame, columns: Sequence[int], ids: Sequence[int], names: Sequence[str], target: Target
) -> RowsHere | None:
    """What a MERGE by record key makes of stored rows and new ones, as `changes_of` has it; an upsert has the new values alone.

    None: it is none such, or its source is not small.
    """
    spark: Any = query.sparkSession
    java, config = spark._jvm.hoodie_spark, target.config
    merging = java.Merging.of(query._jdf.queryExecution().analyzed())
    records = list(config.record_key_fields)
    if merging is None or not records or not set(records) <= set(equated := _listed(merging.equated())):
        return None
    keys = [name for name in key_columns(config) if name in equated]
    by_key_alone = is_global(config, target.write)
    places = [merging.placeOfKey(name) for name in keys]
    alone = None
    if columns:
        needed = records if by_key_alone else key_columns(config)
        alone = merging.alone(list(columns), list(names), needed, keys)
    source = _frame(spark, merging.given())
    rows = _collected(source, target)
    if rows is None:
        return None
    given = _Source(rows, _table([rows.column(place) for place in places], keys))
    is_single = given.is_single
    if alone is not None and is_single:
        made = _alone(given, _listed(alone), names, _listed(merging.kept()), target, by_key_alone=by_key_alone)
        if made is not None:
            return made
    given = given._replace(rows=rows.select(range(merging.width())))
    in_pairs = is_single and merging.equatesAlone()
    if in_pairs:
        wanted = dict(zip([RECORD_KEY, PARTITION_PATH, *names], [*ids, *columns], strict=False))
        made = _of_clauses(merging, wanted, given, target, spark)
        if made is not None:
            return made
    found = given.partners(target, _listed(merging.stored()))
    if in_pairs:
        plan = merging.paired(_plan(spark, _pairs(merging, found, given).whole()))
    else:
        plan = merging.joined(_plan(spark, found), _plan(spark, given.rows), is_single)
    frame = _frame(spark, plan)
    with SparkEngine(spark).described(f"merge {config.name}: join the rows of the source"):
        return RowsHere(collected(changes_of(frame, columns, ids, names)))


def _of_clauses(merging: Any, wanted: Mapping[str, int], given: _Source, target: Target, spark: Any) -> RowsHere | None:
    """What the clauses make of pairs of rows; None: they are such that Spark has to look at whole ones.

    Args:
        wanted: column -> where in a row of the query its values are.
    """
    answer = merging.clauses(list(wanted.values()))
    if answer is None:
        return None
    clauses = [Clause(meets == 1, does, tuple(places)) for meets, does, *places in json.loads(answer)]
    stored, names = _listed(merging.stored()), list(wanted)
    of_keys = {name: merging.placeOfKey(name) for name in given.keys.column_names}
    equal = {name: len(stored) + place for name, place in of_keys.items() if place < given.rows.num_columns}
    kept = _kept(clauses, names, stored, equal, target) if target.completes else set()
    needed = _listed(merging.needed())
    used = {*needed, *(at for each in clauses for at, name in zip(each.places, names, strict=True) if name not in kept)}
    read = [name for at, name in enumerate(stored) if at in used or name in given.keys.column_names]
    pairs = _pairs(merging, _with_nulls(given.partners(target, read), stored, target.schema), given)
    computed = None
    if merging.computes():
        frame = _frame(spark, merging.computed(_plan(spark, pairs.needed(needed))))
        with SparkEngine(spark).described(f"merge {target.config.name}: compute values"):
            computed = collected(frame)
    changed = pairs.made(clauses, names, computed, target.schema)
    if changed is None:
        return None
    return RowsHere(changed, set_columns=tuple(name for name in names[2:] if name not in kept) if kept else None)


def _pairs(merging: Any, stored: pa.Table, given: _Source) -> Pairs:
    return Pairs(stored, given.rows, given.keys, keeps_unmatched=merging.keepsUnmatched())


def _kept(
    clauses: Sequence[Clause], names: Sequence[str], stored: list[str], equal: Mapping[str, int], target: Target
) -> set[str]:
    """Columns that all updates leave as they are, where rows stay in their places; but those that keys and paths are made of.

    Args:
        equal: key column -> where in the source's rows that is which it equals.
    """
    updates = [clause for clause in clauses if clause.meets and clause.does == _UPDATE]
    own = {name: stored.index(name) if name in stored else None for name in names}
    kept = {name for at, name in enumerate(names) if updates and all(each.places[at] == own[name] for each in updates)}
    fixed = target.of_places
    moves = any(
        each.places[at] not in (own[name], equal.get(name))
        for each in updates
        for at, name in enumerate(names)
        if name in fixed
    )
    return set() if moves else kept - fixed - {RECORD_KEY, PARTITION_PATH}


def _with_nulls(rows: pa.Table, names: Sequence[str], kinds: pa.Schema) -> pa.Table:
    """The columns of these names, with nulls in those that were not read."""
    return pa.table(
        {
            name: rows.column(name) if name in rows.column_names else pa.nulls(rows.num_rows, kinds.field(name).type)
            for name in names
        }
    )


def _listed(found: Any) -> list[Any]:
    """A list of Java; its iterator ends with an exception, which costs much more."""
    return [found[at] for at in range(len(found))]


def _frame(spark: Any, plan: Any) -> DataFrame:
    return DataFrame(spark._jvm.hoodie_spark.Planning.frame(spark._jsparkSession, plan), spark)


def _plan(spark: Any, table: pa.Table) -> Any:
    return arrow_frame(spark, table)._jdf.queryExecution().analyzed()


def _collected(source: DataFrame, target: Target) -> pa.Table | None:
    """The rows of the source, in columns without names; None where they are too many, or Arrow has other types for them."""
    if not is_small(source, target.write.driver_max_bytes):
        return None
    plain = source.toDF(*[f"c{at}" for at in range(len(source.columns))])
    try:
        types = [field.dataType.simpleString() for field in spark_schema(given_schema(plain.schema))]
        if types != [field.dataType.simpleString() for field in plain.schema]:
            return None
        with SparkEngine(source.sparkSession).described(f"merge {target.config.name}: read the source"):
            return collected(plain)
    except (SchemaError, TooLargeError):
        return None


def _alone(
    given: _Source,
    places: list[int],
    names: Sequence[str],
    kept: Sequence[str],
    target: Target,
    *,
    by_key_alone: bool,
) -> RowsHere | None:
    """What becomes of the rows, as far as they alone say it; None: that is more than one write does without a look at stored rows.

    Args:
        places, kept: as `Merging.alone` has them.
    """
    if kept and not (target.completes and target.of_places.isdisjoint(kept)):
        return None
    rows, set_columns = given.rows, tuple(name for name in names if name not in kept) if kept else None
    ifs = pc.if_else(given.has_key, rows.column(places[0]), 0)
    updated, gone, inserted = pc.equal(ifs, _UPDATE), pc.equal(ifs, _DELETE), pc.equal(rows.column(places[1]), _INSERT)
    only_stored = not pc.any(inserted).as_py()
    if only_stored and (by_key_alone or not looks_up(target.config, target.write)):
        return None
    if not only_stored and pc.any(pc.xor(inserted, updated)).as_py():
        return None
    changed = pc.or_(updated, gone)
    made, flags = _table([rows.column(place) for place in places[2:]], names).filter(changed), gone.filter(changed)
    if not pc.any(flags).as_py():
        return RowsHere(made, only_stored, set_columns)
    if by_key_alone:
        return None  # where the row is that goes, its columns may not say
    keygen = target.keygen()
    ids = {RECORD_KEY: keygen.keys(made), PARTITION_PATH: keygen.partitions(made), DELETED: flags}
    return RowsHere(
        pa.table({**ids, **dict(zip(made.column_names, made.columns, strict=True))}), only_stored, set_columns
    )


def _table(columns: Sequence[pa.ChunkedArray], names: Sequence[str]) -> pa.Table:
    return pa.table(dict(zip(names, columns, strict=True)))


def _having(keys: pa.Table, target: Target) -> Condition:
    """The rows of the table that have these values in their key columns, or make one of these keys."""
    records = list(target.config.record_key_fields)
    parts: list[Condition] = [_among(name, keys.column(name)) for name in keys.column_names if name not in records]
    parts.append(
        _among(records[0], keys.column(records[0]))
        if len(records) == 1
        else _among(RECORD_KEY, target.keygen().keys(keys))
    )
    return Joined(True, tuple(parts))


def _among(name: str, values: pa.ChunkedArray | pa.Array) -> Condition:
    found = pc.unique(values)
    found = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    return Among(name, found) if len(found) else Filled(name, False)
