"""Positions of named consumers in a table: how far each has read, and which commits it has not.

`.hoodie/.hoodie_py/consumers/<name>.json` is one JSON object: `position` (null: the beginning), `before_images`, `moved_at_ms`,
`revision`, which is another one in each file, and the process that wrote it. How one is moved: `txn/consumer_places.py`.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple, TypeGuard

from hoodie.errors import CorruptFileError, OptionError
from hoodie.lock.holder import Holder, read_holder_note, this_process
from hoodie.model.enums import Action, WriteOperation
from hoodie.model.instant import Instant, InstantRange, InstantTime, is_instant_time, parse_instant
from hoodie.model.names import CONSUMERS, hoodie_command, join
from hoodie.model.service_results import ConsumerInfo, ConsumerLag
from hoodie.storage.base import ConditionalStorage, Storage
from hoodie.timeline.active import ActiveTimeline
from hoodie.timeline.timeline import Timeline
from hoodie.view.context import Snapshot, TableContext

log = logging.getLogger("hoodie")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_JSON = ".json"
_DIGITS = (14, 17)
"""Of an instant time, old and new."""


@dataclass(frozen=True)
class ConsumerPlace:
    """What the file of a consumer says."""

    name: str
    position: InstantTime | None
    """None: the beginning of the table."""
    before_images: bool
    """Whether it reads the change feed."""
    moved_at_ms: int
    revision: str = field(default_factory=lambda: secrets.token_hex(8))
    """Never the same twice: a tag may be nothing but the hash of the bytes."""
    by: Holder | None = field(default_factory=this_process)


class StoredPlace(NamedTuple):
    place: ConsumerPlace
    tag: Hashable
    """For `ConditionalStorage.swap`; None where the storage has none."""


def check_name(name: object) -> str:
    """Raises OptionError unless the text can name a consumer: it becomes a file name on any storage."""
    if not isinstance(name, str) or _NAME.fullmatch(name) is None:
        raise OptionError(
            f"{name!r:.120} is not a name for a consumer: take up to 100 letters, digits, dots, hyphens and underscores of ASCII, "
            "with a letter or a digit first"
        )
    return name


def place_path(name: str) -> str:
    return join(CONSUMERS, f"{name}{_JSON}")


def encode_place(place: ConsumerPlace) -> bytes:
    note = {
        "position": place.position,
        "before_images": place.before_images,
        "moved_at_ms": place.moved_at_ms,
        "revision": place.revision,
    }
    return json.dumps(note | (place.by.note() if place.by is not None else {})).encode()


def decode_place(data: bytes, *, name: str, table: str) -> ConsumerPlace:
    """Raises CorruptFileError where that is no file of a consumer."""
    try:
        note = json.loads(data)
        position, images, moved = note["position"], note["before_images"], note["moved_at_ms"]
        revision = note["revision"]
        if not (position is None or isinstance(position, str)):
            raise TypeError("position is not text")
        if position is not None and not (is_instant_time(position) and len(position) in _DIGITS):
            raise ValueError(f"position {position!r:.50} is not an instant")
        if position is not None:
            parse_instant(position)
        if not (isinstance(images, bool) and type(moved) is int and isinstance(revision, str)):
            raise TypeError("fields of other types")
        datetime.fromtimestamp(moved / 1000, UTC)
        by = read_holder_note(note)
    except (ValueError, KeyError, TypeError, OverflowError, OSError, RecursionError) as exc:
        raise CorruptFileError(
            f"{place_path(name)} of table {table} does not say where consumer {name!r} stands ({exc!r:.120}): "
            f"drop the consumer ({hoodie_command('consumers', table, '--drop', name)}), and start it again from its last known place"
        ) from exc
    return ConsumerPlace(name, None if position is None else InstantTime(position), images, moved, revision, by)


def swaps(storage: Storage) -> TypeGuard[ConditionalStorage]:
    """Whether a file can be compared and swapped. What wraps a storage has the methods, whatever the storage has."""
    return isinstance(storage.lock_root, ConditionalStorage)


def read_place(storage: Storage, name: str) -> StoredPlace | None:
    """Where a consumer stands; None: there is none of that name.

    Raises:
        CorruptFileError: its file is damaged.
    """
    tag: Hashable = None
    try:
        if swaps(storage):
            data, tag = storage.read_tagged(place_path(name))
        else:
            data = storage.read(place_path(name))
    except FileNotFoundError:
        return None
    return StoredPlace(decode_place(data, name=name, table=storage.uri), tag)


def consumer_names(storage: Storage) -> list[str]:
    """All consumers of the table, those with damaged files among them."""
    names = (name.removesuffix(_JSON) for name in storage.names(CONSUMERS) if name.endswith(_JSON))
    return sorted(name for name in names if _NAME.fullmatch(name))


def stored_places(storage: Storage) -> list[ConsumerPlace]:
    """The places of all consumers, by name. A damaged file is named in the log: others go on without it."""

    def read(name: str) -> ConsumerPlace | None:
        try:
            stored = read_place(storage, name)
        except CorruptFileError as exc:
            log.warning("%s", exc)
            return None
        return None if stored is None else stored.place

    places = storage.each(read, consumer_names(storage))
    return [place for place in places if place is not None]


def consumers_of(context: TableContext, snapshot: Snapshot) -> list[ConsumerInfo]:
    """The consumers of a table and their lag, by name."""
    return [
        ConsumerInfo(
            place.name,
            place.position,
            place.moved_at_ms,
            lag_behind(context, snapshot, place.position),
            place.before_images,
        )
        for place in stored_places(context.storage)
    ]


def lag_behind(context: TableContext, snapshot: Snapshot, position: InstantTime | None) -> ConsumerLag:
    """What was committed after a position."""
    positions = [i.position for i in unread_commits(snapshot.active, snapshot.timeline, position)]
    if begins_in_archive(snapshot.timeline, position) and snapshot.archived.files:
        span = InstantRange(position)
        old = (i for i in snapshot.archived.commits if i.time not in snapshot.timeline.commit_at)
        positions += [i.position for i in old if span.contains(i.position)]
    oldest = min(positions, default=None)
    return ConsumerLag(len(positions), 0.0 if oldest is None else max(0.0, context.clock.age_s(oldest)))


def begins_in_archive(timeline: Timeline, position: InstantTime | None) -> bool:
    """Whether commits after the position may have been archived."""
    start = timeline.start
    return start is not None and (position is None or position < start)


def unread_commits(active: ActiveTimeline, timeline: Timeline, position: InstantTime | None) -> list[Instant]:
    """The commits of the active timeline that changed rows after a position, oldest first."""
    moved = timeline.compactions | timeline.log_compactions
    commits = [i for i in timeline.completed_in(InstantRange(position)) if i.time not in moved]
    unread = [i for i in commits if not (i.action is Action.REPLACECOMMIT and _is_clustering(active, i))]
    return sorted(unread, key=lambda i: i.position)


def _is_clustering(active: ActiveTimeline, instant: Instant) -> bool:
    return active.read_commit(instant).operation is WriteOperation.CLUSTER
