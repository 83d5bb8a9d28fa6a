"""Plans and their tasks: what is to be done, as values that any engine can carry to whoever does it.

A task is self-contained: it names its files, the instants that it may see, its schema and options. Whoever runs it
lists no folder and reads no timeline. Tasks are frozen and picklable; a `Chunk` that lives in memory is picklable
too, but meant for engines of the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from hoodie.model.columns import ColumnHistory
from hoodie.model.enums import BlockKind, ChangeFormat, ChangeLogMode, ChangePart, Fill, MergeMode, RowCopies
from hoodie.model.files import BaseFile, FileSlice, LogFile
from hoodie.model.instant import InstantRange, InstantTime, VisibleInstants
from hoodie.model.late import once
from hoodie.model.meta_fields import with_meta_fields
from hoodie.model.payloads import WriteStat
from hoodie.model.sought import SoughtKeys
from hoodie.model.statistics import Pruning, ValueRange
from hoodie.model.tuning import TUNING, Tuning

if TYPE_CHECKING:
    import pyarrow.compute as pc

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)


@dataclass(frozen=True)
class ChunkRange:
    """The rows of one partition inside a chunk: they stand together."""

    partition_path: str
    start: int
    length: int
    min_key: str
    max_key: str


@dataclass(frozen=True)
class Chunk:
    """Prepared rows of a batch, sorted by partition path: in memory, or staged as one Arrow IPC file.

    Columns: `_hoodie_record_key`, `_hoodie_partition_path`, the table's columns in schema order, and, where the batch
    deletes rows, `__deleted` (bool).
    """

    ranges: tuple[ChunkRange, ...]
    rows: int
    size_bytes: int
    table: pa.Table | None = None
    path: str | None = None
    """Relative to the table; exactly one of `table` and `path` is set."""
    mapped: bool = False
    """The table's rows are in a file of this process, for want of memory."""


COLUMNAR_SHRINK = 3
"""Rows of a first write are guessed to take a third of their Arrow size in a base file."""

DELETED = "*deleted"
"""Column of prepared rows that marks deletes; no table has a column of a name that Avro does not allow."""
ARRIVAL = "*arrival"
"""Column of prepared rows where keys are unique in the whole table: their order before they were sorted by partition path."""
PLACE = "*place"
"""Column of rows on their way into a log: the row number in the base file of the stored row, -1 where it is not known."""


@dataclass(frozen=True)
class ChunkPiece:
    """The rows of one partition in one chunk; `chunk` numbers the batch's chunks in arrival order."""

    number: int
    chunk: Chunk
    span: ChunkRange


