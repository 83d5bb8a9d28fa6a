"""Publishing in a store that has no renames: the store copies the chosen files, and one small file decides.

Tasks stage under names of their own, as on a disk, and the store copies what was chosen to its final name: one more request a
file than to write there at once. For it no task that was given up, however late it writes, ever puts a file where readers look.

Each instant has a decision file. It says `open` from `begin` on; `complete`, `fence` and `advance` replace it on the condition
that it is still the very file they have read, so one of them wins. Its tag is the epoch. Who has won with `complete` then puts the
completed file. Should it die before, the decision file holds all that is needed, and `advance` and `fence` put that file for it.

A fence deletes what is staged, too: a copy that is asked for afterwards finds no source. What it cannot stop is a copy that the
store is making at that moment; its file appears after the rollback, at most one time-out of a request later, and no reader counts
it while the instant can be seen to be rolled back (docs/contributing/decisions/writers.md, "Paused writers").
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, suppress
from enum import StrEnum
from functools import partial
from typing import Any, BinaryIO, NamedTuple, TypeVar

from hoodie.errors import CommitOutcomeUnknownError, CorruptFileError
from hoodie.model.instant import is_instant_time
from hoodie.model.names import MARKERS, STAGING, join, staging_folder
from hoodie.model.plans import StagedFile
from hoodie.publish.marker_files import put_markers
from hoodie.storage.base import CopyingStorage
from hoodie.storage.parallel import together

T = TypeVar("T")

_DECISION = "_decision"
_PUT_LATER = (
    "the next write or service makes it visible: do not write the batch again before that, look at the timeline"
)


class Verdict(StrEnum):
    OPEN = "open"
    COMPLETE = "complete"
    FENCED = "fenced"


class Decision(NamedTuple):
    """Content of a decision file: a line of JSON, then the bytes of the completed file, if it is decided that it shall be there."""

    verdict: Verdict
    path: str = ""
    data: bytes = b""

    def encode(self) -> bytes:
        # The nonce: in many stores a file's tag is the hash of its bytes, and no two decisions may look the same.
        line = json.dumps({"decision": self.verdict, "path": self.path, "nonce": uuid.uuid4().hex})
        return line.encode() + b"\n" + self.data

    @classmethod
    def decode(cls, content: bytes, *, path: str) -> Decision:
        line, _, data = content.partition(b"\n")
        try:
            fields = json.loads(line)
            return cls(Verdict(fields["decision"]), str(fields["path"]), data)
        except (ValueError, KeyError, TypeError) as exc:
            raise CorruptFileError(f"{path} does not say how its instant was decided ({exc}): {line[:80]!r}") from exc


class CopyingPublisher:
    def __init__(self, storage: CopyingStorage) -> None:
        self._storage = storage

    def staging(self, instant: str) -> str:
        return staging_folder(instant)

    def begin(self, instant: str) -> None:
        path, content = _decision_path(instant), Decision(Verdict.OPEN).encode()
        try:
            self._storage.create_new(path, content)
        except FileExistsError:  # of a writer that died before its instant was on the timeline
            self._storage.delete_folder(staging_folder(instant))
            self._storage.create_new(path, content)

    def open_staged(self, path: str, *, within: str, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        """Asks nobody whether the place is still there: what a fenced writer's task stages gets no final name in any case."""
        return self._storage.open_output(path, durable=durable)

    def stage_all(self, files: Sequence[tuple[str, bytes | memoryview]], *, within: str) -> None:
        for path, data in files:
            with self.open_staged(path, within=within) as file:
                file.write(data)

    def publish(
        self,
        instant: str,
        files: Sequence[StagedFile],
        *,
        gathered: bool = False,
        stage_more: Callable[[], Sequence[StagedFile]] = tuple,
    ) -> Sequence[str]:
        try:
            _, markers, more = together(
                self._storage,
                partial(self.epoch, instant),
                partial(put_markers, self._storage, instant, files, gathered=gathered),
                stage_more,
            )
        except FileNotFoundError:  # it was fenced, so nobody would look for these markers any more
            self._storage.delete_folder(join(MARKERS, instant))
            raise
        all_files = [*files, *more]
        self._each(lambda file: self._storage.copy_file(file.staged, file.final), all_files)
        return [*markers, *(file.staged for file in all_files)]

    def epoch(self, instant: str) -> Hashable:
        decision, tag = self._read(instant)
        if decision.verdict is not Verdict.OPEN:
            raise self._fenced(instant)
        return tag

    def advance(self, instant: str) -> bool:
        decision = self._decide(instant, Decision(Verdict.OPEN))
        if decision is None:
            return True  # perhaps it was completed, and cleared, since it was seen pending
        if decision.verdict is not Verdict.COMPLETE:
            return False
        self._put(decision)
        return True

    def complete(self, instant: str, path: str, data: bytes, epoch: Hashable) -> None:
        ours = Decision(Verdict.COMPLETE, path, data)
        content = ours.encode()
        try:
            self._storage.swap(_decision_path(instant), content, epoch)
        except (FileExistsError, FileNotFoundError) as exc:
            if self._storage.exists(path):
                raise FileExistsError(f"{self._full(path)} is there already") from exc
            raise FileNotFoundError(
                f"instant {instant} of table {self._storage.uri} was fenced, or another write was committed meanwhile"
            ) from exc
        except OSError as exc:
            if not self._holds(instant, content, exc):
                raise
        try:
            self._put(ours)
        except OSError as exc:
            raise CommitOutcomeUnknownError(
                f"instant {instant} of table {self._storage.uri} is decided, but {path} could not be put ({exc}): nothing of it "
                f"can be seen yet, and {_PUT_LATER}"
            ) from exc

    def fence(self, instant: str) -> None:
        decision = self._decide(instant, Decision(Verdict.FENCED))
        if decision is None:
            return  # another kind of writer, or an earlier try
        if decision.verdict is Verdict.COMPLETE:
            self._put(decision)
        else:
            self.abandon(instant)

    def abandon(self, instant: str) -> None:
        staged = [info.path for info in self._storage.list(staging_folder(instant), recursive=True)]
        self._each(self._storage.delete, [path for path in staged if path != _decision_path(instant)])

    def clear(self, instant: str, paths: Sequence[str] | None = None, others: Sequence[str] = ()) -> None:
        if paths is not None:  # the next write removes files that are missing in `paths`
            self._storage.delete_all([*paths, *others, _decision_path(instant)])
            return
        together(
            self._storage,
            partial(self._storage.delete_folder, join(MARKERS, instant)),
            partial(self._storage.delete_all, others),
        )
        self._storage.delete_folder(staging_folder(instant))

    def forget(self, name: str) -> None:
        if is_instant_time(name):
            self._storage.delete_folder(join(MARKERS, name))
        self._storage.delete_folder(staging_folder(name))

    def remains(self) -> frozenset[str]:
        return frozenset(info.name for info in self._storage.list(STAGING) if info.is_folder)

    def _each(self, act: Callable[[T], Any], items: Sequence[T]) -> None:
        self._storage.each(act, items)

    def _holds(self, instant: str, content: bytes, error: OSError) -> bool:
        """After a failed swap: whether it took place all the same, and only its answer was lost."""
        try:
            return self._storage.read(_decision_path(instant)) == content
        except FileNotFoundError:
            return False
        except OSError as exc:
            raise CommitOutcomeUnknownError(
                f"completing instant {instant} of table {self._storage.uri} failed ({error}), and its decision cannot be read "
                f"back ({exc}): it is not known whether the write stands. If it does, {_PUT_LATER}"
            ) from error

    def _decide(self, instant: str, new: Decision) -> Decision | None:
        """Replace a decision that is open, and give what stands there then; None: nothing was begun, or all is forgotten."""
        while True:
            try:
                decision, tag = self._read(instant)
                if decision.verdict is Verdict.OPEN:
                    self._storage.swap(_decision_path(instant), new.encode(), tag)
                    return new
                return decision
            except FileNotFoundError:
                return None
            except FileExistsError:
                continue  # somebody else was quicker

    def _read(self, instant: str) -> tuple[Decision, Hashable]:
        path = _decision_path(instant)
        try:
            content, tag = self._storage.read_tagged(path)
        except FileNotFoundError as exc:
            raise self._fenced(instant) from exc
        return Decision.decode(content, path=self._full(path)), tag

    def _put(self, decision: Decision) -> None:
        """Who finds it there has been helped: only the decision's own bytes are ever put under that name."""
        with suppress(FileExistsError):
            self._storage.create_new(decision.path, decision.data)

    def _fenced(self, instant: str) -> FileNotFoundError:
        return FileNotFoundError(f"instant {instant} of table {self._storage.uri} was fenced: it is being rolled back")

    def _full(self, path: str) -> str:
        return f"{self._storage.uri.rstrip('/')}/{path}"


def _decision_path(instant: str) -> str:
    return join(staging_folder(instant), _DECISION)
