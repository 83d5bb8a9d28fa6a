"""The bloom index (Apache Hudi's default): partition, key range, bloom filter, then exact look-up in the key column.

On storage that reads fast, reading and hashing a file's keys (about 70 ns a key) costs less than probing many keys in
its filter; the filter pays where few keys meet a large file. Each task therefore chooses by cost when it has
seen the footer, and the result says what decided. It looks at base files only: on a table where inserts go to base
files every key is in one. Keys of files that it meets again stay in memory (`stored_keys.py`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np
import pyarrow as pa

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.filegroup.chunks import load_rows, make_matches, piece_keys
from hoodie.filegroup.log_scan import read_log_records
from hoodie.filegroup.slice_reader import MAPPED_BYTES, open_base_file
from hoodie.filegroup.sought_rows import can_seek, rows_with
from hoodie.filegroup.unused_memory import release_unused_memory
from hoodie.format.base_file import BaseFileFooter
from hoodie.format.bloom import BloomFilter
from hoodie.index.hash_index import HashedKeys
from hoodie.index.stored_keys import (
    KeyAnswer,
    KeyBlock,
    KnownFile,
    KnownFiles,
    in_blocks,
    places_among,
    places_in_small,
    stored_keys,
)
from hoodie.model.enums import MergeMode
from hoodie.model.files import BaseFile, FileSlice
from hoodie.model.instant import VisibleInstants
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import (
    Chunk,
    ChunkPiece,
    ChunkRange,
    LookupPack,
    LookupResult,
    LookupTask,
    Matches,
    MergeRule,
    UnstoredColumns,
)
from hoodie.model.sought import SoughtRows
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, FileKey

log = logging.getLogger("hoodie")

MAX_KEYS_PER_TASK = 500_000
"""Candidate keys of a hot file beyond this are split over several tasks, also those of one chunk. Each task reads the file's
keys anew, which costs a small part of looking so many up."""
SMALL_FILE_BYTES = 1024 * 1024
PACK_BYTES = 16 * 1024 * 1024
"""Files of a megabyte and less are looked into together: each takes about as long as it takes to hand a task over."""
_JOINED_FILES = 64
"""Of several partitions: so many are asked at once for little more than one, and there is work for several threads."""
OPENING_BYTES = 64 * 1024
"""Opening a file takes as long as so many of its bytes: thousands of tiny files are not one task."""

# Measured costs in nanoseconds: reading and hashing one stored key; hashing and probing one key in a filter (most
# bits of an absent key are never looked at); decoding a filter, per stored key; opening the key column.
_STORED_KEY_NS = 70
_PROBE_NS = 120
_DECODE_NS = 8
_OPEN_COLUMN_NS = 400_000
_TYPICAL_KEY_BYTES = 40
_OFFSET_BYTES = 4
_FEW_SHARE = 64
"""To look up fewer keys than such a part of a file's, a reader compares its keys, which costs a quarter of an index of them."""
_FEW_SOUGHT = 16 * 1024
"""More keys are sought in one small file after the other: what is made for each takes little beside them."""
_BATCH_KEYS = 1024 * 1024
"""Keys of a file that are held at once; the candidates are hashed anew for each so many."""


def pieces_by_partition(chunks: Sequence[Chunk]) -> dict[str, list[ChunkPiece]]:
    """Partition path -> the pieces of all chunks that lie in it, in arrival order.

    A piece travels with its task, and its chunk in it: the chunk's other ranges, one for each partition of the batch, stay here.
    """
    result: dict[str, list[ChunkPiece]] = {}
    for number, chunk in enumerate(chunks):
        alone = replace(chunk, ranges=())
        for span in chunk.ranges:
            result.setdefault(span.partition_path, []).append(ChunkPiece(number, alone, span))
    return result


def whole_pieces(chunks: Sequence[Chunk]) -> list[ChunkPiece]:
    """Each chunk as one piece, whatever partitions its rows are in."""
    result = []
    for number, chunk in enumerate(chunks):
        if chunk.rows:
            low, high = min(span.min_key for span in chunk.ranges), max(span.max_key for span in chunk.ranges)
            result.append(ChunkPiece(number, replace(chunk, ranges=()), ChunkRange("", 0, chunk.rows, low, high)))
    return result


