"""Secondary indexes: they are kept up by each action, say where the rows with a value are, and go where they cannot be right."""

import json
import random

import pyarrow as pa
import pytest

from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.metadata.secondary_keys import composed, group_numbers_of, prefixes, record_keys, value_texts
from hoodie.model.names import METADATA_TABLE, PROPERTIES
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from tests.memory_tables import Input, batch, keys, new_table, opened
from tests.metadata_tables import BY_FOLDERS, KEYS, check_index, check_storage, read
from tests.rows import rows_of

NAME = "secondary_index_by_val"
INDEX = {"hoodie.index.type": "RECORD_INDEX", "hoodie.record.index.update.partition.path": "true"}
VALUES = KEYS | {"hoodie.metadata.index.secondary.column": "val", "hoodie.index.name": "by_val"}


@pytest.fixture(params=["COPY_ON_WRITE", "MERGE_ON_READ"])
def kind(request):
    return request.param


@pytest.fixture(params=["9", "8"])
def version(request):
    return request.param


def made(kind, version="9", ordering="ts", rows=9):
    """A table with a secondary index on `val`, and what writes to it."""
    storage, clock = new_table(table_type=kind, ordering=ordering, more=INDEX | {"hoodie.write.table.version": version})
    table = opened(storage, clock, INDEX | VALUES, cache=Cache())
    if rows:
        table.upsert(valued(range(rows)))
    return storage, table


def valued(ids, part=None, ts=1, deleted=False, val=None):
    return batch([Input(f"k{n}", part or "ab"[n % 2], n % 4 if val is None else val, ts, deleted) for n in ids])


def check(storage):
    """The index has the value of each row, and nothing else; and queries by it find these rows."""
    table = opened(storage, cache=Cache())
    assert NAME in table.config.metadata_partitions
    found = table.index(NAME).check()
    assert found, found
    assert (found.missing, found.surplus) == (0, 0), found
    rows = opened(storage, options=BY_FOLDERS, cache=Cache()).scan().to_arrow()
    assert found.checked == len(rows)
    mine = rows.filter(pa.compute.equal(rows["val"], 3))
    assert rows_of(table.scan(where="val = 3").to_arrow()) == rows_of(mine)


def test_each_action_is_in_it(kind, version):
    storage, table = made(kind, version, "ts" if version == "9" else None)
    table.upsert(valued(range(5, 12), ts=2, val=3))
    check(storage)
    table.delete(keys([Input("k1", "b"), Input("k99", "b")]))
    check(storage)
    table.upsert(valued([1, 2], part="c", ts=3))
    check(storage)
    table.upsert(valued([3], ts=3, deleted=True))
    check(storage)
    table.upsert(valued([4], ts=0, deleted=True))
    check(storage)
    table.upsert(valued([3], ts=4, val=77))
    check(storage)
    table.insert(valued([20, 21]))
    check(storage)
    table.bulk_insert(valued([30, 31]))
    if kind == "MERGE_ON_READ":
        table.compact()
        check(storage)
    table.cluster(["val"])
    check(storage)
    table.insert_overwrite(valued([5, 50], part="b"))
    check(storage)
    table.clean(retain_commits=1)
    check(storage)
    table.rollback(table.timeline.commits[-1].time)
    check(storage)
    table.delete_partitions(["a"])
    check(storage)
    check_storage(storage)
    check_index(storage)


def test_a_restore_and_a_rollback_of_what_was_compacted_build_it_anew(kind):
    storage, table = made(kind)
    saved = table.savepoint()
    for turn in range(2, 14):
        table.upsert(valued(range(turn, turn + 3), part="abc"[turn % 3], ts=turn))
    check(storage)
    assert any(name.endswith(".hfile") for name in storage.names(f"{METADATA_TABLE}/{NAME}"))
    for _ in range(3):
        table.rollback(table.timeline.commits[-1].time)
        check(storage)
    table.restore(saved)
    check(storage)
    table.upsert(valued(range(4), ts=20))
    check(storage)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 30))])
def test_any_history_is_in_it(kind, seed):
    chance = random.Random(seed)
    storage, table = made(kind, chance.choice("89"), chance.choice(["ts", None]), rows=0)
    taken = 0
    for turn in range(20):
        ids = chance.sample(range(30), chance.randint(1, 9))
        part, ts = chance.choice("abc"), turn if chance.random() < 0.8 else chance.randrange(turn + 1)
        val = chance.choice([None, 3, 77])
        match chance.choice(["upsert"] * 6 + ["delete", "flag", "compact", "cluster", "overwrite", "rollback", "drop"]):
            case "upsert":
                table.upsert(valued(ids, part=part, ts=ts, val=val))
            case "delete":
                table.delete(keys([Input(f"k{n}", part) for n in ids]))
            case "flag":
                table.upsert(valued(ids, part=part, ts=ts, deleted=True))
            case "compact" if kind == "MERGE_ON_READ":
                table.compact()
            case "cluster":
                table.cluster(["val"])
            case "overwrite" if turn % 3 == 0:
                table.insert_overwrite(valued([2000 + 10 * turn + n for n in range(3)], part=part))
            case "rollback" if table.timeline.commits and taken < 3:
                taken += 1
                table.rollback(table.timeline.commits[-1].time)
            case "drop" if turn % 3 == 0:
                table.delete_partitions([part])
            case _:
                continue
        if table.timeline.commits and turn % 3 == 0:
            check(storage)


