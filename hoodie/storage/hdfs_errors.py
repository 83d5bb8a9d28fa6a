"""Errors of hdfs-native as the builtins, with one line of what the NameNode said."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

_JAVA_ERROR = re.compile(r'RPCError\("([\w.$]+)", "(.*)', re.DOTALL)


class HdfsErrors:
    """Errors about files of one cluster."""

    def __init__(self, authority: str) -> None:
        self._authority = authority

    def shown(self, absolute: str) -> str:
        return f"hdfs://{self._authority}{absolute}"

    def error(self, number: int, absolute: str, why: str | None = None) -> OSError:
        return OSError(number, os.strerror(number) if why is None else why, self.shown(absolute))

    @contextmanager
    def translated(self, absolute: str) -> Iterator[None]:
        """hdfs-native's errors as the builtins, with one line of what the NameNode said, not its stack."""
        try:
            yield
        except OSError as exc:
            if exc.errno is not None:
                raise
            text = first_line(str(exc))
            if isinstance(exc, FileExistsError):
                raise self.error(errno.EEXIST, absolute) from exc
            if isinstance(exc, FileNotFoundError):
                is_folder = text.startswith("Path is not a file")
                raise self.error(errno.EISDIR if is_folder else errno.ENOENT, absolute) from exc
            if isinstance(exc, PermissionError):
                raise self.error(errno.EACCES, absolute, text) from exc
            raise self.error(errno.EIO, absolute, f"HDFS cannot be reached: {text}") from exc
        except (RuntimeError, ValueError) as exc:
            if type(exc) not in (RuntimeError, ValueError):
                raise
            number, why = meaning(str(exc))
            raise self.error(number, absolute, why) from exc


def first_line(text: str) -> str:
    return re.split(r"\n|\\n", text, maxsplit=1)[0].strip()


def meaning(text: str) -> tuple[int, str | None]:
    """Which error of the operating system a failed call is like, and what to say where that is not enough."""
    match = _JAVA_ERROR.match(text)
    kind, message = (match[1].rpartition(".")[2], first_line(match[2])) if match else ("", first_line(text))
    if kind in ("AccessControlException", "ParentNotDirectoryException") and "not a directory" in message:
        return errno.ENOTDIR, None
    if kind == "AccessControlException":
        return errno.EACCES, message
    if "QuotaExceeded" in kind:
        return errno.EDQUOT, f"the quota of HDFS is used up: {message}"
    if kind == "SafeModeException" or "safe mode" in message:
        return errno.EROFS, f"the NameNode is in safe mode and takes no writes: {message}"
    if "could only be written to" in message or "No space" in message or "All nodes failed" in message:
        return errno.ENOSPC, f"no DataNode takes the bytes, because they are full or out of reach: {message}"
    if kind in ("InvalidPathException",):
        return errno.EINVAL, f"HDFS has no such names (a ':' is not possible): {message}"
    return errno.EIO, f"HDFS refused the call: {kind}: {message}" if kind else f"HDFS failed: {message}"
