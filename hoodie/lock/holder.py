"""Which process holds a lock or a mark, as a note that others can read, also on other machines."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple


class Holder(NamedTuple):
    """A process, known beyond the reuse of its id: by when it started, and by the start of its machine."""

    host: str
    machine: str
    """The start of the machine, and the space that its process ids are in; empty where the system does not say."""
    pid: int
    started: str
    """The start of the process in the system's own words; empty where it does not say."""
    since: str
    """When it took what it holds."""

    def note(self) -> dict[str, str | int]:
        return dict(self._asdict())

    def is_dead(self) -> bool:
        """True only where it is certain: the process was one of this machine, and is gone. False may mean not known."""
        if not (self.machine and self.started) or (self.host, self.machine) != (socket.gethostname(), _machine()):
            return False
        return _started(self.pid) != self.started

    def is_this_process(self) -> bool:
        return self._replace(since="") == this_process()._replace(since="")

    def __str__(self) -> str:
        """As a phrase for a message."""
        return phrase(host=self.host, pid=self.pid, since=self.since)


def this_process() -> Holder:
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Holder(socket.gethostname(), _machine(), os.getpid(), _started(os.getpid()), since)


def read_holder_note(note: Mapping[str, object]) -> Holder | None:
    """The holder that a note names; None when it names none, as notes of other programs."""
    host, machine, pid, started, since = (note.get(field) for field in Holder._fields)
    if not (isinstance(host, str) and isinstance(pid, int) and isinstance(since, str)):
        return None
    return Holder(host, str(machine or ""), pid, str(started or ""), since)


def phrase(*, host: str, pid: int | str, since: str) -> str:
    ours = str(pid) == str(os.getpid()) and host == socket.gethostname()
    process = f"this process, pid {pid}," if ours else f"process {pid}"
    return f"{process} on {host} since {since}"


@cache
def _machine() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When the process started, in ticks since the machine did; empty when there is none, or only its remains."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = (
                file.read().rpartition(b")")[2].split()
            )  # its name stands before, in brackets, and may hold anything
    except OSError:
        return ""
    state, ticks = fields[0], fields[19]
    return "" if state in b"ZX" else ticks.decode()
