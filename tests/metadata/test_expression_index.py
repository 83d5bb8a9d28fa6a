"""An expression index that Apache Hudi made is kept up, whatever is done; and what one gives."""

from hoodie.format.properties import parse_properties
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.storage.cache import Cache
from tests.memory_tables import opened
from tests.metadata_tables import changed, check_storage, loaded

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
    check(storage)
    table.upsert(changed(rows, 5))
    check(storage)
    table.delete(rows.slice(0, 2))
    check(storage)
    table.compact()
    check(storage)
    table.upsert(changed(rows, 4))
    table.rollback(table.timeline.commits[-1].time)
    check(storage)
    saved = table.savepoint()
    table.upsert(changed(rows, 3))
    table.upsert(changed(rows, 3))
    assert table.compact_logs(blocks=1)
    check(storage)
    table.cluster(sort_by="ts")
    check(storage)
    table.insert_overwrite(changed(rows, 1))
    check(storage)
    table.delete_partitions(["b"])
    check(storage)
    table.restore(saved)
    check(storage)
    table.drop_savepoint(saved)
    table.upsert(changed(rows, 3))
    table.clean(retain_commits=1)
    check(storage)


def test_it_is_compacted():
    storage, table, rows = table_of(OFTEN)
    for turn in range(24):
        table.upsert(changed(rows, 1 + turn % 5))
        if turn % 7 == 6:
            table.compact()
    assert len([each for each in storage.names(f"{METADATA_TABLE}/{NAME}") if each.endswith(".hfile")]) > 2
    check(storage)
