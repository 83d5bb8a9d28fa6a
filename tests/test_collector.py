"""The collector of cycles runs less often while a table is asked or written, and as before after it."""

import gc
from threading import Barrier, Thread

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.collector import COLLECTOR_SPARED
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_read
from hoodie.view.view import FileSystemView
from hoodie.write.attempt import Attempt
from tests.memory_tables import Input, batch, new_table, opened

BEFORE = gc.get_threshold()


def is_spared():
    return gc.get_threshold() != BEFORE


def test_it_runs_less_often_until_the_last_block_has_ended():
    with COLLECTOR_SPARED:
        with COLLECTOR_SPARED:
            assert is_spared()
        assert is_spared()
        assert gc.get_threshold()[0] > 10 * BEFORE[0]
        assert gc.isenabled()
    assert not is_spared()


def test_it_runs_as_before_after_an_error():
    with pytest.raises(KeyError), COLLECTOR_SPARED:
        raise KeyError
    assert not is_spared()


@pytest.mark.parametrize("own", [0, 10**6])
def test_a_process_that_has_it_off_or_rarer_keeps_it_so(own):
    gc.set_threshold(own)
    try:
        with COLLECTOR_SPARED:
            assert gc.get_threshold()[0] == own
        assert gc.get_threshold()[0] == own
    finally:
        gc.set_threshold(*BEFORE)


def test_blocks_of_other_threads_count():
    inside, outside = Barrier(2), Barrier(2)

    def spare():
        with COLLECTOR_SPARED:
            inside.wait()
            outside.wait()

    thread = Thread(target=spare)
    with COLLECTOR_SPARED:
        thread.start()
        inside.wait()
    assert is_spared()
    outside.wait()
    thread.join()
    assert not is_spared()


def test_it_runs_less_often_while_a_table_is_asked(monkeypatch):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "p", 1)]))
    assert table._context.ask(lambda snapshot: is_spared())
    seen = []
    whole = FileSystemView.latest_slices

    def latest_slices(*args, **how):
        seen.append(is_spared())
        return whole(*args, **how)

    monkeypatch.setattr(FileSystemView, "latest_slices", latest_slices)
    plan_read(table._context, ReadOptions(), meta_columns=False, snapshot=table._context.snapshot())
    assert seen == [True]
    assert not is_spared()


@pytest.mark.parametrize("by_merger", [False, True])
def test_it_runs_less_often_during_a_write_without_a_merger_of_the_user(by_merger, monkeypatch, tmp_path):
    seen = []
    run = Attempt.run
    monkeypatch.setattr(Attempt, "run", lambda attempt: (seen.append(is_spared()), run(attempt))[1])
    hoodie.register_merger("newer", lambda older, newer: newer)
    options = {"hoodie.write.record.merge.mode": "CUSTOM", "hoodie.python.merger": "newer"} if by_merger else {}
    table = hoodie.create_table(tmp_path, record_key="id", options=options)
    table.upsert(pa.table({"id": ["a"]}))
    assert seen == [not by_merger]
    assert not is_spared()