def test_a_writer_that_dies_at_any_call_leaves_the_old_rows_or_the_new_ones(kind):
    storage, _ = made(kind)
    begin, old = storage.snapshot(), read(storage)
    rows = valued([1, 20], part="d", ts=20, val=3)
    faulty = FaultStorage(storage)

    def write(through):
        opened(through, storage.clock, INDEX | VALUES, cache=Cache()).upsert(rows)

    write(faulty)
    new = read(storage)
    concerned = [call for call in faulty.trace if NAME in call.path]
    for fault in crash_points(concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            write(faulty)
        faulty.revive()
        assert read(storage) in (old, new), fault
        where = opened(storage, cache=Cache()).scan(where="val = 3").to_arrow()
        assert rows_of(where) in [[row for row in each if row["val"] == 3] for each in (old, new)]
        opened(storage, storage.clock, INDEX, cache=Cache()).upsert(valued([2], part="d", ts=21))
        check(storage)


def test_a_query_by_it_opens_the_files_that_have_the_value_alone(kind, version):
    storage, table = made(kind, version, rows=0)
    for n, part in enumerate("abcdefgh"):
        table.upsert(valued([n], part=part, val=100 + 7 * n % 8))
    explained = opened(storage, cache=Cache()).scan(where="val in (101, 999)")
    assert explained.plan.pruning.after_statistics == 1, explained.plan.pruning
    assert explained.to_arrow().num_rows == 1
    assert opened(storage, cache=Cache()).scan(where="val = 555").to_arrow().num_rows == 0
    assert opened(storage, cache=Cache()).scan(where="val is null").to_arrow().num_rows == 0


def test_an_index_is_built_for_a_table_that_has_rows_and_dropped(kind, version):
    storage, clock = new_table(table_type=kind, more=INDEX | {"hoodie.write.table.version": version})
    table = opened(storage, clock, INDEX | KEYS, cache=Cache())
    table.upsert(valued(range(9)))
    table.upsert(valued([3, 4], ts=2, val=77))
    by_val = {"hoodie.metadata.index.secondary.column": "val"}
    assert table.build_index(NAME, by_val) is not None
    assert table.build_index(NAME) is None
    check(storage)
    (info,) = [each for each in table.indexes() if each.name == NAME]
    assert info.columns == ("val",)
    assert info.records == 9
    opened(storage, clock, INDEX, cache=Cache()).upsert(valued([3, 30], ts=3))
    check(storage)
    assert table.drop_index(NAME)
    with pytest.raises(OptionError, match="no index"):
        table.index(NAME).check()
    assert b"by_val" not in storage.read(".hoodie/.index_defs/index.json")
    table.build_index("secondary_index_val")
    assert table.index("secondary_index_val").check()
    assert table.drop_index("record_index")
    assert opened(storage, cache=Cache()).config.metadata_partitions == ("files",)


def test_an_index_that_cannot_be_is_refused(kind):
    storage, clock = new_table(table_type=kind, more=INDEX | {"hoodie.write.table.version": "9"})
    table = opened(storage, clock, INDEX | {"hoodie.metadata.enable": "true"}, cache=Cache())
    table.upsert(valued(range(3)))
    with pytest.raises(UnsupportedTableError, match="build record_index first"):
        table.build_index("secondary_index_val")
    table.build_index("record_index")
    with pytest.raises(UnsupportedTableError, match="no column 'by_val'"):
        table.build_index(NAME)
    with pytest.raises(UnsupportedTableError, match="no secondary index is of"):
        table.build_index(NAME, {"hoodie.metadata.index.secondary.column": "_hoodie_is_deleted"})
    old, clock = new_table(table_type=kind, more=INDEX | {"hoodie.write.table.version": "6"})
    table = opened(old, clock, INDEX | KEYS, cache=Cache())
    table.upsert(valued(range(3)))
    with pytest.raises(UnsupportedTableError, match="version 8 or 9"):
        table.build_index("secondary_index_val")


def test_by_option_it_is_dropped(kind):
    storage, _ = made(kind)
    off = {"hoodie.metadata.index.secondary.enable": "false"}
    opened(storage, storage.clock, INDEX | off, cache=Cache()).upsert(valued([1], ts=5))
    assert opened(storage, cache=Cache()).config.metadata_partitions == ("files", "record_index")


def test_queries_leave_a_damaged_one_alone(kind, caplog):
    storage, _ = made(kind)
    for info in storage.list(f"{METADATA_TABLE}/{NAME}"):
        if info.size_bytes > 500:
            storage.replace(info.path, b"x" * info.size_bytes)
    whole = rows_of(opened(storage, options=BY_FOLDERS, cache=Cache()).scan(where="val = 3").to_arrow())
    assert rows_of(opened(storage, cache=Cache()).scan(where="val = 3").to_arrow()) == whole
    assert "rows with a value" in caplog.text


def test_a_key_that_comes_to_stand_twice_takes_the_index_along(kind):
    storage, _ = made(kind)
    table = opened(storage, storage.clock, cache=Cache())
    table.bulk_insert(valued([1], part="z", ts=5, val=3))
    assert table.scan(where="val = 3").to_arrow().num_rows == 3
    assert opened(storage, cache=Cache()).config.metadata_partitions == ("files",)


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        (lambda table: table.alter.add_column("more", pa.int32()), True),
        (lambda table: table.alter.rename_column("val", "value"), False),
        (lambda table: table.alter.drop_column("val"), False),
        (lambda table: table.alter.change_type("val", pa.float64()), False),
        (lambda table: table.alter.change_type("val", pa.string()), True),
    ],
    ids=["add", "rename", "drop", "float", "text"],
)
def test_where_the_column_has_other_texts_the_index_goes(kind, change, stays, caplog):
    storage, table = made(kind)
    change(table)
    named = opened(storage, cache=Cache()).config.metadata_partitions
    assert (NAME in named) == stays
    assert "record_index" in named
    assert bool([each for each in caplog.records if NAME in each.getMessage()]) != stays
    if stays:
        later = opened(storage, storage.clock, INDEX | {"hoodie.python.upsert.partial": "true"}, cache=Cache())
        rows = valued([1, 30], ts=9)
        later.upsert(rows.set_column(2, "val", rows["val"].cast(later.schema.field("val").type)))
        assert opened(storage, cache=Cache()).index(NAME).check()


