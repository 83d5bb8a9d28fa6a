"""A record index by partitions: it is kept up by each action, finds rows for writes and queries, and is built, checked and dropped."""

import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import hoodie
from hoodie.errors import UnsupportedTableError
from hoodie.metadata.data_groups import file_id_in, is_by_partition, numbers_by_partition, shares_of
from hoodie.model.files import FileGroupId, FileSlice
from hoodie.model.instant import InstantTime
from hoodie.model.names import METADATA_TABLE
from hoodie.storage.cache import Cache
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.view.context import load_config
from tests.key_turns import Turns
from tests.memory_tables import Input, batch, keys, new_table, opened
from tests.metadata_tables import BY_FOLDERS, KEYS, KEYS_BY_PARTITION, check_index, check_storage, opened_metadata, read
from tests.rows import rows_of

KINDS = ("COPY_ON_WRITE", "MERGE_ON_READ")
INDEX = {"hoodie.index.type": "RECORD_LEVEL_INDEX"}
V9 = {"hoodie.write.table.version": "9"}
PARTS = ("a", "b/c", "d-_e")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def made(kind, ordering="ts", rows=9, version="9"):
    """A table with such an index, whose keys stand in several partitions, and what writes to it."""
    storage, clock = new_table(table_type=kind, ordering=ordering, more={"hoodie.write.table.version": version})
    table = opened(storage, clock, INDEX | KEYS_BY_PARTITION, cache=Cache())
    if rows:
        table.upsert(pa.concat_tables([some(range(rows), part) for part in PARTS[:2]]))
    return storage, table


def some(ids, part="a", ts=1, deleted=False):
    return batch([Input(f"k{n}", part, n, ts, deleted) for n in ids])


def check(storage):
    check_storage(storage)
    check_index(storage)
    assert opened_metadata(storage).record_index().shares is not None


@pytest.mark.parametrize("ordering", ["ts", pytest.param(None, marks=pytest.mark.long)])
def test_each_action_is_in_it(kind, ordering):
    storage, table = made(kind, ordering)
    check(storage)
    table.upsert(some(range(5, 12), ts=2))
    check(storage)
    table.delete(keys([Input("k1", "b/c"), Input("k99", "b/c")]))
    check(storage)
    table.upsert(some([1, 2], part="d-_e", ts=3))
    check(storage)
    table.upsert(some([3], ts=3, deleted=True))
    table.upsert(some([4], ts=0, deleted=True))
    check(storage)
    table.upsert(some([3], ts=4))
    table.insert(some([20, 21], part="new"))
    table.bulk_insert(some([30, 31], part="newer"))
    check(storage)
    if kind == "MERGE_ON_READ":
        table.compact()
        check(storage)
    table.cluster(["val"])
    check(storage)
    table.upsert(some(range(4), ts=5))
    table.insert_overwrite(some([5, 50], part="b/c"))
    check(storage)
    table.clean(retain_commits=1)
    table.rollback(table.timeline.commits[-1].time)
    check(storage)
    table.delete_partitions(["a"])
    check(storage)
    table.upsert(some(range(8), ts=9))
    check(storage)
    assert table.index("record_index").check()


def test_a_rollback_that_dies_leaves_no_partition_without_file_groups(kind):
    storage, table = made(kind)
    table.upsert(some([1], part="new"))
    last, begin, faulty = table.timeline.commits[-1].time, storage.snapshot(), FaultStorage(storage)
    opened(faulty, storage.clock, INDEX, cache=Cache()).rollback(last)
    for fault in crash_points([call for call in faulty.trace if "rollback" in call.path or str(last) in call.path]):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            opened(faulty, storage.clock, INDEX, cache=Cache()).rollback(last)
        faulty.revive()
        storage.clock.now_s += 1
        opened(storage, storage.clock, INDEX, cache=Cache()).upsert(some([2], part="new", ts=9))
        check(storage)
        there = opened_metadata(storage)
        assert set(there.partitions()) <= there.record_index().shares.keys()


