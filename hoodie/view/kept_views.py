"""What the last write into each of a few tables listed, with what it published: the next write of this process goes on with it.

A job that writes every minute opens its table anew each time. Whether a view still holds is settled by the timeline that the next
writer reads.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from hoodie.model.names import PROPERTIES
from hoodie.storage.base import Storage
from hoodie.view.view import FileSystemView

_KEPT_TABLES = 8
_KEPT_GROUPS = 50_000
"""Of larger tables nothing is kept between writes: a listing that was one is a kilobyte or two for each file group."""


class KeptViews:
    """The view of the last write into each of a few tables; thread-safe. One writer has a view at a time."""

    def __init__(self) -> None:
        self._views: OrderedDict[str | int, FileSystemView] = OrderedDict()
        self._mutex = threading.Lock()

    def take(self, storage: Storage) -> FileSystemView | None:
        with self._mutex:
            return self._views.pop(_place_of(storage), None)

    def put(self, storage: Storage, view: FileSystemView | None) -> None:
        if view is None or view.listed_groups > _KEPT_GROUPS:
            return
        with self._mutex:
            self._views[_place_of(storage)] = view
            while len(self._views) > _KEPT_TABLES:
                self._views.popitem(last=False)


def _place_of(storage: Storage) -> str | int:
    """What tells a table from all others: its uri on a local disk. Elsewhere two storages may have the same uri: the object, which
    a view that is kept keeps too.
    """
    return storage.uri if storage.local_path(PROPERTIES) is not None else id(storage)


KEPT_VIEWS = KeptViews()
