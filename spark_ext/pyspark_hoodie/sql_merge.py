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
from hoodie.read.condition import Among, Condition, FilledValue, Junction
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
    """The changes that the query of a statement makes to stored rows, as a write takes them: key and path of the stored row,
    whether the row is deleted, and new values.

    Args:
        columns: where in a row of the query the values of the table's columns `names` are. ids: where key and path are.
    """
    plain = [f"c{at}" for at in range(len(query.columns))]
    values = query.toDF(*plain)
    key, path = (values[plain[at]] for at in ids)
    selected = [key.alias(RECORD_KEY), path.alias(PARTITION_PATH), (values[plain[0]] == F.lit(_DELETE)).alias(DELETED)]
    selected += [values[plain[at]].alias(name) for at, name in zip(columns, names, strict=bool(columns))]
    return values.select(*selected)


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
    if merging is None or not records or not set(records) <= set(equated := _listed(spark, merging.equated())):
        return None
    keys = [name for name in key_columns(config) if name in equated]
    by_key_alone = is_global(config, target.write)
    places = [merging.placeOfKey(name) for name in keys]
    alone = None
    if columns:
        key_names = records if by_key_alone else key_columns(config)
        alone = merging.alone(json.dumps([columns, names, list(key_names), keys]))
    source = _frame(spark, merging.given())
    rows = _collected(source, target)
    if rows is None:
        return None
    rows_of_source = _Source(rows, _table([rows.column(place) for place in places], keys))
    is_single = rows_of_source.is_single
    if alone is not None and is_single:
        found, unchanged = _listed(spark, alone), _listed(spark, merging.kept())
        changes = _alone(rows_of_source, found, names, unchanged, target, by_key_alone=by_key_alone)
        changes = changes or _completed(rows_of_source, found, names, unchanged, target)
        if changes is not None:
            return changes
    rows_of_source = rows_of_source._replace(rows=rows.select(range(merging.width())))
    in_pairs = is_single and merging.equatesAlone()
    if in_pairs:
        places_by_name = dict(zip([RECORD_KEY, PARTITION_PATH, *names], [*ids, *columns], strict=False))
        changes = _of_clauses(merging, places_by_name, rows_of_source, target, spark)
        if changes is not None:
            return changes
    partners = rows_of_source.partners(target, _listed(spark, merging.stored()))
    if in_pairs:
        plan = merging.paired(_plan(spark, _pairs(merging, partners, rows_of_source).whole()))
    else:
        plan = merging.joined(_plan(spark, partners), _plan(spark, rows_of_source.rows), is_single)
    frame = _frame(spark, plan)
    with SparkEngine(spark).described(f"merge {config.name}: join the rows of the source"):
        return RowsHere(collected(changes_of(frame, columns, ids, names)))


def _completed(
    source: _Source, places: Sequence[int], names: Sequence[str], unchanged: Sequence[str], target: Target
) -> RowsHere | None:
    """The changes of the source's rows, as `_alone` has them, beside the stored rows, of which they keep columns; None: values of one
    column have several types.
    """
    of_places = target.of_places
    moves = bool(of_places.intersection(names) - {*unchanged, *source.keys.column_names})
    left = set(unchanged) - of_places if target.completes and not moves else set()
    kept = [name for name in unchanged if name not in left]
    read = list(dict.fromkeys([RECORD_KEY, PARTITION_PATH, *source.keys.column_names, *kept]))
    inserts = pc.any(pc.equal(source.rows.column(places[1]), _INSERT)).as_py()
    pairs = Pairs(source.partners(target, read), source.rows, source.keys, keeps_unmatched=bool(inserts))
    new = [len(read) + place for place in places[2:]]
    of_stored = {**{name: read.index(name) for name in kept}, **dict.fromkeys(left, -1)}
    clauses = [
        Clause(True, _DELETE, (0, 1, *[-1] * len(new))),
        Clause(True, _UPDATE, (0, 1, *(of_stored.get(name, at) for name, at in zip(names, new, strict=True)))),
        Clause(False, _INSERT, (-1, -1, *new)),
    ]
    done = [pairs.of_source(place) for place in places[:2]]
    number = pc.subtract(pc.if_else(pa.array(pairs.meet), *done), 1)
    changes = pairs.made(clauses, [RECORD_KEY, PARTITION_PATH, *names], pa.table({"number": number}), target.schema)
    set_columns = tuple(name for name in names if name not in left) if left else None
    return None if changes is None else RowsHere(changes, set_columns=set_columns)


