"""Our timeline server and Apache Hudi's client, and the other way round: answers are those of Hudi's own view, which lists."""

import shutil

import pyarrow as pa
import pytest

import hoodie
import hoodie.timeline_server
from hoodie.engine.local import LocalEngine
from hoodie.options.values import ViewStore
from hoodie.options.view import RemoteOptions, ViewOptions
from hoodie.storage.cache import Cache
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from hoodie.table import HoodieTable, open_at
from hoodie.view.context import TableContext
from integration.hudi_client import PeerError
from integration.tables import TRIPS, completes_write, trips
from integration.turns import CLEAN_NOW, FAIL_AFTER_WRITING, Turns
from tests.rows import rows_of
from tests.servers.http_proxy import Failing, HttpProxy

PARTITIONS = ("oslo", "rome", "not/there")
PLAN_CLUSTERING = {"hoodie.clustering.schedule.inline": "true", "hoodie.clustering.inline.max.commits": "1"}
OVERWRITE = {"hoodie.datasource.write.operation": "insert_overwrite"}


def compare(hudi, path, server, partitions=PARTITIONS):
    """Every method of Hudi's view: by listing, and from the server; gives how many answers there were."""
    expected = hudi.view_answers(path, partitions)
    host = f"hoodie:{server.token}@127.0.0.1" if server.token else "127.0.0.1"
    found = hudi.view_answers(path, partitions, host=host, port=server.port)
    assert found.keys() == expected.keys()
    differ = {key: (found[key], expected[key]) for key in expected if found[key] != expected[key]}
    differ = {key: both for key, both in differ.items() if both[1] is not None}  # where Hudi's own view throws
    assert not differ, "\n".join(f"{key}\n  ours {ours}\n  hudi {theirs}" for key, (ours, theirs) in differ.items())
    return len(found)


@pytest.mark.parametrize("store", ["memory", "spillable", "rocksdb"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudis_client_gets_from_our_server_what_hudi_lists(hudi, tmp_path, table_type, store):
    if store != "memory" and table_type == "COPY_ON_WRITE":
        pytest.skip("the stores are told apart by merge-on-read tables")
    if store == "rocksdb":
        pytest.importorskip("rocksdict")
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(8), fare=1, ts=10))
    cities = sorted({row["city"] for row in trips(range(8), fare=1, ts=10)})
    with hoodie.timeline_server.start(turns.path, store) as server:
        check = [compare(hudi, turns.path, server, [*cities, "not/there"])]
        turns.hudi_upserts(trips(range(4), fare=2, ts=11))
        check.append(compare(hudi, turns.path, server, cities))
        turns.we_upsert(trips(range(10), fare=3, ts=12))
        if table_type == "MERGE_ON_READ":
            hoodie.open_table(turns.path).schedule_compaction()
            check.append(compare(hudi, turns.path, server, cities))
            turns.table.upsert(
                trips(range(6), fare=4, ts=13)
            )  # logs of the pending compaction's slices, which hudi-rs misses
            check.append(compare(hudi, turns.path, server, cities))
            hoodie.open_table(turns.path).run_compaction()
            turns.check("after the compaction")
            check.append(compare(hudi, turns.path, server, cities))
        turns.hudi_upserts_and_cleans_up(trips(range(3), fare=5, ts=14))
        check.append(compare(hudi, turns.path, server, cities))
        hoodie.open_table(turns.path).delete_partitions([cities[0]])
        check.append(compare(hudi, turns.path, server, cities))
        assert hoodie.open_table(turns.path).schedule_clustering(sort_by="fare")
        check.append(compare(hudi, turns.path, server, cities))
    assert min(check) > 50


