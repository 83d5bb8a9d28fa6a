"""A table of version 6 becomes one of version 8 or 9: what it holds stays, who dies on the way leaves one of the two."""

import pytest

import hoodie
from hoodie.errors import CommitConflictError, OptionError, TableChangedError, UnsupportedTableError
from hoodie.model.enums import Action
from hoodie.model.names import PROPERTIES
from hoodie.options.merging import PAYLOADS
from tests.memory_tables import Input, batch, keys, new_table, opened, plain
from tests.told_by_tables import described, states
from tests.version_changes import check_deaths, lived_in

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
VERSIONS = pytest.mark.parametrize("version", [8, 9])


@KINDS
@VERSIONS
def test_rows_states_history_and_savepoints_stay(kind, version):
    storage, clock = lived_in(kind)
    table = opened(storage, clock)
    if kind == "MERGE_ON_READ":
        table.compact(strategy="unbounded")
    before, rows = states(table), plain(table.scan(meta_columns=True))
    history, saved = described(table.history(archived=True)), [each.instant for each in table.savepoints()]
    result = table.upgrade(version)
    assert (result.before, result.after) == (6, version)
    table = opened(storage, clock)
    assert int(table.config.version) == version
    assert plain(table.scan(meta_columns=True)) == rows
    assert states(table) == before
    assert described(table.history(archived=True)) == history
    assert [each.instant for each in table.savepoints()] == saved
    commits = table.timeline.commits
    assert [i.completion for i in commits] == sorted({i.completion for i in commits})
    assert all(i.completion > i.time for i in commits)
    assert table.validate(deep=True)
    assert not [name for name in storage.names(".hoodie") if name[:4].isdigit()]
    table.upsert(batch([Input("k", "a", 99, 99)]))
    table.delete(keys([Input("x", "z", 0, None)]))
    assert ("k", "a", 99, 99) in [row[:4] for row in plain(opened(storage, clock).scan(meta_columns=True))]
    assert opened(storage, clock).validate(deep=True)


@KINDS
def test_what_has_logs_is_compacted_first(kind):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock)
    for n in range(3):
        table.upsert(batch([Input("k", "a", n, n)]))
    dry = table.upgrade(9, dry_run=True)
    assert (dry.compacted, dry.dry_run) == (int(kind == "MERGE_ON_READ"), True)
    assert int(opened(storage, clock).config.version) == 6
    assert table.upgrade(9).compacted == dry.compacted
    table = opened(storage, clock)
    assert [each.logs for each in table.files()] == [()]
    assert table.to_arrow().column("val").to_pylist() == [2]
    assert "already" in str(table.upgrade(9))


@KINDS
def test_a_pull_goes_on_where_it_stood(kind):
    storage, clock = new_table(table_type=kind)
    table = opened(storage, clock)
    written = [table.upsert(batch([Input(f"k{n}", "a", n, n)])).instant for n in range(4)]
    with table.consumer("sums") as consumer:
        assert consumer.changes().to_arrow().num_rows == 4
    table.upsert(batch([Input("late", "a", 9, 9)]))
    table.upgrade(9)
    table = opened(storage, clock)
    positions = {i.time: i.completion for i in table.timeline.commits}
    assert sorted(row["id"] for row in table.changes(since=positions[written[1]]).to_arrow().to_pylist()) == [
        "k2",
        "k3",
        "late",
    ]
    with table.consumer("sums") as consumer:
        assert [row["id"] for row in consumer.changes().to_arrow().to_pylist()] == ["late"]


@pytest.mark.parametrize("payload", [name for name, rule in PAYLOADS.items() if not rule.positions])
@VERSIONS
def test_the_way_of_merging_stays(payload, version):
    rule = PAYLOADS[payload]
    ordering = ",".join(rule.ordering_fields) or "ts"
    more = {"hoodie.datasource.write.payload.class": payload, "hoodie.datasource.write.precombine.field": ordering}
    path = f"memory://{payload}{version}"
    columns = {"id": "string", "Op": "string", "_change_operation_type": "string", ordering: "int64"}
    table = hoodie.create_table(path, columns, record_key="id", table_type="MERGE_ON_READ", options=more)
    before = table.config.rule
    table.upgrade(version)
    after = hoodie.open_table(path).config.rule
    assert (after.mode, after.fill, after.ordering_fields, after.delete_marker is None) == (
        before.mode,
        before.fill,
        before.ordering_fields,
        before.delete_marker is None,
    )


def test_what_cannot_be_is_refused():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 1, 1)]))
    with pytest.raises(OptionError, match="7"):
        table.upgrade(7)
    table.upgrade(8)
    with pytest.raises(TableChangedError):
        table.upsert(batch([Input("k", "a", 2, 2)]))
    with pytest.raises(UnsupportedTableError, match="downgrade it"):
        opened(storage, clock).upgrade(6)


@KINDS
def test_from_eight_to_nine_only_the_properties_change(kind):
    storage, clock = lived_in(kind)
    opened(storage, clock).upgrade(8)
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 99, 99)]))
    rows = states(table)
    done = table.upgrade(9)
    assert (done.before, done.after, done.instants) == (8, 9, 0)
    table = opened(storage, clock)
    assert int(table.config.version) == 9
    assert states(table) == rows
    table.upsert(batch([Input("new", "a", 1, 1)]))
    table.downgrade(8)
    assert len(plain(opened(storage, clock).scan(meta_columns=True))) == 1 + len(rows[max(rows)])


def test_nothing_is_upgraded_beside_a_write_at_work():
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "a", 1, 1)]))
    plan = table.schedule_clustering(sort_by=["val"])
    assert plan is not None
    before = storage.read(PROPERTIES)
    with pytest.raises(CommitConflictError, match="is pending"):
        table.upgrade(9)
    assert storage.read(PROPERTIES) == before


@KINDS
@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_who_dies_at_any_call_leaves_one_of_the_two_and_the_next_one_ends_it(kind, moment):
    whole, clock = lived_in(kind)
    if kind == "MERGE_ON_READ":
        opened(whole, clock).compact(strategy="unbounded")
    commits = len(opened(whole, clock).timeline.commits)

    def check(storage, table):
        assert len(table.timeline.commits) == commits
        assert not [name for name in storage.names(".hoodie") if name[:4].isdigit()]
        assert not table.timeline.pending(Action.COMPACTION)

    check_deaths(whole, lambda table: table.upgrade(9), (6, 9), check, moment=moment)
