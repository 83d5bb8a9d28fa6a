"""Options of concurrent writers: locks, heartbeats, and the treatment of dead writers."""

from __future__ import annotations

from dataclasses import dataclass

from hoodie.options.aws import AwsOptions
from hoodie.options.option import group, option
from hoodie.options.values import (
    ConcurrencyMode,
    Durability,
    FailedWritesPolicy,
    LockProvider,
    boolean,
    lock_provider,
    milliseconds,
    minutes,
    one_of,
    text,
    whole,
)

EXPIRY_MARGIN_S = 5.0
"""So much earlier a writer gives itself up than others do."""


@dataclass(frozen=True)
class ConcurrencyOptions:
    mode: ConcurrencyMode = option("hoodie.write.concurrency.mode", one_of(ConcurrencyMode), "SINGLE_WRITER")
    """How concurrent writers work together. `SINGLE_WRITER` and `OPTIMISTIC_CONCURRENCY_CONTROL` mean the same: writers
    always expect others, and detect conflicts per file group. `NON_BLOCKING_CONCURRENCY_CONTROL`, on merge-on-read
    tables of versions 8 and 9 with simple buckets: writers append to logs of one file group at once, and neither wait
    for each other nor conflict. It leaves dead writes to table services, as
    `hoodie.clean.failed.writes.policy=LAZY`."""
    durability: Durability = option("hoodie.python.durability", one_of(Durability), "power_cut")
    """Durability of a commit on a local disk. `power_cut`: it waits until all its files are on the disk. `process`: it
    waits for its timeline files only, so a power cut can remove or truncate data files of the last minute; reads name
    them."""
    heartbeat_interval_s: float = option("hoodie.client.heartbeat.interval_in_ms", milliseconds(1), 60_000)
    """Milliseconds after which a writer touches its heartbeat file again."""
    heartbeat_misses: int = option("hoodie.client.heartbeat.tolerable.misses", whole(1), 2)
    """Intervals without a heartbeat, plus 5 seconds, after which a writer on another machine, or of another program,
    counts as dead. A writer of hoodie that was paused for so many intervals refuses to commit."""
    takes_turns: bool = option("hoodie.write.concurrency.early.conflict.detection.enable", boolean(), True)
    """A writer lets earlier pending writes of the same file groups go first, for as long as it would wait for the lock. Apache
    Hudi fails the later write."""
    failed_writes: FailedWritesPolicy = option(
        "hoodie.clean.failed.writes.policy", one_of(FailedWritesPolicy, unsupported=("NEVER",)), "EAGER"
    )
    """When the writes of dead writers are rolled back: `EAGER` before each write, `LAZY` by a table service or by `rollback()`.
    Living writers are left alone in any case. Until a dead write is rolled back, incremental pulls end before it."""
    lock_provider: LockProvider = option("hoodie.write.lock.provider", lock_provider(), "in_process")
    """Who grants the lock between writers: `storage`, `filesystem`, `zookeeper`, `zookeeper_implicit`, `hive_metastore`,
    `dynamodb` or `dynamodb_implicit`, also by the class names of Apache Hudi's providers. `in_process`, the default, depends on the
    storage: on a disk all processes of the machine share a lock file, in an object store all machines do."""
    lock_timeout_s: float = option("hoodie.write.lock.wait_time_ms", milliseconds(0), 60_000)
    """Milliseconds to wait for the table lock before giving up. A lock in DynamoDB is also held for so long without being renewed,
    at least three seconds."""
    storage_lease_s: float = option("hoodie.write.lock.storage.validity.timeout.secs", whole(1), 300)
    """Seconds for which the lock in an object store is held without being renewed. Other machines wait so long for one that
    died."""
    storage_renewal_s: float = option("hoodie.write.lock.storage.renew.interval.secs", whole(1), 30)
    """Seconds between two renewals of that lock, at most a tenth of its lease."""
    filesystem_path: str | None = option("hoodie.write.lock.filesystem.path", text("a folder of the table"), None)
    """Folder of the file `lock` that the provider `filesystem` creates, inside the table. Unset: `.hoodie`."""
    filesystem_expiry_s: float = option("hoodie.write.lock.filesystem.expire", minutes(0), 0)
    """Minutes after which a lock file of the provider `filesystem` counts as left behind; 0: never."""
    hive_uris: str | None = option("hoodie.write.lock.hivemetastore.uris", text("thrift://host:port[,…]"), None)
    """Servers of the Hive metastore, for the provider `hive_metastore`."""
    hive_database: str | None = option("hoodie.write.lock.hivemetastore.database", text("a name"), None)
    """Database of the table whose name is locked in the Hive metastore."""
    hive_table: str | None = option("hoodie.write.lock.hivemetastore.table", text("a name"), None)
    """The table's name in there. All writers, Apache Hudi's too, need the same one; it need not be registered."""
    zookeeper_url: str | None = option("hoodie.write.lock.zookeeper.url", text("host:port[,host:port…]"), None)
    """Servers of ZooKeeper, for the provider `zookeeper`."""
    zookeeper_port: int | None = option("hoodie.write.lock.zookeeper.port", whole(1), None)
    """Port of those servers whose address names none. Unset: 2181."""
    zookeeper_base_path: str | None = option("hoodie.write.lock.zookeeper.base_path", text("a path in ZooKeeper"), None)
    """Node below which the lock stands. All writers of a table, Apache Hudi's too, need the same one."""
    zookeeper_lock_key: str | None = option("hoodie.write.lock.zookeeper.lock_key", text("a name"), None)
    """Name of the lock's node in there."""
    zookeeper_session_s: float = option("hoodie.write.lock.zookeeper.session_timeout_ms", milliseconds(1), 60_000)
    """Milliseconds after which ZooKeeper gives the lock of a silent writer to the next."""
    zookeeper_connection_s: float = option("hoodie.write.lock.zookeeper.connection_timeout_ms", milliseconds(1), 15_000)
    """Milliseconds to wait for a connection to ZooKeeper."""

    dynamodb_table: str | None = option(
        "hoodie.write.lock.dynamodb.table", text("the name of a table in DynamoDB"), None
    )
    """Table in DynamoDB that has the lock, for the provider `dynamodb`. It is made if it does not exist."""
    dynamodb_key: str | None = option("hoodie.write.lock.dynamodb.partition_key", text("a key"), None)
    """Key of the lock in there. All writers of a table, Apache Hudi's too, need the same one. Unset: the name of the table."""
    dynamodb_region: str | None = option("hoodie.write.lock.dynamodb.region", text("a region"), None)
    """Region of that table. Unset: that of the environment variable `AWS_REGION`, else us-east-1."""
    dynamodb_endpoint: str | None = option("hoodie.write.lock.dynamodb.endpoint_url", text("an address"), None)
    """Address of DynamoDB. Unset: that of the region."""
    dynamodb_billing: str = option(
        "hoodie.write.lock.dynamodb.billing_mode", one_of(("PAY_PER_REQUEST", "PROVISIONED")), "PAY_PER_REQUEST"
    )
    """How DynamoDB bills the lock's table, where it is made."""
    dynamodb_reads: int = option("hoodie.write.lock.dynamodb.read_capacity", whole(1), 20)
    """Read capacity of the lock's table, where it is made with the billing mode PROVISIONED."""
    dynamodb_writes: int = option("hoodie.write.lock.dynamodb.write_capacity", whole(1), 10)
    """Write capacity of the same."""
    dynamodb_creation_s: float = option("hoodie.write.lock.dynamodb.table_creation_timeout", milliseconds(1), 600_000)
    """Milliseconds to wait for a lock's table that is being made."""
    aws: AwsOptions = group(AwsOptions)

    @property
    def non_blocking(self) -> bool:
        """Writers that only append neither wait for each other nor conflict, those of Apache Hudi among them."""
        return self.mode is ConcurrencyMode.NON_BLOCKING

    @property
    def leaves_dead_writes(self) -> bool:
        """Writes leave what dead writers left to table services. Apache Hudi takes LAZY for this mode, whatever is said."""
        return self.failed_writes is FailedWritesPolicy.LAZY or self.non_blocking

    @property
    def heartbeat_expiry_s(self) -> float:
        """After so long without a heartbeat others take a writer for dead."""
        return self.heartbeat_interval_s * self.heartbeat_misses + EXPIRY_MARGIN_S


CONCURRENCY = ConcurrencyOptions()
"""Where nothing was said."""
