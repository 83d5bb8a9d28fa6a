"""Placement by looking keys up in the stored files. Rows of new keys go where there is room; so do all where nothing is looked up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar

from hoodie.errors import DuplicateKeyError
from hoodie.filegroup.chunks import load_chunk, load_rows
from hoodie.index.bloom import packed_lookups, pieces_by_partition, plan_lookup, run_lookups
from hoodie.index.record_places import RECORD_INDEX
from hoodie.index.stored_keys import KnownFiles, held_key_bytes
from hoodie.keygen.virtual_columns import unstored_of
from hoodie.model.enums import TableType
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import InstantTime
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import ChunkPiece, LookupResult, WriteResult
from hoodie.options.table import TableConfig
from hoodie.options.values import SortMode
from hoodie.options.write import WriteOptions
from hoodie.view.context import Snapshot, TableContext
from hoodie.view.view import FileSystemView
from hoodie.write.batch import Batch
from hoodie.write.operation_rules import OperationRules, Step
from hoodie.write.plan import TaggedBatch, Target, WritePlan, plan_write
from hoodie.write.search import Placement, Search


@dataclass(frozen=True)
class FoundKeys:
    """Rows of a batch with the base files that hold their keys."""

    tagged: TaggedBatch
    lookups: Sequence[LookupResult] = ()
    """As they were found."""
    looked_into: Mapping[FileGroupId, str] | None = None
    """File group -> name of its base file; None: nothing was looked up."""
    read: Mapping[FileGroupId, FileSlice] = field(default_factory=dict)
    """The slices whose rows, those in logs too, decided where rows go."""
    chunks: int = 0
    """Numbers of chunks below this one are taken."""

    def ways(self, plan: WritePlan) -> Mapping[str, int]:
        return dict(Counter(result.how for result in self.lookups))

    @property
    def opened(self) -> int:
        return sum(1 for result in self.lookups if result.how not in ("range", "index", RECORD_INDEX))

    def slices(self, view: FileSystemView) -> list[FileSlice]:
        return view.latest_slices(view.every_partition() if self.tagged.in_whole_table else self.tagged.pieces)

    def holds(self, slices: Sequence[FileSlice], view: FileSystemView) -> bool:
        if self.looked_into is None:
            return True
        now = {each.group: each for each in slices}
        same = all(group in now and _contents(now[group]) == _contents(each) for group, each in self.read.items())
        return same and self.looked_into == bases_of(slices)

    def plan(self, target: Target) -> WritePlan:
        return plan_write(self.tagged, target)


@dataclass(frozen=True)
class ByKey(Placement):
    """The bloom index, or none where the operation takes all rows for new."""

    step: Step | None
    refuses_stored: bool
    inserts: bool
    updates: bool
    concat: bool
    ranged: bool
    prune_by_range: bool
    stays: bool
    looks_up: ClassVar = True
    combines: ClassVar = False
    starts_anywhere: ClassVar = True
    rows_may_move: ClassVar = True
    is_global: ClassVar = False

    @classmethod
    def of(cls, config: TableConfig, rules: OperationRules, options: WriteOptions) -> ByKey:
        return cls(
            step=Step.LOOK_UP if rules.looks_up else None,
            refuses_stored=rules.refuses_stored,
            inserts=rules.inserts,
            updates=rules.updates,
            concat=rules.concat,
            # Rows of one key must meet in one task where they are to be combined, which ranges do not promise.
            ranged=rules.sort is SortMode.GLOBAL_SORT and not options.combine,
            prune_by_range=options.index.prune_by_ranges,
            stays=config.table_type is TableType.MERGE_ON_READ,
        )

    def locate(self, search: Search) -> FoundKeys:
        pieces = pieces_by_partition(search.batch.chunks)
        tagged = TaggedBatch(pieces, inserts=self.inserts, updates=self.updates, concat=self.concat, ranged=self.ranged)
        if self.step is None:
            return FoundKeys(tagged)
        slices = search.snapshot.view.latest_slices(pieces)
        lookups = self.looked_up(search, pieces, slices)
        return FoundKeys(replace(tagged, lookups=lookups), lookups, bases_of(slices))

    @staticmethod
    def searched_logs(view: FileSystemView) -> Callable[[FileSlice], FileSlice | None]:
        """Of a slice the logs that may hold keys which its base file lacks, as a slice of their own."""
        return view.logs_before_base

    def looked_up(
        self,
        search: Search,
        pieces: Mapping[str, Sequence[ChunkPiece]] | Sequence[ChunkPiece],
        slices: Sequence[FileSlice],
    ) -> list[LookupResult]:
        """Which rows of the pieces have their keys in the slices. `pieces`: as `plan_lookup` has them."""
        context, batch, snapshot, label, earlier = search
        lookups = _still_true(earlier, slices, snapshot) if isinstance(earlier, FoundKeys) else []
        probed_paths = {result.base.path for result in lookups}
        tasks = plan_lookup(
            pieces,
            [s for s in slices if s.base is None or s.base.path not in probed_paths],
            stage_to=batch.folder,
            prune_by_range=self.prune_by_range,
            logs_of=self.searched_logs(snapshot.view),
            visible=snapshot.timeline.visible(),
            stays=self.stays,
            unstored=None if snapshot.schema is None else unstored_of(context.config, snapshot.schema),
        )
        # Work of moments for many threads, or of many requests, stays apart.
        joins = batch.engine.shares_memory and context.storage.can.at_once == 1
        packs = packed_lookups(tasks, across=not isinstance(pieces, Mapping), joins=joins)
        run = partial(run_lookups, context.storage, context.cache)
        results_of_packs = batch.engine.run(run, packs, label=label(Step.LOOK_UP), at_once=context.storage.can.at_once)
        lookups += [result for results in results_of_packs for result in results]
        self.check_stored(search, lookups)
        return lookups

    def check_stored(self, search: Search, lookups: Sequence[LookupResult]) -> None:
        """Raises DuplicateKeyError where stored keys are an error to the write, and there is one."""
        if self.refuses_stored:
            _refuse_stored(search.context, search.batch, lookups)

    def key_bytes_to_hold(self, context: TableContext, batch: Batch, files: int) -> int:
        return held_key_bytes(context.cache, files) if batch.in_process else 0

    def remember(self, context: TableContext, results: Sequence[WriteResult]) -> None:
        files = KnownFiles(context.storage, context.cache)
        for result in results:
            if result.keys is not None:
                files.remember(result.stat.path, result.keys, result.stat.file_size_bytes)


def _still_true(former: FoundKeys, slices: Sequence[FileSlice], snapshot: Snapshot) -> list[LookupResult]:
    """What was found in base files that are still there. Logs beside them with keys that they lack have to be asked again."""
    before_base = snapshot.view.logs_before_base
    same = {s.base.path for s in slices if s.base is not None and not (s.logs and before_base(s))}
    return [result for result in former.lookups if result.base.path in same]


def _contents(file_slice: FileSlice) -> tuple[InstantTime, tuple[str, ...]]:
    """What readers see of a slice."""
    logs = tuple(log.name for log in file_slice.logs if log.committed_bytes is not None)
    return file_slice.base_instant, logs


def bases_of(slices: Sequence[FileSlice]) -> dict[FileGroupId, str]:
    return {file_slice.group: file_slice.base.name for file_slice in slices if file_slice.base is not None}


def _refuse_stored(context: TableContext, batch: Batch, lookups: Sequence[LookupResult]) -> None:
    """Raises DuplicateKeyError when a key of the batch is stored."""
    stored = [(result, matches) for result in lookups for matches in result.matches if matches.count]
    if not stored:
        return
    result, matches = stored[0]
    row = int(load_rows(context.storage, matches)[0])
    key = load_chunk(context.storage, batch.chunks[matches.number]).column(RECORD_KEY)[row].as_py()
    raise DuplicateKeyError(
        f"{sum(m.count for _, m in stored)} rows of the insert into table {context.config.name!r} have keys that are stored already, "
        f"such as {key!r} in partition {result.base.partition_path!r}; nothing was written. Upsert them, drop them "
        "(hoodie.datasource.insert.dup.policy=drop), or store them twice (hoodie.datasource.insert.dup.policy=none)"
    )
