"""A file far away, read by ranges: its end first, what is known to be wanted together, and nothing twice."""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa

TAIL_BYTES = 512 * 1024
"""What is read when a file is opened: for Parquet the footer with its bloom filter; of a small file, all."""
_WINDOW_BYTES = 32 * 1024 * 1024
"""How much of what is expected is fetched together."""
_AHEAD_BYTES = 1024 * 1024
"""At least so much is read where nothing is expected."""


class Span(NamedTuple):
    """Bytes of a file, from `start` to before `end`."""

    start: int
    end: int


Fetch = Callable[[Sequence[Span]], Sequence[bytes]]


class RangedFile(io.RawIOBase):
    """What `pa.PythonFile` reads through. Arrow calls it from one thread at a time."""

    def __init__(self, fetch: Fetch, size: int, tail: bytes) -> None:
        super().__init__()
        self._fetch = fetch
        self._size = size
        self._tail = Span(size - len(tail), size)
        self._at = 0
        self._held: dict[Span, bytes] = {self._tail: tail}
        self._expected: list[Span] = []

    def expect(self, spans: Sequence[tuple[int, int]]) -> None:
        """Say what will be read, each span in one go: the first read of one fetches those after it, too, up to 32 MB."""
        self._expected = sorted(
            Span(start, min(end, self._tail.start)) for start, end in spans if start < self._tail.start
        )

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        wanted = Span(self._at, self._size if size is None or size < 0 else min(self._at + size, self._size))
        if wanted.end <= wanted.start:
            return b""
        self._at = wanted.end
        return self._cut(wanted)

    def _cut(self, wanted: Span) -> bytes:
        for held, data in self._held.items():
            if held.start <= wanted.start and wanted.end <= held.end:
                if held == wanted and held != self._tail:
                    del self._held[held]  # a column chunk is read once
                return data[wanted.start - held.start : wanted.end - held.start]
        if wanted.end > self._tail.start > wanted.start:
            return self._cut(Span(wanted.start, self._tail.start)) + self._cut(Span(self._tail.start, wanted.end))
        spans = self._with(wanted)
        self._held.update(zip(spans, self._fetch(spans), strict=True))
        return self._cut(wanted)

    def _with(self, wanted: Span) -> list[Span]:
        """The spans to fetch now: the expected one that holds what is wanted, and its followers."""
        number = bisect_right(self._expected, Span(wanted.start, self._size)) - 1
        if number < 0 or self._expected[number].end < wanted.end:
            return [Span(wanted.start, max(wanted.end, min(wanted.start + _AHEAD_BYTES, self._tail.start)))]
        spans: list[Span] = []
        bytes_ = 0
        for span in self._expected[number:]:
            bytes_ += span.end - span.start
            if spans and bytes_ > _WINDOW_BYTES:
                break
            spans.append(span)
        del self._expected[number : number + len(spans)]
        return spans


class RangedInput(pa.PythonFile):
    """An Arrow input that can be told what will be read (`expect`)."""

    def __init__(self, file: RangedFile, mode: str = "r") -> None:
        self._file = file  # Arrow has taken the arguments before

    def expect(self, spans: Sequence[tuple[int, int]]) -> None:
        """As `RangedFile.expect`."""
        self._file.expect(spans)
