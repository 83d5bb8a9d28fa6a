"""Log files of a slice -> the one live record or delete of each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.filegroup.column_names import renames_for
from hoodie.filegroup.conform import conform
from hoodie.filegroup.deletes import delete_flags, flag_columns
from hoodie.filegroup.fold import Entries, Usable, fold, folded_rows, usable_values
from hoodie.filegroup.log_blocks import DATA, LiveBlocks, live_blocks, loaded_block
from hoodie.filegroup.merge import fills_by_event_time, latest_of_each, unconditional, without_value
from hoodie.filegroup.ordering import ordering_of, ordering_type
from hoodie.filegroup.picks import rows_at
from hoodie.format.delete_codec import deletes_without
from hoodie.format.log_block import LogBlock
from hoodie.format.log_content import (
    avro_data_pieces,
    decode_deletes,
    decode_parquet_data,
    field_names,
    parquet_data_pieces,
)
from hoodie.format.log_search import avro_records_with, parquet_records_with
from hoodie.model.columns import ColumnHistory
from hoodie.model.enums import BlockKind, HeaderKey
from hoodie.model.files import FileSlice, LogFile
from hoodie.model.instant import InstantTime, VisibleInstants
from hoodie.model.meta_fields import COMMIT_TIME, META_COLUMNS, PARTITION_PATH, RECORD_KEY
from hoodie.model.names import folder_of, restored
from hoodie.model.plans import MergeRule, UnstoredColumns
from hoodie.storage.base import Storage

T = TypeVar("T")

_SEARCHED_KEYS = 64
"""A block of deletes is searched for the bytes of so many keys; to decode it takes no longer than to search it for more."""


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
    present: Usable | None = None
    """Where blocks held some columns only: column -> bool for each data row, whether a block had it."""

    @property
    def live(self) -> int:
        """Entries from here on are deletes."""
        return int(self.data.num_rows)


def read_log_records(
    storage: Storage,
    file_slice: FileSlice,
    schema: pa.Schema,
    *,
    rule: MergeRule,
    visible: VisibleInstants,
    history: ColumnHistory | None = None,
    unstored: UnstoredColumns | None = None,
    keys: pa.Array | None = None,
) -> LogRecords:
    """Scan, decode and reduce the logs of a slice.

    Args:
        schema: columns of `data`; holds `_hoodie_record_key` and, where the rule needs them, the ordering fields.
        history: where columns were renamed.
        unstored: what files of the table leave out.
        keys: the record keys that are asked for; entries of others are left out, and blocks without them are not decoded.

    Raises:
        CorruptFileError: a log file is missing, or a block of a completed commit is damaged.
        UnsupportedTableError: a block, or a way of merging, that this release does not have.
    """
    entries = CollectedEntries(schema, rule, history, unstored, keys)
    try:
        collect(storage, file_slice.logs, entries, visible=visible)
    except CorruptFileError:
        if keys is None:
            raise
        # Whoever decodes all of it says what is wrong. A search counts deletes by the word of their list.
        entries = CollectedEntries(schema, rule, history, unstored)
        collect(storage, file_slice.logs, entries, visible=visible)
    return entries.reduced()


def read_log_rows(
    storage: Storage,
    log: LogFile,
    schema: pa.Schema,
    *,
    rule: MergeRule,
    visible: VisibleInstants,
    unstored: UnstoredColumns | None = None,
) -> pa.Table:
    """All rows of the data blocks of one log file, in the order in which they stand there; nothing is merged. `unstored` as above.

    Raises:
        CorruptFileError, UnsupportedTableError: as `read_log_records`.
    """
    entries = CollectedEntries(schema, rule, None, unstored)
    collect(storage, (log,), entries, visible=visible)
    return pa.concat_tables(entries.tables) if entries.tables else schema.empty_table()


def collect(
    storage: Storage,
    logs: tuple[LogFile, ...],
    collector: CollectedEntries,
    *,
    visible: VisibleInstants,
    piece_bytes: int | None = None,
) -> LiveBlocks:
    """Hand the entries of all blocks that count to `collector`, in merge order; gives the blocks, without their contents where these
    were read one at a time.

    Args:
        piece_bytes: read one block at a time, and decode about so many bytes of it at once; None: all blocks are in memory.
    """
    merged: Counter[str] = Counter()
    live = live_blocks(storage, logs, visible, at_once=piece_bytes is None)
    for block, path in live.blocks:
        before = collector.entries
        if collector.rule.refusal:
            raise UnsupportedTableError(
                f"{path} of table {storage.uri} cannot be merged: {collector.rule.refusal}; compact it with the engine that wrote it"
            )
        whole = block if piece_bytes is None else loaded_block(storage, block, path)
        if block.kind in DATA:
            collector.add_data(whole, path, piece_bytes)
        else:
            collector.add_deletes(whole, path)
        del whole  # before the next one is read
        merged[block.header[HeaderKey.INSTANT_TIME]] += collector.entries - before
    _refuse_lost_blocks(storage, logs, merged, visible, stood_for=live.stood_for)
    return live


def _refuse_lost_blocks(
    storage: Storage,
    logs: Sequence[LogFile],
    merged: Mapping[str, int],
    visible: VisibleInstants,
    *,
    stood_for: frozenset[str],
) -> None:
    """Raises CorruptFileError when the blocks of an instant hold fewer entries than its commit wrote into these files.

    So a block is missed whose kind or instant was damaged, or that a damaged rollback block disarmed. By instant and not by
    file: where Hudi's writer goes on to another file it counts deletes with the first and stores them in the last. More
    may be there: a task that was run again can have appended to the same file. What the blocks of a log compaction stand for is
    counted with these.
    """
    expected: Counter[InstantTime] = Counter()
    for log in logs:
        for instant, count in log.committed_entries:
            if visible.sees(instant) and instant not in stood_for:
                expected[instant] += count
    for instant, count in expected.items():
        if merged.get(instant, 0) < count:
            paths = [log.path for log in logs if instant in dict(log.committed_entries)]
            raise CorruptFileError(
                f"{', '.join(paths[:3])} of table {storage.uri}: {merged.get(instant, 0)} records and deletes of instant "
                f"{instant} were found, its commit wrote {count}: a block or the commit's metadata are damaged; restore "
                "them from a copy"
            )


class CollectedEntries:
    """The entries of blocks, in merge order."""

    def __init__(
        self,
        schema: pa.Schema,
        rule: MergeRule,
        history: ColumnHistory | None = None,
        unstored: UnstoredColumns | None = None,
        only_keys: pa.Array | None = None,
    ) -> None:
        self.schema, self.rule, self.history, self.unstored, self.only_keys = schema, rule, history, unstored, only_keys
        self.kind = ordering_type(schema, rule)
        self.blocks = self.offset = self.entries = 0
        self.tables: list[pa.Table] = []
        self.keys: list[pa.Array] = []
        self.orderings: list[pa.Array] = []
        self.deleted: list[np.ndarray] = []
        self.from_block: list[np.ndarray] = []
        self.rows: list[np.ndarray] = []
        self.missing: list[tuple[int, int, frozenset[str]]] = []
        """Of blocks that hold some columns only: first row, row after the last, the columns they lack."""

    def add_data(self, block: LogBlock, path: str, piece_bytes: int | None = None) -> None:
        extra = [
            field
            for field in (*flag_columns(self.schema, self.rule), pa.field(PARTITION_PATH, pa.string()))
            if field.name not in self.schema.names
        ]
        stored = self.schema if self.unstored is None else self.unstored.decoded(self.schema)
        names = [*stored.names, *(field.name for field in extra if field.name not in stored.names)]
        renames = None
        if self.history is not None:
            renames = renames_for(self.history, block.header.get(HeaderKey.INSTANT_TIME, ""), path=path)
        for decoded in self._pieces(block, path, names if renames is None else renames.sources(names), piece_bytes):
            renamed_rows = decoded if renames is None else renames.apply(decoded)
            marks = [field for field in extra if field.name in renamed_rows.column_names]
            read = pa.schema([*stored, *(field for field in marks if field.name not in stored.names)])
            table = conform(renamed_rows, read, path=path)
            if self.unstored is not None:
                table = self.unstored.completed(table, pa.schema([*self.schema, *marks]), path)
            _check_meta(table, block, path, keys_only=self.unstored is not None and self.unstored.keys)
            if is_partial(block):
                has = _columns_of(block, path)
                lacks = frozenset(self.schema.names).difference(has if renames is None else renames.targets(has))
                self.missing.append((self.offset, self.offset + table.num_rows, lacks))
            self._add_rows(table, delete_flags(table, self.rule))
        self.blocks += 1

    def _pieces(self, block: LogBlock, path: str, names: Sequence[str], piece_bytes: int | None) -> Iterator[pa.Table]:
        if self.only_keys is None:
            yield from _decode_data(block, path, names, piece_bytes)
            return
        search = parquet_records_with if block.kind is BlockKind.PARQUET_DATA else avro_records_with
        schema = _schema_of(block, path)
        rows, count = _naming(path, partial(search, block.content, schema, names, RECORD_KEY, self.only_keys))
        self.entries += count
        if rows is not None:
            self.entries -= rows.num_rows  # these are counted where they are added
            yield rows

    def _add_rows(self, table: pa.Table, flags: np.ndarray) -> None:
        count = table.num_rows
        self.tables.append(table.select(self.schema.names))
        self.keys.extend(table.column(RECORD_KEY).chunks)
        self._add(
            ordering_of(table, self.rule), flags, np.where(flags, -1, np.arange(self.offset, self.offset + count))
        )
        self.from_block.append(np.zeros(count, dtype=bool))
        self.offset += count

    def add_deletes(self, block: LogBlock, path: str) -> None:
        # Deletes of a rule with positions count whatever their ordering value, which is a text in the block.
        stored = None if self.rule.positions else self.kind
        if self.only_keys is not None and len(self.only_keys) <= _SEARCHED_KEYS:
            keys = [str(key).encode() for key in self.only_keys.to_pylist()]
            count = _naming(path, partial(deletes_without, block.content, keys))
            if count is not None:
                self.entries += count
                self.blocks += 1
                return
        deletes = _naming(path, partial(decode_deletes, block.content, stored))
        if deletes.column("record_key").null_count:
            raise CorruptFileError(f"{path}: a delete has no record key; the file is damaged, restore it from a copy")
        _check_folder(deletes.column("partition_path"), path)
        if self.only_keys is not None:
            self.entries += deletes.num_rows
            deletes = deletes.filter(pc.is_in(deletes.column("record_key"), value_set=self.only_keys))
            self.entries -= deletes.num_rows
        ordering = deletes.column("ordering").combine_chunks() if stored is not None else None
        if ordering is None and self.kind is not None:
            ordering = pa.array([None] * deletes.num_rows, self.kind)
        self._add_keys(deletes.column("record_key"), ordering)
        self.blocks += 1

    def _add_keys(self, keys: pa.ChunkedArray, ordering: pa.Array | None) -> None:
        every = np.ones(len(keys), dtype=bool)
        self.keys.extend(keys.chunks)
        self._add(ordering, every, np.full(len(keys), -1))
        self.from_block.append(every)

    def _add(self, ordering: pa.Array | None, deleted: np.ndarray, rows: np.ndarray) -> None:
        self.entries += len(deleted)
        if ordering is not None:
            self.orderings.append(ordering)
        self.deleted.append(deleted)
        self.rows.append(rows)

    def reduced(self) -> LogRecords:
        data = pa.concat_tables(self.tables) if self.tables else self.schema.empty_table()
        keys = pa.concat_arrays(self.keys) if self.keys else pa.array([], pa.string())
        ordering = None
        if self.kind is not None:
            ordering = pa.concat_arrays(self.orderings) if self.orderings else pa.array([], self.kind)
        is_delete = np.concatenate(self.deleted) if self.deleted else np.empty(0, dtype=bool)
        from_block = np.concatenate(self.from_block) if self.from_block else np.empty(0, dtype=bool)
        row_of = np.concatenate(self.rows) if self.rows else np.empty(0, dtype=np.int64)
        present = self._present()
        usable = {**usable_values(data, self.rule), **present}
        always = unconditional(is_delete, ordering, self.rule)
        if usable or fills_by_event_time(self.rule):
            wins = always
            if ordering is not None and fills_by_event_time(self.rule):
                wins = always | without_value(ordering)
            entries = Entries(keys, ordering, is_delete, wins, always, from_block, row_of)
            folded = fold(entries, usable, self.rule)
            dead = is_delete[folded.entries]
            live = np.flatnonzero(~dead)
            winners = np.concatenate([folded.entries[live], folded.entries[dead]])
            valued = np.concatenate([folded.ordering[live], folded.ordering[dead]])
            rows = folded_rows(data, folded, live)
            present = {name: counts[folded.sources[name][live]] for name, counts in present.items()}
        else:
            winners = latest_of_each(keys, ordering, always, self.rule, block_deletes=from_block)
            winners = np.concatenate([winners[~is_delete[winners]], winners[is_delete[winners]]])  # data, then deletes
            valued = winners
            survivors = row_of[winners][~is_delete[winners]]
            rows = data if len(survivors) == data.num_rows else rows_at(data, survivors)
        return LogRecords(
            data=rows,
            keys=keys.take(pa.array(winners)),
            ordering=ordering.take(pa.array(valued)) if ordering is not None else None,
            commit_time_deletes=always[winners],
            blocks=self.blocks,
            records=len(keys),
            present=present or None,
        )

    def _present(self) -> dict[str, np.ndarray]:
        result: dict[str, np.ndarray] = {}
        for start, end, lacks in self.missing:
            for name in lacks:
                result.setdefault(name, np.ones(self.offset, dtype=bool))[start:end] = False
        return result


def is_partial(block: LogBlock) -> bool:
    """Whether it has some columns only, in which case the values of the others come from older records."""
    return block.header.get(HeaderKey.IS_PARTIAL, "").lower() == "true"


def user_columns(block: LogBlock, path: str) -> tuple[str, ...]:
    """Its columns in their order, without the meta columns."""
    return tuple(name for name in _columns_of(block, path) if name not in META_COLUMNS)


def _columns_of(block: LogBlock, path: str) -> Sequence[str]:
    """All columns of the block, whichever were decoded."""
    schema = block.header.get(HeaderKey.SCHEMA)
    if schema is not None:
        return field_names(schema)
    return _naming(path, lambda: decode_parquet_data(block.content)).column_names


def _decode_data(block: LogBlock, path: str, columns: Sequence[str], piece_bytes: int | None) -> Iterator[pa.Table]:
    """The rows of a data block, in pieces of about so many encoded bytes."""
    schema = _schema_of(block, path)
    if block.kind is BlockKind.PARQUET_DATA:
        pieces = parquet_data_pieces(block.content, schema, columns, piece_bytes=piece_bytes)
    else:
        pieces = avro_data_pieces(block.content, schema, columns, piece_bytes=piece_bytes)
    while (piece := _naming(path, lambda: next(pieces, None))) is not None:
        yield piece


def _schema_of(block: LogBlock, path: str) -> Any:
    """The text of the block's schema; a Parquet block has it in its footer, too."""
    schema = block.header.get(HeaderKey.SCHEMA)
    if schema is None and block.kind is not BlockKind.PARQUET_DATA:
        raise CorruptFileError(
            f"{path}: the data block at byte {block.offset} has no schema in its header; restore the file from a copy"
        )
    return schema