def plan_lookup(
    pieces: Mapping[str, Sequence[ChunkPiece]] | Sequence[ChunkPiece],
    slices: Iterable[FileSlice],
    *,
    stage_to: str | None,
    prune_by_range: bool,
    max_keys: int = MAX_KEYS_PER_TASK,
    logs_of: Callable[[FileSlice], FileSlice | None] = lambda file_slice: None,
    visible: VisibleInstants | None = None,
    stays: bool = False,
    unstored: UnstoredColumns | None = None,
) -> list[LookupTask]:
    """One task for each base file in a partition of the batch; a hot file's candidate keys are split over several.

    Args:
        pieces: by partition path; the keys of a plain sequence are looked up in every partition.
        logs_of: logs of a slice that may hold keys which its base file lacks.
        visible: whose blocks count in them.
        stays: the write leaves base files as they are, but for small ones.
        unstored: what files of the table leave out.
    """
    tasks = []
    shares: dict[str, list[tuple[ChunkPiece, ...]]] = {}
    for file_slice in slices:
        logs = logs_of(file_slice) if file_slice.logs else None
        if file_slice.base is None and logs is None:
            continue
        partition_path = file_slice.group.partition_path
        in_partition, at = (
            (pieces.get(partition_path, ()), partition_path) if isinstance(pieces, Mapping) else (pieces, "")
        )
        if at not in shares:
            shares[at] = list(_shares(in_partition, max_keys))
        for share in shares[at]:
            tasks.append(
                LookupTask(
                    *(file_slice.base_or_none_such, share, stage_to, prune_by_range, logs, visible),
                    stays=stays,
                    unstored=unstored,
                )
            )
    return tasks


def _shares(pieces: Iterable[ChunkPiece], max_keys: int) -> Iterator[tuple[ChunkPiece, ...]]:
    """The rows of the pieces, in order, at most `max_keys` at a time; pieces are cut where they have to be."""
    share: list[ChunkPiece] = []
    room = max_keys
    for piece in pieces:
        start, remaining = piece.span.start, piece.span.length
        while remaining:
            length = min(remaining, room)
            is_whole = length == piece.span.length
            share.append(piece if is_whole else replace(piece, span=replace(piece.span, start=start, length=length)))
            start, remaining, room = start + length, remaining - length, room - length
            if not room:
                yield tuple(share)
                share, room = [], max_keys
    if share:
        yield tuple(share)


def packed_lookups(
    tasks: Iterable[LookupTask],
    *,
    small_bytes: int = SMALL_FILE_BYTES,
    pack_bytes: int = PACK_BYTES,
    across: bool = False,
    joins: bool = False,
) -> list[LookupPack]:
    """The tasks, those of small files of one partition together, the newest files last: packs of files that stay are the same
    for each write. `across`: those of all partitions, as they all seek the same keys. `joins`: those of several partitions, too,
    where their files are few and their rows small.
    """
    packs: list[LookupPack] = []
    to_pack: list[LookupTask] = []
    for task in tasks:
        if task.base.size_bytes > small_bytes or task.logs is not None:
            packs.append(LookupPack((task,)))
        else:
            to_pack.append(task)
    small: list[LookupTask] = []
    room = 0
    files = Counter(task.base.partition_path for task in to_pack)
    for task in sorted(to_pack, key=lambda task: (task.base.partition_path, task.base.instant)):
        size = task.base.size_bytes + OPENING_BYTES
        path = task.base.partition_path
        begins = not across and bool(small) and small[-1].base.partition_path != path
        few = joins and len(small) + files[path] <= _JOINED_FILES and size + task.size_bytes <= room
        if small and (size > room or (begins and not few)):
            packs.append(LookupPack(tuple(small)))
            small.clear()
        if not small:
            room = pack_bytes
        elif begins:
            size += task.size_bytes
        small.append(task)
        room -= size
    if small:
        packs.append(LookupPack(tuple(small)))
    return packs


def run_lookups(storage: Storage, cache: Cache, pack: LookupPack) -> list[LookupResult]:
    """The results of a pack's tasks; their keys are read and hashed once."""
    shared = _KeySearch(storage, cache)
    storage.each(shared.name_of, [task.base for task in pack.tasks if not task.base.is_missing])
    for _, tasks in groupby(pack.tasks, lambda task: task.pieces[0].span.partition_path):
        in_blocks([shared.file_of(task.base) for task in tasks])
    shared.seek_in_small(pack.tasks)
    return [_look_up(storage, task, shared) for task in pack.tasks]


