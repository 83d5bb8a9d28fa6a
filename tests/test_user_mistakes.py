"""What a slip in a call gives: one clear error of the project, not a trace out of its depths."""

import re
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import (
    HoodieError,
    InstantNotFoundError,
    KeyFieldError,
    OptionError,
    SchemaError,
    TableNotFoundError,
    UnsupportedTableError,
)

ROWS = pa.table({"id": ["a", "b"], "part": ["x", "y"], "val": [1, 2]})


@pytest.fixture
def table(tmp_path):
    made = hoodie.create_table(tmp_path / "t", None, record_key="id", partition_by="part", table_type="MERGE_ON_READ")
    made.upsert(ROWS)
    return made


def test_a_table_type_that_there_is_not(tmp_path):
    with pytest.raises(OptionError, match="table type 'MOR' is none of COPY_ON_WRITE, MERGE_ON_READ"):
        hoodie.create_table(tmp_path / "t", None, record_key="id", table_type="MOR")


def test_a_table_type_in_small_letters_is_understood(tmp_path):
    made = hoodie.create_table(tmp_path / "t", None, record_key="id", table_type="merge_on_read")
    assert made.config.table_type == "MERGE_ON_READ"


def test_what_no_argument_says_is_taken_from_the_options(tmp_path):
    options = {
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts,n",
    }
    config = hoodie.create_table(tmp_path / "a", record_key="id", options=options).config
    assert (config.table_type, config.partition_fields) == ("MERGE_ON_READ", ("part",))
    assert config.ordering_fields == ("ts", "n")
    made = hoodie.create_table(
        tmp_path / "b", record_key="id", partition_by=[], ordering="n", table_type="COPY_ON_WRITE", options=options
    )
    made.upsert(pa.table({"id": ["a"], "n": [1]}))
    said = made.config
    assert (said.table_type, said.partition_fields, said.ordering_fields) == ("COPY_ON_WRITE", (), ("n",))


def test_one_column_name_in_the_place_of_a_list(table):
    with pytest.raises(OptionError, match=r"columns='id' is a text: give a list of column names, \['id'\]"):
        table.scan(columns="id")


@pytest.mark.parametrize("moment", [20260101000000000, timedelta(hours=2)])
def test_what_is_no_point_in_time(table, moment):
    with pytest.raises(OptionError, match=r"as_of=.* give the instant as text"):
        table.scan(as_of=moment)
    with pytest.raises(OptionError, match=r"since=.* give the instant as text"):
        table.changes(since=moment)


@pytest.mark.parametrize("moment", [date(2001, 2, 3), datetime(2001, 2, 3, 4), "2001-02-03", "20010203000000000"])
def test_a_moment_before_the_first_commit_names_it(table, moment):
    first = table.timeline.commits[0].time
    with pytest.raises(
        InstantNotFoundError, match=rf"\(2001-02-03 .*\) lies before the first commit of table .*, {first} \(20\d\d-"
    ):
        table.scan(as_of=moment)
    assert table.changes(since=moment).count() == 2


def test_a_partition_value_longer_than_a_folder_name_can_be(table):
    with pytest.raises(KeyFieldError, match="folder names of more than 255 bytes") as caught:
        table.upsert(pa.table({"id": ["c"], "part": ["é" * 128], "val": [1]}))
    assert len(str(caught.value)) < 500
    table.upsert(pa.table({"id": ["c"], "part": ["é" * 127], "val": [1]}))
    assert table.scan().count() == 3


@pytest.mark.parametrize("name", ["__deleted", "__index", "_row", "__key"])
def test_columns_named_like_something_internal_are_plain_columns(table, name):
    table.upsert(pa.table({"id": ["a"], "part": ["x"], "val": [1], name: [7]}))
    table.compact()
    table.delete(pa.table({"id": ["b"], "part": ["y"]}))
    assert table.scan(columns=["id", name]).to_arrow().to_pylist() == [{"id": "a", name: 7}]


