"""A services job: rounds over one table in a thread, until it is told to end."""

from __future__ import annotations

import logging
import re
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

from hoodie.model.service_results import ServiceRound, ServiceRun
from hoodie.options.write import WriteOptions
from hoodie.services.rounds import Rounds
from hoodie.view.context import TableContext

log = logging.getLogger("hoodie")

KEPT = 100
"""Rounds that a job remembers."""
LONGEST_BACK_OFF_S = 900.0
"""After rounds that failed the next one comes later, but no later than this, or than it would come anyway."""
_VARIES = re.compile(r"\d+")
"""What differs in two texts of the same error: instants, seconds, numbers of processes."""

AtWork = Callable[[], tuple[TableContext, WriteOptions]]


class ServicesJob:
    """Table services beside writers; `HoodieTable.services` gives one. A `with` block runs it.

    At its end the job starts no more work, and waits for the work in progress: one plan of a service, one clean, one archiving.
    It leaves no claim and no lock behind.
    """

    def __init__(
        self,
        at_work: AtWork,
        *,
        uri: str,
        every_s: float,
        budget_s: float | None,
        on_round: Callable[[ServiceRound], None] | None = None,
    ) -> None:
        """`at_work` gives the table for each round; `told` gets each round when it is over, in the job's thread."""
        self._at_work = at_work
        self._uri = uri
        self._every_s = every_s
        self._on_round = on_round
        self._ended = Event()
        self._rounds = Rounds(budget_s, self._ended.is_set)
        self._history: deque[ServiceRound] = deque(maxlen=KEPT)
        self._failing: dict[str, str] = {}
        """Service -> the error that was logged last, while it lasts."""
        self._failed_in_a_row = 0
        self._thread: Thread | None = None
        self._one_at_a_time = Lock()

    @property
    def rounds(self) -> tuple[ServiceRound, ...]:
        """The rounds so far, oldest first; the last hundred of them."""
        return tuple(self._history)

    @property
    def last(self) -> ServiceRound | None:
        """The newest round; None before the first one is over."""
        return self._history[-1] if self._history else None

    @property
    def is_running(self) -> bool:
        """Whether its thread is at work, or waits for the next round."""
        return self._thread is not None and self._thread.is_alive()

    def __repr__(self) -> str:
        state = "running" if self.is_running else "not running"
        return f"<ServicesJob {self._uri}: every {self._every_s:g} s, {state}, {len(self._history)} rounds>"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the job: the first round comes at once. A job that was stopped may be started again."""
        if self.is_running:
            return
        self._ended.clear()
        self._thread = Thread(target=self._run, name="hoodie-services")
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Start no more work, and do not wait. A signal handler may call it."""
        self._ended.set()

    def stop(self) -> None:
        """Start no more work, and wait for the work in progress."""
        self.ask_to_stop()
        self.join()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the job has ended, for so many seconds at most."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def run_once(self) -> ServiceRound:
        """Run one round in this thread, after the current one of the job's own thread."""
        with self._one_at_a_time:
            round_ = self._round()
            self._note(round_)
        return round_

    def _run(self) -> None:
        while not self._ended.is_set():
            started = time.monotonic()
            self.run_once()
            self._ended.wait(max(0.0, self._pause_s() - (time.monotonic() - started)))

    def _pause_s(self) -> float:
        """From the beginning of a round to that of the next."""
        if not self._failed_in_a_row:
            return self._every_s
        later = self._every_s * 2.0 ** min(self._failed_in_a_row - 1, 16)
        return max(self._every_s, min(later, LONGEST_BACK_OFF_S))

    def _round(self) -> ServiceRound:
        began, started = datetime.now(UTC), time.monotonic()
        try:
            context, options = self._at_work()
        except Exception as exc:  # noqa: BLE001 - whatever it is, it may be over by the next round
            return ServiceRound(
                self._uri,
                began.strftime("%Y-%m-%dT%H:%M:%SZ"),
                (ServiceRun("opening", error=str(exc)),),
                seconds=time.monotonic() - started,
            )
        return self._rounds.run(context, options)

    def _note(self, round_: ServiceRound) -> None:
        self._history.append(round_)
        self._failed_in_a_row = self._failed_in_a_row + 1 if round_.errors else 0
        if round_.did:
            log.info("%s", round_)
        failing = {run.service: run.error or "" for run in round_.errors}
        for service, error in failing.items():
            if _kind(error) != _kind(self._failing.get(service, "")):
                log.warning("%s of table %s failed, and is tried again: %s", service, self._uri, error)
        for service in self._failing.keys() - failing.keys():
            log.info("%s of table %s works again", service, self._uri)
        self._failing = failing
        if self._on_round is not None:
            self._on_round(round_)


def _kind(error: str) -> str:
    """Equal for two texts of the same error."""
    return _VARIES.sub("#", error)
