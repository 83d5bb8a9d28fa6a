"""A metadata table as Apache Hudi makes it by default in version 9 keeps the bounds of files and of partitions, whatever is done."""

import json

import pyarrow as pa
import pytest

from hoodie.format.properties import parse_properties
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.storage.cache import Cache
from tests.memory_tables import opened
from tests.metadata_tables import after_each_action, changed, check_bounds, check_storage, loaded

OFTEN = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "2"}
BY_DEFAULT = "column_stats,files,partition_stats"


def table_of(options=None):
    storage = loaded("v9_mdt_mor")
    table = opened(storage, storage.clock, options, cache=Cache())
    return storage, table, table.scan().to_arrow()


def check(storage):
    assert parse_properties(storage.read(PROPERTIES).decode())["hoodie.table.metadata.partitions"] == BY_DEFAULT
    check_storage(storage)
    check_bounds(storage)


def test_each_action_keeps_them():
    storage, table, rows = table_of()
    for _ in after_each_action(table, rows):
        check(storage)


def test_they_are_compacted():
    storage, table, rows = table_of(OFTEN)
    for turn in range(24):
        table.upsert(changed(rows, 1 + turn % 5))
        if turn % 7 == 6:
            table.compact()
    for partition in ("column_stats", "partition_stats"):
        assert [each for each in storage.names(f"{METADATA_TABLE}/{partition}") if each.endswith(".hfile")]
    check(storage)


@pytest.mark.parametrize("columns", [["qty", "price"], ["name"]])
def test_a_file_without_bounds_is_read(columns):
    """NaN, and texts that are too long for a footer."""
    storage, table, rows = table_of()
    more = rows.slice(0, 3)
    for name in columns:
        at = more.schema.get_field_index(name)
        value = "x" * 9000 if name == "name" else float("nan") if name == "price" else 7
        more = more.set_column(at, more.schema.field(at), pa.array([value] * 3, more.schema.field(at).type))
    table.upsert(more)
    check(storage)
    table.compact()
    check(storage)
    table.upsert(changed(rows, 2))
    check(storage)


def test_one_that_cannot_be_kept_up_is_dropped_alone(caplog):
    storage, table, rows = table_of()
    storage.delete_folder(f"{METADATA_TABLE}/partition_stats")
    table.upsert(changed(rows, 2))
    found = parse_properties(storage.read(PROPERTIES).decode())["hoodie.table.metadata.partitions"]
    assert found == "column_stats,files"
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 2
    check_storage(storage)


def test_columns_that_a_write_adds_have_bounds_from_then_on():
    """Else Apache Hudi, which adds them to the index itself, would take them for nothing but nulls in our files."""
    storage, table, rows = table_of()
    more = changed(rows, 4).append_column("added", pa.array([5, 6, 7, 8], pa.int64()))
    table.upsert(more)
    check(storage)
    defined = json.loads(storage.read(".hoodie/.index_defs/index.json"))["indexDefinitions"]["column_stats"]
    assert defined["sourceFields"][-1] == "added"
    table.compact()
    table.upsert(changed(more, 2))
    check(storage)
