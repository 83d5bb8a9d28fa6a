"""Many keys of an HFile at once: sorted, each block looked into once, the filter asked before."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.hfile.arrays import BINARY
from hoodie.hfile.blocks import Blocks
from hoodie.hfile.bloom import might_hold
from hoodie.hfile.index import Entry, IndexPage
from hoodie.hfile.key_value import CellBlock
from hoodie.hfile.walk import Forward

_FEW = 8
"""So many keys of one block are found faster one by one."""
_SEARCHED = 4
"""The bytes of so many are searched in a block that is not kept, faster than it is decoded."""
_sort_indices: Callable[..., Any] = pc.sort_indices
_less_equal: Callable[..., Any] = pc.less_equal
_index_in: Callable[..., Any] = pc.index_in
_Ints = npt.NDArray[np.int64]


class _Share(NamedTuple):
    """The sorted keys from `start` to before `end` belong to the block of this entry."""

    entry: Entry
    start: int
    end: int


def look_up(blocks: Blocks, keys: Any) -> Any:
    """The values of the keys in their order, null where there is none."""
    order = _order(keys)
    ordered = keys if order is None else keys.take(pa.array(order))
    shares = list(_shares(blocks, ordered))
    alive = _alive(blocks, ordered)
    if alive is not None:
        before = np.concatenate([[0], np.cumsum(alive)])
        shares = [share for share in shares if before[share.start] < before[share.end]]
    places: list[_Ints] = []
    values: list[Any] = []
    few: list[tuple[int, bytes]] = []
    """Found one by one. They become arrays together: one for each block would cost more than to find them."""
    numbered = [_numbers(share, alive) for share in shares]
    row_of: list[bytes] = ordered.to_pylist()

    def rows(block: int) -> Sequence[bytes] | None:
        numbers = numbered[block]
        return [row_of[number] for number in numbers.tolist()] if len(numbers) <= _SEARCHED else None

    for numbers, cells in zip(numbered, blocks.many([share.entry for share in shares], rows)):
        if cells is None:
            continue
        if len(numbers) <= _FEW:
            few += _one_by_one(cells, row_of, numbers.tolist())
        else:
            hits, part = _together(cells, ordered, numbers)
            places.append(hits)
            values.append(part)
    if few:
        places.append(np.array([number for number, _ in few], np.int64))
        values.append(pa.array([value for _, value in few], BINARY))
    return _laid_out(len(keys), order, places, values)


def _numbers(share: _Share, alive: npt.NDArray[np.bool_] | None) -> _Ints:
    """Of the sorted keys that may be in the block."""
    numbers: _Ints = np.arange(share.start, share.end)
    return numbers if alive is None else numbers[alive[share.start : share.end]]


def _order(keys: Any) -> _Ints | None:
    """The numbers of the keys in the order of their bytes; None where they are in it."""
    count = len(keys) - 1
    if count < 1 or _less_equal(keys.slice(0, count), keys.slice(1)).true_count == count:
        return None
    order: _Ints = _sort_indices(keys).to_numpy().astype(np.int64)
    return order


def _shares(blocks: Blocks, keys: Any) -> Iterator[_Share]:
    """Which of the sorted keys belong to which data block."""
    forward = Forward(blocks)

    def below(page: IndexPage, level: int, start: int, end: int) -> Iterator[_Share]:
        for share in _cut(page, keys, start, end):
            forward.step(level, share.entry)
            if level == 1:
                yield share
            else:
                yield from below(blocks.page(share.entry, is_leaf=level == 2), level - 1, share.start, share.end)

    return below(blocks.opened.root, blocks.opened.trailer.data_index_levels, 0, len(keys))


def _cut(page: IndexPage, keys: Any, start: int, end: int) -> Iterator[_Share]:
    """Which of the sorted keys belong to which entry; those before the first entry belong to none.

    It takes as many searches as there are keys or as there are entries, whichever are fewer.
    """
    if end - start <= len(page):
        numbers = [page.place(key) for key in keys.slice(start, end - start).to_pylist()]
        at = 0
        while at < len(numbers):
            after = bisect_left(numbers, numbers[at] + 1, at)
            if numbers[at] >= 0:
                yield _Share(page.entries[numbers[at]], start + at, start + after)
            at = after
        return
    at = _place(keys, page.rows[0], start, end) if len(page) else end
    for number, entry in enumerate(page.entries):
        after = _place(keys, page.rows[number + 1], at, end) if number + 1 < len(page) else end
        if at < after:
            yield _Share(entry, at, after)
        at = after


def _place(keys: Any, row: bytes, start: int, end: int) -> int:
    result: int = bisect_left(range(end), row, start, end, key=lambda number: keys[number].as_py())
    return result


def _alive(blocks: Blocks, keys: Any) -> npt.NDArray[np.bool_] | None:
    """For each key whether the filter lets it through; None where there is none."""
    bloom = blocks.opened.bloom
    if bloom is None or not len(keys):
        return None
    alive = np.zeros(len(keys), np.bool_)
    for share in _cut(bloom.chunks, keys, 0, len(keys)):
        rows = keys.slice(share.start, share.end - share.start)
        alive[share.start : share.end] = might_hold(blocks.chunk(share.entry), bloom.hashes, rows)
    return alive


def _one_by_one(cells: CellBlock, keys: Sequence[bytes], numbers: Sequence[int]) -> Iterator[tuple[int, bytes]]:
    """Those of the numbered keys that the block has, and their values."""
    for number in numbers:
        value = cells.find(keys[number])
        if value is not None:
            yield number, value


def _together(cells: CellBlock, keys: Any, numbers: _Ints) -> tuple[_Ints, Any]:
    """The same for many keys at once, on Arrow arrays."""
    rows_of_keys = keys.take(pa.array(numbers))
    rows = _index_in(rows_of_keys, value_set=cells.rows())
    there = rows.is_valid()
    return numbers[there.to_numpy(zero_copy_only=False)], cells.values().take(rows.drop_null())


def _laid_out(count: int, order: _Ints | None, places: list[_Ints], values: list[Any]) -> Any:
    if not values:
        return pa.nulls(count, BINARY)
    where = np.concatenate(places)
    if order is not None:
        where = order[where]
    numbers = np.full(count, -1, np.int64)
    numbers[where] = np.arange(len(where))
    return pa.concat_arrays(values).take(pa.array(numbers, mask=numbers < 0))
