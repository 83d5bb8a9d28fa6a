"""Give the files of the chosen attempts their final names, and say in the commit's metadata what they are."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import pyarrow as pa

from hoodie.format.avro_schema import avro_from_arrow
from hoodie.format.column_stats import COLUMN_STATS, encode_column_stats
from hoodie.format.parquet_footer import SOUND_FLOATS, has_floats
from hoodie.format.properties import format_properties
from hoodie.model.enums import WriteOperation
from hoodie.model.names import PARTITION_METADATA, join, name_of
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.model.plans import StagedFile, WriteResult
from hoodie.storage.base import Storage
from hoodie.storage.parallel import together
from hoodie.view.context import TableContext


def publish_files(
    context: TableContext,
    instant: str,
    results: Sequence[WriteResult],
    copies: Callable[[], Sequence[StagedFile]] = tuple,
    *,
    gathered_markers: bool = False,
) -> Sequence[str]:
    """Make the folders partitions and stage row copies, then give the files their names. What it gives, `Publisher.clear` takes.

    A folder in which a file group goes on is a partition, and is not asked: who began the group made it one before that.
    """
    paths = sorted({r.stat.partition_path for r in results} - {r.stat.partition_path for r in results if _goes_on(r)})

    def stage_more() -> Sequence[StagedFile]:
        return together(context.storage, partial(ensure_partitions, context.storage, paths, instant), copies)[1]

    files = [file for result in results for file in (result.file, result.change_log) if file is not None]
    return context.publisher.publish(instant, files, gathered=gathered_markers, stage_more=stage_more)


def _goes_on(result: WriteResult) -> bool:
    """Whether the file group had a base file or a log before."""
    stat = result.stat
    if stat.log_version is None:
        return stat.prev_commit is not None
    return bool(stat.base_file) or len(stat.log_files) > 1


def ensure_partitions(storage: Storage, partition_paths: Iterable[str], instant: str) -> None:
    """The files that make folders partitions: without it Spark's readers do not see a folder at all.

    What another writer was first to make is the same but for its instant.
    """
    at_depth: dict[int, bytes] = {}
    files = []
    for path in partition_paths:
        content = at_depth.get(depth_of(path)) or at_depth.setdefault(depth_of(path), partition_metadata(path, instant))
        files.append((join(path, PARTITION_METADATA), content))
    storage.create_missing(files)


def partition_metadata(partition_path: str, instant: str) -> bytes:
    """The content of that file; `instant`: the first commit that wrote into the partition."""
    comment = ["partition metadata", datetime.now(UTC).strftime("%a %b %d %H:%M:%S UTC %Y")]
    properties = {"commitTime": instant, "partitionDepth": str(depth_of(partition_path))}
    return format_properties(properties, comment=comment).encode()


def depth_of(partition_path: str) -> int:
    """How many folders below the table's own a partition lies."""
    return len([part for part in partition_path.split("/") if part])


def commit_metadata(
    results: Iterable[WriteResult],
    *,
    operation: WriteOperation,
    schema: pa.Schema,
    table_name: str,
    compacted: bool = False,
    extra: Mapping[str, str] | None = None,
    replaced: Mapping[str, tuple[str, ...]] | None = None,
) -> CommitMetadata:
    """Metadata of a commit; `schema` without meta columns. `replaced`: by partition path, the file groups that it replaces."""
    stats: dict[str, list[WriteStat]] = {}
    ranges = {}
    for result in results:
        stats.setdefault(result.stat.partition_path, []).append(result.stat)
        ranges[name_of(result.stat.path)] = result.ranges
    bounds = encode_column_stats(ranges)
    return CommitMetadata(
        operation=operation,
        write_stats={partition: tuple(stats_of_path) for partition, stats_of_path in stats.items()},
        schema_json=json.dumps(avro_from_arrow(schema, table_name=table_name), separators=(",", ":")),
        extra={
            **(extra or {}),
            **({} if bounds is None else {COLUMN_STATS: bounds}),
            **({SOUND_FLOATS: "true"} if any(has_floats(field.type) for field in schema) else {}),
        },
        compacted=compacted,
        replaced_file_ids=dict(replaced or {}),
    )
