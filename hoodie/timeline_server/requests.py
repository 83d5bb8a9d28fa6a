"""HTTP requests to a served table -> answers: a WSGI application. It has the paths, parameters and JSON of Apache Hudi's server.

It answers whoever has the token, as a bearer's or as the password of basic authentication: Apache Hudi's client knows no token, but
takes a user and password in the name of the host. It speaks of one table, and writes nothing but markers of its instants.
"""

from __future__ import annotations

import base64
import hmac
import json
import logging
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from hoodie.errors import HoodieError
from hoodie.format.view_json import (
    Address,
    encode_base,
    encode_clustering,
    encode_compaction,
    encode_groups,
    encode_instant,
    encode_slice,
    encode_timeline,
)
from hoodie.model.files import BaseFile, FileGroup, FileSlice
from hoodie.model.instant import Instant
from hoodie.page.facts import gather
from hoodie.page.render import SAFE, page
from hoodie.storage.base import Storage
from hoodie.storage.uri import scheme_of
from hoodie.timeline_server.markers import MarkerFolders, marker_folder
from hoodie.timeline_server.queries import Questions
from hoodie.timeline_server.tables import NO_INSTANT, ServedTable, State

log = logging.getLogger("hoodie")

VIEW = "/v1/hoodie/view/"
MARKER = "/v1/hoodie/marker/"
FILES = "/v1/hoodie/python/files"
"""What Apache Hudi's server does not have: all files of several partitions in one answer."""
MAX_BODY_BYTES = 4 << 20
_JSON, _HTML, _TEXT = "application/json", "text/html; charset=utf-8", "text/plain; charset=utf-8"
_MOST_FIELDS = 64

StartResponse: TypeAlias = Callable[[str, list[tuple[str, str]]], object]
Params: TypeAlias = Mapping[str, str]


