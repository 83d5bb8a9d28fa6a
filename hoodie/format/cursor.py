"""Big-endian reads over a buffer, each checked against its end, and the writes that mirror them."""

from __future__ import annotations

import struct

from hoodie.errors import CorruptBlockError

_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")


def i32(value: int) -> bytes:
    """Four bytes, big-endian, signed."""
    return _I32.pack(value)


def i64(value: int) -> bytes:
    """Eight bytes, big-endian, signed."""
    return _I64.pack(value)


class Cursor:
    """A read position in `buffer[offset:end]`; every read moves it forward.

    All reads raise `CorruptBlockError` when the range ends before the value does; its `offset` is where the
    value begins, counted from the start of the buffer.
    """

    __slots__ = ("_view", "end", "offset")

    def __init__(self, buffer: memoryview | bytes, offset: int = 0, end: int | None = None) -> None:
        self._view = memoryview(buffer).cast("B")
        self.offset = offset
        self.end = len(self._view) if end is None else end

    @property
    def remaining(self) -> int:
        return self.end - self.offset

    def i32(self, what: str) -> int:
        self._need(4, what)
        (value,) = _I32.unpack_from(self._view, self.offset)
        self.offset += 4
        return int(value)

    def i64(self, what: str) -> int:
        self._need(8, what)
        (value,) = _I64.unpack_from(self._view, self.offset)
        self.offset += 8
        return int(value)

    def take(self, size_bytes: int, what: str) -> memoryview:
        """The next bytes, not copied."""
        self._need(size_bytes, what)
        view = self._view[self.offset : self.offset + size_bytes]
        self.offset += size_bytes
        return view

    def text(self, size_bytes: int, what: str) -> str:
        """The next bytes as UTF-8."""
        at = self.offset
        try:
            return str(self.take(size_bytes, what), "utf-8")
        except UnicodeDecodeError as exc:
            raise CorruptBlockError(f"{what} at offset {at} is not UTF-8", offset=at) from exc

    def _need(self, size_bytes: int, what: str) -> None:
        if not 0 <= size_bytes <= self.remaining:
            raise CorruptBlockError(
                f"{what} at offset {self.offset} takes {size_bytes} bytes, {self.remaining} are left",
                offset=self.offset,
            )
