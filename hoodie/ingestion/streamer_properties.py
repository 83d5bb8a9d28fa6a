"""A properties file of Apache Hudi's Streamer: `key=value` or `key value` a line, `#` for comments, `include=` for another file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hoodie.errors import HoodieError, OptionError
from hoodie.model.names import folder_of, name_of
from hoodie.storage.uri import open_storage

OLD_PREFIX, PREFIX = "hoodie.deltastreamer.", "hoodie.streamer."
_INCLUDE = "include"


def read_properties(
    path: str | None, overrides: Iterable[tuple[str, str]], reached_by: Mapping[str, str]
) -> Mapping[str, str]:
    """The properties of a file, and those of the command line over them. Older names of the Streamer's become the newest.

    Raises:
        OptionError: the file cannot be read, or includes itself.
    """
    of_file = dict(_pairs(path, reached_by, ())) if path else {}
    return {_newest(key): value for key, value in {**of_file, **dict(overrides)}.items()}


def read_text(path: str, reached_by: Mapping[str, str]) -> str:
    """A small file of any storage.

    Raises:
        OptionError: it cannot be read.
    """
    root = folder_of(path) or ("/" if path.startswith("/") else ".")
    try:
        return open_storage(root, reached_by or None).read(name_of(path)).decode("utf-8")
    except (HoodieError, OSError, UnicodeDecodeError) as exc:
        raise OptionError(f"file {path} cannot be read: {exc}") from exc


def _pairs(path: str, reached_by: Mapping[str, str], within: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if path in within:
        raise OptionError(f"properties file {path} includes itself")
    folder = folder_of(path)
    for line in read_text(path, reached_by).splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, _, value = line.partition("=") if "=" in line else line.partition(" ")
        key, value = key.strip(), value.strip()
        if key == _INCLUDE:
            relative = ":/" not in value and not value.startswith("/") and folder
            yield from _pairs(f"{folder}/{value}" if relative else value, reached_by, (*within, path))
        else:
            yield key, value


def _newest(key: str) -> str:
    """Time based keys have kept the older name as their own."""
    if key.startswith(OLD_PREFIX) and not key.startswith(f"{OLD_PREFIX}keygen."):
        return PREFIX + key.removeprefix(OLD_PREFIX)
    return key
