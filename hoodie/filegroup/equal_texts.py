"""Rows whose record keys and paths are equal as texts only: one would take the place of the other.

The format knows a row by two texts. Apache Hudi joins several key columns as `a:1,b:2` and escapes nothing, it writes
`__null__` and `__empty__` for null and "", and the partitions null, "" and `__HIVE_DEFAULT_PARTITION__` are one folder. Where
a text may stand for several values, rows that meet are compared by the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute

from hoodie.errors import KeyFieldError
from hoodie.filegroup.partial import stored_rows
from hoodie.keygen.columns import column
from hoodie.keygen.generator import DEFAULT_PARTITION
from hoodie.model.files import FileSlice
from hoodie.model.meta_fields import RECORD_KEY
from hoodie.model.plans import KeyTexts, WriteContext
from hoodie.options.keygen import PartitionKind
from hoodie.options.table import TableConfig
from hoodie.options.values import KeyGeneratorType
from hoodie.storage.base import Storage

pc: Any = pyarrow.compute  # its stubs tell kinds of arrays apart, which are known at run time only
_VALUES = "values"
_NO_VALUE = ":__"
"""In joined keys, where a value is null or "" (`NULL_KEY`, `EMPTY_KEY`), and perhaps elsewhere."""


def key_texts(config: TableConfig, schema: pa.Schema, *, by_path: bool = True) -> KeyTexts | None:
    """Which columns of the table may make equal texts of other values; None: each text stands for one value.

    `by_path`: the path is a part of what a row is known by.

    Only texts do: a column of another type holds nothing that reads like a name of a column, or like the text of a null.
    Paths that are made of dates are the same for many values, as they are meant to be.
    """
    joined = config.record_key_fields if len(config.record_key_fields) > 1 else ()
    keys = tuple(name for name in joined if _is_text(schema, name))
    kinds = config.key_settings.partition_kinds
    has_kinds = config.keygen is not KeyGeneratorType.CUSTOM or len(kinds) == len(config.partition_fields)
    paths: tuple[str, ...] = ()
    if by_path and has_kinds and config.keygen is not KeyGeneratorType.TIMESTAMP:
        undated = [
            name
            for name, kind in zip_longest(config.partition_fields, kinds)
            if kind is not PartitionKind.TIMESTAMP and _is_text(schema, name)
        ]
        paths = tuple(undated)
    return KeyTexts(joined if keys else (), (*keys, *paths), by_path=bool(paths)) if keys or paths else None


def refuse_equal_texts(
    storage: Storage, context: WriteContext, rows: Sequence[pa.Table], path: str, stored: FileSlice | None
) -> None:
    """Compare rows of one partition that are about to meet each other, and the rows of a file slice, by their keys.

    Args:
        stored: None where they meet no stored row.

    Raises:
        KeyFieldError: two have the same key and path, and other values in the columns that these are made of.
    """
    texts = context.key_texts
    if texts is None:
        return
    names = [RECORD_KEY, *dict.fromkeys(name.split(".")[0] for name in texts.columns)]
    unclear = [_unclear(table.select(names), texts, path) for table in rows]
    if not any(table.num_rows for table in unclear):
        return
    values = pa.concat_tables([_with_values(table, texts) for table in unclear])
    if stored is not None:
        stored_values = stored_rows(storage, context, stored, pc.unique(values.column(RECORD_KEY)), names[1:])
        values = pa.concat_tables([values, _with_values(stored_values, texts)])
    distinct = values.group_by([RECORD_KEY, _VALUES], use_threads=False).aggregate([])
    if distinct.num_rows == len(pc.unique(distinct.column(RECORD_KEY))):
        return
    counts = pc.value_counts(distinct.column(RECORD_KEY))
    key = next(each["values"].as_py() for each in counts if each["counts"].as_py() > 1)
    same = distinct.filter(pc.equal(distinct.column(RECORD_KEY), key)).column(_VALUES).to_pylist()
    raise KeyFieldError(
        f"two rows of table {context.table_name!r} have different values and the same record key {key!r} in partition {path!r}; "
        f"one would overwrite the other:\n  {same[0]}\n  {same[1]}\n"
        "  fix:     change one of them, or leave it out"
    )


def may_be_equal(rows: pa.Table, context: WriteContext, paths: Iterable[str]) -> bool:
    """Whether keys or paths of these rows, which are in these partitions, may be those of other values, too."""
    texts = context.key_texts
    return texts is not None and any(_unclear(rows, texts, path).num_rows for path in ("", *filter(_is_default, paths)))


def _is_default(path: str) -> bool:
    return any(part.rpartition("=")[2] == DEFAULT_PARTITION for part in path.split("/"))


def _is_text(schema: pa.Schema, name: str) -> bool:
    first, *inner = name.split(".")
    kind = schema.field(first).type if first in schema.names else pa.null()
    for each in inner:
        at = kind.get_field_index(each) if pa.types.is_struct(kind) else -1
        kind = kind.field(at).type if at >= 0 else pa.null()
    return bool(pa.types.is_string(kind))


def _unclear(rows: pa.Table, texts: KeyTexts, path: str) -> pa.Table:
    """The rows whose key or path may be that of other values, too."""
    if texts.by_path and _is_default(path):
        return rows
    keys = rows.column(RECORD_KEY)
    flags = [pc.greater(pc.count_substring(keys, f",{field}:"), 1) for field in texts.joined[1:]]
    flags += [pc.match_substring(keys, _NO_VALUE)] if texts.joined else []
    if not any(pc.any(each).as_py() for each in flags):
        return rows.slice(0, 0)
    return rows.filter(reduce(pc.or_, flags))


def _with_values(rows: pa.Table, texts: KeyTexts) -> pa.Table:
    """The record keys, and one text of the columns' values, which is another one where a value is."""
    parts = []
    for field in texts.columns:
        text = pc.replace_substring(column(rows, field, role="key"), "'", "''")
        parts.append(pc.fill_null(pc.binary_join_element_wise(f"{field}='", text, "'", ""), f"{field}=null"))
    values = parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, ", ")
    return pa.table({RECORD_KEY: rows.column(RECORD_KEY), _VALUES: values})
