"""Who writes an instant, as its inflight and its completed file say it: for errors about two writers, and to see whether both
agree by the same lock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.model.payloads import CommitMetadata

WRITER = "hoodie.python.writer"
"""Key in the extra metadata: a JSON object with host, process id, when the write began, and the kind of its lock."""
_LOCK = "lock"


class WriterNote(NamedTuple):
    who: Holder | None
    lock: str
    """The kind of lock; empty: not known."""


def format_writer(lock: str) -> dict[str, str]:
    """The entry for a write that this process begins."""
    holder = this_process()
    # What tells a process from a later one with its number is of use to this machine only, and stands in its mark.
    note = {"host": holder.host, "pid": holder.pid, "since": holder.since, _LOCK: lock}
    return {WRITER: json.dumps(note)}


def writer_of(metadata: CommitMetadata | None) -> WriterNote:
    """What the metadata say; nothing where another program wrote them, or where the entry is damaged."""
    try:
        note = json.loads(metadata.extra[WRITER]) if metadata is not None else None
    except (KeyError, ValueError):
        note = None
    if not isinstance(note, Mapping):
        return WriterNote(None, "")
    lock = note.get(_LOCK)
    return WriterNote(read_holder_note(note), lock if isinstance(lock, str) else "")
