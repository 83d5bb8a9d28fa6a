"""The first state of a metadata table: its partition `files`, from a listing of all folders, in the form that Apache Hudi gives it."""

from __future__ import annotations

import logging
from collections.abc import Collection
from datetime import UTC, datetime

import pyarrow as pa

from hoodie.format.commit_json import encode_commit
from hoodie.format.log_block import encode_block
from hoodie.format.log_content import encode_deletes
from hoodie.format.plan_avro import schema_text
from hoodie.format.properties import format_properties, table_checksum
from hoodie.metadata.keys import ALL_PARTITIONS, FILES, identifier_of
from hoodie.metadata.records import Entries, encode_entries
from hoodie.metadata.visible import FIRST_STATE
from hoodie.model.enums import Action, BlockKind, HeaderKey, State, WriteOperation
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.names import (
    METADATA_TABLE,
    PARTITION_METADATA,
    PROPERTIES,
    BaseFileName,
    LogFileName,
    format_base_file,
    format_log_file,
    join,
    parse_base_file,
    parse_log_file,
)
from hoodie.model.payloads import CommitMetadata, WriteStat
from hoodie.storage.below import FolderStorage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext
from hoodie.view.listing import StorageListing

log = logging.getLogger("hoodie")

_FILE_ID, _TOKEN = "files-0000-0", "0-0-0"
_ARCHIVE = "archived"


def build_files(context: TableContext, *, ignored: Collection[InstantTime] = ()) -> bool:
    """Write it where there is no metadata table; False, and nothing done, where an instant is pending that is not in `ignored`.

    The caller holds the table's lock, and names the partition in the table's properties afterwards: nobody reads it before.
    What a pending instant wrote is left out, for it gets a delta commit when it is completed.
    """
    timeline = context.active.load()
    pending = [each for each in timeline if not each.is_completed and each.action is not Action.INDEXING]
    at_work = next((each for each in pending if each.time not in ignored), None)
    if at_work is not None:
        log.info("no metadata table was built for %s: %s is pending", context.storage.uri, at_work)
        return False
    done = [each.time for each in timeline if each.is_completed]
    time = InstantTime(f"{max(done)}010") if done else FIRST_STATE
    _write(context, time, _entries(context, timeline, {each.time for each in pending}))
    return True


def _entries(context: TableContext, timeline: Timeline, pending: Collection[str]) -> dict[str, Entries]:
    """The records: of each partition, and of all of them. Files that are newer than the timeline are left out."""
    latest = max((each.time for each in timeline if each.is_completed), default=InstantTime(""))
    found = StorageListing(context.storage).all_files()
    records: dict[str, Entries] = {ALL_PARTITIONS: {identifier_of(path): (0, False) for path in found.partitions}}
    for path in found.partitions:
        sizes = {}
        for info in found.files[path]:
            base, appended = parse_base_file(info.name), parse_log_file(info.name)
            begin = base.instant if base is not None else appended.base_instant if appended is not None else None
            if begin is not None and begin <= latest and begin not in pending:
                sizes[info.name] = (info.size_bytes, False)
        if sizes:
            records[identifier_of(path)] = sizes
    return records


def _write(context: TableContext, time: InstantTime, records: dict[str, Entries]) -> None:
    storage, schema = FolderStorage(context.storage, METADATA_TABLE), schema_text("HoodieMetadataRecord")
    now = datetime.now(UTC)
    stamp = now.strftime("%a %b %d %H:%M:%S UTC %Y")
    comment = [f"Properties saved on {now.isoformat()}", stamp]
    storage.create_new(PROPERTIES, format_properties(_properties(context), comment=comment).encode())
    place = format_properties({"commitTime": time, "partitionDepth": "1"}, comment=["partition metadata", stamp])
    storage.create_new(join(FILES, PARTITION_METADATA), place.encode())
    # Apache Hudi finds a file group without records by this log.
    nothing = pa.array([], pa.string())
    empty = encode_block(BlockKind.DELETE, {HeaderKey.INSTANT_TIME: time}, encode_deletes(nothing, nothing, None))
    storage.create_new(join(FILES, format_log_file(LogFileName(_FILE_ID, time, 1, _TOKEN))), empty)
    active = ActiveTimeline(storage, context.cache, history=_ARCHIVE)
    for state in (State.REQUESTED, State.INFLIGHT):
        active.create(Instant(time, Action.DELTACOMMIT, state))
    data = encode_entries(records, schema, is_base=True)
    path = join(FILES, format_base_file(BaseFileName(_FILE_ID, _TOKEN, time), ".hfile"))
    storage.create_new(path, data)
    count, size_bytes = len(records), len(data)
    stat = WriteStat(
        _FILE_ID,
        FILES,
        path,
        num_writes=count,
        num_inserts=count,
        total_bytes=size_bytes,
        file_size_bytes=size_bytes,
    )
    written = CommitMetadata(WriteOperation.BULK_INSERT, {FILES: (stat,)}, schema)
    active.create(Instant(time, Action.DELTACOMMIT, State.COMPLETED), encode_commit(written))


def _properties(context: TableContext) -> dict[str, str]:
    config = context.config
    name = f"{config.name}_metadata"
    return {
        "hoodie.table.name": name,
        "hoodie.table.type": "MERGE_ON_READ",
        "hoodie.table.version": str(int(config.layout.version)),
        "hoodie.timeline.layout.version": str(config.layout.number),
        "hoodie.table.base.file.format": "HFILE",
        "hoodie.table.recordkey.fields": "key",
        "hoodie.table.keygenerator.type": "HOODIE_TABLE_METADATA",
        "hoodie.compaction.payload.class": "org.apache.hudi.metadata.HoodieMetadataPayload",
        "hoodie.record.merge.strategy.id": "00000000-0000-0000-0000-000000000000",
        "hoodie.populate.meta.fields": "false",
        "hoodie.datasource.write.drop.partition.columns": "false",
        "hoodie.archivelog.folder": _ARCHIVE,
        "hoodie.table.checksum": str(table_checksum(name)),
    }
