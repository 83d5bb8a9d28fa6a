"""Markers of Apache Hudi's writers, gathered into a few files for each instant, as its own timeline server writes them.

Before a task of Hudi's writer opens a data file it has a marker made, so that a rollback finds what a dead write has left. By the
server that is one request, and not a file: names that came at the same time go into one of the files MARKERS0, MARKERS1, …, a line
each, and MARKERS.type says that it is done so. A request is answered when its marker is on storage.

Nothing of this is needed for writes of ours: their tasks write into a staging folder, and who publishes knows all names at once.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Lock, Thread

from hoodie.model.names import MARKERS, join
from hoodie.publish.marker_files import GATHERED, PREFIX, TYPE_FILE, encode_markers, read_marker_files
from hoodie.storage.base import Storage

_FILES = 20
"""As `hoodie.markers.timeline_server_based.batch.num_threads` has it in Apache Hudi: so many files take markers in turns."""
_MOST_NAME = 4096


@dataclass
class _Folder:
    """The markers of one instant."""

    path: str
    files: dict[int, list[str]] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    """On storage."""
    pending: dict[str, Future[None]] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    is_writing: bool = False
    has_type: bool = False
    next_file: int = 0


class MarkerFolders:
    """Thread-safe. Paths of folders are relative to the table."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._folders: dict[str, _Folder] = {}
        self._lock = Lock()

    def all(self, folder: str) -> list[str]:
        return sorted(self._of(folder).names)

    def create_and_merge(self, folder: str) -> list[str]:
        """Those of base files."""
        return [name for name in self.all(folder) if not name.endswith(".APPEND")]

    def append(self, folder: str) -> list[str]:
        """Those of log files."""
        return [name for name in self.all(folder) if name.endswith(".APPEND")]

    def exists(self, folder: str) -> bool:
        return bool(self._storage.list(folder))

    def create(self, folder: str, name: str) -> bool:
        """False when it was there already. When it returns the marker is on storage.

        Raises:
            ValueError: the name is none of a marker. OSError: it could not be written.
        """
        if not name or len(name) > _MOST_NAME or any(mark in name for mark in "\n\r\0"):
            raise ValueError("a marker has a name of one line")
        state = self._of(folder)
        with state.lock:
            if name in state.names:
                return False
            other = state.pending.get(name)
            written = state.pending.setdefault(name, Future())
            begins = not state.is_writing
            state.is_writing = True
        if begins:
            Thread(target=self._write_all, args=(state,), name="hoodie-markers", daemon=True).start()
        written.result()
        return other is None

    def delete(self, folder: str) -> bool:
        """Whether it was there."""
        there = self.exists(folder)
        self._storage.delete_folder(folder)
        with self._lock:
            self._folders.pop(folder, None)
        return there

    def _of(self, folder: str) -> _Folder:
        with self._lock:
            state = self._folders.get(folder)
            if state is None:
                state = self._folders[folder] = self._read(folder)
            return state

    def _read(self, folder: str) -> _Folder:
        """What a server before this one has left."""
        state = _Folder(folder)
        for number, names in read_marker_files(self._storage, folder).items():
            state.files[number] = names
            state.names.update(names)
        state.has_type = self._storage.exists(join(folder, TYPE_FILE))
        return state

    def _write_all(self, state: _Folder) -> None:
        """Write what is pending, and what comes meanwhile, until there is nothing more."""
        while True:
            with state.lock:
                batch = dict(state.pending)
                if not batch:
                    state.is_writing = False
                    return
            failed: BaseException | None = None
            try:
                self._write(state, list(batch))
            except BaseException as exc:  # noqa: BLE001 - whatever it is, those who wait have to hear of it
                failed = exc
            with state.lock:
                for name, written in batch.items():
                    del state.pending[name]
                    if failed is None:
                        state.names.add(name)
                        written.set_result(None)
                    else:
                        written.set_exception(failed)

    def _write(self, state: _Folder, batch: list[str]) -> None:
        if not state.has_type:
            self._storage.mkdirs(state.path, durable=False)
            self._storage.replace(join(state.path, TYPE_FILE), GATHERED)
            state.has_type = True
        number = state.next_file % _FILES
        names = [*state.files.get(number, []), *batch]
        self._storage.replace(join(state.path, f"{PREFIX}{number}"), encode_markers(names))
        state.files[number] = names
        state.next_file = number + 1


def marker_folder(path: str) -> str | None:
    """The folder of an instant's markers, relative to the table; None for any other place."""
    inside, _, instant = path.rpartition("/")
    return path if inside == MARKERS and instant.isdigit() else None
