"""Random UPDATEs, MERGEs and DELETEs: the table has the rows that the same statements leave in a plain table of DuckDB."""

import random

import duckdb
import pyarrow as pa
import pytest

import hoodie

SCHEMA = pa.schema(
    [("id", pa.int64()), ("part", pa.string()), ("ts", pa.int64()), ("n", pa.int64()), ("name", pa.string())]
)
PARTS = ("a", "b", "c")
CONDITIONS = ("n > 3", "name = 'x'", "id in (1, 4, 7, 10)", "part = 'a'", "n is null", "name in ('y', 'z') and n < 6")
VALUES = {
    "n": ("n + 1", "coalesce(n, 0) * 2", "id", "NULL"),
    "name": ("'x'", "concat(name, part)", "upper(name)", "NULL"),
}
OF_BOTH = {"n": ("t.n + s.n", "s.n", "greatest(t.n, s.n)"), "name": ("s.name", "concat(t.name, s.name)")}


class Plain:
    """The same rows where nothing is known of keys: each statement as DuckDB has it."""

    def __init__(self, rows):
        self.con = duckdb.connect()
        self.con.register("rows", rows)
        self.con.execute("CREATE TABLE t AS SELECT * FROM rows")

    def rows(self):
        return sorted(self.con.execute("SELECT id, part, n, name FROM t").fetchall(), key=repr)


def some_rows(rng, ids):
    columns = [
        ids,
        [rng.choice(PARTS) for _ in ids],
        [0] * len(ids),
        [rng.choice([None, *range(9)]) for _ in ids],
        [rng.choice([None, "x", "y", "z"]) for _ in ids],
    ]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, SCHEMA, strict=True)], schema=SCHEMA)


def update(rng, table, plain):
    chosen = rng.sample(sorted(VALUES), rng.choice((1, 2)))
    values = {name: rng.choice(VALUES[name]) for name in chosen}
    if rng.random() < 0.3:
        values["part"] = rng.choice(("'c'", "CASE part WHEN 'a' THEN 'b' ELSE 'a' END"))
    where = rng.choice(CONDITIONS)
    table.update(values, where=where)
    plain.con.execute("UPDATE t SET " + ", ".join(f"{n} = {e}" for n, e in values.items()) + f" WHERE {where}")


def delete(rng, table, plain):
    where = f"{rng.choice(CONDITIONS)} and id > {rng.randrange(20)}"
    table.delete(where=where)
    plain.con.execute(f"DELETE FROM t WHERE {where}")


def merge(rng, table, plain, fresh):
    known = [row[0] for row in plain.con.execute("SELECT id FROM t").fetchall()]
    ids = rng.sample(known, min(len(known), rng.randrange(1, 8))) + [next(fresh) for _ in range(rng.randrange(4))]
    source = some_rows(rng, ids)
    builder, words = table.merge(source, on="t.id = s.id"), []
    if rng.random() < 0.4:
        builder = builder.when_matched_delete("s.n > 5")
        words.append("WHEN MATCHED AND s.n > 5 THEN DELETE")
    if rng.random() < 0.4:
        values = {name: rng.choice(OF_BOTH[name]) for name in rng.sample(sorted(OF_BOTH), 1)}
        builder = builder.when_matched_update(values, "t.n < s.n")
        words.append("WHEN MATCHED AND t.n < s.n THEN UPDATE SET " + ", ".join(f"{n} = {e}" for n, e in values.items()))
    if rng.random() < 0.6:
        builder = builder.when_matched_update_all()
        words.append("WHEN MATCHED THEN UPDATE SET id = s.id, part = s.part, ts = s.ts, n = s.n, name = s.name")
    if rng.random() < 0.7:
        builder = builder.when_not_matched_insert_all()
        words.append("WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.part, s.ts, s.n, s.name)")
    if rng.random() < 0.4:
        builder = builder.when_not_matched_by_source_update({"n": "t.n - 1"}, "t.part = 'b'")
        words.append("WHEN NOT MATCHED BY SOURCE AND t.part = 'b' THEN UPDATE SET n = t.n - 1")
    if rng.random() < 0.3:
        builder = builder.when_not_matched_by_source_delete("t.id % 5 = 0")
        words.append("WHEN NOT MATCHED BY SOURCE AND t.id % 5 = 0 THEN DELETE")
    if not words:
        return
    builder.execute()
    plain.con.register("source", source)
    plain.con.execute("MERGE INTO t USING source AS s ON t.id = s.id " + " ".join(words))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_statements_leave_the_rows_that_they_leave_in_a_plain_table(seed, table_type, tmp_path):
    rng = random.Random(seed)
    rows = some_rows(rng, list(range(20)))
    table = hoodie.create_table(
        tmp_path / "t", record_key="id", partition_by="part", ordering="ts", table_type=table_type
    )
    table.insert(rows)
    plain, fresh = Plain(rows), iter(range(1000, 2000))
    for _ in range(8):
        commits = len(table.history())
        kind = rng.choice(("update", "update", "delete", "merge", "merge", "compact"))
        if kind == "compact":
            if table_type == "MERGE_ON_READ":
                table.compact()
            continue
        merge(rng, table, plain, fresh) if kind == "merge" else (update if kind == "update" else delete)(
            rng, table, plain
        )
        found = table.scan().to_arrow().to_pylist()
        assert sorted(((r["id"], r["part"], r["n"], r["name"]) for r in found), key=repr) == plain.rows()
        assert len(table.history()) <= commits + 1
    assert table.validate(deep=True)
