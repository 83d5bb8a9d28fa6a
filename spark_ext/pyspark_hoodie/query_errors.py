"""Errors of queries as hoodie's errors: missing files, for which Spark advises a REFRESH TABLE, and errors of hoodie's tasks."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import unquote

from pyspark.errors import StreamingQueryException

from hoodie import errors
from hoodie.errors import HoodieError
from hoodie.filegroup.missing_file import missing_file_error
from hoodie.storage.base import Storage
from pyspark_hoodie.callbacks import failure_in

_FILE = re.compile(r"[a-z][a-z0-9]*:/\S+?\.parquet")
_SAYS = ("FILE_NOT_EXIST", "FileNotFoundException", "REFRESH TABLE")
_RAISED = re.compile(r"^hoodie\.errors\.(\w+): (.+(?:\n(?!\s).+)*)", re.MULTILINE)
"""The end of a traceback of a Python worker."""
_tables: dict[str, Storage] = {}
"""Tables whose files Spark was given, by their root as Hadoop has it."""


def remember(root: str, storage: Storage) -> None:
    """Spark was given files of this table."""
    _tables[_plain(root)] = storage


def error_of(text: str, *, refreshed: bool) -> HoodieError | None:
    """The error to raise for what Spark says; None where it is about something else. `refreshed`: whether `refreshByPath` helps."""
    if not any(word in text for word in _SAYS):
        return None
    for file in dict.fromkeys(_FILE.findall(text)):
        path = _plain(unquote(file))
        for root, storage in _tables.items():
            relative = path.removeprefix(f"{root}/")
            if relative != path and not storage.exists(relative):
                error = missing_file_error(storage, relative)
                hint = f"; spark.catalog.refreshByPath({storage.uri!r}) does that for frames of the table"
                return type(error)(f"{error}{hint}") if refreshed else error
    return None


def converted(convert: Callable[..., Any]) -> Callable[..., Any]:
    """Spark's way from an exception of the JVM to one of Python, with our errors among them."""

    @wraps(convert)
    def call(error: Any) -> Any:
        return _ours(convert(error), lambda _: str(error.toString()), refreshed=True)

    return call


def received(convert: Callable[..., Any]) -> Callable[..., Any]:
    """The same for the errors that a Connect client receives from its server."""

    @wraps(convert)
    def call(*args: Any, **keywords: Any) -> Any:
        return _ours(convert(*args, **keywords), str, refreshed=False)

    return call


def _ours(error: Any, text_of: Callable[[Any], str], *, refreshed: bool) -> Any:
    if isinstance(error, StreamingQueryException):
        return error
    text = text_of(error)
    failure = failure_in(text)
    if failure is not None:
        return failure
    return error_of(text, refreshed=refreshed) or _raised(text) or error


def _raised(text: str) -> HoodieError | None:
    """The error of ours that a Python worker ended with."""
    for name, message in reversed(_RAISED.findall(text)):
        kind = getattr(errors, name, None)
        while isinstance(kind, type) and issubclass(kind, HoodieError):
            try:
                return kind(message)
            except TypeError:  # it wants more than a message, and its parent does not
                kind = kind.__base__
    return None


def _plain(uri: str) -> str:
    """Spark writes file:/a and file:///a."""
    return re.sub(r"^file:/+", "file:/", uri)
