"""Which rows of base files and row copies do not count: merging by row numbers, whole slices at a time.

The rules are those of `filegroup/merge.py`, and its functions decide. Only what they look at is read: kinds and positions of
the copies; ordering values, where event time decides, of the copies and of base files whose footers leave it open which is the
later row; keys, where a position is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.local import LocalEngine
from hoodie.filegroup.merge import beats_stored, key_codes, latest_of_each, positions_in, unconditional
from hoodie.filegroup.ordering import ordering_of, whole
from hoodie.filegroup.row_copies import DELETED_KEY, ROW, LogShare, RowCopy, read_copied_columns
from hoodie.filegroup.slice_reader import open_base_file, read_base_file
from hoodie.format.column_stats import ranges_of_footer
from hoodie.model.enums import MergeMode
from hoodie.model.files import BaseFile
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import ReadContext
from hoodie.model.statistics import UNKNOWN, ValueRange
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache, Kind


class ScanFile(NamedTuple):
    """A Parquet file of which all rows are final but those in `dead`."""

    path: str
    size_bytes: int
    instant: str
    """Of the commit that wrote it: its columns are those of the table then."""
    rows: int = 0
    """How many there are, where some are dead."""
    dead: np.ndarray | None = None
    """Row numbers that do not count, ascending; None: all count."""
    copy_of: tuple[str, ...] = ()
    """Of a row copy: the logs whose rows it has."""


class Part(NamedTuple):
    """The rows of one log file in a copy."""

    copy: RowCopy
    share: LogShare


class Copied(NamedTuple):
    """A slice whose visible logs are all in copies."""

    base: BaseFile | None
    parts: tuple[Part, ...]
    """In reading order."""
    base_counts: bool
    """Its rows take part; else they are known not to be asked for."""


@dataclass
class _Entries:
    """Rows and deletes of all parts, slice by slice, each in the order in which they were written."""

    slices: np.ndarray
    copies: np.ndarray
    rows: np.ndarray
    """Row numbers in the copy."""
    kinds: np.ndarray
    places: np.ndarray
    """Row numbers in the base file, -1 where it does not hold the key."""
    codes: np.ndarray
    """From 0; equal where slice and key are."""
    ordering: pa.Array | None


def find_deletion_vectors(
    storage: Storage, cache: Cache, context: ReadContext, copied: Sequence[Copied]
) -> list[ScanFile] | None:
    """The files of these slices, each once; None where a copy turns out to be damaged.

    Raises:
        CorruptFileError: a base file cannot be read.
    """
    copies = list({part.copy.path: part.copy for each in copied for part in each.parts}.values())
    entries = _entries(storage, context, copied, copies)
    if entries is None:
        return None
    winners = _latest(context, entries)
    winners = winners[_beat_stored(storage, cache, context, copied, entries, winners)]
    met = winners[entries.places[winners] >= 0]
    files = []
    for each, dead in zip(copied, _grouped(entries.slices[met], entries.places[met], len(copied)), strict=True):
        if each.base is not None and each.base_counts:
            base = each.base
            rows = _footer(storage, cache, base, ()).rows if len(dead) else 0
            files.append(ScanFile(base.path, base.size_bytes, base.instant, rows, np.sort(dead) if len(dead) else None))
    alive = winners[entries.kinds[winners] == ROW]
    for copy, kept in zip(copies, _grouped(entries.copies[alive], entries.rows[alive], len(copies)), strict=True):
        if len(kept):
            gone = np.ones(copy.rows, dtype=bool)
            gone[kept] = False
            dead = np.flatnonzero(gone)
            logs = tuple(share.log for share in copy.shares)
            files.append(
                ScanFile(copy.path, copy.size_bytes, copy.instant, copy.rows, dead if len(dead) else None, logs)
            )
    return files


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
    storage: Storage, context: ReadContext, copied: Sequence[Copied], copies: Sequence[RowCopy]
) -> _Entries | None:
    number = {copy.path: at for at, copy in enumerate(copies)}
    parts = [(at, part) for at, each in enumerate(copied) for part in each.parts]
    sizes = [part.share.stop - part.share.start for _, part in parts]
    slices = np.repeat(np.array([at for at, _ in parts], np.int64), sizes)
    owners = np.repeat(np.array([number[part.copy.path] for _, part in parts], np.int64), sizes)
    rows = _joined(np.arange(part.share.start, part.share.stop) for _, part in parts)
    kinds = _joined(part.copy.kinds[part.share.start : part.share.stop] for _, part in parts)
    places = _joined(_places(part, copied[at].base) for at, part in parts)
    unknown = places < 0
    wanted = [RECORD_KEY] if unknown.any() else []
    by_event_time = context.rule.mode is MergeMode.EVENT_TIME_ORDERING
    fields = [name for name in context.rule.ordering_fields if by_event_time and name in context.schema.names]
    schema = pa.schema([context.schema.field(name) for name in dict.fromkeys((*wanted, *fields))])
    columns = pa.table({})
    if schema.names:
        read = partial(read_copied_columns, storage, schema=schema)
        found = [each for each in LocalEngine().run(read, copies, label="row copies") if each is not None]
        if len(found) < len(copies):
            return None
        starts = np.cumsum([0, *(copy.rows for copy in copies)])
        columns = pa.concat_tables([schema.empty_table(), *found]).take(pa.array(starts[owners] + rows))
    codes = np.full(len(places), -1, dtype=np.int64)
    if unknown.any():
        keys = whole(columns.column(RECORD_KEY).filter(pa.array(unknown)))
        places[unknown] = _looked_up(storage, copied, slices[unknown], keys)
        nowhere = places < 0
        if nowhere.any():
            of_key, kinds_of_key = key_codes(keys.filter(pa.array(nowhere[unknown])))
            codes[nowhere] = slices[nowhere] * kinds_of_key + of_key
    stored = places >= 0
    widths = np.zeros(len(copied), dtype=np.int64)
    np.maximum.at(widths, slices[stored], places[stored] + 1)
    starts_of = np.cumsum(widths) - widths + codes.max(initial=-1) + 1
    codes[stored] = starts_of[slices[stored]] + places[stored]
    ordering = ordering_of(columns, context.rule) if fields else None
    return _Entries(slices, owners, rows, kinds, places, codes, ordering)


def _joined(arrays: Iterable[np.ndarray]) -> np.ndarray:
    found = [np.empty(0, dtype=np.int64), *arrays]
    return np.concatenate([array.astype(np.int64, copy=False) for array in found])


def _places(part: Part, base: BaseFile | None) -> np.ndarray:
    """Positions that were found in another base file than the slice has now say nothing."""
    copy, share = part
    if base is not None and share.base == base.name:
        return copy.positions[share.start : share.stop]
    return np.full(share.stop - share.start, -1, dtype=np.int32)


def _looked_up(storage: Storage, copied: Sequence[Copied], slices: np.ndarray, keys: pa.Array) -> np.ndarray:
    """Row numbers of keys whose position was not known; -1 where the base file does not hold them. Slices ascend."""
    places = np.full(len(keys), -1, dtype=np.int64)
    schema = pa.schema([(RECORD_KEY, pa.string())])
    starts = np.searchsorted(slices, np.arange(len(copied) + 1))

    def look(at: int) -> None:
        base, start, stop = copied[at].base, starts[at], starts[at + 1]
        if base is None or start == stop:
            return
        stored = pa.Table.from_batches(read_base_file(storage, base, schema), schema).column(RECORD_KEY)
        places[start:stop] = positions_in(keys.slice(start, stop - start), whole(stored))

    LocalEngine().run(look, range(len(copied)), label="look up keys")
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
    copied: Sequence[Copied],
    entries: _Entries,
    winners: np.ndarray,
) -> np.ndarray:
    """Bool for each winner: it replaces the stored row, or there is none."""
    result = np.ones(len(winners), dtype=bool)
    ordering = entries.ordering
    if ordering is None:
        return result
    counts = np.array([each.base is not None and each.base_counts for each in copied], dtype=bool)
    meets = (
        np.flatnonzero(counts[entries.slices[winners]] & (entries.places[winners] >= 0)) if len(winners) else winners
    )
    if not len(meets):
        return result
    newer = ordering.take(pa.array(winners[meets]))
    always = unconditional(entries.kinds[winners[meets]] != ROW, newer, context.rule)
    slices = entries.slices[winners[meets]]
    bounds = np.searchsorted(slices, np.arange(len(copied) + 1))
    lows = _plain(newer)

    def compare(at: int) -> None:
        base, start, stop = copied[at].base, bounds[at], bounds[at + 1]
        if base is None or start == stop:
            return
        if lows is not None and _is_later(storage, cache, context, base, int(lows[start:stop].min())):
            return
        schema = pa.schema([f for f in context.schema if f.name in context.rule.ordering_fields])
        rows = pa.Table.from_batches(read_base_file(storage, base, schema), schema)
        stored = ordering_of(rows.take(pa.array(entries.places[winners[meets[start:stop]]])), context.rule)
        mine = newer.slice(start, stop - start)
        result[meets[start:stop]] = beats_stored(mine, always[start:stop], stored, context.rule)

    LocalEngine().run(compare, range(len(copied)), label="compare ordering values")
    return result


def _plain(ordering: pa.Array) -> np.ndarray | None:
    """The values as int64, missing ones as they compare; None for types that are no plain numbers of 64 bits at most."""
    kind = ordering.type
    if pa.types.is_signed_integer(kind):
        values = pc.fill_null(ordering.cast(pa.int64()), 0)
    elif pa.types.is_timestamp(kind) or pa.types.is_date32(kind):
        numbers = ordering.cast(pa.int32()) if pa.types.is_date32(kind) else ordering
        values = pc.fill_null(numbers.cast(pa.int64()), np.iinfo(np.int64).min)
    else:
        return None
    result: np.ndarray = values.to_numpy(zero_copy_only=False)
    return result


def _is_later(storage: Storage, cache: Cache, context: ReadContext, base: BaseFile, low: int) -> bool:
    """Whether the footer shows that no stored row has an ordering value above `low`; for types that `_plain` takes."""
    field = next(f for f in context.schema if f.name in context.rule.ordering_fields)
    known = _footer(storage, cache, base, (field,)).range
    if not known.bounded:
        return False
    highs = [known.high] if known.values else []
    if known.nulls and pa.types.is_integer(field.type):
        highs.append(0)
    return all(isinstance(high, int) and low >= high for high in highs)


class _Footer(NamedTuple):
    rows: int
    range: ValueRange


_FOOTER: Kind[_Footer] = Kind("footer of a base file")


def _footer(storage: Storage, cache: Cache, base: BaseFile, fields: tuple[pa.Field, ...]) -> _Footer:
    """Row count, and the bounds of the one column where it has the type that is asked for. Base files never change."""
    key = (storage.identity, base, tuple((field.name, str(field.type)) for field in fields))
    return cache.get(_FOOTER, key, lambda: _read_footer(storage, base, fields), lambda _: 0)


def _read_footer(storage: Storage, base: BaseFile, fields: tuple[pa.Field, ...]) -> _Footer:
    with open_base_file(storage, base) as (file, metadata):
        same = [
            f for f in fields if f.name in file.schema_arrow.names and file.schema_arrow.field(f.name).type == f.type
        ]
        known = ranges_of_footer(metadata, same)
        return _Footer(metadata.num_rows, known[same[0].name] if same else UNKNOWN)