def _check_meta(table: pa.Table, block: LogBlock, path: str, *, keys_only: bool) -> None:
    """Raises CorruptFileError where records have no key, another partition than their folder, or another commit time than the block's
    instant.

    All would lose rows in silence: they merge with nothing, or with another row, and an incremental pull passes over them. A log
    compaction keeps the commit times of what it merged.
    """
    if table.column(RECORD_KEY).null_count:
        raise CorruptFileError(f"{path}: a record has no record key; the file is damaged, restore it from a copy")
    if PARTITION_PATH in table.column_names:
        _check_folder(table.column(PARTITION_PATH), path)
    if not keys_only and COMMIT_TIME in table.column_names and HeaderKey.COMPACTED_BLOCK_TIMES not in block.header:
        instant = block.header[HeaderKey.INSTANT_TIME]
        same = pc.all(pc.fill_null(pc.equal(table.column(COMMIT_TIME), instant), False)).as_py()
        if same is False:
            raise CorruptFileError(
                f"{path}: a record in a block of instant {instant} has another commit time; the file is damaged, restore it "
                "from a copy"
            )


def _check_folder(stored: pa.ChunkedArray[Any], path: str) -> None:
    """Raises CorruptFileError where records are of another partition than the folder of their log: the file is that of another one."""
    folder = folder_of(path)
    if rows_elsewhere(stored, folder):
        other = next(each for each in pc.unique(stored).to_pylist() if each is not None and each.strip("/") != folder)
        raise CorruptFileError(
            f"{path}: a record says that it is of partition {other!r}; the file is that of another folder, restore it from a copy"
        )


def rows_elsewhere(stored: pa.ChunkedArray[Any] | pa.Array, folder: str) -> int:
    """How many rows say that they are of another partition than this folder; one that says nothing is of it."""
    same = pc.sum(pc.fill_null(pc.equal(stored, folder), True)).as_py() or 0
    if same == len(stored):
        return 0
    trimmed = pc.utf8_trim(stored, characters="/")  # some key generators of users end a path with a slash
    return len(stored) - (pc.sum(pc.fill_null(pc.equal(trimmed, folder), True)).as_py() or 0)


def _naming(path: str, decode: Callable[[], T]) -> T:
    try:
        return decode()
    except CorruptFileError as exc:
        raise CorruptFileError(restored(f"{path}: {exc}")) from exc
    except UnsupportedTableError as exc:
        raise UnsupportedTableError(f"{path}: {exc}") from exc
