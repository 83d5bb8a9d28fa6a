"""A read plan as a DataFrame: what base files alone can answer is Spark's own Parquet scan, the rest goes through the engine.

The scan names exactly the plan's files. Folders take no part in it: partition values are columns of the files, and
Spark would otherwise add or retype columns by folder names such as `day=01`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError
from hoodie.filegroup.run import run_read
from hoodie.filegroup.slice_reader import open_base_file
from hoodie.format.avro_schema import arrow_from_avro, parse_schema
from hoodie.model.files import BaseFile
from hoodie.model.instant import InstantRange, sort_key
from hoodie.model.meta_fields import COMMIT_TIME
from hoodie.model.plans import ChangeTask, ReadPlan, ReadTask
from hoodie.storage.base import Storage
from hoodie.timeline.timeline import Timeline
from hoodie.txn.context import TableContext
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.schema import spark_schema
from pyspark_hoodie.where import filter_column, quoted

_SECONDS_DIGITS = 14
_GLOB = str.maketrans({char: f"\\{char}" for char in "\\{}[]*?"})


def plan_frame(spark: SparkSession, context: TableContext, plan: ReadPlan, *, where: object) -> DataFrame:
    """The rows of the plan. `where` is the plan's filter as the user gave it; only text is understood by Spark's scan."""
    foreign = where is not None and not isinstance(where, str)
    ours = foreign or plan.context.history is not None
    native: list[ReadTask] = []
    rest: list[ReadTask | ChangeTask] = []
    for task in plan.tasks:
        if isinstance(task, ChangeTask) or ours or not _base_only(task):
            rest.append(task)
        else:
            native.append(task)
    frames = []
    for narrow, tasks in _by_types(context, plan, native):
        if any(_needs_care(kind, plan.context.schema.field(name).type) for name, kind in narrow.items()):
            rest += tasks
        else:
            text = where if isinstance(where, str) else None
            frames.append(_scan(spark, context.storage, plan, tasks, narrow, where=text))
    if rest or not frames:
        run = partial(run_read, context.storage, plan.context)
        frames.append(SparkEngine(spark).read(run, rest, plan.output))
    return reduce(DataFrame.union, frames)


def _needs_care(stored: pa.DataType, now: pa.DataType) -> bool:
    """Spark casts structs by position, and floats to the nearest double, where Apache Hudi takes their decimal digits."""
    return pa.types.is_nested(now) or (pa.types.is_float32(stored) and not pa.types.is_string(now))


def _base_only(task: ReadTask) -> bool:
    return task.slice.base is not None and not task.slice.logs


def _scan(
    spark: SparkSession,
    storage: Storage,
    plan: ReadPlan,
    tasks: Sequence[ReadTask],
    narrow: Mapping[str, pa.DataType],
    *,
    where: str | None,
) -> DataFrame:
    """One Parquet scan; `narrow` are the columns that these files hold in an older type."""
    span = tasks[0].span
    full = plan.context.schema
    extra = [*(plan.context.filter.columns if plan.context.filter else ()), *((COMMIT_TIME,) if span else ())]
    needed = list(dict.fromkeys([*plan.output.names, *extra]))
    stored = pa.schema([pa.field(name, narrow.get(name, full.field(name).type)) for name in needed])
    files = [_uri(storage, task.slice.base) for task in tasks if task.slice.base is not None]
    frame = (
        spark.read.format("parquet")
        .schema(spark_schema(stored))
        .option("recursiveFileLookup", "true")  # no columns from folder names
        .option("datetimeRebaseMode", "CORRECTED")  # old dates as they are stored, which is what the engine reads too
        .option("int96RebaseMode", "CORRECTED")
        .load(files)
    )
    if narrow:
        types = {field.name: field.dataType for field in spark_schema(full).fields}
        frame = frame.select(
            *[F.col(quoted(n)).cast(types[n]).alias(n) if n in narrow else F.col(quoted(n)) for n in needed]
        )
    if span is not None:
        frame = frame.where(_committed_in(span))
    if where is not None:
        frame = frame.where(filter_column(where, full))
    return frame if needed == plan.output.names else frame.select(*[F.col(quoted(n)) for n in plan.output.names])


def _committed_in(span: InstantRange) -> Column:
    """Rows committed in (begin, end]. Times of 14 digits are the last millisecond of their second, as `sort_key` has it.

    Each bound comes twice: on the bare column, wide enough for either form, which Spark pushes into the Parquet scan, and
    exactly.
    """
    time = F.col(COMMIT_TIME)
    exact = F.when(F.length(time) == _SECONDS_DIGITS, F.concat(time, F.lit("999"))).otherwise(time)
    kept = F.lit(True) if span.only is None else time.isin(sorted(span.only))
    if span.begin is not None:
        kept = kept & (time >= span.begin[:_SECONDS_DIGITS]) & (exact > sort_key(span.begin))
    if span.end is not None:
        kept = kept & (time <= sort_key(span.end)) & (exact <= sort_key(span.end))
    return kept


def _uri(storage: Storage, base: BaseFile) -> str:
    """The file as Hadoop names it, with its pattern characters escaped; Spark's default file system may be another."""
    local = storage.local_path(base.path)
    return (f"file:{local}" if local is not None else f"{storage.uri}/{base.path}").translate(_GLOB)


