"""The harness itself: what the peers read through it from the golden tables is what was recorded with them.

When this fails, the machinery of the other integration tests is broken, not hoodie.
"""

import pyarrow as pa
import pytest

from integration import rust_peer
from integration.hudi_client import PeerError
from tests.golden_tables import golden_names
from tests.rows import without

ALL_VIEWS = ["v6_cow_simple", "v6_mor_logs", "v6_mor_pending_compaction"]


def readable(entries):
    """Entries that hold rows; the others are reads that Hudi itself refused, because files were cleaned."""
    return [entry for entry in entries if "rows" in entry]


@pytest.mark.parametrize("name", golden_names())
def test_hudi_snapshot_is_the_recorded_one(hudi, golden, name):
    table = golden(name)
    answer = hudi.read(table.path)
    assert answer.rows == table.expected["snapshot"]
    assert answer.schema == table.expected["schema"]


@pytest.mark.parametrize("name", ALL_VIEWS)
def test_hudi_other_views_are_the_recorded_ones(hudi, golden, name):
    table = golden(name)
    assert hudi.read(table.path, "read_optimized").rows == table.expected["read_optimized"]
    for entry in readable(table.expected["incremental"]):
        assert hudi.read(table.path, "incremental", begin=entry["begin"], end=entry["end"]).rows == entry["rows"]
    for entry in readable(table.expected["time_travel"]):
        assert hudi.read(table.path, as_of=entry["as_of"]).rows == entry["rows"]


NOT_BY_HUDI_RS = {
    "v6_mor_archived",  # a test below
    "v6_mor_pending_compaction",  # a test below
    "v6_partial_update_payload",  # refused: "a merger of its own"
    "v6_several_ordering_fields",  # refused: "not yet supported"
    "v9_partial_updates",  # incremental pulls have nulls where records in logs lack columns (Apache Hudi fails there)
}


@pytest.mark.parametrize("name", sorted(set(golden_names()) - NOT_BY_HUDI_RS))
def test_hudi_rs_views_are_the_recorded_ones(golden, name):
    table = golden(name)
    assert rust_peer.read(table.path) == table.expected["snapshot"]
    assert rust_peer.read(table.path, "read_optimized") == table.expected["read_optimized"]
    for entry in readable(table.expected["incremental"]):
        assert rust_peer.read(table.path, "incremental", begin=entry["begin"], end=entry["end"]) == entry["rows"]
    for entry in readable(table.expected["time_travel"]):
        assert rust_peer.read(table.path, as_of=entry["as_of"]) == entry["rows"]


def test_hudi_rs_loses_the_logs_that_wait_for_a_pending_compaction(golden):
    """A defect of hudi-rs 0.5.0, kept here so that a release without it is noticed: then drop the exception above."""
    table = golden("v6_mor_pending_compaction")
    scheduled = "20261121074942289"
    seen = rust_peer.read(table.path)
    assert len(seen) == 21
    assert len(table.expected["snapshot"]) == 19
    in_logs_after_the_plan = {
        row["_hoodie_record_key"]
        for row in table.expected["snapshot"]
        if row["_hoodie_commit_time"] > scheduled and not row["_hoodie_file_name"].endswith(".parquet")
    }
    found = {row["_hoodie_record_key"] for row in seen if row["_hoodie_commit_time"] > scheduled}
    assert in_logs_after_the_plan
    assert found.isdisjoint(in_logs_after_the_plan)


def test_hudi_rs_pulls_no_rows_of_archived_commits(golden):
    """A defect of hudi-rs 0.5.0, kept here so that a release without it is noticed: then drop the exception above.

    It makes a list of the commits of a range from the active timeline (`Table::resolve_incremental_window`), and keeps the rows of
    these alone. A file that a compaction wrote within the range has rows of earlier commits, which were archived since. Apache Hudi
    compares the times of rows with the range, as hoodie does. All other views are right.
    """
    table = golden("v6_mor_archived")
    assert rust_peer.read(table.path) == table.expected["snapshot"]
    assert rust_peer.read(table.path, "read_optimized") == table.expected["read_optimized"]
    for entry in readable(table.expected["time_travel"]):
        assert rust_peer.read(table.path, as_of=entry["as_of"]) == entry["rows"]
    active = {name.partition(".")[0] for name in table.expected["timeline"] if name.endswith("commit")}
    lost = 0
    for entry in readable(table.expected["incremental"]):
        kept = [row for row in entry["rows"] if row["_hoodie_commit_time"] in active]
        assert rust_peer.read(table.path, "incremental", begin=entry["begin"], end=entry["end"]) == kept
        lost += len(entry["rows"]) - len(kept)
    assert lost == 12


OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
}


def trips(ids, *, fare, ts):
    return pa.table(
        {
            "id": pa.array(ids, pa.string()),
            "fare": pa.array([fare] * len(ids), pa.float64()),
            "ts": pa.array([ts] * len(ids), pa.int64()),
            "part": pa.array(["p"] * len(ids), pa.string()),
        }
    )


def test_hudi_writes_compacts_and_both_peers_read_it(hudi, tmp_path):
    path = tmp_path / "trips"
    hudi.write(path, trips(["a", "b"], fare=1.0, ts=1), OPTIONS, mode="overwrite")
    hudi.write(path, trips(["b"], fare=2.0, ts=2), OPTIONS)
    fares = {"a": 1.0, "b": 2.0}

    def seen(rows):
        return {row["id"]: row["fare"] for row in rows}

    assert seen(hudi.read(path).rows) == seen(rust_peer.read(path)) == fares
    assert list(path.glob("p/.*.log.*"))
    assert seen(hudi.read(path, "read_optimized").rows) == {"a": 1.0, "b": 1.0}

    options = {"hoodie.compact.inline.max.delta.commits": "1"}
    hudi.run_compaction(path, op="schedule", options=options)
    hudi.run_compaction(path, op="run", options=options)

    assert list(path.glob(".hoodie/*.compaction.requested"))
    assert seen(hudi.read(path, "read_optimized").rows) == seen(rust_peer.read(path, "read_optimized")) == fares
    assert "hoodie.table.version=6" in (path / ".hoodie" / "hoodie.properties").read_text()


def test_values_cross_unchanged_in_both_directions(hudi, tmp_path, golden):
    """What Hudi reads, written back to it through the client, reads as the same values."""
    source = hudi.read(golden("v6_composite_keys").path)
    assert source.table.num_rows == 9
    meta = [name for name in source.table.column_names if name.startswith("_hoodie_")]
    options = {
        "hoodie.table.name": "again",
        "hoodie.datasource.write.recordkey.field": "k1,k2",
        "hoodie.datasource.write.partitionpath.field": "region",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    }
    hudi.write(tmp_path / "again", source.table.drop_columns(meta), options, mode="overwrite")
    again = hudi.read(tmp_path / "again").rows
    assert without(again, *meta) == without(source.rows, *meta)


def test_sql_answers_with_rows(hudi):
    answer = hudi.sql("select 1 as n, timestamp '2024-01-02 03:04:05' as at, map('k', 1.5bd) as m")
    assert answer.rows == [
        {"n": 1, "at": {"$timestamp": "2024-01-02T03:04:05.000000Z"}, "m": {"$map": [["k", {"$decimal": "1.5"}]]}}
    ]


def test_an_error_of_hudi_is_one_of_the_request_and_the_peer_goes_on(hudi, tmp_path):
    with pytest.raises(PeerError, match="nothing-here"):
        hudi.read(tmp_path / "nothing-here")
    assert hudi.sql("select 1 as n").rows == [{"n": 1}]
    assert hudi.spark_version == "3.5.9"
