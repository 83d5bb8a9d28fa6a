"""Memory to data files, and data files to better ones: what the writer of a bucket does beside taking rows.

Each step writes new files, and then makes the next state of the bucket (`manifest`). A process that dies in between leaves files
that no state names; the next writer removes them. Files that a state does not name any more stay for a while, for readers.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from threading import RLock
from types import TracebackType

from hoodie.errors import StoreFencedError
from hoodie.kv.data_files import DataFormat, DataWriter
from hoodie.kv.lookup import Files
from hoodie.kv.manifest import DataFile, Manifest, publish
from hoodie.kv.names import data_file, meta_file, numbers
from hoodie.kv.rows import SortedRows, sorted_rows
from hoodie.kv.runs import Merge, cuts, merge_all, plan_merge, run_for
from hoodie.kv.settings import StoreOptions
from hoodie.kv.wal import drop_segments
from hoodie.storage.base import Storage
from hoodie.storage.cache import Cache


class FilesWriter:
    """Takes rows behind one another; `files` has the files when its block has ended."""

    def __init__(
        self,
        storage: Storage,
        data_format: DataFormat,
        new_name: Callable[[], str],
        *,
        run: int,
        made_s: float,
        most_bytes: int,
        compression: str,
    ) -> None:
        self.files: list[DataFile] = []
        self._storage = storage
        self._format = data_format
        self._new_name = new_name
        self._run = run
        self._made_s = made_s
        self._most_bytes = most_bytes
        self._compression = compression
        self._stack = ExitStack()
        self._writer: DataWriter | None = None

    def add(self, part: SortedRows) -> None:
        for rows in _pieces(part, self._most_bytes):
            if self._writer is not None and self._writer.size_bytes + rows.size_bytes > self._most_bytes:
                self._end()
            if self._writer is None:
                self._name = self._new_name()
                self._writer = self._stack.enter_context(
                    self._format.create(self._storage, data_file(self._name), self._compression)
                )
                self._first, self._entries, self._has_deletes = rows.keys[0].as_py(), 0, False
            self._writer.add(rows)
            self._last = rows.keys[-1].as_py()
            self._entries += len(rows.keys)
            self._has_deletes |= rows.values.null_count > 0

    def cut(self) -> None:
        """Go on in another file."""
        self._end()

    def __enter__(self) -> FilesWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._end()
        else:
            self._stack.__exit__(kind, error, trace)

    def _end(self) -> None:
        if self._writer is None:
            return
        self._stack.close()
        self.files.append(
            DataFile(
                self._name,
                self._run,
                self._first,
                self._last,
                self._entries,
                self._writer.size_bytes,
                self._made_s,
                self._has_deletes,
            )
        )
        self._writer = None


def _pieces(rows: SortedRows, most_bytes: int) -> Iterator[SortedRows]:
    """The rows in parts that are small beside a file."""
    n = len(rows.keys)
    if not n:
        return
    step = max(1, min(n, n * (most_bytes // 8) // max(1, rows.size_bytes)))
    for start in range(0, n, step):
        yield rows.slice(start, min(n, start + step))


log = logging.getLogger("hoodie")

_STATES_KEPT = 4


class Flusher:
    """Used by the writer's thread and its background thread, one at a time but for `files`."""

    def __init__(
        self,
        storage: Storage,
        what: str,
        data_format: DataFormat,
        options: StoreOptions,
        cache: Cache,
        manifest: Manifest,
    ) -> None:
        self._storage = storage
        self._what = what
        self._format = data_format
        self._options = options
        self._cache = cache
        self._lock = RLock()
        self.files = Files(storage, manifest, data_format, cache)
        self.written_bytes = 0
        """By flushes and merges."""
        self._number = 0
        self._remove_unnamed()

    @property
    def manifest(self) -> Manifest:
        return self.files.manifest

    def flush(self, rows: dict[bytes, bytes | None], *, window: int, wal_from: int) -> None:
        """Write the rows to data files; from then on the log counts from that segment."""
        with self._lock:
            manifest = self.manifest
            parts = list(sorted_rows(rows))
            first, last = parts[0].keys[0].as_py(), parts[-1].keys[-1].as_py()
            files = self._written(parts, run=run_for(manifest.files, first, last), made_s=self._storage.now_s())
            self._go_on(replace(manifest, files=(*manifest.files, *files), window=window, wal_from=wal_from))
            drop_segments(self._storage, wal_from)

    def merge_if_due(self) -> None:
        with self._lock:
            while (merge := plan_merge(self.manifest.files)) is not None:
                self._merge(merge)

    def merge_all(self) -> None:
        with self._lock:
            merge = merge_all(self.manifest.files)
            if merge is not None:
                self._merge(merge)

    def begin_with(self, files: Sequence[DataFile], *, window: int) -> None:
        """The first state of a bucket that is filled with rows of others."""
        with self._lock:
            self._go_on(replace(self.manifest, files=tuple(files), window=window))

    def purge_range(self, start: bytes | None, stop: bytes | None) -> int:
        def touched(file: DataFile) -> bool:
            return (start is None or file.last >= start) and (stop is None or file.first < stop)

        def remaining_rows(file: DataFile) -> Iterator[SortedRows]:
            reader = self.files.open(file)
            if start is not None:
                yield from reader.scan(None, start)
            if stop is not None:
                yield from reader.scan(stop, None)

        return self._purge(touched, remaining_rows)

    def purge_older(self, than_s: float) -> int:
        before_s = self._storage.now_s() - than_s
        return self._purge(lambda file: file.made_s < before_s, lambda file: iter(()))

    def _purge(
        self, touched: Callable[[DataFile], bool], remaining_rows: Callable[[DataFile], Iterator[SortedRows]]
    ) -> int:
        with self._lock:
            manifest = self.manifest
            old = [file for file in manifest.files if touched(file)]
            if not old:
                return 0
            new_files: list[DataFile] = []
            for file in old:
                new_files += self._written(remaining_rows(file), run=file.run, made_s=file.made_s)
            self._replace(old, new_files)
            return sum(file.size_bytes for file in old) - sum(file.size_bytes for file in new_files)

    # -- how

    def _merge(self, merge: Merge) -> None:
        beside = sorted(file.first for file in merge.moved)
        made_s = max((file.made_s for file in merge.files), default=0.0)
        with self.new_files(run=merge.run, made_s=made_s) as writer:
            last = b""
            for start, stop in cuts(merge.files):
                for rows in self.files.merge(merge.files, start, stop, drop_deletes=merge.drops_deletes):
                    if bisect_left(beside, last) < bisect_left(beside, rows.keys[0].as_py()):
                        writer.cut()  # a file of the run lies in between, and no two may overlap
                    writer.add(rows)
                    last = rows.keys[-1].as_py()
        new_files = self._counted(writer)
        moved = {file.name for file in merge.moved}
        manifest = self.manifest
        old = [*merge.files, *(file for file in manifest.files if file.name in moved)]
        self._replace(old, [*new_files, *merge.moved])

    def _replace(self, old: Sequence[DataFile], new: Sequence[DataFile]) -> None:
        manifest = self.manifest
        names, stays = {file.name for file in old}, {file.name for file in new}
        files = (*(file for file in manifest.files if file.name not in names), *new)
        now_s = self._storage.now_s()
        outgoing = tuple((name, now_s) for name in sorted(names - stays))
        self._go_on(replace(manifest, files=files, old_files=(*manifest.old_files, *outgoing)))

    def _written(self, parts: Iterable[SortedRows], *, run: int, made_s: float) -> list[DataFile]:
        with self.new_files(run=run, made_s=made_s) as writer:
            for part in parts:
                writer.add(part)
        return self._counted(writer)

    def _counted(self, writer: FilesWriter) -> list[DataFile]:
        self.written_bytes += sum(file.size_bytes for file in writer.files)
        return writer.files

    def note_log(self, synced: Mapping[int, int]) -> None:
        """Say in the next state how much of the log is synced, when its writer ends: else a cut one looks like a torn one."""
        with self._lock:
            manifest = self.manifest
            sizes = {n: size for n, size in (*manifest.log, *synced.items()) if n >= manifest.wal_from}
            if sizes != dict(manifest.log):
                self._go_on(replace(manifest, log=tuple(sorted(sizes.items()))))

    def new_files(self, *, run: int, made_s: float) -> FilesWriter:
        """Files that no state names yet."""
        return FilesWriter(
            self._storage,
            self._format,
            self._new_name,
            run=run,
            made_s=made_s,
            most_bytes=self._options.max_file_size,
            compression=self._options.compression,
        )

    def _new_name(self) -> str:
        """With the epoch: a writer that was paused, and flushes after another took over, must not meet that one's files."""
        self._number += 1
        return f"{self.manifest.epoch:08d}-{self._number:08d}{self._format.suffix}"

    def _go_on(self, manifest: Manifest) -> None:
        """Publish the manifest as the next state, and delete files that no reader has needed for a while."""
        now_s = self._storage.now_s()
        doomed = [name for name, since_s in manifest.old_files if now_s - since_s >= self._options.keep_replaced_s]
        manifest = replace(
            manifest,
            number=manifest.number + 1,
            old_files=tuple(each for each in manifest.old_files if each[0] not in doomed),
        )
        try:
            publish(self._storage, manifest)
        except FileExistsError as exc:
            raise StoreFencedError(
                f"another writer has taken {self._what} over: the files that this one flushed do not count, but its log does"
            ) from exc
        self.files = Files(self._storage, manifest, self._format, self._cache)
        try:
            for name in doomed:
                self._storage.delete(data_file(name))
            for number in numbers(self._storage.names("meta")):
                if number <= manifest.number - _STATES_KEPT:
                    self._storage.delete(meta_file(number))
        except OSError as exc:
            log.warning("files of %s that are not needed any more stay until the next flush: %s", self._what, exc)

    def _remove_unnamed(self) -> None:
        """Delete the files of a dead writer that no manifest has."""
        names = {file.name for file in self.manifest.files} | {name for name, _ in self.manifest.old_files}
        try:
            for name in self._storage.names("data"):
                if name not in names:
                    self._storage.delete(data_file(name))
            drop_segments(self._storage, self.manifest.wal_from)
        except OSError as exc:
            log.warning("files of a dead writer in %s stay until the next flush: %s", self._what, exc)
