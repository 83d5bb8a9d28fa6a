"""Tables of version 3, 4 and 5: they are read as they are, nobody writes them, and on request they become one of version 6."""

import pytest

import hoodie
from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.model.enums import Action
from hoodie.storage.faults import Fault, FaultStorage, InjectedFault
from hoodie.table import open_at
from tests.memory_tables import Input, batch, keys, new_table, opened, plain
from tests.told_by_tables import states
from tests.version_changes import check_deaths, lived_in, make_old, properties_of

KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
OLD = pytest.mark.parametrize(
    ("version", "kind"),
    [("3", "COPY_ON_WRITE"), ("4", "MERGE_ON_READ"), ("5", "COPY_ON_WRITE"), ("5", "MERGE_ON_READ")],
)
METADATA = {"hoodie.metadata.enable": "true"}


def everything(storage):
    return {info.path: storage.read(info.path) for info in storage.list("", recursive=True) if not info.is_folder}


def lived_in_of(version, kind):
    storage, clock = lived_in(kind)
    before = opened(storage, clock)
    rows, past = plain(before.scan(meta_columns=True)), states(before)
    pulled = plain(before.changes(since=before.timeline.commits[-2].time, meta_columns=True))
    make_old(storage, version)
    return storage, clock, rows, past, pulled


@OLD
def test_an_old_table_is_read_in_every_view(kind, version):
    storage, clock, rows, past, pulled = lived_in_of(version, kind)
    table = opened(storage, clock)
    assert int(table.config.version) == int(version)
    assert plain(table.scan(meta_columns=True)) == rows
    assert states(table) == past
    assert plain(table.changes(since=table.timeline.commits[-2].time, meta_columns=True)) == pulled
    assert plain(open_at(storage, options=METADATA).scan(meta_columns=True)) == rows
    assert table.validate(deep=True)
    assert "upgrade it first" in str(table.doctor())


CHANGES = {
    "upsert": lambda t: t.upsert(batch([Input("k", "a", 2, 2)])),
    "insert": lambda t: t.insert(batch([Input("x", "a", 2, 2)])),
    "bulk_insert": lambda t: t.bulk_insert(batch([Input("x", "a", 2, 2)])),
    "insert_overwrite": lambda t: t.insert_overwrite(batch([Input("x", "a", 2, 2)])),
    "insert_overwrite_table": lambda t: t.insert_overwrite_table(batch([Input("x", "a", 2, 2)])),
    "delete": lambda t: t.delete(keys([Input("k", "a", 2, 2)])),
    "update": lambda t: t.update({"val": 1}, where=[("id", "=", "k")]),
    "cluster": lambda t: t.cluster(sort_by=["val"]),
    "clean": lambda t: t.clean(retain_commits=1),
    "archive": lambda t: t.archive(min_commits=2),
    "erase": lambda t: t.erase(keys([Input("k", "a")])),
    "savepoint": lambda t: t.savepoint(),
    "rollback": lambda t: t.rollback(),
    "rollback_newest": lambda t: t.rollback(t.timeline.commits[-1].time),
    "alter": lambda t: t.alter.add_column("more", "int64"),
    "index": lambda t: t.build_index("files"),
}


@KINDS
@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_an_old_table_says_to_upgrade_it_and_changes_nothing(kind, change):
    storage, clock = new_table(table_type=kind)
    for n in range(6):
        opened(storage, clock).upsert(batch([Input("k", "a", n, n)]))
        if kind == "MERGE_ON_READ":
            opened(storage, clock).compact()
    with pytest.raises(InjectedFault):
        opened(FaultStorage(storage, [Fault(12, "before")]), clock).upsert(batch([Input("dead", "a", 1, 1)]))
    make_old(storage, "5")
    before = everything(storage)
    with pytest.raises(UnsupportedTableError, match=r"upgrade it first, by table.upgrade\(6\)"):
        CHANGES[change](opened(storage, clock))
    assert everything(storage) == before


