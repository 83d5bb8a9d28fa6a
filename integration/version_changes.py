"""Tables whose version we change while Apache Hudi writes them too: what all readers have to see afterwards."""

import hoodie
from integration.tables import trips
from integration.turns import Turns, from_the_archive
from integration.views import View, by_hudi, by_rust, differences, ours


def live_on(turns: Turns) -> None:
    """Six upserts of ours with a compaction amid, and one of Apache Hudi."""
    for turn in range(6):
        turns.we_upsert(trips([*range(8), 20 + turn], fare=turn, ts=10 + turn))
        if turn == 2:
            turns.we_compact()
    turns.hudi_upserts(trips([1, 3, 30], fare=3, ts=30))


def instants_of(turns: Turns) -> list[str]:
    """Of all of its history, the archived part included."""
    return [result.instant for result in hoodie.open_table(turns.path).history(archived=True)]


def check_change(turns: Turns, version: int, history: list[str], more: dict[str, str]) -> None:
    """The table has this version now, and all instants of before. `more`: options of Apache Hudi's writes from now on."""
    turns.table.table = hoodie.open_table(turns.path)
    turns.options |= more | {"hoodie.write.table.version": str(version)}
    turns.followers = None
    turns.check(f"our change to version {version}")
    assert f"hoodie.table.version={version}" in turns.properties()
    assert [time for time in instants_of(turns) if time in history] == history


def check_views(turns: Turns) -> None:
    """Each state that can be read is the same to all."""
    assert differences(turns.path, ours, by_hudi(turns.hudi), skip=from_the_archive) == []
    assert differences(turns.path, ours, by_rust, skip=from_the_archive) == []


def check_archive(turns: Turns, name: str) -> None:
    """Apache Hudi lists the archived commits that we list. `name`: of the table in its catalog."""
    turns.hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{turns.path}'")
    always = "start_ts => '20000101000000000', end_ts => '29990101000000000'"
    listed = turns.hudi.sql(f"CALL show_archived_commits(table => '{name}', limit => 100, {always})").rows
    active = {i.time for i in turns.table.table.timeline}
    assert {row["commit_time"] for row in listed} == {time for time in instants_of(turns) if time not in active}


def write_in_turns(turns: Turns) -> None:
    """Both go on."""
    turns.hudi_upserts(trips([4, 31], fare=5, ts=60))
    turns.we_upsert(trips([4, 32], fare=6, ts=70))
    turns.we_compact()
    turns.hudi_upserts(trips([5, 33], fare=7, ts=80))
    assert by_hudi(turns.hudi)(turns.path, View()) == by_rust(turns.path, View())