def test_columns_that_differ_in_case_only(table):
    with pytest.raises(SchemaError, match=r"CASE +VAL +the table has it as 'val'"):
        table.upsert(ROWS.rename_columns(["id", "part", "VAL"]))
    twice = ROWS.append_column("Val", ROWS.column("val"))
    with pytest.raises(SchemaError, match="'val' and 'Val' of the data differ in case only"):
        table.upsert(twice)
    with pytest.raises(SchemaError, match="'val' stands twice"):
        table.upsert(ROWS.append_column("val", ROWS.column("val")))


def test_an_operation_option_that_contradicts_the_method(table):
    with pytest.raises(OptionError, match=r"says delete, but upsert\(\) was called"):
        table.upsert(ROWS, {"hoodie.datasource.write.operation": "delete"})
    assert table.upsert(ROWS, {"Hoodie.Datasource.Write.Operation": "UPSERT"}).updated == 2


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (5, r"schema is a int; give a pyarrow\.Schema"),
        ("id string", r"schema is a str; give a pyarrow\.Schema"),
        ({"id": "strng"}, "column 'id': 'strng' is not a type; did you mean 'string'"),
        ({"id": "decimal"}, r"column 'id': 'decimal' is not a type; did you mean 'decimal\(10, 2\)'"),
        ({"id": "array<strng>"}, "column 'id': 'array<strng>' is not a type"),
        ({"id": complex}, "column 'id': 'complex' is not a type; write a name such as 'int64'"),
        ([1], "list is not a schema of columns"),
        (pa.int64(), "is not a schema of columns: .*non-struct type"),
    ],
)
def test_a_schema_that_is_none(tmp_path, schema, told):
    with pytest.raises(SchemaError, match=told):
        hoodie.create_table(tmp_path / "t", schema, record_key="id")


def test_options_that_are_wrong_are_told_when_the_table_is_opened(table):
    with pytest.raises(OptionError, match=r"unknown option 'maxCommitPerTrigger'\. did you mean"):
        hoodie.open_table(table.uri, options={"maxCommitPerTrigger": "1"})
    with pytest.raises(OptionError, match=r"'compression' is .*instead: hoodie\.parquet\.compression\.codec"):
        hoodie.open_table(table.uri, options={"compression": "gzip"})
    with pytest.raises(OptionError, match="record key is 'id' in the table, 'val' in your options"):
        hoodie.open_table(table.uri, options={"hoodie.datasource.write.recordkey.field": "val"})
    with pytest.raises(OptionError, match="'compression' is"):
        table.upsert(ROWS, {"compression": "gzip"})
    assert len(table.history()) == 1


def test_what_is_asked_for_and_not_done_is_said_at_each_write(table, caplog):
    asking = {
        "hoodie.table.service.manager.enabled": "true",
        "hoodie.rollback.instant.backup.enabled": "true",
    }
    for write in (
        lambda: table.upsert(ROWS, asking),
        lambda: table.delete(ROWS.slice(0, 1), asking),
        lambda: table.delete_partitions(["y"], asking),
        lambda: hoodie.open_table(table.uri, options=asking).insert(ROWS),
    ):
        caplog.clear()
        write()
        (record,) = [r for r in caplog.records if "not done" in r.getMessage()]
        assert all(name in record.getMessage() for name in asking)
    with pytest.raises(OptionError, match="validators written in Java are not run"):
        table.upsert(ROWS, {"hoodie.precommit.validators": "com.acme.V"})


def test_a_path_that_is_a_file(tmp_path):
    (tmp_path / "f").write_text("x")
    with pytest.raises(TableNotFoundError, match="no table at"):
        hoodie.open_table(tmp_path / "f")
    with pytest.raises(OptionError, match="a file stands there; give a folder"):
        hoodie.create_table(tmp_path / "f", record_key="id")


def test_the_index_of_a_pandas_frame_is_no_column(table):
    frame = ROWS.to_pandas()
    frame.index = frame.index + 7
    table.upsert(frame)
    assert table.scan().to_arrow().column_names == ["id", "part", "val"]


