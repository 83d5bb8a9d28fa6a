"""Whose changes of an index outside of the table may not count.

Before a write changes the index it leaves an empty file `.hoodie/.hoodie_py/index_changes/<instant>.puts`, or `.deletes` where it
deletes entries, too. It is removed when the instant is completed. So the file of a write that died or lost stays: its entries do not
count, also when the timeline has long begun later than its instant. After deletes a key without an entry may be stored all the same. A
rollback or restore of completed commits leaves such a file for each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hoodie.model.instant import InstantTime
from hoodie.model.names import INDEX_CHANGES, join
from hoodie.options.values import OUTSIDE_INDEXES
from hoodie.storage.base import Storage
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import TableContext

_PUTS, _DELETES = ".puts", ".deletes"


@dataclass(frozen=True)
class DoubtfulChanges:
    instants: frozenset[str]
    """Entries that these put do not count."""
    deletes: bool
    """Entries may have been deleted that count."""


def note_changes(storage: Storage, instant: InstantTime, *, deletes: bool) -> None:
    """Before a write changes the index."""
    storage.replace(join(INDEX_CHANGES, instant + (_DELETES if deletes else _PUTS)), b"")


def settle_changes(storage: Storage, instant: InstantTime) -> None:
    """After its instant was completed."""
    storage.each(storage.delete, [join(INDEX_CHANGES, instant + kind) for kind in (_PUTS, _DELETES)])


def note_undone(context: TableContext, instants: Iterable[InstantTime]) -> None:
    """Before completed instants are taken back: what they deleted from the index may be stored again."""
    if context.config.index in OUTSIDE_INDEXES:
        for instant in instants:
            note_changes(context.storage, instant, deletes=True)


def doubtful_changes(storage: Storage, timeline: Timeline) -> DoubtfulChanges:
    """What may not count of what is in the index, for a reader of this timeline. Ask after the index was asked: by then whoever
    deleted an entry has said so.
    """
    names = [name.rpartition(".") for name in storage.names(INDEX_CHANGES)]
    pairs = [(time, kind) for time, _, kind in names if time not in timeline.completed_times]
    return DoubtfulChanges(frozenset(time for time, _ in pairs), any(kind == _DELETES[1:] for _, kind in pairs))


def forget_deletes(storage: Storage) -> None:
    """After the index was built anew, while no write was at work: what it lacks is not stored."""
    for name in storage.names(INDEX_CHANGES):
        time, _, kind = name.rpartition(".")
        if kind == _DELETES[1:]:
            note_changes(storage, InstantTime(time), deletes=False)
            storage.delete(join(INDEX_CHANGES, name))
