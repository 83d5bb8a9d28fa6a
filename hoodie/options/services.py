"""Options of table services and of living together with other writers."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.model.compaction import CompactionStrategy
from hoodie.model.enums import CleanPolicy, ExpiryStrategy, PartitionFilter, RowOrder, UpdateStrategy
from hoodie.options import keys
from hoodie.options.compaction import Strategy, Trigger
from hoodie.options.values import Durability, FailedWritesPolicy, LockProvider

EXPIRY_MARGIN_S = 5.0
"""So much earlier a writer gives itself up than others do."""


@dataclass(frozen=True)
class CompactionOptions:
    inline: bool = keys.COMPACT_INLINE.default
    schedules_only: bool = keys.COMPACT_SCHEDULE_INLINE.default
    """Where `inline` and `in_background` say no: another process runs what is scheduled after writes."""
    in_background: bool = keys.COMPACT_ASYNC.default
    trigger: Trigger = keys.COMPACT_TRIGGER.default
    max_delta_commits: int = keys.COMPACT_DELTA_COMMITS.default
    max_delta_s: int = keys.COMPACT_DELTA_SECONDS.default
    strategies: tuple[Strategy, ...] = keys.COMPACT_STRATEGY.default
    """One after the other, each on what the one before has taken."""
    chooses: CompactionStrategy | None = None
    """A function of the user's own in their place."""
    target_io_mb: int = keys.COMPACT_TARGET_IO.default
    min_log_bytes: int = keys.COMPACT_LOG_SIZE.default
    min_log_files: int = keys.COMPACT_LOG_COUNT.default
    days: int = keys.COMPACT_DAYS.default
    partition_regex: str | None = keys.COMPACT_REGEX.default
    memory_bytes: int = int(keys.MEMORY_LIMIT_MB.default * 1024 * 1024 * keys.COMPACT_MEMORY_SHARE.default)
    """Of the process, or of each task of a cluster."""
    budget_s: float | None = None
    """So long whoever plans has to run it; then several small plans are made, each a part of that."""


@dataclass(frozen=True)
class LogCompactionOptions:
    enabled: bool = keys.LOG_COMPACT_ENABLE.default
    """By a services job, and after writes as compactions are done."""
    inline: bool = keys.LOG_COMPACT_INLINE.default
    blocks: int = keys.LOG_COMPACT_BLOCKS.default


@dataclass(frozen=True)
class CleaningOptions:
    automatic: bool = keys.CLEAN_AUTOMATIC.default
    in_background: bool = keys.CLEAN_ASYNC.default
    policy: CleanPolicy = keys.CLEAN_POLICY.default
    commits: int = keys.CLEAN_COMMITS.default
    hours: int = keys.CLEAN_HOURS.default
    versions: int = keys.CLEAN_VERSIONS.default
    trigger_commits: int = keys.CLEAN_TRIGGER_COMMITS.default
    incremental: bool = keys.CLEAN_INCREMENTAL.default
    at_once: int = keys.CLEAN_AT_ONCE.default
    """Commits that one clean passes over at most."""
    multiple: bool = keys.CLEAN_MULTIPLE.default
    """Whether to plan one while another is pending."""
    consumer_hours: int = keys.CONSUMER_HOURS.default
    """So long what named consumers of the change feed have not read is kept, from archiving, too."""


@dataclass(frozen=True)
class ArchivingOptions:
    automatic: bool = keys.ARCHIVE_AUTOMATIC.default
    in_background: bool = keys.ARCHIVE_ASYNC.default
    min_commits: int = keys.KEEP_MIN_COMMITS.default
    """So many stay."""
    max_commits: int = keys.KEEP_MAX_COMMITS.default
    """Beyond so many the oldest are archived."""
    beyond_savepoints: bool = keys.ARCHIVE_BEYOND_SAVEPOINT.default
    waits_for_cleans: bool = keys.ARCHIVE_WAITS_FOR_CLEANS.default
    """Keep what the next clean will look at, also where this writer does not clean."""


NO_LIMIT = 2**63 - 1


