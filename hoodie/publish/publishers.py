"""Which way of publishing a storage gets, by what it can do: where a new one is chosen.

`tests/contract/test_publisher.py` says what each has to keep.
"""

from __future__ import annotations

from hoodie.errors import UnsupportedTableError
from hoodie.publish.base import Publisher
from hoodie.publish.renaming import RenamingPublisher
from hoodie.storage.base import RenamingStorage, Storage


def publisher_of(storage: Storage) -> Publisher:
    """The publisher for tables in this storage.

    Raises:
        UnsupportedTableError: there is none.
    """
    if isinstance(storage, RenamingStorage):
        return RenamingPublisher(storage)
    raise UnsupportedTableError(
        f"files cannot be published in {storage.uri}: writing is supported on a local disk and in memory://"
    )