def newer(hudi, path, table_type, version):
    """Gives how Hudi writes trips into a table of version 8 or 9."""
    options = {
        "hoodie.table.name": path.name,
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "city",
        "hoodie.datasource.write.precombine.field": "ts",
        "hoodie.datasource.write.table.type": table_type,
    }

    def write(numbers, ts, *, mode="append", more=None):
        rows = pa.Table.from_pylist(trips(numbers, fare=ts, ts=ts), schema=TRIPS)
        hudi.write(path, rows, options | (more or {}), mode=mode)

    return write


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudis_client_gets_the_same_of_tables_of_newer_versions(hudi, tmp_path, table_type, version):
    path, write = tmp_path / "trips", newer(hudi, tmp_path / "trips", table_type, version)
    write(range(8), 10, mode="overwrite")
    cities = sorted({row["city"] for row in trips(range(8), fare=1, ts=10)})
    with hoodie.timeline_server.start(path) as server:
        check = [compare(hudi, path, server, [*cities, "not/there"])]
        write(range(4), 11)
        check.append(compare(hudi, path, server, cities))
        if table_type == "MERGE_ON_READ":
            hudi.run_compaction(path, op="schedule", options={"hoodie.compact.inline.max.delta.commits": "1"})
            check.append(compare(hudi, path, server, cities))
            write(range(6), 12)
            check.append(compare(hudi, path, server, cities))
            hudi.run_compaction(path)
            check.append(compare(hudi, path, server, cities))
        with pytest.raises(PeerError):
            write(range(4), 13, more=FAIL_AFTER_WRITING)  # until it is rolled back, Hudi's view tells of its logs
        write(range(3), 14, more=CLEAN_NOW)
        check.append(compare(hudi, path, server, cities))
        write(range(2), 15, more=OVERWRITE)
        check.append(compare(hudi, path, server, cities))
        write(range(20, 24), 16, more=PLAN_CLUSTERING)
        check.append(compare(hudi, path, server, cities))
        assert hoodie.open_table(path).pending_clusterings()
    assert min(check) > 40
    assert int(hoodie.open_table(path).config.version) == int(version)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_our_client_gets_from_hudis_server_what_we_list(hudi, tmp_path, table_type):
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(8), fare=1, ts=10))
    port = hudi.start_timeline_server(turns.path)
    try:
        remote = RemoteOptions("127.0.0.1", port, is_only=True)
        view = ViewOptions(type=ViewStore.REMOTE_ONLY, remote=remote)
        context = TableContext.open(LocalStorage(turns.path), LocalEngine(1), cache=Cache(), view=view)

        def check():
            snapshot, listed = context.snapshot(), context.on_storage().snapshot()
            paths = listed.view.every_partition()
            assert snapshot.view.every_partition() == paths
            assert {p: snapshot.view.file_groups(p) for p in paths} == {p: listed.view.file_groups(p) for p in paths}
            assert not context.remote._has_files  # Hudi's server does not know that request

        check()
        turns.we_upsert(trips(range(10), fare=2, ts=11))
        check()
        if table_type == "MERGE_ON_READ":
            hoodie.open_table(turns.path).schedule_compaction()
            turns.table.upsert(trips(range(6), fare=3, ts=12))  # hudi-rs misses logs beside a pending compaction
            check()
        turns.hudi_upserts_and_cleans_up(trips(range(3), fare=5, ts=14))
        check()
        hoodie.open_table(turns.path).delete_partitions(["ny"])
        check()
    finally:
        hudi.stop_timeline_server(port)


@pytest.mark.parametrize(
    ("table_type", "version"), [("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "8"), ("MERGE_ON_READ", "9")]
)
def test_our_client_gets_the_same_of_tables_of_newer_versions(hudi, tmp_path, table_type, version):
    path, write = tmp_path / "trips", newer(hudi, tmp_path / "trips", table_type, version)
    write(range(8), 10, mode="overwrite")
    port = hudi.start_timeline_server(path)
    try:
        remote = RemoteOptions("127.0.0.1", port, is_only=True)
        view = ViewOptions(type=ViewStore.REMOTE_ONLY, remote=remote)
        table = HoodieTable(TableContext.open(LocalStorage(path), LocalEngine(1), cache=Cache(), view=view))

        def check():
            snapshot, listed = table._context.snapshot(), table._context.on_storage().snapshot()
            paths = listed.view.every_partition()
            assert {p: snapshot.view.file_groups(p) for p in paths} == {p: listed.view.file_groups(p) for p in paths}
            assert rows_of(table.to_arrow()) == rows_of(hoodie.open_table(path).to_arrow())

        check()
        write(range(4), 11)
        check()
        if table_type == "MERGE_ON_READ":
            hudi.run_compaction(path, op="schedule", options={"hoodie.compact.inline.max.delta.commits": "1"})
            write(range(6), 12)
            check()
            hudi.run_compaction(path)
            check()
        with pytest.raises(PeerError):
            write(range(4), 13, more=FAIL_AFTER_WRITING)
        check()
        write(range(3), 14, more=CLEAN_NOW)
        check()
        write(range(2), 15, more=OVERWRITE)
        check()
    finally:
        hudi.stop_timeline_server(port)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudis_writer_has_files_and_markers_from_our_server(hudi, tmp_path, table_type):
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(8), fare=1, ts=10))
    with hoodie.timeline_server.start(turns.path) as server:
        turns.options |= server.options | {
            "hoodie.filesystem.view.type": "REMOTE_ONLY",
            "hoodie.write.markers.type": "TIMELINE_SERVER_BASED",
        }
        turns.hudi_upserts(trips(range(10), fare=2, ts=11))
        with pytest.raises(PeerError):
            hudi.write(turns.path, turns.arrow(trips(range(4), fare=9, ts=12)), turns.options | FAIL_AFTER_WRITING)
        (folder,) = (turns.path / ".hoodie" / ".temp").iterdir()
        assert (folder / "MARKERS.type").read_text() == "TIMELINE_SERVER_BASED"
        named = sorted(line for file in folder.glob("MARKERS[0-9]*") for line in file.read_text().splitlines())
        assert named
        assert all(".marker." in line and line.split("/")[0] in ("ny", "sf") for line in named)
        turns.hudi_upserts(trips(range(4), fare=3, ts=13))  # rolls the failed one back by its markers
        assert not folder.exists()
    turns.options["hoodie.filesystem.view.type"] = "MEMORY"
    turns.we_upsert(trips(range(4), fare=4, ts=14))


