"""Placement by looking keys up in all partitions: a key is unique in the whole table, and its row may go from one to another.

One commit deletes the row where it was and inserts it where it belongs now. With `...update.partition.path=false` the row stays in
the partition where its key is stored, whatever its columns say. These are the indexes GLOBAL_BLOOM and GLOBAL_SIMPLE of Apache Hudi.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from hoodie.index.bloom import pieces_by_partition, whole_pieces
from hoodie.index.moves import MoveResult, MoveTask, found_twice, run_moves
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import InstantTime
from hoodie.model.plans import LookupResult, Matches, WriteContext
from hoodie.options.index import IndexOptions
from hoodie.options.mergers import runnable
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.view.columns import NO_VERSION, history_after
from hoodie.view.context import Snapshot, TableContext
from hoodie.write.batch import Batch
from hoodie.write.by_key import ByKey, FoundKeys, bases_of
from hoodie.write.keys import table_keys
from hoodie.write.operation_rules import OperationRules
from hoodie.write.plan import TaggedBatch
from hoodie.write.search import Search

_SHARE_ROWS = 1_000_000
"""Rows of a batch that one task decides on."""


@dataclass(frozen=True)
class ByGlobalKey(ByKey, ABC):
    options: WriteOptions
    rules: OperationRules
    is_global: ClassVar = True

    @classmethod
    def of(cls, config: TableConfig, rules: OperationRules, options: WriteOptions) -> ByGlobalKey:
        return cls(**vars(ByKey.of(config, rules, options)), options=options, rules=rules)

    @staticmethod
    @abstractmethod
    def moves(index: IndexOptions) -> bool:
        """Whether rows go to the partitions that they say."""

    def locate(self, search: Search) -> FoundKeys:
        context, batch, snapshot, label, earlier = search
        pieces = pieces_by_partition(batch.chunks)
        tagged = TaggedBatch(pieces, inserts=self.inserts, updates=self.updates, concat=self.concat, ranged=self.ranged)
        if self.step is None:
            return FoundKeys(tagged)
        slices = snapshot.view.latest_slices(snapshot.view.every_partition())
        all_pieces = whole_pieces(batch.chunks)
        lookups = self.looked_up(search, all_pieces, slices)
        holders = _holders(slices, lookups)
        tasks = self._tasks(context, batch, snapshot, holders, earlier.chunks if isinstance(earlier, FoundKeys) else 0)
        run = partial(run_moves, context.storage, self._write_context(context, batch, snapshot))
        moved = batch.engine.run(run, tasks, label=label(self.step))
        read = {holders[n][0].group: holders[n][0] for each in moved for n in each.read}
        tagged = replace(tagged, in_whole_table=True, read=frozenset(read))
        tagged = _tagged(tagged, tasks, moved, holders, lookups)
        chunks = max((1 + task.number for task in tasks), default=0)
        return FoundKeys(tagged, lookups, bases_of(slices), read, chunks)

    def _tasks(
        self,
        context: TableContext,
        batch: Batch,
        snapshot: Snapshot,
        holders: Sequence[tuple[FileSlice, list[LookupResult]]],
        old_chunks: int,
    ) -> list[MoveTask]:
        """The tasks, one for each share of the keys; none where no key can be in two places."""
        slices_with_rows = tuple(
            (each, tuple(m for result in results for m in result.matches)) for each, results in holders
        )
        partitions = {span.partition_path for chunk in batch.chunks for span in chunk.ranges}
        if (
            len(partitions) <= 1
            and len(slices_with_rows) <= 1
            and not any(found_twice(matches) for _, matches in slices_with_rows)
            and all(each.group.partition_path in partitions for each, _ in slices_with_rows)
        ):
            return []
        rows = sum(chunk.rows for chunk in batch.chunks)
        shares = -(-rows // _SHARE_ROWS)
        first = max(len(batch.chunks), old_chunks)
        keygen = table_keys(context, snapshot, self.options)
        moves = self.moves(self.options.index)
        return [
            MoveTask(first + n, batch.chunks, slices_with_rows, keygen, moves, self.updates, n, shares, batch.folder)
            for n in range(shares)
        ]

    def _write_context(self, context: TableContext, batch: Batch, snapshot: Snapshot) -> WriteContext:
        """For tasks that compare rows of the batch with stored ones; they write nothing."""
        return WriteContext(
            instant=InstantTime(),
            table_name=context.config.name,
            schema=batch.schema,
            rule=runnable(context.rule),
            combine=True,
            files=self.options.file_options(),
            staging="",
            visible=snapshot.timeline.visible(),
            set_columns=self.rules.columns_from(batch.input_schema.names),
            tuning=context.tuning,
            history=history_after(snapshot.history, batch.schema, NO_VERSION),
            unstored=unstored_of(context.config, batch.schema),
        )


class ByGlobalBloom(ByGlobalKey):
    @staticmethod
    def moves(index: IndexOptions) -> bool:
        return index.bloom_moves_rows


class ByGlobalSimple(ByGlobalKey):
    @staticmethod
    def moves(index: IndexOptions) -> bool:
        return index.simple_moves_rows


def _holders(
    slices: Sequence[FileSlice], lookups: Sequence[LookupResult]
) -> list[tuple[FileSlice, list[LookupResult]]]:
    """The slices that hold keys of the batch, with the results of their look-ups."""
    results: dict[FileGroupId, list[LookupResult]] = {}
    for result in lookups:
        if result.matched:
            results.setdefault(FileGroupId(result.base.partition_path, result.base.file_id), []).append(result)
    return [(each, results[each.group]) for each in slices if each.group in results]


def _tagged(
    tagged: TaggedBatch,
    tasks: Sequence[MoveTask],
    moved: Sequence[MoveResult],
    holders: Sequence[tuple[FileSlice, list[LookupResult]]],
    lookups: Sequence[LookupResult],
) -> TaggedBatch:
    """The tagged batch, with the rows that move standing for others."""
    if not tasks:
        return replace(tagged, lookups=lookups)
    pieces = {path: list(matches_of) for path, matches_of in tagged.pieces.items()}
    matches_of: dict[int, list[Matches]] = {}
    aside: dict[str, list[Matches]] = {}
    origins: set[FileGroupId] = set()
    for task, each in zip(tasks, moved, strict=True):
        for number, matches in each.targets:
            matches_of.setdefault(number, []).extend(matches)
        for path, rows in each.aside:
            aside.setdefault(path, []).append(rows)
        origins.update(holders[n][0].group for n in each.origins)
        for path, more in pieces_by_partition((each.chunk,) if each.chunk is not None else ()).items():
            pieces.setdefault(path, []).extend(replace(piece, number=task.number) for piece in more)
    decided = [replace(results[0], matches=tuple(matches_of.get(n, ()))) for n, (_, results) in enumerate(holders)]
    others = [result for result in lookups if not result.matched]
    return replace(tagged, pieces=pieces, lookups=[*decided, *others], aside=aside, origins=frozenset(origins))
