"""A read plan as a DataFrame: rows that are final in their files are Spark's own Parquet scan, the rest goes through the engine.

Final are those of base files without logs, and of base files and row copies but for the dead ones (`hoodie/read/scan_files.py`).
The scan names exactly the plan's files. Folders take no part in it but where their text is sure to be the column's value
(`folders.py`): Spark would otherwise add or retype columns by folder names such as `day=01`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.filegroup.run import run_read
from hoodie.format.parquet_footer import has_floats
from hoodie.format.variants import has_variant
from hoodie.format.vectors import is_vector
from hoodie.model.instant import InstantRange
from hoodie.model.meta_fields import COMMIT_TIME
from hoodie.model.plans import ChangeTask, ReadPlan, ReadTask
from hoodie.read.deletion_vectors import ScanFile, say_what_counts
from hoodie.read.scan_files import ScanFiles, plan_scan_files
from hoodie.read.where import Where
from hoodie.storage.base import Storage
from hoodie.view.context import TableContext
from pyspark_hoodie.arrow_frame import arrow_frame, changed_setting
from pyspark_hoodie.bounds import text_of_bounds
from pyspark_hoodie.deletion_filter import marks_of, parts_of, scans_of, without_deleted_rows, without_marked_rows
from pyspark_hoodie.engine import SparkEngine
from pyspark_hoodie.file_index import MARK, bounded_scan
from pyspark_hoodie.file_systems import sparks_root
from pyspark_hoodie.file_types import FileTypes, Narrow
from pyspark_hoodie.folders import PLAIN, FileGrouping, by_folders, stated_values
from pyspark_hoodie.query_errors import remember
from pyspark_hoodie.schema import spark_schema
from pyspark_hoodie.where import filter_column, quoted

_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
"""By its class: where spark.sql.sources.useV1SourceList lacks it, "parquet" is Spark's other reader, which knows no row numbers."""
_ROW_NUMBER = "_tmp_metadata_row_index"
"""What Spark's Parquet reader takes for its own column of row numbers."""
_SECONDS_DIGITS = 14
_GLOB = str.maketrans({char: f"\\{char}" for char in "\\{}[]*?"})


def plan_frame(spark: SparkSession, context: TableContext, plan: ReadPlan, *, where: Where | None) -> DataFrame:
    """The rows of the plan. `where` is the plan's filter as the user gave it; an expression of Arrow means nothing to Spark's scan."""
    if not plan.output.names:
        return plan_frame(spark, context, _with_a_column(plan), where=where).select()
    shares = _shares(spark, context, plan, where)
    if isinstance(shares, str):
        return _merged(spark, context, plan, plan.tasks)
    types, scan_files = shares.types, shares.scan_files
    frames = []
    for narrow, files in types.groups(scan_files.files):
        stored = _stored(plan, narrow)
        groups = [FileGrouping(files, PLAIN)] if _is_classic(spark) else by_folders(context, stored, files)
        for group in groups:
            for together in parts_of(group.files):
                scanned = group._replace(files=together)
                sound = types.are_sound(together)
                frame = _scan(spark, context, plan, scanned, stored, narrow, root=shares.root, sound=sound, where=where)
                frames.append(frame)
    if scan_files.rows is not None:
        frames.append(_filtered_rows(arrow_frame(spark, scan_files.rows), plan, where))
    if shares.rest or not frames:
        frames.append(_merged(spark, context, plan, shares.rest))
    # Not DataFrame.union: a Connect session of Spark 3.5 has frames of another class.
    return reduce(lambda one, other: one.union(other), frames)


def readers(spark: SparkSession, context: TableContext, plan: ReadPlan, *, where: Where | None) -> str:
    """Who reads what of `plan_frame`, and why not Spark itself."""
    shares = _shares(spark, context, plan, where)
    if isinstance(shares, str):
        return f"tasks of hoodie, in parallel: {shares}"
    files = shares.scan_files.files
    parts = [f"Spark's own Parquet scan of {len(files):,} files"] if files else []
    if any(file.copy_of or file.dead is not None for file in files):
        parts[0] += f" ({say_what_counts(files)})"
    if shares.scan_files.rows is not None:
        parts.append(f"the driver: {shares.scan_files.rows.num_rows:,} rows of small logs")
    parts += [f"tasks of hoodie for {len(shares.rest):,} file slices that Spark cannot read"] if shares.rest else []
    return "; ".join(parts) or "nothing to read"


class _Shares(NamedTuple):
    """What Spark scans, and what tasks of ours read."""

    root: str
    types: FileTypes
    scan_files: ScanFiles
    rest: Sequence[ReadTask | ChangeTask]