class _PieceKeys(HashedKeys):
    """Keys of one piece and the numbers of their rows in the chunk."""

    def __init__(self, keys: pa.Array, rows: np.ndarray) -> None:
        super().__init__(keys)
        self.rows = rows


class _KeySearch:
    """What look-ups of one worker share: the keys, the known files, and where several files of a block have the keys."""

    def __init__(self, storage: Storage, cache: Cache) -> None:
        self.files = KnownFiles(storage, cache)
        self._storage = storage
        self._keys_of_pieces: dict[tuple[int, int, int], _PieceKeys] = {}
        self._names: dict[str, FileKey | None] = {}
        self._of_blocks: dict[tuple[KeyBlock, _PieceKeys], dict[KnownFile, np.ndarray]] = {}
        self._of_small: dict[tuple[HashedKeys, KnownFile], np.ndarray | None] = {}

    def name_of(self, base: BaseFile) -> FileKey | None:
        if base.path not in self._names:
            self._names[base.path] = self.files.name_of(base.path, base.size_bytes)
        return self._names[base.path]

    def file_of(self, base: BaseFile) -> KnownFile | None:
        return self.files.get(self.name_of(base))

    def places(self, file: KnownFile, keys: _PieceKeys) -> np.ndarray | None:
        """As `KnownFile.places`; None where none of the keys is there."""
        if (keys, file) in self._of_small:
            return self._of_small[keys, file]
        block = file.block
        if block is None:
            return file.places(keys)
        if (block, keys) not in self._of_blocks:
            self._of_blocks[block, keys] = block.places(keys)
        return self._of_blocks[block, keys].get(file)

    def seek_in_small(self, tasks: Iterable[LookupTask]) -> None:
        """Find the places in all files of few keys at once."""
        sought: dict[HashedKeys, list[KnownFile]] = {}
        for task in tasks:
            file = self.file_of(task.base)
            if file is not None and file.is_small:
                for piece in _pieces_in_range(task, file.footer):
                    if piece.span.length <= _FEW_SOUGHT:
                        sought.setdefault(self.of(piece), []).append(file)
        self._of_small = places_in_small(sought)

    def of(self, piece: ChunkPiece) -> _PieceKeys:
        at = (piece.number, piece.span.start, piece.span.length)
        if at not in self._keys_of_pieces:
            rows = np.arange(piece.span.start, piece.span.start + piece.span.length)
            self._keys_of_pieces[at] = _PieceKeys(piece_keys(self._storage, piece), rows)
        return self._keys_of_pieces[at]


def _look_up(storage: Storage, task: LookupTask, shared: _KeySearch) -> LookupResult:
    """Which rows of the pieces have their key in the file group: an exact answer, whatever decided it."""
    if task.logs is None or task.visible is None:
        return _look_into_base(storage, task, shared)
    result = LookupResult(task.base, (), "logs", 0)
    if not task.base.is_missing:
        result = _look_into_base(storage, replace(task, stage_to=None), shared)
        result = replace(result, how=f"{result.how}+logs")
    in_base = {matches.number: load_rows(storage, matches) for matches in result.matches}
    rule = MergeRule(MergeMode.COMMIT_TIME_ORDERING)
    schema = pa.schema([pa.field(RECORD_KEY, pa.string())])
    logged = read_log_records(storage, task.logs, schema, rule=rule, visible=task.visible, unstored=task.unstored).keys
    matches = []
    for piece in task.pieces:
        rows = piece.span.start + np.flatnonzero(places_among(piece_keys(storage, piece), logged) >= 0)
        rows = np.union1d(in_base.get(piece.number, rows[:0]), rows)
        if len(rows):
            matches.append(make_matches(piece.number, rows, storage=storage, stage_to=task.stage_to))
    return replace(result, matches=tuple(matches))


def _look_into_base(storage: Storage, task: LookupTask, shared: _KeySearch) -> LookupResult:
    result = _look_into(storage, task, shared)
    if task.base.size_bytes > MAPPED_BYTES:
        release_unused_memory()  # its filter and its keys left more behind than the rest of the write needs
    return result


