"""A table of version 9 or 8 becomes one of version 6: what it holds stays, who dies on the way leaves one of the two."""

import pytest

import hoodie
from hoodie.errors import CommitConflictError, TableChangedError, UnsupportedTableError
from hoodie.model.names import PROPERTIES
from hoodie.options.merging import PAYLOADS
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from tests.effort import long_but
from tests.memory_tables import Input, batch, keys, new_table, opened, plain
from tests.told_by_tables import described, states
from tests.version_changes import check_deaths

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
VERSIONS = pytest.mark.parametrize("version", [8, 9])


def lived_in(kind, version, **more):
    """A table with each kind of instant on its timelines."""
    storage, clock = new_table(
        table_type=kind, more={"hoodie.write.table.version": str(version), **more.pop("more", {})}, **more
    )
    table = opened(storage, clock)
    for n in range(8):
        table.upsert(batch([Input("k", "a", n, n), Input(f"n{n}", "b/c", n, n)]))
        if n == 3 and kind == "MERGE_ON_READ":
            table.compact()
    table.delete(keys([Input("n0", "b/c", 0, None)]))
    table.archive({"hoodie.compact.inline.max.delta.commits": "1"}, min_commits=4)
    table.cluster(sort_by=["val"])
    table.insert_overwrite(batch([Input("x", "z", 1, 1)]))
    table.upsert(batch([Input("k", "a", 9, 9)]))
    with pytest.raises(InjectedFault):
        opened(FaultStorage(storage, [Fault(12, "before")]), clock).upsert(batch([Input("dead", "a", 1, 1)]))
    table.rollback()
    return storage, clock


def merging(rule):
    return rule.mode, rule.fill, rule.ordering_fields, rule.delete_marker and rule.delete_marker.marker


@KINDS
@VERSIONS
def test_rows_states_and_history_stay(kind, version):
    storage, clock = lived_in(kind, version)
    table = opened(storage, clock)
    before, rows = states(table), plain(table.scan(meta_columns=True))
    history = described(table.history(archived=True))
    shown = table.downgrade(6, dry_run=True)
    assert (shown.before, shown.after, shown.dry_run) == (version, 6, True)
    assert shown.archived
    assert int(opened(storage, clock).config.version) == version
    done = table.downgrade(6)
    assert str(done).startswith(f"downgrade: from version {version} to 6")
    with pytest.raises(TableChangedError):
        table.upsert(batch([Input("k", "a", 2, 2)]))
    table = opened(storage, clock)
    assert int(table.config.version) == 6
    assert plain(table.scan(meta_columns=True)) == rows
    assert [each for each in described(table.history(archived=True)) if each in history] == history
    if kind == "COPY_ON_WRITE":
        assert states(table) == before
    else:
        assert list(states(table).values())[-1] == rows
    assert not storage.list(".hoodie/timeline")
    assert b"timeline.path" not in storage.read(PROPERTIES)
    table.upsert(batch([Input("k", "a", 77, 77), Input("new", "q", 1, 1)]))
    assert len(plain(table.scan(meta_columns=True))) == len(rows) + 1
    assert table.downgrade(6).instants == 0
    table.upgrade(version)
    assert len(plain(opened(storage, clock).scan(meta_columns=True))) == len(rows) + 1


def test_from_nine_to_eight_only_the_properties_change():
    storage, clock = lived_in("MERGE_ON_READ", 9)
    table = opened(storage, clock)
    before = {info.path for info in storage.list("", recursive=True) if not info.path.startswith(".hoodie/.hoodie_py")}
    rows = states(table)
    assert table.downgrade(8).instants == 0
    table = opened(storage, clock)
    assert int(table.config.version) == 8
    assert states(table) == rows
    after = {info.path for info in storage.list("", recursive=True) if not info.path.startswith(".hoodie/.hoodie_py")}
    assert after == before
    with pytest.raises(UnsupportedTableError, match="upgrade it"):
        table.downgrade(9)


@VERSIONS
def test_consumers_go_on_where_they_were(version):
    storage, clock = new_table(table_type="COPY_ON_WRITE", more={"hoodie.write.table.version": str(version)})
    table = opened(storage, clock)
    for n in range(4):
        table.upsert(batch([Input(f"k{n}", "a", n, n)]))
    with table.consumer("sums") as consumer:
        assert consumer.changes().to_arrow().num_rows == 4
    table.upsert(batch([Input("late", "a", 9, 9)]))
    table.downgrade(6)
    with opened(storage, clock).consumer("sums") as consumer:
        assert [row["id"] for row in consumer.changes().to_arrow().to_pylist()] == ["late"]


@pytest.mark.parametrize("payload", [name for name, rule in PAYLOADS.items() if not rule.positions])
@VERSIONS
def test_the_way_of_merging_stays(payload, version):
    rule = PAYLOADS[payload]
    ordering = ",".join(rule.ordering_fields) or "ts"
    more = {
        "hoodie.datasource.write.payload.class": payload,
        "hoodie.datasource.write.precombine.field": ordering,
        "hoodie.write.table.version": str(version),
    }
    columns = {"id": "string", "Op": "string", "_change_operation_type": "string", ordering: "int64"}
    table = hoodie.create_table(
        f"memory://down{payload}{version}", columns, record_key="id", table_type="MERGE_ON_READ", options=more
    )
    before = table.config
    if version == 9:
        table.downgrade(8)
        assert merging(hoodie.open_table(table.uri).config.rule) == merging(before.rule)
    hoodie.open_table(table.uri).downgrade(6)
    after = hoodie.open_table(table.uri).config
    assert merging(after.rule) == merging(before.rule)
    assert (after.keygen, after.ordering_fields) == (before.keygen, before.ordering_fields)


def test_what_only_version_9_can_say_is_refused():
    storage, clock = new_table(table_type="MERGE_ON_READ", more={"hoodie.write.table.version": "9"})
    text = storage.read(PROPERTIES).decode() + "hoodie.table.partial.update.mode=FILL_UNAVAILABLE\n"
    text += "hoodie.record.merge.property.hoodie.write.partial.update.unavailable.value=gone\n"
    storage.replace(PROPERTIES, text.encode())
    with pytest.raises(UnsupportedTableError, match="only version 9 can say"):
        opened(storage, clock).downgrade(6)


def test_nothing_is_downgraded_beside_a_write_at_work_or_under_a_savepoint():
    storage, clock = lived_in("MERGE_ON_READ", 9)
    table = opened(storage, clock)
    before = storage.read(PROPERTIES)
    table.savepoint()
    with pytest.raises(CommitConflictError, match="a savepoint"):
        table.downgrade(6)
    table.drop_savepoint(table.savepoints()[-1].instant)
    assert table.schedule_clustering(sort_by=["val"]) is not None
    with pytest.raises(CommitConflictError, match=r"was not downgraded: .* is pending"):
        table.downgrade(6)
    assert storage.read(PROPERTIES) == before


@KINDS
@pytest.mark.parametrize("moment", long_but(["before"], ["before", "torn", "after"]))
def test_who_dies_at_any_call_leaves_one_of_the_two_and_the_next_one_ends_it(kind, moment):
    whole, _ = lived_in(kind, 9)

    def check(storage, table):
        assert not storage.list(".hoodie/timeline")

    every = 4 if moment == "before" else 1
    check_deaths(whole, lambda table: table.downgrade(6), (9, 6), check, moment=moment, every=every)
