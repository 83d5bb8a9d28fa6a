"""A delete finds a key to be absent while another writer inserts it: in the order of their instants the row is gone."""

import pytest

from hoodie.txn.transaction import Transaction
from tests.memory_tables import FakeClock, Input, batch, create, keys, new_storage, opened

KINDS = {
    "copy-on-write": ("COPY_ON_WRITE", {"hoodie.parquet.small.file.limit": "0"}),
    "merge-on-read": ("MERGE_ON_READ", {"hoodie.parquet.small.file.limit": "0"}),
    "buckets": ("MERGE_ON_READ", {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "4"}),
}
STORED, NEW = Input("stored", "a", 1, 1), Input("new", "a", 1, 1)


def prepared(kind):
    table_type, options = KINDS[kind]
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type=table_type, more={k: v for k, v in options.items() if "index" in k})
    opened(storage, clock, options).upsert(batch([STORED]))
    return storage, clock, options


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["start", "commit"])
def test_a_key_that_is_inserted_under_an_earlier_instant_is_deleted(kind, method, monkeypatch):
    """The insert has its instant before the delete looks for the keys, and is committed before the delete's instant or commit."""
    storage, clock, options = prepared(kind)
    plain_commit, plain = Transaction.commit, getattr(Transaction, method)
    pending = []

    def wait_with_the_commit(transaction, *args, **kwargs):
        pending.append(lambda: plain_commit(transaction, *args, **kwargs))
        monkeypatch.setattr(Transaction, "commit", plain_commit)
        monkeypatch.setattr(Transaction, method, staticmethod(meanwhile) if method == "start" else meanwhile)
        opened(storage, clock, options).delete(keys([NEW, STORED]))

    def meanwhile(*args, **kwargs):
        monkeypatch.setattr(Transaction, method, plain)
        pending.pop()()
        return plain(*args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", wait_with_the_commit)
    opened(storage, clock, options).upsert(batch([NEW]))
    assert not pending
    assert opened(storage, clock).scan().to_arrow().num_rows == 0


@pytest.mark.parametrize("kind", KINDS)
def test_of_an_insert_that_is_committed_after_a_later_delete_the_instant_is_later_too(kind, monkeypatch):
    """Else the timeline would say that the row was inserted, then deleted; and it is there."""
    storage, clock, options = prepared(kind)
    commit = Transaction.commit

    def after_the_delete(transaction, *args, **kwargs):
        monkeypatch.setattr(Transaction, "commit", commit)
        deleted.append(opened(storage, clock, options).delete(keys([NEW])).instant)
        return commit(transaction, *args, **kwargs)

    deleted = []
    monkeypatch.setattr(Transaction, "commit", after_the_delete)
    inserted = opened(storage, clock, options).upsert(batch([NEW])).instant
    assert inserted > deleted[0]
    assert sorted(opened(storage, clock).scan().to_arrow()["id"].to_pylist()) == ["new", "stored"]


def test_deletes_of_absent_keys_do_not_stand_in_each_other_s_way(monkeypatch):
    storage, clock, options = prepared("merge-on-read")
    commit, tries = Transaction.commit, []

    def beside_another(transaction, *args, **kwargs):
        tries.append(transaction.instant)
        if len(tries) == 1:
            opened(storage, clock, options).delete(keys([NEW]))
        return commit(transaction, *args, **kwargs)

    monkeypatch.setattr(Transaction, "commit", beside_another)
    opened(storage, clock, options).delete(keys([NEW]))
    assert len(tries) == 2
