"""Tables of other formats at a path or above it: what would be damaged by a table of ours, or was taken for one."""

from __future__ import annotations

from pathlib import Path

from hoodie.storage.base import Storage
from hoodie.storage.local import LocalStorage

_DELTA, _ICEBERG, _HUDI = "a Delta Lake table", "an Apache Iceberg table", "an Apache Hudi table"


def other_format(storage: Storage) -> str | None:
    """What lies at the root of a storage that is no table of Apache Hudi: a Delta Lake or Apache Iceberg table, or None."""
    if _there(storage, "_delta_log"):
        return _DELTA
    try:
        metadata = storage.names("metadata")
    except OSError:
        return None
    return _ICEBERG if any(n == "version-hint.text" or n.endswith(".metadata.json") for n in metadata) else None


def enclosing_table(storage: Storage) -> tuple[str, str] | None:
    """The nearest folder above a storage on local disk that is a table of any format, and what it is."""
    if not isinstance(storage, LocalStorage):
        return None
    for folder in Path(storage.uri).parents:
        above = LocalStorage(folder)
        format_name = _HUDI if _there(above, ".hoodie/hoodie.properties") else other_format(above)
        if format_name:
            return str(folder), format_name
    return None


def _there(storage: Storage, path: str) -> bool:
    try:
        return storage.exists(path)
    except OSError:  # a folder above that we may not look into
        return False
