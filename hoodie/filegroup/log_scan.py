"""Log files of a slice -> the one live record or delete of each key (table version 6).

The order of steps is Apache Hudi's: format notes, "Scanning and merging". Unlike Hudi, a damaged block inside the size
that commit metadata states is an error and not skipped: only what lies behind committed sizes is a torn tail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.filegroup.conform import conform
from hoodie.filegroup.merge import latest_of_each
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.log_content import decode_avro_data, decode_deletes, decode_parquet_data
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.files import FileSlice, LogFile
from hoodie.model.instant import VisibleInstants
from hoodie.model.meta_fields import IS_DELETED, RECORD_KEY
from hoodie.model.plans import MergeRule
from hoodie.storage.base import Storage

_DATA = (BlockKind.AVRO_DATA, BlockKind.PARQUET_DATA)
_ROLLBACK = "0"


@dataclass(frozen=True)
class LogRecords:
    """What a slice's logs say, reduced to one entry a key: first the `data` rows, then the deletes.

    `keys`, `ordering` and `commit_time_deletes` cover both, in that order.
    """

    data: pa.Table
    keys: pa.Array
    ordering: pa.Array | None
    commit_time_deletes: np.ndarray
    blocks: int
    records: int
    """Entries before the reduction."""

    @property
    def live(self) -> int:
        """Entries from here on are deletes."""
        return int(self.data.num_rows)


def read_log_records(
    storage: Storage, piece: FileSlice, schema: pa.Schema, *, rule: MergeRule, visible: VisibleInstants
) -> LogRecords:
    """Scan, decode and reduce the logs of a slice.

    Args:
        schema: columns of `data`; holds `_hoodie_record_key` and, where the rule needs it, the ordering field.

    Raises:
        CorruptFileError: a log file is missing, or a block of a completed commit is damaged.
    """
    tables: list[pa.Table] = []
    keys: list[pa.Array] = []
    orderings: list[pa.Array] = []
    deleted: list[np.ndarray] = []
    rows: list[np.ndarray] = []
    field = schema.field(rule.ordering_field) if rule.ordering_field in schema.names else None
    offset = blocks = 0
    for block, path in _live_blocks(storage, piece.logs, visible):
        blocks += 1
        if block.kind in _DATA:
            wanted = _with_delete_flag(schema)
            table = conform(_decode_data(block, path, wanted.names), wanted, path=path)
            flags = _delete_flags(table)
            tables.append(table.select(schema.names))
            keys.extend(table.column(RECORD_KEY).chunks)
            if field is not None:
                orderings.extend(table.column(field.name).chunks)
            deleted.append(flags)
            rows.append(np.where(flags, -1, np.arange(offset, offset + table.num_rows)))
            offset += table.num_rows
        else:
            found = _named(path, partial(decode_deletes, block.content, field.type if field else None))
            keys.extend(found.column("record_key").chunks)
            if field is not None:
                orderings.extend(found.column("ordering").chunks)
            deleted.append(np.ones(found.num_rows, dtype=bool))
            rows.append(np.full(found.num_rows, -1))
    data = pa.concat_tables(tables) if tables else schema.empty_table()
    all_keys = pa.concat_arrays(keys) if keys else pa.array([], pa.string())
    ordering = None
    if field is not None:
        ordering = pa.concat_arrays(orderings) if orderings else pa.array([], field.type)
    is_delete = np.concatenate(deleted) if deleted else np.empty(0, dtype=bool)
    row_of = np.concatenate(rows) if rows else np.empty(0, dtype=np.int64)
    return _reduced(data, all_keys, ordering, is_delete, row_of, rule=rule, blocks=blocks)


def _reduced(
    data: pa.Table,
    keys: pa.Array,
    ordering: pa.Array | None,
    is_delete: np.ndarray,
    row_of: np.ndarray,
    *,
    rule: MergeRule,
    blocks: int,
) -> LogRecords:
    commit_time = is_delete.copy()
    if ordering is not None:
        commit_time &= pc.is_null(ordering).to_numpy(zero_copy_only=False)
    winners = latest_of_each(keys, ordering, commit_time, rule)
    winners = np.concatenate([winners[~is_delete[winners]], winners[is_delete[winners]]])  # data first, then deletes
    live = row_of[winners][~is_delete[winners]]
    chosen = pa.array(winners)
    return LogRecords(
        data=data if len(live) == data.num_rows else data.take(pa.array(live)),
        keys=keys.take(chosen),
        ordering=ordering.take(chosen) if ordering is not None else None,
        commit_time_deletes=commit_time[winners],
        blocks=blocks,
        records=len(keys),
    )


def _live_blocks(
    storage: Storage, logs: tuple[LogFile, ...], visible: VisibleInstants
) -> Iterator[tuple[LogBlock, str]]:
    """Data and delete blocks that count, grouped by instant in order of first appearance."""
    groups: dict[str, list[tuple[LogBlock, str]]] = {}
    for log in logs:
        for block in _whole_blocks(storage, log):
            instant = block.header.get(HeaderKey.INSTANT_TIME, "")
            if block.kind is BlockKind.COMMAND:
                if block.header.get(HeaderKey.COMMAND_BLOCK_TYPE) == _ROLLBACK:
                    groups.pop(block.header.get(HeaderKey.TARGET_INSTANT_TIME, ""), None)
                continue
            if block.kind not in (*_DATA, BlockKind.DELETE):
                raise UnsupportedTableError(
                    f"{log.path} of table {storage.uri} holds a {block.kind.name} block, which this release cannot merge"
                )
            if HeaderKey.COMPACTED_BLOCK_TIMES in block.header:
                raise UnsupportedTableError(
                    f"{log.path} of table {storage.uri} was written by log compaction, which this release cannot read; "
                    "run a full compaction with Apache Hudi first"
                )
            if not visible.sees(instant):
                continue
            if log.committed_bytes is None and instant in visible.completed:
                continue  # left over from a dead attempt: the commit does not name this file
            groups.setdefault(instant, []).append((block, log.path))
    for found in groups.values():
        yield from found


def _whole_blocks(storage: Storage, log: LogFile) -> Iterator[LogBlock]:
    where = f"{log.path} of table {storage.uri}"
    try:
        data = storage.read(log.path)
    except FileNotFoundError as exc:
        raise CorruptFileError(
            f"{where} is gone: it was removed while a query still needed it; run the query again"
        ) from exc
    if not data and not log.committed_bytes:
        return
    committed = log.committed_bytes or 0
    try:
        for block in scan_blocks(data):
            if isinstance(block, LogBlock):
                yield block
            elif block.offset < committed:
                raise CorruptFileError(
                    f"{where} is damaged at byte {block.offset} ({block.reason}), inside the {committed} bytes that its commit "
                    "wrote; restore the file from a copy"
                )
    except CorruptFileError as exc:
        raise exc if log.path in str(exc) else CorruptFileError(f"{where}: {exc}") from exc


def _decode_data(block: LogBlock, path: str, columns: Sequence[str]) -> pa.Table:
    if block.kind is BlockKind.PARQUET_DATA:
        return _named(path, lambda: decode_parquet_data(block.content))
    schema = block.header.get(HeaderKey.SCHEMA)
    if schema is None:
        raise CorruptFileError(f"{path}: the data block at byte {block.offset} has no schema in its header")
    return _named(path, lambda: decode_avro_data(block.content, schema, columns))


def _named(path: str, decode: Callable[[], pa.Table]) -> pa.Table:
    try:
        return decode()
    except CorruptFileError as exc:
        raise CorruptFileError(f"{path}: {exc}") from exc
    except UnsupportedTableError as exc:
        raise UnsupportedTableError(f"{path}: {exc}") from exc


def _with_delete_flag(schema: pa.Schema) -> pa.Schema:
    if IS_DELETED in schema.names:
        return schema
    return schema.append(pa.field(IS_DELETED, pa.bool_()))


def _delete_flags(table: pa.Table) -> np.ndarray:
    flags = pc.fill_null(table.column(IS_DELETED), False).combine_chunks()
    result: np.ndarray = flags.to_numpy(zero_copy_only=False)
    return result
