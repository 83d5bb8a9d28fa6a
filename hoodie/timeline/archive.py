"""The archived timeline on storage: completed instants that left the active one, and what they said.

A snapshot needs none of it. It tells an incremental reader which commits lie before the active timeline, and the view
of versions 8 and 9 when an archived delta commit was completed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TypeVar

from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.format.layout import Layout
from hoodie.model.enums import Action
from hoodie.model.instant import Instant, InstantTime
from hoodie.model.late import once
from hoodie.model.names import join
from hoodie.model.payloads import CommitMetadata
from hoodie.storage.base import FileInfo, Storage
from hoodie.storage.cache import Cache, Kind, file_key
from hoodie.timeline.timeline import WRITES

T = TypeVar("T")

INSTANTS: Kind[tuple[Instant, ...]] = Kind("archived instants")
_INSTANT_BYTES = 300
COMMIT: Kind[CommitMetadata] = Kind("archived commit")
_STAT_BYTES = 4000
"""What a commit says of one file takes about so much in memory, with the names of all its logs."""
_FEW = 1000
"""So many commits are kept for who pulls from a little before the active timeline; a look at all of them would displace the rest."""
_LISTED_AGAIN = 5


class _GoneError(CorruptFileError):
    """A file that was listed: who archives has put it together with others, or it was lost."""


class ArchivedTimeline:
    """Instants in the archive folder, read when they are asked for and kept. One per snapshot."""

    def __init__(self, storage: Storage, folder: str, *, layout: Layout, cache: Cache) -> None:
        self._storage = storage
        self._folder = folder
        self._layout = layout
        self._cache = cache
        self._infos: Mapping[str, FileInfo] = {}

    @once
    def files(self) -> tuple[str, ...]:
        """Names of the files with instants, oldest first; empty when nothing was archived."""
        infos = self._storage.list(self._folder)
        self._infos = {info.name: info for info in infos if not info.is_folder}
        return self._layout.archive_files(list(self._infos), self._read, path=self._full(""))

    @once
    def instants(self) -> tuple[Instant, ...]:
        """Every archived instant, completed as they all are, sorted by time.

        Raises:
            CorruptFileError: a file of the archive is missing or does not decode.
        """
        # A writer that died between archiving and tidying archives the same instants again.
        by_key: dict[tuple[str, str], Instant] = {}
        for instants in self._newest_first(lambda _: True, self._instants_of):
            for instant in instants:
                by_key[instant.time, instant.action] = instant
        return tuple(sorted(by_key.values(), key=lambda instant: (instant.time, instant.action)))

    def has_later(self, action: Action, time: InstantTime) -> bool:
        """Whether an instant of the action after `time` was archived; no file is read beyond the newest that has one.

        Raises:
            CorruptFileError: as `instants`.
        """
        return any(
            instant.action is action and instant.time > time
            for instants in self._newest_first(lambda _: True, self._instants_of)
            for instant in instants
        )

    @once
    def commits(self) -> tuple[Instant, ...]:
        """The archived writes, oldest first."""
        return tuple(i for i in self.instants if i.action in WRITES)

    @once
    def completions(self) -> dict[str, InstantTime]:
        """Time -> completion time of the archived writes; there are none where instant times decide."""
        return {i.time: i.completion for i in self.commits if i.completion is not None}

    def read_commits(self, instants: Iterable[Instant]) -> dict[InstantTime, CommitMetadata]:
        """Instant time -> metadata of archived writes; each file of the archive is read once, the newest first.

        Raises:
            InstantNotFoundError: the archive has no metadata of one of them. CorruptFileError: as `instants`.
        """
        actions = {i.time: i.action for i in instants}
        result: dict[InstantTime, CommitMetadata] = {}
        for time in actions:
            commit = self._cache.find(COMMIT, self._key(time))
            if commit is not None:
                result[time] = commit
        missing = {time: action for time, action in actions.items() if time not in result}
        contents = self._newest_first(lambda name: self._layout.may_hold(name, missing), self._content_of)
        for name, data in contents if missing else ():
            for time, metadata in self._layout.archived_commits(data, missing, path=self._full(name)).items():
                if time in result:
                    continue  # archived twice
                result[time] = metadata
                if len(missing) <= _FEW:
                    self._cache.put(COMMIT, self._key(time), metadata, _STAT_BYTES * sum(1 for _ in metadata.stats()))
            if len(result) == len(actions):
                break
        for time, action in actions.items():
            if time not in result:
                raise InstantNotFoundError(
                    f"instant {time}.{action} is not in the archived timeline {self._full('')} of the table"
                )
        return result

    def _key(self, time: str) -> Hashable:
        return self._storage.identity, self._folder, time

    def _newest_first(self, is_wanted: Callable[[str], bool], look: Callable[[str], T]) -> Iterator[T]:
        """A look into each file that is wanted, by its name. What a writer puts together meanwhile may come twice."""
        for again in reversed(range(_LISTED_AGAIN)):
            try:
                for name in reversed(self.files):
                    if is_wanted(name):
                        yield look(name)
            except _GoneError:
                if not again:
                    raise
                self.__dict__.pop("files", None)
            else:
                return

    def _content_of(self, name: str) -> tuple[str, bytes]:
        return name, self._read(name)

    def _instants_of(self, name: str) -> tuple[Instant, ...]:
        """Decoded once in a process: the archive grows for ever, and who pulls may come every second."""

        def load() -> tuple[Instant, ...]:
            return tuple(self._layout.archived_instants(self._read(name), path=self._full(name)))

        info = self._infos.get(name)
        if info is None:
            return load()  # a manifest names it; where it is gone that is the error
        return self._cache.get(INSTANTS, file_key(self._storage, info), load, lambda each: _INSTANT_BYTES * len(each))

    def _read(self, name: str) -> bytes:
        try:
            return self._storage.read(join(self._folder, name))
        except FileNotFoundError as exc:
            raise _GoneError(
                f"{self._full(name)} of the archived timeline is gone; if a writer archives just now, run it again"
            ) from exc

    def _full(self, name: str) -> str:
        return f"{self._storage.uri.rstrip('/')}/{join(self._folder, name)}"