# -- files of an older schema ------------------------------------------------------------------------------------------


def _by_types(
    context: TableContext, plan: ReadPlan, tasks: Sequence[ReadTask]
) -> list[tuple[dict[str, pa.DataType], list[ReadTask]]]:
    """Tasks grouped by the columns whose type in the file is narrower than the table's now: a scan has one schema.

    Spark 3.5 reads no file with a narrower type than it is told, Spark 4 some.
    """
    if not tasks:
        return []
    needed = {*plan.output.names, *(plan.context.filter.columns if plan.context.filter else ())}
    table = {field.name: field.type for field in plan.context.schema if field.name in needed}
    known = _types_by_instant(context, {task.slice.base.instant for task in tasks if task.slice.base})
    unknown = [task.slice.base for task in tasks if task.slice.base and task.slice.base.instant not in known]
    footers = LocalEngine().run(partial(_footer_types, context.storage), unknown, label="footers")
    by_file = {base.path: types for base, types in zip(unknown, footers, strict=True)}
    groups: dict[str, tuple[dict[str, pa.DataType], list[ReadTask]]] = {}
    for task in tasks:
        base = task.slice.base
        types: Mapping[str, pa.DataType] = {}
        if base is not None:
            types = known[base.instant] if base.instant in known else by_file[base.path]
        narrow = {name: types[name] for name, kind in table.items() if name in types and not _same(types[name], kind)}
        groups.setdefault(str(narrow), (narrow, []))[1].append(task)
    return list(groups.values())


def _same(one: pa.DataType, other: pa.DataType) -> bool:
    def name(kind: pa.DataType) -> Any:
        return spark_schema(pa.schema([("value", kind)])).fields[0].dataType

    return one == other or bool(name(one) == name(other))


def _types_by_instant(context: TableContext, instants: set[str]) -> dict[str, dict[str, pa.DataType]]:
    """Column types of the files that an instant wrote, as its commit metadata states them, where that is still there."""
    timeline: Timeline = context.active.load()
    found: dict[str, dict[str, pa.DataType]] = {}
    for instant in timeline.commits:
        if instant.time in instants:
            text = context.active.read_commit(instant).schema_json
            if text:
                found[instant.time] = {field.name: field.type for field in arrow_from_avro(parse_schema(text))}
    return found


def _footer_types(storage: Storage, base: BaseFile) -> dict[str, pa.DataType]:
    with open_base_file(storage, base) as (file, _):
        try:
            return {field.name: field.type for field in file.schema_arrow}
        except pa.ArrowInvalid as exc:
            raise CorruptFileError(f"{base.path} of table {storage.uri} has no readable schema: {exc}") from exc
