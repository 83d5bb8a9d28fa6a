"""Expression indexes: one that Apache Hudi made is kept up, whatever is done, and others are built."""

import json
from contextlib import contextmanager
from datetime import datetime, timedelta

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.properties import parse_properties
from hoodie.hfile.arrays import BINARY
from hoodie.metadata.slices import DeletedKeys
from hoodie.metadata.table import MetadataTable
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from tests.memory_tables import opened
from tests.metadata_tables import after_each_action, changed, check_storage, loaded
from tests.rows import rows_of

NAME = "expr_index_by_time"
IN_UTC = {"hoodie.python.index.expression.timezone": "UTC"}
OFTEN = IN_UTC | {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "2"}


def table_of(options=None):
    storage = loaded("v9_expr_mor")
    table = opened(storage, storage.clock, IN_UTC | (options or {}), cache=Cache())
    return storage, table, table.scan().to_arrow()


def partitions(storage):
    return parse_properties(storage.read(PROPERTIES).decode())["hoodie.table.metadata.partitions"]


def check(storage, options=None):
    """It is there, and says of each file and of each partition what the rows do."""
    assert NAME in partitions(storage)
    check_storage(storage)
    found = opened(storage, options=options or IN_UTC, cache=Cache()).index(NAME).check()
    assert found, found
    assert not found.missing, found


def test_each_action_keeps_it():
    storage, table, rows = table_of()
    for _ in after_each_action(table, rows):
        check(storage)


def test_a_writer_that_dies_at_any_call_leaves_it_right():
    storage, _, stored = table_of()
    begin, faulty = storage.snapshot(), FaultStorage(storage)

    def write(place):
        opened(place, storage.clock, IN_UTC, cache=Cache()).upsert(changed(stored, 2))

    write(faulty)
    for fault in crash_points([call for call in faulty.trace if METADATA_TABLE in call.path or "commit" in call.path]):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            write(faulty)
        faulty.revive()
        write(storage)
        check(storage)


def test_it_is_compacted():
    storage, table, rows = table_of(OFTEN)
    for turn in range(24):
        table.upsert(changed(rows, 1 + turn % 5))
        if turn % 7 == 6:
            table.compact()
    assert len([each for each in storage.names(f"{METADATA_TABLE}/{NAME}") if each.endswith(".hfile")]) > 2
    check(storage)


MADE = "expr_index_made"
EXPRESSION = "hoodie.metadata.index.expression"
FIRST = datetime(2024, 2, 29, 23, 59, 58, 500_000)
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("part", pa.string()),
        ("name", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("count", pa.int64()),
        ("ts", pa.int64()),
    ]
)


def rows(ids, ts):
    names = ["straße", None, "  Ada ", "ΑΣ", ""]
    moments = [FIRST + timedelta(hours=7 * n) for n in ids]
    columns = {
        "id": [f"k{n}" for n in ids],
        "part": ["ab"[n % 2] for n in ids],
        "name": [names[n % 5] for n in ids],
        "at": moments,
        "day": [None if n % 4 == 3 else each.date() for n, each in zip(ids, moments, strict=True)],
        "count": [n * 1000 - 3 for n in ids],
        "ts": [ts] * len(ids),
    }
    return pa.table(columns, schema=SCHEMA)


def made(path, column, pairs, kind="COLUMN_STATS", version="9"):
    """A table with an index of this expression."""
    options = IN_UTC | {"hoodie.write.table.version": version}
    hoodie.create_table(
        path, SCHEMA, record_key="id", partition_by="part", table_type="MERGE_ON_READ", ordering="ts", options=options
    )
    table = hoodie.open_table(path, options=IN_UTC)
    table.upsert(rows(range(12), 1))
    table.upsert(rows(range(3), 2))
    assert table.build_index(MADE, asked(column, pairs, kind))
    return table


def asked(column, pairs, kind):
    return {f"{EXPRESSION}.column": column, f"{EXPRESSION}.options": pairs, "hoodie.expression.index.type": kind}


