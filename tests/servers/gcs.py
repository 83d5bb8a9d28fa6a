"""fake-gcs-server, an emulator of Google Cloud Storage in Go, which `make soak` builds, and a translator in front of it.

obstore speaks the XML interface of the service. Of that the emulator has little; above all it has no conditions. Its JSON interface
has them. So each request becomes one of the JSON interface, and the emulator decides who wins. What it lacks in both (uploads in
parts) the translator joins before it asks.
"""

from __future__ import annotations

import http.client
import json
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit
from xml.sax.saxutils import escape

import pytest

from tests.servers.ports import free_port
from tests.servers.started import wait_for

BINARY = Path(os.environ.get("HOODIE_GCS", "build/bin/fake-gcs-server"))
BUCKET = "lake"
_PASSED_ON = ("Range", "If-Match", "If-None-Match")


class GoogleServer(NamedTuple):
    endpoint: str

    @property
    def options(self) -> Mapping[str, str]:
        """How hoodie reaches it."""
        key = {
            "gcs_base_url": self.endpoint,
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        return {"google_service_account_key": json.dumps(key), "allow_http": "true"}

    def new_uri(self) -> str:
        """Of a folder that nobody else has."""
        return f"gs://{BUCKET}/tables/{secrets.token_hex(8)}"


@contextmanager
def google(folder: Path) -> Iterator[GoogleServer]:
    """A server of its own. The test is skipped where it is not built."""
    if not BINARY.exists():
        pytest.skip(f"not there: {BINARY}; `make soak` builds it where there is Go")
    port = free_port()
    folder.mkdir(parents=True)
    command = [str(BINARY.resolve()), "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for("fake-gcs-server", port, process, folder)
        _ask(port, "POST", "/storage/v1/b?project=p", json.dumps({"name": BUCKET}).encode())
        with _translator(port) as endpoint:
            yield GoogleServer(endpoint)
    finally:
        process.kill()
        process.wait()


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def said(self) -> Any:
        return json.loads(self.body)


def _ask(
    port: int, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request(method, path, body, dict(headers or {}))
        answer = connection.getresponse()
        return Answer(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


@contextmanager
def _translator(port: int) -> Iterator[str]:
    parts: dict[str, dict[int, bytes]] = {}

    class Handler(_Translator):
        emulator = port
        uploads = parts

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Translator(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    emulator: int
    uploads: dict[str, dict[int, bytes]]

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _asked(self) -> tuple[str, str, dict[str, str], bytes]:
        url = urlsplit(self.path)
        bucket, _, key = url.path.lstrip("/").partition("/")
        query = {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()}
        return bucket, unquote(key), query, self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _tell(self, answer: Answer) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    def _object(self, bucket: str, key: str) -> str:
        return f"/storage/v1/b/{bucket}/o/{quote(key, safe='')}"

    def _put(self, bucket: str, key: str, data: bytes) -> Answer:
        asked = {"uploadType": "media", "name": key}
        condition = self.headers.get("x-goog-if-generation-match")
        if condition is not None:
            asked["ifGenerationMatch"] = condition
        type_ = {"Content-Type": self.headers.get("Content-Type") or "application/octet-stream"}
        answer = _ask(self.emulator, "POST", f"/upload/storage/v1/b/{bucket}/o?{urlencode(asked)}", data, type_)
        if answer.status != 200:
            return Answer(answer.status, {}, answer.body)
        return Answer(200, _described(answer.said), b"")

    def do_PUT(self) -> None:
        bucket, key, query, data = self._asked()
        if "uploadId" in query:
            self.uploads[query["uploadId"]][int(query["partNumber"])] = data
            self._tell(Answer(200, {"ETag": f'"{query["partNumber"]}"'}, b""))
            return
        source = self.headers.get("x-goog-copy-source")
        if source is not None:
            from_bucket, _, from_key = unquote(source).lstrip("/").partition("/")
            found = _ask(self.emulator, "GET", f"{self._object(from_bucket, from_key)}?alt=media")
            if found.status != 200:
                self._tell(Answer(found.status, {}, found.body))
                return
            data = found.body
        self._tell(self._put(bucket, key, data))

    def do_POST(self) -> None:
        bucket, key, query, _ = self._asked()
        if "uploads" in query:
            number = secrets.token_hex(8)
            self.uploads[number] = {}
            said = f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
            self._tell(Answer(200, {}, f"{said}<UploadId>{number}</UploadId></InitiateMultipartUploadResult>".encode()))
            return
        found = self.uploads.pop(query["uploadId"])
        answer = self._put(bucket, key, b"".join(found[number] for number in sorted(found)))
        if answer.status != 200:
            self._tell(answer)
            return
        said = f"<CompleteMultipartUploadResult><ETag>{escape(answer.headers['ETag'])}</ETag></CompleteMultipartUploadResult>"
        self._tell(answer._replace(body=said.encode()))

    def do_DELETE(self) -> None:
        bucket, key, query, _ = self._asked()
        if "uploadId" in query:
            self.uploads.pop(query["uploadId"], None)
            self._tell(Answer(204, {}, b""))
            return
        answer = _ask(self.emulator, "DELETE", self._object(bucket, key))
        self._tell(Answer(204 if answer.status == 200 else answer.status, {}, b""))

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        bucket, key, query, _ = self._asked()
        if not key:
            self._tell(self._listed(bucket, query))
            return
        found = _ask(self.emulator, "GET", self._object(bucket, key))
        if found.status != 200:
            self._tell(Answer(found.status, {}, found.body))
            return
        described = _described(found.said)
        if self.command == "HEAD":
            self._tell(Answer(200, described | {"Content-Length": found.said["size"]}, b""))
            return
        # Of that very generation: another may come in between.
        media = f"{self._object(bucket, key)}?alt=media&generation={found.said['generation']}"
        asked = {name: self.headers[name] for name in _PASSED_ON if self.headers.get(name)}
        answer = _ask(self.emulator, "GET", media, headers=asked)
        if answer.status == 404:
            answer = _ask(self.emulator, "GET", media.partition("&")[0], headers=asked)
        ranged = {name: value for name, value in answer.headers.items() if name.lower() == "content-range"}
        self._tell(Answer(answer.status, described | ranged, answer.body))

    def _listed(self, bucket: str, query: Mapping[str, str]) -> Answer:
        named = {
            "prefix": "prefix",
            "delimiter": "delimiter",
            "max-keys": "maxResults",
            "continuation-token": "pageToken",
        }
        asked = {there: query[here] for here, there in named.items() if query.get(here)}
        if query.get("start-after"):
            asked["startOffset"] = query["start-after"]
        answer = _ask(self.emulator, "GET", f"/storage/v1/b/{bucket}/o?{urlencode(asked)}")
        if answer.status != 200:
            return Answer(answer.status, {}, answer.body)
        said = answer.said
        lines = ["<ListBucketResult>"]
        for item in said.get("items", ()):
            if item["name"] != query.get("start-after"):
                lines.append(
                    f"<Contents><Key>{escape(item['name'])}</Key><LastModified>{item['updated']}</LastModified>"
                    f"<ETag>{escape(_tag(item))}</ETag><Size>{item['size']}</Size></Contents>"
                )
        lines += [
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>" for each in said.get("prefixes", ())
        ]
        if said.get("nextPageToken"):
            lines.append(f"<NextContinuationToken>{escape(said['nextPageToken'])}</NextContinuationToken>")
        return Answer(200, {"Content-Type": "application/xml"}, "".join([*lines, "</ListBucketResult>"]).encode())


def _tag(item: Mapping[str, Any]) -> str:
    """As the service has it: another one for each generation."""
    return f'"{item["generation"]}"'


def _described(item: Mapping[str, Any]) -> dict[str, str]:
    updated = datetime.fromisoformat(item["updated"])
    return {
        "ETag": _tag(item),
        "Last-Modified": format_datetime(updated, usegmt=True),
        "x-goog-generation": item["generation"],
    }
