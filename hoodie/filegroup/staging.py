"""Files of an instant that are not published yet: inside its staging folder, as long as that stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from hoodie.errors import CommitConflictError
from hoodie.storage.base import Storage


@contextmanager
def open_staged(storage: Storage, path: str, *, folder: str) -> Iterator[BinaryIO]:
    """A new file below the instant's staging folder.

    Raises:
        CommitConflictError: the folder is gone: another process rolled the instant back.
    """
    try:
        with storage.open_output(path, within=folder) as file:
            yield file
    except FileNotFoundError as exc:
        raise CommitConflictError(
            f"{path} of table {storage.uri} cannot be written: its staging folder is gone, so another process rolled the "
            "write back; nothing of it is visible, run it again"
        ) from exc
