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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["start", "commit"])
def test_a_key_that_is_inserted_under_an_earlier_instant_is_deleted(kind, method, monkeypatch):
    """The insert has its instant before the delete looks for the keys, and is committed before the delete's instant or commit."""
    table_type, options = KINDS[kind]
    clock = FakeClock()
    storage = new_storage(clock)
    create(storage, table_type=table_type, more={k: v for k, v in options.items() if "index" in k})
    opened(storage, clock, options).upsert(batch([STORED]))
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
