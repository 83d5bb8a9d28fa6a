"""Who reads may come before who writes, and makes no store with other buckets than that one would."""

import pytest

import hoodie.kv
from hoodie.errors import TableNotFoundError


def test_a_store_that_is_not_there_is_made_only_where_that_is_meant(tmp_path):
    uri = str(tmp_path / "s")
    with pytest.raises(TableNotFoundError, match="there is no key-value store at"):
        hoodie.kv.open_store(uri, create=False)
    assert not (tmp_path / "s").exists()
    hoodie.kv.open_store(uri, buckets=3)
    assert hoodie.kv.open_store(uri, create=False).buckets == 3
