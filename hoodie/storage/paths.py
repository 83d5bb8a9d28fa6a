"""Which paths a storage accepts, and where it keeps unfinished files."""

from __future__ import annotations

import secrets

from hoodie.model.names import is_inside

SCRATCH_FOLDER = ".hoodie/.hoodie_py/tmp"
"""Unfinished files of `create_new` and `replace`. Hudi's readers do not look in there (observed); what a killed
process left may be deleted by age."""

_SHOWN_CHARACTERS = 200


def checked_path(path: str, *, under: str, may_be_root: bool = False) -> str:
    """The path itself, once it is certain that it stays below the root `under`.

    Accepts parts joined by single `/`, none of them empty, `.` or `..`, without NUL. The root is written ``""`` and
    accepted only with `may_be_root`. Partition values end up here: this is what keeps `../..` inside the table.

    Raises:
        ValueError: anything else; the message shows the path.
    """
    if not is_inside(path, may_be_root=may_be_root):
        short = path if len(path) <= _SHOWN_CHARACTERS else path[:_SHOWN_CHARACTERS] + "..."
        raise ValueError(
            f"path {short!r} does not name a place below {under}: "
            "a relative path is needed, with no empty part, no '.', no '..' and no NUL in it"
        )
    return path


def checked_range(path: str, *, offset: int, length: int | None) -> None:
    """Raises ValueError when a byte range of `path` starts or runs backwards."""
    if offset < 0 or (length is not None and length < 0):
        raise ValueError(f"cannot read {path!r} from offset {offset} with length {length}: neither may be negative")


def temporary_name() -> str:
    """A file name nobody can guess; hidden, so that listings of partitions and of the timeline skip it."""
    return f".{secrets.token_hex(16)}.tmp"


def refuse_outside(path: str, within: str) -> None:
    """Raises ValueError when `path` does not lie below the folder `within`."""
    if not path.startswith(f"{within}/"):
        raise ValueError(f"{path!r} does not lie in the folder {within!r}")
