"""Delete blocks of Apache Hudi before 0.14: an array of Java objects as Kryo 4 writes it (src `SerializationUtils`).

An object is its class, a mark, and its fields in the order of their names: of `DeleteRecord` the `HoodieKey` and the ordering
value, of that partition path and record key. A class is 0 for null, 2 + the number of a class that Kryo knows, or 1
with the number of a name; the name itself follows where it comes first. The mark is 0 for null, 1 for an object that
comes first, or 2 + the number of an object that was there before: of strings the paths are. Numbers are varints.
Block version 1 has keys alone. Witness: tests/format/test_kryo_deletes.py, blocks that Apache Hudi 0.12.2 wrote.
"""

from __future__ import annotations

import struct
from typing import Any

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.avro_wire import varint

_MODEL = "org.apache.hudi.common.model."
_RECORD, _KEY = f"{_MODEL}DeleteRecord", f"{_MODEL}HoodieKey"
_NULL, _FIRST = 0, 1
_NAMED = 1
_KNOWN = ("int", "String", "float", "boolean", "byte", "char", "short", "long", "double", "void", "Utf8")
"""By number: the classes that each Kryo knows, and Avro's text, which Apache Hudi before 0.13 adds."""
_SCALE = 15  # of decimals in delete blocks of version 3


def avro_deletes(data: bytes) -> bytes:
    """The same list as delete blocks of version 3 have it (`delete_codec`).

    Raises:
        CorruptFileError: the bytes are no such array. UnsupportedTableError: an ordering value is of another class than is read.
    """
    try:
        records = _Reader(data).records()
    except (IndexError, UnicodeDecodeError) as exc:
        raise CorruptFileError(f"a delete list of {len(data)} bytes is cut or damaged within a Java object") from exc
    return b"".join((_long(len(records)), *records, b"\x00")) if records else b"\x00"


def _long(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def _text(value: str | None) -> bytes:
    """As a union of null and string."""
    if value is None:
        return b"\x00"
    data = value.encode()
    return b"\x02" + _long(len(data)) + data


class _Reader:
    """Walks the bytes. A row loop: the records are not framed, so only the end of one says where the next begins."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self._names: list[str] = []
        self._objects: list[Any] = []

    def records(self) -> list[bytes]:
        """Each as a record of version 3."""
        name = self._class()
        if name not in (f"[L{_RECORD};", f"[L{_KEY};"):
            raise CorruptFileError(f"a delete list is a Java object of class {name}")
        self._begin()
        count = self._number() - 1
        if count > len(self._data):
            raise CorruptFileError(f"a delete list of {len(self._data)} bytes claims {count} records")
        result = [self._record() for _ in range(count)]
        if self._at != len(self._data):
            raise CorruptFileError(f"a delete list ends at byte {self._at} of {len(self._data)}")
        return result

    def _record(self) -> bytes:
        name = self._class()
        self._begin()
        if name == _KEY:
            return self._key() + b"\x04\x00"
        if name != _RECORD:
            raise CorruptFileError(f"a delete list has an object of class {name} at byte {self._at}")
        if self._class() != _KEY:
            raise CorruptFileError(f"a delete list has no record key at byte {self._at}")
        self._begin()
        return self._key() + self._ordering()

    def _key(self) -> bytes:
        path, key = self._string(), self._string()
        return _text(key) + _text(path)

    def _ordering(self) -> bytes:
        """The ordering value as the union of wrappers, one for each Java class."""
        name = self._class()
        match name:
            case None:
                return b"\x00"
            case "int" | "short":
                return b"\x04" + (self._copied() if name == "int" else _long(self._unpacked(">h")))
            case "long":
                return b"\x06" + self._copied()
            case "float":
                return b"\x08" + struct.pack("<f", self._unpacked(">f"))
            case "double":
                return b"\x0a" + struct.pack("<d", self._unpacked(">d"))
            case "boolean":
                return b"\x02" + self._take(1)
            case "String":
                return b"\x0e" + _text(self._string())[1:]
            case "Utf8":
                self._begin()
                return b"\x0e" + _text(self._take(self._number() - 1).decode())[1:]
            case "java.math.BigDecimal":
                self._begin()
                unscaled = int.from_bytes(self._take(self._number() - 1), "big", signed=True)
                return b"\x12" + _decimal(unscaled, self._signed())
        raise UnsupportedTableError(
            f"a delete block has an ordering value of the Java class {name}; compact the table with Apache Hudi before 1.0"
        )

    def _class(self) -> str | None:
        number = self._number()
        if number == _NULL:
            return None
        if number != _NAMED:
            index = number - 2
            return _KNOWN[index] if index < len(_KNOWN) else f"number {index}"
        place = self._number()
        if place == len(self._names):
            self._names.append(self._characters() or "")
        return self._names[place]

    def _begin(self) -> None:
        """An object that has to be there, and not to have been before."""
        if self._number() != _FIRST:
            raise CorruptFileError(f"a delete list has no object at byte {self._at}")
        self._objects.append(None)

    def _string(self) -> str | None:
        mark = self._number()
        if mark == _NULL:
            return None
        if mark != _FIRST:
            result = self._objects[mark - 2]
            if not isinstance(result, str):
                raise CorruptFileError(f"a delete list has no text at byte {self._at}")
            return result
        text = self._characters()
        self._objects.append(text)
        return text

    def _characters(self) -> str | None:
        """ASCII with the last byte marked, or the number of UTF-16 units + 1 and their bytes, each unit by itself."""
        start = self._at
        if self._data[start] < 0x80:
            while self._data[self._at] < 0x80:
                self._at += 1
            self._at += 1
            return self._data[start : self._at - 1].decode("ascii") + chr(self._data[self._at - 1] & 0x7F)
        byte = self._take(1)[0]
        units, shift = byte & 0x3F, 6
        more = byte & 0x40
        while more:
            byte = self._take(1)[0]
            units |= (byte & 0x7F) << shift
            more, shift = byte & 0x80, shift + 7
        if units == 0:
            return None
        start = self._at
        for _ in range(units - 1):
            byte = self._data[self._at]
            self._at += 1 if byte < 0x80 else 2 if byte < 0xE0 else 3
        text = self._data[start : self._at].decode("utf-8", "surrogatepass")
        return text.encode("utf-16", "surrogatepass").decode("utf-16")

    def _number(self) -> int:
        result = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result
            if shift > 63:
                raise CorruptFileError(f"a delete list has a number of more than 64 bits at byte {self._at}")

    def _signed(self) -> int:
        coded = self._number()
        return (coded >> 1) ^ -(coded & 1)

    def _copied(self) -> bytes:
        """A signed number, which Avro stores in the same bytes."""
        start = self._at
        self._number()
        return self._data[start : self._at]

    def _unpacked(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _take(self, size: int) -> bytes:
        result = self._data[self._at : self._at + size]
        if size < 0 or len(result) != size:
            raise IndexError
        self._at += size
        return result


def _decimal(unscaled: int, scale: int) -> bytes:
    if not 0 <= scale <= _SCALE:
        raise UnsupportedTableError(f"a delete block has a decimal of scale {scale}; up to {_SCALE} are read")
    unscaled *= 10 ** (_SCALE - scale)
    data = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    return _long(len(data)) + data
