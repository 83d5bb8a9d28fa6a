"""A storage that fails at the n-th call of whatever kind, and, if it is said, at every one after it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

from hoodie.storage.memory import MemoryStorage

ERRORS = (errno.EIO, errno.ETIMEDOUT, errno.ECONNRESET, errno.ENOTDIR, errno.EINVAL, errno.ESTALE, errno.EACCES)
_CALLS = (
    *(
        "read",
        "open_input",
        "open_output",
        "create_new",
        "create_missing",
        "create_all",
        "replace",
        "read_tagged",
        "swap",
        "move_new",
    ),
    *("move_all_new", "rename_folder", "list", "names", "stat", "exists", "delete", "delete_folder", "mkdirs", "touch"),
    *("open_log", "now_s"),
)


class FailingStorage(MemoryStorage):
    """What `inner` holds; until `fail` is called nothing fails."""

    calls = 0
    _from = _until = 0
    _errno = errno.EIO

    def fail(self, *, at: int, error: int, stays: bool) -> None:
        self.calls, self._errno = 0, error
        self._from, self._until = at, 10**9 if stays else at

    def copy(self) -> FailingStorage:
        other = FailingStorage(self._uri, clock=self.clock)
        other.restore(self.snapshot())
        return other


def _failing(name: str) -> Callable[..., Any]:
    real = getattr(MemoryStorage, name)

    def call(self: FailingStorage, *args: Any, **more: Any) -> Any:
        self.calls += 1
        if self._from <= self.calls <= self._until:
            raise OSError(self._errno, os.strerror(self._errno), str(args[0]) if args else None)
        return real(self, *args, **more)

    return call


for _name in _CALLS:
    setattr(FailingStorage, _name, _failing(_name))