def test_a_column_of_nulls_only_takes_the_tables_type(table):
    table.upsert(pa.table({"id": ["a"], "part": ["x"], "val": pa.nulls(1)}))
    assert sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])[0]["val"] is None
    with pytest.raises(SchemaError, match=r"NEW +extra +without a type"):
        table.upsert(ROWS.append_column("extra", pa.nulls(2)))


def test_a_column_of_nulls_only_cannot_start_a_table(tmp_path):
    made = hoodie.create_table(tmp_path / "t", record_key="id")
    with pytest.raises(SchemaError, match="cannot start a table: x"):
        made.upsert(pa.table({"id": ["a"], "x": pa.nulls(1)}))


# -- tables of other formats -----------------------------------------------------------------------------------------

OTHERS = {
    "a Delta Lake table": "_delta_log/00000000000000000000.json",
    "an Apache Iceberg table": "metadata/v1.metadata.json",
}


@pytest.mark.parametrize("what", OTHERS)
def test_a_table_of_another_format_is_named_and_left_alone(tmp_path, what):
    folder = tmp_path / "other"
    (folder / OTHERS[what]).parent.mkdir(parents=True)
    (folder / OTHERS[what]).write_text("{}")
    with pytest.raises(TableNotFoundError, match=f"it is {what}"):
        hoodie.open_table(folder)
    with pytest.raises(UnsupportedTableError, match=f"no table can be made at .*: {what} is there"):
        hoodie.create_table(folder, record_key="id")
    with pytest.raises(UnsupportedTableError, match=f"it lies inside {what}, {folder}"):
        hoodie.create_table(folder / "part=a" / "t", record_key="id")
    assert sorted(path.name for path in folder.iterdir()) == [OTHERS[what].split("/")[0]]
    hoodie.create_table(tmp_path / "beside", record_key="id")


def test_no_table_is_made_inside_another(table):
    with pytest.raises(UnsupportedTableError, match="it lies inside an Apache Hudi table"):
        hoodie.create_table(table.uri + "/x", record_key="id")


# -- arguments of a wrong type ---------------------------------------------------------------------------------------