def test_a_failed_write_of_hudi_with_gathered_markers_is_rolled_back_by_us(hudi, tmp_path):
    turns = Turns(hudi, tmp_path / "trips", "COPY_ON_WRITE")
    turns.create()
    turns.we_upsert(trips(range(8), fare=1, ts=10))
    with hoodie.timeline_server.start(turns.path) as server:
        options = turns.options | server.options | {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED"}
        with pytest.raises(PeerError):
            hudi.write(turns.path, turns.arrow(trips(range(4), fare=9, ts=12)), options | FAIL_AFTER_WRITING)
    assert list((turns.path / ".hoodie" / ".temp").rglob("MARKERS*"))
    hoodie.open_table(turns.path).rollback()
    turns.check("after our rollback")
    assert not list((turns.path / ".hoodie" / ".temp").rglob("MARKERS*"))


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_of_ours_that_died_among_its_gathered_markers_is_rolled_back_by_hudi(hudi, tmp_path, table_type):
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(8), fare=1, ts=10))
    gathered = {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED"}
    for turn, how in enumerate(("no marker", "all markers", "a file", "all files")):
        rows = turns.arrow(trips(range(10), fare=9, ts=20 + turn))
        trial = tmp_path / f"trial{turn}"
        shutil.copytree(turns.path, trial)
        traced = FaultStorage(LocalStorage(trial))
        open_at(traced).upsert(rows, gathered)
        marked = next(call.n for call in traced.trace if call.path.endswith("/MARKERS0"))
        completed = next(call.n for call in traced.trace if completes_write(call.path))
        fault = {
            "no marker": Fault(marked),
            "all markers": Fault(marked, "after"),
            "a file": Fault(marked + 1, "after"),
            "all files": Fault(completed),
        }[how]
        with pytest.raises(InjectedFault):
            open_at(FaultStorage(LocalStorage(turns.path), [fault])).upsert(rows, gathered)
        assert list((turns.path / ".hoodie" / ".temp").rglob("MARKERS.type")), how
        turns.hudi_upserts(trips(range(2), fare=20 + turn, ts=20 + turn))
        assert not list((turns.path / ".hoodie" / ".temp").rglob("MARKERS*")), how
    turns.we_upsert(trips(range(10), fare=9, ts=30))


@pytest.mark.parametrize("failing", [Failing.RESET, Failing.LOST_ANSWER])
def test_a_write_of_hudi_whose_marker_server_dies_changes_nothing_and_is_rolled_back_by_us(hudi, tmp_path, failing):
    turns = Turns(hudi, tmp_path / "trips", "COPY_ON_WRITE")
    turns.create()
    turns.we_upsert(trips(range(8), fare=1, ts=10))
    with hoodie.timeline_server.start(turns.path) as server, HttpProxy(server.address) as proxy:
        options = turns.options | server.options | {"hoodie.write.markers.type": "TIMELINE_SERVER_BASED"}
        options["hoodie.filesystem.view.remote.port"] = proxy.endpoint.rpartition(":")[2]
        proxy.fail_from(1, failing, kinds=frozenset({"POST"}))
        with pytest.raises(PeerError):
            hudi.write(turns.path, turns.arrow(trips(range(8), fare=9, ts=12)), options)
        assert proxy.failed
    turns.check("hudi has failed")
    turns.we_upsert(trips(range(4), fare=3, ts=13))
    assert not list((turns.path / ".hoodie" / ".temp").rglob("MARKERS*"))
