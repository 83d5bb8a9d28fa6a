"""Apache Hudi and hudi-rs read the tables that hoodie wrote: every view, row for row, meta columns too."""

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.meta_fields import META_COLUMNS
from integration import rust_peer
from integration.peer_defects import EVOLVED, hudi_rs_defects, with_decoded_regions
from integration.tables import BUILDERS, COMPOSITE, TRIPS, each_once, flights, trips
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.rows import rows_of, without
from tests.servers.s3 import shared_moto


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return each_once(tmp_path_factory)


@pytest.mark.parametrize("name", BUILDERS)
def test_the_rows_are_those_that_were_written(written, name):
    table = written(name)
    assert without(ours(table.path, View()), *META_COLUMNS) == table.rows
    for instant, rows in table.states.items():
        assert without(ours(table.path, View(as_of=instant)), *META_COLUMNS) == rows


@pytest.mark.parametrize("name", BUILDERS)
def test_hudi_reads_what_we_read(hudi, written, name):
    read = by_hudi(hudi)
    if name.endswith("composite_hive"):
        read = with_decoded_regions(read)
    assert differences(written(name).path, ours, read) == []


@pytest.mark.parametrize("name", BUILDERS)
def test_hudi_rs_reads_what_we_read(written, name):
    table = written(name)
    assert differences(table.path, ours, by_rust, skip=hudi_rs_defects(name, table)) == []


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_rs_reads_our_tables_in_an_object_store(table_type):
    server = shared_moto()
    uri = server.new_uri()
    table = hoodie.create_table(
        uri,
        TRIPS,
        record_key="id",
        partition_by="city",
        ordering="ts",
        table_type=table_type,
        storage_options=server.options,
    )
    first = table.upsert(pa.Table.from_pylist(trips(range(8), fare=1, ts=10), schema=TRIPS)).instant
    table.upsert(pa.Table.from_pylist(trips([2, 3, 9], fare=2, ts=20), schema=TRIPS))
    table.delete(pa.Table.from_pylist(trips([4], fare=2, ts=20), schema=TRIPS))
    theirs = server.options | {"aws_allow_http": "true"}
    for as_of in (None, first):
        found = rust_peer.read(uri, as_of=as_of, storage_options=theirs)
        assert found == rows_of(table.scan(as_of=as_of, meta_columns=True).to_arrow())
        assert len(found) == 8


def test_hudi_rs_knows_no_hdfs():
    """Should this fail, let it read the tables of `test_hdfs.py`."""
    with pytest.raises(Exception, match="Unable to recognise URL"):
        rust_peer.read("hdfs://127.0.0.1:1/t")


# -- defects of the peers, each with a test that notices when it is gone -------------------------------------------------


def test_hudi_s_incremental_queries_take_partition_values_from_the_path_without_decoding_them(hudi, tmp_path):
    """In Hudi 1.2.0, on Hudi's own tables too; its snapshot shows what is in the file."""
    path = tmp_path / "flights"
    options = {
        "hoodie.table.name": "flights",
        "hoodie.datasource.write.recordkey.field": "carrier,number",
        "hoodie.datasource.write.partitionpath.field": "region,day",
        "hoodie.datasource.write.precombine.field": "at",
        "hoodie.datasource.write.hive_style_partitioning": "true",
        "hoodie.datasource.write.partitionpath.urlencode": "true",
    }
    rows = pa.Table.from_pylist(flights([3], seats=1, hour=1), schema=COMPOSITE)
    hudi.write(path, rows, options, mode="overwrite")
    assert [row["region"] for row in hudi.read(path).rows] == ["100%"]
    assert [row["region"] for row in hudi.read(path, "incremental", begin="000").rows] == ["100%25"]


@pytest.mark.parametrize("name", ["mor_compacted", "mor_pending_compaction", *EVOLVED])
def test_hudi_rs_still_has_its_defects(written, name):
    """When this fails, a release of hudi-rs got better: take its exception out of `hudi_rs_defects`."""
    table = written(name)
    skip = hudi_rs_defects(name, table)

    def tried(path, view):
        try:
            return by_rust(path, view)
        except Exception as error:  # noqa: BLE001 - any refusal is the defect
            return [{"error": str(error)}]

    assert differences(table.path, ours, tried, skip=lambda view: not skip(view))


def test_hudi_s_incremental_queries_lose_logs_of_base_files_that_are_younger_than_a_pending_compaction(hudi, tmp_path):
    """In its own tables of version 6 too, no hand of ours in them: the query's timeline is that of its range and the pending
    compaction, so a base file from between the two counts as not committed (`MergeOnReadIncrementalRelationV1`). When this fails,
    take the exception out of `history_run`."""
    path = tmp_path / "trips"
    options = {
        "hoodie.table.name": "trips",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
    }

    def write(key, city, ts, mode="append"):
        hudi.write(path, pa.table({"id": [key], "city": [city], "ts": [ts]}), options, mode=mode)

    write("a", "sf", 1, mode="overwrite")
    write("a", "sf", 2)
    hudi.run_compaction(path, op="schedule", options={"hoodie.compact.inline.max.delta.commits": "1"})
    write("b", "ny", 1)
    write("b", "ny", 2)
    table = hoodie.open_table(path)
    (pending,) = table.pending_compactions()
    begin, end = (commit.time for commit in table.timeline.commits[-2:])
    assert pending.time < begin
    pull = View("incremental", begin, end)
    assert [row["ts"] for row in ours(path, pull)] == [2]
    assert by_rust(path, pull) == ours(path, pull)
    assert by_hudi(hudi)(path, pull) == []
