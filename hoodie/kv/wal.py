"""The write-ahead log of a bucket: numbered segments, each made by one writer where there was none of that number.

Where a storage can append (disks, HDFS), a segment takes many windows and is rolled when it is large. Elsewhere each window is a
segment, one object. Whoever takes the bucket over replays all segments, and then takes the next number with a segment of its own:
from then on the writer before it finds its next number taken. On HDFS it also finds the end of its open segment sealed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from hoodie.errors import CorruptFileError
from hoodie.kv.names import numbers, wal_file
from hoodie.kv.wal_frames import HEADER, MAGIC, Rows, commits_beyond, end_frame, epoch_of, frames, header, rows_frame
from hoodie.storage.base import AppendingStorage, LogOutput, Storage


class Window(NamedTuple):
    """A committed window, as it is replayed."""

    id: int
    rows: Sequence[Rows]
    segment: int


class Wal:
    """The log as its writer has it. Not thread-safe."""

    def __init__(self, storage: Storage, epoch: int, number: int, *, most_bytes: int, durable: bool) -> None:
        """Takes the segment `number`.

        Raises:
            FileExistsError: there is one: another writer was faster.
        """
        self._storage = storage
        self._epoch = epoch
        self._most_bytes = most_bytes
        self._durable = durable
        self._unsent: list[bytes | memoryview] = []
        self._is_open = False
        """A window has rows in the segment, and no end."""
        self._output: LogOutput | None = None
        self.number = number
        """Of the segment that takes the next window."""
        self.size_bytes = 0
        """Of all that was written."""
        self.synced: dict[int, int] = {}
        """Segments with windows that are committed, and so many bytes of each that a power cut leaves."""
        if _appends(storage):
            self._begin()
        else:
            storage.create_new(wal_file(number), header(epoch))
            self.number += 1

    def add(self, rows: Rows) -> None:
        self._is_open = True
        self._send(rows_frame(rows))

    def end(self, window: int | None) -> None:
        """Commit what was added since the last end as a window, or drop it.

        Raises:
            FileExistsError: on a storage that cannot append: another writer has taken the bucket over.
        """
        self._send(end_frame(window))
        self._is_open = False
        if self._output is not None:
            if window is not None:
                self._output.sync(durable=self._durable)
                if self._durable:
                    self.synced[self.number] = self._written
            if self._written >= self._most_bytes:
                self.roll()
            return
        unsent, self._unsent = self._unsent, []
        if window is not None:
            content = b"".join([header(self._epoch), *unsent])
            self._storage.create_new(wal_file(self.number), content, durable=self._durable)
            if self._durable:
                self.synced[self.number] = len(content)
            self.number += 1

    def roll(self) -> int:
        """Go on in another segment, unless a window is open, which has to stay in one; gives the number of the one that is written."""
        if self._output is not None and self._written > HEADER.size and not self._is_open:
            self._output.close()
            self.number += 1
            self._begin()
        return self.number

    def forget(self, before: int) -> None:
        """Segments below that number are not needed any more."""
        self.synced = {number: size for number, size in self.synced.items() if number >= before}

    def close(self) -> None:
        if self._output is not None:
            self._output.close()

    def _begin(self) -> None:
        self._output = cast(AppendingStorage, self._storage).open_log(wal_file(self.number))
        self._output.write([header(self._epoch)])
        self._output.sync(durable=self._durable)
        self._written = HEADER.size

    def _send(self, parts: list[bytes | memoryview]) -> None:
        size = sum(map(len, parts))
        self.size_bytes += size
        if self._output is None:
            self._unsent += parts
        else:
            self._output.write(parts)
            self._written += size


class Replay:
    """Committed windows of the segments from `start` on, in their order; `last` is the last of these segments.

    `ends`: whoever still writes to one of them can write no more to it. `stated`: bytes that segments must have at least.
    """

    def __init__(
        self, storage: Storage, start: int, *, ends: bool = False, sizes: Sequence[tuple[int, int]] = ()
    ) -> None:
        """Raises: CorruptFileError: a segment is missing."""
        self._storage = storage
        self._ends = ends
        self._sizes = {number: size for number, size in sizes if number >= start}
        self._numbers = [number for number in numbers(storage.names("wal")) if number >= start]
        self.last = self._numbers[-1] if self._numbers else start - 1
        there = frozenset(self._numbers)
        for expected in range(start, 1 + max(self.last, *self._sizes, start - 1)):
            if expected not in there:
                raise CorruptFileError(
                    f"{_full(storage, expected)} is missing, so windows of the bucket are lost: restore the file from a copy"
                )

    def __iter__(self) -> Iterator[Window]:
        ended: _Segment | None = None
        for number in self._numbers:
            if self._ends and _appends(self._storage):
                cast(AppendingStorage, self._storage).end_log(wal_file(number))
            segment = _Segment(self._storage, number)
            if ended is not None:
                ended.check(was_rolled=segment.epoch == ended.epoch)
            yield from segment.windows()
            segment.check_size(self._sizes.get(number, 0))
            ended = segment
        if ended is not None:
            ended.check(was_rolled=False)


def drop_segments(storage: Storage, before: int) -> None:
    for number in numbers(storage.names("wal")):
        if number < before:
            storage.delete(wal_file(number))


class _Segment:
    def __init__(self, storage: Storage, number: int) -> None:
        self._storage = storage
        self._number = number
        self._content = memoryview(storage.read(wal_file(number)))
        self._end = HEADER.size
        self.epoch: int | None = None
        """None: its writer died when it made it."""
        if len(self._content) >= HEADER.size:
            if bytes(self._content[: len(MAGIC)]) != MAGIC:
                raise CorruptFileError(
                    f"{_full(storage, number)} does not begin as a segment of a write-ahead log: restore the file from a copy"
                )
            self.epoch = epoch_of(self._content)

    def windows(self) -> Iterator[Window]:
        rows: list[Rows] = []
        for end, frame in frames(self._content):
            self._end = end
            if isinstance(frame, Rows):
                rows.append(frame)
            else:
                if frame.window is not None:
                    yield Window(frame.window, rows, self._number)
                rows = []

    def check_size(self, stated_bytes: int) -> None:
        """Whether all is there that a writer that was closed says it has synced."""
        if self._end < stated_bytes:
            raise CorruptFileError(
                f"{_full(self._storage, self._number)} is whole up to byte {self._end:,}, and its writer had synced {stated_bytes:,}: "
                "windows of the bucket are lost. Restore the file from a newer copy, or go on without them: "
                "store.writer(bucket, accept_loss=True)"
            )

    def check(self, *, was_rolled: bool) -> None:
        """Whether what was cut, behind all its windows, is what a writer that died leaves.

        Args:
            was_rolled: its writer went on in the next segment, so that nothing of this one may be torn.
        """
        rest = self._content[self._end :]
        if not len(rest) or self.epoch is None:
            return
        if was_rolled or not _appends(self._storage) or commits_beyond(rest):
            raise CorruptFileError(
                f"{_full(self._storage, self._number)} is damaged at byte {self._end:,}, and windows of the bucket are lost: restore "
                "the file from a copy, or cut it there to go on without them"
            )


def _appends(storage: Storage) -> bool:
    """Asked of the storage itself, where it is wrapped."""
    return isinstance(storage.lock_root, AppendingStorage)


def _full(storage: Storage, number: int) -> str:
    return f"{storage.uri.rstrip('/')}/{wal_file(number)}"
