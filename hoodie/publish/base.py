"""The publishing seam: how the files of one instant become visible, and how a dead writer is kept from it.

A write stages files where nobody looks, gives them their final names, and completes its instant with one last file. Whoever
rolls the instant back fences it first. Four steps, and what holds when the process dies in one of them:

begin     A place for the instant's staged files. Died: nothing of it can be seen, and `remains` names it.
publish   Final names for the files that the commit will count, after a marker for each. Died: some have their names. No reader
          counts a file of an instant that is not completed, and the rollback finds them all.
complete  The instant's last file appears, whole. Died: it is there or it is not, or `advance` and `fence` put it.
fence     Ends the instant. Afterwards its completed file is there, or never will be: of `complete` and `fence` one wins,
          even if the writer was only paused and goes on. What it has staged can get no final name any more.

All but publish are called under the table lock. But a lock that is a lease can end while its holder is paused, and nobody tells it.
So a writer that is about to complete takes the `epoch` of its instant, looks what others have committed, and makes each other
pending instant `advance`: its writer, paused or not, must look again before it can complete. Of two writers that both believe to
hold the lock one completes at most. This is optimistic concurrency control; the lock spares the tries that it would cost.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from hoodie.model.plans import StagedFile


class Publisher(Protocol):
    """Publishes in one storage. Has no state of its own: other processes, with a publisher of their own, go on where it was."""

    def staging(self, instant: str) -> str:
        """The path below which the instant's tasks stage their files: a value that can be sent to other processes."""
        ...

    def begin(self, instant: str) -> None:
        """Make an empty place for staged files; what an earlier try of this instant left in it is gone."""
        ...

    def open_staged(self, path: str, *, within: str, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        """A new file below the place `within`, as `Storage.open_output`; a task of a fenced writer does not bring its place back.

        It is durable from `publish` on. `durable=False`: for what is never published.

        A publisher whose storage cannot say so in the same request lets the task write; its file gets no final name then, and
        `remains` names the place.

        Raises:
            FileNotFoundError: the place is gone: the instant was fenced.
        """
        ...

    def stage_all(self, files: Sequence[tuple[str, bytes | memoryview]], *, within: str) -> None:
        """Files of this content, each as `open_staged` makes it.

        Raises:
            FileNotFoundError: as there.
        """
        ...

    def publish(
        self,
        instant: str,
        files: Sequence[StagedFile],
        *,
        gathered: bool = False,
        stage_more: Callable[[], Sequence[StagedFile]] = tuple,
    ) -> Sequence[str]:
        """First all markers, so that a rollback by any writer finds each file; then the final names, in order.

        Gives the files that `clear` is to remove, if it can do that by their names.

        `gathered`: all markers in one file. `stage_more`: stages further files without markers, which get their names with these; it
        may run while the markers are put.

        All are durable when it returns. A file that states no marker has none: only our own rollback looks for it.

        Raises:
            FileExistsError: a name is taken; that file is untouched. Names of data files hold a number of chance
                (`WriteToken`), and a storage that cannot refuse a taken name relies on it.
            FileNotFoundError: the instant was fenced.
        """
        ...

    def epoch(self, instant: str) -> Hashable:
        """What `complete` needs; taken before the writer looks what others have committed.

        Raises:
            FileNotFoundError: the instant was fenced.
        """
        ...

    def advance(self, instant: str) -> bool:
        """Outdate the epoch that another pending instant's writer may have taken. True: that one is, or may be, completed.

        Where its writer had decided it and died before the completed file was there, this puts the file.
        """
        ...

    def complete(self, instant: str, path: str, data: bytes, epoch: Hashable) -> None:
        """Put the file that completes the instant, durable.

        Raises:
            FileExistsError: it is there already. FileNotFoundError: the instant was fenced, or its epoch is outdated; nothing of
                it can be seen.
            CommitOutcomeUnknownError: it is decided that the file shall be there, and it could not be put.
        """
        ...

    def fence(self, instant: str) -> None:
        """Keep the instant's writer from publishing; may be called again, and where nothing was begun."""
        ...

    def abandon(self, instant: str) -> None:
        """Give back the room that staged files take; what was published, and its markers, stay for the rollback."""
        ...

    def clear(self, instant: str, paths: Sequence[str] | None = None, others: Sequence[str] = ()) -> None:
        """Remove markers and staging of an instant that is completed, and the files `others`. `paths`: the result of `publish`, where
        nothing else is staged; None: look for it. Who dies in the middle leaves something that `remains` names, or nothing.
        """
        ...

    def forget(self, name: str) -> None:
        """Remove markers, staging and fence of an instant that will never complete, or what is staged under another name."""
        ...

    def remains(self) -> frozenset[str]:
        """The names under which something is staged or fenced: instants, and batches whose rows are on their way."""
        ...
