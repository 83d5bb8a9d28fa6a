"""An index outside of the table: what it says counts only as far as the table agrees, and what it has lost costs time alone."""

import pytest

import hoodie
from hoodie.errors import CommitConflictError, KeyIndexError, OptionError
from hoodie.model.names import INDEX_CHANGES
from hoodie.storage.faults import FaultStorage, InjectedFault, crash_points
from hoodie.table import open_at
from tests.effort import in_shares, long_but
from tests.engines import Meanwhile
from tests.kept_keys import KeptKeys, new_kept_keys
from tests.memory_tables import Input, batch, copy_of, keys, new_table, opened, snapshot_of

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
STORED = [Input(f"k{n}", "a", n, 5) for n in range(4)]
CHANGES = [Input("k1", "b/c", 11, 6), Input("k2", "a", 12, 6), Input("k3", "a", 0, 6, True), Input("k9", "b/c", 19, 6)]
AFTER = [("k0", "a", 0), ("k1", "b/c", 11), ("k2", "a", 12), ("k9", "b/c", 19)]


def new_kept_table(kind, ordering="ts"):
    index, options = new_kept_keys()
    storage, clock = new_table(table_type=kind, ordering=ordering, more=options)
    opened(storage, clock).upsert(batch(STORED))
    return index, storage, clock


def rows_of(storage):
    return [row[:3] for row in snapshot_of(opened(storage))]


def changes_of(storage):
    return sorted(storage.names(INDEX_CHANGES))


@KINDS
def test_no_file_is_opened_for_keys_that_the_index_knows(kind):
    _, storage, clock = new_kept_table(kind)
    result = opened(storage, clock).upsert(batch([Input("k1", "a", 11, 6), Input("k9", "a", 9, 6)]))
    assert (dict(result.index), result.opened, result.updated, result.inserted) == ({"index": 1}, 0, 1, 1)
    assert changes_of(storage) == []


@KINDS
def test_entries_say_where_rows_stand(kind):
    index, storage, clock = new_kept_table(kind)
    opened(storage, clock).upsert(batch(CHANGES))
    table = opened(storage, clock)
    stand = {
        row["_hoodie_record_key"]: (row["_hoodie_partition_path"], row["_hoodie_file_name"].split("_")[0])
        for row in table.scan(meta_columns=True).to_arrow().to_pylist()
    }
    entries = {key: (each["partition_path"], each["file_id"]) for key, each in index.places.items()}
    assert stand.items() <= entries.items()
    assert {each["instant_time"] for each in index.places.values()} == {i.time for i in table.timeline.commits}


def test_entries_of_deleted_rows_are_deleted():
    index, storage, clock = new_kept_table("COPY_ON_WRITE")
    opened(storage, clock).delete(keys([Input("k1", "a"), Input("k7", "a")]))
    assert sorted(index.places) == ["k0", "k2", "k3"]


@KINDS
def test_a_delete_that_loses_leaves_its_row_and_its_entry(kind):
    _, storage, clock = new_kept_table(kind)
    opened(storage, clock).upsert(batch([Input("k1", "a", 0, 4, True)]))
    opened(storage, clock).upsert(batch([Input("k1", "a", 11, 6)]))
    assert rows_of(storage) == [("k0", "a", 0), ("k1", "a", 11), ("k2", "a", 2), ("k3", "a", 3)]


