"""Options of where a table's files are found: by listing each time, or by following the timeline."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hoodie.options import keys
from hoodie.options.values import ViewStore


@dataclass(frozen=True)
class RemoteOptions:
    """Where a timeline server is, and how long it is waited for."""

    host: str = keys.REMOTE_HOST.default
    port: int = keys.REMOTE_PORT.default
    token: str | None = field(default=None, repr=False)
    timeout_s: float = keys.REMOTE_TIMEOUT.default
    """For all tries of a request together."""
    retries: int = keys.REMOTE_RETRIES.default
    first_pause_s: float = keys.REMOTE_FIRST_PAUSE.default / 1000
    max_pause_s: float = keys.REMOTE_MAX_PAUSE.default / 1000
    is_only: bool = False
    """A server without an answer is an error."""

    @classmethod
    def at(cls, host: str, **others: Any) -> RemoteOptions:
        """`host` may have a user and the token in front of it, as Apache Hudi's client takes them: `hoodie:TOKEN@10.0.0.1`."""
        user, at, name = host.rpartition("@")
        if at and others.get("token") is None:
            others["token"] = user.partition(":")[2]
        return cls(name, **others)


@dataclass(frozen=True)
class ViewOptions:
    follows: bool | None = keys.VIEW_SYNC.default
    """A partition is listed once, and afterwards instants say what became of its files. None: where calls go to a server, and only
    from the second time on that this process asks for a partition, so that one that asks once has no more to do.
    """
    type: ViewStore = keys.VIEW_TYPE.default
    secondary: ViewStore = keys.VIEW_SECONDARY.default
    spill_bytes: int = keys.VIEW_SPILL_BYTES.default
    spill_folder: str | None = keys.VIEW_SPILL_DIR.default
    rocksdb_folder: str | None = keys.VIEW_ROCKSDB_DIR.default
    remote: RemoteOptions | None = None
    """With a remote type."""
    checkpoint: str | None = keys.VIEW_CHECKPOINT.default
    """A folder, or an address: where the next process finds what this one knew."""

    @property
    def store(self) -> ViewStore:
        """What this process keeps files in."""
        return self.secondary if self.type.is_remote else self.type


@dataclass(frozen=True)
class EmbeddedOptions:
    """A timeline server that lives as long as a write."""

    starts: bool = keys.EMBED_SERVER.default
    port: int = keys.EMBED_PORT.default
    token: str | None = field(default=None, repr=False)


VIEW = ViewOptions()
EMBEDDED = EmbeddedOptions()
