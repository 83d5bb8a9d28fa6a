"""Columns of plain Python values: nested ones by the shape that they have, each leaf in one type, and none of them rounded.

Python's numbers have no width. A number takes the table's narrower type where that holds all values of the column, and else
widens the column as Arrow's int64 and float64 do (`hoodie.write.schema`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from math import isnan
from types import NoneType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hoodie.engine.late_pandas import put_pandas_off
from hoodie.errors import SchemaError
from hoodie.format.variant_values import variants_of_values
from hoodie.format.variants import is_variant

_PLAIN = (str, bytes, bool, date, datetime)
"""What has the same type whatever the table says."""
_MISSING = frozenset({"NAType", "NaTType"})
"""pandas' own nulls, by name: pandas is not imported for them."""


def is_plain(values: Iterable[Any]) -> bool:
    """Whether the table's type does not matter for the values."""
    return set(map(type, values)) <= {NoneType, *_PLAIN}


def array_of(values: Sequence[Any], kind: pa.DataType | None, *, path: str, nan_is_null: bool = False) -> Any:
    """The values as an array; whatever does not fit the table's type is left as it is, for the write to say so.

    Args:
        kind: the table's type, where it is known.
        path: the column's name, for errors.
        nan_is_null: the values come from pandas, which has no other null for many types.

    Raises:
        SchemaError: the values have no common type.
    """
    values, classes = _with_nulls(values, nan_is_null)
    if kind is not None and (is_variant(kind) or isinstance(kind, pa.JsonType)):
        return _variants(values, path)
    if classes and all(issubclass(each, Mapping) for each in classes):
        if kind is not None and pa.types.is_map(kind):
            pairs = [None if value is None else list(value.items()) for value in values]
            return _maps(pairs, kind, path, nan_is_null)
        return _structs(values, kind, path, nan_is_null)
    if classes and all(issubclass(each, list | tuple | np.ndarray) for each in classes):
        if kind is not None and pa.types.is_map(kind):
            pairs = [None if value is None else [_pair(entry, path) for entry in value] for value in values]
            return _maps(pairs, kind, path, nan_is_null)
        return _lists(values, kind, path, nan_is_null)
    return _leaf(values, kind, classes, path, nan_is_null)


def _variants(values: Sequence[Any], path: str) -> Any:
    try:
        return variants_of_values(values)
    except ValueError as exc:
        raise SchemaError(f"column {path!r} is a VARIANT, and {exc}") from exc


def _with_nulls(values: Sequence[Any], nan_is_null: bool) -> tuple[Sequence[Any], set[type]]:
    """The values with None for all that is null, and the classes of the others."""
    classes = set(map(type, values)) - {NoneType}
    if any(each.__name__ in _MISSING for each in classes):
        values = [None if type(value).__name__ in _MISSING else value for value in values]
    if nan_is_null and len(classes) > 1 and any(issubclass(each, float) for each in classes):
        values = [None if isinstance(value, float) and isnan(value) else value for value in values]
    return values, set(map(type, values)) - {NoneType}


def _pair(entry: Any, path: str) -> tuple[Any, Any]:
    if isinstance(entry, Mapping) and entry.keys() == {"key", "value"}:
        return entry["key"], entry["value"]
    if isinstance(entry, tuple | list | np.ndarray) and len(entry) == 2:
        return entry[0], entry[1]
    raise SchemaError(f"column {path!r} is a map, and {entry!r:.60} is not a pair of key and value")


def _maps(pairs: list[list[tuple[Any, Any]] | None], kind: pa.MapType, path: str, nan_is_null: bool) -> Any:
    entries = list(chain.from_iterable(pairs_of_row for pairs_of_row in pairs if pairs_of_row is not None))
    wrong = next((key for key, _ in entries if not isinstance(key, str)), "")
    if wrong != "":
        raise SchemaError(
            f"column {path!r} is a map, and has the key {wrong!r} ({type(wrong).__name__}): keys are texts"
        )
    items = _part([item for _, item in entries], kind.item_type, f"{path}.value", nan_is_null)
    keys = pa.array([key for key, _ in entries], pa.string())
    return pa.MapArray.from_arrays(_offsets(pairs), keys, items, mask=_mask(pairs))


def _structs(values: Sequence[Any], kind: pa.DataType | None, path: str, nan_is_null: bool) -> Any:
    names = list(dict.fromkeys(chain.from_iterable(value for value in values if value is not None)))
    wrong = next((name for name in names if not isinstance(name, str)), "")
    if wrong != "":
        raise SchemaError(f"a dict in column {path!r} has the key {wrong!r} ({type(wrong).__name__}): give texts")
    struct = kind if isinstance(kind, pa.StructType) else pa.struct([])
    fields = {struct.field(i).name: struct.field(i).type for i in range(struct.num_fields)}
    if not names:
        return pa.array(values, pa.struct([]))
    parts = [
        _part([None if v is None else v.get(name) for v in values], fields.get(name), f"{path}.{name}", nan_is_null)
        for name in names
    ]
    return pa.StructArray.from_arrays(parts, names=names, mask=_mask(values))


