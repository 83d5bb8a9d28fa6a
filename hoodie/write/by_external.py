"""Placement by an index that is kept outside of the table: HBASE, or one of the user's own. A key is unique in the whole table.

The index is asked where keys stand, and no file is opened for the answers that count. For the others the rows are looked up in the
files, as GLOBAL_BLOOM does: an entry was put by a commit that failed, was rolled back or is not known yet; its file group is gone; or
a key has no entry, and the index may lack entries. So what an index has lost costs time, and no row.

Entries are put before the instant is completed, as Apache Hudi puts them, and outside of the table lock. Until then they do not count
(`txn/index_changes.py`). Those of deleted rows are deleted on copy-on-write tables. On merge-on-read ones they stay: a key that comes
again goes to the file group that has it, where the read-optimized view would show it twice otherwise.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from hoodie.errors import OptionError
from hoodie.index.external import HintTask, PutTask, run_hints, run_puts, run_removals
from hoodie.index.hbase import PORT, HBaseIndex
from hoodie.model.enums import TableType
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.key_index import KeyIndex
from hoodie.model.names import hoodie_command
from hoodie.model.plans import ChunkPiece, LookupResult, Matches
from hoodie.options.index import IndexOptions
from hoodie.options.indexes import index_named
from hoodie.options.table import TableConfig
from hoodie.options.write import WriteOptions
from hoodie.txn.index_changes import doubtful_changes, note_changes, settle_changes
from hoodie.view.view import FileSystemView
from hoodie.write.by_global_key import ByGlobalKey
from hoodie.write.by_key import ByKey, FoundKeys
from hoodie.write.operation_rules import OperationRules, Step
from hoodie.write.search import Search, Written

log = logging.getLogger("hoodie")

HOW = "index"
"""Of a `LookupResult` that no file was opened for."""


@dataclass(frozen=True)
class ByOutsideIndex(ByGlobalKey):
    index: KeyIndex
    is_whole: bool
    """It has every key of the table."""
    removes: bool
    """Entries of deleted rows are deleted."""
    starts_anywhere: ClassVar = False  # not in one pass: their keys are put, too

    @classmethod
    def of(cls, config: TableConfig, rules: OperationRules, options: WriteOptions) -> ByOutsideIndex:
        return cls(
            **vars(ByKey.of(config, rules, options)),
            options=options,
            rules=rules,
            index=cls.index_of(config, options.index),
            is_whole=config.index_is_whole,
            removes=config.table_type is TableType.COPY_ON_WRITE,
        )

    @staticmethod
    def searched_logs(view: FileSystemView) -> Callable[[FileSlice], FileSlice | None]:
        return lambda file_slice: file_slice._replace(base=None) if file_slice.logs else None

    @staticmethod
    @abstractmethod
    def index_of(config: TableConfig, options: IndexOptions) -> KeyIndex:
        """The index that the table or the options name."""

    def looked_up(
        self,
        search: Search,
        pieces: Mapping[str, Sequence[ChunkPiece]] | Sequence[ChunkPiece],
        slices: Sequence[FileSlice],
    ) -> list[LookupResult]:
        context, batch, snapshot, label, _ = search
        in_files = partial(super().looked_up, search._replace(earlier=None))
        if isinstance(pieces, Mapping) or not self.updates:
            return in_files(pieces, slices)  # an insert that drops rows, or fails, needs to know for sure
        storage = context.storage
        doubtful = doubtful_changes(storage, snapshot.timeline)
        visible = snapshot.timeline.visible()
        visible = replace(visible, pending=visible.pending | doubtful.instants)
        tasks = [HintTask(piece.number, piece.chunk, batch.folder) for piece in pieces]
        hints = batch.engine.run(partial(run_hints, storage, self.index, visible), tasks, label=label(Step.LOOK_UP))
        may_lack = not self.is_whole or doubtful_changes(storage, snapshot.timeline).deletes
        there = {each.group: each for each in slices}
        matches_of: dict[FileGroupId, list[Matches]] = {}
        again = set()
        for each in hints:
            if each.doubtful or (may_lack and each.absent) or any(group not in there for group, _ in each.by_group):
                again.add(each.number)
            for group, matches in each.by_group:
                if group in there:
                    matches_of.setdefault(group, []).append(matches)
        results = [
            LookupResult(there[group].base_or_none_such, tuple(rows), HOW, 0) for group, rows in matches_of.items()
        ]
        if again:
            _say_once(storage.uri, may_lack=may_lack)
            results += in_files([piece for piece in pieces if piece.number in again], slices)
        return results

    @contextmanager
    def kept(self, written: Written) -> Iterator[None]:
        context, batch, located, plan, results, how = written
        lookups = located.lookups if isinstance(located, FoundKeys) else ()
        renews = any(result.how != HOW for result in lookups)
        moved_from = len(batch.chunks)
        puts, removals = [], []
        for task in plan.tasks:
            result = results.get(task.number)
            if result is None:
                continue
            put = PutTask(task, moved_from, renews, self.removes)
            if task.inserts is not None or any(renews or m.number >= moved_from for m in task.updates):
                puts.append(put)
            if self.removes and result.stat.num_deletes:
                removals.append(put)
        if not (puts or removals):
            yield
            return
        storage = context.storage
        note_changes(storage, how.instant, deletes=bool(removals))
        label = f"{batch.operation.value.lower()} {context.config.name}: update the index"
        for run, tasks in ((run_removals, removals), (run_puts, puts)):  # a row that moves is put last
            if tasks:
                batch.engine.run(partial(run, storage, self.index, how), tasks, label=label)
        yield
        settle_changes(storage, how.instant)


_warned: set[str] = set()
"""Tables of which it was said already that their index may lack entries."""


def _say_once(uri: str, *, may_lack: bool) -> None:
    if not may_lack:
        log.info("some entries in the index of table %s do not count, so their keys were looked up in the files", uri)
    elif uri not in _warned:
        _warned.add(uri)
        log.warning(
            "the index of table %s may lack entries, so writes look up new keys in the files as well, until you rebuild it: %s",
            *(uri, hoodie_command("index", "rebuild", uri)),
        )


class ByHBase(ByOutsideIndex):
    @staticmethod
    def moves(index: IndexOptions) -> bool:
        return index.hbase.moves_rows

    @staticmethod
    def index_of(config: TableConfig, options: IndexOptions) -> KeyIndex:
        return hbase_index(config, options)


class ByOwnIndex(ByOutsideIndex):
    @staticmethod
    def moves(index: IndexOptions) -> bool:
        return index.own_moves_rows

    @staticmethod
    def index_of(config: TableConfig, options: IndexOptions) -> KeyIndex:
        return index_named(options.own_class or config.index_name, stored=options.own_class is None)


def hbase_index(config: TableConfig, options: IndexOptions) -> HBaseIndex:
    """The index in HBase that the table or the options name.

    Raises:
        OptionError: they do not say which table in HBase, or where its Thrift server is.
    """
    hbase = options.hbase
    table = hbase.table or config.index_name
    address = hbase.thrift or (hbase.quorum or "").split(",")[0].partition(":")[0].strip()
    if not table or not address:
        missing = (
            "hoodie.index.hbase.zkquorum or hoodie.python.index.hbase.thrift" if table else "hoodie.index.hbase.table"
        )
        raise OptionError(
            f"table {config.name!r} has its keys in HBase, and the options do not say where: set {missing}"
        )
    host, _, port = address.rpartition(":") if hbase.thrift and ":" in address else (address, "", str(PORT))
    if not (port.isascii() and port.isdigit()):
        raise OptionError(f"option hoodie.python.index.hbase.thrift={hbase.thrift!r} is not host:port")
    return HBaseIndex(host, int(port), table, hbase.get_batch, hbase.put_batch, hbase.most_a_second)