def test_a_new_record_index_is_none_by_partitions(kind):
    """Whatever the definition says of one that was there before."""
    storage, clock = new_table(table_type=kind, more=INDEX | {"hoodie.write.table.version": "9"})
    old = {"record_index": {"indexName": "record_index", "indexOptions": {"isPartitioned": "true"}, "version": "V1"}}
    storage.create_new(".hoodie/.index_defs/index.json", json.dumps({"indexDefinitions": old}).encode())
    properties = storage.read(PROPERTIES) + b"hoodie.table.index.defs.path=.hoodie/.index_defs/index.json\n"
    storage.replace(PROPERTIES, properties)
    opened(storage, clock, INDEX | KEYS, cache=Cache()).upsert(valued(range(3)))
    found = json.loads(storage.read(".hoodie/.index_defs/index.json"))["indexDefinitions"]
    assert found["record_index"]["indexOptions"] == {"isPartitioned": "false"}


# -- keys --------------------------------------------------------------------------------------------------------------

TEXTS = ["a", "a$b", "x\\y", "n\0z", None, "", "\0", "ü$\\", "\\$"]
RECORDS = ["k1", "k$2", "k\\3", "k4", "k5", "", "k\n7", "🔑", "id:1,b:$"]


def test_keys_have_both_parts_and_a_value_begins_them():
    found = composed(pa.array(TEXTS), pa.array(RECORDS))
    assert found.to_pylist()[:7] == [
        "a$k1",
        "a\\$b$k\\$2",
        "x\\\\y$k\\\\3",
        "n\\\0z$k4",
        "\0$k5",
        "$",
        "\\\0$k\n7",
    ]
    assert record_keys(found).to_pylist() == RECORDS
    heads = prefixes(pa.array(TEXTS)).to_pylist()
    assert [[each.startswith(head) for each in found.to_pylist()].count(True) for head in heads] == [1] * len(heads)
    with pytest.raises(UnsupportedTableError):
        record_keys(pa.array(["no separator \\$"]))


def test_the_value_alone_chooses_the_file_group_from_version_9_on():
    found = composed(pa.array(["v$"] * 50), pa.array([f"k{n}" for n in range(50)]))
    assert set(group_numbers_of(found, 7, by_value=True).tolist()) == set(
        group_numbers_of(prefixes(pa.array(["v$"])), 7, by_value=False).tolist()
    )
    assert len(set(group_numbers_of(found, 7, by_value=False).tolist())) == 7


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([1, None, -5], pa.int64()), ["1", None, "-5"]),
        (pa.array([1.0, 1e10, 0.1], pa.float32()), ["1.0", "1.0E10", "0.1"]),
        (pa.array([19724], pa.int32()).cast(pa.date32()), ["19724"]),
        (pa.array([5], pa.int64()).cast(pa.timestamp("ms", "UTC")), ["5000"]),
        (pa.array(["x"], pa.large_string()), ["x"]),
    ],
)
def test_values_are_spelled_as_spark_has_them(values, texts):
    assert value_texts(values, "c").to_pylist() == texts
