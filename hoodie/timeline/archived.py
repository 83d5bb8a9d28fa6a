"""The archived timeline on storage: completed instants that left the active one, and what they said.

A snapshot needs none of it. It tells an incremental reader which commits lie before the active timeline, and the view
of versions 8 and 9 when an archived delta commit was completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from hoodie.errors import CorruptFileError, InstantNotFoundError
from hoodie.model.enums import Action
from hoodie.model.instant import Instant, sort_key
from hoodie.model.names import join
from hoodie.model.once import once
from hoodie.model.payloads import CommitMetadata
from hoodie.storage.base import Storage
from hoodie.timeline.layout import Layout
from hoodie.timeline.timeline import WRITES

_LISTED_AGAIN = 5


class _GoneError(CorruptFileError):
    """A file that was listed: who archives has put it together with others, or it was lost."""


class ArchivedTimeline:
    """Instants in the archive folder, read when they are asked for and kept. One per snapshot."""

    def __init__(self, storage: Storage, folder: str, *, layout: Layout) -> None:
        self._storage = storage
        self._folder = folder
        self._layout = layout

    @once
    def files(self) -> tuple[str, ...]:
        """Names of the files with instants, oldest first; empty when nothing was archived."""
        names = [e.path.rpartition("/")[2] for e in self._storage.list(self._folder) if not e.is_folder]
        return self._layout.archive_files(names, self._read, path=self._full(""))

    @once
    def instants(self) -> tuple[Instant, ...]:
        """Every archived instant, completed as they all are, sorted by time.

        Raises:
            CorruptFileError: a file of the archive is missing or does not decode.
        """
        # A writer that died between archiving and tidying archives the same instants again.
        found: dict[tuple[str, str], Instant] = {}
        for name, data in self._contents(lambda _: True):
            for instant in self._layout.archived_instants(data, path=self._full(name)):
                found[instant.time, instant.action] = instant
        return tuple(sorted(found.values(), key=lambda instant: (sort_key(instant.time), instant.action)))

    def has_later(self, action: Action, time: str) -> bool:
        """Whether an instant of the action after `time` was archived; no file is read beyond the newest that has one.

        Raises:
            CorruptFileError: as `instants`.
        """
        key = sort_key(time)
        return any(
            instant.action is action and sort_key(instant.time) > key
            for name, data in self._contents(lambda _: True)
            for instant in self._layout.archived_instants(data, path=self._full(name))
        )

    @once
    def commits(self) -> tuple[Instant, ...]:
        """The archived writes, oldest first."""
        return tuple(i for i in self.instants if i.action in WRITES)

    @once
    def completions(self) -> dict[str, str]:
        """Time -> completion time of the archived writes; there are none where instant times decide."""
        return {i.time: i.completion for i in self.commits if i.completion is not None}

    def read_commits(self, instants: Iterable[Instant]) -> dict[str, CommitMetadata]:
        """Instant time -> metadata of archived writes; each file of the archive is read once, the newest first.

        Raises:
            InstantNotFoundError: the archive has no metadata of one of them. CorruptFileError: as `instants`.
        """
        wanted = {i.time: i.action for i in instants}
        found: dict[str, CommitMetadata] = {}
        for name, data in self._contents(lambda name: self._layout.may_hold(name, wanted)) if wanted else ():
            found = self._layout.archived_commits(data, wanted, path=self._full(name)) | found
            if len(found) == len(wanted):
                break
        for time, action in wanted.items():
            if time not in found:
                raise InstantNotFoundError(
                    f"instant {time}.{action} is not in the archived timeline {self._full('')} of the table"
                )
        return found

    def _contents(self, is_wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
        """Names and contents of the files that are wanted, newest first. What a writer puts together meanwhile may come twice."""
        for again in reversed(range(_LISTED_AGAIN)):
            try:
                for name in reversed(self.files):
                    if is_wanted(name):
                        yield name, self._read(name)
            except _GoneError:
                if not again:
                    raise
                self.__dict__.pop("files", None)
            else:
                return

    def _read(self, name: str) -> bytes:
        try:
            return self._storage.read(join(self._folder, name))
        except FileNotFoundError as exc:
            raise _GoneError(
                f"{self._full(name)} of the archived timeline is gone; if a writer archives just now, run it again"
            ) from exc

    def _full(self, name: str) -> str:
        return f"{self._storage.uri.rstrip('/')}/{join(self._folder, name)}"
