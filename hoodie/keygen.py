"""Record keys and partition paths of a batch: the strings that Apache Hudi makes of the same values.

Witnesses: the observed strings in tests/test_keygen.py, written by Apache Hudi 1.2.0's upsert.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import KeyFieldError, UnsupportedTableError
from hoodie.options.table import TableConfig
from hoodie.options.values import SUPPORTED_KEY_GENERATORS, KeyGeneratorType, did_you_mean

NULL_KEY = "__null__"
EMPTY_KEY = "__empty__"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_Array: TypeAlias = Any
"""A pyarrow Array. The stubs of its compute functions tell kinds of arrays apart, which cannot be said here."""
pc: Any = pyarrow.compute
_BATCH_ROWS = 256 * 1024
"""Keys are made in pieces that stay in the cache and far below the 2 GiB of one string array."""
_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_SHOWN_COLUMNS = 20
_SHOWN_CHARACTERS = 100
_LONGEST_FOLDER = 255
_HEX: Any = np.frombuffer("".join(f"{byte:02x}" for byte in range(256)).encode(), dtype=np.uint16)
_KEY_OPTION = "hoodie.datasource.write.recordkey.field"
_PARTITION_OPTION = "hoodie.datasource.write.partitionpath.field"
_ENCODE_OPTION = "hoodie.datasource.write.partitionpath.urlencode"


@dataclass(frozen=True)
class KeyGenerator:
    """Makes the record key and the partition path of every row of a table of columns."""

    kind: KeyGeneratorType
    record_key_fields: tuple[str, ...]
    partition_fields: tuple[str, ...] = ()
    hive_style: bool = False
    url_encode: bool = False
    name_single_key: bool = True
    """COMPLEX with one key column: `column:value` (true) or just `value`, as Hudi 0.14.1 to 1.0.2 wrote it."""

    def keys(self, table: pa.Table) -> pa.ChunkedArray[Any]:
        """The record keys, strings without nulls.

        Raises:
            KeyFieldError: a column is missing or of a type that makes no key, or a row has no key.
        """
        pieces, empty = [], []
        for columns in _batches(table, self.record_key_fields, role="record key"):
            texts = [
                _text(values, field=field, role="record key") for field, values in zip(self.record_key_fields, columns)
            ]
            blank = pc.fill_null(pc.equal(texts[0], ""), True)
            for text in texts[1:]:
                blank = pc.and_(blank, pc.fill_null(pc.equal(text, ""), True))
            empty.append(blank)
            pieces.append(self._join_key(texts))
        _refuse_rows_without_key(pa.chunked_array(empty, pa.bool_()), self.record_key_fields)
        return pa.chunked_array(pieces, pa.string())

    def _join_key(self, texts: Sequence[_Array]) -> _Array:
        named = len(texts) > 1 or (self.kind is KeyGeneratorType.COMPLEX and self.name_single_key)
        if not named:
            return texts[0]
        parts = []
        for field, text in zip(self.record_key_fields, texts):
            value = pc.if_else(pc.equal(text, ""), EMPTY_KEY, text)
            parts.append(pc.binary_join_element_wise(f"{field}:", pc.fill_null(value, NULL_KEY), ""))
        return pc.binary_join_element_wise(*parts, ",") if len(parts) > 1 else parts[0]

    def partitions(self, table: pa.Table) -> pa.ChunkedArray[Any]:
        """The partition paths, strings without nulls; "" for all rows of a table that is not partitioned.

        Raises:
            KeyFieldError: a column is missing or of a type that makes no path, or a value would lead outside the table
                or to folders that Apache Hudi cannot read.
        """
        if not self.partition_fields or self.kind is KeyGeneratorType.NON_PARTITION:
            return pa.chunked_array([pa.repeat(pa.scalar("", pa.string()), table.num_rows)], pa.string())
        pieces, start = [], 0
        for columns in _batches(table, self.partition_fields, role="partition"):
            segments = [
                self._segments(_text(values, field=field, role="partition"), field, start)
                for field, values in zip(self.partition_fields, columns)
            ]
            pieces.append(pc.binary_join_element_wise(*segments, "/") if len(segments) > 1 else segments[0])
            start += len(segments[0])
        return pa.chunked_array(pieces, pa.string())

    def _segments(self, text: _Array, field: str, start: int) -> _Array:
        """The part of the path that one column gives; `start` is the number of the first row."""
        filled = pc.fill_null(pc.if_else(pc.equal(text, ""), DEFAULT_PARTITION, text), DEFAULT_PARTITION)
        encoded = filled.dictionary_encode()
        # Over distinct values: each stands for a folder, so they are few.
        segments = []
        for number, value in enumerate(encoded.dictionary.to_pylist()):
            folders = _escape(value) if self.url_encode else value
            segment = f"{field}={folders}" if self.hive_style else folders
            reason = self._unsafe(folders, segment, first=field == self.partition_fields[0])
            if reason:
                row = start + pc.index(encoded.indices, number).as_py()
                cured = not self.url_encode and _escape(value) != value
                cure = "change the value" + (f", or create the table with {_ENCODE_OPTION}=true" if cured else "")
                raise KeyFieldError(
                    f"partition column {field!r} holds {_shown(value)} in row {row} (from 0): {reason}\n  fix:     {cure}"
                )
            segments.append(segment)
        return pa.array(segments, pa.string()).take(encoded.indices)

    def _unsafe(self, folders: str, segment: str, *, first: bool) -> str | None:
        """Why a value must not become folders, None when it may; `segment` is it with the column's name in hive style."""
        parts = folders.split("/")
        if "\0" in folders:
            return "no path may hold a NUL character"
        if len(parts) > 1 and len(self.partition_fields) > 1:
            return "with several partition columns a '/' in a value makes folders that readers cannot tell apart"
        if "" in parts:
            return "its path has an empty part"
        if "." in parts or ".." in parts:
            return "its path would lead to another folder"
        if any(len(part.encode()) > _LONGEST_FOLDER for part in segment.split("/")):
            return f"no file system here has folder names of more than {_LONGEST_FOLDER} bytes"
        if first and ":" in segment.partition("/")[0]:
            # Hadoop's Path takes what stands before a colon in the first part for the scheme of a URI, and fails.
            return "a ':' before the first '/' of the path reads as the scheme of a URI"
        if first and segment.startswith(".hoodie"):
            return "folders of this name are the table's own"
        return None


