"""Jobs of Apache Hudi's Streamer, with `hoodie ingest` in place of `spark-submit … HoodieStreamer`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import CorruptFileError, OptionError
from hoodie.ingestion.streamer import READ_PROPERTIES, SOURCES, StreamerFlags, parse_job
from hoodie.ingestion.streamer_properties import read_properties
from hoodie.options.class_names import hudi_names
from hoodie.options.document import outcome_of
from tests.ingestion.schema_registry import schemas_served
from tests.ingestion.shops import Shop
from tests.ingestion.stock_ticks import LATER, TICKS, ticks, ticks_job

SOURCE = "org.apache.hudi.utilities.sources."
SQL = "org.apache.hudi.utilities.transform.SqlQueryBasedTransformer"
FILES = "org.apache.hudi.utilities.schema.FilebasedSchemaProvider"
SCHEMA = {
    "type": "record",
    "name": "impressions",
    "fields": [
        {"name": "impressionid", "type": "string"},
        {"name": "impressiontime", "type": "long"},
        {"name": "datestr", "type": "string"},
        {"name": "userid", "type": ["null", "string"], "default": None},
    ],
}


@pytest.fixture
def job(tmp_path: Path) -> list[str]:
    """A job as Hudi's documentation has it: properties that include others, a schema in a file, JSON in a folder."""
    (tmp_path / "landing").mkdir()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "schema.avsc").write_text(json.dumps(SCHEMA))
    (tmp_path / "config" / "base.properties").write_text(
        "hoodie.upsert.shuffle.parallelism=2\nhoodie.datasource.write.recordkey.field=_row_key\n"
    )
    (tmp_path / "config" / "dfs-source.properties").write_text(
        f"""include=base.properties
# Key fields, for a table of impressions
hoodie.datasource.write.recordkey.field=impressionid
hoodie.datasource.write.partitionpath.field = datestr
hoodie.deltastreamer.schemaprovider.source.schema.file=file://{tmp_path}/config/schema.avsc
hoodie.deltastreamer.source.dfs.root=file://{tmp_path}/landing
"""
    )
    return [
        *("ingest", "--props", f"file://{tmp_path}/config/dfs-source.properties"),
        *("--table-type", "COPY_ON_WRITE", "--source-class", f"{SOURCE}JsonDFSSource"),
        *("--source-ordering-field", "impressiontime", "--schemaprovider-class", FILES),
        *("--target-base-path", f"file://{tmp_path}/out", "--target-table", "uber.impressions"),
    ]


def land(folder: Path, name: str, *rows: tuple[str, int, str]) -> None:
    lines = (json.dumps({"impressionid": key, "impressiontime": at, "datestr": day}) for key, at, day in rows)
    (folder / "landing" / name).write_text("\n".join(lines))


def rows(folder: Path) -> list[tuple[str, int]]:
    found = hoodie.open_table(folder / "out").scan().to_arrow().to_pylist()
    return sorted((row["impressionid"], row["impressiontime"]) for row in found)


