"""Options of where a table's files are found: by listing each time, or by following the timeline."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hoodie.options.option import combined, group, key, option, shared
from hoodie.options.values import Kind, ViewStore, boolean, fields, milliseconds, one_of, positive, text, whole

_VIEW = "hoodie.filesystem.view."
_REMOTE = f"{_VIEW}remote."
_SYNC = key(f"{_VIEW}incr.timeline.sync.enable", boolean(), None)
"""List a partition once, and afterwards follow its files by the timeline: docs/TIMELINE_SERVICE.md. Unset: on object stores
and HDFS, from the second listing of a process on."""
_TYPE = key(f"{_VIEW}type", one_of(ViewStore), "MEMORY")
"""Where to keep the followed files: in memory, in limited memory and a file, or in RocksDB. With the last two values a
timeline server is queried."""
_CHECKPOINT = key("hoodie.python.view.checkpoint.path", text("a folder, or an address as of a table"), None)
"""Folder for checkpoints of the followed files, so that the next process lists nothing. Unset: none."""
REMOTE_TOKEN = key("hoodie.python.view.remote.token", text("a token"), None)
"""Token of the timeline server, unless it is in the host's name."""


def _follows(follows: bool | None, checkpoint: str | None) -> bool | None:
    return True if follows is None and checkpoint is not None else follows


def _retries(enabled: bool, number: int) -> int:
    return number if enabled else 0


_RETRY = key(f"{_REMOTE}retry.enable", boolean(), True)
"""Retry a request if its connection failed. Apache Hudi: false."""
_MAX_RETRIES = key(f"{_REMOTE}retry.max_numbers", whole(0), 3)
"""How often."""


@dataclass(frozen=True)
class RemoteOptions:
    """Where a timeline server is, and how long it is waited for."""

    host: str = option(f"{_REMOTE}host", text("a host name or address"), "localhost")
    """Host of the timeline server for REMOTE_FIRST and REMOTE_ONLY. You may put the token before it:
    hoodie:TOKEN@10.0.0.1."""
    port: int = option(f"{_REMOTE}port", whole(1), 26754)
    """Its port."""
    token: str | None = shared(REMOTE_TOKEN, repr=False)
    timeout_s: float = option(f"{_REMOTE}timeout.secs", whole(1), 60)
    """Seconds to wait for an answer, retries included. After that, hoodie lists the partitions. Apache Hudi: 300, for
    each try."""
    retries: int = combined(_retries, _RETRY, _MAX_RETRIES)
    first_pause_s: float = option(f"{_REMOTE}retry.initial_interval_ms", milliseconds(0), 100)
    """Milliseconds before the first retry; doubled before each further one."""
    max_pause_s: float = option(f"{_REMOTE}retry.max_interval_ms", milliseconds(0), 2000)
    """The longest such pause."""
    is_only: bool = combined(lambda store: store is ViewStore.REMOTE_ONLY, _TYPE)
    """A server without an answer is an error."""

    @classmethod
    def at(cls, host: str, **others: Any) -> RemoteOptions:
        """`host` may have a user and the token in front of it, as Apache Hudi's client takes them: `hoodie:TOKEN@10.0.0.1`."""
        user, at, name = host.rpartition("@")
        if at and others.get("token") is None:
            others["token"] = user.partition(":")[2]
        return cls(name, **others)


_RECORD_INDEX = "hoodie.metadata.record.index."
_GLOBAL = "hoodie.metadata.global.record.level.index."


