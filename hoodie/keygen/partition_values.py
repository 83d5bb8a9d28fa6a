"""Partition paths -> what is known of the columns that made them: the inverse of `KeyGenerator.partitions`.

A path says something only where its text stands for one value, or for few: those of texts, whole numbers, dates and
booleans that the generators SIMPLE, COMPLEX and CUSTOM wrote. A value counts only when it makes the very same text again.
Not certain, and so left alone: paths made of timestamps, floats and decimals, tables with functions of their own that merge
rows, and those with a record index, whose writers may store a row in the partition where its key was before.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

import pyarrow as pa

from hoodie.keygen.generator import DEFAULT_PARTITION, escaped
from hoodie.model.enums import MergeMode
from hoodie.model.meta_fields import PARTITION_PATH
from hoodie.model.statistics import UNKNOWN, ValueRange
from hoodie.options.keygen import PartitionKind
from hoodie.options.table import HIVE_STYLE, URL_ENCODE, TableConfig
from hoodie.options.values import KeyGeneratorType

_OLD_DEFAULT_PARTITION = "default"
"""What writers before 0.12 made of null."""
_RECORD_INDEX = "record_index"
_CODE = re.compile("%([0-9A-F]{2})", re.ASCII)
_AFTER_SLASH = "0"
"""The character after `/` in the order of texts."""
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def ranges_of_paths(
    config: TableConfig, kinds: Mapping[str, pa.DataType], paths: Sequence[str]
) -> dict[str, list[ValueRange]]:
    """Bounds of partition columns in each of the partitions; other columns of `kinds` (name -> type) are not in it."""
    result: dict[str, list[ValueRange]] = {}
    if PARTITION_PATH in kinds and config.populate_meta_fields:
        result[PARTITION_PATH] = [ValueRange(path, path, 0) for path in paths]
    columns = [name for name in config.partition_fields if name in kinds]
    if columns and _says_values(config):
        split = [_segments(path, len(config.partition_fields)) for path in paths]
        for name in columns:
            at = config.partition_fields.index(name)
            if _is_plain(config, at):
                range_of = _ranges_in(name, kinds[name], config)
                result[name] = [range_of(parts[at]) if parts else UNKNOWN for parts in split]
    return result


def judged_levels(config: TableConfig, kinds: Mapping[str, pa.DataType], schema: pa.Schema) -> int:
    """How many levels of folders say something about these columns: as deep as `ranges_below` is worth asking for."""
    levels = [at + 1 for name in kinds if (at := _level_of(config, name, schema)) is not None]
    if PARTITION_PATH in kinds and config.populate_meta_fields:
        levels.append(max(1, len(config.partition_fields)))
    return max(levels, default=0)


def ranges_below(
    config: TableConfig, kinds: Mapping[str, pa.DataType], schema: pa.Schema, folders: Sequence[str]
) -> dict[str, list[ValueRange]]:
    """The same of all partitions that are one of these folders, or lie below it. `schema` is that of the table.

    A text may go on below its folder, as `asia/india` does. It still begins as the folder says, and every text that begins with
    `asia/` or `asia-` lies before `asia0`.
    """
    result: dict[str, list[ValueRange]] = {}
    if PARTITION_PATH in kinds and config.populate_meta_fields:
        result[PARTITION_PATH] = [ValueRange(path, path + _AFTER_SLASH, 0) for path in folders]
    for name in kinds:
        at = _level_of(config, name, schema)
        if at is None:
            continue
        range_of = _ranges_in(name, kinds[name], config)
        if len(config.partition_fields) == 1:
            result[name] = [_and_below(range_of(path)) for path in folders]
        else:
            split = (path.split("/") for path in folders)
            result[name] = [_and_below(range_of(parts[at])) if len(parts) > at else UNKNOWN for parts in split]
    return result


def _and_below(limits: ValueRange) -> ValueRange:
    low, high, nulls, values = limits
    return ValueRange(low, high + _AFTER_SLASH, nulls, values) if isinstance(high, str) else limits


def _level_of(config: TableConfig, name: str, schema: pa.Schema) -> int | None:
    """The level of folders that has the column's value for certain, from 0; None where a value before it may take several."""
    if name not in config.partition_fields or not _says_values(config):
        return None
    at = config.partition_fields.index(name)
    before = config.partition_fields[:at]
    fits = all(
        each in schema.names and _is_one_folder(config, number, schema.field(each).type)
        for number, each in enumerate(before)
    )
    return at if fits and _is_plain(config, at) else None


