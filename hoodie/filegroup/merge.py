"""Which of several records of one key counts. Pure, over Arrow columns; the rules are Apache Hudi's (table version 6).

Two stages, as Hudi does it: the log records of a key are reduced to one (`latest_of_each`), then the survivor meets the
base row (`beats_stored`). A delete without an ordering value is a *commit-time delete*: it always wins over what came
before it and is itself always replaced by what comes after.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.model.enums import MergeMode
from hoodie.model.plans import MergeRule

Column = pa.Array | pa.ChunkedArray


def latest_of_each(
    keys: Column, ordering: Column | None, commit_time_deletes: np.ndarray | None, rule: MergeRule
) -> np.ndarray:
    """Index of the winning entry of each key, ascending.

    Args:
        keys: string, one per entry, entries in the order in which they were written.
        ordering: the ordering field's values (None without one).
        commit_time_deletes: bool per entry (None: there are none).
    """
    count = len(keys)
    if count == 0:
        return np.empty(0, dtype=np.int64)
    codes, distinct = _codes(keys)
    if distinct == count:
        return np.arange(count)
    entries = np.arange(count)
    if rule.mode is not MergeMode.EVENT_TIME_ORDERING or ordering is None:
        return np.sort(_last_of(codes, entries, distinct))
    candidates = entries
    if commit_time_deletes is not None and commit_time_deletes.any():
        # Nothing before a key's last commit-time delete counts; the delete itself only when nothing came after it.
        cut = np.full(distinct, -1)
        cut[codes[commit_time_deletes]] = entries[commit_time_deletes]
        after = entries > cut[codes]
        has_after = np.zeros(distinct, dtype=bool)
        has_after[codes[after]] = True
        candidates = entries[after | ((entries == cut[codes]) & ~has_after[codes])]
    ranks = _ranks(ordering)[candidates]
    # Greatest ordering value, ties to the later entry: lexsort's last key is the primary one.
    by_key = candidates[np.lexsort((candidates, ranks, codes[candidates]))]
    last = np.append(codes[by_key][1:] != codes[by_key][:-1], True)
    return np.sort(by_key[last])


def beats_stored(
    ordering: Column | None, commit_time_deletes: np.ndarray | None, stored: Column | None, rule: MergeRule
) -> np.ndarray:
    """Bool for each pair: whether the newer record replaces the stored row. Ties go to the newer one."""
    if rule.mode is not MergeMode.EVENT_TIME_ORDERING or ordering is None or stored is None:
        length = len(ordering) if ordering is not None else len(stored) if stored is not None else 0
        return np.ones(length, dtype=bool)
    newer, older = _comparable(ordering), _comparable(stored)
    # A missing ordering value is the lowest: it loses against any value and ties with another missing one.
    wins = pc.or_(pc.fill_null(pc.greater_equal(newer, older), False), pc.is_null(older))
    if pa.types.is_floating(newer.type):
        # As in Java, and as `_ranks` has it: NaN is greater than every number and ties with another NaN.
        wins = pc.or_(wins, pc.fill_null(pc.is_nan(newer), False))
    result: np.ndarray = _numpy_bool(wins)
    if commit_time_deletes is not None:
        result = result | commit_time_deletes
    return result


def positions_in(keys: Column, among: pa.Array) -> np.ndarray:
    """For each key its position in `among`, -1 when it is not there."""
    found = pc.fill_null(pc.index_in(keys, value_set=among), -1)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    result: np.ndarray = found.to_numpy(zero_copy_only=False)
    return result


def _codes(keys: Column) -> tuple[np.ndarray, int]:
    array = keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    encoded = pc.dictionary_encode(array)
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


def _last_of(codes: np.ndarray, entries: np.ndarray, distinct: int) -> np.ndarray:
    last = np.empty(distinct, dtype=np.int64)
    last[codes] = entries  # of repeated indices numpy keeps the last assignment
    return last


def _ranks(ordering: Column) -> np.ndarray:
    """Equal values have equal ranks, from 1; a missing value ranks lowest."""
    values = _comparable(ordering)
    ranks: np.ndarray = pc.rank(values, sort_keys="ascending", tiebreaker="dense").to_numpy(zero_copy_only=False)
    return np.where(_numpy_bool(pc.is_null(values)), 0, ranks)


def _comparable(ordering: Column) -> pa.Array:
    array = ordering.combine_chunks() if isinstance(ordering, pa.ChunkedArray) else ordering
    if pa.types.is_integer(array.type):
        filled: pa.Array = pc.fill_null(array, 0)  # Hudi's default ordering value is int 0
        return filled
    if pa.types.is_boolean(array.type):
        return array.cast(pa.int8())
    return array


def _numpy_bool(mask: Column) -> np.ndarray:
    array = mask.combine_chunks() if isinstance(mask, pa.ChunkedArray) else mask
    result: np.ndarray = array.to_numpy(zero_copy_only=False)
    return result
