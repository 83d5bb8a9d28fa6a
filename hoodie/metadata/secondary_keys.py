r"""Keys of a secondary index: a value of its column and the record key of a row that has it, as `value$key`.

In both a backslash stands before each `\`, `$` and NUL; a NUL alone is null. Values are texts as Spark has them: dates as days and
timestamps as microseconds since 1970, numbers as Java writes them. By version V2 of the index (table version 9) the hash code of
`value$` chooses the file group, so that a look-up of a value opens one. By V1 (table version 8) it is that of the whole key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from hoodie.errors import UnsupportedTableError
from hoodie.hfile.arrays import BINARY
from hoodie.keygen.text import text_of
from hoodie.metadata.keys import group_numbers
from hoodie.metadata.payload import decode_secondary
from hoodie.metadata.slices import DeletedKeys, Layer

pc: Any = pyarrow.compute
_SEPARATOR, _NULL = "$", "\0"


def is_indexable(kind: pa.DataType) -> bool:
    """Whether Apache Hudi gives columns of this type an index, and we write its values as Spark does."""
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_number = pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    return is_text or is_number or pa.types.is_date32(kind) or pa.types.is_timestamp(kind)


def is_exact(kind: pa.DataType) -> bool:
    """Whether equal values have equal texts, whoever wrote them: 0.0 and -0.0 have not, and Java's releases differ in digits."""
    return is_indexable(kind) and not pa.types.is_floating(kind)


def value_texts(values: Any, column: str) -> Any:
    """The values of a column as an index spells them; nulls stay null.

    Raises:
        UnsupportedTableError: their type has no secondary index.
    """
    if not is_indexable(values.type):
        raise UnsupportedTableError(f"column {column!r} is of type {values.type}, which no secondary index is of")
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    return text_of(values, field=column, role="secondary key")


def composed(texts: Any, keys: Any) -> Any:
    """The keys of the index for rows with these values and record keys, all of them texts."""
    return pc.binary_join_element_wise(_heads(texts), _escaped(keys.cast(pa.string())), "")


def prefixes(texts: Any) -> Any:
    """What the keys of each of these values begin with."""
    return _heads(texts)


def record_keys(composites: Any) -> Any:
    """The record keys in these keys of the index.

    Raises:
        UnsupportedTableError: some are no such keys.
    """
    groups = pc.extract_regex(composites, pattern=r"(?s)\A(?:[^\\$]|\\.)*\$(?P<key>.*)\z")
    if groups.null_count:
        raise UnsupportedTableError("a key of a secondary index has no record key in it")
    return pc.replace_substring_regex(pc.struct_field(groups, "key"), pattern=r"(?s)\\(.)", replacement=r"\1")


def group_numbers_of(composites: Any, groups: int, *, by_value: bool) -> npt.NDArray[np.int64]:
    """For each key of the index the number of its file group, of so many."""
    if not by_value or groups == 1:
        return group_numbers(composites, groups)
    heads = pc.extract_regex(composites, pattern=r"(?s)\A(?P<head>(?:[^\\$]|\\.)*\$)")
    return group_numbers(pc.struct_field(heads, "head"), groups)


def keys_beginning(layers: Sequence[Layer], prefix: str) -> Any:
    """The live keys of a file group of the index that begin with the prefix, as texts.

    Raises:
        CorruptFileError, UnsupportedTableError: a file is damaged or holds something else.
    """
    start = prefix.encode()
    newer_keys, arrays = pa.array([], BINARY), []
    for layer in reversed(layers):
        for keys, is_deleted in _pairs(layer, start):
            fresh = pc.invert(pc.is_in(keys, value_set=newer_keys)) if len(newer_keys) else pa.repeat(True, len(keys))
            arrays.append(keys.filter(pc.and_not(fresh, is_deleted)))
            newer_keys = pa.concat_arrays([newer_keys, keys.filter(fresh)])
    return pa.concat_arrays([pa.array([], BINARY), *arrays]).cast(pa.binary()).cast(pa.string())


def _pairs(layer: Layer, start: bytes) -> Iterator[tuple[Any, Any]]:
    """Keys that begin so, and of each whether it is gone. No key is twice in a layer."""
    if isinstance(layer, DeletedKeys):
        keys = layer.keys.cast(BINARY)
        keys = keys.filter(pc.starts_with(keys, pattern=start))
        yield keys, pa.repeat(True, len(keys))
        return
    for batch in layer.reader.scan(prefix=start):
        yield batch.column("key").cast(BINARY), decode_secondary(batch.column("value"), layer.schema)


def _heads(texts: Any) -> Any:
    values = pc.fill_null(_escaped(texts), _NULL)
    return pc.binary_join_element_wise(values, _SEPARATOR, "")


def _escaped(texts: Any) -> Any:
    return pc.replace_substring_regex(texts, pattern=r"([\\$\x00])", replacement=r"\\\1")