def _of_clauses(
    merging: Any, places_by_name: Mapping[str, int], source: _Source, target: Target, spark: Any
) -> RowsHere | None:
    """The changes that the clauses make to pairs of rows; None: Spark has to read whole rows for them.

    Args:
        places_by_name: column -> where in a row of the query its values are.
    """
    answer = merging.clauses(json.dumps(list(places_by_name.values())))
    if answer is None:
        return None
    clauses = [Clause(meets == 1, does, tuple(places)) for meets, does, *places in json.loads(answer)]
    stored_names, names = _listed(spark, merging.stored()), list(places_by_name)
    of_keys = {name: merging.placeOfKey(name) for name in source.keys.column_names}
    equal = {name: len(stored_names) + place for name, place in of_keys.items() if place < source.rows.num_columns}
    unchanged = _unchanged_columns(clauses, names, stored_names, equal, target) if target.completes else set()
    needed_places = _listed(spark, merging.needed())
    used_places = {
        *needed_places,
        *(at for each in clauses for at, name in zip(each.places, names, strict=True) if name not in unchanged),
    }
    read = [name for at, name in enumerate(stored_names) if at in used_places or name in source.keys.column_names]
    pairs = _pairs(merging, _with_nulls(source.partners(target, read), stored_names, target.schema), source)
    computed = None
    if merging.computes():
        frame = _frame(spark, merging.computed(_plan(spark, pairs.needed(needed_places))))
        with SparkEngine(spark).described(f"merge {target.config.name}: compute values"):
            computed = collected(frame)
    changes = pairs.made(clauses, names, computed, target.schema)
    if changes is None:
        return None
    return RowsHere(
        changes, set_columns=tuple(name for name in names[2:] if name not in unchanged) if unchanged else None
    )


def _pairs(merging: Any, stored: pa.Table, source: _Source) -> Pairs:
    return Pairs(stored, source.rows, source.keys, keeps_unmatched=merging.keepsUnmatched())


def _unchanged_columns(
    clauses: Sequence[Clause], names: Sequence[str], stored_names: list[str], equal: Mapping[str, int], target: Target
) -> set[str]:
    """Columns that all updates leave unchanged, if rows stay in their places; without the columns of keys and paths.

    Args:
        equal: key column -> the position of the source's column that it equals.
    """
    updates = [clause for clause in clauses if clause.meets and clause.does == _UPDATE]
    own = {name: stored_names.index(name) if name in stored_names else None for name in names}
    unchanged = {
        name for at, name in enumerate(names) if updates and all(each.places[at] == own[name] for each in updates)
    }
    place_names = target.of_places
    moves = any(
        each.places[at] not in (own[name], equal.get(name))
        for each in updates
        for at, name in enumerate(names)
        if name in place_names
    )
    return set() if moves else unchanged - place_names - {RECORD_KEY, PARTITION_PATH}


def _with_nulls(rows: pa.Table, names: Sequence[str], kinds: pa.Schema) -> pa.Table:
    """The columns of these names, with nulls in those that were not read."""
    return pa.table(
        {
            name: rows.column(name) if name in rows.column_names else pa.nulls(rows.num_rows, kinds.field(name).type)
            for name in names
        }
    )


def _listed(spark: Any, java_list: Any) -> list[Any]:
    """A list or array of Java."""
    values: list[Any] = json.loads(spark._jvm.hoodie_spark.HoodieTable.json(java_list))
    return values


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
    source: _Source,
    places: list[int],
    names: Sequence[str],
    unchanged: Sequence[str],
    target: Target,
    *,
    by_key_alone: bool,
) -> RowsHere | None:
    """The changes of the source's rows, if these say it alone; None: one write cannot do it without a look at stored rows.

    Args:
        places: as `Merging.alone` has them. unchanged: columns that updates leave unchanged, `Merging.kept`.
    """
    if unchanged and not (target.completes and target.of_places.isdisjoint(unchanged)):
        return None
    rows, set_columns = source.rows, tuple(name for name in names if name not in unchanged) if unchanged else None
    ifs = pc.if_else(source.has_key, rows.column(places[0]), 0)
    updated_flags, deleted_flags = pc.equal(ifs, _UPDATE), pc.equal(ifs, _DELETE)
    inserted_flags = pc.equal(rows.column(places[1]), _INSERT)
    only_stored = not pc.any(inserted_flags).as_py()
    if only_stored and (by_key_alone or not looks_up(target.config, target.write)):
        return None
    if not only_stored and pc.any(pc.xor(inserted_flags, updated_flags)).as_py():
        return None
    changed_flags = pc.or_(updated_flags, deleted_flags)
    changed_rows = _table([rows.column(place) for place in places[2:]], names).filter(changed_flags)
    is_deleted = deleted_flags.filter(changed_flags)
    if not pc.any(is_deleted).as_py():
        return RowsHere(changed_rows, only_stored, set_columns)
    if by_key_alone:
        return None  # the columns of a deleted row may not say where it is
    keygen = target.keygen()
    ids = {RECORD_KEY: keygen.keys(changed_rows), PARTITION_PATH: keygen.partitions(changed_rows), DELETED: is_deleted}
    return RowsHere(
        pa.table({**ids, **dict(zip(changed_rows.column_names, changed_rows.columns, strict=True))}),
        only_stored,
        set_columns,
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
    return Junction(True, tuple(parts))


def _among(name: str, values: pa.ChunkedArray | pa.Array) -> Condition:
    unique_values = pc.unique(values)
    unique_values = unique_values.combine_chunks() if isinstance(unique_values, pa.ChunkedArray) else unique_values
    return Among(name, unique_values) if len(unique_values) else FilledValue(name, False)
