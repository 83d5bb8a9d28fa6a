"""Columns that a statement adds to a table together with its rows: until these are committed, nobody else sees them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident
from typing import Any

import pyarrow as pa

from pyspark_hoodie.frame_marks import is_classic

_ANY = -1


@contextmanager
def adding(spark: Any, uri: str, columns: pa.Schema) -> Iterator[None]:
    """While it is entered, a table that this thread's statements open has these columns, too, null in all rows; what is written to it
    adds them.
    """
    key = uri, _thread(spark)
    _added[key] = columns
    try:
        yield
    finally:
        del _added[key]


def added_to(uri: str, thread: int | None) -> pa.Schema | None:
    """The columns that are to be added to a table which a thread opens."""
    return None if thread is None else _added.get((uri, thread)) or _added.get((uri, _ANY))


_added: dict[tuple[str, int], pa.Schema] = {}
"""By the table's address, and the thread: that of the JVM which runs the statements of this one, where there is a JVM."""


def _thread(spark: Any) -> int:
    if not is_classic(spark):
        return get_ident()
    if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() != "true":
        return _ANY  # each call may run in another one
    return int(spark._jvm.java.lang.Thread.currentThread().getId())
