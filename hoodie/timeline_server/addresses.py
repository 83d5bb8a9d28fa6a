"""Whether the table that a client asks for is the one that is served, and how the client calls it."""

from __future__ import annotations

import os
from urllib.parse import unquote, urlsplit

from hoodie.format.view_json import Address
from hoodie.storage.base import Storage
from hoodie.storage.uri import scheme_of

_SAME = {"s3a": "s3", "s3n": "s3", "abfss": "az", "abfs": "az", "wasb": "az", "wasbs": "az"}
"""Schemes of Hadoop -> ours."""


def address_of(path: str, storage: Storage) -> Address | None:
    """The address by which the client gets paths; None where it means another table."""
    text = path.rstrip("/")
    scheme = scheme_of(text)
    local = storage.can.local_root
    if local is not None:
        asked = text if scheme is None else text.removeprefix("file:") if scheme == "file" else None
        if asked is None or not asked.startswith("/"):
            return None
        plain = "/" + asked.lstrip("/")
        if not _is_same_folder(plain, local) and not _is_same_folder(unquote(plain), local):
            return None
        return Address(f"file:{plain}")
    served = storage.uri.rstrip("/")
    if scheme is None:  # as a job writes it that has the table's file system as its own
        parts = urlsplit(served)
        return Address(served) if text and parts.path == text else None
    return Address(text) if _ours(text) == _ours(served) else None


def _is_same_folder(path: str, served: str) -> bool:
    return os.path.realpath(path) == os.path.realpath(served)


def _ours(uri: str) -> str:
    scheme, colon, rest = uri.partition(":")
    return _SAME.get(scheme.lower(), scheme.lower()) + colon + rest
