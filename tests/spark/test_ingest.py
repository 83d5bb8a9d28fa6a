"""Ingestion by Spark gives what embedded ingestion gives, by the same checkpoints: either goes on where the other ended."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import hoodie
import pyspark_hoodie
from hoodie.errors import OptionError, SchemaError
from pyspark_hoodie.ingestion import SparkWork
from tests.ingestion.files_without_columns import put_files_that_lack_columns

pytestmark = pytest.mark.spark

LINES = [
    '{"id": 1, "city": "oslo", "fare": 9, "at": {"x": 1, "nothing": null}, "tags": ["a"]}\n{"id": 2, "city": "rome"}\nnonsense\n',
    '{"id": 3, "city": "rome", "fare": 2.5, "nothing": null}\n{"city": "no key"}\n{"id": 1, "city": "oslo", "fare": 10}\n',
    '{"id": 4, "city": "rome", "fare": "much"}\n{"id": 5, "city": "rome", "fare": 3, "more": true}\n',
]
HUDI = "deltastreamer.checkpoint.key"


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    (tmp_path / "landing").mkdir()
    for number, lines in enumerate(LINES):
        put(tmp_path / "landing", f"{number}.json", lines, at_s=1000 + number)
    return tmp_path / "landing"


def put(folder: Path, name: str, content: str, *, at_s: int) -> None:
    (folder / name).write_text(content)
    os.utime(folder / name, (at_s, at_s))


def rows(path: Path) -> list[dict[str, Any]]:
    found = hoodie.open_table(path).scan().to_arrow()
    names = sorted(found.column_names)
    return sorted(found.select(names).to_pylist(), key=lambda row: repr(row["id"]))


def kept_apart(path: Path) -> list[tuple[str, str]]:
    files = sorted((path / ".hoodie/.hoodie_py/quarantine").rglob("*.jsonl"))
    return sorted((each["origin"], each["content"]) for file in files for each in map(json.loads, file.open()))


def test_files_give_the_rows_and_the_bad_records_of_embedded_ingestion(
    spark: SparkSession, landing: Path, tmp_path: Path
) -> None:
    how: Any = {"record_key": "id", "partition_by": "city"}
    embedded = hoodie.ingest(landing, tmp_path / "embedded", **how).rounds[0]
    (done,) = pyspark_hoodie.ingest(spark, landing, tmp_path / "spark", **how).rounds
    for name in ("rows", "bad", "pieces", "bytes", "checkpoint"):
        assert getattr(done, name) == getattr(embedded, name), name
    assert rows(tmp_path / "spark") == rows(tmp_path / "embedded")
    assert kept_apart(tmp_path / "spark") == kept_apart(tmp_path / "embedded")
    assert len(rows(tmp_path / "spark")) == 4
    schemas = [hoodie.open_table(tmp_path / name).schema for name in ("spark", "embedded")]
    assert dict(zip(schemas[0].names, schemas[0].types)) == dict(zip(schemas[1].names, schemas[1].types))


def test_rows_whose_partition_makes_no_path_are_set_apart(spark: SparkSession, landing: Path, tmp_path: Path) -> None:
    put(
        landing,
        "3.json",
        '{"id": 6, "city": "a/../b"}\n{"id": 7, "city": "x//y"}\n{"id": 8, "city": "oslo"}\n',
        at_s=2000,
    )
    how: Any = {"record_key": "id", "partition_by": "city"}
    embedded = hoodie.ingest(landing, tmp_path / "embedded", **how)
    done = pyspark_hoodie.ingest(spark, landing, tmp_path / "spark", **how)
    assert (done.rows, done.bad) == (embedded.rows, embedded.bad)
    assert rows(tmp_path / "spark") == rows(tmp_path / "embedded")
    reasons = [kept_apart(tmp_path / name) for name in ("spark", "embedded")]
    assert [origin for origin, _ in reasons[0]] == [origin for origin, _ in reasons[1]]
    assert {7, 6} <= {json.loads(content).get("id") for origin, content in reasons[0] if origin == "rows"}


def test_either_goes_on_where_the_other_ended(spark: SparkSession, landing: Path, tmp_path: Path) -> None:
    t = tmp_path / "t"
    (first,) = hoodie.ingest(landing, t, record_key="id", max_files=1).rounds[:1]
    assert first.pieces == 1
    assert pyspark_hoodie.ingest(spark, landing, t).rounds == ()
    put(landing, "3.json", '{"id": 7, "city": "bern"}\n', at_s=2000)
    (done,) = pyspark_hoodie.ingest(spark, landing, t, operation="insert").rounds
    assert (done.number, done.rows, done.checkpoint) == (3, 1, "2000000")
    table = hoodie.open_table(t)
    latest = table.timeline.latest_commit
    assert latest is not None
    assert table._context.active.read_commit(latest).extra[HUDI] == "2000000"
    put(landing, "4.json", '{"id": 8, "city": "bern"}\n', at_s=2001)
    assert hoodie.ingest(landing, t, operation="insert").rows == 1
    assert [row["id"] for row in rows(t)] == [1, 2, 5, 7, 8]


def test_a_round_that_dies_is_there_or_not(
    spark: SparkSession, landing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, write = tmp_path / "t", SparkWork.write

    def die_before(*args: Any) -> None:
        raise KeyboardInterrupt

    def die_behind(*args: Any) -> None:
        write(*args)
        raise KeyboardInterrupt

    how: Any = {"record_key": "id", "operation": "insert", "max_files": 1}
    for die in (die_before, die_behind):
        monkeypatch.setattr(SparkWork, "write", die)
        with pytest.raises(KeyboardInterrupt):
            pyspark_hoodie.ingest(spark, landing, t, **how)
    monkeypatch.setattr(SparkWork, "write", write)
    numbers = [each.number for each in pyspark_hoodie.ingest(spark, landing, t, **how).rounds]
    assert numbers == [1, 2]
    assert [row["id"] for row in rows(t)] == [1, 1, 2, 5]


def test_rows_are_transformed_by_sql_of_spark(spark: SparkSession, landing: Path, tmp_path: Path) -> None:
    sql = "SELECT id, city, explode(array(1, 2)) AS n FROM <SRC> a WHERE a.city = 'rome'"
    done = pyspark_hoodie.ingest(spark, landing, tmp_path / "t", record_key=["id", "n"], sql=sql)
    assert done.rows == 6
    assert [(row["id"], row["n"]) for row in rows(tmp_path / "t")][:2] == [(2, 1), (2, 2)]
    named = "SELECT id, upper(city) AS city FROM source"
    pyspark_hoodie.ingest(spark, landing, tmp_path / "named", record_key="id", sql=named)
    assert {row["city"] for row in rows(tmp_path / "named")} == {"OSLO", "ROME"}
    spark.range(1).createTempView("source")
    try:
        with pytest.raises(OptionError, match="the session has a temporary view source: write <SRC>"):
            pyspark_hoodie.ingest(spark, landing, tmp_path / "no", record_key="id", sql=named)
    finally:
        spark.catalog.dropTempView("source")
    assert not [each for each in spark.catalog.listTables() if each.name.startswith("hoodie_ingest")]


def test_columns_of_parquet_widen_csv_gets_types_and_tables_are_sources_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "mixed"
    folder.mkdir()
    pq.write_table(pa.table({"id": pa.array([1], pa.int32()), "v": [1]}), folder / "a.parquet")
    pq.write_table(pa.table({"id": pa.array([2**40]), "v": [2.5]}), folder / "b.parquet")
    (folder / "c.csv").write_text("id,v,day\n3,4,2026-01-31\n4,,\nfive,1,\n")
    for number, name in enumerate(("a.parquet", "b.parquet", "c.csv")):
        os.utime(folder / name, (1000 + number, 1000 + number))
    embedded = hoodie.ingest(folder, tmp_path / "embedded", record_key="id")
    done = pyspark_hoodie.ingest(spark, folder, tmp_path / "spark", record_key="id")
    assert (done.rows, done.bad) == (embedded.rows, embedded.bad)
    assert rows(tmp_path / "spark") == rows(tmp_path / "embedded")
    table = hoodie.open_table(tmp_path / "spark")
    assert pyspark_hoodie.ingest(spark, table, tmp_path / "copy", record_key="id").rows == done.rows
    assert pyspark_hoodie.ingest(spark, table, tmp_path / "copy").rounds == ()
    assert [row["id"] for row in rows(tmp_path / "copy")] == [row["id"] for row in rows(tmp_path / "spark")]
    pq.write_table(pa.table({"id": ["a text"]}), folder / "d.parquet")
    with pytest.raises(SchemaError):
        pyspark_hoodie.ingest(spark, folder, tmp_path / "spark")


def test_columns_of_every_kind_and_keys_in_structs_are_those_of_embedded_ingestion(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "landing").mkdir()
    lines = [
        '{"k": {"id": "a"}, "price": 12.5, "of": {"day": "2026-01-02"}, "counts": {"x": 1}, "any": {"y": [1]}, '
        '"big": 12345678901234567890}',
        '{"k": {"id": "b"}, "counts": {}, "any": "text"}',
        '{"k": {"id": "c"}, "price": 0.005}',
        '{"k": {"id": ""}}',
        '{"k": null}',
    ]
    put(tmp_path / "landing", "1.json", "null\n" + "\n".join(lines), at_s=1000)
    columns = {
        "k": "struct<id: string>",
        "price": "decimal(10, 2)",
        "of": "struct<day: date>",
        "counts": "map<string, int>",
        "any": "variant",
    }
    for name in ("embedded", "spark"):
        hoodie.create_table(tmp_path / name, columns, record_key="k.id", options={"hoodie.write.table.version": "9"})
    embedded = hoodie.ingest(tmp_path / "landing", tmp_path / "embedded")
    by_spark = pyspark_hoodie.ingest(spark, tmp_path / "landing", tmp_path / "spark")
    assert (embedded.rows, embedded.bad) == (by_spark.rows, by_spark.bad) == (2, 4)
    one, two = rows_of_keys(tmp_path / "spark")
    assert (one["counts"], two["counts"], one["any"], two["any"]) == ([("x", 1)], [], '{"y":[1]}', '"text"')
    assert [str(each["big"]) for each in (one, two)] == ["12345678901234567890", "None"]
    assert rows_of_keys(tmp_path / "embedded") == rows_of_keys(tmp_path / "spark")


def rows_of_keys(path: Path) -> list[dict[str, Any]]:
    return sorted(hoodie.open_table(path).scan().to_arrow().to_pylist(), key=lambda row: str(row["k"]))


def test_rounds_without_rows_and_strict_ones(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    put(folder, "a.json", "nonsense\n", at_s=1000)
    t = tmp_path / "t"
    hoodie.create_table(t, {"id": "int64"}, record_key="id")
    with pytest.raises(OptionError, match="has 1 record that cannot be rows"):
        pyspark_hoodie.ingest(spark, folder, t, quarantine=False)
    (tried,) = pyspark_hoodie.ingest(spark, folder, t, dry_run=True).rounds
    assert (tried.bad, tried.instant) == (1, None)
    (done,) = pyspark_hoodie.ingest(spark, folder, t).rounds
    assert (done.rows, done.bad, done.checkpoint) == (0, 1, "1000000")
    assert pyspark_hoodie.ingest(spark, folder, t).rounds == ()


def test_few_records_of_a_topic_are_read_by_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    """`integration/test_kafka_on_spark.py` has many."""
    pytest.importorskip("confluent_kafka")
    from tests.ingestion.stand_in_kafka import Kafka, Topic  # noqa: PLC0415 - needs the extra

    kafka = Kafka(t=Topic(2))
    place = {"connector": "postgresql", "name": "shop", "schema": "public", "ts_ms": 0}
    for n in range(4):
        event = {"op": "c", "after": {"id": n % 3, "n": n}, "source": {**place, "lsn": n}}
        kafka.topics["t"].put(n % 2, json.dumps(event).encode(), b"nonsense")
    how: Any = {"record_key": "id", "changes": "postgres", "max_rows": 6}
    expected = hoodie.ingest(kafka.source(), tmp_path / "embedded", **how).rounds
    done = pyspark_hoodie.ingest(spark, kafka.source(), tmp_path / "spark", **how).rounds
    for name in ("rows", "bad", "pieces", "waiting", "checkpoint"):
        assert [getattr(each, name) for each in done] == [getattr(each, name) for each in expected], name
    assert rows(tmp_path / "spark") == rows(tmp_path / "embedded")
    assert kept_apart(tmp_path / "spark") == kept_apart(tmp_path / "embedded")
    assert pyspark_hoodie.ingest(spark, kafka.source(), tmp_path / "spark", changes="postgres").rounds == ()


def test_a_first_file_without_rows_says_what_the_columns_are_if_it_knows(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    put(tmp_path / "landing", "1.csv", "id,note\n", at_s=1000)
    t = tmp_path / "t"
    assert pyspark_hoodie.ingest(spark, tmp_path / "landing", t, record_key="id").rounds == ()
    pq.write_table(pa.table({"id": pa.array([], pa.int64())}), tmp_path / "landing" / "2.parquet")
    assert pyspark_hoodie.ingest(spark, tmp_path / "landing", t).rounds[0].pieces == 2
    assert hoodie.open_table(t).schema == pa.schema([("id", pa.int64())])
    assert pyspark_hoodie.ingest(spark, tmp_path / "landing", t).rounds == ()


def test_compressed_files_views_and_times_that_python_has_not_are_as_without_spark(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    (folder / "a.json.gz").write_bytes(gzip.compress(b'{"id": "1", "l": ["x"]}\nnonsense\n'))
    (folder / "b.json.gz").write_bytes(b"damaged")
    far = pa.array([2**61, 1, 2**61], pa.timestamp("us", "UTC"))
    texts, lists = (
        pa.array([None, "b", ""]).cast(pa.string_view()),
        pa.array([["q"], None, []], pa.list_view(pa.string())),
    )
    columns = {"id": texts, "l": lists, "far": far, "s": pa.StructArray.from_arrays([far], ["t"])}
    pq.write_table(pa.table(columns), folder / "c.parquet")
    for number, name in enumerate(("a.json.gz", "b.json.gz", "c.parquet")):
        os.utime(folder / name, (1000 + number, 1000 + number))
    embedded = hoodie.ingest(folder, tmp_path / "embedded", record_key="id")
    done = pyspark_hoodie.ingest(spark, folder, tmp_path / "spark", record_key="id")
    assert (done.rows, done.bad) == (embedded.rows, embedded.bad) == (2, 4)
    assert rows(tmp_path / "spark") == rows(tmp_path / "embedded")
    assert kept_apart(tmp_path / "spark") == kept_apart(tmp_path / "embedded")


@pytest.mark.parametrize("form", ["json", "csv", "parquet", "avro"])
def test_what_a_file_lacks_is_null_however_rounds_are_cut(spark: SparkSession, tmp_path: Path, form: str) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    put_files_that_lack_columns(folder, form)
    columns = [("id", pa.int64()), pa.field("must", pa.int64(), False), ("city", pa.string()), ("n", pa.int64())]
    found, kept = [], []
    for name, more in (("embedded", {}), ("whole", {}), ("cut", {"max_files": 1})):
        hoodie.create_table(tmp_path / name, pa.schema(columns), record_key="id")
        if name == "embedded":
            hoodie.ingest(folder, tmp_path / name)
        else:
            pyspark_hoodie.ingest(spark, folder, tmp_path / name, **more)
        found.append(rows(tmp_path / name))
        kept.append(sorted(sorted(map(str, json.loads(row).values())) for _, row in kept_apart(tmp_path / name)))
    assert found[0] == found[1] == found[2]
    assert kept[0] == kept[1] == kept[2]
    assert (len(found[0]), len(kept[0])) == (6, 4)


def test_csv_is_read_as_its_options_say(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "landing"
    folder.mkdir()
    put(folder, "a.csv", "1;;'a;b'\n2;;NA\nfour\n", at_s=1000)
    put(folder, "b.csv", "3;x;c\n", at_s=1001)
    options = {"sep": ";", "quote": "'", "header": "false", "nullValue": "NA"}
    how: Any = {"source_options": {f"hoodie.streamer.csv.{name}": value for name, value in options.items()}}
    for more in (
        {"record_key": "_c0"},
        {"record_key": "id", "sql": "SELECT _c0 AS id, _c1 AS x, _c2 AS y FROM source"},
    ):
        names = [str(tmp_path / f"{name}_{len(more)}") for name in ("embedded", "spark")]
        embedded = hoodie.ingest(folder, names[0], **how, **more)
        done = pyspark_hoodie.ingest(spark, folder, names[1], **how, **more)
        assert (done.rows, done.bad) == (embedded.rows, embedded.bad) == (3, 1)
        found = [sorted(map(str, hoodie.open_table(name).scan().to_arrow().to_pylist())) for name in names]
        assert found[0] == found[1]
        assert "a;b" in found[0][0]


def test_keys_to_delete_that_say_no_partition_go_from_all_of_them(
    spark: SparkSession, landing: Path, tmp_path: Path
) -> None:
    table = hoodie.create_table(tmp_path / "t", {"id": "int64", "city": "string"}, record_key="id", partition_by="city")
    table.insert([{"id": n, "city": "oslo" if n % 2 else "rome"} for n in range(6)])
    folder = tmp_path / "keys"
    folder.mkdir()
    for number, lines in enumerate((['{"id": 1}', '{"id": 2, "city": "rome"}'], ['{"id": 3, "city": "oslo"}'])):
        put(folder, f"{number}.json", "\n".join(lines), at_s=1000 + number)
    put(folder, "2.csv", "id\n4\n", at_s=2000)
    result = pyspark_hoodie.ingest(spark, folder, tmp_path / "t", operation="delete", max_files=1)
    assert [each.rows for each in result.rounds] == [2, 1, 1]
    assert sorted(hoodie.open_table(tmp_path / "t").scan(["id"]).to_arrow()["id"].to_pylist()) == [0, 5]