class _RefusedError(Exception):
    """A request that gets no answer."""

    def __init__(self, status: str, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(frozen=True)
class _Call:
    """One request, for the table as it is seen by it."""

    params: Params
    address: Address
    table: ServedTable
    state: State

    @property
    def questions(self) -> Questions:
        return self.state.questions

    def text(self, name: str) -> str:
        """Raises _RefusedError where the client does not say it."""
        try:
            return self.params[name]
        except KeyError:
            raise _RefusedError("400 Bad Request", f"the request has no parameter {name!r}") from None

    @property
    def completions(self) -> Mapping[Instant, str]:
        return self.table.completions(self.state)

    @property
    def partition(self) -> str:
        return self.params.get("partition", "")

    @property
    def times(self) -> list[str]:
        return [each for each in self.text("instants").split(",") if each] or [NO_INSTANT]

    def slices(self, slices: Iterable[FileSlice]) -> list[Any]:
        return [encode_slice(each, self.address) for each in slices]

    def bases(self, bases: Iterable[BaseFile]) -> list[Any]:
        return [encode_base(each, self.address) for each in bases]

    def groups(self, groups: Iterable[FileGroup]) -> list[Any]:
        return encode_groups(groups, self.questions.instants, self.address)


_Answer: TypeAlias = Callable[[_Call], object]


@dataclass(frozen=True)
class _Route:
    answer: _Answer
    checks: bool = True
    """Whether the client has to stand where the answer does."""
    fresh: bool = False
    """What is asked may change while what a client tells of its timeline stays the same."""


def _all_slices_before(call: _Call) -> object:
    ask, time = call.questions, call.text("maxinstant")
    slices_of = {path: ask.before_or_on(path, time, with_compactions=True) for path in ask.partitions()}
    return {path: call.slices(each) for path, each in slices_of.items()}


def _all_bases_before(call: _Call) -> object:
    ask, time = call.questions, call.text("maxinstant")
    return {path: call.bases(ask.bases_before_or_on(path, time)) for path in ask.partitions()}


def _before_or_on(call: _Call) -> object:
    with_compactions = call.text("includependingcompaction").lower() == "true"
    return call.slices(
        call.questions.before_or_on(call.partition, call.text("maxinstant"), with_compactions=with_compactions)
    )


def _merged(call: _Call) -> object:
    return call.slices(call.questions.merged_before_or_on(call.partition, call.text("maxinstant")))


def _latest(call: _Call) -> object:
    return call.slices(call.questions.latest(call.partition))


def _groups(call: _Call) -> object:
    return call.groups(call.questions.groups(call.partition))


def _last_instant(call: _Call) -> object:
    return [encode_instant(each, call.completions) for each in call.state.reference_instants[-1:]]


GETS: Mapping[str, _Route] = {
    "slices/partition/latest": _Route(_latest),
    "slices/partition/latest/stateless": _Route(_latest),
    "slices/partition/latest/inflight": _Route(
        lambda call: call.slices(call.table.latest_with_inflight(call.state, call.partition)), fresh=True
    ),
    "slices/file/latest": _Route(
        lambda call: call.slices(call.questions.latest_of(call.partition, call.text("fileid")))
    ),
    "slices/uncompacted/partition/latest": _Route(
        lambda call: call.slices(call.questions.latest_uncompacted(call.partition))
    ),
    "slices/all": _Route(lambda call: call.slices(call.questions.all(call.partition))),
    "slices/merged/beforeoron/latest": _Route(_merged),
    "slices/merged/beforeoron/inflight/latest": _Route(_merged),
    "slice/merged/beforeoron/latest": _Route(
        lambda call: call.slices(call.questions.merged_of(call.partition, call.text("maxinstant"), call.text("fileid")))
    ),
    "slices/range/latest": _Route(lambda call: call.slices(call.questions.in_range(call.times))),
    "slices/beforeoron/latest": _Route(_before_or_on),
    "slices/all/beforeoron/latest": _Route(_all_slices_before),
    "compactions/pending": _Route(lambda call: [encode_compaction(*each) for each in call.questions.compactions()]),
    "logcompactions/pending": _Route(
        lambda call: [encode_compaction(*each) for each in call.questions.log_compactions()], fresh=True
    ),
    "datafiles/latest/partition": _Route(lambda call: call.bases(call.questions.latest_bases(call.partition))),
    "datafile/latest/partition": _Route(
        lambda call: call.bases(call.questions.latest_base_of(call.partition, call.text("fileid")))
    ),
    "datafiles/all": _Route(lambda call: call.bases(call.questions.all_bases(call.partition))),
    "datafiles/all/latest": _Route(lambda call: call.bases(call.questions.latest_bases_everywhere())),
    "datafile/on/latest": _Route(
        lambda call: call.bases(call.questions.base_on(call.partition, call.text("instant"), call.text("fileid"))[:1])
    ),
    "datafiles/range/latest": _Route(lambda call: call.bases(call.questions.bases_in_range(call.times))),
    "datafiles/beforeoron/latest": _Route(
        lambda call: call.bases(call.questions.bases_before_or_on(call.partition, call.text("maxinstant")))
    ),
    "basefiles/all/beforeoron": _Route(_all_bases_before),
    "filegroups/all/partition": _Route(_groups),
    "filegroups/all/partition/stateless": _Route(_groups),
    "filegroups/replaced/beforeoron": _Route(
        lambda call: call.groups(call.questions.replaced(call.partition, until=call.params.get("maxinstant", "")))
    ),
    "filegroups/replaced/before": _Route(
        lambda call: call.groups(call.questions.replaced(call.partition, before=call.params.get("maxinstant", "")))
    ),
    "filegroups/replaced/afteroron": _Route(
        lambda call: call.groups(call.questions.replaced(call.partition, since=call.params.get("mininstant", "")))
    ),
    "filegroups/replaced/partition": _Route(lambda call: call.groups(call.questions.replaced(call.partition))),
    "clustering/pending": _Route(
        lambda call: [
            encode_clustering(group, instant, call.state.timeline.layout)
            for group, instant in call.questions.clusterings()
        ],
        fresh=True,
    ),
    "timeline/instant/last": _Route(_last_instant, checks=False, fresh=True),
    "timeline/instants/last": _Route(_last_instant, checks=False, fresh=True),
    "timeline/instants/all": _Route(
        lambda call: encode_timeline(call.state.reference_instants, call.completions), checks=False, fresh=True
    ),
}
"""Below `VIEW`, without the slash at the end that some have."""


class Requests:
    """The application. Thread-safe."""

    def __init__(self, table: ServedTable, token: str) -> None:
        """`token`: empty where none is needed."""
        self._table = table
        self._token = token
        self._markers = MarkerFolders(table.context.storage)

    def __call__(self, environ: Mapping[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        headers = [("Cache-Control", "no-store")]
        kind = _JSON
        try:
            if environ.get("REQUEST_METHOD", "") == "GET" and environ.get("PATH_INFO", "") in ("", "/"):
                self._require_token(environ)
                kind = _HTML
                headers.append(("Content-Security-Policy", SAFE))
                body = self._page()
            else:
                body = self._answered(environ)
            status = "200 OK"
        except _RefusedError as exc:
            status, body = exc.status, str(exc).encode()
            if status.startswith("401"):
                headers.append(("WWW-Authenticate", 'Basic realm="hoodie"'))
        except (HoodieError, OSError, ValueError) as exc:
            # The client asks the storage itself then, and finds out what is wrong with the table.
            log.warning("the timeline server of table %s has no answer: %s", self._table.uri, exc)
            status, body = "500 Internal Server Error", str(exc).encode("utf-8", "replace")
        except Exception:
            log.exception("the timeline server of table %s has no answer", self._table.uri)
            status, body = "500 Internal Server Error", b"the server has no answer; its log says why"
        if status != "200 OK":
            kind = _TEXT
        headers += [("Content-Type", kind), ("Content-Length", str(len(body))), ("X-Content-Type-Options", "nosniff")]
        start_response(status, headers)
        return [body]

    def _require_token(self, environ: Mapping[str, Any]) -> None:
        if self._token and not has_token(environ.get("HTTP_AUTHORIZATION", ""), self._token):
            raise _RefusedError("401 Unauthorized", "the timeline server answers those who have its token")

    def _page(self) -> bytes:
        """The table for people, as it is now."""
        state = self._table.now()
        return self._table.answer(state, "page", lambda: page(gather(self._table.context)).encode(), keep=False)

    def _answered(self, environ: Mapping[str, Any]) -> bytes:
        self._require_token(environ)
        path = environ.get("PATH_INFO", "").rstrip("/")
        method = environ.get("REQUEST_METHOD", "")
        try:
            params = dict(
                parse_qsl(
                    environ.get("QUERY_STRING", ""),
                    keep_blank_values=True,
                    max_num_fields=_MOST_FIELDS,
                    errors="strict",
                )
            )
        except ValueError as exc:
            raise _RefusedError("400 Bad Request", f"the parameters cannot be read: {exc}") from None
        if method == "GET" and path.startswith(VIEW) and path[len(VIEW) :] in GETS:
            return self._view(path[len(VIEW) :], params)
        if method == "POST" and path == FILES:
            return self._files(params, _body(environ))
        if method == "POST" and path.startswith(VIEW):
            return self._posted(path[len(VIEW) :], params)
        if path.startswith(MARKER):
            return self._marker(method, path[len(MARKER) :], params)
        raise _RefusedError("404 Not Found", f"there is no {method} {path[:100]!r} here")

    def _view(self, name: str, params: Params) -> bytes:
        route = GETS[name]
        address = self._address(params)
        state = self._stands(params, checks=route.checks, fresh=route.fresh)
        call = _Call(params, address, self._table, state)
        answer_key = frozenset((k, v) for k, v in params.items() if k not in ("lastinstantts", "timelinehash"))
        return self._table.answer(state, (name, answer_key), lambda: _json(route.answer(call)), keep=not route.fresh)

    def _stands(self, params: Params, *, checks: bool = True, fresh: bool = False, or_before: bool = False) -> State:
        """The table as new as the client has it, or newer; a client that is behind is told so, unless `or_before`."""
        last, digest = params.get("lastinstantts", NO_INSTANT), params.get("timelinehash")
        checks = checks and params.get("refreshoff", "").lower() != "true"
        state = self._table.now() if fresh or not checks else self._table.at(last, digest)
        if or_before and digest is not None and self._table.has_passed(digest):
            return state
        if checks and digest is not None and not state.fits(last, digest):
            raise _RefusedError(
                "400 Bad Request",
                f"the last instant that the client knows is {last[:30]}, and the last one of the table is {state.last}: its "
                "timeline is not the same",
            )
        return state

    def _files(self, params: Params, body: bytes) -> bytes:
        """Names and sizes by partition. The partitions are in the body; of all there are, where it says null."""
        self._address(params)
        try:
            paths = json.loads(body)
        except ValueError:
            paths = 0
        if paths is not None and not (isinstance(paths, list) and all(isinstance(each, str) for each in paths)):
            raise _RefusedError("400 Bad Request", "the body is neither a list of partitions nor null")
        state = self._stands(params, or_before=True)

        def ask() -> bytes:
            if paths is None:
                all_files = self._table.all_files(state)
                partitions, by_folder = all_files.partitions, dict(all_files.files)
            else:
                partitions = tuple(paths)
                by_folder = dict(zip(paths, self._table.files(state, paths), strict=True))
            files = {
                folder: {info.name: info.size_bytes for info in infos if not info.is_folder}
                for folder, infos in by_folder.items()
            }
            return _json({"partitions": partitions, "files": files})

        question = (FILES, None if paths is None else tuple(paths))
        return self._table.answer(state, question, ask)

    def _posted(self, name: str, params: Params) -> bytes:
        self._address(params)
        if name == "refresh":
            self._table.forget()
        elif name == "loadallpartitions":
            self._table.now().questions.partitions()
        elif name == "loadpartitions":
            try:
                paths = json.loads(params.get("partitions", ""))
            except ValueError:
                paths = None
            if not isinstance(paths, list) or not all(isinstance(each, str) for each in paths):
                raise _RefusedError("400 Bad Request", "the parameter 'partitions' is not a list of partitions")
            self._table.now().view.list_all(paths)
        else:
            raise _RefusedError("404 Not Found", f"there is no POST {name[:100]!r} here")
        return b"true"

    def _marker(self, method: str, name: str, params: Params) -> bytes:
        path = params.get("markerdirpath", "")
        served = self._table.context.storage
        folder = next(
            (
                marker_path
                for prefix in _parents(path)
                if address_of(prefix, served) is not None and (marker_path := marker_folder(path[len(prefix) + 1 :]))
            ),
            None,
        )
        if folder is None:
            raise _RefusedError(
                "400 Bad Request", f"{path[:200]!r} is not a folder of markers of table {self._table.uri}"
            )
        act = (method, name)
        if act == ("GET", "all"):
            return _json(self._markers.all(folder))
        if act == ("GET", "create-and-merge"):
            return _json(self._markers.create_and_merge(folder))
        if act == ("GET", "append"):
            return _json(self._markers.append(folder))
        if act == ("GET", "dir/exists"):
            return _json(self._markers.exists(folder))
        if act == ("POST", "create"):
            return _json(self._markers.create(folder, params.get("markername", "")))
        if act == ("POST", "dir/delete"):
            return _json(self._markers.delete(folder))
        raise _RefusedError("404 Not Found", f"there is no {method} {name[:100]!r} of markers")

    def _address(self, params: Params) -> Address:
        path = params.get("basepath", "")
        address = address_of(path, self._table.context.storage)
        if address is None:
            raise _RefusedError("404 Not Found", f"table {self._table.uri} is served here, and not {path[:200]!r}")
        return address


def _parents(path: str) -> Iterable[str]:
    """The folder two levels above that of an instant's markers, which is the table's."""
    if path.count("/") >= 3:
        yield path.rsplit("/", 3)[0]


def has_token(authorization: str, token: str) -> bool:
    kind, _, credentials = authorization.partition(" ")
    if kind.lower() == "basic":
        try:
            credentials = base64.b64decode(credentials, validate=True).decode().partition(":")[2]
        except ValueError:
            return False
    elif kind.lower() != "bearer":
        return False
    return hmac.compare_digest(credentials.strip().encode(), token.encode())


def _body(environ: Mapping[str, Any]) -> bytes:
    data: bytes = environ["wsgi.input"].read(MAX_BODY_BYTES + 1)
    if len(data) > MAX_BODY_BYTES:
        raise _RefusedError("413 Content Too Large", f"the body is larger than {MAX_BODY_BYTES:,} bytes")
    return data


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")


# -- Whether the table that a client asks for is the one that is served, and how the client calls it.

_SAME = {"s3a": "s3", "s3n": "s3", "abfss": "az", "abfs": "az", "wasb": "az", "wasbs": "az"}
"""Schemes of Hadoop -> ours."""


def address_of(path: str, storage: Storage) -> Address | None:
    """The address by which the client gets paths; None where it means another table."""
    text = path.rstrip("/")
    scheme = scheme_of(text)
    local = storage.can.local_root
    if local is not None:
        address = text if scheme is None else text.removeprefix("file:") if scheme == "file" else None
        if address is None or not address.startswith("/"):
            return None
        plain = "/" + address.lstrip("/")
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
