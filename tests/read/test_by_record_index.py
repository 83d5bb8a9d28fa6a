"""Look-ups of a few keys by a record index: no file is opened that does not have them, and the rows are those of a whole scan."""

import pytest

from hoodie.model.names import METADATA_TABLE
from hoodie.storage.cache import Cache
from tests.memory_tables import Input, batch, keys, new_table, opened
from tests.metadata_tables import BY_FOLDERS, KEYS

INDEX = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}
FILES = 4


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def made(request):
    """Four files whose keys lie between each other; of some there is a newer version, or a delete, or they have moved."""
    storage, clock = new_table(table_type=request.param, ordering="ts", more=INDEX)
    table = opened(storage, clock, INDEX | KEYS | {"hoodie.parquet.small.file.limit": "0"}, cache=Cache())
    for part in range(FILES):
        table.upsert(batch([Input(f"k{n:03}", "ab"[part % 2], n, 1) for n in range(part, 80, FILES)]))
    table.upsert(batch([Input("k007", "b", 700, 2), Input("k010", "c", 1000, 2)]))
    table.delete(keys([Input("k008", "a")]))
    return storage, table


def rows(scan):
    return sorted((row["id"], row["part"], row["val"]) for row in scan.to_arrow().to_pylist())


@pytest.mark.parametrize("ids", [["k007"], ["k008"], ["k010", "k001"], ["no"], [f"k{n:03}" for n in range(80)]])
def test_the_rows_are_those_of_a_whole_scan(made, ids):
    storage, _ = made
    found = opened(storage, cache=Cache()).lookup(ids)
    whole = opened(storage, options=BY_FOLDERS, cache=Cache()).scan()
    assert rows(found) == [row for row in rows(whole) if row[0] in ids]


def test_only_the_files_that_have_them_are_opened(made):
    storage, _ = made
    scan = opened(storage, cache=Cache()).lookup(["k007"])
    assert rows(scan) == [("k007", "b", 700)]
    assert len(scan.plan.tasks) == 1
    assert (scan.plan.pruning.footers, scan.plan.pruning.without_statistics) == (0, 0)


@pytest.mark.parametrize("query", ["as of", "read_optimized", "changes"])
def test_other_states_than_the_newest_are_not_asked_of_it(made, query):
    storage, table = made
    first = table.history()[FILES - 1]
    asks = {
        "as of": lambda table, where: table.scan(where=where, as_of=first),
        "read_optimized": lambda table, where: table.scan(where=where, query=query),
        "changes": lambda table, where: table.changes(first, where=where),
    }
    ids = ["k007", "k008", "k010"]
    where = f"id in ({', '.join(map(repr, ids))})"
    whole = asks[query](opened(storage, options=BY_FOLDERS, cache=Cache()), None)
    found = asks[query](opened(storage, cache=Cache()), where)
    assert rows(found) == [row for row in rows(whole) if row[0] in ids]


def test_one_that_is_damaged_costs_no_row(made, caplog):
    storage, _ = made
    for info in storage.list(f"{METADATA_TABLE}/record_index"):
        if ".log.2" in info.name or ".log.3" in info.name:
            storage.replace(info.path, b"x" * info.size_bytes)
    assert rows(opened(storage, cache=Cache()).lookup(["k007", "k002"])) == [("k002", "a", 2), ("k007", "b", 700)]


def test_a_key_that_is_inserted_twice_ends_the_index(made):
    """It has one place for a key, so that a look-up would lose the other row."""
    storage, table = made
    table.bulk_insert(batch([Input("k001", "c", 1, 1)]))
    assert opened(storage, cache=Cache()).config.metadata_partitions == ("files",)
    assert rows(opened(storage, cache=Cache()).lookup(["k001"])) == [("k001", "b", 1), ("k001", "c", 1)]


def test_of_more_keys_than_a_few_for_each_file_it_is_not_asked(made, monkeypatch):
    storage, _ = made
    monkeypatch.setattr("hoodie.read.prune._FEW_KEYS", 0)
    monkeypatch.setattr("hoodie.read.prune._KEYS_A_FILE", 1)
    asked = []
    monkeypatch.setattr("hoodie.read.prune.groups_with", lambda *_, **__: asked.append(1))
    ids = [f"k{n:03}" for n in range(20)]
    few, many = (opened(storage, cache=Cache()).lookup(each) for each in (ids[1:2], ids))
    assert len(asked) == 1
    assert len(rows(few)) == 1
    assert len(rows(many)) == 19
