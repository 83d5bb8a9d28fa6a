"""Which file slices a filter leaves to be read: first by their partitions, then by what is known of their columns.

1. Partitions: the values that a path stands for (`keygen/partition_values.py`).
2. Statistics of commits: our writer states the bounds of columns of every file that it writes (`format/column_stats.py`).
3. Statistics of a metadata table, which Apache Hudi keeps, of base files that have no such ones.
4. Bounds of an expression index, where the filter compares what is computed of a column (`read/by_expressions.py`).
5. Parquet footers of the base files that are left: read by threads.
6. Bloom filters in footers, where only rows of a few record keys can fulfil the filter (`read/by_keys.py`).

Where there is a record index, it says in place of 2 to 6 which file groups have these keys; where there is an index of another column,
that says which keys have its values.

A row may come from the base file, from each log, and where records are merged field by field its columns from several of
them. So a slice is left out only where no mixture of the values in its files can fulfil the filter; a log of which nothing
is known keeps its slice. Where a function of the user's own merges rows, its values are anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.errors import OptionError
from hoodie.format.column_stats import has_bounds
from hoodie.keygen.partition_values import judged_levels, ranges_below, ranges_of_paths
from hoodie.model.columns import ColumnHistory
from hoodie.model.enums import MergeMode
from hoodie.model.files import FileSlice
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY, with_meta_fields
from hoodie.model.plans import ReadContext, RowFilter
from hoodie.model.sought import RowBlocks, SoughtKeys
from hoodie.model.statistics import UNKNOWN, Pruning, ValueRange
from hoodie.options.table import TableConfig
from hoodie.read.bounds import may_match
from hoodie.read.by_expressions import by_expressions
from hoodie.read.by_keys import groups_with, keys_asked_for, keys_with_values, may_hold, places_in, values_asked_for
from hoodie.read.condition import Among, Comparison, Condition, Op, computes
from hoodie.read.file_ranges import FileRanges, KnownRanges, same_as_key
from hoodie.read.where import Where, condition_of, parse_filter
from hoodie.view.context import Snapshot, TableContext

MAX_FOOTERS = 5_000
"""Of one plan; files beyond are read without a look into their footers first."""

_FEW_KEYS = 50
"""So many are looked up in a record index quickly."""
_KEYS_A_FILE = 3
"""Of more random keys than so many for each file nearly all files have one, and to ask for their places takes longer than to read the
keys of the few others. Bounds and bloom filters tell where keys are not random.
"""


@dataclass(frozen=True)
class PruneResult:
    """What is left of the candidates."""

    mask: npt.NDArray[np.bool_]
    """For each candidate, whether it stays."""
    counts: Pruning
    places: Mapping[str, RowBlocks] | None = None
    """As `SoughtKeys` has them."""


def prune(
    context: TableContext,
    snapshot: Snapshot,
    read_context: ReadContext,
    where: Where | None,
    candidates: Sequence[Sequence[FileSlice]],
    *,
    is_newest: bool = False,
) -> PruneResult:
    """Which candidates may have rows that the filter accepts; each is all slices of one file group that a task looks at.

    `is_newest`: they are those of the newest state, with their logs: what a record index speaks of.
    """
    if where is None or read_context.filter is None or not candidates:
        count = len(candidates)
        return PruneResult(np.ones(count, np.bool_), Pruning(count, count, count))
    schema, kinds = read_context.schema, _kinds_of(read_context, read_context.filter)
    sought = read_context.filter.key_filter
    return _Pruner(context, snapshot, _tree_of(where, schema), schema, kinds, candidates, is_newest, sought).run()


def _kinds_of(read_context: ReadContext, row_filter: RowFilter) -> dict[str, pa.DataType]:
    """Columns that bounds can say something about."""
    fields = {name: read_context.schema.field(name).type for name in row_filter.columns}
    return {
        name: kind for name, kind in fields.items() if has_bounds(kind) and _keeps_its_name(read_context.history, name)
    }


def sought_by(where: Where, config: TableConfig, schema: pa.Schema) -> SoughtKeys | None:
    """The record keys that a filter asks for, however many: other columns are decoded only where one of them stands."""
    keys = keys_asked_for(_tree_of(where, schema), config, schema, None)
    if keys is None:
        return None
    same = same_as_key(config, {field.name: field.type for field in schema})
    return SoughtKeys(keys.drop_null().sort(), same)


def asks_for_keys_alone(where: Where, schema: pa.Schema) -> bool:
    """Whether the filter is that the column of record keys has one of some values."""
    match _tree_of(where, schema):
        case Comparison(str(column), Op.EQ, _) | Among(str(column), _):
            return column == RECORD_KEY
    return False


def _tree_of(where: Where, schema: pa.Schema) -> pc.Expression | Condition:
    return where if isinstance(where, pc.Expression) else condition_of(where, schema)


@dataclass
class _Pruner:
    context: TableContext
    snapshot: Snapshot
    where: pc.Expression | Condition
    schema: pa.Schema
    kinds: dict[str, pa.DataType]
    """Columns that bounds can say something about."""
    candidates: Sequence[Sequence[FileSlice]]
    is_newest: bool
    sought: SoughtKeys | None
    mask: npt.NDArray[np.bool_] = field(init=False)
    places: Mapping[str, RowBlocks] = field(default_factory=dict)

    def run(self) -> PruneResult:
        total = len(self.candidates)
        paths = [slices[0].group.partition_path for slices in self.candidates]
        place = {path: at for at, path in enumerate(dict.fromkeys(paths))}
        by_path = ranges_of_paths(self.context.config, self.kinds, list(place))
        single = {name: [(value_range,) for value_range in each] for name, each in by_path.items()}
        fits = may_match(self.where, self.schema, single, len(place))
        self.mask = np.array([fits[place[path]] for path in paths], np.bool_)
        in_partitions = int(self.mask.sum())
        of_partitions = {name: [each[place[path]] for path in paths] for name, each in by_path.items()}
        config = self.context.config
        left_out = config.partition_fields if config.drops_partition_columns else ()  # no file knows of them
        open_columns = {
            name: kind
            for name, kind in self.kinds.items()
            if not (name in by_path and all(value_range.bounded for value_range in by_path[name]))
            and name not in left_out
        }
        if not open_columns or not in_partitions:
            return PruneResult(self.mask, Pruning(total, in_partitions, in_partitions))
        keys = keys_asked_for(self.where, config, self.schema)
        if self.is_newest and (self._by_index(keys) if keys is not None else self._by_values()):
            if keys is not None:
                self.places = places_in(self.context, list(compress(self.candidates, self.mask)), self.sought)
            return PruneResult(self.mask, Pruning(total, in_partitions, int(self.mask.sum())), self.places)
        self._by_expressions()
        unknown, footers = self._by_files(open_columns, of_partitions)
        if keys is not None:
            self._by_keys(keys)
        counts = Pruning(total, in_partitions, int(self.mask.sum()), unknown, footers)
        return PruneResult(self.mask, counts, self.places)

    def _by_files(self, columns: dict[str, pa.DataType], of_partitions: dict[str, list[ValueRange]]) -> tuple[int, int]:
        """Judge the candidates by bounds of files; gives (candidates without bounds, footers that were read)."""
        files = FileRanges(self.context.storage, self.snapshot, columns, same=same_as_key(self.context.config, columns))
        merges_freely = self.context.rule.mode is MergeMode.CUSTOM
        gathered: dict[int, KnownRanges] = {}
        to_read: dict[int, KnownRanges] = {}
        unknown = footers = 0
        for at in np.flatnonzero(self.mask).tolist():
            slices = self.candidates[at]
            bounds = (
                None if merges_freely and any(file_slice.logs for file_slice in slices) else files.of_commits(slices)
            )
            if bounds is None:
                unknown += 1
            else:
                gathered[at] = bounds
        ready: dict[int, KnownRanges] = {}
        for at, bounds in files.by_catalogue(self.context.catalogue, gathered).items():
            if footers + len(bounds.unread) > MAX_FOOTERS:
                unknown += 1
            elif bounds.unread:
                to_read[at] = bounds
                footers += len(bounds.unread)
            else:
                ready[at] = bounds
        self._judge(ready, columns, of_partitions)
        self._judge(files.with_footers(to_read, self.context.cache), columns, of_partitions)
        return unknown, footers

    def _by_expressions(self) -> None:
        """Keep the candidates that an expression index admits, where the filter compares such an expression."""
        merges_freely = self.context.rule.mode is MergeMode.CUSTOM
        remaining = np.flatnonzero(self.mask).tolist()
        remaining = [at for at in remaining if not (merges_freely and any(piece.logs for piece in self.candidates[at]))]
        if remaining:
            candidates = [self.candidates[at] for at in remaining]
            self.mask[remaining] = by_expressions(self.context, self.snapshot, self.where, self.kinds, candidates)

    def _by_values(self) -> bool:
        """Keep the candidates of the record keys that a secondary index has for the filter; False where none says so."""
        values = values_asked_for(self.where, self.context.config, self.kinds)
        keys = keys_with_values(self.context, self.snapshot, values) if values and self.mask.sum() > 1 else None
        return keys is not None and self._by_index(keys, stored=True)

    def _by_index(self, keys: pa.Array, *, stored: bool = False) -> bool:
        """Keep the candidates that a record index names for these keys; False where there is none to be trusted."""
        remaining = int(self.mask.sum())
        if not stored and len(keys) > max(_FEW_KEYS, _KEYS_A_FILE * remaining):
            return False
        groups = [slices[0].group for slices in self.candidates]
        places = groups_with(self.context, self.snapshot, keys, groups, stored=stored) if remaining > 1 else None
        if places is not None:
            self.mask &= np.array([group in places for group in groups], np.bool_)
        return places is not None

    def _by_keys(self, keys: pa.Array) -> None:
        """Keep the candidates whose files may have one of the keys, where only rows of a few keys fulfil the filter."""
        remaining = np.flatnonzero(self.mask).tolist()
        if 0 < len(remaining) <= MAX_FOOTERS:
            candidates = [self.candidates[at] for at in remaining]
            self.places = places_in(self.context, candidates, self.sought)
            self.mask[remaining] = may_hold(self.context, self.snapshot, candidates, keys, self.places)

    def _judge(
        self,
        gathered: dict[int, KnownRanges],
        columns: dict[str, pa.DataType],
        of_partitions: dict[str, list[ValueRange]],
    ) -> None:
        """Drop those of the numbered candidates that cannot match."""
        if not gathered:
            return
        numbers = list(gathered)
        ranges: dict[str, list[Sequence[ValueRange]]] = {
            name: [(each[at],) for at in numbers] for name, each in of_partitions.items()
        }
        for name in columns:
            by_path = ranges.get(name, [(UNKNOWN,)] * len(numbers))
            of_files = [gathered[at].ranges_of(name) for at in numbers]
            ranges[name] = [path if path[0].bounded else files for path, files in zip(by_path, of_files, strict=True)]
        self.mask[numbers] = may_match(self.where, self.schema, ranges, len(numbers))


def _keeps_its_name(history: ColumnHistory | None, name: str) -> bool:
    """Whether the column has had this name, and no other column had it, in all files that a table's history tells of."""
    if history is None:
        return True
    number = next((column.id for column in history.now if column.name == name), None)
    return number is not None and all(
        (column.id == number) == (column.name == name) for version in history.versions for column in version.columns
    )


