"""Table functions of Apache Hudi's SQL: changes and queries of a table, its timeline and its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from hoodie.errors import OptionError
from hoodie.model.enums import ChangeFormat
from hoodie.model.instant import Instant
from hoodie.timeline.timeline import WRITES
from pyspark_hoodie.arrow_frame import arrow_frame
from pyspark_hoodie.procedure_files import all_slices
from pyspark_hoodie.procedure_shows import completed_at, record_sums
from pyspark_hoodie.sql_metadata import metadata_rows
from pyspark_hoodie.table import HoodieTable

Find = Callable[[str], HoodieTable]
"""Opens a table by its name or path."""
_QUERIES = ("snapshot", "read_optimized")
_TIMELINE: list[tuple[str, pa.DataType]] = [
    *((name, pa.string()) for name in ("Timestamp", "Action", "State", "Completion_Time", "File_Name")),
    *((f"Total_{name}", pa.int64()) for name in ("Bytes_Written", "Files_Updated", "Partitions_Written")),
    *((f"Total_{name}", pa.int64()) for name in ("Records_Written", "Updated_Records_Written", "Write_Errors")),
]
_FILES: list[tuple[str, pa.DataType]] = [
    *((name, pa.string()) for name in ("File_ID", "Partition_Path", "Base_Instant_Time", "Base_File_Path")),
    ("Base_File_Size", pa.int64()),
    *((f"Log_File_{name}", pa.int64()) for name in ("Count", "Size", "Scheduled", "Unscheduled")),
]


def _count(name: str, arguments: Sequence[str | None], least: int, most: int, takes: str) -> list[str]:
    if not least <= len(arguments) <= most or None in arguments:
        raise OptionError(f"{name} takes ({takes})")
    return [str(each) for each in arguments]


def hudi_table_changes(spark: Any, find: Find, arguments: Sequence[str | None]) -> DataFrame:
    """What was committed after an instant."""
    takes = "'table or path', 'latest_state' or 'cdc', 'instant' or 'earliest'[, 'last instant']"
    table, kind, since, *until = _count("hudi_table_changes", arguments, 3, 4, takes)
    if kind not in (ChangeFormat.LATEST_STATE, ChangeFormat.CDC):
        raise OptionError(f"hudi_table_changes takes ({takes}), not {kind!r}")
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": kind,
        "hoodie.datasource.read.begin.instanttime": "000" if since == "earliest" else since,
    }
    if until:
        options["hoodie.datasource.read.end.instanttime"] = until[0]
    frame: DataFrame = spark.read.format("hoodie").options(**options).load(find(table).uri)
    return frame


def hudi_query(spark: Any, find: Find, arguments: Sequence[str | None]) -> DataFrame:
    """A snapshot, or what base files alone hold."""
    takes = "'table or path', 'snapshot' or 'read_optimized'"
    table, kind = _count("hudi_query", arguments, 2, 2, takes)
    if kind not in _QUERIES:
        raise OptionError(f"hudi_query takes ({takes}), not {kind!r}: hudi_table_changes gives changes")
    return find(table).read(query=kind, meta_columns=True)


def hudi_metadata(spark: Any, find: Find, arguments: Sequence[str | None]) -> DataFrame:
    """The records of the metadata table."""
    (name,) = _count("hudi_metadata", arguments, 1, 1, "'table or path'")
    return arrow_frame(spark, metadata_rows(find(name)))


def hudi_query_timeline(spark: Any, find: Find, arguments: Sequence[str | None]) -> DataFrame:
    """The instants, with what commits wrote."""
    name, *archived = _count(
        "hudi_query_timeline", arguments, 1, 2, "'table or path'[, 'true' for archived instants, too]"
    )
    table = find(name)
    older = table.archived_instants() if archived and archived[0].lower() == "true" else ()
    rows = [*(_archived(table, older)), *(_active(table, instant) for instant in table.timeline)]
    return _frame(spark, pa.schema(_TIMELINE), rows)


def _active(table: HoodieTable, instant: Instant) -> tuple[Any, ...]:
    active = table._context.active
    is_commit = instant.is_completed and instant.action in WRITES
    counts = _counts(record_sums(active.read_commit(instant))) if is_commit else (-1,) * 6
    file = active.path(instant).rpartition("/")[2]
    return (instant.time, instant.action, instant.state.name, completed_at(table, instant), file, *counts)


def _archived(table: HoodieTable, older: Sequence[Instant]) -> Iterator[tuple[Any, ...]]:
    commits = table._context.archived().read_commits([i for i in older if i.action in WRITES])
    for instant in older:
        counts = _counts(record_sums(commits[instant.time])) if instant.time in commits else (-1,) * 6
        yield (instant.time, instant.action, instant.state.name, instant.completion, None, *counts)


def _counts(sums: tuple[int, int, int, int, int, int, int]) -> tuple[int, ...]:
    size, _, updated_files, partitions, written, updated, errors = sums
    return size, updated_files, partitions, written, updated, errors


def hudi_filesystem_view(spark: Any, find: Find, arguments: Sequence[str | None]) -> DataFrame:
    """The file slices."""
    name, *below = _count("hudi_filesystem_view", arguments, 1, 2, "'table or path'[, 'path of a partition']")
    table = find(name)
    rows = []
    for each in all_slices(table, below[0].rstrip("/*") if below else ""):
        base = (f"{table.uri}/{each.base.path}", each.base.size_bytes) if each.base else ("", -1)
        same = sum(log.size_bytes for log in each.logs if log.base_instant == each.base_instant)
        size = sum(log.size_bytes for log in each.logs)
        head = each.group.file_id, each.group.partition_path, each.base_instant
        rows.append((*head, *base, len(each.logs), size, same, size - same))
    return _frame(spark, pa.schema(_FILES), rows)


def _frame(spark: Any, schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> DataFrame:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return arrow_frame(spark, pa.table(arrays, schema=schema))


FUNCTIONS: Mapping[str, Callable[[Any, Find, Sequence[str | None]], DataFrame]] = {
    each.__name__: each
    for each in (hudi_table_changes, hudi_query, hudi_metadata, hudi_query_timeline, hudi_filesystem_view)
}
"""By their names."""
