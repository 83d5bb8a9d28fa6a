"""Options of table services and of living together with other writers."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.options import keys


@dataclass(frozen=True)
class CompactionOptions:
    inline: bool = keys.COMPACT_INLINE.default
    max_delta_commits: int = keys.COMPACT_DELTA_COMMITS.default
    target_io_mb: int = keys.COMPACT_TARGET_IO.default


@dataclass(frozen=True)
class ConcurrencyOptions:
    heartbeat_interval_s: float = keys.HEARTBEAT_INTERVAL.default / 1000
    heartbeat_misses: int = keys.HEARTBEAT_MISSES.default
    lock_provider: str = keys.LOCK_PROVIDER.default
    """Who grants the table lock; see `lock/providers.py`."""
    lock_timeout_s: float = keys.LOCK_WAIT.default / 1000


CONCURRENCY = ConcurrencyOptions()
"""Where nothing was said."""