# -- Partitions by their paths, before they are listed.


@dataclass(frozen=True)
class PathChoice:
    """`Choice` of the partitions in which rows may fulfil a filter."""

    config: TableConfig
    where: pc.Expression | Condition
    schema: pa.Schema
    kinds: Mapping[str, pa.DataType]
    """Columns that the filter asks about, and whose values may stand in paths."""
    levels: int
    _ruled_out: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """What was judged before: a folder that leads nowhere is no partition that is wanted."""

    def leads(self, folders: Sequence[str]) -> Sequence[bool]:
        return self._judged(folders, ranges_below(self.config, self.kinds, self.schema, folders))

    def wants(self, paths: Sequence[str]) -> Sequence[bool]:
        open_ones = [path for path in paths if path not in self._ruled_out]
        admitted = set(
            compress(open_ones, self._judged(open_ones, ranges_of_paths(self.config, self.kinds, open_ones)))
        )
        return [path in admitted for path in paths]

    def _judged(self, paths: Sequence[str], ranges: Mapping[str, Sequence[ValueRange]]) -> Sequence[bool]:
        if not paths:
            return []
        single = {name: [(value_range,) for value_range in each] for name, each in ranges.items()}
        flags = may_match(self.where, self.schema, single, len(paths))
        self._ruled_out.update(compress(paths, ~flags))
        result: list[bool] = flags.tolist()
        return result