WRONG = [None, 5, 1.5, True, b"x", "", [], [5], {}, Path("/x"), object()]
WITHOUT = {  # what is a value of the argument after all
    "name": [None],
    "partition_by": [None, "", [], {}],
    "ordering": [None, "", [], {}],
    "record_key": ["", [], {}],
    "options": [None, {}],
    "storage_options": [None, {}],
    "schema": [None],
    "table_type": [None],
    "partitions": [[], {}],
    "columns": [None, [], {}],
    "where": [None],
    "as_of": [None],
    "since": [None],
    "until": [None],
    "data": [[], {}],
    "partial": [None, True],
    "wait_s": [5, 1.5, True],
    "budget_s": [None, 5, 1.5, True],
    "instant": [None],
}
CALLS = {
    **{
        f"create_table {name}": lambda t, v, name=name: hoodie.create_table(
            t.uri + "-2", **({"record_key": "id"} | {name: v})
        )
        for name in (
            *("record_key", "partition_by", "ordering", "table_type"),
            *("name", "options", "storage_options", "schema"),
        )
    },
    "open_table path": lambda t, v: hoodie.open_table(v) if not isinstance(v, Path) else hoodie.open_table(None),
    "open_table options": lambda t, v: hoodie.open_table(t.uri, options=v),
    "HoodieTable context": lambda t, v: hoodie.HoodieTable(v),
    "register_merger name": lambda t, v: hoodie.register_merger(v, max),
    **{f"{name} data": lambda t, v, name=name: getattr(t, name)(v) for name in ("upsert", "insert", "delete")},
    "upsert options": lambda t, v: t.upsert(ROWS, v),
    "upsert partial": lambda t, v: t.upsert(ROWS, partial=v),
    "delete where": lambda t, v: t.delete(where=v) if v is not None else t.delete(),
    "delete_partitions partitions": lambda t, v: t.delete_partitions(v),
    **{
        f"scan {name}": lambda t, v, name=name: t.scan(**{name: v}).count()
        for name in ("columns", "where", "query", "as_of")
    },
    **{
        f"changes {name}": lambda t, v, name=name: t.changes(**{name: v}).count()
        for name in ("since", "until", "columns", "where", "images")
    },
    "schedule_compaction wait_s": lambda t, v: t.schedule_compaction(wait_s=v),
    "run_compaction budget_s": lambda t, v: t.run_compaction(budget_s=v),
    "run_compaction instant": lambda t, v: t.run_compaction(v),
    "rollback instant": lambda t, v: t.rollback(v),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_argument_of_a_wrong_type_is_one_error_of_ours(table, call):
    meant = WITHOUT.get(call.split()[1], [])
    for value in WRONG:
        if any(type(value) is type(each) and value == each for each in meant):
            continue
        with pytest.raises(HoodieError) as caught:
            CALLS[call](table, value)
        assert len(str(caught.value).splitlines()) <= 8
    assert table.scan().count() == 2


@pytest.mark.parametrize("name", ["a ", " a", "a\t", "a\n", "x\u00a0"])
def test_blanks_at_the_ends_of_a_name_are_left_out(tmp_path, name):
    made = hoodie.create_table(tmp_path / "t", record_key="id", name=name)
    made.upsert(pa.table({"id": ["a"]}))
    assert hoodie.open_table(tmp_path / "t").config.name == name.strip()


@pytest.mark.parametrize("folder", ["a ", " a", "a\n", " "])
def test_a_folder_with_blanks_at_its_ends_holds_a_table(tmp_path, folder):
    hoodie.create_table(str(tmp_path / folder), record_key="id").upsert(pa.table({"id": ["a"]}))
    assert hoodie.open_table(tmp_path / folder).scan().count() == 1
    assert [path.name for path in tmp_path.iterdir()] == [folder]


@pytest.mark.parametrize("name", ["", " ", "\ud83d"])
def test_what_is_no_name_of_a_table(tmp_path, name):
    with pytest.raises(OptionError, match="is not a name of a table"):
        hoodie.create_table(tmp_path / "t", record_key="id", name=name)
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("argument", ["record_key", "partition_by", "ordering"])
@pytest.mark.parametrize("column", [" a", "a ", "a,b", ""])
def test_columns_that_properties_would_not_keep(tmp_path, argument, column):
    with pytest.raises(OptionError, match=f"{argument} has {column!r}: .*rename the column"):
        hoodie.create_table(tmp_path / "t", **({"record_key": "id"} | {argument: [column]}))


@pytest.mark.parametrize("argument", ["record_key", "partition_by", "ordering"])
@pytest.mark.parametrize("column", ["s", "l", "m", "m.x"])
def test_columns_that_make_no_keys_and_no_order(tmp_path, argument, column):
    """Refused at once; without a schema, by the first write. Parts of structs do."""
    struct, items = pa.struct([("x", pa.int64())]), pa.list_(pa.int64())
    schema = pa.schema([("id", "string"), ("s", struct), ("l", items), ("m", pa.map_("string", "int64"))])
    arguments = {"record_key": "id"} | {argument: column}
    refused = (
        f"column '{column}' (is of type .*, which (makes|has) no|is not in the data)|ordering column .m[.]x. is no part"
    )
    with pytest.raises((KeyFieldError, OptionError), match=refused):
        hoodie.create_table(tmp_path / "t", schema, **arguments)
    assert not (tmp_path / "t").exists()
    rows = pa.table({"id": ["a"], "s": [{"x": 1}], "l": [[1]], "m": [[("x", 1)]]}, schema=schema)
    with pytest.raises((KeyFieldError, OptionError), match=refused):
        hoodie.create_table(tmp_path / "t", **arguments).upsert(rows)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_of_others_that_fills_columns_and_orders_by_a_part_of_one(tmp_path, table_type):
    """Its base files are read; its logs would be merged in another way."""
    fills = {"hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.PartialUpdateAvroPayload"}
    with pytest.raises(OptionError, match=r"fills columns one by one, and its ordering column s[.]x is a part of one"):
        hoodie.create_table(tmp_path / "t", record_key="id", ordering="s.x", table_type=table_type, options=fills)
    made = hoodie.create_table(tmp_path / "t", record_key="id", ordering="ts", table_type=table_type, options=fills)
    rows = pa.table({"id": ["a"], "ts": [1], "s": [{"x": 1}]})
    made.upsert(rows)
    made.upsert(rows)
    properties = tmp_path / "t/.hoodie/hoodie.properties"
    properties.write_text(properties.read_text().replace("=ts", "=s.x"))
    theirs = hoodie.open_table(tmp_path / "t")
    with pytest.raises(UnsupportedTableError, match=r"read, not written: it fills columns one by one"):
        theirs.upsert(rows)
    assert theirs.scan(query="read_optimized").to_arrow().num_rows == 1
    if table_type == "COPY_ON_WRITE":
        assert theirs.scan().to_arrow().num_rows == 1
    else:
        with pytest.raises(UnsupportedTableError, match=r"has logs that cannot be merged: it fills columns"):
            theirs.scan().to_arrow()
        for service in (theirs.compact, partial(theirs.compact_logs, blocks=1)):
            with pytest.raises(UnsupportedTableError, match=r"cannot be merged: it fills columns"):
                service()
            assert not hoodie.open_table(tmp_path / "t").timeline.pending()


def test_an_operation_by_its_name(table):
    assert table.write(ROWS, "upsert").updated == table.write(ROWS, "Upsert").updated == 2
    for wrong in ("merge", "compact", 5, None):
        with pytest.raises(OptionError, match=f"operation {wrong!r} is none of upsert, insert, bulk_insert, delete, "):
            table.write(ROWS, wrong)


def test_every_error_that_a_page_names_is_exported():
    shown = {name for name in hoodie.__all__ if name.endswith("Error")}
    listed = set(
        re.findall(r"^\| `(\w+Error)` ", (Path(hoodie.__file__).parent.parent / "docs/API.md").read_text(), re.M)
    )
    assert "MissingFileError" in shown
    assert listed == shown


def test_a_condition_as_the_keys_of_a_delete(table):
    with pytest.raises(SchemaError, match="text \"id = 'a'\": a condition goes into where="):
        table.delete("id = 'a'")


def test_a_rollback_of_what_is_not_there_names_what_could_be_rolled_back(table):
    newest = table.upsert([{"id": "a", "part": "x", "val": 1}]).instant
    with pytest.raises(
        InstantNotFoundError,
        match=rf"no instant 123 .* is the newest commit, {newest}, and pending writes: there are none",
    ):
        table.rollback("123")


def test_a_compaction_that_was_scheduled_is_not_rolled_back(table):
    table.upsert(ROWS)
    planned = table.schedule_compaction()
    for dry_run in (True, False):
        with pytest.raises(
            InstantNotFoundError, match=rf"{planned}.* is the plan of a compaction, .*compaction run /.*` runs it"
        ):
            table.rollback(planned, dry_run=dry_run)


def test_a_clean_is_not_rolled_back(table):
    for _ in range(3):
        table.upsert(ROWS)
        table.compact()
    cleaned = table.clean(retain_commits=1).instant
    with pytest.raises(InstantNotFoundError, match=rf"{cleaned}.clean .* cannot be rolled back: only commits"):
        table.rollback(cleaned)


def test_missing_key_columns_say_how_to_give_them(table):
    with pytest.raises(KeyFieldError, match=r"fix: +add the column to the data$"):
        table.upsert([{"part": "x", "val": 1}])
    with pytest.raises(KeyFieldError, match="record key column 'id' is not in the data"):
        table.delete([{"part": "x"}])
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS.to_pydict())
    for write, index in ((table.upsert, "id"), (table.upsert, ["id", "part"]), (table.delete, "id")):
        with pytest.raises(
            KeyFieldError, match=r"column 'id' .* is the index of the pandas frame, .*give df\.reset_index\(\)"
        ):
            write(frame.set_index(index))
    assert table.upsert(frame.set_index("id").reset_index()).updated == 2
    assert table.upsert(frame.set_index("id", drop=False)).updated == 2


