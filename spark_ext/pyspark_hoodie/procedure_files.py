"""Procedures that show the files of a table, and what its metadata table says of them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from itertools import chain
from statistics import fmean, stdev
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.errors import HoodieError, OptionError
from hoodie.filegroup.log_blocks import DATA
from hoodie.filegroup.log_scan import read_log_records
from hoodie.format.delete_codec import decode_deletes
from hoodie.format.log_block import CorruptBlock, LogBlock, scan_blocks
from hoodie.format.log_content import decode_avro_data, decode_parquet_data, record_bounds
from hoodie.metadata.table import MetadataTable
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.files import FileSlice
from hoodie.model.names import join, parse_base_file, parse_log_file
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_read
from hoodie.view.context import TableContext
from pyspark_hoodie.procedure_shows import Arguments, Row, cleans, record_sums
from pyspark_hoodie.reach import reached
from pyspark_hoodie.table import HoodieTable


def _partitions(table: HoodieTable, pattern: str) -> list[str]:
    pattern = pattern.strip("/").removesuffix("/*") if pattern != "*" else pattern
    return [path for path in table.partitions() if not pattern or path == pattern or fnmatch(path, pattern)]


def _file(table: HoodieTable, each: FileSlice) -> tuple[str, int, int, int]:
    """The base file and its size, the number of logs and their size."""
    base = (join(table.uri, each.base.path), each.base.size_bytes) if each.base else ("", 0)
    return *base, len(each.logs), sum(log.size_bytes for log in each.logs)


def all_slices(table: HoodieTable, pattern: str = "") -> Iterator[FileSlice]:
    """Every file slice on storage, but those of file groups that were replaced."""
    view = table._for_queries.snapshot().view
    for path in _partitions(table, pattern):
        for group in view.file_groups(path):
            if not view.is_replaced(group.id):
                yield from reversed(group.slices)


def _up_to(arguments: Arguments, slices: Iterable[FileSlice]) -> Iterator[FileSlice]:
    last = arguments.text("max_instant")
    for each in slices:
        if not last or each.base_instant < last or (arguments["include_max"] and each.base_instant == last):
            yield each


def show_fsview_all(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows all file slices."""
    for each in _up_to(arguments, all_slices(table, arguments.text("path_regex"))):
        names = f"[{', '.join(log.name for log in each.logs)}]"
        yield each.group.partition_path, each.group.file_id, each.base_instant, *_file(table, each), names


