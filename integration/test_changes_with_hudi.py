"""The change feed beside Apache Hudi's change queries, on tables with change logs that Apache Hudi writes here and now."""

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from integration.change_queries import (
    EACH_PAIR,
    KINDS_OF_LOGS,
    OPTIONS,
    SCHEMA,
    changes_by_hudi,
    events,
    options_of,
    rows,
)
from integration.hudi_client import HudiPeer, PeerError
from integration.views import by_hudi, differences, ours
from tests.change_feed import check_feed, check_in_order
from tests.effort import soak_but


def write_history(hudi: HudiPeer, path: Path, options: dict[str, str]) -> None:
    def write(data: pa.Table, operation: str, mode: str = "append") -> None:
        hudi.write(path, data, {**options, "hoodie.datasource.write.operation": operation}, mode=mode)

    write(rows("1a", "2a", "3b", "4b", n=1, ts=10), "insert", "overwrite")
    write(rows("1a", "5a", "3b", n=2, ts=20), "upsert")
    write(rows("2a", n=3, ts=5), "upsert")  # late: it changes nothing
    write(rows("4b", "1a", n=4, ts=30), "delete")
    write(rows("4b", "3b", n=5, ts=40), "upsert")
    if options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ":
        hudi.run_compaction(path, op="scheduleAndExecute")
        write(rows("2a", "5a", n=6, ts=50), "upsert")
    write(rows("6b", n=7, ts=10), "insert_overwrite")
    write(rows("6b", "7b", n=8, ts=20), "upsert")


@pytest.mark.parametrize(("kind", "version", "mode"), soak_but(EACH_PAIR, KINDS_OF_LOGS))
def test_the_feed_has_the_events_of_apache_hudi(
    hudi: HudiPeer, tmp_path: Path, kind: str, version: str, mode: str
) -> None:
    path = tmp_path / "t"
    options = options_of(kind, version, mode)
    write_history(hudi, path, options)
    table = hoodie.open_table(path)
    check_feed(table)
    assert differences(path, ours, by_hudi(hudi)) == []
    begin = None
    for instant in table.timeline.commits:
        found = events(table.changes(begin, instant.position, images="cdc").to_arrow())
        since, until = begin or "000", instant.position
        if (kind, version) == ("MERGE_ON_READ", "6") and instant.action == "deltacommit" and begin is not None:
            # Hudi 1.2.0 takes the metadata of a delta commit that wrote logs for an Avro file.
            with pytest.raises(PeerError, match="Not an Avro data file"):
                changes_by_hudi(hudi, path, since, until)
        else:
            assert found == events(changes_by_hudi(hudi, path, since, until)), str(instant)
        begin = instant.position


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_key_that_an_overwrite_keeps_is_a_delete_and_an_insert(
    hudi: HudiPeer, tmp_path: Path, kind: str, version: str
) -> None:
    path = tmp_path / "t"
    options = {**OPTIONS, "hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": version}
    for operation, data in (
        ("insert", rows("1a", "2a", "3b", n=1, ts=10)),
        ("insert_overwrite", rows("2a", "4a", n=2, ts=20)),
        ("insert_overwrite_table", rows("4a", "3b", n=3, ts=30)),
    ):
        hudi.write(path, data, {**options, "hoodie.datasource.write.operation": operation}, mode="append")
    table = hoodie.open_table(path)
    first, second, third = (instant.position for instant in table.timeline.commits)
    told = []
    for since, until in ((first, second), (second, third)):
        found = events(table.changes(since, until, images="cdc").to_arrow())
        assert found == events(changes_by_hudi(hudi, path, since, until))
        told.append([(op, (before or after)["id"]) for op, _, before, after in found])
    assert told == [
        [("d", "1a"), ("d", "2a"), ("i", "2a"), ("i", "4a")],
        [("d", "2a"), ("d", "3b"), ("d", "4a"), ("i", "3b"), ("i", "4a")],
    ]
    check_in_order(table, None, third, by_id)


@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_keys_that_a_global_index_moves_are_deleted_before_they_are_inserted(
    hudi: HudiPeer, tmp_path: Path, kind: str, version: str
) -> None:
    path = tmp_path / "t"
    options = {
        **OPTIONS,
        "hoodie.datasource.write.table.type": kind,
        "hoodie.write.table.version": version,
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "true",
        "hoodie.parquet.small.file.limit": "104857600",
    }
    del options["hoodie.table.cdc.enabled"]
    places = [{f"k{n}": "abc"[(n + n * turn) % 3] for n in range(9)} for turn in range(5)]
    for turn, by_key in enumerate(places):
        found = [{"id": k, "part": part, "n": turn, "tags": [k], "ts": turn} for k, part in by_key.items()]
        data = pa.Table.from_pylist(found, schema=SCHEMA)
        hudi.write(path, data, {**options, "hoodie.datasource.write.operation": "upsert"}, mode="append")
    table = hoodie.open_table(path)
    ends = [instant.position for instant in table.timeline.commits]
    for since, until in itertools.pairwise(ends):
        found = Counter(table.changes(since, until, images="before_after").to_arrow()["op"].to_pylist())
        assert found == {"d": 6, "i": 6, "u": 3}
        check_in_order(table, since, until, by_id)
    check_in_order(table, None, ends[-1], by_id)
    assert {row["id"]: row["part"] for row in table.scan().to_arrow().to_pylist()} == places[-1]


def by_id(row: dict[str, Any]) -> str:
    return str(row["id"])
