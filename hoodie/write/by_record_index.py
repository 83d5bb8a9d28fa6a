"""Placement by the record index of the metadata table: where a key is stored is looked up, and no file of the table is looked into.

By RECORD_INDEX, or GLOBAL_RECORD_LEVEL_INDEX, a key is unique in all partitions, as with the other indexes of the whole table; by
RECORD_LEVEL_INDEX in its partition. Where the record index does not cover the table (it is missing, being made, behind, damaged, or of
the other kind) the write looks into the files, as with GLOBAL_SIMPLE or SIMPLE, and the log says so once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from hoodie.errors import HoodieError
from hoodie.index.record_places import RECORD_INDEX, FoundPlaces, plan_places, run_places
from hoodie.metadata import keys
from hoodie.metadata.data_groups import Shares
from hoodie.metadata.key_places import RecordIndex
from hoodie.metadata.table import MetadataTable
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.plans import ChunkPiece, LookupResult, Matches
from hoodie.options.index import IndexOptions
from hoodie.storage.cache import Kind
from hoodie.view.context import Snapshot, TableContext, load_config
from hoodie.write.by_global_key import ByGlobalKey
from hoodie.write.by_key import ByKey, FoundKeys
from hoodie.write.operation_rules import Step
from hoodie.write.search import Search

log = logging.getLogger("hoodie")

_SAID: Kind[bool] = Kind("record indexes that were found wanting")
_BYTES = 64


class _LooksUp(ByKey):
    by_partition: ClassVar[bool]

    def looked_up(
        self,
        search: Search,
        pieces: Mapping[str, Sequence[ChunkPiece]] | Sequence[ChunkPiece],
        slices: Sequence[FileSlice],
    ) -> list[LookupResult]:
        context, batch, snapshot, label, earlier = search
        index, problem = _open(context, snapshot, by_partition=self.by_partition)
        if index is not None and index.shares is not None:
            problem = _lacks(index.shares, slices)
        if index is not None and problem is None:
            tasks = plan_places(batch.chunks, index, stage_to=batch.folder)
            answers = batch.engine.run(
                partial(run_places, context.storage, context.cache), tasks, label=label(Step.LOOK_UP)
            )
            lookups, problem = _results(answers, slices)
            if problem is None:
                self.check_stored(search, lookups)
                return lookups
        if problem is not None:
            _complain(context, problem)
        if isinstance(earlier, FoundKeys) and any(result.how == RECORD_INDEX for result in earlier.lookups):
            search = search._replace(earlier=None)
        return super().looked_up(search, pieces, slices)


class ByRecordIndex(_LooksUp, ByGlobalKey):
    by_partition: ClassVar = False

    @staticmethod
    def moves(index: IndexOptions) -> bool:
        return index.record_moves_rows


class ByPartitionedIndex(_LooksUp):
    by_partition: ClassVar = True


def _lacks(shares: Shares, slices: Sequence[FileSlice]) -> str | None:
    """What is wrong with an index by partitions, one of which it does not have."""
    paths = {each.group.partition_path for each in slices} - shares.keys()
    return f"it does not have partition {min(paths)!r}" if paths else None


def _open(context: TableContext, snapshot: Snapshot, *, by_partition: bool) -> tuple[RecordIndex | None, str | None]:
    """The record index for a snapshot, or why it cannot be used; neither where this write is about to make one."""
    options = context.view_options
    if options.metadata is False:
        return None, "hoodie.metadata.enable is false"
    try:  # another process may have made it since the table was opened
        config = load_config(context.storage)
    except HoodieError as exc:
        return None, str(exc)
    table = MetadataTable.open(context.storage, config, snapshot.timeline, context.cache)
    index = table.record_index()
    if index is not None and (index.shares is not None) is by_partition:
        return index, None
    if index is not None:
        return None, "it is one of the whole table" if by_partition else "it is one by partitions"
    is_missing = keys.RECORD_INDEX not in config.metadata_partitions
    is_wanted = options.partitioned_index.is_on or options.record_index.is_on
    return None, None if is_missing and is_wanted else table.reasons[keys.RECORD_INDEX]


def _results(answers: Sequence[FoundPlaces], slices: Sequence[FileSlice]) -> tuple[list[LookupResult], str | None]:
    """The matches by base file, or what is wrong with the answers."""
    matches: dict[FileGroupId, list[Matches]] = {}
    for each in answers:
        if each.problem is not None:
            return [], each.problem
        for group, rows in each.places:
            matches.setdefault(group, []).append(rows)
    bases = {each.group: each.base for each in slices}
    results = []
    for group, rows_of_group in matches.items():
        base = bases.get(group)
        if base is None:
            return (
                [],
                f"it has keys in file group {group.file_id} of partition {group.partition_path!r}, which has no base file now",
            )
        results.append(LookupResult(base, tuple(rows_of_group), RECORD_INDEX, 0))
    return results, None


def _complain(context: TableContext, problem: str) -> None:
    """Say it once in this process."""
    if context.cache.find(_SAID, context.storage.identity):
        return
    context.cache.put(_SAID, context.storage.identity, True, _BYTES)
    log.warning(
        "the record index of %s is not used, and keys are sought in the files: %s", context.storage.uri, problem
    )
