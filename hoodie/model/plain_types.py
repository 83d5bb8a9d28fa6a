"""Types of Arrow that few of its functions know: views of texts and lists, and runs of equal values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa


def plain_type(kind: Any) -> Any:
    """The type without views and runs, at any depth: Arrow filters, takes, compares, sorts and casts few or none of them."""
    types = pa.types
    if types.is_string_view(kind):
        return pa.string()
    if types.is_binary_view(kind):
        return pa.binary()
    if types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if isinstance(kind, pa.JsonType) and types.is_string_view(kind.storage_type):
        return pa.json_()
    if types.is_dictionary(kind):
        value = plain_type(kind.value_type)
        return kind if value == kind.value_type else pa.dictionary(kind.index_type, value, kind.ordered)
    if types.is_struct(kind):
        fields = [each.with_type(plain_type(each.type)) for each in kind]
        return kind if all(new.type == old.type for new, old in zip(fields, kind)) else pa.struct(fields)
    if types.is_map(kind):
        key, item = plain_type(kind.key_type), plain_type(kind.item_type)
        return kind if (key, item) == (kind.key_type, kind.item_type) else pa.map_(key, item)
    if is_list_view(kind) or types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        value = plain_type(kind.value_type)
        is_plain = value == kind.value_type and not is_list_view(kind)
        return kind if is_plain else pa.list_(kind.value_field.with_type(value))
    return kind


def is_list_view(kind: pa.DataType) -> bool:
    """Whether it is one of lists by their places. Arrow 26 casts these to lists with buffers that are too short."""
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))
