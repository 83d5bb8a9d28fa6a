"""Random statements give what the same text gives on a plain table of DuckDB."""

import pytest

import hoodie
from tests.dml.random_statements import SCHEMA, Statements
from tests.effort import long_but

duckdb = pytest.importorskip("duckdb")

STEPS = 10


@pytest.mark.parametrize(
    ("kind", "index"), [("COPY_ON_WRITE", "BLOOM"), ("MERGE_ON_READ", "GLOBAL_SIMPLE"), ("MERGE_ON_READ", "BLOOM")]
)
@pytest.mark.parametrize("seed", long_but([0], range(20)))
def test_statements_give_what_duckdb_gives(tmp_path, kind, index, seed):
    made = Statements(seed)
    options = {"hoodie.index.type": index}
    table = hoodie.create_table(
        tmp_path / "t", SCHEMA, record_key="id", partition_by="part", table_type=kind, options=options
    )
    plain = duckdb.connect()
    first = made.rows()
    table.upsert(first)
    plain.register("first_rows", first)
    plain.execute("CREATE TABLE t AS FROM first_rows")
    for _ in range(STEPS):
        source, u = made.rows(), made.rows().select(["id"])
        plain.register("s", source)
        plain.register("u", u)
        text = made.statement()
        plain.execute(text)
        hoodie.sql(text, t=table, s=source, u=u)
        expected = plain.sql("FROM t").fetchall()
        found = [tuple(row.values()) for row in hoodie.sql("SELECT id, part, n, x, note FROM t", t=table).to_pylist()]
        assert sorted(found, key=repr) == sorted(expected, key=repr), text
