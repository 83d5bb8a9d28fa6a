"""A batch -> the record key and the partition path of each row: the strings that Apache Hudi makes of the same values.

Witnesses: the observed strings in tests/keygen, and integration/test_keys_as_hudi.py, where Apache Hudi's upsert is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from hoodie.errors import KeyFieldError, OptionError, UnsupportedTableError
from hoodie.keygen.columns import Array, pc, pieces
from hoodie.keygen.text import text_of
from hoodie.keygen.timestamps import paths_of
from hoodie.options.keygen import KeySettings, PartitionKind, TimestampSettings, timestamp_settings
from hoodie.options.table import TableConfig
from hoodie.options.values import SUPPORTED_KEY_GENERATORS, KeyGeneratorType

NULL_KEY = "__null__"
EMPTY_KEY = "__empty__"
DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

_ESCAPED = re.compile("[\x00-\x1f\x7f\"#%'*/:=?\\\\{\\[\\]^]")
_SHOWN_CHARACTERS = 100
_LONGEST_FOLDER = 255
_ENCODE_OPTION = "hoodie.datasource.write.partitionpath.urlencode"


@dataclass(frozen=True)
class KeyGenerator:
    """Makes the record key and the partition path of every row of a table of columns."""

    kind: KeyGeneratorType
    record_key_fields: tuple[str, ...]
    """None: keys are generated, see `keys`."""
    partition_fields: tuple[str, ...] = ()
    hive_style: bool = False
    url_encode: bool = False
    name_single_key: bool = True
    """COMPLEX with one key column: `column:value` (true) or just `value`, as Hudi 0.14.1 to 1.0.2 wrote it."""
    partition_kinds: tuple[PartitionKind, ...] = ()
    """Of each partition column, for CUSTOM."""
    timestamps: TimestampSettings | None = None
    """For TIMESTAMP, and for columns of that kind."""
    timestamps_as_text: bool = False
    """Timestamps of a time zone make `2024-01-02 03:04:05.678`, in UTC, and not microseconds since 1970."""
    slash_dates: bool = False
    """SIMPLE and COMPLEX with one partition column: every `-` of its path is a `/`."""

    def keys(self, table: pa.Table) -> pa.ChunkedArray[Any]:
        """The record keys, strings without nulls.

        Without key columns they are the numbers of the rows, from 0: only part of a key, to be completed with the instant
        and a number of the batch's chunk.

        Raises:
            KeyFieldError: a column is missing or of a type that makes no key, or a row has no key.
        """
        if not self.record_key_fields:
            return pa.chunked_array([pc.cast(pa.array(np.arange(table.num_rows)), pa.string())], pa.string())
        arrays, empty = [], []
        for columns in pieces(table, self.record_key_fields, role="record key"):
            texts = [
                text_of(values, field=field, role="record key", timestamps_as_text=self.timestamps_as_text)
                for field, values in zip(self.record_key_fields, columns)
            ]
            blank = pc.fill_null(pc.equal(texts[0], ""), True)
            for text in texts[1:]:
                blank = pc.and_(blank, pc.fill_null(pc.equal(text, ""), True))
            empty.append(blank)
            arrays.append(self._join_key(texts))
        _refuse_rows_without_key(pa.chunked_array(empty, pa.bool_()), self.record_key_fields)
        return pa.chunked_array(arrays, pa.string())

    def _join_key(self, texts: Sequence[Array]) -> Array:
        has_names = len(texts) > 1 or (self.kind is KeyGeneratorType.COMPLEX and self.name_single_key)
        if not has_names:
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
        arrays, start = [], 0
        for columns in pieces(table, self.partition_fields, role="partition"):
            segments = [self._segments(values, number, start) for number, values in enumerate(columns)]
            arrays.append(pc.binary_join_element_wise(*segments, "/") if len(segments) > 1 else segments[0])
            start += len(segments[0])
        return pa.chunked_array(arrays, pa.string())

    def _segments(self, values: Array, number: int, start: int) -> Array:
        """The part of the path that one column gives; `start` is the number of the first row."""
        field = self.partition_fields[number]
        dated = self._is_dated(number)
        if dated:
            paths = paths_of(self._settings())
            filled = paths.texts(values, field=field, start=start, timestamps_as_text=self.timestamps_as_text)
        else:
            text = text_of(values, field=field, role="partition", timestamps_as_text=self.timestamps_as_text)
            filled = pc.fill_null(pc.if_else(pc.equal(text, ""), DEFAULT_PARTITION, text), DEFAULT_PARTITION)
        encoded = filled.dictionary_encode()
        # Over distinct values: each stands for a folder, so they are few.
        segments = []
        for place, value in enumerate(encoded.dictionary.to_pylist()):
            folders = escaped(value) if self.url_encode else value
            if self.slash_dates and not dated and len(self.partition_fields) == 1:
                folders = folders.replace("-", "/")
            segment = f"{field}={folders}" if self.hive_style else folders
            reason = self._unsafe(folders, segment, first=not number, dated=dated)
            if reason:
                row = start + pc.index(encoded.indices, place).as_py()
                cured = not self.url_encode and escaped(value) != value
                cure = "change the value" + (f", or create the table with {_ENCODE_OPTION}=true" if cured else "")
                made_of = f"{'makes' if dated else 'holds'} {_short(value)} in row {row} (counted from 0)"
                raise KeyFieldError(f"partition column {field!r} {made_of}: {reason}\n  fix:     {cure}")
            segments.append(segment)
        return pa.array(segments, pa.string()).take(encoded.indices)

    def _is_dated(self, number: int) -> bool:
        if self.kind is KeyGeneratorType.CUSTOM:
            return self.partition_kinds[number] is PartitionKind.TIMESTAMP
        return self.kind is KeyGeneratorType.TIMESTAMP

    def _settings(self) -> TimestampSettings:
        if self.timestamps is None:
            raise OptionError("a key generator of timestamps needs the settings of hoodie.keygen.timebased")
        return self.timestamps

    def _unsafe(self, folders: str, segment: str, *, first: bool, dated: bool) -> str | None:
        """Why a value must not become folders, None when it may; `segment` is it with the column's name in hive style."""
        parts = folders.split("/")
        if "\0" in folders:
            return "no path may hold a NUL character"
        if len(parts) > 1 and len(self.partition_fields) > 1 and not dated:
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