def test_an_unknown_option_suggests_what_is_near_only(table):
    for wrong in ("foo", "nothing", "hoodie.foo", "hoodie.nothing"):
        with pytest.raises(OptionError, match=f"unknown option '{wrong}'$"):
            table.upsert(ROWS, {wrong: "1"})
    with pytest.raises(OptionError, match=r"did you mean 'hoodie\.datasource\.write\.recordkey\.field'"):
        table.upsert(ROWS, {"hoodie.datasource.write.recordkey.feild": "id"})


def test_a_column_that_there_is_not(table):
    columns = "columns are id, part, val, _hoodie_commit_time"
    with pytest.raises(OptionError, match=f"no column 'bob'; a text stands in single quotes; the {columns}"):
        table.scan(where="id = bob")
    for call in (lambda: table.scan(where="prat = 'x'"), lambda: table.scan(columns=["prat"])):
        with pytest.raises(OptionError, match=rf"no column 'prat'; did you mean 'part'\? The {columns}"):
            call()


def test_values_that_do_not_fit_are_shown(table):
    row = {"id": "a", "part": "x", "val": 1}
    for wrong in (2.5, 1e30):
        with pytest.raises(
            SchemaError, match=rf"holds {re.escape(str(wrong))}, which (is not a whole|that type is too small)"
        ):
            table.upsert([row | {"val": wrong}])
    with pytest.raises(SchemaError, match=r"no common type: 1 \(int\) and 'a' \(str\)$"):
        table.upsert([row, row | {"val": "a"}])
    with pytest.raises(SchemaError, match=r"fix: rename the columns as the table has them$"):
        table.upsert(ROWS.rename_columns(["id", "part", "VAL"]))