def _look_into(storage: Storage, task: LookupTask, shared: _KeySearch) -> LookupResult:
    stored_file = shared.file_of(task.base)
    if stored_file is not None and stored_file.keys is not None:
        pieces = _pieces_in_range(task, stored_file.footer)
        if not pieces:
            return LookupResult(task.base, (), "range", stored_file.footer.record_count)
        return _look_into_memory(storage, task, stored_file, pieces, shared, how="keys")
    if stored_file is not None and stored_file.answer is not None:
        pieces = _pieces_in_range(task, stored_file.footer)
        places_of_pieces = [stored_file.answer.places(shared.of(piece).keys) for piece in pieces]
        if pieces and all(places is not None for places in places_of_pieces):
            matches = _matches(storage, task, pieces, [shared.of(piece).rows for piece in pieces], places_of_pieces)
            return LookupResult(task.base, matches, "keys", stored_file.footer.record_count)
    where = f"{task.base.path} of table {storage.uri}"
    opened = open_base_file(storage, task.base)
    with opened as (file, metadata):
        footer = opened.footer(metadata)
        if stored_file is None:
            shared.files.put(shared.name_of(task.base), footer)
        pieces = _pieces_in_range(task, footer)
        if not pieces or not footer.record_count:
            return LookupResult(task.base, (), "range", footer.record_count)
        candidates = [_candidates(shared.of(piece), footer, task.prune_by_range) for piece in pieces]
        total = sum(len(keys) for keys, _ in candidates)
        how = "keys"
        fits = shared.files.takes(footer.record_count * _key_bytes(footer), footer.record_count)
        bloom = None
        # A file that is looked into for the second time will be for a third: then its keys are worth more than an answer.
        if not (fits and stored_file is not None) and _filter_is_cheaper(total, footer.record_count):
            bloom = _filter_of(footer)
        if bloom is not None and total:
            candidates = [_possible(keys, rows, bloom.might_contain(keys)) for keys, rows in candidates]
            if not any(len(keys) for keys, _ in candidates):
                return LookupResult(task.base, (), "bloom", footer.record_count)
            how = "bloom+keys"
        elif not total:
            return LookupResult(task.base, (), "range", footer.record_count)
        stored = stored_keys(file, task.base.path, task.unstored, batch_rows=_BATCH_KEYS, path=where)
        if fits and (task.stays or stored_file is not None):
            whole = pa.concat_arrays(list(stored))
            in_memory = shared.files.put(shared.name_of(task.base), footer, whole)
            if in_memory.keys is not None:
                return _look_into_memory(storage, task, in_memory, pieces, shared, how=how)
            stored = iter([whole])
        places = places_in([keys for keys, _ in candidates], stored)
    matches = _matches(storage, task, pieces, [rows for _, rows in candidates], places)
    return LookupResult(task.base, matches, how, footer.record_count)


def _look_into_memory(
    storage: Storage, task: LookupTask, file: KnownFile, pieces: Sequence[ChunkPiece], shared: _KeySearch, *, how: str
) -> LookupResult:
    all_keys = [shared.of(piece) for piece in pieces]
    places = [shared.places(file, each) for each in all_keys]
    matches = _matches(storage, task, pieces, [each.rows for each in all_keys], places)
    return LookupResult(task.base, matches, how, file.footer.record_count)


def rows_of_keys(storage: Storage, cache: Cache, keys: HashedKeys, base: BaseFile) -> SoughtRows | None:
    """All rows of the file that have one of the keys; None where these are too few to read the file's keys for.

    The file's keys stay known for the look-up of a write, or where they are too many which of them were found.

    Raises:
        CorruptFileError: the file cannot be read.
    """
    files = KnownFiles(storage, cache)
    name = files.name_of(base.path, base.size_bytes)
    file = files.get(name)
    if file is None or file.keys is None:
        opened = open_base_file(storage, base)
        with opened as (parquet, metadata):
            footer = opened.footer(metadata)
            candidates = int(footer.may_hold(keys.keys).sum())
            if not candidates:
                return SoughtRows(np.empty(0, np.int64), keys.keys[:0])
            fits = files.takes(footer.record_count * _key_bytes(footer), footer.record_count)
            few = candidates * _FEW_SHARE < footer.record_count
            if few or not can_seek(parquet):
                return None
            where = f"{base.path} of table {storage.uri}"
            stored = stored_keys(parquet, base.path, None, batch_rows=_BATCH_KEYS, path=where)
            if not fits:
                found = rows_with(stored, keys.keys)
                files.put(name, footer, answer=KeyAnswer(keys.keys, found))
                return found
            file = files.put(name, footer, pa.concat_arrays(list(stored)))
    if file.keys is None:
        return None
    rows = file.rows(keys)
    return SoughtRows(rows, file.keys.take(pa.array(rows)))