def _is_one_folder(config: TableConfig, at: int, kind: pa.DataType) -> bool:
    """Whether each value of the column is one folder: no value has a slash, or it is encoded."""
    if not _is_plain(config, at):
        return False
    if _is_text(kind):
        return config.url_encode
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind)) or (
        pa.types.is_date32(kind) and not config.key_settings.slash_dates
    )


def _says_values(config: TableConfig) -> bool:
    return (
        config.keygen in (KeyGeneratorType.SIMPLE, KeyGeneratorType.COMPLEX, KeyGeneratorType.CUSTOM)
        and config.merge_mode is not MergeMode.CUSTOM
        and not any(each.startswith(_RECORD_INDEX) for each in config.metadata_partitions)
    )


def _is_plain(config: TableConfig, at: int) -> bool:
    if config.keygen is not KeyGeneratorType.CUSTOM:
        return True
    kinds = config.key_settings.partition_kinds
    return len(kinds) == len(config.partition_fields) and kinds[at] is PartitionKind.SIMPLE


def _segments(path: str, count: int) -> list[str] | None:
    """The part of each column; None where it cannot be told which is whose."""
    if count == 1:
        return [path] if path else None
    parts = path.split("/")
    return parts if len(parts) == count else None


def _ranges_in(name: str, kind: pa.DataType, config: TableConfig) -> Callable[[str], ValueRange]:
    """What the part of a path says of the column's values. What is the same for all paths is found out once: they may be thousands."""
    prefix, is_hive, is_text = f"{name}=", config.hive_style, _is_text(kind)
    may_be_hive, may_be_encoded = HIVE_STYLE not in config.raw, URL_ENCODE not in config.raw
    is_encoded, slash_dates, is_alone = (
        config.url_encode,
        config.key_settings.slash_dates,
        len(config.partition_fields) == 1,
    )

    def range_of(segment: str) -> ValueRange:
        if segment.startswith(prefix) != is_hive:
            return UNKNOWN
        text = segment.removeprefix(prefix) if is_hive else segment
        if may_be_hive and "=" in text:
            return UNKNOWN
        if text == DEFAULT_PARTITION:
            # Null, or a text that is empty or that very one.
            return ValueRange("", text) if is_text else ValueRange(values=False)
        nulls = int(text == _OLD_DEFAULT_PARTITION)
        if is_encoded:
            plain = _CODE.sub(lambda code: chr(int(code[1], 16)), text) if "%" in text else text
            if escaped(plain) != text:
                return UNKNOWN
            text = plain
        elif may_be_encoded and "%" in text:
            return UNKNOWN
        if is_text:
            # Writers that are told so turn every '-' into a '/', and not every table remembers it.
            return ValueRange(text.replace("/", "-") if is_alone else text, text, nulls)
        value = _value(text.replace("/", "-") if slash_dates else text, kind)
        return UNKNOWN if value is None or nulls else ValueRange(value, value, 0)

    return range_of


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _value(text: str, kind: pa.DataType) -> Any:
    """The one value that is written so, as `ValueRange` has it; None where there is none."""
    if pa.types.is_boolean(kind):
        return {"true": True, "false": False}.get(text)
    try:
        if pa.types.is_signed_integer(kind):
            return int(text) if str(int(text)) == text and abs(int(text)) < 2 ** (kind.bit_width - 1) else None
        if pa.types.is_date32(kind):
            day = date.fromisoformat(text)
            return day.toordinal() - _EPOCH_DAY if day.isoformat() == text else None
    except ValueError:
        return None
    return None
