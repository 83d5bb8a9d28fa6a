"""Columns that hoodie and Apache Hudi add, rename, drop, move and retype in one table, in turns; both read the same rows."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from integration.hudi_client import HudiPeer
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.effort import soak_but

BY_IDS = {"hoodie.schema.on.read.enable": "true"}
KEEP_ALL = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}
SETTINGS = {
    **KEEP_ALL,
    **BY_IDS,
    "hoodie.datasource.write.schema.allow.auto.evolution.column.drop": "true",
    "hoodie.spark.sql.insert.into.operation": "upsert",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.parquet.small.file.limit": "0",
}
FIRST = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("price", pa.float64()),
        ("note", pa.string()),
        ("d", pa.decimal128(6, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("s", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("l", pa.list_(pa.struct([("q", pa.int64())]))),
        ("m", pa.map_(pa.string(), pa.float32())),
        ("ts", pa.int64()),
        ("part", pa.string()),
    ]
)


def first_row(key: str, n: int) -> dict[str, Any]:
    return {
        **{"id": key, "n": n, "price": n / 2, "note": f"note {key}", "d": n, "at": n, "ts": n, "part": "p"},
        **{"s": {"x": n, "y": key}, "l": [{"q": n}], "m": [(key, n / 4)]},
    }


def by_ids(hudi: HudiPeer, path: Path) -> list[str]:
    # Apache Hudi gives the rows of a pull with the columns of its end.
    return differences(path, ours, by_hudi(hudi, BY_IDS), skip=lambda view: view.query == "incremental")


@pytest.mark.parametrize(
    ("kind", "version"),
    soak_but([("mor", "6")], [("cow", "6"), ("mor", "6"), ("mor", "8"), ("cow", "9"), ("mor", "9")]),
)
def test_both_change_the_columns_of_one_table_in_turns(hudi: HudiPeer, tmp_path: Path, kind: str, version: str) -> None:
    path, name = tmp_path / "t", f"altered_{kind}_{version}"
    table_type = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}[kind]
    options = {"hoodie.write.table.version": version, **KEEP_ALL}
    table = hoodie.create_table(
        path, FIRST, record_key="id", ordering="ts", partition_by="part", table_type=table_type, options=options
    )
    table.upsert(pa.Table.from_pylist([first_row(key, 1) for key in "abcdef"], schema=FIRST))
    table.upsert(pa.Table.from_pylist([first_row("b", 2)], schema=FIRST))
    alter = table.alter
    alter.rename_column("note", "remark")
    alter.drop_column("n")
    alter.add_column("tip", "double", after="price", doc="what came on top")
    alter.rename_column("s.x", "xx")
    alter.add_column("l.element.r", "string", first=True)
    table.upsert([row_after(key, 3) for key in "cg"])
    alter.add_column("n", "string")
    alter.change_type("price", "string")
    alter.change_type("m.value", "double")
    alter.change_type("d", "decimal(10, 3)")
    alter.move_column("ts", after="id")
    table.upsert([{**row_after("d", 4), "price": "much", "n": "new"}])
    assert by_ids(hudi, path) == []
    found = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert found["a"]["remark"] == "note a"
    assert found["a"]["n"] is None
    assert found["d"]["n"] == "new"
    assert found["b"]["s"] == {"xx": 2, "y": "b"}
    if kind == "mor":
        table.compact()
        table.upsert([{**row_after("e", 5), "price": "1", "n": "log"}])
    table.cluster(sort_by=["remark"])
    assert by_ids(hudi, path) == []
    try:
        metadata = {"hoodie.metadata.enable": str(version == "9").lower()}
        for key, value in {**SETTINGS, **metadata, "hoodie.write.table.version": version}.items():
            hudi.sql(f"set {key}={value}")
        hudi.sql(f"create table {name} using hudi location '{path}'")
        hudi.sql(f"alter table {name} rename column tip to extra")
        hudi.sql(f"alter table {name} add columns (note string after remark)")
        hudi.sql(f"insert into {name} select * from {name} where id = 'a'")
        table = hoodie.open_table(path, options=KEEP_ALL)
        assert {"extra", "note", "remark"} <= {*table.schema.names}
        rows = table.scan(where="id = 'b'").to_arrow()
        at = rows.column_names.index("note")
        table.upsert(rows.set_column(at, "note", pa.array(["ours"])))
        table.alter.drop_column("remark")
        hudi.sql(f"refresh table {name}")
        hudi.sql(f"insert into {name} select * from {name} where id = 'c'")
        table.upsert(hoodie.open_table(path).scan(where="id = 'f'").to_arrow())
        assert by_ids(hudi, path) == []
        hudi.sql(f"refresh table {name}")
        for where in ("extra = 1.5", "note = 'ours'", "n = 'new'", "price = '0.5'", "s.xx = 1", "note is null"):
            theirs = {row["id"] for row in hudi.sql(f"select id from {name} where {where}").table.to_pylist()}
            table = hoodie.open_table(path)
            if where.startswith("s."):
                mine = {row["id"] for row in table.scan().to_arrow().to_pylist() if row["s"] and row["s"]["xx"] == 1}
            else:
                mine = {row["id"] for row in table.scan(where=where).to_arrow().to_pylist()}
            assert theirs == mine, where
    finally:
        hudi.sql("reset")
    found = {row["id"]: row for row in hoodie.open_table(path).scan().to_arrow().to_pylist()}
    assert len(found) == 7
    assert found["b"]["note"] == "ours"
    assert found["a"]["note"] is None
    assert found["g"]["extra"] == 1.5


def row_after(key: str, n: int) -> dict[str, Any]:
    return {
        **{"id": key, "price": n / 2, "tip": 1.5, "remark": f"remark {key}", "d": n, "at": None, "ts": n, "part": "p"},
        **{"s": {"xx": n, "y": key}, "l": [{"r": "r", "q": n}], "m": {key: n / 4}},
    }


@pytest.mark.parametrize("version", ["6", "9"])
def test_hudi_rs_reads_columns_that_were_added(tmp_path: Path, version: str) -> None:
    path = tmp_path / "t"
    table = hoodie.create_table(path, record_key="id", ordering="ts", options={"hoodie.write.table.version": version})
    table.upsert([{"id": "a", "ts": 1}, {"id": "b", "ts": 1}])
    table.alter.add_column("n", "bigint")
    assert by_rust(path, View()) == ours(path, View())
    table.upsert([{"id": "b", "ts": 2, "n": 5}])
    assert by_rust(path, View()) == ours(path, View())
