"""Which of several records of one key counts. Pure, over Arrow columns; the rules are Apache Hudi's.

Two stages, as Hudi does it: the log records of a key are reduced to one (`latest_of_each`), then the survivor meets the
base row (`beats_stored`). A delete without an ordering value is a *commit-time delete*: it always wins over what came
before it and is itself replaced by what comes after, but for further deletes of delete blocks: those leave it as it is.
Where fields of both records count, `fold.py` takes over.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.ordering import Column, are_defaults, at_least, bools, ranks_of, whole
from hoodie.model.enums import Fill, MergeMode
from hoodie.model.plans import MergeRule


def latest_of_each(
    keys: Column,
    ordering: Column | None,
    commit_time_deletes: np.ndarray | None,
    rule: MergeRule,
    *,
    block_deletes: np.ndarray | None = None,
) -> np.ndarray:
    """Index of the winning entry of each key, ascending.

    Args:
        keys: string, one per entry, entries in the order in which they were written.
        ordering: the ordering column (`ordering_of`; None without one).
        commit_time_deletes: bool per entry (None: there are none).
        block_deletes: bool per entry: it stands in a delete block (None: none does).
    """
    count = len(keys)
    if count == 0:
        return np.empty(0, dtype=np.int64)
    codes, distinct = key_codes(keys)
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
        begin = np.where(cut < 0, 0, count)  # first entry of a key after its cut that replaces the delete
        replaces = entries > cut[codes]
        if block_deletes is not None:
            replaces &= ~block_deletes | (cut[codes] < 0)
        following = entries[replaces & (cut[codes] >= 0)][::-1]
        begin[codes[following]] = following  # of repeated indices numpy keeps the last assignment: the earliest entry
        candidates = entries[(entries >= begin[codes]) | ((entries == cut[codes]) & (begin[codes] == count))]
    ranks = ranks_of(ordering)[candidates]
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
    result = at_least(ordering, stored)
    if fills_by_event_time(rule):
        result = result | without_value(ordering)
    if commit_time_deletes is not None:
        result = result | commit_time_deletes
    return result


def unconditional(is_delete: np.ndarray, ordering: Column | None, rule: MergeRule) -> np.ndarray:
    """Bool for each entry: a delete that wins whatever the ordering values say."""
    if rule.payload or not is_delete.any():
        return is_delete
    wins: np.ndarray = is_delete & are_defaults(ordering, len(is_delete))
    return wins


def within_batch(rule: MergeRule) -> MergeRule:
    """The rule for rows of one key inside one batch: payload classes reduce those by ordering value, whatever comes later."""
    if not rule.payload:
        return rule
    fill = rule.fill if fills_by_event_time(rule) or rule.fill is Fill.UNAVAILABLE else None
    return replace(rule, mode=MergeMode.EVENT_TIME_ORDERING, fill=fill, payload=False)


def fills_by_event_time(rule: MergeRule) -> bool:
    """PartialUpdateAvroPayload: a row without ordering value is merged as the newer one, and deletes are forgotten in a batch."""
    return rule.payload and rule.mode is MergeMode.EVENT_TIME_ORDERING and rule.fill is Fill.NULLS


def without_value(ordering: Column) -> np.ndarray:
    """Bool for each value: it is missing and does not count as 0 (as it does in columns of Java's int)."""
    array = whole(ordering)
    if pa.types.is_integer(array.type) and array.type.bit_width <= 32:
        return np.zeros(len(array), dtype=bool)
    return bools(pc.is_null(array))


def positions_in(keys: Column, among: pa.Array) -> np.ndarray:
    """For each key its position in `among`, -1 when it is not there."""
    positions = whole(pc.fill_null(pc.index_in(keys, value_set=among), -1))
    result: np.ndarray = positions.to_numpy(zero_copy_only=False)
    return result


def key_codes(keys: Column) -> tuple[np.ndarray, int]:
    """A number from 0 for each key, by first appearance, and how many there are."""
    encoded = pc.dictionary_encode(whole(keys))
    return encoded.indices.to_numpy(zero_copy_only=False), len(encoded.dictionary)


def _last_of(codes: np.ndarray, entries: np.ndarray, distinct: int) -> np.ndarray:
    last = np.empty(distinct, dtype=np.int64)
    last[codes] = entries  # of repeated indices numpy keeps the last assignment
    return last
