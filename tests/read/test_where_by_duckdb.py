"""Random filters with arithmetic, functions, fields of structs, CASE and parameters find the rows that DuckDB finds."""

import pytest

from hoodie.options.parse import parse_write_options
from hoodie.read.where import parse_filter
from hoodie.write.create import create_at
from tests.effort import long_but
from tests.memory_tables import FakeClock, new_storage, opened
from tests.random_filters import SCHEMA, Filters, table_of

duckdb = pytest.importorskip("duckdb")


@pytest.mark.parametrize("seed", long_but(range(3), range(60)))
def test_a_filter_finds_what_duckdb_finds(seed):
    made = Filters(seed)
    data = table_of(made.rows(30))
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    con.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = false")
    con.register("rows", data)
    for _ in range(50):
        where = made.filter()
        found = data.filter(parse_filter(made.bound(where), SCHEMA).expression)["id"].to_pylist()
        there = con.sql(f"SELECT id FROM rows WHERE {made.of_duckdb(where)} ORDER BY id").fetchall()
        assert found == [each[0] for each in there], where


def test_a_scan_leaves_out_no_file_with_such_rows():
    made = Filters(7)
    data = table_of([made.rows(1)[0] for _ in range(6)])
    clock = FakeClock()
    storage = new_storage(clock)
    options = {"hoodie.table.name": "t", "hoodie.datasource.write.recordkey.field": "id"}
    create_at(storage, parse_write_options(options).to_create(), schema=SCHEMA)
    table = opened(storage, clock)
    for start in (0, 2, 4):
        table.bulk_insert(data.slice(start, 2))
    for _ in range(20):
        where = made.bound(made.filter())
        expected = data.filter(parse_filter(where, SCHEMA).expression)["id"].to_pylist()
        assert sorted(table.scan(["id"], where).to_arrow()["id"].to_pylist()) == expected, where
