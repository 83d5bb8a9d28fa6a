"""The first state of a metadata table, from a listing of all folders, and of its partitions, in the form that Apache Hudi gives it."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from hoodie.format.layout import V6
from hoodie.format.plan_avro import schema_text
from hoodie.format.properties import format_properties, table_checksum
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.files import FilesPartition
from hoodie.metadata.instants import OwnInstants
from hoodie.metadata.partition import MetadataPartition, Scope, Shard, TableFiles
from hoodie.metadata.writer import TOKEN, MetadataWriter, delete_block, write_base
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.names import (
    METADATA_TABLE,
    PARTITION_METADATA,
    PROPERTIES,
    LogFileName,
    format_log_file,
    join,
    parse_base_file,
    parse_log_file,
)
from hoodie.model.payloads import CommitMetadata
from hoodie.options.table import TableConfig
from hoodie.storage.subfolder import FolderStorage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext
from hoodie.view.listing import StorageListing

log = logging.getLogger("hoodie")


def build_files(context: TableContext, *, ignored: Collection[InstantTime] = ()) -> bool:
    """Make a metadata table of `files` where there is none; False, and nothing done, where an instant is pending that is not in
    `ignored`.

    The caller holds the table's lock, and names the partition in the table's properties afterwards: nobody reads it before.
    What a pending instant wrote is left out, for it gets a delta commit when it is completed.
    """
    timeline = context.active.load()
    if _is_at_work(context, timeline, ignored):
        return False
    storage, schema = FolderStorage(context.storage, METADATA_TABLE), _record_schema()
    now = datetime.now(UTC)
    comment = [f"Properties saved on {now.isoformat()}", now.strftime("%a %b %d %H:%M:%S UTC %Y")]
    storage.create_new(PROPERTIES, format_properties(_properties(context), comment=comment).encode())
    pending = {each.time for each in timeline.at_work}
    partition = FilesPartition()
    ids, shards = partition.first(Scope(context, {}, schema), _files(context, timeline, pending))
    layout = context.config.layout
    active = ActiveTimeline(storage, context.cache, layout=layout, folder=layout.folder)
    if layout.by_completion:
        storage.mkdirs(join(layout.folder, layout.history.default))
    own = OwnInstants(active.load_all(), timeline, context.clock)
    _lay_down(active, own, partition.name, own.first(()), ids, shards, schema)
    return True


def build_partition(
    context: TableContext,
    config: TableConfig,
    partition: MetadataPartition,
    *,
    ignored: Collection[InstantTime] = (),
    cache: dict[Hashable, Any] | None = None,
) -> Mapping[str, str] | None:
    """Make one more partition of a metadata table, for the files that its partition `files` has; else as there. Gives what the
    table's properties shall say of it besides; None where nothing was done. `cache`: as `Scope` has it.

    Raises:
        CorruptFileError, MissingFileError, UnsupportedTableError, FileNotFoundError: the metadata table cannot be kept up.
    """
    timeline = context.active.load()
    if _is_at_work(context, timeline, ignored):
        return None
    writer = MetadataWriter.open(context, config, timeline, [FilesPartition()], ignored)
    scope = replace(writer.scope, cache={} if cache is None else cache)
    ids, shards = partition.first(scope, writer.table.sizes())
    time = writer.instants.first({each.time for each in writer.opened.own})
    _lay_down(writer.opened.active, writer.instants, partition.name, time, ids, list(shards), scope.schema)
    return partition.properties(scope)


def _is_at_work(context: TableContext, timeline: Timeline, ignored: Collection[InstantTime]) -> bool:
    """Whether an instant is pending of which nobody knows what it will have written."""
    pending = (each for each in timeline.at_work if each.action is not Action.INDEXING)
    at_work = next((each for each in pending if each.time not in ignored), None)
    if at_work is not None:
        log.info("the metadata table of %s is not built: %s is pending", context.storage.uri, at_work)
    return at_work is not None


def _files(context: TableContext, timeline: Timeline, pending: Collection[str]) -> TableFiles:
    """What the folders have. Files that are newer than the timeline are left out."""
    latest = max((each.time for each in timeline if each.is_completed), default=InstantTime(""))
    listing = StorageListing(context.storage).all_files()
    files: dict[str, dict[str, int]] = {}
    for path in listing.partitions:
        sizes = files[path] = {}
        for info in listing.files[path]:
            base, appended = parse_base_file(info.name), parse_log_file(info.name)
            begin = base.instant if base is not None else appended.base_instant if appended is not None else None
            if begin is not None and begin <= latest and begin not in pending:
                sizes[info.name] = info.size_bytes
    return files


def _lay_down(
    active: ActiveTimeline,
    instants: OwnInstants,
    name: str,
    time: InstantTime,
    ids: Sequence[str],
    shards: Iterable[Shard],
    schema: str,
) -> None:
    """Write a partition of the metadata table with file groups of these ids, and the delta commit of it."""
    storage = active.storage
    stamp = datetime.now(UTC).strftime("%a %b %d %H:%M:%S UTC %Y")
    place = format_properties({"commitTime": time, "partitionDepth": "1"}, comment=["partition metadata", stamp])
    storage.create_new(join(name, PARTITION_METADATA), place.encode())
    # Apache Hudi finds a file group without records by this log.
    empty = delete_block(name, time, pa.array([], BINARY))
    logs = [join(name, format_log_file(LogFileName(each, time, 1, TOKEN))) for each in ids]
    storage.each(lambda path: storage.create_new(path, empty), logs)
    requested, inflight, completed = (Instant(time, Action.DELTACOMMIT, state) for state in State)
    for each in (requested, inflight):
        active.create(each)
    stats = tuple(write_base(storage, name, ids[shard.number], time, shard, schema) for shard in shards)
    written = CommitMetadata(WriteOperation.BULK_INSERT, {name: stats} if stats else {}, schema)
    completed = instants.completing(completed)
    active.create(completed, active.encode_commit(completed, written))


def _record_schema() -> str:
    """With the meta columns in front, which are null, as Apache Hudi has it: hudi-rs wants them in all files or in none."""
    record = json.loads(schema_text("HoodieMetadataRecord"))
    meta = [{"name": name, "type": ["null", "string"], "doc": "", "default": None} for name in META_COLUMNS]
    return json.dumps({**record, "fields": [*meta, *record["fields"]]}, separators=(",", ":"))


def _properties(context: TableContext) -> dict[str, str]:
    config, layout = context.config, context.config.layout
    name = f"{config.name}_metadata"
    version = str(int(config.layout.version))
    more = {V6.history.property: layout.history.default}
    if layout.by_completion:
        more |= {each.property: each.default for each in (layout.timeline, layout.history)}
        more |= {"hoodie.table.initial.version": version, "hoodie.record.merge.mode": "CUSTOM"}
    return {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": version,
        "hoodie.timeline.layout.version": str(config.layout.number),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        **more,
        "hoodie.table.checksum": str(table_checksum(name)),
    }
