"""A table as a Dataset: what others ask of it arrives as columns and filters of a scan."""

import secrets

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import hoodie
from hoodie.errors import OptionError
from hoodie.read.dataset import TableDataset


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def table(request, tmp_path):
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="day", ordering="ts", table_type=request.param
    )
    table.insert([{"id": n, "day": f"2026-01-{1 + n % 10:02}", "ts": 1, "n": n, "name": f"x{n}"} for n in range(100)])
    table.upsert([{"id": n, "day": f"2026-01-{1 + n % 10:02}", "ts": 2, "n": -n, "name": None} for n in range(20)])
    return table


@pytest.fixture
def watched(table):
    """The dataset, and the scans that are made of it."""
    scans = []

    def scan(columns=None, where=None):
        scans.append(table.scan(columns, where))
        return scans[-1]

    return TableDataset(scan), scans


def slices(scan):
    return len({task.slice.group for task in scan.plan.tasks})


def test_duckdb_pushes_columns_and_filters_down(watched):
    trips, scans = watched
    con = duckdb.connect()
    con.register("trips", trips)
    query = "SELECT sum(n), count(name) FROM trips WHERE day = '2026-01-03' AND id > 5"
    assert con.execute(query).fetchone() == (sum(range(22, 100, 10)) - 12, 8)
    assert slices(scans[-1]) == 1
    assert {*scans[-1].plan.output.names} <= {"n", "name", "day", "id"}


def test_polars_pushes_columns_and_filters_down(watched):
    trips, scans = watched
    found = pl.scan_pyarrow_dataset(trips).filter(pl.col("day") == "2026-01-03").select("id").collect()
    assert sorted(found["id"]) == list(range(2, 100, 10))
    assert slices(scans[-1]) == 1
    assert {*scans[-1].plan.output.names} <= {"id", "day"}


def test_pyarrow_asks_it_as_its_own(table):
    trips = table.dataset()
    where = (pc.field("day") == "2026-01-03") & (pc.field("n") > 50)
    assert trips.schema == table.scan().schema
    assert sorted(trips.to_table(columns=["id"], filter=where).column("id").to_pylist()) == list(range(52, 100, 10))
    assert trips.count_rows(filter=where) == 5
    assert trips.head(3).num_rows == 3
    assert pa.Table.from_batches(trips.to_batches(columns=["id"])).num_rows == 100


def test_what_arrow_does_with_a_dataset_is_done_with_the_rows(table):
    trips, other = table.dataset(), ds.dataset(pa.table({"id": [3, 4], "more": ["a", "b"]}))
    few = trips.filter(pc.field("id") < 3)
    assert few.filter(pc.field("id") > 0).count_rows() == 2
    assert few.sort_by([("id", "descending")]).to_table()["id"].to_pylist() == [2, 1, 0]
    assert trips.join(other, "id", join_type="inner").to_table().sort_by("id")["more"].to_pylist() == ["a", "b"]
    assert other.join(ds.dataset(trips.to_table()), "id").count_rows() == 2
    assert trips.join(few, "id", join_type="inner", right_suffix="2").count_rows() == 3
    assert few.take([0, 1]).num_rows == few.scanner().take([2, 0]).num_rows == 2
    assert trips.replace_schema(trips.schema).count_rows() == 100
    assert "name" in repr(trips)
    with pytest.raises(pa.ArrowInvalid, match="ask this dataset by its own methods"):
        other.join(trips, "id")  # Arrow's C++ on the other side


def test_columns_are_computed_of_those_that_they_name(watched):
    trips, scans = watched
    where = pc.field("day") == "2026-01-03"
    doubled = {"double": pc.field("n") * 2, "name": pc.field("name"), "one": pc.scalar(1)}
    found = trips.to_table(columns=doubled, filter=where)
    assert {*scans[-1].plan.output.names} <= {"n", "name", "day"}
    assert slices(scans[-1]) == 1
    plain = ds.dataset(scans[-1].to_arrow()).to_table(columns=doubled)
    assert sorted(found.to_pylist(), key=repr) == sorted(plain.to_pylist(), key=repr)
    scanner = trips.scanner(columns=doubled, filter=where)
    assert scanner.projected_schema == found.schema == scanner.to_reader().schema
    assert scanner.to_reader().read_all().num_rows == scanner.count_rows() == found.num_rows == 10
    assert pa.Table.from_batches(trips.to_batches(columns=doubled)).num_rows == 100
    assert trips.head(3, columns=doubled).column_names == ["double", "name", "one"]
    assert trips.to_table(columns={"one": pc.scalar(1)}).num_rows == 100
    (fragment,) = trips.get_fragments(where)
    assert fragment.to_table(columns={"n": pc.field("n")}).num_rows == 10


@pytest.mark.parametrize("wrong", [pc.field("m"), pc.field("name") + 1, "n"])
def test_columns_that_cannot_be_computed_are_one_sentence(table, wrong):
    with pytest.raises(OptionError, match="does not fit the table"):
        table.dataset().to_table(columns={"x": wrong})


@pytest.mark.parametrize("form", ["dataset", "few", "scanner", "computed"])
def test_pyarrow_writes_it_down(table, form, tmp_path):
    trips = table.dataset()
    given = {
        "dataset": trips,
        "few": trips.filter(pc.field("id") >= 0),
        "scanner": trips.scanner(),
        "computed": trips.scanner(columns={name: pc.field(name) for name in trips.schema.names}),
    }[form]
    ds.write_dataset(given, tmp_path / "out", format="parquet", partitioning=["day"], partitioning_flavor="hive")
    assert len(list((tmp_path / "out").iterdir())) == 10
    back = ds.dataset(tmp_path / "out", partitioning="hive").to_table()
    assert back.select(["id", "n"]).sort_by("id") == trips.to_table(columns=["id", "n"]).sort_by("id")


def test_another_table_takes_its_rows(table):
    copy = hoodie.create_table(f"memory://{secrets.token_hex(8)}", record_key="id")
    trips = table.dataset()
    assert copy.upsert(trips).inserted == 100
    assert copy.upsert(trips.scanner(filter=pc.field("id") < 5)).updated == 5


def test_a_fragment_takes_its_arguments_as_those_of_pyarrow_do(table):
    (fragment,) = table.dataset().get_fragments(pc.field("id") < 9)
    assert fragment.scanner(fragment.schema, columns=["id"], filter=pc.field("id") > 5).to_table().num_rows == 3
    assert fragment.to_table(fragment.schema, ["id"]).column_names == ["id"]
    assert fragment.count_rows() == 9


def test_each_query_sees_the_newest_state(table):
    trips = table.dataset()
    con = duckdb.connect()
    con.register("trips", trips)
    table.delete(where="id < 50")
    assert con.execute("SELECT count(*), min(id) FROM trips").fetchone() == (50, 50)


@pytest.mark.parametrize(
    "where",
    [
        "n < 0 OR name = 'x44'",
        "name IS NULL AND n <> -3",
        "id IN (1, 50, 77)",
        "NOT (id BETWEEN 10 AND 90)",
        "day >= '2026-01-09' AND name LIKE 'x9%'",
        "n * 2 > 100",
        "coalesce(name, 'x') = 'x'",
    ],
)
def test_filters_mean_what_they_mean_over_plain_rows(table, where):
    plain, con = table.scan().to_arrow(), duckdb.connect()
    con.register("trips", table.dataset())
    con.register("plain", plain)
    query = f"SELECT id FROM {{}} WHERE {where} ORDER BY id"
    assert con.execute(query.format("trips")).fetchall() == con.execute(query.format("plain")).fetchall()
