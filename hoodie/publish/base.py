"""The publishing seam: how the files of one instant become visible, and how a dead writer is kept from it.

A write stages files where nobody looks, gives them their final names, and completes its instant with one last file. Whoever
rolls the instant back fences it first. Four steps, and what holds when the process dies in one of them:

begin     A place for the instant's staged files. Died: nothing of it can be seen, and `remains` names it.
publish   Final names for the files that the commit will count, after a marker for each. Died: some have their names. No reader
          counts a file of an instant that is not completed, and the rollback finds them all.
complete  The instant's last file appears, whole. Died: it is there or it is not, and that alone decides.
fence     Ends the instant. Afterwards its completed file is there, or never will be: of `complete` and `fence` one wins,
          even if the writer was only paused and goes on. What it has staged can get no final name any more.

Begin, complete and fence are called under the table lock; but a writer may lose the lock without a notice, and then they still
hold. A store without renames can fence by one more file that is put only if absent: whoever puts it has won.
"""

from __future__ import annotations

from collections.abc import Sequence
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

        Its name is durable from `publish` on. `durable=False`: for what is never published.

        Raises:
            FileNotFoundError: the place is gone: the instant was fenced.
        """
        ...

    def publish(self, instant: str, files: Sequence[StagedFile]) -> None:
        """First all markers, so that a rollback by any writer finds each file; then the final names, in order.

        All are durable when it returns. A file that states no marker has none: only our own rollback looks for it.

        Raises:
            FileExistsError: a name is taken; that file is untouched. FileNotFoundError: the instant was fenced.
        """
        ...

    def complete(self, instant: str, path: str, data: bytes) -> None:
        """Put the file that completes the instant, durable.

        Raises:
            FileExistsError: it is there already. FileNotFoundError: the instant was fenced; nothing can be seen.
        """
        ...

    def fence(self, instant: str) -> None:
        """Keep the instant's writer from publishing; may be called again, and where nothing was begun."""
        ...

    def abandon(self, instant: str) -> None:
        """Give back the room that staged files take; what was published, and its markers, stay for the rollback."""
        ...

    def clear(self, instant: str) -> None:
        """Remove markers and staging of an instant that is completed."""
        ...

    def forget(self, name: str) -> None:
        """Remove markers, staging and fence of an instant that will never complete, or what is staged under another name."""
        ...

    def remains(self) -> frozenset[str]:
        """The names under which something is staged or fenced: instants, and batches whose rows are on their way."""
        ...
