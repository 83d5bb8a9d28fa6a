"""Paths of a store: `store-N.json`, and for each bucket a folder with `meta/`, `wal/` and `data/`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hoodie.model.names import name_of

_STORE = re.compile(r"store-(\d{8})\.json")
_NUMBERED = re.compile(r"(\d{12})(\.json|\.wal)?")


def store_file(number: int) -> str:
    return f"store-{number:08d}.json"


def store_number(name: str) -> int | None:
    match = _STORE.fullmatch(name)
    return int(match[1]) if match else None


def bucket_folder(layout: int, bucket: int) -> str:
    """The folder of a bucket; `layout` is the number of the store file that has so many of them."""
    return f"buckets-{layout:08d}/{bucket:05d}"


def meta_file(number: int) -> str:
    return f"meta/{number:012d}.json"


def wal_file(number: int) -> str:
    return f"wal/{number:012d}.wal"


def data_file(name: str) -> str:
    return f"data/{name}"


def numbers(names: Iterable[str]) -> list[int]:
    """The numbers of numbered files, sorted; other files are none of ours."""
    matches = (_NUMBERED.fullmatch(name_of(name)) for name in names)
    return sorted(int(each[1]) for each in matches if each)
