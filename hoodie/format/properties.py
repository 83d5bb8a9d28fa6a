r"""Java properties text: `hoodie.properties` and the partition metadata files.

The text of a file is its bytes read as ISO-8859-1, as Java does; everything else stands in it as `\uXXXX`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from hoodie.errors import CorruptFileError

_BLANKS = " \t\f"
_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_ESCAPED = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)?", re.DOTALL)
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_TO_ESCAPE = re.compile(r"[^ -~]|[\\=:#!]")


def parse_properties(text: str, *, path: str = "properties text") -> dict[str, str]:
    r"""Keys and values in the order of the text; of a key that stands twice the last value counts.

    Raises:
        CorruptFileError: a `\u` without four hexadecimal digits; the message names `path`.
    """
    result: dict[str, str] = {}
    for line in _logical_lines(text):
        end = _end_of_key(line)
        rest = line[end:].lstrip(_BLANKS)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANKS)
        result[_unescape(line[:end], path)] = _unescape(rest, path)
    return result


def parse_properties_file(data: bytes, *, path: str) -> dict[str, str]:
    """Keys and values of a whole file, as `parse_properties`.

    Java ends such a file with a line end, and so do we. One that ends within a line was cut: its last value would be
    another one, and what stood behind it would be missing without a word.

    Raises:
        CorruptFileError: as `parse_properties`, or the file is cut off.
    """
    if data and not data.endswith((b"\n", b"\r")):
        raise CorruptFileError(
            f"{path} ends within a line: it is cut off. Restore it from a copy; if it was edited by hand, end its last line"
        )
    return dict(_parsed(data, path))


@lru_cache(maxsize=16)
def _parsed(data: bytes, path: str) -> dict[str, str]:
    """A write reads the table's properties several times, to be sure that nobody changed them."""
    return parse_properties(data.decode("latin-1"), path=path)


def format_properties(values: Mapping[str, str], *, comment: Sequence[str]) -> str:
    """The text for these values, in their order, after one `#` line for each comment. It is plain ASCII."""
    lines = [f"#{_escape(part, plain=True)}" for text in comment for part in _LINE_ENDS.split(text)]
    for key, value in values.items():
        # Any blank would end a key; of a value only the first would be lost.
        lead = "\\" if value.startswith(" ") else ""
        lines.append(_escape(key).replace(" ", "\\ ") + "=" + lead + _escape(value))
    return "".join(f"{line}\n" for line in lines)


def table_checksum(table_name: str, database_name: str = "") -> int:
    """The value of `hoodie.table.checksum`, which covers no other property. Hudi refuses a table whose checksum is wrong."""
    return zlib.crc32(f"{database_name}.{table_name}".encode())


def _logical_lines(text: str) -> Iterator[str]:
    """Lines that hold something, without leading blanks; a line that ends in an odd number of backslashes goes on."""
    lines = iter(_LINE_ENDS.split(text))
    joined = ""
    for line in lines:
        joined += line.lstrip(_BLANKS)
        # As long as nothing came before, a line that goes on is as good as a new one: it may be blank or a comment.
        if not joined or joined[0] in "#!":
            joined = ""
        elif (len(joined) - len(joined.rstrip("\\"))) % 2:
            joined = joined[:-1]
        else:
            yield joined
            joined = ""
    if joined:
        yield joined


def _end_of_key(line: str) -> int:
    at = 0
    while at < len(line) and line[at] not in "=: \t\f":
        at += 2 if line[at] == "\\" else 1
    return min(at, len(line))


def _unescape(text: str, path: str) -> str:
    if "\\" not in text:
        return text

    def plain(match: re.Match[str]) -> str:
        escaped = match[1] or ""
        if escaped[:1] != "u":
            return _CONTROLS.get(escaped, escaped)
        if len(escaped) != 5:
            raise CorruptFileError(f"{path}: {text!r} has a \\u without four hexadecimal digits: correct the line")
        return chr(int(escaped[1:], 16))

    # Java strings are UTF-16: a supplementary character is written as two escapes.
    units = _ESCAPED.sub(plain, text).encode("utf-16-le", "surrogatepass")
    try:
        return units.decode("utf-16-le")
    except UnicodeDecodeError as exc:
        raise CorruptFileError(f"{path}: {text!r} has half a character (a lone surrogate): correct the line") from exc


def _escape(text: str, *, plain: bool = False) -> str:
    """`plain`: only what is not ASCII, for comments."""

    def escaped(match: re.Match[str]) -> str:
        char = match[0]
        if " " <= char <= "~":
            return char if plain else "\\" + char
        for letter, control in _CONTROLS.items():
            if char == control and not plain:
                return "\\" + letter
        units = char.encode("utf-16-be")
        return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))

    return _TO_ESCAPE.sub(escaped, text)
