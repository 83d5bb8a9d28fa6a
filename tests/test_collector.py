"""The collector of cycles is off while a table is asked, and on after it."""

import gc
from threading import Barrier, Thread

import pytest

from hoodie.model.collector import COLLECTOR_PAUSED


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
