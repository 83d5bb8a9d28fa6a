"""Storages that take no more: errors of the system, or of a server, as those that say what to do."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from hoodie.errors import AccessDeniedError, HoodieError, StorageFullError

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="_HasUri")

_DENIED = {errno.EACCES, errno.EPERM, errno.EROFS}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_OUT_OF_REACH = {*_DENIED, *_FULL, errno.EIO, errno.EBUSY, errno.ETIMEDOUT, errno.EMFILE, errno.ENFILE}


def is_of_storage(error: BaseException) -> bool:
    """Whether it says something about the storage or the way to it, and nothing about the content of a file."""
    return isinstance(error, OSError) and error.errno in _OUT_OF_REACH


def denied(text: str, path: str) -> AccessDeniedError:
    return AccessDeniedError(errno.EACCES, text, path)


def full(text: str, path: str) -> StorageFullError:
    return StorageFullError(errno.ENOSPC, text, path)


class _HasUri(Protocol):
    @property
    def uri(self) -> str: ...


def said_plainly(operation: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """For what is done to a table: what the system refuses is said in hoodie's errors."""

    @wraps(operation)
    def run(self: S, /, *args: P.args, **more: P.kwargs) -> R:
        try:
            return operation(self, *args, **more)
        except HoodieError:
            raise
        except OSError as exc:
            raise _in_our_words(exc, self.uri) from exc.__cause__

    return run


def _in_our_words(error: OSError, uri: str) -> OSError:
    """The error itself where there is nothing to say to it."""
    path = str(error.filename or uri)
    where = "" if path.startswith(uri) else f" of table {uri}"
    if error.errno in _DENIED:
        text = f"{error.strerror}: let this user write the files{where}, or write as one who may"
        return AccessDeniedError(error.errno, text, path)
    if error.errno in _FULL:
        return StorageFullError(error.errno, f"{error.strerror}: make room{where}, and try again", path)
    return error
