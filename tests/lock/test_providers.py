"""The lock is chosen by the options of whatever takes it."""

import pytest

from hoodie.lock import providers
from hoodie.options.concurrency import CONCURRENCY
from tests.memory_tables import Input, batch, new_table, opened

ROWS = batch([Input("k", "a", 1, 1)])


@pytest.fixture
def asked(monkeypatch):
    """The options of the coordinations that were made."""
    made = []
    usual = providers.PROVIDERS[CONCURRENCY.lock_provider]

    def maker(storage, options, waiting):
        made.append(options)
        return usual(storage, options, waiting)

    monkeypatch.setitem(providers.PROVIDERS, CONCURRENCY.lock_provider, maker)
    return made


@pytest.mark.parametrize(
    "act",
    [
        lambda table, options: table.upsert(ROWS, options),
        lambda table, options: table.delete(where="val = 1", options=options),
        lambda table, options: table.delete_partitions(["a"], options),
        lambda table, options: table.compact(options),
    ],
)
def test_the_options_of_an_operation_reach_the_maker_of_its_lock(asked, act):
    storage, clock = new_table(table_type="MERGE_ON_READ")
    table = opened(storage, clock)
    table.upsert(ROWS)
    del asked[:]
    act(table, {"hoodie.write.lock.wait_time_ms": "1500"})
    assert asked
    assert {options.lock_timeout_s for options in asked} == {1.5}
    assert {options.lock_provider for options in asked} == {CONCURRENCY.lock_provider}


def test_a_rollback_goes_by_the_options_of_the_open_table(asked):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock, {"hoodie.write.lock.wait_time_ms": "1500"})
    table.rollback()
    assert asked[-1].lock_timeout_s == 1.5


def test_an_operation_without_options_keeps_the_lock_of_the_open_table(asked):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    del asked[:]
    table.upsert(ROWS)
    assert asked == []
