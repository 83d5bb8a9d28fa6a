"""The files of a table from a timeline server: hoodie's, or Apache Hudi's.

A request tells the timeline under which the answer will be read. A server that is behind syncs; one that cannot says so. A server
that is killed, slow, unreachable or of another mind costs time: after the retries the caller lists the partitions itself, and the
server is left alone for a while. With REMOTE_ONLY it is an error.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NoReturn, TypeVar

from hoodie.errors import HoodieError
from hoodie.format.view_json import decode_files
from hoodie.model.names import join
from hoodie.options.values import ViewStore
from hoodie.options.view import RemoteOptions
from hoodie.storage.base import FileInfo
from hoodie.storage.parallel import for_each
from hoodie.timeline.timeline import Timeline, completed_and_compactions, timeline_hash
from hoodie.view.listing import AllFiles, Choice, FileChoice, Listing
from hoodie.view.remote_client import NoAnswerError, RemoteClient, UnknownPathError

log = logging.getLogger("hoodie")

T = TypeVar("T")

_VIEW = "/v1/hoodie/view/"
_FILES = "/v1/hoodie/python/files"
"""Ours only: all files of several partitions in one answer."""
_FIRST_REST_S = 1.0
_MAX_REST_S = 60.0
"""A server that had no answer is asked again after so long; each time in a row it doubles."""
_AT_ONCE = 8


class RemoteFiles:
    """One table's files by its timeline server. Thread-safe. `now_s`: a clock that never goes back."""

    def __init__(
        self, client: RemoteClient, base_path: str, options: RemoteOptions, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._client = client
        self._base_path = base_path
        self._options = options
        self._now_s = now_s
        self._lock = Lock()
        self._has_files = True
        """Whether it answers `_FILES`; found out by the first request."""
        self._rests_until_s = 0.0
        self._rest_s = 0.0

    def under(self, timeline: Timeline, local: Callable[[], Listing]) -> Listing:
        """For a view under this timeline; `local` gives what is asked in place of the server."""
        return _RemoteListing(self, timeline, local)

    def forget(self) -> None:
        """Have the server list anew: files were moved without a word on the timeline. One that has no answer lists anew later."""
        try:
            self._client.post(_VIEW + "refresh/", {"basepath": self._base_path})
        except NoAnswerError as exc:
            self._failed(exc)
            # What it would say then is not known to be right.
            self._rest(_MAX_REST_S)

    def ask(self, question: Callable[[], T], local: Callable[[], T]) -> T:
        """The server's answer, or the local one."""
        if self._now_s() < self._rests_until_s:
            if self._options.is_only:
                self._refuse("it had no answer a moment ago")
            return local()
        try:
            answer = question()
        except NoAnswerError as exc:
            if self._options.is_only:
                self._refuse(str(exc), exc)
            self._failed(exc)
            return local()
        self._rest_s = 0.0
        return answer

    def files(self, timeline: Timeline, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        """Raises NoAnswerError."""
        params = self._params(timeline)
        if self._has_files:
            try:
                files_of = self._asked_files(params, list(partition_paths))
                return [_infos(path, _sizes(files_of.get(path))) for path in partition_paths]
            except UnknownPathError:
                self._has_files = False

        def of(path: str) -> list[FileInfo]:
            query = {**params, "partition": path}
            groups = [self._client.get(f"{_VIEW}filegroups/{kind}/partition/", query) for kind in ("all", "replaced")]
            try:
                return [FileInfo(*file, 0.0, False, None) for each in groups for file in decode_files(each)]
            except ValueError as exc:
                raise NoAnswerError(f"its answer makes no sense: {exc}") from exc

        return for_each(of, partition_paths, at_once=_AT_ONCE)

    def all_files(self, timeline: Timeline) -> AllFiles:
        """Raises NoAnswerError."""
        params = self._params(timeline)
        if self._has_files:
            try:
                answer = self._client.post(_FILES, params, b"null")
                partitions, files = _fields(answer)
                return AllFiles(tuple(partitions), {path: _infos(path, _sizes(each)) for path, each in files.items()})
            except UnknownPathError:
                self._has_files = False
        newest = timeline.latest_time
        if newest is None:
            raise NoAnswerError("it is not asked for the partitions of a table without instants")
        by_partition = self._client.get(f"{_VIEW}slices/all/beforeoron/latest/", {**params, "maxinstant": newest})
        if not isinstance(by_partition, Mapping):
            raise NoAnswerError(f"its answer makes no sense: a {type(by_partition).__name__} in place of an object")
        paths = sorted(by_partition)
        return AllFiles(tuple(paths), dict(zip(paths, self.files(timeline, paths), strict=True)))

    def _asked_files(self, params: Mapping[str, str], partition_paths: list[str]) -> Mapping[str, object]:
        return _fields(self._client.post(_FILES, params, json.dumps(partition_paths).encode()))[1]

    def _params(self, timeline: Timeline) -> dict[str, str]:
        instants = completed_and_compactions(timeline)
        params = {
            "basepath": self._base_path,
            "timelinehash": timeline_hash(instants, timeline.layout),
        }
        if instants:
            params["lastinstantts"] = instants[-1].time
        return params

    def _failed(self, error: NoAnswerError) -> None:
        rest_s = self._rest(min(max(self._rest_s * 2, _FIRST_REST_S), _MAX_REST_S))
        log.warning(
            "the timeline server %s of table %s gives no answer (%s): the table is listed, and the server asked again after %g s",
            self._client.address,
            self._base_path,
            error,
            rest_s,
        )

    def _rest(self, rest_s: float) -> float:
        with self._lock:
            self._rest_s = rest_s
            self._rests_until_s = self._now_s() + rest_s
        return rest_s

    def _refuse(self, why: str, cause: NoAnswerError | None = None) -> NoReturn:
        raise HoodieError(
            f"the timeline server {self._client.address} of table {self._base_path} gives no answer: {why}. Start it, say where it "
            f"is (hoodie.filesystem.view.remote.host and .port), or choose hoodie.filesystem.view.type={ViewStore.REMOTE_FIRST}, "
            "which lists the table then"
        ) from cause


@dataclass(frozen=True)
class _RemoteListing:
    """`Listing` for one view."""

    remote: RemoteFiles
    timeline: Timeline
    local: Callable[[], Listing]

    @property
    def uri(self) -> str:
        return self.local().uri

    def files(self, partition_paths: Sequence[str]) -> Sequence[Sequence[FileInfo]]:
        if not partition_paths:
            return []
        return self.remote.ask(
            lambda: self.remote.files(self.timeline, partition_paths), lambda: self.local().files(partition_paths)
        )

    def all_files(self) -> AllFiles:
        return self.remote.ask(lambda: self.remote.all_files(self.timeline), lambda: self.local().all_files())

    def chosen_files(self, choice: Choice) -> FileChoice:
        return self.remote.ask(
            lambda: FileChoice.of(choice, self.remote.all_files(self.timeline)),
            lambda: self.local().chosen_files(choice),
        )


def _fields(answer: object) -> tuple[list[str], Mapping[str, object]]:
    if isinstance(answer, Mapping):
        partitions, files = answer.get("partitions"), answer.get("files")
        if isinstance(files, Mapping) and isinstance(partitions, list):
            return [str(path) for path in partitions], files
    raise NoAnswerError("its answer makes no sense: there are no partitions and files in it")


def _sizes(files: object) -> Mapping[str, int]:
    if isinstance(files, Mapping) and all(type(size) is int and size >= 0 for size in files.values()):
        return files
    raise NoAnswerError("its answer makes no sense: a partition has no files with their sizes")


def _infos(partition_path: str, sizes: Mapping[str, int]) -> list[FileInfo]:
    """Their modification times and identities are not known: nobody who asks for slices needs them."""
    return [FileInfo(join(partition_path, name), size, 0.0, False, None) for name, size in sizes.items()]
