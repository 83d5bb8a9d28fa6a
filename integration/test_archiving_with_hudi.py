"""The archived timeline of one table, written by hoodie and by Apache Hudi in turns: each goes on from what the other archived."""

import pytest

import hoodie
from integration.tables import trips
from integration.turns import ARCHIVE_NOW, COMPACT_NOW, Turns
from tests.effort import soak_but


def timeline_of(path):
    own = path / ".hoodie/timeline"
    return own if own.exists() else path / ".hoodie"


def active(path):
    return sorted(f.name for f in timeline_of(path).iterdir() if f.name[0].isdigit())


def files(path):
    """Without what only lists them."""
    others = (".crc", "_version_")
    names = (f.name for f in (timeline_of(path) / "history").iterdir())
    return sorted(name for name in names if not name.endswith(others) and not name.startswith("manifest_"))


@pytest.mark.parametrize(
    ("table_type", "version"),
    soak_but(
        [("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "9")],
        [("COPY_ON_WRITE", "6"), ("MERGE_ON_READ", "6"), ("MERGE_ON_READ", "9")],
    ),
)
def test_both_archive_one_table_in_turns_and_read_what_the_other_archived(hudi, tmp_path, table_type, version):
    turns = Turns(hudi, tmp_path / "trips", table_type, more={"hoodie.write.table.version": version})
    turns.create()
    written = []

    def we_write(turn):
        turns.we_upsert(trips(range(12), fare=turn, ts=10 + turn))

    for turn in range(6):
        we_write(turn)
        if turn % 2:
            turns.we_compact()
    table = hoodie.open_table(turns.path)
    history = [(r.instant, r.operation, r.inserted, r.updated, r.files) for r in table.history()]
    written += [entry[0] for entry in history]
    result = table.archive(min_commits=3)
    assert result.instants
    named = ".commits_.archive.1_1-0-1" if version == "6" else f"{result.instants[0]}_{result.instants[-1]}_0.parquet"
    assert files(turns.path) == [named]
    turns.check("after we archived")
    told = hoodie.open_table(turns.path).history(archived=True)
    assert [(r.instant, r.operation, r.inserted, r.updated, r.files) for r in told] == history

    # Apache Hudi lists what we archived, and archives more.
    name = f"archived_{table_type.lower()}_{version}"
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{turns.path}'")
    always = "start_ts => '20000101000000000', end_ts => '29990101000000000'"  # its default is up to yesterday
    listed = hudi.sql(f"CALL show_archived_commits(table => '{name}', limit => 100, {always})").rows
    assert {row["commit_time"] for row in listed} == {t for t in result.instants if t in written}
    before = set(active(turns.path))
    services = ARCHIVE_NOW | (COMPACT_NOW if table_type == "MERGE_ON_READ" else {})
    for turn in range(3):
        hudi.write(turns.path, turns.arrow(trips(range(3), fare=turn, ts=40 + turn)), turns.options | services)
        turns.table.merge(trips(range(3), fare=turn, ts=40 + turn))
    turns.check("after Hudi archived")
    assert before - set(active(turns.path))
    assert len(files(turns.path)) > 1
    told = [r.instant for r in hoodie.open_table(turns.path).history(archived=True)]
    assert set(told) > set(written)
    assert told == sorted(set(told))

    # And we go on from that.
    for turn in range(4):
        we_write(60 + turn)
    again = hoodie.open_table(turns.path).archive(min_commits=2)
    assert again.instants
    turns.check("after we archived again")
    assert len(hoodie.open_table(turns.path).history(archived=True)) == len(told) + 4


def test_a_key_that_only_a_log_before_its_base_file_has_is_there_once_after_archiving(hudi, tmp_path):
    """It was deleted before a compaction was planned, and written again before that ran."""
    turns = Turns(hudi, tmp_path / "trips", "MERGE_ON_READ")
    turns.create()
    turns.we_upsert(trips(range(8), fare=1, ts=10))
    turns.we_delete(trips([0], fare=1, ts=11))
    assert hoodie.open_table(turns.path).schedule_compaction() is not None
    turns.table.upsert(trips([0], fare=2, ts=12))  # hudi-rs leaves out logs beside a pending compaction
    again = hoodie.open_table(turns.path).timeline.commits[-1].time
    hoodie.open_table(turns.path).run_compaction()
    turns.check("the key is in a log only")
    for turn in range(6):
        turns.we_upsert(trips(range(1, 8), fare=turn, ts=20 + turn))
    one_delta = {"hoodie.compact.inline.max.delta.commits": "1"}
    held = hoodie.open_table(turns.path).archive(one_delta, min_commits=2)
    assert held.instants
    assert held.earliest <= again
    turns.we_upsert(trips([0], fare=3, ts=30))
    turns.check("archived up to it")
    turns.we_compact()
    assert hoodie.open_table(turns.path).archive(one_delta, min_commits=2).earliest > again
    turns.we_upsert(trips(range(8), fare=4, ts=40))
    turns.check("archived beyond it")
