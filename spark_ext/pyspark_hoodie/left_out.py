"""Rows left out of a Parquet scan by their numbers in the file: a look-up in one bitmap for all files of the scan.

`_metadata.file_size` says which file a row is of, as a number that costs nothing to compare; a scan takes files whose sizes tell
them apart, as far as that matters. The bitmap and where in it each file begins reach the tasks as scalar subqueries over a
local relation: no join, no shuffle, and the rest of the plan is that of a plain scan.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from hoodie.read.dead_rows import FinalFile
from pyspark_hoodie.arrow_frame import arrow_frame

MAX_BITMAP_BYTES = 64 * 1024 * 1024
"""Of one scan; files beyond it go to another one."""
MAX_FILES = 2048
"""With dead rows, in one scan."""
MAX_SLOTS = 1 << 20
_MAX_SHIFT = 30
_CLASHES = 4
"""As many clashes of sizes as can be expected of a way to make slots when one of a few hundred ways has none."""
_BITS_OF_WORD = 64


def scans_of(files: Sequence[FinalFile]) -> Iterator[list[FinalFile]]:
    """The files in as few scans as it takes for each file with dead rows to be the only one of its size."""
    left = list(files)
    while left:
        taken, later = _first_scan(left)
        yield taken
        left = later


def _first_scan(files: Sequence[FinalFile]) -> tuple[list[FinalFile], list[FinalFile]]:
    whole = [file for file in files if file.dead is None]
    dead = [file for file in files if file.dead is not None]
    if whole and _slots_wanted(min(len(dead), MAX_FILES), len(whole)) > MAX_SLOTS:
        return whole, dead
    sizes = {file.size_bytes for file in whole}
    taken: list[FinalFile] = []
    later: list[FinalFile] = []
    bitmap_bytes = 0
    for file in dead:
        more = bitmap_bytes + _words(file.rows) * 8
        if file.size_bytes in sizes or len(taken) == MAX_FILES or (taken and more > MAX_BITMAP_BYTES):
            later.append(file)
        else:
            taken.append(file)
            sizes.add(file.size_bytes)
            bitmap_bytes = more
    return [*whole, *taken], later


def without_dead_rows(spark: SparkSession, scan: DataFrame, files: Sequence[FinalFile]) -> DataFrame:
    """The scan, which must be of just these files (`scans_of`), without their dead rows."""
    if all(file.dead is None for file in files):
        return scan
    bitmap = _bitmap(files)
    local = arrow_frame(spark, pa.table({"words": [bitmap.words], "starts": [bitmap.starts]}, schema=_SCHEMA))
    size, number = F.col("_metadata.file_size"), F.col("_metadata.row_index")
    slot = size.bitwiseXOR(F.shiftright(size, bitmap.shifts[0])).bitwiseXOR(F.shiftright(size, bitmap.shifts[1]))
    with _scalars(local) as (words, starts):
        start = starts[slot.bitwiseAND(F.lit(len(bitmap.starts) - 1)).cast("int")]
        word = words[F.least(start + F.shiftright(number, 6), F.lit(len(bitmap.words) - 1)).cast("int")]
        return scan.where(F.getbit(word, number.bitwiseAND(F.lit(_BITS_OF_WORD - 1)).cast("int")) == 0)


_FIELDS: list[pa.Field] = [pa.field("words", pa.list_(pa.int64())), pa.field("starts", pa.list_(pa.int64()))]
_SCHEMA = pa.schema(_FIELDS)


class _Bitmap(NamedTuple):
    words: np.ndarray
    """int64, the bits of one file after the other, least significant first; at the end a word that says: none is dead."""
    starts: np.ndarray
    """int64, by slot: the first word of the file, the last one of all where its rows all count. Slots are a power of two."""
    shifts: tuple[int, int]
    """Slot of a size: itself, shifted right by these, all combined by XOR, the lowest bits."""


def _bitmap(files: Sequence[FinalFile]) -> _Bitmap:
    dead = [file for file in files if file.dead is not None]
    counts = [_words(file.rows) for file in dead]
    words = np.zeros(sum(counts) + 1, dtype=np.int64)
    begins = np.cumsum([0, *counts])
    for file, begin, count in zip(dead, begins, counts, strict=False):
        flags = np.zeros(count * _BITS_OF_WORD, dtype=np.uint8)
        flags[file.dead] = 1
        words[begin : begin + count] = np.packbits(flags, bitorder="little").view(np.int64)
    mine = np.array([file.size_bytes for file in dead], dtype=np.int64)
    others = np.unique(np.array([file.size_bytes for file in files if file.dead is None], dtype=np.int64))
    shifts, slots, count = _slots(mine, others)
    starts = np.full(count, len(words) - 1, dtype=np.int64)
    starts[slots] = begins[:-1]
    return _Bitmap(words, starts, shifts)


def _slots(mine: np.ndarray, others: np.ndarray) -> tuple[tuple[int, int], np.ndarray, int]:
    """A way to give each of my sizes a slot that no other size has: the shifts, the slots, how many slots there are."""
    bits = max(3, len(mine).bit_length() + 1, _slots_wanted(len(mine), len(others)).bit_length())
    while True:
        mask = (1 << bits) - 1
        for first in range(1, _MAX_SHIFT):
            for second in range(first + 1, _MAX_SHIFT):
                slots = (mine ^ (mine >> first) ^ (mine >> second)) & mask
                if len(np.unique(slots)) < len(mine):
                    continue
                taken = (others ^ (others >> first) ^ (others >> second)) & mask
                if not np.isin(taken, slots).any():
                    return (first, second), slots, mask + 1
        bits += 1


def _slots_wanted(mine: int, others: int) -> int:
    return mine * (mine // 2 + others) // _CLASHES


def _words(rows: int) -> int:
    return -(-rows // _BITS_OF_WORD)


@contextmanager
def _scalars(frame: DataFrame) -> Iterator[list[Column]]:
    """The columns of a frame of one row, as values for the plan of another frame that is made inside the block."""
    to_scalar: Any = getattr(frame, "scalar", None)
    if to_scalar is not None:
        yield [frame.select(name).scalar() for name in frame.columns]
        return
    # Before Spark 4 by SQL. A plan that was made keeps what the view stood for.
    view = f"hoodie_{uuid.uuid4().hex}"
    frame.createTempView(view)
    try:
        yield [F.expr(f"(SELECT {name} FROM {view})") for name in frame.columns]
    finally:
        frame.sparkSession.catalog.dropTempView(view)
