"""The table that a server serves: as new as the newest of its clients, and read once for all of them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from threading import Lock, RLock

from hoodie.model.enums import Action
from hoodie.model.files import FileSlice
from hoodie.model.instant import Instant, format_instant
from hoodie.storage.base import FileInfo
from hoodie.timeline.clock import zone_of
from hoodie.timeline.timeline import Timeline, completed_and_compactions, timeline_hash
from hoodie.timeline_server.queries import Questions, latest_on_storage
from hoodie.view.context import TableContext
from hoodie.view.listing import AllFiles, Listing
from hoodie.view.view import FileSystemView

NO_INSTANT = "0"
"""What a client of Apache Hudi has as its last instant where there is none."""
_MOST_ANSWER_BYTES = 64 << 20
"""Answers that are kept for the next who asks the same."""
_PASSED = 16
_MOST_GROUPS = 100_000
"""File groups that a view keeps, in some hundred megabytes; beyond that it is made anew from the files in the store."""


@dataclass
class State:
    """The table under one timeline. Its answers stay the same until a client knows a newer one."""

    view: FileSystemView
    questions: Questions
    listing: Listing
    began_s: float
    """Before its timeline was loaded, by the clock of the server."""
    answers: dict[Hashable, bytes] = field(default_factory=dict)
    answer_bytes: int = 0

    @property
    def timeline(self) -> Timeline:
        return self.view.timeline

    @cached_property
    def reference_instants(self) -> tuple[Instant, ...]:
        """The instants by which a client tells where it stands."""
        return completed_and_compactions(self.timeline)

    @cached_property
    def hashes(self) -> frozenset[str]:
        """Of every way in which a client at the same commits may have counted them.

        Apache Hudi's client takes all that is completed and pending compactions, and its server only writes. An asynchronous clean
        may be completed after the client has looked.
        """
        counted = [self.reference_instants, self.questions.instants]
        counted.append(tuple(i for i in self.reference_instants if i.is_completed or i.action is Action.COMPACTION))
        if self.reference_instants and self.reference_instants[-1].action is Action.CLEAN:
            counted.append(self.reference_instants[:-1])
        return frozenset(timeline_hash(each, self.timeline.layout) for each in counted)

    @property
    def hash(self) -> str:
        return timeline_hash(self.reference_instants, self.timeline.layout)

    @property
    def last(self) -> str:
        return self.reference_instants[-1].time if self.reference_instants else NO_INSTANT

    def fits(self, last: str, digest: str) -> bool:
        """Whether a client is at the same commits as this state."""
        if not self.reference_instants:
            return last == NO_INSTANT
        if digest not in self.hashes:
            return False
        return last < self.reference_instants[0].time or any(i.time == last for i in self.reference_instants)

    def keep(self, question: Hashable, answer: bytes) -> None:
        if self.answer_bytes + len(answer) > _MOST_ANSWER_BYTES:
            self.answers.clear()
            self.answer_bytes = 0
        if len(answer) <= _MOST_ANSWER_BYTES // 4:
            self.answers[question] = answer
            self.answer_bytes += len(answer)


class ServedTable:
    """Thread-safe. `now_s`: a clock that never goes back."""

    def __init__(self, context: TableContext, now_s: Callable[[], float] = time.monotonic) -> None:
        self.context = context
        self._now_s = now_s
        self._loading = Lock()
        self._asking = RLock()
        self._state: State | None = None
        self._passed: deque[frozenset[str]] = deque(maxlen=_PASSED)
        """Hashes of the states before, the newest last."""

    @property
    def uri(self) -> str:
        return self.context.storage.uri

    def at(self, last: str, digest: str | None) -> State:
        """The table as it was when the client looked, or later. A client that does not say where it stands gets it as of now."""
        state, asked_s = self._state, self._now_s()
        if state is not None and digest is not None and state.fits(last, digest):
            return state
        with self._loading:
            state = self._state
            # What another request has loaded since this one came is as new as this one would find it.
            fits = state is not None and digest is not None and state.fits(last, digest)
            if state is None or not (fits or state.began_s >= asked_s):
                state = self._state = self._loaded(state)
            return state

    def has_passed(self, digest: str) -> bool:
        """Whether a client that tells this hash stands where the table was a while ago: it has every file that the client may miss."""
        return any(digest in hashes for hashes in self._passed)

    def now(self) -> State:
        return self.at(NO_INSTANT, None)

    def forget(self) -> None:
        """Read all anew: a client says that files were moved without a word on the timeline."""
        with self._loading:
            self.context.forget_files()
            self._state = None

    def answer(self, state: State, question: Hashable, ask: Callable[[], bytes], *, keep: bool = True) -> bytes:
        """The cached answer, or that of `ask`. One is computed at a time; cached answers do not wait for it."""
        answer = state.answers.get(question)
        if answer is not None:
            return answer
        with self._asking:
            answer = state.answers.get(question)
            if answer is None:
                answer = ask()
                if keep:
                    state.keep(question, answer)
                self._let_go(state)
            return answer

    def files(self, state: State, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        return state.listing.files(partition_paths)

    def all_files(self, state: State) -> AllFiles:
        return state.listing.all_files()

    def latest_with_inflight(self, state: State, partition_path: str) -> list[FileSlice]:
        """The newest slice of each group as it stands on storage, with what pending writes have put there."""
        (infos,) = self.context.listing.files([partition_path])
        return latest_on_storage(partition_path, infos, state.timeline, state.view.pending_compactions())

    def completions(self, state: State) -> dict[Instant, str]:
        """When instants came to where they are, if their names do not say it: by the time of the file's last change, as in Hudi."""
        if state.timeline.by_completion:
            return {}
        config, active = self.context.config, self.context.active
        changed = {info.path: info.mtime_s for info in self.context.storage.list(config.timeline_folder)}
        zone = zone_of(config.timezone)
        return {
            instant: format_instant(datetime.fromtimestamp(changed[path], zone))
            for instant in state.timeline
            if (path := active.path(instant)) in changed
        }

    def _loaded(self, before: State | None) -> State:
        began_s = self._now_s()
        last_view = before.view if before is not None else None
        snapshot = self.context.snapshot(last_view=last_view)
        if before is not None and snapshot.view is before.view:
            before.began_s = began_s
            return before
        if before is not None:
            self._passed.append(before.hashes)
        listing = self.context.listing_under(snapshot.timeline)
        return State(snapshot.view, Questions(snapshot.view, self.context.active), listing, began_s)

    def _let_go(self, state: State) -> None:
        content = state.view.content
        if sum(map(len, content.groups.values())) <= _MOST_GROUPS:
            return
        bare = content._replace(groups={}, by_id={}, partitions=None)
        state.view = FileSystemView.of(
            bare, state.listing, self.context.active, self.context.archived(), skeletons=self.context.skeletons
        )
        state.questions = Questions(state.view, self.context.active)
