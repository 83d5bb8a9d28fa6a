"""The index HBASE: rows as Apache Hudi 0.x has them, requests in batches, and one clear error when HBase does not answer."""

import uuid

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import KeyIndexError, OptionError
from hoodie.index.hbase import HBaseIndex
from hoodie.model.key_index import PLACES
from hoodie.options.parse import parse_write_options
from hoodie.options.values import IndexType
from hoodie.write.by_external import hbase_index
from tests.kept_keys import index_options
from tests.memory_tables import Input, batch, keys, new_table, opened, snapshot_of
from tests.servers.ports import free_port

pytest.importorskip("happybase")

from tests.fake_hbase import FakeHBase, running, shared

NOTHING = dict.fromkeys(PLACES.names)


@pytest.fixture
def hbase():
    with running(FakeHBase()) as server:
        yield server


def places(*rows):
    return pa.Table.from_pylist([dict(zip(PLACES.names, row, strict=True)) for row in rows], schema=PLACES)


def test_rows_are_those_of_apache_hudi(hbase):
    index = HBaseIndex("127.0.0.1", hbase.port, "t", 100, 100)
    assert index.look_up(pa.array(["k"])).to_pylist() == [NOTHING]
    index.put(pa.array(["k", "ключ:🐘"]), places(("20240101000000000", "p=1/q", "f-0"), ("2", "", "g-0")))
    assert hbase.tables[b"t"][b"k"] == {
        b"_s:commit_ts": b"20240101000000000",
        b"_s:partition_path": b"p=1/q",
        b"_s:file_name": b"f-0",
    }
    found = index.look_up(pa.array(["a", "ключ:🐘", "k"])).to_pylist()
    assert [each["file_id"] for each in found] == [None, "g-0", "f-0"]
    assert found[1]["partition_path"] == ""
    index.delete(pa.array(["k", "nobody"]))
    assert [key.decode() for key in hbase.tables[b"t"]] == ["ключ:🐘"]


@pytest.mark.parametrize("moment", ["when_missing", "before_create"])
def test_another_task_makes_the_table_at_the_same_time(hbase, moment):
    """As the tasks of a first write do."""
    setattr(hbase, moment, lambda: len(hbase.requests) < 2 or hbase.table("t"))
    index = HBaseIndex("127.0.0.1", hbase.port, "t", 100, 100)
    assert index.look_up(pa.array(["k"])).to_pylist() == [NOTHING]


def test_keys_go_in_batches(hbase):
    hbase.table("t")
    index = HBaseIndex("127.0.0.1", hbase.port, "t", get_batch=4, put_batch=3)
    some = pa.array([f"k{n}" for n in range(10)])
    index.look_up(some)
    index.put(some, places(*[("1", "p", "f")] * 10))
    index.delete(some)
    by_method = {method: [count for each, count in hbase.requests if each == method] for method, _ in hbase.requests}
    assert by_method == {"get": [4, 4, 2], "put": [3, 3, 3, 1], "delete": [3, 3, 3, 1]}


def test_no_more_keys_go_in_a_second_than_an_option_allows(hbase):
    hbase.table("t")
    index = HBaseIndex("127.0.0.1", hbase.port, "t", get_batch=1000, put_batch=1000, most_a_second=5000)
    index.look_up(pa.array([f"k{n}" for n in range(501)]))
    assert [count for _, count in hbase.requests] == [500, 1]  # a tenth of a second's share in one request


def test_a_connection_that_the_server_ended_is_made_anew(hbase):
    hbase.table("t")
    index = HBaseIndex("127.0.0.1", hbase.port, "t", 100, 100)
    index.look_up(pa.array(["k"]))
    hbase.fails = 1
    assert index.look_up(pa.array(["k"])).to_pylist() == [NOTHING]


def test_nobody_at_the_address_is_one_error():
    index = HBaseIndex("127.0.0.1", free_port(), "t", 100, 100)
    with pytest.raises(
        KeyIndexError, match=r"HBase could not look keys up in its table 't'.*Nothing of the write is visible"
    ):
        index.look_up(pa.array(["k"]))


