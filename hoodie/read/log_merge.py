"""Which rows of logs and base files count: entries -> winners -> positions, whole slices at a time.

Entries are what logs say, rows and deletes in the order in which they were written, from wherever they are had (`LogRows`). The
winner of each key is found among them, and whether it replaces the stored row. What is left are positions: rows of base files that
do not count, and rows of logs that do. The rules are those of `filegroup/merge.py`, and its functions decide.

Only what the rules look at is read: ordering values, where event time decides, of the entries, and of base files whose footers leave
it open which is the later row; keys, where the position of the stored row is not known. It is for rules of which each merged row is
one of the stored ones (`row_copies.can_be_copied`); rows that are made of several are merged by `filegroup/slice_reader.py`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError
from hoodie.filegroup.merge import beats_stored, key_codes, latest_of_each, positions_in, unconditional
from hoodie.filegroup.ordering import missing_is_zero, ordering_of, ordering_type, whole
from hoodie.filegroup.row_copies import DELETED_KEY, ROW
from hoodie.filegroup.slice_reader import open_base_file, read_base_file
from hoodie.format.column_stats import ranges_of_footer
from hoodie.model.enums import MergeMode
from hoodie.model.files import BaseFile
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import ReadContext
from hoodie.model.statistics import UNKNOWN, ValueRange
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, Kind

_COLUMNS_AT_ONCE = 8


class LogRows(Protocol):
    """Rows and deletes of logs, numbered. Known by its identity."""

    @property
    def kinds(self) -> np.ndarray:
        """int8 for each: `ROW`, `FLAGGED` or `DELETED_KEY` of `filegroup/row_copies.py`."""
        ...

    @property
    def positions(self) -> np.ndarray:
        """int32 for each: the row number in the base file that `Part.base` names, -1 where it is not known."""
        ...

    def values(self, storage: Storage, context: ReadContext, *, keys: bool, ordering: bool) -> Values | None:
        """Of all of them what is asked for; None where it cannot be read any more."""
        ...


class Values(NamedTuple):
    keys: pa.Array | None
    ordering: pa.Array | None
    """Of `ordering.ordering_type`."""


class Part(NamedTuple):
    """The rows from `start` to `stop` of some log rows: what one slice has of them."""

    source: LogRows
    start: int
    stop: int
    base: str
    """Name of the base file that positions refer to; empty: of none."""


class LoggedSlice(NamedTuple):
    """A slice by what its visible logs say."""

    base: BaseFile | None
    parts: tuple[Part, ...]
    """In reading order."""
    base_counts: bool
    """Its rows take part; else they are known not to be asked for."""


class LogMerge(NamedTuple):
    dead: Sequence[np.ndarray]
    """By slice: row numbers of its base file that do not count, ascending."""
    rows_of_source: Sequence[np.ndarray]
    """By source: numbers of the rows that count."""


@dataclass
class _Entries:
    """Rows and deletes of all parts, slice by slice, each in the order in which they were written."""

    slices: np.ndarray
    sources: np.ndarray
    rows: np.ndarray
    """Row numbers in the source."""
    kinds: np.ndarray
    places: np.ndarray
    """Row numbers in the base file, -1 where it does not hold the key."""
    codes: np.ndarray
    """From 0; equal where slice and key are."""
    ordering: pa.Array | None


def resolve(
    storage: Storage, cache: Cache, context: ReadContext, slices: Sequence[LoggedSlice], sources: Sequence[LogRows]
) -> LogMerge | None:
    """What counts of these slices, whose parts are of these sources; None where a source cannot be read.

    Raises:
        CorruptFileError: a base file cannot be read.
    """
    entries = _entries(storage, context, slices, sources)
    if entries is None:
        return None
    winners = _latest(context, entries)
    winners = winners[_beat_stored(storage, cache, context, slices, entries, winners)]
    replacing = winners[entries.places[winners] >= 0]
    alive = winners[entries.kinds[winners] == ROW]
    return LogMerge(
        [np.sort(dead) for dead in _grouped(entries.slices[replacing], entries.places[replacing], len(slices))],
        _grouped(entries.sources[alive], entries.rows[alive], len(sources)),
    )


def _grouped(groups: np.ndarray, values: np.ndarray, count: int) -> list[np.ndarray]:
    """The values of each of the groups 0 to count - 1."""
    if not count:
        return []
    if (groups[1:] < groups[:-1]).any():
        order = np.argsort(groups, kind="stable")
        groups, values = groups[order], values[order]
    return np.split(values, np.searchsorted(groups, np.arange(1, count)))


# -- entries -----------------------------------------------------------------------------------------------------------


def _entries(
    storage: Storage, context: ReadContext, logged: Sequence[LoggedSlice], sources: Sequence[LogRows]
) -> _Entries | None:
    number = {source: at for at, source in enumerate(sources)}
    parts = [(at, part) for at, each in enumerate(logged) for part in each.parts]
    sizes = [part.stop - part.start for _, part in parts]
    slices = np.repeat(np.array([at for at, _ in parts], np.int64), sizes)
    owners = np.repeat(np.array([number[part.source] for _, part in parts], np.int64), sizes)
    rows = _joined(np.arange(part.start, part.stop) for _, part in parts)
    kinds = _joined(part.source.kinds[part.start : part.stop] for _, part in parts)
    places = _joined(_places(part, logged[at].base) for at, part in parts)
    unknown = places < 0
    by_event_time = context.rule.mode is MergeMode.EVENT_TIME_ORDERING
    fields = by_event_time and ordering_type(context.schema, context.rule) is not None
    keys, ordering = None, None
    if fields or unknown.any():
        read = partial(_values, storage, context, keys=bool(unknown.any()), ordering=fields)
        values = LocalEngine().run(read, sources, label="entries of logs", at_once=storage.can.at_once)
        present = [each for each in values if each is not None]
        if len(present) < len(sources):
            return None
        starts = np.cumsum([0, *(len(source.kinds) for source in sources)])
        at = pa.array(starts[owners] + rows)
        keys, ordering = (
            _rows_at([each.keys for each in present], at),
            _rows_at([each.ordering for each in present], at),
        )
    codes = np.full(len(places), -1, dtype=np.int64)
    if keys is not None:
        keys = keys.filter(pa.array(unknown))
        places[unknown] = _looked_up(storage, logged, slices[unknown], keys)
        nowhere = places < 0
        if nowhere.any():
            of_key, kinds_of_key = key_codes(keys.filter(pa.array(nowhere[unknown])))
            codes[nowhere] = slices[nowhere] * kinds_of_key + of_key
    stored = places >= 0
    widths = np.zeros(len(logged), dtype=np.int64)
    np.maximum.at(widths, slices[stored], places[stored] + 1)
    starts_of = np.cumsum(widths) - widths + codes.max(initial=-1) + 1
    codes[stored] = starts_of[slices[stored]] + places[stored]
    return _Entries(slices, owners, rows, kinds, places, codes, ordering)


def _values(storage: Storage, context: ReadContext, source: LogRows, *, keys: bool, ordering: bool) -> Values | None:
    return source.values(storage, context, keys=keys, ordering=ordering)


def _rows_at(arrays: Sequence[pa.Array | None], at: pa.Array) -> pa.Array | None:
    there = [array for array in arrays if array is not None]
    return pa.concat_arrays(there).take(at) if there else None


def _joined(arrays: Iterable[np.ndarray]) -> np.ndarray:
    parts = [np.empty(0, dtype=np.int64), *arrays]
    return np.concatenate([array.astype(np.int64, copy=False) for array in parts])


def _places(part: Part, base: BaseFile | None) -> np.ndarray:
    """Positions that were found in another base file than the slice has now say nothing."""
    if base is not None and part.base == base.name:
        return part.source.positions[part.start : part.stop]
    return np.full(part.stop - part.start, -1, dtype=np.int32)


def _looked_up(storage: Storage, logged: Sequence[LoggedSlice], slices: np.ndarray, keys: pa.Array) -> np.ndarray:
    """Row numbers of keys whose position was not known; -1 where the base file does not hold them. Slices ascend."""
    places = np.full(len(keys), -1, dtype=np.int64)
    schema = pa.schema([(RECORD_KEY, pa.string())])
    starts = np.searchsorted(slices, np.arange(len(logged) + 1))

    def look(at: int) -> None:
        base, start, stop = logged[at].base, starts[at], starts[at + 1]
        if base is None or start == stop:
            return
        stored = pa.Table.from_batches(read_base_file(storage, base, schema), schema).column(RECORD_KEY)
        places[start:stop] = positions_in(keys.slice(start, stop - start), whole(stored))

    LocalEngine().run(look, range(len(logged)), label="look up keys", at_once=_few(storage))
    return places


# -- who wins ----------------------------------------------------------------------------------------------------------


def _latest(context: ReadContext, entries: _Entries) -> np.ndarray:
    """The entry of each key that counts among those of the logs, ascending."""
    count = len(entries.codes)
    several = np.flatnonzero(np.bincount(entries.codes)[entries.codes] > 1) if count else np.arange(0)
    if not len(several):
        return np.arange(count)
    ordering = None if entries.ordering is None else entries.ordering.take(pa.array(several))
    kinds = entries.kinds[several]
    latest = latest_of_each(
        pa.array(entries.codes[several]),
        ordering,
        unconditional(kinds != ROW, ordering, context.rule),
        context.rule,
        block_deletes=kinds == DELETED_KEY,
    )
    wins = np.ones(count, dtype=bool)
    wins[several] = False
    wins[several[latest]] = True
    return np.flatnonzero(wins)


def _beat_stored(
    storage: Storage,
    cache: Cache,
    context: ReadContext,
    logged: Sequence[LoggedSlice],
    entries: _Entries,
    winners: np.ndarray,
) -> np.ndarray:
    """Bool for each winner: it replaces the stored row, or there is none."""
    result = np.ones(len(winners), dtype=bool)
    ordering = entries.ordering
    if ordering is None:
        return result
    counts = np.array([each.base is not None and each.base_counts for each in logged], dtype=bool)
    meets = (
        np.flatnonzero(counts[entries.slices[winners]] & (entries.places[winners] >= 0)) if len(winners) else winners
    )
    if not len(meets):
        return result
    newer = ordering.take(pa.array(winners[meets]))
    always = unconditional(entries.kinds[winners[meets]] != ROW, newer, context.rule)
    slices = entries.slices[winners[meets]]
    bounds = np.searchsorted(slices, np.arange(len(logged) + 1))
    lows = _plain(newer)

    def compare(at: int) -> None:
        base, start, stop = logged[at].base, bounds[at], bounds[at + 1]
        if base is None or start == stop:
            return
        if lows is not None and _is_later(storage, cache, context, base, int(lows[start:stop].min())):
            return
        schema = pa.schema([f for f in context.schema if f.name in context.rule.ordering_columns])
        rows = pa.Table.from_batches(read_base_file(storage, base, schema), schema)
        places = entries.places[winners[meets[start:stop]]]
        require_rows(base, rows.num_rows, places)
        stored = ordering_of(rows.take(pa.array(places)), context.rule)
        mine = newer.slice(start, stop - start)
        result[meets[start:stop]] = beats_stored(mine, always[start:stop], stored, context.rule)

    LocalEngine().run(compare, range(len(logged)), label="compare ordering values", at_once=_few(storage))
    return result


def require_rows(base: BaseFile, rows: int, places: np.ndarray) -> None:
    """Raise where a row that logs replace is none of a base file: it is not the file that they were written for."""
    if len(places) and rows <= int(places.max()):
        raise CorruptFileError(
            f"{base.path} has {rows:,} rows, and its log files replace row {int(places.max()) + 1:,}: it is not the file that was "
            "written; restore it from a copy"
        )


def _few(storage: Storage) -> int:
    """How many columns of whole base files are read at the same time; each takes memory."""
    return min(storage.can.at_once, _COLUMNS_AT_ONCE)


def _plain(ordering: pa.Array) -> np.ndarray | None:
    """The values as int64; None where they are no plain numbers of 64 bits at most, or one is missing and lower than all."""
    kind = ordering.type
    if missing_is_zero(kind):
        ordering = pc.fill_null(ordering, 0)
    plain = pa.types.is_signed_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date32(kind)
    if not plain or ordering.null_count:
        return None
    numbers = ordering.cast(pa.int32()) if pa.types.is_date32(kind) else ordering
    result: np.ndarray = numbers.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return result


def _is_later(storage: Storage, cache: Cache, context: ReadContext, base: BaseFile, low: int) -> bool:
    """Whether the footer shows that no stored row has an ordering value above `low`; for types that `_plain` takes."""
    field = _ordering_field(context)
    key_range = footer_of(storage, cache, context, base).range
    if field is None or not key_range.bounded:
        return False
    highs = [key_range.high] if key_range.values else []
    if key_range.nulls and missing_is_zero(field.type):
        highs.append(0)
    return all(isinstance(high, int) and low >= high for high in highs)


class _Footer(NamedTuple):
    rows: int
    range: ValueRange


_FOOTER: Kind[_Footer] = Kind("footer of a base file")


def footer_of(storage: Storage, cache: Cache, context: ReadContext, base: BaseFile) -> _Footer:
    """Row count, and the bounds of the ordering values where they have the type that they have now. Base files never change."""
    field = _ordering_field(context)
    return cache.get(
        _FOOTER, _footer_key(storage, field, base), lambda: _read_footer(storage, base, field), lambda _: 0
    )


def _footer_key(storage: Storage, field: pa.Field | None, base: BaseFile) -> Hashable:
    return storage.identity, base, None if field is None else (field.name, str(field.type))


def require_stored(storage: Storage, cache: Cache, context: ReadContext, base: BaseFile, places: np.ndarray) -> int:
    """The row count of a base file that has the rows at these places.

    Raises:
        CorruptFileError: as `require_rows`; the footer is not kept then, for the file may be restored.
    """
    count = footer_of(storage, cache, context, base).rows
    try:
        require_rows(base, count, places)
    except CorruptFileError:
        cache.take(_FOOTER, _footer_key(storage, _ordering_field(context), base))
        raise
    return count


def _ordering_field(context: ReadContext) -> pa.Field | None:
    return next((f for f in context.schema if f.name in context.rule.ordering_fields), None)


def _read_footer(storage: Storage, base: BaseFile, field: pa.Field | None) -> _Footer:
    with open_base_file(storage, base) as (file, metadata):
        names = file.schema_arrow.names
        same = [f for f in (field,) if f and f.name in names and file.schema_arrow.field(f.name).type == f.type]
        ranges = ranges_of_footer(metadata, same)
        return _Footer(metadata.num_rows, ranges[same[0].name] if same else UNKNOWN)