def show_fsview_latest(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the newest file slice of each file group."""
    pattern, last = arguments.text("path_regex") or arguments.text("partition_path"), arguments.text("max_instant")
    view = table._for_queries.snapshot().view
    until = table.timeline.find(last) if last else None
    slices = view.latest_slices(_partitions(table, pattern), until=until.time if until else None)
    for each in slices:
        path, size, count, logs = _file(table, each)
        same = [log.name for log in each.logs if log.base_instant == each.base_instant]
        others = [log.name for log in each.logs if log.base_instant != each.base_instant]
        ratio = logs / size if size else -1.0
        head = each.group.partition_path, each.group.file_id, each.base_instant, path, size, count, logs
        yield (*head, logs, 0, ratio, 0.0 if size else -1.0, f"[{','.join(same)}]", f"[{','.join(others)}]")


def show_file_status(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Says whether a file is there, and which instant took it away."""
    name = join(arguments.text("partition"), arguments.text("file"))
    if table._context.storage.exists(name):
        yield "exist", "", "", "active", join(table.uri, name)
        return
    for instant, metadata in cleans(table, arguments):
        each = metadata["partitionMetadata"].get(arguments.text("partition"))
        if each and any(path.endswith(arguments.text("file")) for path in each["successDeleteFiles"]):
            yield "deleted", instant.action, instant.time, "active", ""
            return
    yield "unknown", "", "", "", ""


def show_logfile_metadata(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the blocks of log files."""
    for log in (log for each in _with_logs(table, arguments) for log in each.logs):
        for block in scan_blocks(table._context.storage.read(log.path)):
            if isinstance(block, CorruptBlock):
                yield None, 0, "CORRUPT_BLOCK", "{}", "{}"
                continue
            header = {key.name: text for key, text in block.header.items()}
            footer = {key.name: text for key, text in block.footer.items()}
            head = header.get("INSTANT_TIME"), _records(block), f"{block.kind.name}_BLOCK"
            yield *head, json.dumps(header), json.dumps(footer)


def _with_logs(table: HoodieTable, arguments: Arguments) -> Iterator[FileSlice]:
    """File slices with those of their logs that a pattern names."""
    pattern = re.sub(r"^file:/+", "/", arguments.text("log_file_path_pattern"))
    for each in all_slices(table):
        logs = [log for log in each.logs if fnmatch(log.path, pattern) or fnmatch(join(table.uri, log.path), pattern)]
        if logs:
            yield each._replace(logs=tuple(logs))


def show_logfile_records(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the records of log files as JSON; with `merge` the newest one of each key in a file slice."""
    context: TableContext = table._context
    for each in _with_logs(table, arguments):
        if arguments["merge"]:
            shared = plan_read(context, ReadOptions(), meta_columns=True).context
            tables = [
                read_log_records(
                    *(context.storage, each, shared.schema),
                    rule=shared.rule,
                    visible=shared.visible,
                    history=shared.history,
                    unstored=shared.unstored,
                ).data
            ]
        else:
            blocks = chain.from_iterable(scan_blocks(context.storage.read(log.path)) for log in each.logs)
            tables = [_rows(block) for block in blocks if isinstance(block, LogBlock) and block.kind in DATA]
        for row in chain.from_iterable(rows.to_pylist() for rows in tables):
            yield (json.dumps(row, default=str),)


def _rows(block: LogBlock) -> pa.Table:
    if block.kind is BlockKind.PARQUET_DATA:
        return decode_parquet_data(block.content)
    return decode_avro_data(block.content, block.header[HeaderKey.SCHEMA])


def _records(block: LogBlock) -> int | None:
    """How many records or keys it holds; None where its kind does not say."""
    match block.kind:
        case BlockKind.AVRO_DATA | BlockKind.CDC_DATA:
            return len(record_bounds(block.content)[0])
        case BlockKind.PARQUET_DATA:
            return int(pq.read_metadata(pa.BufferReader(block.content)).num_rows)
        case BlockKind.DELETE:
            return decode_deletes(block.content, None).num_rows
    return None


def stats_file_sizes(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the sizes of files by the instants in their names."""
    sizes: dict[str, list[int]] = defaultdict(list)
    for each in all_slices(table, arguments.text("partition_path")):
        if each.base:
            sizes[each.base_instant].append(each.base.size_bytes)
        for log in each.logs:
            sizes[log.base_instant].append(log.size_bytes)
    everything = sorted(chain.from_iterable(sizes.values()))
    for time, sizes_of_commit in [*sorted(sizes.items()), ("ALL", everything)]:
        ordered = sorted(sizes_of_commit) or [0]
        low, middle, high = (_quantile(ordered, part) for part in (0.1, 0.5, 0.95))
        yield (
            time,
            ordered[0],
            low,
            middle,
            fmean(ordered),
            high,
            ordered[-1],
            len(sizes_of_commit),
            stdev(ordered) if len(ordered) > 1 else 0.0,
        )


def _quantile(ordered: Sequence[int], part: float) -> float:
    """As the histograms of Apache Hudi have it."""
    place = part * (len(ordered) + 1)
    low, high = (ordered[min(max(int(place) + step, 0), len(ordered) - 1)] for step in (-1, 0))
    return low + (place - int(place)) * (high - low)


def stats_wa(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows how many records commits wrote for each one that they updated."""
    all_updated = all_written = 0
    for instant in table.timeline.commits:
        *_, written, updated, _ = record_sums(table._context.active.read_commit(instant))
        all_updated, all_written = all_updated + updated, all_written + written
        yield instant.time, updated, written, f"{written / updated:.2f}" if updated else "0"
    yield "Total", all_updated, all_written, f"{all_written / all_updated:.2f}" if all_updated else "0"


def show_table_properties(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows hoodie.properties."""
    yield from sorted(table.config.raw.items())


_MAPPING = ("partition", "file_id", "source_base_path", "source_partition", "source_file")


def show_bootstrap_mapping(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows which file of a bootstrap's source has the columns of which file group."""
    base, ids = table.config.bootstrap_base, arguments.texts("file_ids")
    rows = set()
    for each in all_slices(table, arguments.text("partition_path")):
        if each.base and each.base.source and (not ids or each.group.file_id in ids):
            uri = each.base.source.uri
            below = uri.partition(f"{re.sub(r'^[a-z0-9]+:/*', '/', base)}/")[2]
            rows.add((each.group.partition_path, each.group.file_id, base, below.rpartition("/")[0], uri))
    at = _MAPPING.index(arguments.text("sort_by")) if arguments.text("sort_by") in _MAPPING else 0
    yield from sorted(rows, key=lambda row: (row[at], row), reverse=bool(arguments["desc"]))


def show_bootstrap_partitions(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the partitions whose files have the columns of their rows in a bootstrap's source."""
    slices = all_slices(table)
    yield from sorted({(each.group.partition_path,) for each in slices if each.base and each.base.source})


# -- The metadata table.


def metadata_table(table: HoodieTable) -> MetadataTable:
    """The table's metadata table as it is now; an error if there is none."""
    context: TableContext = table._context.on_storage()
    result = MetadataTable.open(context.storage, context.config, context.active.load(), context.cache)
    if result.partitions() is None:
        why = next(iter(result.reasons.values()), "there is none")
        raise OptionError(
            f"the metadata table of {table.uri} cannot be read: {why}. CALL create_metadata_table makes one where there is none"
        )
    return result


def show_metadata_table_partitions(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the partitions that the metadata table knows."""
    for path in metadata_table(table).partitions() or ():
        yield (path,)


def show_metadata_table_files(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the files of a partition that the metadata table knows."""
    (infos,) = metadata_table(table).files([arguments.text("partition")]) or [[]]
    for name in sorted(info.name for info in infos):
        yield (name,)


def show_metadata_table_stats(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the size of each partition of the metadata table."""
    metadata_table(table)
    for each in table.indexes():
        if each.file_groups is not None:
            for key, count in (("size", each.size_bytes), ("fileGroups", each.file_groups), ("records", each.records)):
                yield f"{each.name}.{key}", str(count or 0)


def show_metadata_table_column_stats(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Shows the bounds of columns in each base file."""
    pattern = arguments.text("partition")
    files = [each.base for each in table.files() if each.base and (not pattern or each.group.partition_path == pattern)]
    names = arguments.texts("targetColumns")
    schema = table.schema or pa.schema([])
    columns = pa.schema([field for field in schema if not names or field.name in names])
    stats = metadata_table(table).column_stats([file.path for file in files], columns) or {}
    for column, ranges in stats.items():
        for file, each in zip(files, ranges.to_pylist(), strict=True):
            if each["values"] is not None:
                low, high = (None if each[key] is None else str(each[key]) for key in ("low", "high"))
                yield file.name, column, low, high, each["nulls"]


def validate_metadata_table_files(table: HoodieTable, arguments: Arguments) -> Iterator[Row]:
    """Compares the files of the metadata table with those on storage."""
    table_files = {
        path: {info.name: info.size_bytes for info in infos}
        for path, infos in (metadata_table(table).all_files() or {}).items()
    }
    for path in sorted({*table_files, *table._context.on_storage().snapshot().view.partitions()}):
        there = {
            info.name: info.size_bytes
            for info in table._context.storage.list(path)
            if parse_base_file(info.name) or parse_log_file(info.name)
        }
        in_metadata = table_files.get(path, {})
        for name in sorted({*there, *in_metadata}):
            size, listed_size = there.get(name), in_metadata.get(name)
            is_same = size is not None and size == listed_size
            if arguments["verbose"] or not is_same:
                yield path, name, size is not None, listed_size is not None, size or 0, listed_size or 0


# -- Folders, which need not be tables.


def show_invalid_parquet(spark: Any, arguments: Arguments) -> Iterator[Row]:
    """Shows the Parquet files below a folder that cannot be read."""
    if arguments["needDelete"]:
        raise OptionError("CALL show_invalid_parquet deletes nothing: CALL restore, or hoodie repair, mends a table")
    storage, _ = reached(arguments.text("path"), None, spark)
    for info in storage.list("", recursive=True):
        if info.is_folder or not info.name.endswith(".parquet") or info.path.startswith(".hoodie/"):
            continue
        try:
            with storage.open_input(info.path) as file:
                pq.read_metadata(file)
        except (pa.ArrowException, HoodieError, OSError):
            yield (join(storage.uri, info.path),)


def show_fs_path_detail(spark: Any, arguments: Arguments) -> Iterator[Row]:
    """Shows how many files a folder has, and how large they are."""
    storage, _ = reached(arguments.text("path"), None, spark)
    infos = storage.list("", recursive=True)
    folders = sorted({info.path.split("/")[0] for info in infos if "/" in info.path}) if arguments["is_sub"] else [""]
    rows = []
    for folder in folders:
        below = [info for info in infos if not info.is_folder and (not folder or info.path.startswith(f"{folder}/"))]
        size = sum(info.size_bytes for info in below)
        paths = len({info.path.rpartition("/")[0] for info in below})
        rows.append((paths, len(below), size, _readable(size), join(storage.uri, folder), size, -1, -1))
    yield from sorted(rows, key=lambda row: row[2], reverse=True) if arguments["sort"] else rows


def _readable(size: int) -> str:
    unit = next(each for each in ("GB", "MB", "KB", "B") if each == "B" or size >= _UNITS[each])
    return f"{size / _UNITS[unit]:.2f}{unit}"


_UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}

OF_FOLDERS: Mapping[str, Callable[[Any, Arguments], Iterable[Row]]] = {
    each.__name__: each for each in (show_invalid_parquet, show_fs_path_detail)
}
"""By the name of the procedure; the first argument is the session."""

FILES: Mapping[str, Callable[[HoodieTable, Arguments], Iterable[Row]]] = {
    each.__name__: each
    for each in (
        *(show_fsview_all, show_fsview_latest, show_file_status, show_logfile_metadata, show_logfile_records),
        *(stats_file_sizes, stats_wa, show_bootstrap_mapping, show_bootstrap_partitions),
        *(show_table_properties, show_metadata_table_partitions, show_metadata_table_files, show_metadata_table_stats),
        *(show_metadata_table_column_stats, validate_metadata_table_files),
    )
}
"""By the name of the procedure."""