def _share(pieces: Iterable[ChunkPiece]) -> int:
    """Bytes of the rows in the pieces."""
    return sum(p.chunk.size_bytes * p.span.length // max(p.chunk.rows, 1) for p in pieces)


@dataclass(frozen=True)
class Matches:
    """Rows of one chunk piece whose keys are stored in one base file."""

    number: int
    rows: np.ndarray | None = None
    """int32, ascending: row numbers inside the chunk."""
    path: str | None = None
    """Where the row numbers were staged instead, relative to the table."""
    count: int = 0
    start: int = 0
    """With `path`: where in that file they begin; one file may hold the rows of many buckets."""
    places: np.ndarray | None = None
    """With `rows`, where they are known: int32, row number in the base file of the row that is stored under the key, -1 unknown."""


@dataclass(frozen=True)
class LookupTask:
    """Find which rows of the pieces have their key in the base file, or in logs that are older than it."""

    base: BaseFile
    pieces: tuple[ChunkPiece, ...]
    stage_to: str | None = None
    """Folder for the row numbers; None keeps them in memory."""
    prune_by_range: bool = True
    logs: FileSlice | None = None
    """Logs that may hold keys which the base file lacks, as a slice of their own."""
    visible: VisibleInstants | None = None
    """With `logs`: whose blocks count."""
    stays: bool = False
    """The file outlives this write, and the next one will look into it too."""
    unstored: UnstoredColumns | None = None
    """What the table's files leave out."""

    @property
    def size_bytes(self) -> int:
        """Of what has to be looked at: of the file its keys, guessed as a tenth, and of the chunks these partitions' share."""
        return self.base.size_bytes // 10 + _share(self.pieces)


@dataclass(frozen=True)
class LookupPack:
    """Look-ups that one worker does after each other: a small file takes less time than to hand it to another one."""

    tasks: tuple[LookupTask, ...]

    @property
    def size_bytes(self) -> int:
        return sum(task.size_bytes for task in self.tasks)


@dataclass(frozen=True)
class LookupResult:
    base: BaseFile
    matches: tuple[Matches, ...]
    how: str
    """What decided: "range" (no key of the batch can be there), "bloom" (the filter ruled all out), "bloom+keys", "keys"."""
    record_count: int

    @property
    def matched(self) -> int:
        return sum(m.count for m in self.matches)


@dataclass(frozen=True)
class Inserts:
    """The share of a partition's new rows that goes to one file: those whose key hash falls into [low, high) of `of`."""

    pieces: tuple[ChunkPiece, ...]
    matches: tuple[Matches, ...]
    """Rows that are stored already, in whichever file: not new."""
    low: int = 0
    high: int = 1
    of: int = 1
    rows: int = 0
    """Planned number of rows."""

    @property
    def size_bytes(self) -> int:
        return _share(self.pieces) * (self.high - self.low) // self.of


@dataclass(frozen=True, kw_only=True)
class RowsTask:
    """What the tasks that write rows of a batch have in common: each writes one file of one file group."""

    number: int
    """Among the tasks of the write: it makes sequence numbers and names of files."""
    partition_path: str
    file_id: str
    pieces: tuple[ChunkPiece, ...] = ()
    """Where `updates` point into."""
    updates: tuple[Matches, ...] = ()
    """Rows that are known to belong into this file group."""
    inserts: Inserts | None = None
    """New rows for it."""

    @property
    def size_bytes(self) -> int:
        """Of what has to be read and written, roughly."""
        rows = sum(piece.span.length for piece in self.pieces)
        changed = _share(self.pieces) * sum(m.count for m in self.updates) // max(rows, 1)
        return changed + (self.inserts.size_bytes if self.inserts is not None else 0)


@dataclass(frozen=True, kw_only=True)
class AppendTask(RowsTask):
    """The rows become blocks of a new log file."""

    slice: FileSlice
    log_version: int
    share: int = 0
    """With"""
    of: int = 1
    """how many tasks the changed rows of a hot file group are spread over, by their keys: each writes a log file of its own."""
    deletes: tuple[LogFile, ...] = ()
    """Logs of the slice with deletes that a stored row may outlive: say so where one does."""
    busy: bool = False
    """The slice is in a pending compaction or clustering, and gets no new base file."""

    @property
    def size_bytes(self) -> int:
        return super().size_bytes // self.of


@dataclass(frozen=True, kw_only=True)
class MergeTask(RowsTask):
    """The base file of a slice, its logs, and the rows become a new base file."""

    slice: FileSlice
    concat: bool = False
    """Add the rows without looking at keys (the `insert` operation keeps duplicates)."""

    @property
    def size_bytes(self) -> int:
        return COLUMNAR_SHRINK * self.slice.size_bytes + super().size_bytes


@dataclass(frozen=True, kw_only=True)
class CreateTask(RowsTask):
    """The rows become the first base file of a new file group."""


WriteTask = AppendTask | MergeTask | CreateTask


class DeleteMarker(NamedTuple):
    """Rows whose field, as text, is the marker are deletes."""

    field: str
    marker: str
    any_case: bool = False


class Merger(NamedTuple):
    """A function of the user's own that merges rows: (older, newer) -> merged, rows aligned by key, user columns only."""

    name: str
    merge: Callable[[pa.Table, pa.Table], pa.Table] | None
    """None: no function of that name is registered in this process."""


@dataclass(frozen=True)
class MergeRule:
    """How two records of one key are decided."""

    mode: MergeMode
    """CUSTOM: by `merger`, or, without one, by something that this release does not have."""
    ordering_fields: tuple[str, ...] = ()
    """Several are compared as a tuple, the first one first."""
    positions: bool = False
    """The ordering field is a text `file.position`: two whole numbers, compared as such."""
    fill: Fill | None = None
    unavailable: str = ""
    """The marker of `Fill.UNAVAILABLE`."""
    payload: bool = False
    """The rule is that of a payload class, as tables before version 9 have them: a delete counts whatever its ordering
    value says, and rows of one batch are reduced by ordering value also where the later commit wins."""
    delete_marker: DeleteMarker | None = None
    merger: Merger | None = None

    @property
    def refusal(self) -> str | None:
        """Why this release merges no logs by the rule."""
        if self.mode is MergeMode.CUSTOM:
            return f"it merges records by {self.merger.name if self.merger else 'a payload of its own'}, which cannot be run on logs"
        nested = next((name for name in self.ordering_fields if "." in name), None)
        if nested and self.fill is not None and self.mode is MergeMode.EVENT_TIME_ORDERING:
            return f"it fills columns one by one, and its ordering column {nested} is a part of one"
        return None

    @property
    def ordering_columns(self) -> tuple[str, ...]:
        """The columns that the ordering fields are, or are parts of."""
        return tuple(dict.fromkeys(name.partition(".")[0] for name in self.ordering_fields))


@dataclass(frozen=True)
class FileOptions:
    """How base and log files are written."""

    compression: str
    bloom_type: str
    bloom_fpp: float
    bloom_num_entries: int | None
    bloom_max_entries: int
    max_block_bytes: int
    block_kind: BlockKind = BlockKind.AVRO_DATA
    """Of the data blocks in logs."""
    key_map: bool = False
    """Base files say where their keys stand: `format/key_map.py`."""


class UnstoredColumns(Protocol):
    """What rows have that files leave out: `keygen/virtual_columns.py`."""

    @property
    def keys(self) -> bool:
        """The `_hoodie_` columns are not stored: keys are made of the rows' columns."""

    @property
    def looked_at(self) -> frozenset[str]:
        """The columns that keys are made of."""

    def decoded(self, schema: pa.Schema) -> pa.Schema:
        """What to read of a file for rows with the columns of `schema`."""

    def completed(self, rows: Rows, schema: pa.Schema, path: str) -> Rows:
        """Rows of the file at `path`, with the columns of `schema`."""

    def stored(self, rows: pa.Table) -> pa.Table:
        """The rows as a file has them."""

    def stored_schema(self, schema: pa.Schema) -> pa.Schema:
        """The columns that a file of rows with these columns has."""


@dataclass(frozen=True)
class Room:
    """What a task may hold in memory, and where it puts what is more."""

    memory_bytes: int
    folder: str | None = None
    """On the machine's disk; None: where it keeps such files."""


class KeyTexts(NamedTuple):
    """Columns of a table whose values may make a record key or path that other values make, too."""

    joined: tuple[str, ...]
    """Record key columns, where there are several and one of them holds text."""
    columns: tuple[str, ...]
    """Those that hold text, of the record key and the path."""
    by_path: bool
    """Whether a column of the path is among them."""


@dataclass(frozen=True)
class WriteContext:
    """What all tasks of one write share."""

    instant: InstantTime
    table_name: str
    schema: pa.Schema
    """The table's columns, without meta columns."""
    rule: MergeRule
    combine: bool
    """Reduce several rows of one key in the batch to one."""
    files: FileOptions
    staging: str
    """Folder of the instant for files that are not published yet."""
    visible: VisibleInstants
    """For tasks that merge a slice's logs."""
    set_columns: tuple[str, ...] | None = None
    """Columns that rows of stored keys get from the batch, where the others keep their stored values; None: all of them."""
    only_stored: bool = False
    """Rows whose key is not stored are left out."""
    some_columns: bool = False
    """With `set_columns`: log blocks may have these columns only."""
    sort_by_key: bool = False
    """`create` only: rows stand in the order of their record keys."""
    row_copies: RowCopies = RowCopies.NONE
    """What is done so that rows that go to logs stand in a row copy too."""
    generates_keys: bool = False
    """The table has no key columns: the instant and the chunk's number come before the row's to make its key."""
    held_key_bytes: int = 0
    """The keys of a base file of fewer than so many bytes of them come back with its result: to the process that will look into it."""
    key_texts: KeyTexts | None = None
    """None: every record key and path stands for one value."""
    tuning: Tuning = TUNING
    memory_bytes: int | None = None
    """Compactions: what a task may hold in memory; what is more goes to disk."""
    unstored: UnstoredColumns | None = None
    """What the table's files leave out."""
    history: ColumnHistory | None = None
    """Where columns were renamed, dropped or moved: the stored ones, and those of this write."""
    own_logs: bool = False
    """A log file is named with the write's own instant, and versions begin anew with each; else with that of its slice."""
    positions: bool = False
    """Log blocks state which rows of the base file their records are about, where that is known."""
    change_logs: ChangeLogMode | None = None
    """What a change log beside each rewritten base file holds; None: there are no change logs."""

    @once
    def full_schema(self) -> pa.Schema:
        """`schema` with the meta columns in front."""
        return with_meta_fields(self.schema)

    def reading(self) -> ReadContext:
        """For tasks that read stored rows: all columns, as they are after this write."""
        return ReadContext(
            self.table_name, self.full_schema, self.rule, self.visible, history=self.history, unstored=self.unstored
        )


@dataclass(frozen=True)
class StagedFile:
    """A finished file under its staging name, and the name it gets when the commit counts it."""

    staged: str
    final: str
    marker: str
    """CREATE, MERGE or APPEND."""


@dataclass(frozen=True)
class WriteResult:
    stat: WriteStat
    file: StagedFile
    ranges: Mapping[str, ValueRange] = field(default_factory=dict)
    """Bounds of the file's columns, as far as they are stated in commits."""
    rows: pa.Table | None = None
    """With `RowCopies.HELD`: what a row copy has of the log file."""
    copy: StagedFile | None = None
    """With `RowCopies.STAGED`: the row copy."""
    change_log: StagedFile | None = None
    """What the file changed of the one before it, where the table has change logs."""
    revives: bool = False
    """A record in this log brings values of a deleted row back (`filegroup/deleted_rows.py`)."""
    keys: pa.Array | None = None
    """Of a small base file, in the order of its rows; see `WriteContext.held_key_bytes`."""

    @property
    def paths(self) -> tuple[str, ...]:
        """The final names of its files, but for the row copy."""
        return (self.file.final, *(() if self.change_log is None else (self.change_log.final,)))


class WholeSlice(NamedTuple):
    """A slice with its base file, and the log blocks that count when all of it is read."""

    slice: FileSlice
    visible: VisibleInstants


@dataclass(frozen=True)
class ReadTask:
    """Read one file slice. `columns` are the output's, in order; meta columns among them where asked for."""

    slice: FileSlice
    columns: tuple[str, ...]
    span: InstantRange | None = None
    """Incremental reads: only rows committed in (begin, end]."""
    whole: WholeSlice | None = None
    """Incremental reads: what rows are made of where log records of the range hold some of their columns only."""

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        return (self.slice,)

    @property
    def size_bytes(self) -> int:
        return self.slice.size_bytes


@dataclass(frozen=True)
class ChangeTask:
    """Tell what one commit changed in one file group: its slices before and after it are compared."""

    instant: InstantTime
    before: FileSlice | None
    """None: the commit made the group."""
    after: FileSlice | None
    """None: the commit replaced the group."""
    seen_before: VisibleInstants
    seen_after: VisibleInstants
    columns: tuple[str, ...]
    """Of the output: op, the instant, before, after."""
    images: tuple[str, ...]
    """Columns of the rows in before and after."""
    format: ChangeFormat = ChangeFormat.BEFORE_AFTER
    part: ChangePart = ChangePart.WHOLE

    @property
    def slice(self) -> FileSlice:
        file_slice = self.after or self.before
        if file_slice is None:
            raise ValueError(f"a change of {self.instant} without a file slice")
        return file_slice

    @property
    def size_bytes(self) -> int:
        return sum(each.size_bytes for each in self.slices)

    @property
    def slices(self) -> tuple[FileSlice, ...]:
        """Those that are compared."""
        return tuple(each for each in (self.before, self.after) if each is not None)


@dataclass(frozen=True)
class RowFilter:
    """Rows to keep: an expression over the table's columns and the names of the columns that it looks at."""

    expression: pc.Expression
    columns: tuple[str, ...]
    key_filter: SoughtKeys | None = None
    """Only rows with one of these keys can be kept."""
    keys_alone: bool = False
    """And each row that has one in its column of record keys is."""


@dataclass(frozen=True)
class LogCompactTask:
    """Merge log files of a slice into a new one of the same slice."""

    number: int
    slice: FileSlice
    """With the base file, and the logs that are merged."""
    log_version: int
    there: tuple[str, ...]
    """Names of all log files of the slice, in reading order."""

    @property
    def size_bytes(self) -> int:
        return sum(log.size_bytes for log in self.slice.logs)


@dataclass(frozen=True)
class CompactTask:
    """Merge a slice's base and log files into a new base file."""

    number: int
    slice: FileSlice

    @property
    def size_bytes(self) -> int:
        return self.slice.size_bytes


@dataclass(frozen=True)
class ReadContext:
    """What all tasks of one read share."""

    table: str
    schema: pa.Schema
    """The table's columns with meta columns in front, as of the read."""
    rule: MergeRule
    visible: VisibleInstants
    filter: RowFilter | None = None
    history: ColumnHistory | None = None
    """Where columns were renamed, dropped or moved: which column of a file is which."""
    unstored: UnstoredColumns | None = None
    """What the table's files leave out."""


@dataclass(frozen=True)
class ReadPlan:
    tasks: tuple[ReadTask | ChangeTask, ...]
    context: ReadContext
    output: pa.Schema
    pruning: Pruning = field(default_factory=Pruning)
    """How many file slices, or file groups that a range touched, were considered for the tasks, and what left them out."""
    position: str | None = None
    """How far the answer reaches, for the pull that goes on from there."""
    reads_at: InstantTime | None = None
    """The oldest instant whose state the tasks read; None: nothing was committed yet."""