def _shown(value: str) -> str:
    return repr(value) if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]!r}…"


def _escape(value: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", value)


def key_generator(config: TableConfig, *, name_single_key: bool = True) -> KeyGenerator:
    """The key generator of a table; `name_single_key` as in `KeyGenerator`, version 6 tables do not say it.

    Raises:
        UnsupportedTableError: the table's keys are made in a way that this release does not have.
    """
    if config.keygen not in SUPPORTED_KEY_GENERATORS:
        raise UnsupportedTableError(
            f"table at {config.uri} has key generator {config.keygen}, "
            f"this release has {', '.join(SUPPORTED_KEY_GENERATORS)}"
        )
    if not config.record_key_fields:
        raise UnsupportedTableError(f"table at {config.uri} has no record key columns: its keys cannot be made")
    return KeyGenerator(
        config.keygen,
        config.record_key_fields,
        config.partition_fields,
        config.hive_style,
        config.url_encode,
        name_single_key,
    )


def column(table: pa.Table, field: str, *, role: str, option: str | None = None) -> pa.ChunkedArray[Any]:
    """A column by name, nested ones by dots (`addr.zip`); null where a struct on the way is.

    `role` says in messages what the column is for, `option` by which option it is named.

    Raises:
        KeyFieldError: there is none, or more than one of that name.
    """
    names, *inner = [field] if field in table.column_names else field.split(".")
    _check_name(names, table.column_names, field=field, role=role, option=option)
    values = table.column(names)
    for name in inner:
        among = [child.name for child in values.type] if pa.types.is_struct(values.type) else []
        _check_name(name, among, field=field, role=role, option=option)
        values = pc.struct_field(values, name)
    return values


def _check_name(name: str, among: Sequence[str], *, field: str, role: str, option: str | None) -> None:
    found = list(among).count(name)
    if found == 1:
        return
    if found:
        raise KeyFieldError(f"{role} column {field!r} is ambiguous: {found} columns of the data are named {name!r}")
    columns = ", ".join(among[:_SHOWN_COLUMNS]) + (
        f" and {len(among) - _SHOWN_COLUMNS} more" if len(among) > _SHOWN_COLUMNS else ""
    )
    hint = did_you_mean(name, among)
    lines = [f"{role} column {field!r} is not in the data.", f"  columns: {columns or 'none'}"]
    if hint:
        lines[1] += f"        {hint}"
    if option:
        lines.append(f"  set by:  {option}, or remembered by the table from its creation")
    lines.append("  fix:     name a column of the data, or rename the data's column")
    raise KeyFieldError("\n".join(lines))


def _batches(table: pa.Table, fields: Sequence[str], *, role: str) -> Iterator[list[_Array]]:
    """The columns of the fields, in pieces of some rows that all of them share."""
    option = _KEY_OPTION if role == "record key" else _PARTITION_OPTION
    columns = [column(table, field, role=role, option=option) for field in fields]
    aligned = pa.table(columns, names=[str(number) for number in range(len(columns))])
    for batch in aligned.to_batches(max_chunksize=_BATCH_ROWS):
        yield batch.columns


def _refuse_rows_without_key(empty: pa.ChunkedArray[Any], fields: Sequence[str]) -> None:
    count = pc.sum(empty).as_py() or 0
    if count:
        first = pc.index(empty, True).as_py()
        what = f"column {fields[0]!r} is" if len(fields) == 1 else f"columns {', '.join(map(repr, fields))} are all"
        raise KeyFieldError(
            f"record key {what} null or empty in {count} row(s), first in row {first} (from 0).\n"
            "  fix:     give every row a key, or leave those rows out"
        )


def _text(values: _Array, *, field: str, role: str) -> _Array:
    """The values as Apache Hudi's Avro path spells them; nulls stay null. Strings of type `string`."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return _text(values.dictionary, field=field, role=role).take(values.indices)
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        return values.cast(pa.string())
    if pa.types.is_floating(kind):
        return _float_text(values.cast(pa.float32()) if pa.types.is_float16(kind) else values)
    if pa.types.is_date(kind):
        return _date_text(values)
    if pa.types.is_timestamp(kind):
        # Floor, not cut: a stored timestamp before 1970 with nanoseconds goes the same way.
        micros = pc.floor_temporal(values, unit="microsecond") if kind.unit == "ns" else values
        return micros.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return _hex_text(values)
    raise KeyFieldError(
        f"{role} column {field!r} is of type {kind}, which makes no {role}\n"
        "  fix:     use a string, number, boolean, decimal, date, timestamp or binary column"
    )


def _date_text(values: _Array) -> _Array:
    """ISO 8601; Java signs years of five digits."""
    text = values.cast(pa.date32()).cast(pa.string())
    long_year = pc.and_(pc.greater(pc.utf8_length(text), 10), pc.invert(pc.starts_with(text, "-")))
    return pc.if_else(long_year, pc.binary_join_element_wise("+", text, ""), text)


def _float_text(values: _Array) -> _Array:
    """Java's Float.toString and Double.toString.

    The digits are the fewest that read back as the same number, as Java prints them from version 19 on. Earlier ones
    print a digit too many for some floats from 1e7 and doubles from 1e16; below, Java 17 differed for none of 60,000
    random ones but does next to the smallest normal float.
    """
    size = pc.abs(values)
    common = pc.or_(pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7)), pc.equal(size, 0))
    text = values.cast(pa.string())
    whole = pc.invert(pc.match_substring(text, "."))
    text = pc.if_else(whole, pc.binary_join_element_wise(text, ".0", ""), text)
    odd = pc.fill_null(pc.invert(common), False)
    if not pc.any(odd).as_py():
        return text
    distinct = values.filter(odd).dictionary_encode()
    # Over distinct values: Arrow has no such notation, and numbers of this size are rare as keys.
    single = pa.types.is_float32(values.type)
    spelled = pa.array([_java_notation(value, single=single) for value in distinct.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(text, odd, spelled.take(distinct.indices))


def _java_notation(value: float, *, single: bool) -> str:
    """Of a number that Java writes with an exponent, or as a word."""
    number = np.float32(value) if single else np.float64(value)
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else f"{'-' if value < 0 else ''}Infinity"
    mantissa, exponent = np.format_float_scientific(number, unique=True, trim="-").split("e")
    if "." not in mantissa:
        # Java wants two digits at least and takes the nearest that there are: 4.9E-324.
        mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}E{int(exponent)}"


def _hex_text(values: _Array) -> _Array:
    """Two lower-case digits a byte."""
    wide = (
        values.cast(pa.large_binary())
        if not pa.types.is_fixed_size_binary(values.type)
        else (values.cast(pa.binary()).cast(pa.large_binary()))
    )
    _, offsets_buffer, data = wide.buffers()
    offsets = np.frombuffer(offsets_buffer, dtype=np.int64)[wide.offset : wide.offset + len(wide) + 1]
    content = np.frombuffer(data or b"", dtype=np.uint8)[offsets[0] : offsets[-1]]
    text = pa.LargeStringArray.from_buffers(
        len(wide), pa.py_buffer((offsets - offsets[0]) * 2), pa.py_buffer(_HEX[content])
    )
    return pc.if_else(wide.is_valid(), text, pa.scalar(None, pa.large_string())).cast(pa.string())
