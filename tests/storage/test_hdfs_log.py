"""A log on HDFS whose DataNodes do not answer any more."""

import threading

import pytest

from hoodie.storage.hdfs_errors import HdfsErrors
from hoodie.storage.hdfs_files import HdfsLog


class Silent:
    """As hdfs-native after the lease of a paused writer was recovered."""

    def __init__(self):
        self.closed = False

    def hsync(self):
        threading.Event().wait()

    def flush(self):
        raise OSError("refused")

    def close(self):
        self.closed = True


def log_of(writer, **how):
    return HdfsLog(HdfsErrors("nn:8020"), "/t/wal/1", writer, **how)


def test_a_sync_that_is_never_answered_is_an_error_and_the_log_is_let_go():
    writer = Silent()
    log = log_of(writer, answer_s=0.05)
    with pytest.raises(OSError, match="have not answered for"):
        log.sync()
    log.close()
    assert not writer.closed, "that would wait, too"


def test_what_is_answered_is_told():
    writer = Silent()
    log = log_of(writer)
    with pytest.raises(OSError, match="refused"):
        log.sync(durable=False)
    log.close()
    assert writer.closed
