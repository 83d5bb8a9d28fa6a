"""Rows left out of a Parquet scan by their numbers in the file: a look-up in one bitmap for all files of the scan.

The bitmap reaches the tasks as a scalar subquery over a local relation: no join, no shuffle, and the rest of the plan is that of a
plain scan. Where in it a file begins says a column of the scan (`MARK` of `file_index.py`). Scans of Spark's own making have no such
column. There `_metadata.file_size` says which file a row is of, as a number that costs little to compare, or a checksum of
`_metadata.file_name` where sizes do not tell the files apart. The bitmap begins with a table of these keys.

What is asked of each row is kept short: a query of a new shape runs interpreted at first, and Spark's code for it is compiled by the
JVM while it runs.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary
from zlib import crc32

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.model.names import name_of
from hoodie.read.deletion_vectors import ScanFile
from hoodie.storage.cache import Cache, Kind
from pyspark_hoodie.arrow_frame import arrow_frame
from pyspark_hoodie.file_index import MARK

MAX_BITMAP_BYTES = 64 * 1024 * 1024
"""Of one scan; files beyond it go to another one."""
MAX_FILES = 2048
"""With dead rows, in one scan."""
MAX_SLOTS = 1 << 20
_BITS_OF_SLOTS = (12, 16, 20)
"""Few numbers of slots, and for most tables the first of them: each other one is other code to Spark."""
_FIRST_FACTOR, _NEXT_FACTOR, _FACTORS, _SHIFT = 648_391, 1_234, 300, 16
"""A key is below 2**42, and the product fits in 63 bits. Factors are odd."""
_ALL_COUNT = -(1 << 40)
_CLASHES = 4
"""As many clashes of sizes as can be expected of a way to make slots when one of a few hundred ways has none."""
_BITS_OF_WORD = 64


def parts_of(files: Sequence[ScanFile]) -> list[list[ScanFile]]:
    """The files in as few parts as it takes for the bitmap of each to be no larger than `MAX_BITMAP_BYTES`, or of one file."""
    part = np.cumsum([_bitmap_bytes(file) for file in files]) // MAX_BITMAP_BYTES
    starts = np.flatnonzero(np.diff(part, prepend=-1)).tolist()
    return [list(files[start:end]) for start, end in pairwise([*starts, len(files)])]


def scans_of(files: Sequence[ScanFile]) -> Iterator[list[ScanFile]]:
    """The files in few scans, such that no two files with dead rows in one scan share a key."""
    remaining = list(zip(files, _keys(files), strict=True))
    while remaining:
        scan, remaining = _first_scan(remaining)
        yield [file for file, _ in scan]


_Keyed = tuple[ScanFile, int]


def _first_scan(files: Sequence[_Keyed]) -> tuple[list[_Keyed], list[_Keyed]]:
    whole = [each for each in files if each[0].dead is None]
    dead = [each for each in files if each[0].dead is not None]
    if whole and _slots_wanted(min(len(dead), MAX_FILES), len(whole)) > MAX_SLOTS:
        return whole, dead
    keys = {key for _, key in whole}
    scan: list[_Keyed] = []
    later: list[_Keyed] = []
    bitmap_bytes = 0
    for file, key in dead:
        more = bitmap_bytes + _bitmap_bytes(file)
        if key in keys or len(scan) == MAX_FILES or (scan and more > MAX_BITMAP_BYTES):
            later.append((file, key))
        else:
            scan.append((file, key))
            keys.add(key)
            bitmap_bytes = more
    return [*whole, *scan], later


def _keys(files: Sequence[ScanFile]) -> list[int]:
    """Numbers that tell the files apart to Spark: sizes; where files with dead rows share theirs, checksums of names."""
    names = [name_of(file.path) for file in files]
    if _are_told_by_size(files) or not all(map(_PLAIN_NAME.fullmatch, names)):
        return [file.size_bytes for file in files]
    return [crc32(name.encode()) for name in names]


def _are_told_by_size(files: Sequence[ScanFile]) -> bool:
    count = Counter(file.size_bytes for file in files)
    return all(count[file.size_bytes] == 1 for file in files if file.dead is not None)


_PLAIN_NAME = re.compile(r"[\w.-]+", re.ASCII)
"""Spark has such a name as we do."""


def marks_of(files: Sequence[ScanFile]) -> list[int | None]:
    """Where in the bitmap of a marked scan each file begins, in words; None where all its rows count. Empty: so it is of all files."""
    begins = np.cumsum([0, *(0 if file.dead is None else _words(file.rows) for file in files)]).tolist()
    marks = [None if file.dead is None else begin for file, begin in zip(files, begins[:-1], strict=True)]
    return [] if all(mark is None for mark in marks) else marks


def without_marked_rows(spark: SparkSession, scan: DataFrame, files: Sequence[ScanFile]) -> DataFrame:
    """The scan, which is of just these files and has `MARK` by `marks_of`, without their dead rows."""
    key = (MARK, *(id(file.dead) for file in files))
    alive = _bitmaps(spark).find(_BITMAP, key)
    rows = scan.where(alive[0]) if alive else _handed(spark, scan, files, key, _marked_bitmap(files), _alive_by_mark)
    return rows.drop(MARK)


def without_deleted_rows(spark: SparkSession, scan: DataFrame, files: Sequence[ScanFile]) -> DataFrame:
    """The scan, which must be of just these files (`scans_of`), without their dead rows."""
    if all(file.dead is None for file in files):
        return scan
    key = tuple((number, id(file.dead)) for number, file in zip(_keys(files), files, strict=True))
    alive = _bitmaps(spark).find(_BITMAP, key)
    if alive:
        return scan.where(alive[0])
    bitmap = _bitmap(files)
    return _handed(spark, scan, files, key, bitmap.words, partial(_alive, bitmap=bitmap))


def _bitmaps(spark: SparkSession) -> Cache:
    return _handed_over.setdefault(spark, Cache(MAX_BITMAP_BYTES, largest_share=1))


def _handed(
    spark: SparkSession,
    scan: DataFrame,
    files: Sequence[ScanFile],
    key: tuple[object, ...],
    bitmap: np.ndarray,
    condition: Callable[[Column], Column],
) -> DataFrame:
    """The rows for which the condition holds, which looks into the bitmap; both are kept for later queries of these files."""
    local = arrow_frame(spark, pa.table({_WORDS: [bitmap]}, schema=_SCHEMA))
    with _scalar(local) as words:
        alive = condition(words)
        result = scan.where(alive)
    if _lasts(local):
        # The arrays are known by their identity, so an entry holds them too.
        _bitmaps(spark).put(_BITMAP, key, (alive, [file.dead for file in files]), bitmap.nbytes)
    return result


_BITMAP: Kind[tuple[Column, object]] = Kind("bitmap")
_handed_over: WeakKeyDictionary[SparkSession, Cache] = WeakKeyDictionary()
"""Bitmaps that a session has already, as conditions: several queries of one snapshot hand them over once."""


def _alive_by_mark(words: Column) -> Column:
    """Whether a row of a marked scan counts; in one text, whatever the bitmap."""
    word = words[F.expr(f"{MARK} + int(shiftright({_NUMBER}, 6))")]
    return F.isnull(MARK) | (F.getbit(word, F.expr(f"int({_NUMBER} & {_BITS_OF_WORD - 1})")) == 0)


def _marked_bitmap(files: Sequence[ScanFile]) -> np.ndarray:
    return np.concatenate([_bits(file) for file in files if file.dead is not None])


def _alive(words: Column, bitmap: _Bitmap) -> Column:
    """Whether a row counts.

    Of the bitmap only the slots are in the text, and these are mostly the same: Spark makes code of the text, and the next snapshot's
    query finds that compiled. Each step of a column is a question to the JVM, so all that can be is one text.
    """
    slot = F.expr(f"int(shiftright({bitmap.key} * {bitmap.factor}L, {_SHIFT}) & {bitmap.slots - 1})")
    word = F.greatest(words[slot] + F.expr(f"shiftright({_NUMBER}, 6)"), F.lit(bitmap.slots))
    return F.getbit(words[word.cast("int")], F.expr(f"int({_NUMBER} & {_BITS_OF_WORD - 1})")) == 0


_NUMBER = "_metadata.row_index"
_SIZE = "_metadata.file_size"
_NAME = "crc32(cast(_metadata.file_name as binary))"
_WORDS = "words"
_SCHEMA = pa.schema([(_WORDS, pa.list_(pa.int64()))])


class _Bitmap(NamedTuple):
    words: np.ndarray
    """int64. By slot, where the first word of the file is, far below 0 where its rows all count. Then a word without a bit: what
    no row number of such a file gets beyond. Then the bits of one file after the other, least significant first."""
    key: str
    """What Spark calls the keys of the files."""
    slots: int
    """How many, a power of two."""
    factor: int
    """Slot of a key: the lowest bits of the product from `_SHIFT` on."""


def _bitmap(files: Sequence[ScanFile]) -> _Bitmap:
    keys = np.array(_keys(files), dtype=np.int64)
    is_dead = np.array([file.dead is not None for file in files], dtype=bool)
    dead = [file for file in files if file.dead is not None]
    factor, slots, count = _slots(keys[is_dead], np.unique(keys[~is_dead]))
    begins = np.cumsum([count + 1, *(_words(file.rows) for file in dead)])
    words = np.zeros(begins[-1], dtype=np.int64)
    words[:count] = _ALL_COUNT
    words[slots] = begins[:-1]
    for file, begin, end in zip(dead, begins[:-1], begins[1:], strict=True):
        words[begin:end] = _bits(file)
    return _Bitmap(words, _SIZE if _are_told_by_size(files) else _NAME, count, factor)


def _slots(mine: np.ndarray, others: np.ndarray) -> tuple[int, np.ndarray, int]:
    """A way to give each of my keys a slot that no other key has: the factor, the slots, how many slots there are."""
    least = _slots_wanted(len(mine), len(others)).bit_length()
    bits = next((bits for bits in _BITS_OF_SLOTS if bits >= least), least)
    while True:
        mask = (1 << bits) - 1
        for factor in range(_FIRST_FACTOR, _FIRST_FACTOR + _FACTORS * _NEXT_FACTOR, _NEXT_FACTOR):
            slots = (mine * factor >> _SHIFT) & mask
            if len(np.unique(slots)) == len(mine) and not np.isin((others * factor >> _SHIFT) & mask, slots).any():
                return factor, slots, mask + 1
        bits += 1


def _slots_wanted(mine: int, others: int) -> int:
    return mine * (mine // 2 + others) // _CLASHES


def _bits(file: ScanFile) -> np.ndarray:
    """int64, a bit for each row, set where it is dead, least significant first."""
    flags = np.zeros(_words(file.rows) * _BITS_OF_WORD, dtype=np.uint8)
    flags[file.dead] = 1
    return np.packbits(flags, bitorder="little").view(np.int64)


def _words(rows: int) -> int:
    return -(-rows // _BITS_OF_WORD)


def _bitmap_bytes(file: ScanFile) -> int:
    return 0 if file.dead is None else _words(file.rows) * 8


def _lasts(frame: Any) -> bool:
    """Whether a `_scalar` of the frame is good for later plans too."""
    return hasattr(frame, "scalar")  # since Spark 4


@contextmanager
def _scalar(frame: Any) -> Iterator[Column]:
    """The one column of a frame of one row, as a value for the plan of another frame that is made inside the block."""
    if _lasts(frame):
        yield frame.scalar()
        return
    # Before Spark 4 by SQL. A plan that was made keeps what the view stood for.
    view = f"hoodie_{uuid.uuid4().hex}"
    frame.createTempView(view)
    try:
        yield F.expr(f"(SELECT {_WORDS} FROM {view})")
    finally:
        frame.sparkSession.catalog.dropTempView(view)