@dataclass(frozen=True)
class ClusteringOptions:
    inline: bool = keys.CLUSTER_INLINE.default
    inline_commits: int = keys.CLUSTER_COMMITS.default
    in_background: bool = keys.CLUSTER_ASYNC.default
    background_commits: int = keys.CLUSTER_ASYNC_COMMITS.default
    schedules: bool = keys.CLUSTER_SCHEDULE.default
    """Whether plans are made after writes, for others to run."""
    sort_columns: tuple[str, ...] = keys.CLUSTER_SORT.default or ()
    layout: RowOrder = keys.CLUSTER_LAYOUT.default
    target_bytes: int = keys.CLUSTER_TARGET_FILE.default
    small_file_limit: int | None = keys.CLUSTER_SMALL_FILE.default
    max_group_bytes: int | None = keys.CLUSTER_GROUP_BYTES.default
    max_groups: int | None = keys.CLUSTER_GROUPS.default
    single_files: bool = keys.CLUSTER_SINGLE.default
    partition_filter: PartitionFilter = keys.CLUSTER_PARTITIONS.default
    regex: str | None = keys.CLUSTER_REGEX.default
    selected: tuple[str, ...] = keys.CLUSTER_SELECTED.default or ()
    begin: str | None = keys.CLUSTER_BEGIN.default
    end: str | None = keys.CLUSTER_END.default
    lookback: int = keys.CLUSTER_LOOKBACK.default
    skip: int = keys.CLUSTER_SKIP.default
    updates: UpdateStrategy = keys.CLUSTER_UPDATES.default
    whole: bool = False
    """It was asked for by hand: limits that were not said do not count. Else those of Apache Hudi do."""
    partitions: frozenset[str] | None = None
    """Only these, by a condition; None: all."""

    @property
    def small_file_bytes(self) -> int:
        """Base files below this size are taken."""
        unsaid = NO_LIMIT if self.whole and self.sort_columns else 300 * 1024**2
        return unsaid if self.small_file_limit is None else self.small_file_limit

    @property
    def group_bytes(self) -> int:
        """One order goes over so much of a partition."""
        unsaid = NO_LIMIT if self.whole and self.sort_columns else 2 * 1024**3
        return unsaid if self.max_group_bytes is None else self.max_group_bytes

    @property
    def groups(self) -> int:
        """So many are in one plan, at most."""
        return (NO_LIMIT if self.whole else 30) if self.max_groups is None else self.max_groups


@dataclass(frozen=True)
class ExpiryOptions:
    inline: bool = keys.EXPIRY_INLINE.default
    strategy: ExpiryStrategy = keys.EXPIRY_STRATEGY.default
    days: int = keys.EXPIRY_DAYS.default
    """0 and less: nothing expires."""
    selected: tuple[str, ...] | None = keys.EXPIRY_SELECTED.default
    """Partition paths; None: any."""
    most: int = keys.EXPIRY_MOST.default
    """So many partitions go in one commit at most."""


@dataclass(frozen=True)
class ConcurrencyOptions:
    durability: Durability = keys.DURABILITY.default
    heartbeat_interval_s: float = keys.HEARTBEAT_INTERVAL.default / 1000
    heartbeat_misses: int = keys.HEARTBEAT_MISSES.default
    takes_turns: bool = keys.TAKES_TURNS.default
    failed_writes: FailedWritesPolicy = keys.FAILED_WRITES.default
    lock_provider: LockProvider = keys.LOCK_PROVIDER.default
    """Who grants the table lock; see `lock/providers.py`."""
    lock_timeout_s: float = keys.LOCK_WAIT.default / 1000
    storage_lease_s: float = keys.STORAGE_LOCK_LEASE.default
    storage_renewal_s: float = keys.STORAGE_LOCK_RENEWAL.default
    filesystem_path: str | None = keys.FILESYSTEM_LOCK_PATH.default
    filesystem_expiry_s: float = keys.FILESYSTEM_LOCK_EXPIRY.default * 60
    """0: a lock file whose holder may live is never taken away."""
    hive_uris: str | None = keys.HIVE_URIS.default
    hive_database: str | None = keys.HIVE_DATABASE.default
    hive_table: str | None = keys.HIVE_TABLE.default
    zookeeper_url: str | None = keys.ZOOKEEPER_URL.default
    zookeeper_port: int | None = keys.ZOOKEEPER_PORT.default
    zookeeper_base_path: str | None = keys.ZOOKEEPER_BASE_PATH.default
    zookeeper_lock_key: str | None = keys.ZOOKEEPER_LOCK_KEY.default
    zookeeper_session_s: float = keys.ZOOKEEPER_SESSION.default / 1000
    zookeeper_connection_s: float = keys.ZOOKEEPER_CONNECTION.default / 1000

    @property
    def heartbeat_expiry_s(self) -> float:
        """After so long without a heartbeat others take a writer for dead."""
        return self.heartbeat_interval_s * self.heartbeat_misses + EXPIRY_MARGIN_S


CONCURRENCY = ConcurrencyOptions()
"""Where nothing was said."""
