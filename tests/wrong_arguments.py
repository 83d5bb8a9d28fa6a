"""Arguments of wrong types and worse, for every parameter of every public method."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 7, 2**70, 1.5, -0.0, float("nan"), float("inf"), 1j, Decimal("1.5"), Decimal("NaN")),
    *(
        "",
        " ",
        "x",
        "\0",
        "\ud800",
        "a,b",
        "../up",
        "é" * 300,
        "1 hour ago",
        "-1",
        "20260101000000000",
        "id = 1",
        "id =",
    ),
    *(b"", b"x", bytearray(b"x"), memoryview(b"x")),
    *([], [None], ["id"], [1], [[]], [b"x"], ["no such"], ["id", "id"], (), (1, 2), {"id"}, frozenset(), range(3)),
    *({}, {"id": [1]}, {"a": 1}, {1: 2}, {"hoodie.table.name": 5}, {"hoodie.nope": "x"}, {None: None}, {"id": "x"}),
    *(object(), object, len, lambda: None, lambda *a: None, NotImplemented, ...),
    *(datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1), datetime.max, date(2026, 1, 1), time(1), timedelta(1)),
    *(np.int64(3), np.array([1.0]), np.datetime64("NaT"), Path("x")),
    *(pa.table({"id": [1]}), pa.table({}), pa.array([1]), pa.scalar(1), pa.schema([("id", pa.int64())]), pa.int64()),
)


def calls(function: Callable[..., Any], fitting: dict[str, Any]) -> Iterator[tuple[str, Any, Callable[[], Any]]]:
    """(parameter, wrong value, call) for each of them; `fitting` has values for parameters that have no default."""
    parameters = inspect.signature(function).parameters.values()
    needed = {each.name: fitting[each.name] for each in parameters if each.default is each.empty}
    for each in parameters:
        for value in WRONG:
            given = {**needed, each.name: value}
            yield each.name, value, lambda given=given: function(**given)