@KINDS
@pytest.mark.parametrize("ordering", long_but(["ts"], ["ts", None]), ids=["event_time", "commit_time"])
@in_shares(3)
def test_a_write_that_dies_at_any_call_leads_no_later_one_astray(kind, ordering, share):
    index, start, clock = new_kept_table(kind, ordering)
    opened(start, clock).upsert(batch([Input("k5", "b/c", 5, 5)]))  # a file that takes rows which move
    places = dict(index.places)
    done, clock = copy_of(start)
    traced = FaultStorage(done)
    opened(traced, clock).upsert(batch(CHANGES))
    first = next(call.n for call in traced.trace if INDEX_CHANGES in call.path)  # before it the index knows nothing
    for point in share.of(point for point in crash_points(traced.trace) if point.at >= first):
        index.places = dict(places)
        storage, clock = copy_of(start)
        with pytest.raises(InjectedFault):
            opened(FaultStorage(storage, [point]), clock).upsert(batch(CHANGES))
        if point.moment != "after":  # the instant that died is older than the timeline soon
            for n in range(3):
                opened(storage, clock).upsert(batch([Input("k0", "a", 0, 7 + n)]))
            opened(storage, clock).archive(min_commits=1, max_commits=2)
        opened(storage, clock).upsert(batch(CHANGES))
        assert rows_of(storage) == [*AFTER[:3], ("k5", "b/c", 5), AFTER[3]], point


class Failing(KeptKeys):
    """Fails at one of its calls, or after it."""

    fails_at = 0
    after = False

    def _count(self, act, *values):
        self.fails_at -= 1
        if self.fails_at == 0 and not self.after:
            raise ConnectionResetError("gone")
        found = act(*values)
        if self.fails_at == 0:
            raise ConnectionResetError("gone")
        return found

    def look_up(self, keys):
        return self._count(super().look_up, keys)

    def put(self, keys, places):
        return self._count(super().put, keys, places)

    def delete(self, keys):
        return self._count(super().delete, keys)


@KINDS
@pytest.mark.parametrize("after", [False, True])
def test_an_index_that_fails_at_any_call_fails_the_write_and_no_other(kind, after):
    for call in range(1, 8):
        index = Failing()
        index.after = after
        hoodie.register_index("failing", index)
        storage, clock = new_table(table_type=kind, ordering=None, more={"hoodie.index.class": "failing"})
        opened(storage, clock).upsert(batch(STORED))
        index.fails_at = call
        try:
            opened(storage, clock).upsert(batch(CHANGES))
        except KeyIndexError:
            assert rows_of(storage) == [(f"k{n}", "a", n) for n in range(4)]
        else:
            assert index.fails_at > 0
            break
        opened(storage, clock).upsert(batch(CHANGES))
        assert rows_of(storage) == AFTER
    assert call == (4 if kind == "COPY_ON_WRITE" else 3)


@KINDS
def test_rows_are_found_after_all_that_moves_or_restores_them(kind):
    _, storage, clock = new_kept_table(kind)
    table = opened(storage, clock)
    saved = table.timeline.commits[-1].time
    table.savepoint(saved)
    table.delete(keys([Input("k3", "a")]))
    table.upsert(batch([Input("k1", "b/c", 11, 6)]))
    table.restore(saved)
    table.upsert(batch([Input("k1", "b/c", 12, 7), Input("k3", "b/c", 13, 7)]))
    now = [("k0", "a", 0), ("k1", "b/c", 12), ("k2", "a", 2), ("k3", "b/c", 13)]
    assert rows_of(storage) == now
    table.cluster(["val"])
    table.upsert(batch([Input("k1", "a", 14, 8), Input("k0", "b/c", 10, 8)]))
    assert rows_of(storage) == [("k0", "b/c", 10), ("k1", "a", 14), ("k2", "a", 2), ("k3", "b/c", 13)]
    opened(storage, clock).insert_overwrite(batch([Input("k5", "a", 5, 1)]))
    opened(storage, clock).upsert(batch([Input("k1", "a", 15, 9), Input("k5", "b/c", 16, 9)]))
    assert rows_of(storage) == [("k0", "b/c", 10), ("k1", "a", 15), ("k3", "b/c", 13), ("k5", "b/c", 16)]


@KINDS
def test_the_rollback_of_a_commit_brings_back_what_its_entries_hid(kind):
    _, storage, clock = new_kept_table(kind)
    table = opened(storage, clock)
    table.upsert(batch(CHANGES))
    table.delete(keys([Input("k0", "a")]))
    table.rollback(table.timeline.commits[-1].time)
    opened(storage, clock).rollback(opened(storage, clock).timeline.commits[-1].time)
    opened(storage, clock).upsert(batch([*CHANGES, Input("k0", "a", 10, 9)]))
    assert rows_of(storage) == [("k0", "a", 10), *AFTER[1:]]


