"""Which way of publishing a storage gets, by what it can do: where a new one is chosen.

`tests/contract/test_publisher.py` says what each has to keep.
"""

from __future__ import annotations

from typing import cast

from hoodie.errors import UnsupportedTableError
from hoodie.publish.base import Publisher
from hoodie.publish.copying import CopyingPublisher
from hoodie.publish.renaming import RenamingPublisher
from hoodie.storage.base import CopyingStorage, RenamingStorage, Storage


def publisher_of(storage: Storage, *, leased: bool = False) -> Publisher:
    """The publisher for tables in this storage; `leased`: their lock can end while its holder lives.

    Raises:
        UnsupportedTableError: there is none.
    """
    innermost = storage.lock_root  # what wraps it passes on more than it can do
    if (
        type(innermost) not in _WAYS
    ):  # each staged file asks, and to look whether all methods are there takes as long as making it
        _WAYS[type(innermost)] = next(
            (kind for kind in (RenamingStorage, CopyingStorage) if isinstance(innermost, kind)), None
        )
    way = _WAYS[type(innermost)]
    if way is RenamingStorage:
        return RenamingPublisher(cast(RenamingStorage, storage), leased=leased)
    if way is CopyingStorage:
        return CopyingPublisher(cast(CopyingStorage, storage))
    raise UnsupportedTableError(
        f"files cannot be published in {storage.uri}: it can neither rename folders nor replace a file on condition"
    )


_WAYS: dict[type, type | None] = {}
"""By the class of a storage: what it can do."""