def test_a_restore_builds_it_anew_as_one_by_partitions(kind):
    storage, table = made(kind)
    saved = table.savepoint()
    for turn in range(2, 14):
        table.upsert(some(range(turn, turn + 3), part=PARTS[turn % 3], ts=turn))
    check(storage)
    plain = opened(storage, storage.clock, cache=Cache())
    plain.restore(saved)
    check(storage)
    plain.upsert(some(range(4), ts=20))
    check(storage)


def test_it_begins_in_an_empty_table_and_in_one_without_partitions():
    storage, table = made("COPY_ON_WRITE", rows=0)
    table.upsert(some([]))
    table.upsert(some([1, 2]))
    check(storage)
    flat = V9 | {"hoodie.datasource.write.partitionpath.field": ""}
    storage, clock = new_table(table_type="MERGE_ON_READ", more=flat)
    table = opened(storage, clock, INDEX | KEYS_BY_PARTITION, cache=Cache())
    table.upsert(some(range(5)))
    assert table.upsert(some([1, 2, 9], ts=2)).index == {"record index": 1}
    check(storage)
    assert [each.file_id for each in groups(storage)] == [file_id_in("", number) for number in range(2)]


def groups(storage):
    return [each.group for each in opened_metadata(storage).record_index().pieces]


def test_file_ids_are_those_of_hudi_and_stand_in_the_order_of_partitions():
    assert file_id_in("Os-lo_x/ä b", 3) == "record-index-Os%2Dlo%5Fx%2Fä b-0003-0"
    assert file_id_in("", 0) == "record-index--0000-0"
    pieces = [
        FileSlice(FileGroupId("record_index", file_id_in(path, n)), InstantTime("0"), None, ())
        for path, n in [("", 0), ("a-b", 0), ("a-b", 1)]
    ]
    shares = shares_of(pieces)
    assert shares == {"": (0, 1), "a-b": (1, 2)}
    numbers = numbers_by_partition(pa.array(["x", "y", "x", "x"]), pa.array(["a-b", "a-b", "", "none"]), shares)
    assert numbers.tolist() == [1 + ord("x") % 2, 1 + ord("y") % 2, 0, -1]


def test_a_write_looks_into_no_file_and_keys_stay_in_their_partitions(kind):
    _, table = made(kind)
    assert table.upsert(some([1, 2, 30], ts=3)).index == {"record index": 1}
    assert table.upsert(some([1], part="other", ts=3)).index == {}
    rows = [row for row in table.scan().to_arrow().to_pylist() if row["id"] == "k1"]
    assert sorted(row["part"] for row in rows) == ["a", "b/c", "other"]


@pytest.mark.parametrize(("index", "built"), [("RECORD_INDEX", KEYS_BY_PARTITION), ("RECORD_LEVEL_INDEX", KEYS)])
def test_an_index_of_the_other_kind_is_not_asked(kind, index, built, caplog):
    storage, clock = new_table(table_type=kind, ordering="ts", more={"hoodie.index.type": index} | V9)
    table = opened(storage, clock, {"hoodie.index.type": index} | built, cache=Cache())
    table.upsert(some(range(4)))
    assert "record index" not in table.upsert(some([1], ts=2)).index
    assert [each for each in caplog.records if "it is one" in each.getMessage()]
    check_index(storage)
    assert len(table.scan().to_arrow()) == 4


def test_where_it_lacks_a_partition_the_files_are_looked_into(kind, monkeypatch, caplog):
    storage, table = made(kind)
    monkeypatch.setattr(hoodie.metadata.table, "shares_of", lambda pieces: {"a": shares_of(pieces)["a"]})
    assert "record index" not in table.upsert(some([1], part="b/c", ts=3)).index
    assert [each for each in caplog.records if "it does not have partition 'b/c'" in each.getMessage()]
    reader = opened(storage, cache=Cache())
    assert len(reader.lookup(["k1", "k2"]).to_arrow()) == 4


def test_a_key_that_stands_twice_in_a_partition_ends_it(kind, caplog):
    storage, table = made(kind)
    table.bulk_insert(some([1]))
    assert "record_index" not in load_config(storage).metadata_partitions
    assert [each for each in caplog.records if "stands in several file groups" in each.getMessage()]
    table.upsert(some([2], ts=5))
    assert len(table.lookup(["k2"]).to_arrow()) == 2