@dataclass(frozen=True)
class RecordIndexOptions:
    """The record index of the metadata table: which file group has a record key."""

    is_on: bool = option(f"{_RECORD_INDEX}enable", boolean(), False, also=(f"{_GLOBAL}enable",))
    """true: a write builds a missing record index, and reads the keys of all rows once for it. Writes maintain an
    existing index in any case, until the metadata table is dropped."""
    least_groups: int = option(
        f"{_RECORD_INDEX}min.filegroup.count", whole(1), 10, also=(f"{_GLOBAL}min.filegroup.count",)
    )
    """Minimum number of file groups of a new record index."""
    most_groups: int = option(
        f"{_RECORD_INDEX}max.filegroup.count", whole(1), 10_000, also=(f"{_GLOBAL}max.filegroup.count",)
    )
    """The most."""
    growth: float = option(f"{_RECORD_INDEX}growth.factor", positive(), 2.0)
    """A new record index has file groups for the current number of keys times this factor."""
    group_bytes: int = option(f"{_RECORD_INDEX}max.filegroup.size", whole(1), 1024 * 1024 * 1024)
    """Planned bytes of a file group of the record index."""


_LEVEL = "hoodie.metadata.record.level.index."
_PARTITIONED = "hoodie.metadata.partitioned.record.index."


@dataclass(frozen=True)
class PartitionedIndexOptions:
    """A record index by partitions, for keys that are unique in their partition. Tables of version 8 and 9 have it."""

    is_on: bool = option(f"{_LEVEL}enable", boolean(), False)
    """true: a write builds a record index by partitions if there is no record index. To replace an existing one, drop
    it first."""
    least_groups: int = option(
        f"{_LEVEL}min.filegroup.count", whole(1), 1, also=(f"{_PARTITIONED}min.filegroup.count",)
    )
    """Minimum number of file groups of a partition in it, and the number for a later partition."""
    most_groups: int = option(
        f"{_LEVEL}max.filegroup.count", whole(1), 10, also=(f"{_PARTITIONED}max.filegroup.count",)
    )
    """The most."""


@dataclass(frozen=True)
class SecondaryIndexOptions:
    """Secondary indexes of the metadata table: from the values of a column to record keys. Tables of version 8 and 9 have them."""

    is_on: bool | None = option("hoodie.metadata.index.secondary.enable", boolean(), None)
    """Secondary indexes. Unset or true: a write maintains existing ones, and builds that of the column below. false: a
    write drops all of them."""
    column: str | None = option("hoodie.metadata.index.secondary.column", text("a column"), None)
    """The column of a secondary index that a write builds if it is missing, together with a record index
    (`hoodie.metadata.record.index.enable`), or that `build_index` builds."""
    name: str | None = option("hoodie.index.name", text("a name"), None)
    """The index's name. Unset: that of the column. The partition's name is `secondary_index_` and this name."""


_EXPRESSION = "hoodie.metadata.index.expression."
_PAIR = re.compile(r"\s*(?P<key>[A-Za-z]+)\s*=\s*(?:'(?P<quoted>(?:[^']|'')*)'|(?P<plain>[^',][^,]*)?)\s*(?:,|\Z)")


def _pairs(value: str) -> tuple[tuple[str, str], ...]:
    pairs, at = [], 0
    while at < len(value):
        pair = _PAIR.match(value, at)
        if pair is None:
            raise ValueError("is no list of KEY=TEXT, a text with a comma or a quote in single quotes")
        quoted = pair["quoted"]
        pairs.append((pair["key"], (pair["plain"] or "").rstrip() if quoted is None else quoted.replace("''", "'")))
        at = pair.end()
    return tuple(pairs)


@dataclass(frozen=True)
class ExpressionIndexOptions:
    """Expression indexes of the metadata table: bounds, or bloom filters, of what a function makes of a column. Tables of version 8
    and 9 have them.
    """

    is_on: bool | None = option(f"{_EXPRESSION}enable", boolean(), None)
    """Expression indexes. Unset or true: a write maintains existing ones. false: a write drops all of them. Apache
    Hudi: false, but it maintains them nevertheless."""
    column: str | None = option(f"{_EXPRESSION}column", text("a column"), None)
    """The column of an expression index that `build_index` builds."""
    options: tuple[tuple[str, str], ...] = option(f"{_EXPRESSION}options", Kind("KEY=TEXT,…", _pairs), "")
    """The function of that index, and its arguments: `expr=from_unixtime,format=yyyy-MM-dd`. Put a value with a comma
    or a quote in single quotes."""
    kind: str = option("hoodie.expression.index.type", one_of(("COLUMN_STATS", "BLOOM_FILTERS")), "COLUMN_STATS")
    """The kind of that index: bounds or bloom filters."""
    zone: str | None = option("hoodie.python.index.expression.timezone", text("a time zone"), None)
    """Time zone in which functions of days and hours read a timestamp. Unset: that of Spark's session, or of the
    process. All writers of a table, and the sessions that query by such an index, need the same."""


