"""Errors of Spark about files of a table that are gone, as errors of ours: Spark advises a REFRESH TABLE that does not help."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any
from urllib.parse import unquote

from pyspark.errors import StreamingQueryException

from hoodie.errors import HoodieError
from hoodie.filegroup.missing_file import missing_file_error
from hoodie.storage.base import Storage

_FILE = re.compile(r"[a-z][a-z0-9]*:/\S+?\.parquet")
_SAYS = ("FILE_NOT_EXIST", "FileNotFoundException", "REFRESH TABLE")
_tables: dict[str, Storage] = {}
"""Tables whose files Spark was given, by their root as Hadoop has it."""


def remember(root: str, storage: Storage) -> None:
    """Spark was given files of this table."""
    _tables[_plain(root)] = storage


def error_of(text: str) -> HoodieError | None:
    """The error to raise for what Spark says; None where it is about something else."""
    if not any(word in text for word in _SAYS):
        return None
    for file in dict.fromkeys(_FILE.findall(text)):
        path = _plain(unquote(file))
        for root, storage in _tables.items():
            relative = path.removeprefix(f"{root}/")
            if relative != path and not storage.exists(relative):
                error = missing_file_error(storage, relative)
                return type(error)(
                    f"{error}; spark.catalog.refreshByPath({storage.uri!r}) does that for frames of the table"
                )
    return None


def converted(convert: Callable[..., Any]) -> Callable[..., Any]:
    """Spark's way from an exception of the JVM to one of Python, with our errors among them."""

    @wraps(convert)
    def call(error: Any) -> Any:
        found = convert(error)
        if isinstance(found, StreamingQueryException):
            return found
        return error_of(str(error.toString())) or found

    return call


def _plain(uri: str) -> str:
    """Spark writes file:/a and file:///a."""
    return re.sub(r"^file:/+", "file:/", uri)