def _shares(spark: SparkSession, context: TableContext, plan: ReadPlan, where: Where | None) -> _Shares | str:
    """The shares of the plan, or why Spark scans none of it."""
    if isinstance(where, pc.Expression):
        return "Spark's scan takes no filter of Arrow"
    for reserved in {_ROW_NUMBER, MARK} & {name.lower() for name in plan.context.schema.names}:
        return f"a column is called {reserved}, as one of such a scan's own"
    if any(isinstance(task, ChangeTask) for task in plan.tasks) or not (
        set(plan.output.names) <= set(plan.context.schema.names)  # a feed without changes
    ):
        return "changes are found by comparing rows"
    if plan.context.history is not None:
        return "the table's schema has a history, by which columns of older files are found"
    if any(is_vector(field.type) for field in plan.context.schema):
        return "it has vectors, which are bytes in its files"
    if any(has_variant(field.type) for field in plan.context.schema):
        return "it has variants, which Spark's scan of files takes for structs"
    if context.config.drops_partition_columns:
        return "its files leave the partition columns out"
    root = sparks_root(spark, context.storage)
    if root.uri is None:
        return root.why_not
    remember(root.uri, context.storage)
    tasks = [task for task in plan.tasks if isinstance(task, ReadTask)]
    types = FileTypes(context, plan, tasks)
    suited: list[ReadTask] = []
    rest: list[ReadTask | ChangeTask] = []
    for task in tasks:
        by_rows = _hides_metadata(plan) or plan.context.unstored is not None
        in_two_files = task.slice.base is not None and task.slice.base.source is not None  # since a bootstrap
        if not in_two_files and types.suit(task) and not (task.slice.logs and by_rows):
            suited.append(task)
        else:
            rest.append(task)
    scan_files = plan_scan_files(context.storage, context.cache, plan.context, suited, _stored(plan, {}))
    return _Shares(root.uri, types, scan_files, [*rest, *scan_files.rest])


def _with_a_column(plan: ReadPlan) -> ReadPlan:
    """The plan with one column, of rows that are wanted without any: batches that have none do not tell how many rows they have."""
    witness = plan.context.schema.field(0)
    tasks = tuple(replace(task, columns=(witness.name,)) for task in plan.tasks)
    return replace(plan, tasks=tasks, output=pa.schema([witness]))


def _merged(
    spark: SparkSession, context: TableContext, plan: ReadPlan, tasks: Sequence[ReadTask | ChangeTask]
) -> DataFrame:
    """Rows that tasks of ours read and merge."""
    return SparkEngine(spark, context.storage).read(
        partial(run_read, context.storage, plan.context), tasks, plan.output
    )


def _scan(
    spark: SparkSession,
    context: TableContext,
    plan: ReadPlan,
    group: FileGrouping,
    stored: pa.Schema,
    narrow: Narrow,
    *,
    root: str,
    sound: bool,
    where: Where | None,
) -> DataFrame:
    """One Parquet scan of the columns `stored`; `narrow` are those that these files hold in an older type.

    `sound`: what the files say of their floating columns holds for Spark. Otherwise it must not compare them by that.
    """
    full, needed, storage = plan.context.schema, stored.names, context.storage
    options = {
        **({} if sound else _unheard(stored)),
        "datetimeRebaseMode": "CORRECTED",  # old dates as they are stored, which is what the engine reads too
        "int96RebaseMode": "CORRECTED",
    }
    with _listed_here(spark, storage):
        marks = marks_of(group.files)
        frame = _bounded(spark, context, group.files, stored, options, root, marks)
        if frame is not None and marks:
            frame = without_marked_rows(spark, frame, group.files)
        elif frame is None:
            reader = spark.read.format(_PARQUET).schema(spark_schema(stored)).options(**group.options, **options)
            scans = []
            for files in scans_of(group.files):
                loaded = _loaded(spark, reader, [_uri(root, file.path).translate(_GLOB) for file in files])
                scans.append(without_deleted_rows(spark, loaded, files))
            frame = reduce(lambda one, other: one.union(other), scans)
    floats = set() if sound else {field.name for field in stored if pa.types.is_floating(field.type)}
    if narrow or floats:
        types = {field.name: field.dataType for field in spark_schema(full).fields}
        columns = []
        for name in needed:
            column = F.nanvl(quoted(name), quoted(name)) if name in floats else F.col(quoted(name))
            column = column.cast(types[name]) if name in narrow else column
            columns.append(column.alias(name) if name in narrow or name in floats else column)
        frame = frame.select(*columns)
    return _filtered_rows(frame, plan, where)


def _bounded(
    spark: SparkSession,
    context: TableContext,
    files: Sequence[ScanFile],
    stored: pa.Schema,
    options: dict[str, str],
    root: str,
    marks: Sequence[int | None],
) -> DataFrame | None:
    """The scan that leaves out files by a later filter; None where there is none such, or nothing to choose from."""
    if len(files) < 2 or not _is_classic(spark) or context.storage.can.local_root is None:
        return None
    bounds = text_of_bounds(context, stored, files)
    if bounds is None:
        return None
    partitions = stated_values(context, stored, files)
    return bounded_scan(
        spark,
        [_uri(root, file.path) for file in files],
        bounds,
        stored,
        partitions._replace(folders={_uri(root, path): each for path, each in partitions.folders.items()}),
        options if partitions.columns else {**PLAIN, **options},
        marks,
    )


