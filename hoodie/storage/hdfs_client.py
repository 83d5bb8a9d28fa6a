"""What is said of HDFS that is not about files: connections, the default file system, and errors in the builtins' words."""

from __future__ import annotations

import errno
import os
import posixpath
import re
import threading
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from hoodie.errors import OptionError

if TYPE_CHECKING:
    from hdfs_native import Client

OPTION_PREFIXES = ("dfs.", "fs.", "hadoop.", "ipc.")
DEFAULT_FS = "fs.defaultFS"
"""Hadoop's setting that says where `hdfs:///path` is."""
_JAVA_ERROR = re.compile(r'RPCError\("([\w.$]+)", "(.*)', re.DOTALL)

_clients: dict[Hashable, Client] = {}
_clients_mutex = threading.Lock()


def connected(authority: str, settings: Mapping[str, str]) -> Client:
    """One connection for each cluster and settings in a process; a forked one makes its own."""
    key = os.getpid(), authority, frozenset(settings.items())
    found = _clients.get(key)
    if found is None:
        try:
            from hdfs_native import Client  # noqa: PLC0415 - only who opens such a table needs the package
        except ImportError as exc:
            raise OptionError(
                f"tables in hdfs://{authority} need the package hdfs-native: pip install 'hoodie[hdfs]'"
            ) from exc
        with _clients_mutex:
            found = _clients.get(key)
            if found is None:
                try:
                    found = Client(f"hdfs://{authority}", dict(settings))
                except (RuntimeError, ValueError, OSError) as exc:
                    raise OptionError(
                        f"hdfs://{authority} cannot be opened: {first_line(str(exc))}; give host:port of the NameNode, or name a "
                        "nameservice of the configuration in HADOOP_CONF_DIR or of options dfs.nameservices, dfs.ha.namenodes.*"
                    ) from exc
                _clients[key] = found
    return found


def default_authority(uri: str, said: str | None) -> str:
    """`host:port` or nameservice of the default file system, for a URI that names none.

    Args:
        uri: shown in errors.
        said: what an option or a session says that the default is; None: the files of the configuration are asked.

    Raises:
        OptionError: nobody says it, or it is no HDFS.
    """
    where = f"option {DEFAULT_FS}"
    if said is None:
        said, where = _configured_default()
    if said is None:
        raise OptionError(
            f"{uri!r} names no host, and {where}: write hdfs://host:port/path, or set {DEFAULT_FS} in the storage options, in "
            f"core-site.xml of HADOOP_CONF_DIR, or as spark.hadoop.{DEFAULT_FS} of the Spark session"
        )
    scheme, _, rest = said.strip().partition("://")
    authority, _, path = rest.partition("/")
    if scheme.lower() != "hdfs" or not authority or path or re.search(r"[@${}\s]", authority):
        shown = f"{scheme}://…{rest.rpartition('@')[2]}" if "@" in rest else said
        raise OptionError(
            f"{uri!r} names no host, and {where} says {shown!r}, which is not hdfs://host:port or hdfs://nameservice: "
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
    said = [each.findtext("value") for each in properties if (each.findtext("name") or "").strip() == DEFAULT_FS]
    return (said[-1], path) if said else (None, f"{path} does not say {DEFAULT_FS}")


class HdfsErrors:
    """Errors about files of one cluster."""

    def __init__(self, authority: str) -> None:
        self._authority = authority

    def shown(self, absolute: str) -> str:
        return f"hdfs://{self._authority}{absolute}"

    def error(self, number: int, absolute: str, why: str | None = None) -> OSError:
        return OSError(number, os.strerror(number) if why is None else why, self.shown(absolute))

    @contextmanager
    def translated(self, absolute: str) -> Iterator[None]:
        """hdfs-native's errors as the builtins, with one line of what the NameNode said, not its stack."""
        try:
            yield
        except OSError as exc:
            if exc.errno is not None:
                raise
            text = first_line(str(exc))
            if isinstance(exc, FileExistsError):
                raise self.error(errno.EEXIST, absolute) from exc
            if isinstance(exc, FileNotFoundError):
                is_folder = text.startswith("Path is not a file")
                raise self.error(errno.EISDIR if is_folder else errno.ENOENT, absolute) from exc
            if isinstance(exc, PermissionError):
                raise self.error(errno.EACCES, absolute, text) from exc
            raise self.error(errno.EIO, absolute, f"HDFS cannot be reached: {text}") from exc
        except (RuntimeError, ValueError) as exc:
            if type(exc) not in (RuntimeError, ValueError):
                raise
            number, why = meaning(str(exc))
            raise self.error(number, absolute, why) from exc


def first_line(text: str) -> str:
    return re.split(r"\n|\\n", text, maxsplit=1)[0].strip()


def meaning(text: str) -> tuple[int, str | None]:
    """Which error of the operating system a failed call is like, and what to say where that is not enough."""
    match = _JAVA_ERROR.match(text)
    kind, said = (match[1].rpartition(".")[2], first_line(match[2])) if match else ("", first_line(text))
    if kind in ("AccessControlException", "ParentNotDirectoryException") and "not a directory" in said:
        return errno.ENOTDIR, None
    if kind == "AccessControlException":
        return errno.EACCES, said
    if "QuotaExceeded" in kind:
        return errno.EDQUOT, f"the quota of HDFS is used up: {said}"
    if kind == "SafeModeException" or "safe mode" in said:
        return errno.EROFS, f"the NameNode is in safe mode and takes no writes: {said}"
    if "could only be written to" in said or "No space" in said or "All nodes failed" in said:
        return errno.ENOSPC, f"no DataNode takes the bytes, because they are full or out of reach: {said}"
    if kind in ("InvalidPathException",):
        return errno.EINVAL, f"HDFS has no such names (a ':' is not possible): {said}"
    return errno.EIO, f"HDFS refused the call: {kind}: {said}" if kind else f"HDFS failed: {said}"