@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_write_that_hbase_leaves_in_the_lurch_is_not_visible_and_runs_again(kind):
    options = index_options(IndexType.HBASE)
    storage, clock = new_table(table_type=kind, ordering=None, more=options)
    opened(storage, clock, options).upsert(batch([Input("k1", "a", 1), Input("k2", "a", 2)]))
    changes = batch([Input("k1", "b/c", 11), Input("k3", "a", 3)])

    def lose():
        shared().fails = 10

    shared().before_put = lose
    with pytest.raises(KeyIndexError, match="RegionTooBusy"):
        opened(storage, clock, options).upsert(changes)
    shared().before_put, shared().fails = None, 0
    assert [row[:3] for row in snapshot_of(opened(storage))] == [("k1", "a", 1), ("k2", "a", 2)]
    opened(storage, clock, options).upsert(changes)
    opened(storage, clock, options).delete(keys([Input("k2", "a")]))
    assert [row[:3] for row in snapshot_of(opened(storage))] == [("k1", "b/c", 11), ("k3", "a", 3)]


def test_a_row_stays_in_its_partition_unless_an_option_says_otherwise():
    options = {k: v for k, v in index_options(IndexType.HBASE).items() if "partition.path" not in k}
    storage, clock = new_table(table_type="COPY_ON_WRITE", more=options)
    table = opened(storage, clock, options)
    table.upsert(batch([Input("k1", "a", 1)]))
    table.upsert(batch([Input("k1", "b/c", 2)]))
    (row,) = table.scan(meta_columns=True).to_arrow().to_pylist()
    assert (row["_hoodie_partition_path"], row["part"], row["val"]) == ("a", "b/c", 2)


def test_a_table_whose_properties_say_hbase_by_a_job_of_apache_hudi_is_written_on(tmp_path):
    rows = pa.table({"id": ["a", "b"], "v": [1, 2]})
    options = index_options(IndexType.HBASE)
    table = hoodie.create_table(tmp_path / "t", rows, record_key="id", options=options)
    table.upsert(rows, options)
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    theirs = [line for line in properties.read_text().splitlines() if "python" not in line]
    properties.write_text("\n".join([*theirs, "hoodie.index.type=HBASE", ""]))
    where = {name: value for name, value in options.items() if name != "hoodie.index.type"}
    again = hoodie.open_table(tmp_path / "t", options=where)
    result = again.upsert(pa.table({"id": ["b", "c"], "v": [3, 4]}))
    assert (result.updated, result.inserted) == (1, 1)
    assert sorted(again.scan().to_arrow().to_pydict()["v"]) == [1, 3, 4]
    name = options["hoodie.index.hbase.table"]
    assert sorted(shared().tables[name.encode()]) == [b"a", b"b", b"c"]


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({"zkquorum": "zk1,zk2"}, ("zk1", 9090)),
        ({"zkquorum": "zk1:2181"}, ("zk1", 9090)),
        ({"zkquorum": "zk1", "thrift": "other:19090"}, ("other", 19090)),
        ({"thrift": "other"}, ("other", 9090)),
    ],
)
def test_the_thrift_server_is_where_options_say(options, address):
    names = {"zkquorum": "hoodie.index.hbase.zkquorum", "thrift": "hoodie.python.index.hbase.thrift"}
    given = {names[name]: value for name, value in options.items()} | {"hoodie.index.hbase.table": "t"}
    storage, _ = new_table(table_type="COPY_ON_WRITE")
    index = hbase_index(opened(storage).config, parse_write_options(given).write.index)
    assert (index.host, index.port) == address


@pytest.mark.parametrize("missing", ["hoodie.index.hbase.table", "hoodie.python.index.hbase.thrift"])
def test_what_the_options_lack_is_named(missing):
    options = {name: value for name, value in index_options(IndexType.HBASE).items() if name != missing}

    def write():
        storage, clock = new_table(table_type="COPY_ON_WRITE", more=options)
        opened(storage, clock, options).upsert(batch([Input(uuid.uuid4().hex, "a", 1)]))

    with pytest.raises(OptionError, match=missing):
        write()
