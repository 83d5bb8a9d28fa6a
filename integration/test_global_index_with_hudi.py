"""Indexes of the whole table: hoodie and Apache Hudi move rows between partitions of one table, in turns."""

import pytest

from integration.tables import WholeTable, moved, trips
from integration.turns import Turns
from integration.views import View, ours
from tests.rows import without

NOT_OF_THE_ROW = ("_hoodie_commit_time", "_hoodie_commit_seqno", "_hoodie_file_name")


class GlobalTurns(Turns):
    """As `Turns`; both writers look keys up in all partitions."""

    written = WholeTable

    def __init__(self, hudi, path, table_type, index):
        options = {"hoodie.index.type": index}
        super().__init__(hudi, path, table_type, more=options, own=options)


@pytest.mark.parametrize(
    ("table_type", "index"),
    [("COPY_ON_WRITE", "GLOBAL_BLOOM"), ("MERGE_ON_READ", "GLOBAL_BLOOM"), ("MERGE_ON_READ", "GLOBAL_SIMPLE")],
)
def test_rows_move_to_and_fro_in_turns(hudi, tmp_path, table_type, index):
    turns = GlobalTurns(hudi, tmp_path / "trips", table_type, index)
    turns.create()
    turns.we_upsert(trips(range(12), fare=1, ts=10))
    turns.we_upsert(moved([1, 2, 3, 20], "Oslo", fare=2, ts=20))
    turns.hudi_upserts(moved([2, 4, 21], "Bergen", fare=3, ts=30))
    turns.we_upsert(moved([2, 4, 5], "Oslo", fare=4, ts=40))
    turns.hudi_upserts(moved([2], "Bergen", fare=5, ts=50) + moved([1], "Bergen", fare=5, ts=1))
    turns.we_upsert(moved([2, 6], "Oslo", fare=6, ts=60) + moved([4], "Bergen", fare=6, ts=2))
    turns.we_delete(moved([2, 7, 999], "Bergen", fare=0, ts=0))
    turns.hudi_upserts(moved([2, 7], "Oslo", fare=7, ts=70))
    turns.we_compact()
    turns.we_upsert(moved([2, 7, 8], "Bergen", fare=8, ts=80))
    turns.hudi_upserts_and_cleans_up(moved([8, 9], "Oslo", fare=9, ts=90))
    turns.we_upsert(moved([8, 9], "Bergen", fare=10, ts=100))


STAYS = {"hoodie.bloom.index.update.partition.path": "false"}


def test_a_row_that_stays_has_the_partition_path_and_the_columns_that_apache_hudi_gives_it(hudi, tmp_path):
    steps = [trips(range(6), fare=1, ts=10), moved([1, 2, 20], "Oslo", fare=2, ts=20), moved([1], "Oslo", fare=3, ts=1)]
    turns = GlobalTurns(hudi, tmp_path / "theirs", "COPY_ON_WRITE", "GLOBAL_BLOOM")
    for rows in steps:
        hudi.write(turns.path, turns.arrow(rows), turns.options | STAYS)
    mine = GlobalTurns(hudi, tmp_path / "ours", "COPY_ON_WRITE", "GLOBAL_BLOOM").create()
    for rows in steps:
        mine.upsert(rows, STAYS)
    found = [without(ours(path, View()), *NOT_OF_THE_ROW) for path in (turns.path, mine.path)]
    assert found[0] == found[1]
    assert {row["_hoodie_partition_path"] for row in found[1] if row["city"] == "Oslo"} == {"ny", "sf", "Oslo"}