def _is_classic(spark: SparkSession) -> bool:
    """Whether the session has a JVM of its own here, which Connect's have not."""
    return hasattr(spark, "_jsparkSession")


def _unheard(stored: pa.Schema) -> dict[str, str]:
    """Options by which a scan heeds neither bounds nor dictionaries, where only that keeps it from those of nested floats.

    Floats that are columns themselves need it not: `nanvl` gives them as they are, and Spark pushes no filter through it.
    """
    nested = any(has_floats(field.type) and pa.types.is_nested(field.type) for field in stored)
    return {"parquet.filter.stats.enabled": "false", "parquet.filter.dictionary.enabled": "false"} if nested else {}


def _loaded(spark: Any, reader: Any, files: list[str]) -> DataFrame:
    """`reader.load(files)`, which would hand the JVM each name with two calls of its own: for a thousand files half a second."""
    if not hasattr(reader, "_jreader"):  # of Connect
        loaded: DataFrame = reader.load(files)
        return loaded
    return DataFrame(reader._jreader.load(_seq_of(spark, files)), spark)


def _seq_of(spark: Any, names: Sequence[str]) -> Any:
    """Names as a sequence of Scala, by few calls however many there are."""
    util = spark._jvm.java.util
    java_list = util.Collections.list(util.StringTokenizer(_BETWEEN_NAMES.join(names), _BETWEEN_NAMES))
    return spark._jvm.PythonUtils.toSeq(java_list)


_BETWEEN_NAMES = "\0"
"""In no name of a file or column."""


def _hides_metadata(plan: ReadPlan) -> bool:
    """Whether a column of the table stands where Spark's own ones about files would be."""
    return "_metadata" in (name.lower() for name in plan.context.schema.names)


@contextmanager
def _listed_here(spark: SparkSession, storage: Storage) -> Iterator[None]:
    """On local disk Spark asks for its files in the driver: from 33 paths on it would run a job for that."""
    if storage.can.local_root is None:
        yield
        return
    with changed_setting(spark, _PARALLEL_FROM, _MANY):
        yield


_PARALLEL_FROM = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_MANY = "100000"


def _filtered_rows(frame: DataFrame, plan: ReadPlan, where: Where | None) -> DataFrame:
    """The rows of the output: committed in the range, fulfilling the condition; in its columns."""
    names, span = frame.columns, _span(plan)
    if span is not None:
        frame = frame.where(_committed_in(span))
    if where is not None:
        frame = frame.where(filter_column(where, plan.context.schema))
    return frame if names == plan.output.names else _selected(frame, plan.output.names)


def _selected(frame: DataFrame, names: Sequence[str]) -> DataFrame:
    """`frame.select`, which would ask the JVM four times for each column: 30 ms for a dozen of them."""
    session: Any = frame.sparkSession
    if not hasattr(session, "_jvm") or not hasattr(frame, "_jdf"):  # of Connect
        return frame.select(*[F.col(quoted(name)) for name in names])
    return DataFrame(frame._jdf.selectExpr(_seq_of(session, [quoted(name) for name in names])), session)


def _stored(plan: ReadPlan, narrow: Narrow) -> pa.Schema:
    """The columns that a scan reads, in the types that its files hold them in."""
    extra = [*(plan.context.filter.columns if plan.context.filter else ()), *((COMMIT_TIME,) if _span(plan) else ())]
    needed = dict.fromkeys([*plan.output.names, *extra])
    full = plan.context.schema
    return pa.schema([pa.field(name, narrow.get(name, full.field(name).type)) for name in needed])


def _span(plan: ReadPlan) -> InstantRange | None:
    return next((task.span for task in plan.tasks if isinstance(task, ReadTask)), None)


def _committed_in(span: InstantRange) -> Column:
    """Rows committed in (begin, end]. Times of 14 digits are the last millisecond of their second, as `InstantTime.padded` has it.

    Each bound comes twice: on the bare column, wide enough for either form, which Spark pushes into the Parquet scan, and
    exactly.
    """
    time = F.col(COMMIT_TIME)
    exact = F.when(F.length(time) == _SECONDS_DIGITS, F.concat(time, F.lit("999"))).otherwise(time)
    condition = F.lit(True) if span.only is None else time.isin(sorted(span.only))
    if span.begin is not None:
        condition = condition & (time >= span.begin[:_SECONDS_DIGITS]) & (exact > span.begin.padded)
    if span.end is not None:
        condition = condition & (time <= span.end.padded) & (exact <= span.end.padded)
    return condition


def _uri(root: str, path: str) -> str:
    """A file or folder of the table as Hadoop names it; Spark's default file system may be another."""
    return f"{root}/{path}" if path else root
