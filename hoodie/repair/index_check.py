"""Whether a partition of the metadata table agrees with the files of the table. All of it is read, and all of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import CorruptFileError, MissingFileError, OptionError
from hoodie.format.base_file import read_footer
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.column_stats import columns_of, footer_bounds
from hoodie.metadata.footers import read_footers
from hoodie.metadata.key_changes import keys_of_slices
from hoodie.metadata.keys import (
    COLUMN_STATS,
    EXPRESSION_INDEX,
    FILES,
    PARTITION_STATS,
    RECORD_INDEX,
    SECONDARY_INDEX,
    partition_keys,
)
from hoodie.metadata.maintenance import partition_of
from hoodie.metadata.partition import Scope
from hoodie.metadata.partition_stats import PartitionStatsPartition
from hoodie.metadata.record_index import merged_records
from hoodie.metadata.secondary_index import SecondaryPartition, stored_values, value_index
from hoodie.metadata.secondary_keys import group_numbers_of
from hoodie.metadata.table import MetadataTable, finished_partitions
from hoodie.model.files import FileSlice
from hoodie.model.index_results import IndexCheck
from hoodie.model.names import folder_of, name_of
from hoodie.options.table import TableConfig
from hoodie.repair.expression_check import bounds_by_key, check_expression_index, is_narrower
from hoodie.repair.metadata_damage import difference
from hoodie.view.context import Snapshot, TableContext, load_config

pc: Any = pyarrow.compute
_SHOWN = 5
_AT_ONCE = 200
"""Files whose bounds, filters or keys are in memory at once."""
_TRIES = 3


def check_index(context: TableContext, name: str) -> IndexCheck:
    """Look everything up in a partition of the metadata table that is stored, on the newest snapshot.

    Raises:
        OptionError: the table has no such partition, or it is none that this release reads.
    """
    context = context.on_storage()
    config = load_config(context.storage)
    there = sorted(each for each in finished_partitions(config.raw) if partition_of(each) is not None)
    if name not in there:
        raise OptionError(
            f"table {context.storage.uri} has no index {name!r} that can be checked; those are: {', '.join(there) or 'none'}"
        )
    for remaining in range(_TRIES - 1, -1, -1):
        snapshot = context.snapshot()
        try:
            result = _Check(context, config, name, snapshot).run()
        except (CorruptFileError, MissingFileError, FileNotFoundError) as exc:
            result = IndexCheck(name, 0, problems=(str(exc),))
        # A writer may have gone on meanwhile, which deletes files.
        if result or not remaining or context.active.load() == snapshot.timeline:
            return result
    raise AssertionError("unreachable")


@dataclass(frozen=True)
class _Check:
    context: TableContext
    config: TableConfig
    name: str
    snapshot: Snapshot

    def run(self) -> IndexCheck:
        context, name = self.context, self.name
        table = MetadataTable.open(context.storage, self.config, self.snapshot.timeline, context.cache)
        why = table.problem_of(name)
        if why is not None:
            return IndexCheck(name, 0, problems=(why,))
        slices = self.snapshot.view.latest_slices()
        if name == FILES:
            wrong = difference(context, table, self.snapshot)
            return IndexCheck(name, len(slices), problems=() if wrong is None else (wrong,))
        if name == RECORD_INDEX:
            return self._keys(table, slices)
        if name == PARTITION_STATS:
            return self._partitions(table)
        if name.startswith(SECONDARY_INDEX):
            return self._values(table, slices)
        if name.startswith(EXPRESSION_INDEX):
            return check_expression_index(context, name, table)
        look = self._stats if name == COLUMN_STATS else self._blooms
        paths = [each.base.path for each in slices if each.base is not None]
        parts = [look(table, part) for part in _parts(paths)]
        problems = [each for part in parts for each in part.problems]
        return IndexCheck(name, len(paths), sum(part.missing for part in parts), problems=tuple(problems[:_SHOWN]))

    def _stats(self, table: MetadataTable, paths: Sequence[str]) -> IndexCheck:
        columns = set(columns_of(self.context, self.config.raw))
        schema = pa.schema([field for field in self.snapshot.schema or () if field.name in columns])
        scope = Scope(self.context, self.config.raw, table.schema_of(FILES))
        stored, footers = table.column_stats(paths, schema), footer_bounds(scope, paths, schema)
        if stored is None:
            return IndexCheck(self.name, 0, problems=(table.reasons[self.name],))
        problems, unknown = [], pa.array([False] * len(paths))
        for field in schema:
            mine, theirs = stored[field.name], footers[field.name]
            is_stated = mine["values"].combine_chunks().is_valid()
            unknown = pc.or_(unknown, pc.and_(pc.invert(is_stated), theirs["values"].combine_chunks().is_valid()))
            for row in pc.indices_nonzero(pc.and_(is_stated, _contradicts(mine, theirs))).to_pylist():
                says, does = (each.slice(row, 1).to_pylist()[0] for each in (mine, theirs))
                problems.append(f"column {field.name!r} of {paths[row]}: {says}, and its footer has {does}")
        return IndexCheck(self.name, len(paths), pc.sum(unknown).as_py() or 0, problems=tuple(problems))

    def _blooms(self, table: MetadataTable, paths: Sequence[str]) -> IndexCheck:
        stored = table.bloom_filters(paths)
        if stored is None:
            return IndexCheck(self.name, 0, problems=(table.reasons[self.name],))
        files: dict[str, dict[str, int]] = {}
        for path in paths:
            files.setdefault(folder_of(path), {})[name_of(path)] = self.context.storage.stat(path).size_bytes
        footers = read_footers(self.context.storage, files)
        problems, missing = [], 0
        for path in paths:
            mine, own = stored.get(path), read_footer(footers[folder_of(path), name_of(path)], path=path).bloom()
            missing += mine is None and own is not None
            if mine is not None and (own is None or mine.to_bytes() != own.to_bytes()):
                problems.append(f"the filter of {path} is not the one in its footer")
        return IndexCheck(self.name, len(paths), missing, problems=tuple(problems))

    def _partitions(self, table: MetadataTable) -> IndexCheck:
        """Bounds of a partition may be wider than those of its files, and never narrower."""
        scope, partition = Scope(self.context, self.config.raw, table.schema_of(FILES)), PartitionStatsPartition()
        expected = bounds_by_key(partition.first(scope, {})[1], scope.schema)
        groups = range(len(table.slices_of(self.name)))
        stored = bounds_by_key((partition.merged(scope, table, number) for number in groups), scope.schema)
        problems = []
        columns = columns_of(self.context, self.config.raw)
        for path in self.snapshot.view.partitions():
            for column, key in zip(columns, partition_keys(path, columns), strict=True):
                says, does = stored.get(key), expected.get(key)
                if says is not None and does is not None and is_narrower(says, does):
                    problems.append(f"column {column!r} of partition {path!r}: {says}, and its files have {does}")
        missing = len(expected.keys() - stored.keys())
        return IndexCheck(self.name, len(expected), missing, problems=tuple(problems[:_SHOWN]))

    def _keys(self, table: MetadataTable, slices: Sequence[FileSlice]) -> IndexCheck:
        count, missing, problems = 0, 0, []
        for part in _parts(slices):
            for each, keys in zip(part, keys_of_slices(self.context, self.snapshot, part), strict=True):
                places = table.locations(keys, pa.repeat(each.group.partition_path, len(keys)))
                if places is None:
                    return IndexCheck(self.name, count, problems=(table.reasons[self.name],))
                count += len(keys)
                absent = places["file_id"].combine_chunks().is_null()
                is_there = pc.and_(
                    pc.equal(places["partition_path"], each.group.partition_path),
                    pc.equal(places["file_id"], each.group.file_id),
                )
                lacks, wrong = pc.sum(absent).as_py() or 0, pc.sum(pc.invert(is_there)).as_py() or 0
                missing += lacks
                if lacks or wrong:
                    problems.append(
                        f"of {len(keys):,} keys in file group {each.group.file_id} of partition {each.group.partition_path!r} "
                        f"{lacks:,} are not in it, and {wrong:,} with another place"
                    )
        groups = len(table.slices_of(self.name))
        schema = table.schema_of(FILES)
        records = sum(len(merged_records(table.layers_of(self.name, number), schema)[0]) for number in range(groups))
        surplus = max(records + missing - count, 0)
        return IndexCheck(self.name, count, missing, surplus, tuple(problems[:_SHOWN]))

    def _values(self, table: MetadataTable, slices: Sequence[FileSlice]) -> IndexCheck:
        index = value_index(self.context.storage, self.config.raw, self.name)
        groups, partition = range(len(table.slices_of(self.name))), SecondaryPartition(self.name)
        scope = Scope(self.context, self.config.raw, table.schema_of(FILES))
        shards = [partition.merged(scope, table, number).keys for number in groups]
        stored = pa.concat_arrays(shards)
        expected = pa.concat_arrays(
            [
                pa.array([], BINARY),
                *(
                    keys.cast(pa.binary()).cast(BINARY)
                    for part in _parts(slices)
                    for keys in stored_values(self.context, self.snapshot, index.column, part)
                ),
            ]
        )
        lacks, surplus = (
            each.filter(pc.invert(pc.is_in(each, value_set=other)))
            for each, other in ((expected, stored), (stored, expected))
        )
        examples = lacks.slice(0, _SHOWN).cast(pa.binary()).cast(pa.string()).to_pylist()
        problems = [f"it lacks {each!r}" for each in examples]
        for number, keys in enumerate(shards):
            texts = keys.cast(pa.binary()).cast(pa.string())
            strange = group_numbers_of(texts, len(groups), by_value=index.by_value) != number
            if strange.any():
                problems.append(f"its file group {number} has {strange.sum():,} keys of others")
        return IndexCheck(self.name, len(expected), len(lacks), len(surplus), tuple(problems[:_SHOWN]))


def _contradicts(mine: pa.Table, footer: pa.Table) -> Any:
    """Which rows leave values out that are in the file, or count others. A bound that is not known contradicts nothing."""
    low, high = (pc.less(footer["low"], mine["low"]), pc.greater(footer["high"], mine["high"]))
    counts = [pc.not_equal(mine[name], footer[name]) for name in ("nulls", "values")]
    result = low.combine_chunks().fill_null(False)
    for each in (high, *counts):
        result = pc.or_(result, each.combine_chunks().fill_null(False))
    return result


def _parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    rest = iter(items)
    return iter(lambda: list(islice(rest, _AT_ONCE)), [])
