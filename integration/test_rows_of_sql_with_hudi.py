"""Tables that Apache Hudi's SQL has made, with keys and partitions of each type: a row that is written again is there once."""

import pytest

import hoodie
from hoodie.errors import UnsupportedTableError
from tests.effort import SOAK

VALUES = {
    "DATE": "DATE '2020-01-01'",
    "TIMESTAMP": "TIMESTAMP '2020-01-01 01:02:03'",
    "DECIMAL(10,2)": "CAST(1.50 AS DECIMAL(10,2))",
    "DOUBLE": "CAST(1.5 AS DOUBLE)",
    "FLOAT": "CAST(1.5 AS FLOAT)",
    "INT": "7",
    "BIGINT": "CAST(7 AS BIGINT)",
    "BOOLEAN": "true",
    "STRING": "'a b'",
}
REFUSED = ("TIMESTAMP", "partition")


@pytest.mark.parametrize("how", ["insert", "as select"] if SOAK else ["insert"])
@pytest.mark.parametrize("role", ["key", "keys", "partition"] if SOAK else ["partition"])
@pytest.mark.parametrize("kind", VALUES if SOAK else ["TIMESTAMP", "DATE"])
def test_a_row_that_is_written_again_is_there_once(hudi, tmp_path, kind, role, how):
    path, name = tmp_path / "t", f"t_{kind[:4].lower()}_{role}_{how[:2]}"
    keys, by = {"key": ("p", ""), "keys": ("id,p", ""), "partition": ("id", "PARTITIONED BY (p)")}[role]
    properties = f"TBLPROPERTIES (primaryKey='{keys}', 'hoodie.write.table.version'='6')"
    head, tail = f"CREATE TABLE {name}", f"USING hudi {properties} {by} LOCATION '{path}'"
    if how == "insert":
        hudi.sql(f"{head} (id INT, v STRING, p {kind}) {tail}")
        hudi.sql(f"INSERT INTO {name} SELECT 1, 'a', {VALUES[kind]}")
    else:
        hudi.sql(f"{head} {tail} AS SELECT 1 AS id, 'a' AS v, {VALUES[kind]} AS p")
    table = hoodie.open_table(path)
    rows = table.scan().to_arrow()
    rows = rows.set_column(rows.column_names.index("v"), "v", [["b"]])
    try:
        table.upsert(rows)
    except UnsupportedTableError:
        assert (kind, role) == REFUSED
    else:
        assert (kind, role) != REFUSED
        assert hoodie.open_table(path).scan(["v"]).to_arrow().to_pylist() == [{"v": "b"}]
        assert hudi.read(path).table.column("v").to_pylist() == ["b"]
    hudi.sql(f"DROP TABLE {name}")