@OLD
@pytest.mark.parametrize("to", [6, 9])
def test_an_upgrade_keeps_rows_and_states_and_leaves_no_logs(kind, version, to):
    storage, clock, rows, past, _ = lived_in_of(version, kind)
    aux = ".hoodie/.aux/20200101000000000.compaction.requested"
    storage.replace(aux, b"of an instant that is gone")
    dry = opened(storage, clock).upgrade(to, dry_run=True)
    assert (dry.before, dry.after, dry.dry_run) == (int(version), to, True)
    assert f"hoodie.table.version=6, was {version}" in dry.changes
    done = opened(storage, clock).upgrade(to)
    assert (done.before, done.after, done.changes, done.compacted) == (int(version), to, dry.changes, dry.compacted)
    table = opened(storage, clock)
    assert int(table.config.version) == to
    assert plain(table.scan(meta_columns=True)) == rows
    if to == 6 or kind == "COPY_ON_WRITE":
        assert {time: rows for time, rows in states(table).items() if time in past} == past
    assert not [each for each in table.files() if each.logs]
    assert properties_of(storage)["hoodie.table.checksum"]
    assert not storage.names(".hoodie/metadata")
    table.upsert(batch([Input("k", "a", 99, 99)]))
    assert table.validate(deep=True)


@pytest.mark.parametrize("to", [6, 9])
def test_a_pending_compaction_is_run_and_its_second_plan_goes(to):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    for n in range(3):
        table.upsert(batch([Input("k", "a", n, n)]))
    plan = table.schedule_compaction()
    make_old(storage, "4")
    aux = f".hoodie/.aux/{plan}.compaction.requested"
    storage.replace(aux, storage.read(f".hoodie/{plan}.compaction.requested"))
    assert opened(storage, clock).upgrade(to).compacted == 1
    table = opened(storage, clock)
    assert plan in [i.time for i in table.timeline.commits]
    assert not table.timeline.pending(Action.COMPACTION)
    assert not storage.exists(aux)
    assert table.to_arrow().column("val").to_pylist() == [2]


@pytest.mark.parametrize(("version", "hive", "refused"), [("3", False, True), ("4", True, True), ("5", False, False)])
def test_a_partition_of_nulls_that_later_writers_call_otherwise_bars_the_upgrade(version, hive, refused):
    more = {"hoodie.datasource.write.hive_style_partitioning": str(hive).lower()}
    storage, clock = new_table(table_type="COPY_ON_WRITE", more=more)
    opened(storage, clock).upsert(batch([Input("k", "default", 1, 1)]))
    make_old(storage, version)
    table = opened(storage, clock)
    if refused:
        before = everything(storage)
        with pytest.raises(UnsupportedTableError, match="default"):
            table.upgrade(6)
        assert everything(storage) == before
        assert table.to_arrow().num_rows == 1
    else:
        assert table.upgrade(6).after == 6


@pytest.mark.parametrize("version", ["3", "5"])
def test_no_table_is_made_in_or_brought_to_an_old_version(version):
    options = {"hoodie.write.table.version": version}
    with pytest.raises(OptionError, match="6, 8 and 9"):
        hoodie.create_table(f"memory://old{version}", {"id": "string"}, record_key="id", options=options)
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    with pytest.raises(OptionError, match="6, 8 and 9"):
        opened(storage, clock).downgrade(int(version))


@KINDS
@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_who_dies_at_any_call_leaves_one_of_the_two_and_the_next_one_ends_it(kind, moment):
    whole, clock = new_table(table_type=kind)
    opened(whole, clock).upsert(batch([Input("k", "a", 1, 1)]))
    make_old(whole, "5")

    def check(storage, table):
        assert not storage.names(".hoodie/metadata")

    check_deaths(whole, lambda table: table.upgrade(6), (5, 6), check, moment=moment, least=2)