def test_the_quick_start_of_hudis_streamer_runs_with_its_own_flags(
    job: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    land(tmp_path, "1.json", ("a", 2, "2024/01/01"), ("b", 1, "2024/01/02"))
    assert main([*job, "--op", "BULK_INSERT"]) == 0
    table = hoodie.open_table(tmp_path / "out")
    assert (table.config.name, table.config.record_key_fields) == ("uber.impressions", ("impressionid",))
    assert table.schema is not None
    assert table.schema.names == ["impressionid", "impressiontime", "datestr", "userid"]
    assert sorted(table.partitions()) == ["2024/01/01", "2024/01/02"]
    land(tmp_path, "2.json", ("a", 1, "2024/01/01"), ("b", 3, "2024/01/02"), ("c", 1, "2024/01/02"))
    assert main([*job, "--op", "UPSERT"]) == 0
    assert rows(tmp_path) == [("a", 2), ("b", 3), ("c", 1)]
    capsys.readouterr()
    assert main(job) == 0
    assert capsys.readouterr().out == "nothing new\n"


def test_rows_are_transformed_by_sql_and_conf_of_the_command_line_wins(job: list[str], tmp_path: Path) -> None:
    land(tmp_path, "1.json", ("a", 2, "2024/01/01"), ("b", 1, "2024/01/02"))
    query = "SELECT a.*, a.impressiontime * 10 AS tens FROM <SRC> a WHERE a.impressionid <> 'b'"
    job += ["--transformer-class", SQL, "--hoodie-conf", f"hoodie.streamer.transformer.sql={query}"]
    assert main([*job, "--hoodie-conf", "hoodie.datasource.write.partitionpath.field="]) == 0
    table = hoodie.open_table(tmp_path / "out")
    assert (table.config.partition_fields, table.scan(["tens"]).to_arrow().to_pylist()) == ((), [{"tens": 20}])


def test_flags_without_meaning_are_said_and_those_that_would_change_rows_are_refused(
    job: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    land(tmp_path, "1.json", ("a", 2, "2024/01/01"))
    assert main([*job, "--spark-master", "local[2]", "--commit-on-errors", "--hoodie-conf", "spark.x=1"]) == 0
    assert "--spark-master has no effect: there is no Spark" in caplog.text
    assert "--commit-on-errors has no effect: records that cannot be rows are set apart" in caplog.text
    assert "properties of Spark and of Hudi's Streamer that have no effect here: spark.x" in caplog.text
    for flags, message in (
        (["--checkpoint", "0"], "--checkpoint of Apache Hudi's Streamer is not supported: give --name with a new name"),
        (["--run-bootstrap"], "--run-bootstrap of Apache Hudi's Streamer is not supported: hoodie migrate"),
        (["--filter-dupes"], "--filter-dupes would drop updates"),
        (
            ["--transformer-class", "com.mine.Flatten"],
            "--transformer-class com.mine.Flatten is not run: write it as SQL",
        ),
        (["--base-file-format", "HFILE"], "base files are Parquet"),
        (["--source-class", "PulsarSource"], "--source-class PulsarSource is not read here; there are AvroDFSSource"),
        (
            ["--hoodie-conf", "hoodie.datasource.write.recordkey.feild=a"],
            "unknown option 'hoodie.datasource.write.recordkey.feild'",
        ),
        (["--props", "nope.properties"], "file nope.properties cannot be read"),
    ):
        capsys.readouterr()
        assert main([*job, *flags]) == 1, flags
        assert message in capsys.readouterr().err
    assert main([*job, "--no-such-flag"]) == 2
    assert rows(tmp_path) == [("a", 2)]


def test_duplicates_are_dropped_by_an_insert_where_the_flag_says_so(job: list[str], tmp_path: Path) -> None:
    land(tmp_path, "1.json", ("a", 1, "2024/01/01"))
    assert main([*job, "--op", "INSERT"]) == 0
    land(tmp_path, "2.json", ("a", 9, "2024/01/01"), ("b", 1, "2024/01/01"))
    assert main([*job, "--op", "INSERT", "--filter-dupes"]) == 0
    assert rows(tmp_path) == [("a", 1), ("b", 1)]


def test_a_merge_on_read_table_is_compacted_unless_it_is_disabled(job: list[str], tmp_path: Path) -> None:
    job[job.index("COPY_ON_WRITE")] = "MERGE_ON_READ"
    often = ["--hoodie-conf", "hoodie.compact.inline.max.delta.commits=1"]
    for number, flags in enumerate((["--disable-compaction"], ["--disable-compaction"], [])):
        land(tmp_path, f"{number}.json", ("a", number, "2024/01/01"))
        assert main([*job, *often, *flags]) == 0
        logs = sum(len(each.logs) for each in hoodie.open_table(tmp_path / "out").files())
        assert (logs > 0) is (number == 1)
    assert rows(tmp_path) == [("a", 2)]


def test_a_job_of_jdbc_reads_the_same_database_without_java(tmp_path: Path) -> None:
    pytest.importorskip("adbc_driver_sqlite")
    shop = Shop(tmp_path / "shop.db")
    shop.insert((1, 5), (2, 6))
    command = ["ingest", "--target-base-path", str(tmp_path / "out"), "--target-table", "trips"]
    command += ["--table-type", "COPY_ON_WRITE", "--source-class", f"{SOURCE}JdbcSource", "--source-limit", "1"]
    for key, value in {
        "url": f"jdbc:sqlite:{shop.path}",
        "driver.class": "org.sqlite.JDBC",
        "user": "me",
        "table.name": "trips",
        "incr.pull": "true",
        "table.incr.column.name": "at",
        "extra.options.fetchsize": "100",
    }.items():
        command += ["--hoodie-conf", f"hoodie.streamer.jdbc.{key}={value}"]
    command += ["--hoodie-conf", "hoodie.datasource.write.recordkey.field=id"]
    assert main(command) == 0
    shop.insert((3, 7))
    assert main(command) == 0
    table = hoodie.open_table(tmp_path / "out")
    assert sorted(table.scan(["id"]).to_arrow().column("id").to_pylist()) == [1, 2, 3]
    assert len(table.timeline.commits) == 3


def test_what_changed_in_a_table_of_hudi_is_taken_over(tmp_path: Path) -> None:
    hoodie.create_table(tmp_path / "in", {"id": "int64"}, record_key="id").upsert({"id": [1, 2]})
    command = ["ingest", "--target-base-path", str(tmp_path / "out"), "--target-table", "t"]
    command += ["--source-class", "HoodieIncrSource", "--hoodie-conf", "hoodie.datasource.write.recordkey.field=id"]
    command += ["--hoodie-conf", f"hoodie.deltastreamer.source.hoodieincr.path={tmp_path / 'in'}"]
    assert main(command) == 0
    assert hoodie.open_table(tmp_path / "out").scan().count() == 2


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_each_source_names_the_property_that_it_misses(name: str) -> None:
    with pytest.raises(OptionError, match=r"hoodie\.streamer\.|bootstrap\.servers"):
        parse_job(StreamerFlags("t", "t", source_class=SOURCE + name), {}, {})


def test_topics_are_addresses_with_the_properties_of_their_consumer() -> None:
    given = {
        "bootstrap.servers": "kafka:9092",
        "auto.offset.reset": "earliest",
        "hoodie.streamer.source.kafka.topic": "ticks",
        "hoodie.streamer.source.kafka.append.offsets": "true",
    }
    flags = StreamerFlags("t", "t", source_class=f"{SOURCE}JsonKafkaSource", source_limit=5)
    found = parse_job(flags, given, {})
    assert (found.source.source, found.source.format, found.source.bound) == (
        "kafka://kafka:9092/ticks",
        "json",
        "max_rows",
    )
    assert set(found.source.options) == {"auto.offset.reset", "hoodie.streamer.source.kafka.append.offsets"}


def test_a_query_in_place_of_a_table_is_one_and_csv_is_read_as_it_can_be() -> None:
    jdbc = {"url": "jdbc:postgresql://h/d", "table.name": "(select * from t where a = (1)) AS x", "password.file": "p"}
    named = {f"hoodie.streamer.jdbc.{key}": value for key, value in jdbc.items()}
    found = parse_job(StreamerFlags("t", "t", source_class="JdbcSource"), named, {}).source
    assert found.options == {"query": "select * from t where a = (1)", "password_file": "p"}
    csv = {"hoodie.streamer.source.dfs.root": "x", "hoodie.streamer.csv.header": "true"}
    assert parse_job(StreamerFlags("t", "t", source_class="CsvDFSSource"), csv, {}).source.format == "csv"
    for wrong in ({"hoodie.streamer.csv.comment": "#"}, {"hoodie.streamer.csv.sep": ";;"}):
        with pytest.raises(OptionError, match=r"hoodie\.streamer\.csv"):
            parse_job(StreamerFlags("t", "t", source_class="CsvDFSSource"), {**csv, **wrong}, {})


def test_properties_are_read_as_hudi_reads_them(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("# c\n\ninclude=b\nx = 1 = 2\nhoodie.deltastreamer.source.dfs.root  file:///x\n")
    (tmp_path / "b").write_text("x=0\nhoodie.deltastreamer.keygen.timebased.timezone=UTC\n")
    assert read_properties(str(tmp_path / "a"), [("y", "2")], {}) == {
        "x": "1 = 2",
        "y": "2",
        "hoodie.streamer.source.dfs.root": "file:///x",
        "hoodie.deltastreamer.keygen.timebased.timezone": "UTC",
    }
    (tmp_path / "b").write_text("include=a\n")
    with pytest.raises(OptionError, match="includes itself"):
        read_properties(str(tmp_path / "a"), [], {})


class Asked(dict[str, str]):
    """Properties that note what is asked of them."""

    def __init__(self, properties: dict[str, str]) -> None:
        super().__init__(properties)
        self.names: set[str] = set()

    def __contains__(self, key: object) -> bool:
        self.names.add(str(key))
        return super().__contains__(key)

    def __getitem__(self, key: str) -> str:
        self.names.add(key)
        return super().__getitem__(key)

    def get(self, key: str, default: str | None = None) -> str | None:  # type: ignore[override]
        self.names.add(key)
        return super().get(key, default)


def test_the_page_of_options_says_of_each_property_whether_a_job_reads_it(tmp_path: Path) -> None:
    (tmp_path / "s.avsc").write_text(json.dumps(SCHEMA))
    given = {**dict.fromkeys(READ_PROPERTIES, "x"), "hoodie.streamer.schemaprovider.source.schema.file": "none"}
    given |= {"hoodie.streamer.schemaprovider.target.schema.file": str(tmp_path / "s.avsc")}
    given |= {
        "hoodie.streamer.csv.header": "true",
        "hoodie.streamer.csv.sep": ",",
        "hoodie.streamer.csv.delimiter": ",",
    }
    given |= {"hoodie.streamer.jdbc.incr.pull": "true"}
    read: set[str] = set()
    for name in SOURCES:
        asked = Asked(given)
        flags = StreamerFlags("t", "t", source_class=name, schemaprovider_class=FILES, transformer_class=SQL)
        job = parse_job(flags, asked, {})
        read |= asked.names | set(job.source.options)
    del given["hoodie.streamer.schemaprovider.target.schema.file"]
    asked = Asked(given)
    with pytest.raises(OptionError, match="file none cannot be read"):
        parse_job(StreamerFlags("t", "t", schemaprovider_class=FILES), asked, {})
    read |= asked.names
    asked = Asked({name: text for name, text in given.items() if not name.endswith("registry.targetUrl")})
    with pytest.raises(OptionError, match="not an HTTP address"):
        parse_job(StreamerFlags("t", "t", schemaprovider_class="a.SchemaRegistryProvider"), asked, {})
    read |= asked.names
    assert read >= READ_PROPERTIES
    said = {line[0] for line in hudi_names() if outcome_of(line[0]).startswith("counts for `hoodie ingest`")}
    assert said == {name for name in READ_PROPERTIES if name.startswith("hoodie.")}


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_the_demo_of_stock_ticks_gives_the_answers_that_its_page_has(tmp_path: Path, table_type: str) -> None:
    (tmp_path / "input").mkdir()
    job = ticks_job(tmp_path, f"hoodie.streamer.source.dfs.root={tmp_path}/input\n", table_type)
    job += ["--source-class", f"{SOURCE}JsonDFSSource"]
    job += [] if table_type == "COPY_ON_WRITE" else ["--disable-compaction"]
    (tmp_path / "input" / "batch_1.json").write_text(ticks(TICKS))
    assert main(job) == 0
    table = hoodie.open_table(tmp_path / f"stock_ticks_{table_type}")
    newest = {row["symbol"]: row["ts"] for row in table.scan(["symbol", "ts"]).to_arrow().to_pylist()}
    assert newest == {"MSFT": "2018-08-31 09:31:00", "AAPL": "2018-08-31 09:30:00"}
    (tmp_path / "input" / "batch_2.json").write_text(ticks([*TICKS[:1], *LATER]))
    query = "hoodie.streamer.transformer.sql=SELECT * FROM <SRC> a WHERE a.symbol = 'MSFT'"
    assert main([*job, "--transformer-class", SQL, "--hoodie-conf", query]) == 0
    found = table.scan(["symbol", "ts", "volume"]).to_arrow().to_pylist()
    assert sorted((row["symbol"], row["ts"], row["volume"]) for row in found) == [
        ("AAPL", "2018-08-31 09:30:00", 1533226),
        ("MSFT", "2018-08-31 09:31:00", 253968),
        ("MSFT", "2018-08-31 10:59:00", 6794),
    ]
    assert [*table.partitions()] == ["2018/08/31"]
    assert main([*job, "--transformer-class", SQL, "--hoodie-conf", query]) == 0
    assert len(table.timeline.commits) == 2


def test_a_registry_says_the_schema_of_the_table() -> None:
    """Also that of JSON from a topic, whose values name none."""
    flags = StreamerFlags(
        "t",
        "t",
        source_class=f"{SOURCE}JsonKafkaSource",
        schemaprovider_class="org.apache.hudi.utilities.schema.SchemaRegistryProvider",
    )
    topic = {"bootstrap.servers": "h:1", "hoodie.streamer.source.kafka.topic": "t"}
    url, target = (f"hoodie.streamer.schemaprovider.registry.{name}" for name in ("url", "targetUrl"))
    with schemas_served({"/source": {"schema": json.dumps(SCHEMA)}}) as (address, asked):
        me = address.replace("//", "//me:s%40crt@")
        found = parse_job(flags, {**topic, url: f"{me}/source"}, {}).schema
        assert isinstance(found, pa.Schema)
        assert found.field("impressiontime").type == pa.int64()
        both = {**topic, url: f"{me}/none", target: f"{me}/source"}
        assert parse_job(flags, both, {}).schema == found
        transformed = replace(flags, transformer_class=SQL)
        sql = {"hoodie.streamer.transformer.sql": "SELECT 1 FROM <SRC>"}
        assert parse_job(transformed, {**topic, **sql, url: f"{me}/source"}, {}).schema is None
        with pytest.raises(CorruptFileError, match="has no /none"):
            parse_job(flags, {**topic, url: f"{me}/none"}, {})
        with pytest.raises(OptionError, match=r"needs the property hoodie\.streamer\.schemaprovider\.registry\.url"):
            parse_job(flags, topic, {})
        by_numbers = replace(flags, source_class=f"{SOURCE}AvroKafkaSource")
        assert parse_job(by_numbers, {**topic, "schema.registry.url": "http://h:1"}, {}).schema is None
    assert asked[0] == "/source Basic bWU6c0BjcnQ="