def test_a_decimal_for_a_double_column_is_to_be_cast_to_double(tmp_path):
    table = hoodie.create_table(tmp_path / "t", {"id": "string", "d": "double"}, record_key="id")
    with pytest.raises(SchemaError, match=r"table double, batch decimal128\(2, 1\): cast it to double"):
        table.upsert([{"id": "a", "d": Decimal("1.5")}])


NO_TEXTS = [7, True, b"x", ["x"], {"x": 1}, 1.5, ROWS, "\ud800"]


@pytest.mark.parametrize("wrong", [*NO_TEXTS, None])
def test_a_statement_that_is_no_text(table, wrong):
    with pytest.raises(OptionError, match=r"(?s)statement=.* is no text"):
        hoodie.sql(wrong, t=table)


@pytest.mark.parametrize("wrong", [7, "x", ["x"], [], {1: 2}, b"x", ("x",), ROWS])
def test_parameters_of_a_statement_that_are_not_values_by_names(table, wrong):
    with pytest.raises(OptionError, match="params are values by names"):
        hoodie.sql("SELECT :x AS x FROM t", t=table, params=wrong)


@pytest.mark.parametrize("wrong", NO_TEXTS)
@pytest.mark.parametrize("argument", ["format", "name", "sql", "changes"])
def test_an_argument_of_an_ingestion_that_is_no_text(tmp_path, wrong, argument):
    (tmp_path / "s").mkdir()
    with pytest.raises(OptionError, match=f"(?s){argument}=.* is no text"):
        hoodie.ingest(tmp_path / "s", tmp_path / "t", record_key="id", **{argument: wrong})
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("wrong", [None, "1", 1.5, [1], 0, -1])
def test_a_size_of_steps_that_is_none(tmp_path, wrong):
    with pytest.raises(OptionError, match=r"step_bytes=.* is not a whole number of at least 1"):
        hoodie.migrate(tmp_path, tmp_path / "t", record_key="id", step_bytes=wrong)
