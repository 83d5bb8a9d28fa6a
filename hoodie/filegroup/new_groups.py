"""Rows of one worker, as they come, into the base files of new file groups: each file holds one partition.

What a partition has of a batch may come in many pieces and from many workers. A worker writes a file of its own where its
share is worth one, and hands the rest back, for files that gather the shares of all workers: how many files a batch makes
follows its size, not the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.filegroup.new_base_file import NewBaseFile, base_result, new_attempt
from hoodie.filegroup.run import stamp
from hoodie.model.meta_fields import PARTITION_PATH
from hoodie.model.names import new_file_id
from hoodie.model.plans import COLUMNAR_SHRINK, WriteContext, WriteResult
from hoodie.storage.base import Storage

FILE_BYTES = 64 * 1024 * 1024
"""Arrow bytes of a partition that are written as soon as they are there: a row group of `BaseFileWriter`."""


@dataclass
class _Buffer:
    tables: list[pa.Table] = field(default_factory=list)
    size_bytes: int = 0


@dataclass
class _Open:
    file: NewBaseFile
    room: int
    """Rows that it still takes."""


class NewGroups:
    """A context manager; leaving it with an exception leaves what was written of open files, like a crash.

    Args:
        number: of the worker among those of the write, as in `WriteTask.number`.
        max_file_bytes: target size of a file, estimated as `write/plan.py` does.
    """

    def __init__(self, storage: Storage, context: WriteContext, *, number: int, max_file_bytes: int) -> None:
        self._storage = storage
        self._context = context
        self._tuning = context.tuning
        self._number = number
        self._attempt = new_attempt()
        self._max_file_bytes = max_file_bytes
        self._held: dict[str, _Buffer] = {}
        self._held_bytes = 0
        self._open: dict[str, _Open] = {}
        """By partition path, the one that was written to last at the end."""
        self._stamped = 0

    def __enter__(self) -> NewGroups:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._open.values():
            each.file.__exit__(kind, error, trace)
        self._open.clear()

    def add(self, rows: pa.Table) -> Iterator[WriteResult | pa.Table]:
        """Take prepared rows; gives the files that are finished by that, and rows that are handed back."""
        for partition_path, piece in by_partition(rows):
            group = self._held.setdefault(partition_path, _Buffer())
            group.tables.append(piece)
            group.size_bytes += piece.nbytes
            self._held_bytes += piece.nbytes
            if group.size_bytes >= FILE_BYTES:
                yield from self._write(partition_path)
        while self._held_bytes > self._tuning.held_bytes:
            largest = max(self._held, key=lambda path: self._held[path].size_bytes)
            if self._held[largest].size_bytes < self._tuning.worth_bytes:
                yield self._release(list(self._held))
            else:
                yield from self._write(largest)

    def finish(self) -> Iterator[WriteResult | pa.Table]:
        """The files that are still open, and rows of partitions that are not worth one."""
        for partition_path, group in list(self._held.items()):
            if partition_path in self._open or group.size_bytes >= self._tuning.worth_bytes:
                yield from self._write(partition_path)
                yield from self._close(partition_path)
        for partition_path in list(self._open):
            yield from self._close(partition_path)
        if self._held:
            yield self._release(list(self._held))

    def _release(self, partition_paths: list[str]) -> pa.Table:
        """Hand out the waiting rows of these partitions, those of one partition side by side."""
        groups = [self._held.pop(path) for path in partition_paths]
        self._held_bytes -= sum(group.size_bytes for group in groups)
        return pa.concat_tables([table for group in groups for table in group.tables])

    def _write(self, partition_path: str) -> Iterator[WriteResult]:
        rows = self._release([partition_path])
        row_bytes = max(1.0, rows.nbytes / max(rows.num_rows, 1) / COLUMNAR_SHRINK)
        at = 0
        while at < rows.num_rows:
            into = self._open.pop(partition_path, None)
            if into is None:
                while len(self._open) >= self._tuning.open_files:
                    yield from self._close(next(iter(self._open)))
                into = _Open(self._new_file(partition_path), max(1, int(self._max_file_bytes / row_bytes)))
            self._open[partition_path] = into
            piece = rows.slice(at, into.room)
            into.file.out.write(stamp(piece, self._context, self._number, file_name="", first=self._stamped))
            self._stamped += piece.num_rows
            into.room -= piece.num_rows
            at += piece.num_rows
            if not into.room:
                yield from self._close(partition_path)

    def _new_file(self, partition_path: str) -> NewBaseFile:
        file = NewBaseFile(
            self._storage,
            self._context,
            self._attempt,
            number=self._number,
            partition_path=partition_path,
            file_id=new_file_id(),
        )
        file.__enter__()
        return file

    def _close(self, partition_path: str) -> Iterator[WriteResult]:
        closing = self._open.pop(partition_path, None)
        if closing is not None:
            closing.file.__exit__(None, None, None)
            rows = closing.file.out.rows
            yield base_result(closing.file, "CREATE", None, num_writes=rows, num_inserts=rows)


def by_partition(rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each partition path, in the order of arrival; a small share does not keep the memory of all alive."""
    if not rows.num_rows:
        return
    encoded = pc.dictionary_encode(rows.column(PARTITION_PATH).combine_chunks())
    names = encoded.dictionary.to_pylist()
    if len(names) == 1:
        yield names[0], rows
        return
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes, minlength=len(names)))
    for name, start, end in zip(names, [0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        yield name, rows.take(pa.array(order[start:end]))
