"""Writers and holders of locks as processes of their own, which tests stop, let go on and kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from hoodie.options.concurrency import ConcurrencyOptions
from hoodie.options.parse import parse_write_options
from hoodie.storage.base import RenamingStorage
from hoodie.storage.local import LocalStorage
from tests.servers.swapping import SwappingStorage

ROOT = Path(__file__).resolve().parents[2]

HOLDER = """
import sys
from tests.lock.processes import options_of, storage_of
from hoodie.lock.providers import coordinate
lock = coordinate(storage_of(sys.argv[1]), options_of(sys.argv[2:])).lock
print("ready", flush=True)
for line in sys.stdin:
    verb, *more = line.split()
    try:
        print(getattr(lock, verb)(*map(float, more)), flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).replace("\\n", " "), flush=True)
"""

COUNTER = """
import sys
from tests.lock.processes import options_of, storage_of
from hoodie.lock.providers import coordinate
storage = storage_of(sys.argv[1])
lock = coordinate(storage, options_of(sys.argv[2:])).lock
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(line)):
        with lock.held(60):
            storage.replace("counter", b"%d" % (int(storage.read("counter")) + 1))
    print("done", flush=True)
"""

WRITER = """
import os, signal, sys
from hoodie.table import open_at
from hoodie.txn.transaction import Transaction
from tests.lock.processes import storage_of
from tests.memory_tables import Input, batch
table = open_at(storage_of(sys.argv[1]), options=dict(pair.split("=", 1) for pair in sys.argv[2:]))
print("ready", flush=True)
for line in sys.stdin:
    key, value, stop_at = line.split()
    usual = getattr(Transaction, stop_at, None)
    def stops(self, *args, **named):
        setattr(Transaction, stop_at, usual)
        result = usual(self, *args, **named) if stop_at == "_check" else None
        os.kill(os.getpid(), signal.SIGSTOP)
        return result if stop_at == "_check" else usual(self, *args, **named)
    if usual is not None:
        setattr(Transaction, stop_at, stops)
    try:
        print(table.upsert(batch([Input(key, "a", int(value), int(value))])).instant, flush=True)
    except Exception as error:
        print(type(error).__name__, str(error).replace("\\n", " "), flush=True)
"""


def storage_of(path: str) -> RenamingStorage:
    """`swap:<folder>` or a folder."""
    kind, colon, folder = path.rpartition(":")
    return SwappingStorage(folder) if colon and kind == "swap" else LocalStorage(path)


def options_of(pairs: list[str]) -> ConcurrencyOptions:
    return parse_write_options(dict(pair.split("=", 1) for pair in pairs)).write.concurrency


class Process:
    """One of the programs above; `ask` sends a line and gives the answer."""

    def __init__(self, program: str, path: str, options: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, path, *(f"{key}={value}" for key, value in options.items())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        )
        assert self.answer() == "ready"

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, line: str) -> str:
        self.tell(line)
        return self.answer()

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def wait_until_stopped(self) -> None:
        """It stops itself."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def stop(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