@KINDS
def test_a_key_that_stands_in_logs_only_is_found_when_its_entry_does_not_count(kind):
    index, storage, clock = new_kept_table(kind)
    table = opened(storage, clock)
    table.upsert(batch([Input("k1", "a", 0, 6, True)]))
    if kind == "MERGE_ON_READ":
        table.compact()
    table.upsert(batch([Input("k1", "a", 11, 7)]))
    index.places["k1"]["instant_time"] = "99990101000000000"
    opened(storage, clock).upsert(batch([Input("k1", "b/c", 12, 8)]))
    assert [row for row in rows_of(storage) if row[0] == "k1"] == [("k1", "b/c", 12)]


@KINDS
def test_an_index_that_has_lost_all_is_built_anew(kind):
    index, storage, clock = new_kept_table(kind)
    opened(storage, clock).upsert(batch(CHANGES))
    places = {key: each for key, each in index.places.items() if key != "k3"}
    index.places.clear()
    assert opened(storage, clock).rebuild_index() == 4
    stands = {key: {**each, "instant_time": None} for key, each in places.items()}
    assert {key: {**each, "instant_time": None} for key, each in index.places.items()} == stands
    result = opened(storage, clock).upsert(batch(CHANGES))
    assert (result.opened, result.inserted) == (0, 0)
    assert rows_of(storage) == AFTER


@KINDS
def test_a_table_gets_an_index_and_loses_no_row_before_it_has(kind):
    index, options = new_kept_keys()
    storage, clock = new_table(table_type=kind, ordering="ts")
    opened(storage, clock).upsert(batch(STORED))
    opened(storage, clock, options).upsert(batch(CHANGES[:2]))
    assert len(rows_of(storage)) == 4
    assert opened(storage, clock, options).rebuild_index() == 4
    result = opened(storage, clock).upsert(batch(CHANGES))
    assert (dict(result.index), result.opened) == ({"index": 2}, 0)
    assert rows_of(storage) == AFTER
    assert index.places.keys() >= {row[0] for row in AFTER}


def test_no_index_is_built_while_a_write_is_at_work():
    _, storage, clock = new_kept_table("COPY_ON_WRITE")

    def rebuild():
        with pytest.raises(CommitConflictError, match="still being written"):
            opened(storage, clock).rebuild_index()

    open_at(storage, engine=Meanwhile("write files", rebuild), sleep=clock.sleep).upsert(batch(CHANGES))
    assert rows_of(storage) == AFTER


def test_there_is_nothing_to_build_where_keys_are_in_the_files():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    with pytest.raises(OptionError, match="no index that is kept outside"):
        opened(storage, clock).rebuild_index()


def test_a_name_that_the_table_says_is_not_imported():
    storage, clock = new_table(table_type="COPY_ON_WRITE", more={"hoodie.index.class": "tests.kept_keys.KeptKeys"})
    opened(storage, clock, {"hoodie.index.class": "tests.kept_keys.KeptKeys"}).upsert(batch(STORED))
    with pytest.raises(OptionError, match="not registered in this process"):
        opened(storage, clock).upsert(batch(STORED))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("org.apache.hudi.index.hbase.SparkHoodieHBaseIndex", "written in Java are not run"),
        ("os.path", "without look_up, put, delete"),
        ("nobody", "call hoodie.register_index"),
        ("a b", "is not a name"),
    ],
)
def test_an_index_that_cannot_be_had_is_refused_in_one_sentence(name, reason):
    def write():
        options = {"hoodie.index.class": name}
        storage, clock = new_table(table_type="COPY_ON_WRITE", more=options)
        opened(storage, clock, options).upsert(batch(STORED))

    with pytest.raises(OptionError, match=reason):
        write()
