"""Log compactions of ours and of Apache Hudi on one table: every reader sees the same rows in every view, and each side goes on with
what the other one wrote, and with its plans.
"""

import pytest

import hoodie
from hoodie.model.enums import Action, State, WriteOperation
from hoodie.storage.faults import FaultStorage, InjectedFault
from hoodie.storage.local import LocalStorage
from hoodie.table import open_at
from integration.tables import trips
from integration.turns import COMPACT_NOW, Turns
from integration.views import by_hudi, by_rust, differences, ours

LOG_COMPACT_NOW = {
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "2",
}
BLOCKS = [{}, {"hoodie.logfile.data.block.format": "parquet"}]


def fill(turns, *, start=10):
    """Updates, late ones, deletes, and keys that come back."""
    turns.we_upsert(trips(range(12), fare=start, ts=start + 10))
    turns.we_upsert(trips(range(6), fare=start + 1, ts=start + 5))  # late
    turns.we_delete(trips(range(4, 8), fare=0, ts=start))
    turns.we_upsert(trips(range(3, 6), fare=start + 2, ts=start + 8))
    turns.we_upsert(trips(range(8, 12), fare=start + 3, ts=start + 12))


def begun(hudi, tmp_path):
    turns = Turns(hudi, tmp_path / "trips", "MERGE_ON_READ")
    turns.create()
    turns.table.table = hoodie.open_table(
        turns.path, options={"hoodie.clean.automatic": "false"}
    )  # all views are compared
    turns.we_upsert(trips(range(12), fare=1, ts=10))
    fill(turns)
    return turns


def compact_logs(turns, options=None):
    results = hoodie.open_table(turns.path, options=options).compact_logs(blocks=2)
    assert [r.operation for r in results] == [WriteOperation.LOG_COMPACT]
    turns.check("our log compaction")
    return results[0]


def all_views_agree(turns):
    assert differences(turns.path, ours, by_hudi(turns.hudi)) == []
    assert differences(turns.path, ours, by_rust) == []


def log_compactions(turns):
    return sorted(hoodie.open_table(turns.path).timeline.log_compactions)


@pytest.mark.parametrize("options", BLOCKS, ids=["avro", "parquet"])
def test_every_reader_sees_the_same_in_every_view_and_hudi_goes_on_and_compacts(hudi, tmp_path, options):
    turns = begun(hudi, tmp_path)
    compact_logs(turns, options)
    all_views_agree(turns)
    turns.hudi_upserts(trips(range(2, 9), fare=50, ts=60))
    turns.hudi_deletes(trips(range(2), fare=0, ts=70))
    fill(turns, start=70)
    compact_logs(turns, options)  # over one before, and over Hudi's logs
    assert len(log_compactions(turns)) == 2
    all_views_agree(turns)
    turns.options |= COMPACT_NOW
    turns.hudi_upserts(trips(range(5), fare=99, ts=120))
    assert hoodie.open_table(turns.path).timeline.compactions
    turns.we_upsert(trips(range(9), fare=100, ts=130))
    turns.we_compact()


def test_a_write_of_hudis_that_overtook_it_counts_after_it(hudi, tmp_path):
    turns = begun(hudi, tmp_path)
    time = hoodie.open_table(turns.path).schedule_log_compaction(blocks=2)
    turns.hudi_upserts(trips(range(4), fare=50, ts=60))
    turns.we_upsert(trips(range(2), fare=51, ts=61))
    (result,) = hoodie.open_table(turns.path).run_log_compaction()
    assert result.instant == time
    turns.check("our log compaction")
    all_views_agree(turns)


def test_log_compactions_of_hudi_are_read_and_gone_on_with(hudi, tmp_path):
    turns = begun(hudi, tmp_path)
    turns.options |= LOG_COMPACT_NOW
    turns.hudi_upserts(trips(range(5), fare=50, ts=60))
    assert len(log_compactions(turns)) == 1
    # What Hudi's log compaction merged does not count again.
    assert hoodie.open_table(turns.path).compact_logs(blocks=2) == []
    for key in LOG_COMPACT_NOW:
        del turns.options[key]
    fill(turns, start=70)
    compact_logs(turns)  # over Hudi's
    turns.options |= LOG_COMPACT_NOW
    for turn in range(3):
        turns.hudi_upserts(trips(range(5), fare=60 + turn, ts=120 + turn))
    assert len(log_compactions(turns)) >= 3  # and Hudi's over ours
    turns.we_upsert(trips(range(12), fare=70, ts=140))
    turns.we_compact()


@pytest.mark.parametrize(("most", "due"), [(7, True), (8, False)])
def test_hudi_counts_a_log_compaction_as_a_delta_commit_before_a_compaction(hudi, tmp_path, most, due):
    """So do we: tests/services/test_log_compaction.py."""
    turns = begun(hudi, tmp_path)  # six delta commits
    compact_logs(turns)
    hudi.run_compaction(turns.path, op="schedule", options={"hoodie.compact.inline.max.delta.commits": str(most)})
    assert bool(hoodie.open_table(turns.path).pending_compactions()) is due


def dead_log_compaction(turns):
    """One of ours whose files have their names when its process dies; gives its instant."""

    class Dies(FaultStorage):
        def create_new(self, path, data, *, via=None, durable=True):
            if path.endswith(".deltacommit"):
                raise InjectedFault("the process died")
            super().create_new(path, data, via=via, durable=durable)

    with pytest.raises(InjectedFault):
        open_at(Dies(LocalStorage(turns.path))).compact_logs(blocks=2)
    (pending,) = hoodie.open_table(turns.path).timeline.pending(Action.LOGCOMPACTION)
    assert pending.state is State.INFLIGHT
    return pending.time


def test_readers_and_hudis_writers_do_not_mind_a_dead_one_of_ours(hudi, tmp_path):
    turns = begun(hudi, tmp_path)
    time = dead_log_compaction(turns)
    turns.check("our log compaction died")
    turns.hudi_upserts(trips(range(2, 9), fare=50, ts=60))
    turns.we_upsert(trips(range(12), fare=51, ts=70))
    (result,) = hoodie.open_table(turns.path).run_log_compaction()
    assert result.instant == time
    turns.check("run again")
    all_views_agree(turns)
    turns.hudi_upserts(trips(range(5), fare=99, ts=120))
    turns.we_compact()


def test_a_plan_of_ours_is_run_by_hudi(hudi, tmp_path):
    turns = begun(hudi, tmp_path)
    time = hoodie.open_table(turns.path).schedule_log_compaction(blocks=2)
    turns.options |= LOG_COMPACT_NOW
    turns.hudi_upserts(trips(range(2, 9), fare=50, ts=60))
    assert time in log_compactions(turns)
    turns.we_upsert(trips(range(12), fare=51, ts=70))
    turns.we_compact()
