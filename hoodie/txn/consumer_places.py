"""Moves the position of a named consumer: only from where its reader found it, so that the slower of two readers gets an error.

A storage that compares and swaps does so. Elsewhere the table lock is held while the file is looked at again and replaced.
"""

from __future__ import annotations

from collections.abc import Container, Hashable
from contextlib import suppress

from hoodie.errors import CommitConflictError, CorruptFileError, LockError
from hoodie.view.consumers import ConsumerPlace, StoredPlace, encode_place, place_path, read_place, swaps
from hoodie.view.context import TableContext


def create_place(context: TableContext, place: ConsumerPlace) -> StoredPlace:
    """The place of a new consumer; where another process was faster, the one that it made."""
    try:
        context.storage.create_new(place_path(place.name), encode_place(place))
    except FileExistsError:
        pass
    except OSError:
        if _standing(context, place) is None:
            raise
    result = read_place(context.storage, place.name)
    if result is None:
        raise CommitConflictError(
            f"consumer {place.name!r} of table {context.storage.uri} was dropped by another process when it was made; try again"
        )
    return result


def move_place(
    context: TableContext, read: StoredPlace, place: ConsumerPlace, *, ours: Container[str] = ()
) -> StoredPlace:
    """Put a place where `read` stands.

    Args:
        ours: revisions that this reader has tried to write, without an answer.

    Raises:
        CommitConflictError: another process has moved or dropped the consumer since; its place is as that has left it.
        LockError: the table lock was not granted, or lost; the place was not moved.
    """
    try:
        return StoredPlace(place, _swap(context, read, place))
    except (FileExistsError, FileNotFoundError):
        result = read_place(context.storage, place.name)
        if result is None:
            raise CommitConflictError(
                f"consumer {place.name!r} of table {context.storage.uri} was dropped by another process since it was read here; "
                "its place was not moved. Opened again, it is a new consumer"
            ) from None
        if result.place.revision == place.revision:
            return result
        if result.place.revision not in ours:
            raise CommitConflictError(_moved(context, read.place, result.place, place)) from None
        return move_place(context, result, place)
    except OSError:
        # The answer may have been lost, and not the effect.
        standing = _standing(context, place)
        if standing is None:
            raise
        return standing


def drop_place(context: TableContext, name: str) -> None:
    """Forget a consumer; nothing happens where there is none."""
    if swaps(context.storage):
        context.storage.delete(place_path(name))
        return
    with context.lock.held(context.lock_timeout_s):
        context.storage.delete(place_path(name))


def _swap(context: TableContext, read: StoredPlace, place: ConsumerPlace) -> Hashable:
    """The new tag. Raises FileExistsError: another place stands there. FileNotFoundError: none does."""
    storage, path, data = context.storage, place_path(place.name), encode_place(place)
    if swaps(storage):
        return storage.swap(path, data, read.tag)
    with context.lock.held(context.lock_timeout_s):
        stored = read_place(storage, place.name)
        if stored is None:
            raise FileNotFoundError(path)
        if stored.place.revision != read.place.revision:
            raise FileExistsError(path)
        if not context.lock.is_held():
            raise LockError(
                f"the lock of table {storage.uri} ended before consumer {place.name!r} was moved; its place is as it was, try again"
            )
        storage.replace(path, data)
    return None


def _standing(context: TableContext, place: ConsumerPlace) -> StoredPlace | None:
    """The place as it is stored, if it is this very one."""
    with suppress(OSError, CorruptFileError):
        result = read_place(context.storage, place.name)
        if result is not None and result.place.revision == place.revision:
            return result
    return None


def _moved(context: TableContext, read: ConsumerPlace, now: ConsumerPlace, target: ConsumerPlace) -> str:
    who = f"by {now.by}" if now.by is not None else "by another process"
    return (
        f"consumer {read.name!r} of table {context.storage.uri} was moved {who}, to {shown(now.position)}, since it was read here "
        f"at {shown(read.position)}; it was not moved to {shown(target.position)}. What was read here may have been read there "
        "too: let one process at a time use a name, or give each its own"
    )


def shown(position: str | None) -> str:
    """A place, for messages."""
    return "the beginning" if position is None else position
