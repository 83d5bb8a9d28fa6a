"""Expiry of partitions beside Apache Hudi's, whose write client is asked: of two equal tables the same partitions go.

Its other doors do not get there in 1.2.0. `call run_ttl` fails where something has expired ("Commit instant was not created"), and
after a write the replacecommit is begun and was not seen to complete.
"""

import os
import shutil

import pyarrow as pa
import pytest

import hoodie
from hoodie.options.parse import parse_write_options
from hoodie.storage.local import LocalStorage
from hoodie.table import open_at
from hoodie.write.create import create_at
from integration.views import View, by_hudi, by_rust, ours

DAY_S = 24 * 3600.0
DAYS = 5
SCHEMA = pa.schema([pa.field("id", pa.string(), nullable=False), ("part", pa.string()), ("fare", pa.int64())])
TABLE = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
}
BY_CREATION = {"hoodie.partition.ttl.management.strategy.type": "KEEP_BY_CREATION_TIME"}


class Earlier(LocalStorage):
    """A disk whose clock was so many days ago, also in what it writes."""

    days = 0.0

    def now_s(self):
        return super().now_s() - self.days * DAY_S


def make(path, table_type, writes):
    """`writes`: how many days ago, and the rows as (id, part)."""
    storage = Earlier(path)
    options = {**TABLE, "hoodie.datasource.write.table.type": table_type}
    storage.days = writes[0][0]
    create_at(storage, parse_write_options(options).to_create(), schema=SCHEMA)
    for number, (days, rows) in enumerate(writes):
        storage.days = days
        before = {file for file in path.rglob("*") if file.is_file()}
        rows = [{"id": key, "part": part, "fare": number} for key, part in rows]
        open_at(storage, options={"hoodie.table.services.enabled": "false"}).upsert(pa.Table.from_pylist(rows, SCHEMA))
        for file in {file for file in path.rglob("*") if file.is_file()} - before:
            at = file.stat().st_mtime - days * DAY_S  # Apache Hudi takes that of a completed file for its completion
            os.utime(file, (at, at))


WRITES = [
    (20, [("k0", "old"), ("k1", "changed"), ("k2", "untouched")]),
    (10, [("k3", "old too")]),
    (2, [("k1", "changed"), ("k4", "new")]),
    (1, [("k5", "new")]),
]
"""On copy-on-write a change makes a new base file."""


def by_hudi_expired(hudi, path, options):
    days = {"hoodie.partition.ttl.strategy.days.retain": str(DAYS)}
    return hudi.expired(path, {"hoodie.metadata.enable": "false", **days, **options})


@pytest.mark.parametrize("options", [{}, BY_CREATION], ids=["by time", "by creation"])
def test_the_same_partitions_expire(hudi, tmp_path, options):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    make(mine, "COPY_ON_WRITE", WRITES)
    shutil.copytree(mine, theirs)
    result = hoodie.open_table(mine).expire_partitions(DAYS, options)
    assert by_hudi_expired(hudi, theirs, options) == sorted(result.partitions)
    expected = ["old", "old too", "untouched"] if not options else ["changed", "old", "old too", "untouched"]
    assert sorted(result.partitions) == expected
    kept = {"k1", "k4", "k5"} if not options else {"k4", "k5"}
    for reader in (ours, by_hudi(hudi), by_rust):
        assert {row["id"] for row in reader(mine, View())} == kept


def test_rows_that_changed_in_a_log_are_kept_by_us_and_not_by_hudi(hudi, tmp_path):
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    make(mine, "MERGE_ON_READ", WRITES)
    shutil.copytree(mine, theirs)
    assert sorted(hoodie.open_table(mine).expire_partitions(DAYS).partitions) == ["old", "old too", "untouched"]
    assert by_hudi_expired(hudi, theirs, {}) == ["changed", "old", "old too", "untouched"]
    for reader in (ours, by_hudi(hudi), by_rust):
        assert {row["id"] for row in reader(mine, View())} == {"k1", "k4", "k5"}


def test_an_expired_partition_that_is_written_again_has_the_new_rows_only(tmp_path):
    make(tmp_path / "t", "MERGE_ON_READ", WRITES)
    table = hoodie.open_table(tmp_path / "t")
    assert "old" in table.expire_partitions(DAYS).partitions
    table.upsert(pa.Table.from_pylist([{"id": "k9", "part": "old", "fare": 9}], SCHEMA))
    for reader in (ours, by_rust):
        assert {row["id"] for row in reader(tmp_path / "t", View())} == {"k1", "k4", "k5", "k9"}
    table.clean(retain_commits=1)
    assert by_rust(tmp_path / "t", View()) == ours(tmp_path / "t", View())
