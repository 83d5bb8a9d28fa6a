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
        self._data: dict[Span, bytes] = {self._tail: tail}
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
        part = Span(self._at, self._size if size is None or size < 0 else min(self._at + size, self._size))
        if part.end <= part.start:
            return b""
        self._at = part.end
        return self._cut(part)

    def _cut(self, part: Span) -> bytes:
        for span, data in self._data.items():
            if span.start <= part.start and part.end <= span.end:
                if span == part and span != self._tail:
                    del self._data[span]  # a column chunk is read once
                return data[part.start - span.start : part.end - span.start]
        if part.end > self._tail.start > part.start:
            return self._cut(Span(part.start, self._tail.start)) + self._cut(Span(self._tail.start, part.end))
        spans = self._with(part)
        self._data.update(zip(spans, self._fetch(spans), strict=True))
        return self._cut(part)

    def _with(self, part: Span) -> list[Span]:
        """The spans to fetch now: the expected one that holds the part, and its followers."""
        number = bisect_right(self._expected, Span(part.start, self._size)) - 1
        if number < 0 or self._expected[number].end < part.end:
            return [Span(part.start, max(part.end, min(part.start + _AHEAD_BYTES, self._tail.start)))]
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
