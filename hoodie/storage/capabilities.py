"""What a storage can do and what its calls cost, as one value."""

from __future__ import annotations

import os
from dataclasses import dataclass

from hoodie.storage.paths import checked_path


@dataclass(frozen=True)
class Capabilities:
    """What differs between storages beside the protocols that they have."""

    is_remote: bool = False
    """Whether each call goes to a server, so that fewer of them are worth some work of this machine."""
    at_once: int = 1
    """How many calls are worth making at the same time; 1: each is done sooner than another thread would begin."""
    time_step_s: float = 0.0
    """How finely modification times are told, in seconds; 0: to the millisecond at least."""
    local_root: str | None = None
    """The root's path in the operating system, where the storage is a local disk."""

    def local_path(self, path: str) -> str | None:
        """The operating system's path of `path` where the storage is a local disk, else None."""
        if self.local_root is None:
            return None
        checked_path(path, under=self.local_root, may_be_root=True)
        return os.path.join(self.local_root, path) if path else self.local_root
