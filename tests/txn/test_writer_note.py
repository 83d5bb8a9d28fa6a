"""What a commit says of its writer: in the error of who lost against it, and to one that was given another lock."""

import json
import os
import socket

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import CommitConflictError
from hoodie.lock.holder import Holder
from hoodie.model.payloads import CommitMetadata
from hoodie.txn.heartbeat import WRITER, format_writer, writer_of
from hoodie.txn.transaction import Transaction

ROWS = pa.table({"id": ["a"], "part": ["p"], "ts": [1]})
ELSEWHERE = json.dumps({"host": "another-host", "pid": 4711, "since": "2026-01-01T00:00:00Z", "lock": "zookeeper"})


@pytest.fixture
def path(tmp_path):
    hoodie.create_table(tmp_path / "t", ROWS.schema, record_key="id", partition_by="part", ordering="ts")
    return tmp_path / "t"


def interrupted(monkeypatch, meanwhile, times=1):
    """Run something before each of so many commits."""
    commit, done = Transaction.commit, []

    def later(transaction, *args, **kwargs):
        if len(done) < times:
            done.append(transaction.instant)
            monkeypatch.setattr(Transaction, "commit", commit)
            meanwhile(transaction)
            monkeypatch.setattr(Transaction, "commit", later)
        return commit(transaction, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", later)


def test_a_note_reads_back():
    found = writer_of(CommitMetadata(extra=format_writer("storage")))
    assert (found.who.host, found.who.pid, found.lock) == (socket.gethostname(), os.getpid(), "storage")
    assert writer_of(CommitMetadata(extra={WRITER: ELSEWHERE})).who == Holder(
        "another-host", "", 4711, "", "2026-01-01T00:00:00Z"
    )


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"host": 7}', '{"lock": 7}'])
def test_a_damaged_note_says_nothing(text):
    assert writer_of(CommitMetadata(extra={WRITER: text})) == (None, "")
    assert writer_of(CommitMetadata()) == writer_of(None) == (None, "")


def test_a_lost_conflict_names_both_writers(path, monkeypatch):
    table = hoodie.open_table(path)
    table.upsert(ROWS)
    others = []

    def another(transaction):
        others.append(hoodie.open_table(path).upsert(ROWS).instant)

    interrupted(monkeypatch, another, times=99)
    with pytest.raises(CommitConflictError) as caught:
        table.upsert(ROWS)
    mine = f"this process, pid {os.getpid()}, on {socket.gethostname()} since 2"
    assert f"written by {mine}" in str(caught.value)
    assert f"(it was written by {mine}" in str(caught.value)
    assert others[-1] in str(caught.value)


def test_a_writer_that_was_given_another_lock_is_refused(path, monkeypatch):
    first = hoodie.open_table(path, options={"hoodie.write.lock.provider": "filesystem"})
    refused = []

    def second(transaction):
        with pytest.raises(CommitConflictError) as caught:
            hoodie.open_table(path).upsert(ROWS)
        refused.append(str(caught.value))

    interrupted(monkeypatch, second)
    assert first.upsert(ROWS).inserted == 1
    assert f"is being written by this process, pid {os.getpid()}, on {socket.gethostname()}" in refused[0]
    assert "another lock (filesystem) than this process (the lock file of this machine)" in refused[0]
    assert hoodie.open_table(path).upsert(ROWS).updated == 1  # after the first one is done


def test_a_writer_with_the_same_lock_is_not(path, monkeypatch):
    results = []
    more = pa.table({"id": ["b"], "part": ["q"], "ts": [1]})
    interrupted(monkeypatch, lambda _: results.append(hoodie.open_table(path).upsert(more)))
    hoodie.open_table(path).upsert(ROWS)
    assert results[0].inserted == 1
    assert hoodie.open_table(path).scan().to_arrow().num_rows == 2
