"""The collector of cycles is off while a table is asked, and on after it."""

import gc
from threading import Barrier, Thread

import pytest

from hoodie.model.collector import COLLECTOR_PAUSED
from hoodie.options.read import ReadOptions
from hoodie.read.plan import plan_read
from hoodie.view.view import FileSystemView
from tests.memory_tables import Input, batch, new_table, opened


def test_it_is_off_until_the_last_block_has_ended():
    with COLLECTOR_PAUSED:
        with COLLECTOR_PAUSED:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_it_is_on_after_an_error():
    with pytest.raises(KeyError), COLLECTOR_PAUSED:
        raise KeyError
    assert gc.isenabled()


def test_one_that_was_off_stays_off():
    gc.disable()
    try:
        with COLLECTOR_PAUSED:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_blocks_of_other_threads_count():
    inside, outside = Barrier(2), Barrier(2)

    def pause():
        with COLLECTOR_PAUSED:
            inside.wait()
            outside.wait()

    thread = Thread(target=pause)
    with COLLECTOR_PAUSED:
        thread.start()
        inside.wait()
    assert not gc.isenabled()
    outside.wait()
    thread.join()
    assert gc.isenabled()


def test_it_is_off_while_a_table_is_asked(monkeypatch):
    storage, clock = new_table(table_type="COPY_ON_WRITE")
    table = opened(storage, clock)
    table.upsert(batch([Input("k", "p", 1)]))
    assert not table._context.ask(lambda snapshot: gc.isenabled())
    seen = []
    whole = FileSystemView.latest_slices

    def latest_slices(*args, **how):
        seen.append(gc.isenabled())
        return whole(*args, **how)

    monkeypatch.setattr(FileSystemView, "latest_slices", latest_slices)
    plan_read(table._context, ReadOptions(), meta_columns=False, snapshot=table._context.snapshot())
    assert seen == [False]
    assert gc.isenabled()
