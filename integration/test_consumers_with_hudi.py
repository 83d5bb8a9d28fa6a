"""Apache Hudi and hudi-rs read and write a table that has named consumers, and the consumers see what Apache Hudi writes."""

import pytest

import hoodie
from integration.tables import trips
from integration.turns import Turns


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_table_with_consumers_goes_on_in_both_hands(hudi, tmp_path, table_type):
    turns = Turns(hudi, tmp_path / "trips", table_type)
    turns.create()
    turns.we_upsert(trips(range(12), fare=1, ts=10))

    def pull():
        with hoodie.open_table(turns.path).consumer("pull") as consumer:
            return consumer.changes().count()

    def follow():
        with hoodie.open_table(turns.path).consumer("feed") as consumer:
            return consumer.changes(images="before_after").to_arrow().column("op").to_pylist()

    assert (pull(), len(follow())) == (12, 12)
    turns.hudi_upserts(trips(range(3), fare=2, ts=20))
    turns.check("Hudi wrote beside consumers")
    assert (pull(), follow()) == (3, ["u"] * 3)
    turns.we_upsert(trips(range(20, 22), fare=3, ts=30))
    turns.hudi_upserts(trips(range(4), fare=4, ts=40))
    turns.check("both wrote beside consumers")
    assert (pull(), sorted(follow())) == (6, ["i", "i", "u", "u", "u", "u"])
    # Apache Hudi's cleaner knows no consumers. It leaves their places alone.
    for turn in range(3):
        turns.we_upsert(trips(range(12), fare=turn, ts=50 + turn))
        if table_type == "MERGE_ON_READ":
            turns.we_compact()
    places = {each.name: each.position for each in hoodie.open_table(turns.path).consumers()}
    turns.hudi_upserts_and_cleans_up(trips(range(3), fare=5, ts=60))
    turns.check("Hudi cleaned beside consumers")
    assert {each.name: each.position for each in hoodie.open_table(turns.path).consumers()} == places
    assert pull() == 12