def _lists(values: Sequence[Any], kind: pa.DataType | None, path: str, nan_is_null: bool) -> Any:
    element = kind.value_type if kind is not None and pa.types.is_list(kind) else None
    path = f"{path}.element"
    there = [value for value in values if value is not None]
    dtypes = {value.dtype if isinstance(value, np.ndarray) and value.ndim == 1 else None for value in there}
    if (
        len(dtypes) == 1 and (dtype := dtypes.pop()) is not None and dtype.kind != "O"
    ):  # vectors: no value becomes an object
        elements = pa.array(np.concatenate(there), from_pandas=nan_is_null)
        zoned = element is not None and pa.types.is_timestamp(element) and element.tz is not None
        if zoned and pa.types.is_timestamp(elements.type):
            elements = elements.cast(
                pa.timestamp(elements.type.unit, "UTC")
            )  # numpy, and so pandas, has no zones in there
    else:
        elements = _part(list(chain.from_iterable(there)), element, path, nan_is_null)
    return pa.ListArray.from_arrays(_offsets(values), elements, mask=_mask(values))


def _part(values: Sequence[Any], kind: pa.DataType | None, path: str, nan_is_null: bool) -> Any:
    result = array_of(values, kind, path=path, nan_is_null=nan_is_null)
    if isinstance(result, pa.ChunkedArray):
        raise SchemaError(f"column {path!r} holds more than 2 GiB: give fewer rows at once, or Arrow data")
    return result


def _offsets(values: Sequence[Any]) -> Any:
    lengths = np.fromiter((0 if value is None else len(value) for value in values), np.int64, len(values))
    return pa.array(np.concatenate([[0], np.cumsum(lengths)])).cast(pa.int32())


def _mask(values: Sequence[Any]) -> Any:
    return pa.array([value is None for value in values], pa.bool_())


def _leaf(values: Sequence[Any], kind: pa.DataType | None, classes: set[type], path: str, nan_is_null: bool) -> Any:
    _require_one_kind(values, classes, path)
    put_pandas_off()  # none of the values are of it
    try:
        array = pa.array(values, from_pandas=nan_is_null)
    except OverflowError:
        return _wide_integers(values, kind, path)
    except (pa.ArrowException, TypeError, ValueError) as exc:
        raise _no_common_type(values, path, exc) from exc
    return _narrowed(array, kind)


def _wide_integers(values: Sequence[Any], kind: pa.DataType | None, path: str) -> Any:
    """Integers of more than 64 bits, which decimals may hold."""
    if kind is None or not pa.types.is_decimal(kind) or not all(isinstance(value, int | NoneType) for value in values):
        wide = next((value for value in values if isinstance(value, int) and value.bit_length() > 63), None)
        raise SchemaError(f"column {path!r} holds {wide}, an integer of more than 64 bits: give a Decimal, or a text")
    return pa.array([None if value is None else Decimal(value) for value in values])


def _require_one_kind(values: Sequence[Any], classes: set[type], path: str) -> None:
    """Raises for mixtures that Arrow takes and changes on its way: dates cut from datetimes, zones dropped, texts as bytes."""
    moments = [each for each in classes if issubclass(each, datetime)]
    mixed = (
        (bool(moments) and len(moments) < len([each for each in classes if issubclass(each, date)]))
        or (any(issubclass(each, str) for each in classes) and not all(issubclass(each, str) for each in classes))
        or (moments and len({value.tzinfo is None for value in values if value is not None}) > 1)
    )
    if mixed:
        raise _no_common_type(values, path, None)
    for value in values if any(hasattr(each, "nanosecond") for each in moments) else ():  # pandas' own datetimes
        if getattr(value, "nanosecond", 0):
            raise SchemaError(f"column {path!r} holds {value}, and a table stores microseconds: round it")


def _no_common_type(values: Iterable[Any], path: str, exc: Exception | None) -> SchemaError:
    examples: dict[str, Any] = {}
    for value in values:
        zoned = ", with a zone" if isinstance(value, datetime) and value.tzinfo is not None else ""
        if value is not None:
            examples.setdefault(f"{type(value).__name__}{zoned}", value)
    mixed = " and ".join(f"{value!r:.40} ({kind})" for kind, value in list(examples.items())[:3])
    reason = mixed if len(examples) > 1 or exc is None else "; ".join(map(str, exc.args)) or type(exc).__name__
    return SchemaError(f"the values of column {path!r} have no common type: {reason}")


def _narrowed(array: Any, kind: pa.DataType | None) -> Any:
    """Numbers in the table's narrower type where it holds all of them."""
    if kind == pa.int32() and pa.types.is_int64(array.type):
        try:
            return array.cast(kind)
        except pa.ArrowInvalid:
            return array
    if kind == pa.float32() and pa.types.is_float64(array.type):
        narrow = array.cast(kind)
        same = pc.or_(pc.equal(narrow.cast(array.type), array), pc.is_nan(array))
        return narrow if pc.all(pc.fill_null(same, True)).as_py() else array
    return array