@pytest.mark.parametrize(
    ("column", "pairs", "kind", "version"),
    [
        ("name", "expr=upper", "COLUMN_STATS", "9"),
        ("at", "expr=date_format,format='yyyy-MM-dd''T''HH'", "COLUMN_STATS", "8"),
        ("day", "expr=date_add,days=3", "COLUMN_STATS", "9"),
        ("name", "expr=lower,numentries=100,fpp=0.001", "BLOOM_FILTERS", "8"),
        ("id", "", "BLOOM_FILTERS", "9"),
    ],
)
def test_one_is_built_kept_up_and_dropped(tmp_path, column, pairs, kind, version):
    table = made(tmp_path, column, pairs, kind, version)
    assert table.build_index(MADE) is None
    table.upsert(rows(range(2, 5), 3))
    table.delete(rows([7], 4))
    table.compact()
    table.upsert(rows(range(20, 22), 5))
    table.clean(retain_commits=1)
    found = hoodie.open_table(tmp_path, options=IN_UTC).index(MADE).check()
    assert found, found
    # Logs have no filters.
    assert not found.missing, found
    (info,) = [each for each in table.indexes() if each.name == MADE]
    assert (info.kind, info.columns) == (kind.lower(), (column,))
    assert MADE in json.loads((tmp_path / ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    assert table.drop_index(MADE)
    assert MADE not in json.loads((tmp_path / ".hoodie/.index_defs/index.json").read_text())["indexDefinitions"]
    assert MADE not in hoodie.open_table(tmp_path).config.metadata_partitions
    assert table.build_index(MADE, asked(column, pairs, kind))
    table.upsert(rows(range(2), 6))
    assert hoodie.open_table(tmp_path, options=IN_UTC).index(MADE).check()


@pytest.mark.parametrize(
    ("column", "pairs", "where", "left", "version"),
    [
        ("name", "expr=length", "length(name) = 9", 1, "9"),
        ("name", "expr=length", "length(name) = 9", 1, "8"),
        ("name", "expr=length", "length(name) = 9 OR ts = 9", 3, "9"),
        ("name", "expr=substring,pos=1,len=2", "substr(name, 1, 2) > 'Β' AND ts > 0", 0, "9"),
        ("name", "expr=trim", "trim(name) IN ('z', 'ω')", 2, "9"),
        ("day", "expr=year", "year(day) > 2024", 0, "8"),
        ("day", "expr=month", "month(day) <= 3", 3, "9"),
        # Letters are not changed as the index has them.
        ("name", "expr=upper", "upper(name) = '0'", 3, "9"),
    ],
)
def test_queries_leave_files_out_by_it(tmp_path, column, pairs, where, left, version):
    """Of three, one of which has logs: the last one has a name of 9 letters."""
    table = made(tmp_path, column, pairs, version=version)
    table.upsert(rows([40], 9).set_column(2, "name", pa.array(["zzzzzzzzz"])))
    table.upsert(rows([40], 9).set_column(2, "name", pa.array(["zzzzzzzzy"])))
    scan = hoodie.open_table(tmp_path, options=IN_UTC).scan(where=where)
    without = hoodie.open_table(tmp_path, options={"hoodie.metadata.enable": "false"}).scan(where=where)
    assert rows_of(scan.to_arrow()) == rows_of(without.to_arrow())
    assert scan.plan.pruning.after_statistics == left


def test_queries_leave_a_damaged_one_alone(tmp_path, caplog):
    made(tmp_path, "name", "expr=length")
    for file in (tmp_path / METADATA_TABLE / MADE).iterdir():
        if file.stat().st_size > 500:
            file.write_bytes(b"x" * file.stat().st_size)
    scan = hoodie.open_table(tmp_path, options=IN_UTC).scan(where="length(name) = 4")
    without = hoodie.open_table(tmp_path, options={"hoodie.metadata.enable": "false"}).scan(where="length(name) = 4")
    assert rows_of(scan.to_arrow()) == rows_of(without.to_arrow())
    assert scan.plan.pruning.after_statistics == without.plan.pruning.after_statistics
    assert "bounds of an expression" in caplog.text


@pytest.mark.parametrize("kind", ["COLUMN_STATS", "BLOOM_FILTERS"])
def test_a_writer_whose_clock_is_another_one_ends_it(tmp_path, kind, caplog):
    """Else queries would leave out rows of one of the two. A function without a clock does not mind."""
    there = made(tmp_path / "t", "at", "expr=date_format,format=HH", kind)
    there.upsert(rows([1], 3))
    assert MADE in hoodie.open_table(tmp_path / "t").config.metadata_partitions
    zone = {"hoodie.python.index.expression.timezone": "Asia/Tokyo"}
    hoodie.open_table(tmp_path / "t", options=zone).upsert(rows([1], 4))
    assert MADE not in hoodie.open_table(tmp_path / "t").config.metadata_partitions
    assert "by the clock of Asia/Tokyo" in caplog.text
    made(tmp_path / "length", "name", "expr=length")
    hoodie.open_table(tmp_path / "length", options=zone).upsert(rows([1], 4))
    assert hoodie.open_table(tmp_path / "length").index(MADE).check()


def test_services_checks_and_what_undoes_go_by_the_clock_that_is_said(tmp_path):
    """And not by that of the process."""
    zone = {"hoodie.python.index.expression.timezone": "Asia/Tokyo"}
    made(tmp_path, "name", "expr=length")
    table = hoodie.open_table(tmp_path, options=zone)
    assert table.build_index("expr_index_hours", asked("at", "expr=date_format,format=HH", "COLUMN_STATS"))
    saved = table.savepoint()
    table.upsert(rows(range(5), 3))
    table.compact()
    table.upsert(rows(range(4), 4))
    table.rollback(table.timeline.commits[-1].time)
    found = hoodie.open_table(tmp_path, options=zone).index("expr_index_hours").check()
    assert found, found
    table.restore(saved)
    assert hoodie.open_table(tmp_path, options=zone).index("expr_index_hours").check()


def test_a_time_zone_without_a_name_is_asked_for(tmp_path, monkeypatch):
    """As where /etc/localtime is a copy of its file."""
    monkeypatch.setattr("hoodie.metadata.expression_values.local_zone", lambda: None)
    table = made(tmp_path, "name", "expr=length")
    hoodie.open_table(tmp_path).upsert(rows([1], 3))
    assert table.drop_index(MADE)
    with pytest.raises(hoodie.UnsupportedTableError, match=r"say hoodie\.python\.index\.expression\.timezone"):
        hoodie.open_table(tmp_path).build_index(MADE, asked("at", "expr=hour", "COLUMN_STATS"))


@pytest.mark.parametrize(
    ("column", "pairs", "message"),
    [
        ("name", "expr=regexp_replace,pattern=a,replacement=b", "is not computed outside of Spark"),
        ("count", "expr=upper", "is no text"),
        ("nothing", "expr=upper", "no column 'nothing'"),
        ("at", "expr=date_format,format=EEE", "'EEE' in format"),
        ("name", "expr=upper,pos=1", "no option 'pos'"),
        ("name", "expr=substring,pos=1", "'len'"),
    ],
)
def test_one_of_values_that_are_not_known_is_refused(tmp_path, column, pairs, message):
    with pytest.raises(hoodie.UnsupportedTableError, match=message):
        made(tmp_path, column, pairs)
    assert MADE not in hoodie.open_table(tmp_path).config.metadata_partitions


def test_one_whose_values_come_to_be_unknown_is_dropped_alone(tmp_path, caplog):
    table = made(tmp_path, "name", "expr=to_date")
    table.upsert(rows([30], 6).set_column(2, "name", pa.array(["2024-1-1"])))
    assert "to_date(name)" in caplog.text
    assert "expr_index_made" in caplog.text
    assert hoodie.open_table(tmp_path).config.metadata_partitions == ("files",)


@contextmanager
def never_filled():
    """As Apache Hudi 1.2 leaves one that is made beside another one: file groups are there, each with a log that deletes nothing."""
    slices, layers = MetadataTable.slices_of, MetadataTable.layers_of

    def without_base(self, name):
        return [each._replace(base=None) if name == MADE else each for each in slices(self, name)]

    def of_logs(self, name, number):
        return [DeletedKeys(pa.array([], BINARY))] if name == MADE else layers(self, name, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MetadataTable, "slices_of", without_base)
        patch.setattr(MetadataTable, "layers_of", of_logs)
        yield


@pytest.mark.parametrize("version", ["8", "9"])
def test_one_that_was_never_filled_ends_with_the_next_write(tmp_path, version, caplog):
    """Bounds of the partitions that are written alone would leave all others out."""
    table = made(tmp_path, "name", "expr=length", version=version)
    with never_filled():
        hoodie.open_table(tmp_path, options=IN_UTC).upsert(rows([1], 3))
    assert "as one that was not filled" in caplog.text
    assert MADE not in hoodie.open_table(tmp_path).config.metadata_partitions
    assert table.build_index(MADE, asked("name", "expr=length", "COLUMN_STATS"))
    table.upsert(rows([1], 4))
    assert hoodie.open_table(tmp_path, options=IN_UTC).index(MADE).check()


def test_one_of_a_table_without_rows_is_filled_by_its_first_write(tmp_path):
    """It has no records either, and misses none."""
    table = made(tmp_path, "name", "expr=length")
    table.delete_partitions(list(table.partitions()))
    with never_filled():
        hoodie.open_table(tmp_path, options=IN_UTC).upsert(rows([2, 3], 3))
    assert MADE in hoodie.open_table(tmp_path).config.metadata_partitions
