"""Whatever has happened to a table, each service still does what it is for, and the doctor finds no damage."""

from contextlib import suppress

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from hoodie.errors import CommitConflictError
from hoodie.format.layout import V6, V9
from hoodie.model.findings import Level
from hoodie.storage.cache import Cache
from tests.effort import SOAK, long_but
from tests.memory_tables import Input, batch, copy_of, opened
from tests.metadata_tables import check_index, check_storage, trusts_index
from tests.moving_histories import IndexedHistories
from tests.random_histories import Histories, play

PENDING = ("run_log_compaction", "run_clustering", "run_compaction")
FRESH = batch([Input("fresh", "a", 1, 1)])


def slices_of(table):
    return table._context.snapshot().view.latest_slices()


def compact(table):
    if table.config.table_type == "MERGE_ON_READ":
        table.compact()
        assert not [each.group for each in slices_of(table) if each.logs]


def cluster(table):
    table.cluster(["val"])
    partitions = [each.group.partition_path for each in slices_of(table)]
    assert len(partitions) == len(set(partitions))


def clean(table):
    table.clean(retain_versions=1)


def build_index(table):
    table.build_index("files")
    check_storage(table._context.storage)


def go_back(table):
    table.savepoint()
    table.upsert(FRESH)
    table.restore(table.savepoints()[-1].instant)


def change_version(table):
    if table.config.version == 6:
        table.upgrade(9)
    elif not table.savepoints():  # they keep logs, which refuses it
        table.downgrade(6)


def delete_all(table):
    table.delete(where="val >= 0 OR val IS NULL")
    assert table.scan().count() == 0


def add_column(table):
    table.alter.add_column("more", "int64")
    assert "more" in table.scan().to_arrow().column_names


KEEPING = (compact, cluster, clean, build_index, go_back, change_version)
"""What leaves the rows as they are."""


class Effects(Histories):
    """A look at the table as it is, and what each service makes of a copy."""

    def write_again_what_was_deleted_before_a_compaction_was_scheduled(self):
        """No rule here: running what is pending takes values of deleted rows away again (docs/MERGING.md, Two stages)."""

    @rule(act=st.sampled_from([*KEEPING, delete_all, add_column]))
    def a_service_has_its_effect(self, act):
        if not self.known:
            return
        storage, clock = copy_of(self.storage)
        table = opened(storage, clock, self.always, cache=Cache())
        for run in PENDING if self.table_type == "MERGE_ON_READ" else ("run_clustering",):
            with suppress(CommitConflictError if self.allows else ()):  # the plan whose rows a write changed is dropped
                getattr(table, run)()
        before = rows_of(storage)
        act(opened(storage, clock, self.always, cache=Cache()))
        assert act not in KEEPING or rows_of(storage) == before
        opened(storage, clock, self.always, cache=Cache()).delete(where="id = 'k0'")
        if trusts_index(storage):
            check_index(storage)

    @rule()
    def the_doctor_finds_no_damage(self):
        if self.known:
            findings = opened(self.storage, self.clock, cache=Cache()).doctor(deep=True).findings
            assert not [str(each) for each in findings if each.level is Level.DAMAGE]


def rows_of(storage):
    found = opened(storage, cache=Cache()).scan().to_arrow().select(["id", "part", "val", "ts"]).to_pylist()
    return sorted(map(repr, found))


class IndexedEffects(IndexedHistories, Effects):
    """By a record index of the whole table."""


@pytest.mark.parametrize("more", long_but([False], [False, True]), ids=["sample", "more"])
@pytest.mark.parametrize("version", [V6, V9], ids=["6", "9"])
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("histories", [Effects, IndexedEffects])
def test_services_have_their_effects_after_any_history(histories, kind, version, more):
    machine = type("Machine", (histories,), {"table_type": kind, "version": version})
    play(machine, 1000 if more and SOAK else 10 if more else 1, 20)
