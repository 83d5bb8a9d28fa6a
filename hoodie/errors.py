"""Every error that hoodie raises on purpose: one tree under `HoodieError`.

A class exists where a caller would act differently. A message says what failed (with its path, column or
instant), what was found instead, and what to do.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(text: str) -> str:
    """A text that may quote a table, as a terminal may show it: control characters, those that turn the direction of writing, and
    halves of characters are written out by their numbers. Lines and tabs stay.
    """
    return _UNSAFE.sub(lambda match: ascii(match[0])[1:-1], text)


class HoodieError(Exception):
    """Root of all errors of this package. What its message quotes of a table is harmless to a terminal."""

    def __str__(self) -> str:
        return harmless(super().__str__())


class TableNotFoundError(HoodieError, FileNotFoundError):
    """There is no table at the path."""


class TableExistsError(HoodieError, FileExistsError):
    """There is already a table at the path."""


class TableChangedError(HoodieError):
    """The table was created again, or its properties changed, since it was opened; open it again."""


class OptionError(HoodieError, ValueError):
    """An option is unknown, malformed, or contradicts the table."""


class SchemaError(HoodieError, ValueError):
    """The data does not fit the table's schema."""


class KeyFieldError(HoodieError, ValueError):
    """A record key, partition or ordering column is missing or holds a value that it must not hold."""


class DuplicateKeyError(HoodieError, ValueError):
    """An insert with the policy to fail on stored keys found one; nothing was written."""


class CommitConflictError(HoodieError):
    """Another writer changed the same file groups; nothing of this write is visible."""


class CommitRefusedError(HoodieError, ValueError):
    """A commit failed the check of a validator; nothing of it is visible."""


class CommitOutcomeUnknownError(HoodieError):
    """It is not known whether the commit landed; nothing was deleted."""


class StoreFencedError(HoodieError):
    """Another writer has taken a bucket of a key-value store over; nothing of the window that was written counts."""


class LockError(HoodieError, TimeoutError):
    """The table lock, or a wait that stands for it, was not granted in time."""


class KeyIndexError(HoodieError):
    """An index that is kept outside of the table failed or does not answer; nothing of the write is visible."""


class HiveSyncError(HoodieError):
    """The table could not be registered in a Hive metastore; its rows and commits are as they were."""


class CorruptFileError(HoodieError, ValueError):
    """A file of the table is truncated or does not decode; the message names it."""


class MissingFileError(CorruptFileError):
    """A file that a commit wrote is gone, and nothing explains why."""


class CorruptBlockError(CorruptFileError):
    """The bytes at `offset` are no whole log block."""

    def __init__(self, message: str, *, offset: int) -> None:
        super().__init__(message)
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions with keyword-only arguments do not survive pickling between engine workers by themselves.
        return (_corrupt_block_error, (str(self), self.offset))


def _corrupt_block_error(message: str, offset: int) -> CorruptBlockError:
    return CorruptBlockError(message, offset=offset)


class InstantNotFoundError(HoodieError, LookupError):
    """An instant is not on the timeline (any more); the message names the earliest and the latest."""


class StorageError(HoodieError, OSError):
    """The storage failed, is not there or does not answer; the message names the path, and `errno` is the system's."""


class AccessDeniedError(StorageError, PermissionError):
    """The storage refuses it: no permission, a read-only place, credentials that have expired."""


class StorageFullError(StorageError):
    """The storage has no room left, or no quota."""


class UnsupportedTableError(HoodieError):
    """The table has a version or feature that this release does not read or write."""