def _short(value: str) -> str:
    return repr(value) if len(value) <= _SHOWN_CHARACTERS else f"{value[:_SHOWN_CHARACTERS]!r}…"


def escaped(value: str) -> str:
    """A value as it stands in an encoded path."""
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", value)


def _refuse_rows_without_key(empty: pa.ChunkedArray[Any], fields: Sequence[str]) -> None:
    count = pc.sum(empty).as_py() or 0
    if count:
        first = pc.index(empty, True).as_py()
        what = f"column {fields[0]!r} is" if len(fields) == 1 else f"columns {', '.join(map(repr, fields))} are all"
        raise KeyFieldError(
            f"record key {what} null or empty in {count} row(s), first in row {first} (counted from 0).\n"
            "  fix:     give every row a key, or leave those rows out"
        )


def key_generator(
    config: TableConfig, overrides: KeySettings | None = None, *, name_single_key: bool = True
) -> KeyGenerator:
    """The key generator of a table; what its properties do not say comes from the options of a write, `asked`.

    `name_single_key` is as in `KeyGenerator`: version 6 tables do not say it.

    Raises:
        UnsupportedTableError: the table's keys are made in a way that this release does not have.
        OptionError: neither the table nor the options say how paths are made of timestamps, or a pattern is none.
    """
    if config.keygen not in SUPPORTED_KEY_GENERATORS:
        raise UnsupportedTableError(
            f"table at {config.uri} has key generator {config.keygen}, "
            f"this release has {', '.join(SUPPORTED_KEY_GENERATORS)}"
        )
    settings = config.key_settings.over(overrides or KeySettings())
    custom = config.keygen is KeyGeneratorType.CUSTOM
    if custom and len(settings.partition_kinds) != len(config.partition_fields):
        columns = ",".join(f"{name}:SIMPLE" for name in config.partition_fields)
        raise OptionError(
            f"table at {config.uri} has key generator CUSTOM, and its properties do not say the kinds of its partition columns: "
            f"set hoodie.datasource.write.partitionpath.field to {columns}, with TIMESTAMP where paths are made of times"
        )
    dated = config.keygen is KeyGeneratorType.TIMESTAMP or PartitionKind.TIMESTAMP in settings.partition_kinds
    timestamps = timestamp_settings(settings.timebased, table=config.name) if dated else None
    if timestamps is not None:
        paths_of(timestamps)
    return KeyGenerator(
        config.keygen,
        config.record_key_fields,
        config.partition_fields,
        config.hive_style,
        config.url_encode,
        name_single_key,
        settings.partition_kinds if custom else (),
        timestamps,
        bool(settings.timestamps_as_text),
        bool(settings.slash_dates) and not custom,
    )