@dataclass(frozen=True)
class ViewOptions:
    follows: bool | None = combined(_follows, _SYNC, _CHECKPOINT)
    """None: where calls go to a server, and only from the second time on that this process asks for a partition, so that one
    that asks once has no more to do."""
    type: ViewStore = shared(_TYPE)
    secondary: ViewStore = option(
        f"{_VIEW}secondary.type", one_of(store for store in ViewStore if not store.is_remote), "MEMORY"
    )
    """The same for a process that gets no answer from its timeline server."""
    spill_bytes: int = option(f"{_VIEW}spillable.mem", whole(0), 100 * 1024 * 1024)
    """Bytes of files that SPILLABLE_DISK keeps in memory."""
    spill_folder: str | None = option(f"{_VIEW}spillable.dir", text("a folder of this machine"), None)
    """Where SPILLABLE_DISK has its file. Unset: where the machine has such files."""
    rocksdb_folder: str | None = option(f"{_VIEW}rocksdb.base.path", text("a folder of this machine"), None)
    """Where EMBEDDED_KV_STORE makes a folder. Unset: where the machine has such files."""
    remote: RemoteOptions | None = None
    """With a remote type."""
    checkpoint: str | None = shared(_CHECKPOINT)
    metadata: bool | None = option("hoodie.metadata.enable", boolean(), None)
    """Unset or true: a query takes a table's files, and bounds of columns, from the metadata table if it exists, and a
    write maintains its files and indexes. true: a write also builds a missing metadata table, from a listing of all
    folders. false: a query lists the folders, and a write drops the metadata table. It is an option of the open table,
    not of one write."""
    record_index: RecordIndexOptions = group(RecordIndexOptions)
    partitioned_index: PartitionedIndexOptions = group(PartitionedIndexOptions)
    secondary_index: SecondaryIndexOptions = group(SecondaryIndexOptions)
    expression_index: ExpressionIndexOptions = group(ExpressionIndexOptions)
    column_stats: bool | None = option("hoodie.metadata.index.column.stats.enable", boolean(), None)
    """The metadata table's partition `column_stats`, with bounds of columns. true: a write builds it if it is missing,
    from the footers of all base files. Unset: a write maintains it if it exists. false: a write drops it."""
    column_stats_columns: tuple[str, ...] = option("hoodie.metadata.index.column.stats.column.list", fields(), "")
    """Columns whose bounds `column_stats` gets when it is built. Unset: the first 32 whose types have bounds."""
    bloom_filters: bool | None = option("hoodie.metadata.index.bloom.filter.enable", boolean(), None)
    """The metadata table's partition `bloom_filters`, with the same values."""
    index_wait_s: float = option("hoodie.metadata.index.check.timeout.seconds", whole(1), 60)
    """Seconds that `build_index` waits for a moment without a clean, a rollback or a restore, and for the first index of a table also
    without a write. Apache Hudi: 900."""

    @property
    def store(self) -> ViewStore:
        """What this process keeps files in."""
        return self.secondary if self.type.is_remote else self.type


@dataclass(frozen=True)
class EmbeddedOptions:
    """A timeline server that lives as long as a write."""

    starts: bool = option("hoodie.embed.timeline.server", boolean(), False)
    """Run a timeline server during a write, for other jobs: hoodie's own tasks do not query it. Apache Hudi: true."""
    port: int = option("hoodie.embed.timeline.server.port", whole(0), 0)
    """Its port; 0: any free port."""
    token: str | None = shared(REMOTE_TOKEN, repr=False)


VIEW = ViewOptions()
EMBEDDED = EmbeddedOptions()
