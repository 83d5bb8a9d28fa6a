"""Options of the index HBASE, by the names of Apache Hudi 0.x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hoodie.options.option import Keys, key, option
from hoodie.options.values import boolean, text, whole


@dataclass(frozen=True)
class HBaseOptions:
    table: str | None = option("hoodie.index.hbase.table", text("the name of a table in HBase"), None)
    """With index type HBASE: the HBase table with the entries. It has the column family `_s`, and is created if it is
    missing."""
    quorum: str | None = option("hoodie.index.hbase.zkquorum", text("hosts of ZooKeeper"), None)
    """With index type HBASE: its ZooKeeper servers. hoodie does not use ZooKeeper; it expects the Thrift server on the
    first host."""
    thrift: str | None = option("hoodie.python.index.hbase.thrift", text("host:port"), None)
    """With index type HBASE: address of HBase's Thrift server, as `host:port`. Unset: port 9090 of the first host of
    `hoodie.index.hbase.zkquorum`."""
    get_batch: int = option("hoodie.index.hbase.get.batch.size", whole(1), 100)
    """With index type HBASE: keys that are looked up by one request."""
    put_batch: int = option("hoodie.index.hbase.put.batch.size", whole(1), 100)
    """With index type HBASE: entries that are put by one request."""
    most_a_second: int | None = option("hoodie.index.hbase.max.qps.per.region.server", whole(1), None)
    """With index type HBASE: keys that a worker looks up, or puts, in a second. Unset: as many as HBase takes."""
    moves_rows: bool = option("hoodie.hbase.index.update.partition.path", boolean(), False)
    """With index type HBASE: an upsert moves a row to its new partition. False: the row stays in the partition of its
    stored key, although its partition column has another value."""

    OTHERS: ClassVar[Keys] = (
        key(
            "hoodie.index.hbase.zkport",
            whole(1),
            None,
            "With index type HBASE: accepted, without effect: hoodie does not use ZooKeeper.",
        ),
        key(
            "hoodie.index.hbase.zknode.path",
            text("a path in ZooKeeper"),
            None,
            "With index type HBASE: accepted, without effect: hoodie does not use ZooKeeper.",
        ),
        key(
            "hoodie.index.hbase.rollback.sync",
            boolean(),
            False,
            "With index type HBASE: accepted, without effect. Entries of failed or rolled back commits are never valid.",
        ),
    )