def _pieces_in_range(task: LookupTask, footer: BaseFileFooter) -> list[ChunkPiece]:
    low, high = _comparable_range(footer.min_key, footer.max_key) if task.prune_by_range else (None, None)
    return [p for p in task.pieces if _in_range(p, low, high)] if footer.record_count else []


def places_in(candidates: Sequence[pa.Array], stored: Iterator[pa.Array]) -> list[np.ndarray]:
    """For each of the keys of each piece the first row number of the file that has it, -1 where none does.

    The keys of the file come in batches: all of them would be a seventh of a large file.
    """
    places = [np.full(len(keys), -1, dtype=np.int32) for keys in candidates]
    before = 0
    for batch in stored:
        for keys, of_candidate in zip(candidates, places, strict=True):
            here = places_among(keys, batch)
            first = np.flatnonzero((of_candidate < 0) & (here >= 0))
            of_candidate[first] = before + here[first]
        before += len(batch)
    return places


def _matches(
    storage: Storage,
    task: LookupTask,
    pieces: Sequence[ChunkPiece],
    rows_of_pieces: Sequence[np.ndarray],
    found_places: Sequence[np.ndarray | None],
) -> tuple[Matches, ...]:
    """`found_places`: for each piece and its rows the row of the file that has the key, -1 or None where none does."""
    matches = []
    for piece, rows, places in zip(pieces, rows_of_pieces, found_places, strict=True):
        if places is None:
            continue
        there = places >= 0
        hits = rows[there]
        if len(hits):
            stored_places = places[there]
            matches.append(make_matches(piece.number, hits, stored_places, storage=storage, stage_to=task.stage_to))
    return tuple(matches)


def _key_bytes(footer: BaseFileFooter) -> int:
    """About what a key of the file takes in memory, as its smallest and largest one show."""
    ends = [len(key.encode()) for key in (footer.min_key, footer.max_key) if key is not None]
    return sum(ends) // len(ends) + _OFFSET_BYTES if ends else _TYPICAL_KEY_BYTES


def _comparable_range(low: str | None, high: str | None) -> tuple[str | None, str | None]:
    """The footer's key range, where comparing it by code points is right.

    Hudi orders keys as Java strings do, by UTF-16 code units: characters above U+FFFF sort below U+E000..U+FFFF there
    and above them here. A range whose ends are free of both means the same in either order.
    """
    if low is None or high is None or max(low + high, default="") >= "\ue000":
        return None, None
    return low, high


def _in_range(piece: ChunkPiece, low: str | None, high: str | None) -> bool:
    if low is None or high is None:
        return True
    return piece.span.max_key >= low and piece.span.min_key <= high


def _candidates(of_piece: _PieceKeys, footer: BaseFileFooter, prune: bool) -> tuple[pa.Array, np.ndarray]:
    """Those of the keys that may be in the file, and their row numbers in the chunk."""
    keys, rows = of_piece.keys, of_piece.rows
    return _possible(keys, rows, footer.may_hold(keys)) if prune else (keys, rows)


def _possible(keys: pa.Array, rows: np.ndarray, mask: np.ndarray) -> tuple[pa.Array, np.ndarray]:
    return (keys, rows) if mask.all() else (keys.filter(pa.array(mask)), rows[mask])


def _filter_is_cheaper(candidates: int, stored: int) -> bool:
    """Whether probing first is expected to cost less, when about half of such probes rule the file out."""
    exact = stored * _STORED_KEY_NS + _OPEN_COLUMN_NS
    probing = candidates * _PROBE_NS + stored * _DECODE_NS
    return probing < exact / 2


def _filter_of(footer: BaseFileFooter) -> BloomFilter | None:
    try:
        return footer.bloom()
    except UnsupportedTableError:
        return None  # a filter of some other implementation: the keys themselves are as good
    except CorruptFileError as exc:
        log.warning("%s; its keys are read instead", exc)
        return None
