"""Connections to HDFS, and which cluster is the default one."""

from __future__ import annotations

import os
import posixpath
import re
import threading
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from hoodie.errors import OptionError
from hoodie.storage.hdfs_errors import first_line

if TYPE_CHECKING:
    from hdfs_native import Client

OPTION_PREFIXES = ("dfs.", "fs.", "hadoop.", "ipc.")
DEFAULT_FS = "fs.defaultFS"
"""Hadoop's setting that says where `hdfs:///path` is."""

_clients: dict[Hashable, Client] = {}
_clients_mutex = threading.Lock()


def connected(authority: str, settings: Mapping[str, str]) -> Client:
    """One connection for each cluster and settings in a process; a forked one makes its own."""
    key = os.getpid(), authority, frozenset(settings.items())
    result = _clients.get(key)
    if result is None:
        try:
            from hdfs_native import Client  # noqa: PLC0415 - only who opens such a table needs the package
        except ImportError as exc:
            raise OptionError(
                f"tables in hdfs://{authority} need the package hdfs-native: pip install 'hoodie[hdfs]'"
            ) from exc
        with _clients_mutex:
            result = _clients.get(key)
            if result is None:
                try:
                    result = Client(f"hdfs://{authority}", dict(settings))
                except (RuntimeError, ValueError, OSError) as exc:
                    raise OptionError(
                        f"hdfs://{authority} cannot be opened: {first_line(str(exc))}; give host:port of the NameNode, or name a "
                        "nameservice of the configuration in HADOOP_CONF_DIR or of options dfs.nameservices, dfs.ha.namenodes.*"
                    ) from exc
                _clients[key] = result
    return result


def default_authority(uri: str, default_fs: str | None) -> str:
    """`host:port` or nameservice of the default file system, for a URI that names none.

    Args:
        uri: shown in errors.
        said: what an option or a session says that the default is; None: the files of the configuration are asked.

    Raises:
        OptionError: nobody says it, or it is no HDFS.
    """
    where = f"option {DEFAULT_FS}"
    if default_fs is None:
        default_fs, where = _configured_default()
    if default_fs is None:
        raise OptionError(
            f"{uri!r} names no host, and {where}: write hdfs://host:port/path, or set {DEFAULT_FS} in the storage options, in "
            f"core-site.xml of HADOOP_CONF_DIR, or as spark.hadoop.{DEFAULT_FS} of the Spark session"
        )
    scheme, _, rest = default_fs.strip().partition("://")
    authority, _, path = rest.partition("/")
    if scheme.lower() != "hdfs" or not authority or path or re.search(r"[@${}\s]", authority):
        without_user = f"{scheme}://…{rest.rpartition('@')[2]}" if "@" in rest else default_fs
        raise OptionError(
            f"{uri!r} names no host, and {where} says {without_user!r}, which is not hdfs://host:port or hdfs://nameservice: "
            f"write hdfs://host:port/path, or set {DEFAULT_FS} in the storage options or as spark.hadoop.{DEFAULT_FS}"
        )
    return authority


def _configured_default() -> tuple[str | None, str]:
    """What core-site.xml says, if it says it, and where that was looked for; the folders are those of hdfs-native."""
    folder = os.environ.get("HADOOP_CONF_DIR")
    if not folder and (home := os.environ.get("HADOOP_HOME")):
        folder = posixpath.join(home, "etc", "hadoop")
    if not folder:
        return None, "HADOOP_CONF_DIR is not set"
    path = posixpath.join(folder, "core-site.xml")
    try:
        properties = ElementTree.parse(path).getroot().iter("property")
    except FileNotFoundError:
        return None, f"there is no {path}"
    except (OSError, ElementTree.ParseError) as exc:
        raise OptionError(f"{path} cannot be read: {exc}; it is to say {DEFAULT_FS}") from exc
    # Of several the last one counts, as in Hadoop.
    values = [each.findtext("value") for each in properties if (each.findtext("name") or "").strip() == DEFAULT_FS]
    return (values[-1], path) if values else (None, f"{path} does not say {DEFAULT_FS}")
