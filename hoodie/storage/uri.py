"""From the path or URI that a user writes to the storage behind it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import hoodie.storage
from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.storage.base import Storage
from hoodie.storage.hdfs import HdfsStorage
from hoodie.storage.hdfs_client import DEFAULT_FS, OPTION_PREFIXES, default_authority
from hoodie.storage.local import LocalStorage
from hoodie.storage.memory import shared_memory_storage

if TYPE_CHECKING:
    import hoodie.storage.object_uri

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")  # two letters at least; `a:b` and `day:2024` are plain paths

OBJECT_STORES = {
    **dict.fromkeys(("s3", "s3a", "s3n"), "aws"),
    **dict.fromkeys(("gs", "gcs"), "google"),
    **dict.fromkeys(("az", "azure", "abfs", "abfss", "wasb", "wasbs", "adl"), "azure"),
}
"""By scheme: how the names of its options begin."""


def open_storage(uri: str | os.PathLike[str], options: Mapping[str, str] | None = None) -> Storage:
    """The storage rooted at a path, at a `file://`, `hdfs://` or object store's URI, or at a `memory://name` of this process.

    A path is made absolute, and a `~` at its beginning is the home folder.
    In a `file:` URI `%xx` is decoded, as `pathlib.Path.as_uri` writes it; plain paths are taken as they are.

    Raises:
        UnsupportedTableError: another scheme, or a file on another host.
        OptionError: nothing usable as a path, or `options`, of which these storages have none.
    """
    address: Any = uri  # of any type that a caller hands in
    text: Any = os.fspath(address) if isinstance(address, os.PathLike) else address
    if not isinstance(text, str) or not text.strip() or "\0" in text:
        raise OptionError(f"{text!r} is not a path: give the table's folder, a file:// URI or memory://name")
    try:
        os.fsencode(text)
    except UnicodeEncodeError as exc:
        raise OptionError(f"{text!r} is not a path: half of a surrogate pair stands alone in it") from exc
    scheme = scheme_of(text)
    if scheme not in (None, "file", "memory", "hdfs", *OBJECT_STORES):
        raise UnsupportedTableError(
            f"cannot open {_without_secrets(text)!r}: there is no storage for the scheme {scheme!r}; supported are plain paths, "
            "file:///path, memory://name, hdfs://host:port/path, s3://bucket/path, gs://bucket/path and az://container/path"
        )
    settings: Any = options
    if settings is not None and not isinstance(settings, Mapping):
        raise OptionError(f"storage_options={options!r} is a {type(options).__name__}: give a dict of texts")
    if scheme == "hdfs":
        return _open_hdfs_uri(text, options or {})
    if scheme in OBJECT_STORES:
        texts = {str(name): str(value) for name, value in (options or {}).items()}
        return hoodie.storage.object_uri.open_object_store(text, scheme, OBJECT_STORES[scheme], texts)
    if options:
        raise OptionError(
            f"storage options {', '.join(sorted(map(repr, options)))} given for {text!r}: "
            "local disk and memory take none, leave them out"
        )
    if scheme is None:
        return LocalStorage(os.path.expanduser(text))
    rest = text[len(scheme) + 1 :]
    return _open_file_uri(text, rest) if scheme == "file" else _open_memory_uri(text, rest)


def _without_secrets(uri: str) -> str:
    """As it may be shown: users with their passwords, and signatures behind a question mark, are left out."""
    scheme, _, rest = uri.partition("://")
    authority, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{authority.rpartition('@')[2]}{slash}{path}"


def scheme_of(uri: str) -> str | None:
    """In small letters; None: it is a plain path."""
    match = _SCHEME.match(uri)
    return match[1].lower() if match else None


def _open_file_uri(text: str, rest: str) -> Storage:
    """`rest` is what follows `file:`; one slash or three, as Hadoop and as RFC 8089 write it."""
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        path = slash + tail
    if host not in ("", "localhost"):
        raise UnsupportedTableError(
            f"cannot open {text!r}: its files are on host {host!r}, and only this machine's are within reach; "
            f"for a path here write file:///{host}{path}"
        )
    decoded = unquote(path)
    if not decoded or "\0" in decoded:
        raise OptionError(f"{text!r} has no path in it: write file:///path")
    return LocalStorage(decoded)


def _open_memory_uri(text: str, rest: str) -> Storage:
    name = rest.strip("/")
    if not rest.startswith("//") or not name:
        raise OptionError(f"{text!r} names no table: write memory://name")
    return shared_memory_storage(f"memory://{name}")


def _open_hdfs_uri(text: str, options: Mapping[str, str]) -> Storage:
    """`hdfs://host:port/path`, or the name of a nameservice in place of host and port, or neither: the default file system.

    No `%xx` is decoded, as in Hadoop.
    """
    authority, _, path = text.partition("://")[2].partition("/")
    if not path.strip("/"):
        raise OptionError(
            f"{text!r} names no folder of HDFS: write hdfs://host:port/path, hdfs://nameservice/path or hdfs:///path"
        )
    if "@" in authority:  # not shown: what stands before it may be a secret
        raise OptionError(f"an hdfs:// address takes no user: write hdfs://{authority.rpartition('@')[2]}/{path}")
    parts = path.strip("/").split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise OptionError(f"{text!r} is not a plain path: leave out '.', '..' and doubled slashes")
    if unknown := sorted(repr(key) for key in options if not str(key).startswith(OPTION_PREFIXES)):
        raise OptionError(
            f"storage options {', '.join(unknown)} given for {text!r}: HDFS takes Hadoop's, which begin with "
            f"{', '.join(OPTION_PREFIXES)}"
        )
    # The address has it from here on. In Spark the names of options are in small letters.
    settings = {key: value for key, value in options.items() if key.lower() != DEFAULT_FS.lower()}
    default_fs = next((options[key] for key in reversed([*options]) if key not in settings), None)
    return HdfsStorage(authority or default_authority(text, default_fs), path, settings)
