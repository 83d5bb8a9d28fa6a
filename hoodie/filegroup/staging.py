"""Files of an instant that are not published yet: inside its staging folder, as long as that stands."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

import pyarrow as pa

from hoodie.errors import CommitConflictError
from hoodie.publish.publishers import publisher_of
from hoodie.storage.base import Storage


@contextmanager
def open_staged(storage: Storage, path: str, *, folder: str) -> Iterator[BinaryIO]:
    """A new file below the instant's staging folder.

    Raises:
        CommitConflictError: the folder is gone: another process rolled the instant back.
    """
    with _refused_where_gone(storage, path), publisher_of(storage).open_staged(path, within=folder) as file:
        yield file


def stage_all(storage: Storage, files: Sequence[tuple[str, bytes | memoryview]], *, folder: str) -> None:
    """Whole files at once, each as by `open_staged`.

    Raises:
        CommitConflictError: as there.
    """
    if files:
        with _refused_where_gone(storage, files[0][0]):
            publisher_of(storage).stage_all(files, within=folder)


@contextmanager
def _refused_where_gone(storage: Storage, path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as exc:
        raise CommitConflictError(
            f"{path} of table {storage.uri} cannot be written: its staging folder is gone, so another process rolled the "
            "write back; nothing of it is visible, run it again"
        ) from exc


def sink_over(file: BinaryIO) -> pa.NativeFile:
    """An Arrow output into a new, empty file that was opened by `open_staged`; whoever asks for it closes it first.

    Into a file of the operating system Arrow writes by itself: a tenth of the cost of a base file is saved, and no write waits
    for the interpreter lock while other tasks hold it.
    """
    with suppress(OSError, io.UnsupportedOperation, AttributeError):  # streams in memory have no number
        # By its number and not by a name: the staging folder may be renamed away at any moment.
        name = f"{_OPEN_FILES}/{file.fileno()}"
        if os.path.exists(name):
            return pa.OSFile(name, "wb")
    return pa.PythonFile(cast(Any, file), mode="w")


_OPEN_FILES = "/dev/fd"
