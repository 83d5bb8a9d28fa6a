"""`columns=[]`: rows without columns are rows all the same."""

import pyarrow as pa
import pytest

import hoodie

ROWS = pa.table({"id": ["a", "b", "c"], "part": ["x", "x", "y"], "n": [1, 2, 3]})
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]


def counts(scan):
    return (
        scan.count(),
        scan.to_arrow().num_rows,
        sum(batch.num_rows for batch in scan.to_batches()),
        len(scan.to_pandas()),
    )


@pytest.fixture(params=[(kind, copies) for kind in KINDS for copies in ("true", "false")], ids="-".join)
def table(tmp_path, request):
    kind, copies = request.param
    options = {"hoodie.python.mor.row.copies": copies}
    made = hoodie.create_table(
        tmp_path / "t", ROWS.schema, record_key="id", partition_by="part", table_type=kind, options=options
    )
    made.insert(ROWS)
    made.upsert(pa.table({"id": ["c", "d"], "part": ["y", "y"], "n": [30, 40]}))
    made.delete(pa.table({"id": ["a"], "part": ["x"]}))
    return made


def test_every_way_of_reading_gives_their_number(table):
    first = table.timeline.commits[0].time
    assert counts(table.scan(columns=[])) == (3,) * 4
    assert counts(table.scan(columns=[], where="n > 2")) == (2,) * 4
    assert counts(table.scan(columns=[], as_of=first)) == (3,) * 4
    assert counts(table.scan(columns=[], meta_columns=True)) == (3,) * 4
    assert counts(table.changes(columns=[])) == (3,) * 4
    assert counts(table.changes(since=first, columns=[], where="n > 30")) == (1,) * 4
    assert table.scan(columns=[]).to_arrow().column_names == []


def test_a_reader_takes_them_through_an_arrow_stream(table):
    reader = pa.RecordBatchReader.from_stream(table.scan(columns=[]))
    assert reader.schema == pa.schema([])
    assert reader.read_all().num_rows == 3


def test_the_change_feed_says_what_happened_and_nothing_of_the_rows(table):
    first = table.timeline.commits[0].time
    scan = table.changes(since=first, columns=[], images="before_after")
    found = scan.to_arrow().drop_columns(["instant"]).to_pylist()
    assert scan.count() == 3
    assert sorted(found, key=lambda row: row["op"]) == [
        {"op": "d", "before": {}, "after": None},
        {"op": "i", "before": None, "after": {}},
        {"op": "u", "before": {}, "after": {}},
    ]
    texts = table.changes(since=first, columns=[], images="cdc").to_arrow().select(["before", "after"]).to_pylist()
    assert sorted((row["before"] or "", row["after"] or "") for row in texts) == [("", "{}"), ("{}", ""), ("{}", "{}")]


def test_a_table_without_rows_has_none(tmp_path):
    empty = hoodie.create_table(tmp_path / "t", record_key="id")
    assert counts(empty.scan(columns=[])) == (0,) * 4
    assert counts(empty.scan()) == (0,) * 4
