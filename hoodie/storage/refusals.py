"""Failing or full storages: converts errors of the system, or of a server, into errors that say what to do."""

from __future__ import annotations

import errno
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from hoodie.errors import AccessDeniedError, HoodieError, StorageError, StorageFullError

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="_HasUri")
C = TypeVar("C", bound=type)

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


def hoodie_errors(operation: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """For what is done to a table: what the system refuses is said in hoodie's errors."""

    @wraps(operation)
    def run(self: S, /, *args: P.args, **more: P.kwargs) -> R:
        try:  # no `with`: single keys are asked for by the hundred thousand
            return operation(self, *args, **more)
        except HoodieError:
            raise
        except OSError as exc:
            raise in_our_words(exc, self.uri) from exc.__cause__

    return run


def _hoodie_errors_of_items(
    generator: Callable[Concatenate[S, P], Iterator[R]],
) -> Callable[Concatenate[S, P], Iterator[R]]:
    """As `hoodie_errors`, for what asks the storage each time that the next item is taken."""

    @wraps(generator)
    def run(self: S, /, *args: P.args, **more: P.kwargs) -> Iterator[R]:
        with plain_errors(self.uri):
            yield from generator(self, *args, **more)

    return run


def with_hoodie_errors(cls: C) -> C:
    """Every public method and property of a class as `hoodie_errors`: what is asked of a table may ask its storage."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") or name == "uri":
            continue
        if inspect.isgeneratorfunction(member):
            setattr(cls, name, _hoodie_errors_of_items(member))
        elif inspect.isfunction(member):
            setattr(cls, name, hoodie_errors(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, property(hoodie_errors(member.fget), member.fset, doc=member.__doc__))
    return cls


@contextmanager
def plain_errors(uri: str) -> Iterator[None]:
    """Errors of the system about files below `uri` in hoodie's words."""
    try:
        yield
    except HoodieError:
        raise
    except OSError as exc:
        raise in_our_words(exc, uri) from exc.__cause__


def in_our_words(error: OSError, uri: str = "") -> OSError:
    """An error of the system as one of ours, with what to do; `uri`: of the table."""
    path = str(error.filename or uri)
    where = "" if path.startswith(uri) else f" of {uri}"
    reason = error.strerror or str(error) or type(error).__name__
    if error.errno in _DENIED:
        to_do = "to write the files" if error.errno == errno.EROFS else "for it"
        text = f"{reason}{where}: give this user permission {to_do}, or use another user"
        return AccessDeniedError(error.errno, text, path)
    if error.errno in _FULL:
        return StorageFullError(error.errno, f"{reason}: make room{where}, and try again", path)
    advice = _ADVICE.get(error.errno or 0, "the storage failed; look at it, and try again")
    return StorageError(error.errno or errno.EIO, f"{reason}{where}: {advice}", path)


_ADVICE = {
    errno.ENOTDIR: "a file stands where a folder has to be; give the folder of the table",
    errno.EISDIR: "a folder stands where a file has to be",
    errno.EEXIST: "the name exists already",
    errno.ENOENT: "it does not exist; if it was deleted meanwhile, open the table again",
    errno.ENAMETOOLONG: "the name is too long for the system",
    errno.EINVAL: "the storage takes no such name",
    errno.EMFILE: "this process has too many open files; raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many open files",
}
