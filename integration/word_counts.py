"""The example that counts words, as processes that are killed: what is started, seen, and killed; and what its counts have to be.

All processes of a start are in a session of their own, so that they are found by its id. Nothing else is ever killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

import hoodie.kv
from examples import word_count
from hoodie.errors import HoodieError
from hoodie.kv.wal import Replay
from hoodie.storage.uri import open_storage
from integration.hudi_client import ROOT
from tests.servers.java import SHORT_LIVED

PATIENCE_S = 300.0
_POLL_S = 0.01
_TEXTS = 3
"""For a batch: so there is always one more to come, and never a long way to the end."""
_SCRIPT = str(ROOT / "examples/word_count.py")
_QUICKER = "import sys, word_count; word_count.count_words(*sys.argv[1:4], once=sys.argv[4:] != [], heartbeat_s=4)"
"""As the script, but the writer of a process that was killed is taken for dead sooner, where only its silence tells."""
_SPARK = (
    "--master local[2,4] --conf spark.ui.enabled=false --conf spark.sql.shuffle.partitions=2 "
    f"--driver-java-options '{' '.join(SHORT_LIVED)}' pyspark-shell"
)
VOCABULARY = [f"{'äöü'[n % 3] if n % 7 == 0 else ''}word{n}" for n in range(150)]


class Process(NamedTuple):
    pid: int
    parent: int
    command: str


class Seen(NamedTuple):
    """How far a stream is."""

    planned: int
    """The last batch that its checkpoint plans; -1: none."""
    done: int
    """The last one that it knows to be written."""
    windows: Sequence[int]
    """The last window of each bucket that readers see; empty where there is no store yet."""
    turns: int
    """How often buckets were taken by a writer, or given a new state."""

    @property
    def is_half(self) -> bool:
        return self.planned > self.done and len({window == self.planned for window in self.windows}) == 2


class WordCount:
    """One store with its stream."""

    def __init__(self, folder: Path, store: str, *, seed: int, quicker: bool = False) -> None:
        self.texts, self.checkpoint, self.store = folder / "texts", folder / "checkpoint", store
        self.texts.mkdir(parents=True)
        self.log = folder / "log"
        self.expected: Counter[str] = Counter()
        self._chance = Random(seed)
        self._program = ["-c", _QUICKER] if quicker else [_SCRIPT]
        self._files = 0
        self._process: subprocess.Popen[bytes] | None = None

    # -- what comes

    def feed(self) -> None:
        """One more text, which comes whole."""
        words = self._chance.choices(VOCABULARY, k=self._chance.randint(40, 400))
        hidden = self.texts / f".{self._files}"
        hidden.write_text("".join(word + self._chance.choice(" \n\t") for word in words), encoding="utf-8")
        self.expected.update(words)  # before it counts, so that a reader never sees more
        hidden.rename(self.texts / f"{self._files}.txt")
        self._files += 1

    # -- what runs

    def start(self, *more: str) -> None:
        assert self._process is None
        paths = [str(ROOT), str(ROOT / "spark_ext"), str(ROOT / "examples")]
        environment = {
            "PYTHONPATH": os.pathsep.join(paths),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": _SPARK,
        }
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._program, str(self.texts), self.store, str(self.checkpoint), *more],
                cwd=self.texts.parent,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def until(self, moment: Callable[[Seen], bool]) -> bool:
        """Wait for it while texts come. False: the process has ended before."""
        assert self._process is not None
        deadline_s = time.monotonic() + PATIENCE_S
        while not moment(seen := self.seen()):
            if self._process.poll() is not None:
                return False
            assert time.monotonic() < deadline_s, f"it did not come: {seen}\n{self.tail()}"
            if self._files < _TEXTS * (seen.planned + 3):
                self.feed()
            time.sleep(_POLL_S)
        return True

    def kill(self, *, workers_too: bool = True) -> None:
        """The driver and its JVM; workers of Python that are not killed, too, end when they miss it."""
        assert self._process is not None
        while True:
            found = [each for each in self.processes() if workers_too or "pyspark.daemon" not in each.command]
            for each in found:
                _kill(each.pid)
            if not found:
                break
            self._process.poll()
        self._process.wait()
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.kill()

    def kill_workers(self) -> int:
        """Only the processes that run tasks of Python; gives how many there were."""
        found = self.processes()
        daemons = {each.pid for each in found if "pyspark.daemon" in each.command}
        workers = [each.pid for each in found if each.pid in daemons and each.parent in daemons]
        return sum(_kill(pid) for pid in workers)

    def processes(self) -> list[Process]:
        """Those that run of what was started last."""
        assert self._process is not None
        return [each for each in _processes(self._process.pid) if each.command]

    def finish(self) -> None:
        """Count what is there, to the end."""
        self.start("--once")
        assert self._process is not None
        try:
            assert self._process.wait(2 * PATIENCE_S) == 0, self.tail()
        finally:
            self.kill()

    # -- what is seen

    def seen(self) -> Seen:
        planned, done = (_last(self.checkpoint / name) for name in ("offsets", "commits"))
        try:
            store = hoodie.kv.open_store(self.store, create=False)
        except FileNotFoundError:
            return Seen(planned, done, (), 0)
        states = [store.manifest(bucket) for bucket in range(store.buckets)]
        return Seen(planned, done, [state.window for state in states], sum(state.number for state in states))

    def committed(self) -> list[int | None]:
        """The last window of each bucket, those in its log included. Asked of buckets that nobody writes to."""
        try:
            store = hoodie.kv.open_store(self.store, create=False)
        except FileNotFoundError:
            return []
        found: list[int | None] = []
        for bucket in range(store.buckets):
            state = store.manifest(bucket)
            storage = open_storage(f"{self.store.rstrip('/')}/buckets-00000001/{bucket:05d}")
            windows = [state.window, *(window.id for window in Replay(storage, state.wal_from))]
            found.append(max(windows))
        return found

    def check_readers(self) -> None:
        """What another process is shown now: no word more often than it came."""
        try:
            shown = word_count.top(self.store, 10**6)
        except HoodieError:
            return
        too_many = {word: (n, self.expected[word]) for n, word in shown if n > self.expected[word]}
        assert not too_many

    def counts(self) -> dict[str, int]:
        return {word: n for n, word in word_count.top(self.store, 10**6)}

    def tail(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-6000:] if self.log.exists() else ""


def _last(folder: Path) -> int:
    """Of the files of a checkpoint, which are numbered."""
    return max((int(name) for name in _names(folder) if name.isdigit()), default=-1)


def _names(folder: Path) -> Sequence[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return ()


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _processes(session: int) -> list[Process]:
    """The living processes of a session."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            stat = Path(f"/proc/{entry}/stat").read_text(encoding="utf-8", errors="replace")
            command = Path(f"/proc/{entry}/cmdline").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, parent, _, of = stat.rpartition(")")[2].split()[:4]
        if int(of) == session and state not in "ZX":
            found.append(Process(int(entry), int(parent), command.replace(b"\0", b" ").decode(errors="replace")))
    return found


MOMENTS: Mapping[str, Callable[[Seen, Seen], bool]] = {
    "a batch is planned": lambda before, now: now.planned > max(now.done, before.planned),
    "a bucket is taken": lambda before, now: now.turns > before.turns,
    "half of the buckets have the batch": lambda _, now: now.is_half,
    "a batch is done": lambda before, now: now.done > before.done,
}
"""By what was seen before the start, and what is seen now."""
