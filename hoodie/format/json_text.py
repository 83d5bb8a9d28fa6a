"""Arrow columns -> one JSON text a row, column by column.

Structs and maps are objects, nulls are kept, dates are days and timestamps microseconds since 1970, as in the change
queries of Apache Hudi; binary values are base64, decimals texts of their digits, floats that are no numbers texts.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Array = Any

_CONTROL = {chr(code): json.dumps(chr(code))[1:-1] for code in range(0x20)}


def json_text(column: Array) -> Array:
    """JSON of each value; a null is the text `null`.

    Raises:
        TypeError: a type that no table has.
    """
    return pc.fill_null(_text(column), "null")


def _text(column: Array) -> Array:
    kind, types = column.type, pa.types
    if types.is_null(kind):
        return column.cast(pa.string())
    if types.is_integer(kind) or types.is_boolean(kind):
        return column.cast(pa.string())
    if types.is_floating(kind):
        text = column.cast(pa.string())
        whole = pc.binary_join_element_wise(text, ".0", "")
        text = pc.if_else(pc.match_substring_regex(text, "^-?[0-9]+$"), whole, text)
        return pc.if_else(pc.is_finite(column), text, pc.binary_join_element_wise('"', text, '"', ""))
    if types.is_decimal(kind):
        return _quoted(column.cast(pa.string()))
    if types.is_date(kind):
        return column.cast(pa.date32()).cast(pa.int32()).cast(pa.string())
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.string())
    if types.is_string(kind) or types.is_large_string(kind):
        return _quoted(_escaped(column.cast(pa.string())))
    if types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return _quoted(_base64(column))
    if types.is_list(kind) or types.is_large_list(kind):
        return _wrapped("[", _joined(column, json_text(column.flatten()), pc.list_value_length(column)), "]", column)
    if types.is_map(kind):
        return _map(column)
    if types.is_struct(kind):
        return _struct(column)
    raise TypeError(f"no JSON for a value of type {kind}")


def _struct(column: Array) -> Array:
    names = [column.type.field(i).name for i in range(column.type.num_fields)]
    parts = []
    for name, part in zip(names, column.flatten(), strict=True):
        parts.append(pc.binary_join_element_wise(f"{json.dumps(name, ensure_ascii=False)}:", json_text(part), ""))
    inner = pc.binary_join_element_wise(*parts, ",") if len(parts) > 1 else parts[0] if parts else pa.scalar("")
    return _wrapped("{", inner, "}", column)


def _map(column: Array) -> Array:
    # As a list of its own rows' entries; the keys of a table's maps are texts.
    entries = column.cast(pa.list_(pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])))
    keys, items = entries.flatten().flatten()
    pairs = pc.binary_join_element_wise(json_text(keys), json_text(items), ":")
    return _wrapped("{", _joined(entries, pairs, pc.list_value_length(entries)), "}", column)


def _joined(column: Array, texts: Array, lengths: Array) -> Array:
    counts = pc.fill_null(lengths, 0).to_numpy(zero_copy_only=False)
    offsets: Array = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    return pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ",")


def _wrapped(opening: str, inner: Array, closing: str, column: Array) -> Array:
    text: Array = pc.binary_join_element_wise(opening, inner, closing, "")
    if isinstance(text, pa.Scalar):  # a struct without fields
        text = pa.array([text.as_py()] * len(column), pa.string())
    return pc.if_else(pc.is_valid(column), text, pa.scalar(None, pa.string()))


def _quoted(text: Array) -> Array:
    return pc.binary_join_element_wise('"', text, '"', "")


def _escaped(text: Array) -> Array:
    text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(text, "[\\x00-\\x1f]")).as_py():
        for char, escape in _CONTROL.items():
            text = pc.replace_substring(text, char, escape)
    return text


def _base64(column: Array) -> Array:
    # Arrow has no kernel for it; over distinct values.
    encoded = column.cast(pa.binary()).dictionary_encode()
    texts = [None if value is None else base64.b64encode(value).decode() for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)