def choice_of(context: TableContext, read_context: ReadContext, where: Where | None) -> PathChoice | None:
    """Which partitions a query has to look into; None where paths say nothing of its filter."""
    if where is None or read_context.filter is None:
        return None
    schema, kinds = read_context.schema, _kinds_of(read_context, read_context.filter)
    levels = judged_levels(context.config, kinds, schema)
    return PathChoice(context.config, _tree_of(where, schema), schema, kinds, levels) if levels else None


# -- Partitions by a condition on the columns that make them.


def partitions_where(context: TableContext, where: Where) -> frozenset[str]:
    """The partition paths in which rows may fulfil a condition on partition columns.

    Raises:
        OptionError: it does not parse, or names another column.
    """
    snapshot = context.snapshot()
    if snapshot.schema is None:
        return frozenset()
    schema = with_meta_fields(snapshot.schema)
    row_filter = parse_filter(where, schema)
    if row_filter is None:
        return frozenset(snapshot.view.every_partition())
    allowed = (*context.config.partition_fields, PARTITION_PATH)
    other = next((name for name in row_filter.columns if name not in allowed), None)
    if other is not None:
        columns = ", ".join(context.config.partition_fields)
        raise OptionError(
            f"this condition chooses partitions of table {context.config.name!r}, and column {other!r} makes none: "
            + (f"name {columns}" if columns else "the table has no partitions, leave the condition out")
        )
    paths = list(snapshot.view.every_partition())
    if not paths:
        return frozenset()
    kinds = {name: schema.field(name).type for name in row_filter.columns if has_bounds(schema.field(name).type)}
    ranges = {
        name: [(each,) for each in path_ranges]
        for name, path_ranges in ranges_of_paths(context.config, kinds, paths).items()
    }
    tree = _tree_of(where, schema)
    if isinstance(tree, Condition) and computes(tree):  # else it would choose partitions without such rows, too
        raise OptionError(
            f"this condition chooses partitions of table {context.config.name!r} by what it computes: compare their columns "
            f"themselves, as in {context.config.partition_fields[0]} >= 'a' AND {context.config.partition_fields[0]} < 'b'"
        )
    return frozenset(compress(paths, may_match(tree, schema, ranges, len(paths)).tolist()))