def test_version_6_has_none_and_looks_into_the_files(kind, caplog):
    storage, table = made(kind, version="6")
    assert "record index" not in table.upsert(some([1], ts=2)).index
    assert "record_index" not in load_config(storage).metadata_partitions
    assert [each for each in caplog.records if "only tables of version 8 or 9" in each.getMessage()]


def test_it_is_built_dropped_and_built_anew_where_it_is_damaged(kind):
    storage, clock = new_table(table_type=kind, ordering="ts", more=V9)
    table = opened(storage, clock, cache=Cache())
    table.upsert(pa.concat_tables([some(range(9), part) for part in PARTS]))
    table.build_index("record_index", KEYS_BY_PARTITION)
    check(storage)
    assert table.index("record_index").check()
    for info in storage.list(f"{METADATA_TABLE}/record_index"):
        if "-0000-0_" in info.name and info.name.endswith(".hfile"):
            storage.replace(info.path, b"x" * info.size_bytes)
    assert not table.index("record_index").check()
    opened(storage, clock, cache=Cache()).build_index("record_index")
    check(storage)
    assert table.drop_index("record_index")
    assert not is_by_partition(storage, load_config(storage).raw)
    with pytest.raises(UnsupportedTableError, match="stands in several file groups"):
        table.build_index("record_index", KEYS)


def test_a_place_that_is_wrong_is_found_by_a_check():
    storage, table = made("COPY_ON_WRITE")
    lying = opened_metadata(storage)
    number = lying.record_index().shares["b/c"].first
    for share in range(2):
        pieces = lying.record_index().pieces[number + share]
        for log in pieces.logs[1:]:
            storage.delete(f"{METADATA_TABLE}/{log.path}")
    found = table.index("record_index").check()
    assert not found


def test_queries_ask_it_for_keys(kind):
    storage, _ = made(kind)
    for part in PARTS:
        opened(storage, storage.clock, INDEX, cache=Cache()).bulk_insert(some(range(40, 60), part))
    reader = opened(storage, cache=Cache())
    scan = reader.scan(where="id = 'k3' AND part IN ('a', 'b/c')")
    assert len(scan.to_arrow()) == 2
    assert len(scan.plan.tasks) == 2
    assert len(reader.lookup(["k3", "k41", "k99"]).to_arrow()) == 5


HISTORY = 20


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 30))])
def test_any_history_is_in_it(kind, seed):
    chance = random.Random(seed)
    storage, table = made(kind, chance.choice(["ts", None]), rows=0)
    turns = Turns(table, chance, [*PARTS, "f"], some)
    for turn in range(HISTORY):
        if not turns.take(turn):
            continue
        if table.timeline.commits:
            check_index(storage)
            asked = [f"k{n}" for n in chance.sample(range(30), 3)]
            whole = opened(storage, options=BY_FOLDERS, cache=Cache()).scan().to_arrow()
            found = opened(storage, cache=Cache()).lookup(asked).to_arrow()
            assert rows_of(found) == rows_of(whole.filter(pc.is_in(whole["id"], value_set=pa.array(asked))))
    check(storage)


def test_a_writer_that_dies_at_any_call_leaves_the_old_rows_or_the_new_ones(kind):
    """It begins file groups for a partition."""
    storage, _ = made(kind)
    begin, old = storage.snapshot(), read(storage)
    rows = pa.concat_tables([some([1, 20], ts=20), some([1, 20], part="new")])
    faulty = FaultStorage(storage)

    def write(through):
        opened(through, storage.clock, INDEX | KEYS_BY_PARTITION, cache=Cache()).upsert(rows)

    write(faulty)
    new = read(storage)
    concerned = [
        call for call in faulty.trace if f"{METADATA_TABLE}/record_index" in call.path or "commit" in call.path
    ]
    for fault in crash_points(concerned):
        storage.restore(begin)
        faulty.revive([fault])
        with pytest.raises(InjectedFault):
            write(faulty)
        faulty.revive()
        assert read(storage) in (old, new), fault
        opened(storage, storage.clock, INDEX | KEYS_BY_PARTITION, cache=Cache()).upsert(some([2], part="new", ts=21))
        check(storage)
