"""Others are told of a commit that stands; what fails there is a warning."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, NamedTuple

import pytest

import hoodie
from hoodie.errors import OptionError
from hoodie.options.parse import parse_write_options
from tests.servers.ports import free_port

CALLBACK, METRICS = "hoodie.write.commit.callback.", "hoodie.metrics."
KAFKA = "org.apache.hudi.utilities.callback.kafka.HoodieWriteCommitKafkaCallback"


class Request(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: str


class Listener:
    """An HTTP server that keeps what it is told."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status = 200
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                told.requests.append(
                    Request(self.command, self.path, {k.upper(): v for k, v in self.headers.items()}, body)
                )
                self.send_response(told.status)
                self.end_headers()

            do_PUT = do_POST

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def table(request: pytest.FixtureRequest) -> hoodie.HoodieTable:
    uri = f"memory://{request.node.name.partition('[')[0]}-{free_port()}/trips"
    return hoodie.create_table(uri, {"id": "int64"}, record_key="id")


def callback_to(port: int, **more: str) -> dict[str, str]:
    named = {f"{CALLBACK}http.{name}": text for name, text in more.items()}
    return {f"{CALLBACK}on": "true", f"{CALLBACK}http.url": f"http://127.0.0.1:{port}/hook?key=s3cr3t", **named}


def test_an_address_is_called_with_what_was_committed(listener: Listener, table: hoodie.HoodieTable) -> None:
    options = callback_to(listener.port, **{"api.key": "k", "custom.headers": "A: b;C:d"})
    done = table.upsert({"id": [1, 2]}, options=options)
    (request,) = listener.requests
    assert (request.method, request.path) == ("POST", "/hook?key=s3cr3t")
    assert (request.headers["HUDI-CALLBACK-KEY"], request.headers["A"], request.headers["C"]) == ("k", "b", "d")
    message = json.loads(request.body)
    assert message["commitTime"] == done.instant
    assert (message["tableName"], message["basePath"]) == ("trips", table.uri)
    assert [stat["numInserts"] for stat in message["hoodieWriteStat"]] == [2]
    assert message["commitActionType"] == "commit"


def test_a_write_without_a_commit_calls_nobody(listener: Listener, table: hoodie.HoodieTable) -> None:
    table.upsert({"id": [1]}, options=callback_to(listener.port))
    table.delete([7], options=callback_to(listener.port))
    table.upsert({"id": []}, options=callback_to(listener.port))
    assert len(listener.requests) <= 2  # a delete that finds nothing may be a commit


@pytest.mark.parametrize("answers", [True, False])
def test_a_failure_is_a_warning_that_shows_no_address(
    listener: Listener, table: hoodie.HoodieTable, caplog: pytest.LogCaptureFixture, answers: bool
) -> None:
    listener.status = 500
    port = listener.port if answers else free_port()
    done = table.upsert({"id": [1]}, options=callback_to(port))
    assert done.instant is not None
    (said,) = [r.getMessage() for r in caplog.records if "the commit stands" in r.getMessage()]
    assert said.startswith("the commit stands, but the callback after it failed: 127.0.0.1 ")
    assert ("answered 500" if answers else "does not answer") in said
    assert "s3cr3t" not in caplog.text


def test_a_topic_that_cannot_be_told_is_a_warning(table: hoodie.HoodieTable, caplog: pytest.LogCaptureFixture) -> None:
    pytest.importorskip("confluent_kafka")
    servers = f"127.0.0.1:{free_port()}"
    named = {"bootstrap.servers": servers, "topic": "commits", "partition": "0"}
    options = {f"{CALLBACK}kafka.{name}": value for name, value in named.items()}
    options |= {f"{CALLBACK}on": "true", f"{CALLBACK}class": KAFKA, f"{CALLBACK}http.timeout.seconds": "1"}
    assert table.upsert({"id": [1]}, options=options).instant is not None
    (said,) = [r.getMessage() for r in caplog.records if "the commit stands" in r.getMessage()]
    assert f"the callback after it failed: topic commits at {servers} did not take the callback" in said


def test_metrics_are_put_to_prometheus_push_gateway(listener: Listener, table: hoodie.HoodieTable) -> None:
    options = {
        f"{METRICS}on": "true",
        f"{METRICS}reporter.type": "PROMETHEUS_PUSHGATEWAY",
        f"{METRICS}pushgateway.host": "127.0.0.1",
        f"{METRICS}pushgateway.port": str(listener.port),
        f"{METRICS}pushgateway.job.name": "nightly load",
        f"{METRICS}pushgateway.random.job.name.suffix": "false",
        f"{METRICS}pushgateway.report.labels": 'env:a"b',
        f"{METRICS}reporter.metricsname.prefix": "lake.trips",
    }
    table.upsert({"id": [1, 2, 3]}, options=options)
    (request,) = listener.requests
    assert (request.method, request.path) == ("PUT", "/metrics/job/nightly%20load")
    assert 'lake_trips_commit_totalRecordsWritten{env="a\\"b"} 3\n' in request.body
    assert 'lake_trips_commit_totalFilesInsert{env="a\\"b"} 1\n' in request.body


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({f"{CALLBACK}on": "true"}, r"callback\.on=true needs .*http\.url"),
        (
            {f"{CALLBACK}on": "true", f"{CALLBACK}class": KAFKA, f"{CALLBACK}kafka.topic": "t"},
            r"callback\.on=true needs .*kafka\.bootstrap\.servers",
        ),
        ({f"{CALLBACK}kafka.acks": "2"}, "kafka.acks"),
        ({f"{CALLBACK}http.custom.headers": "a"}, "is not name:value"),
        ({f"{METRICS}pushgateway.report.labels": "a"}, "is not name:value"),
    ],
)
def test_what_makes_no_sense_is_named(options: dict[str, str], match: str) -> None:
    with pytest.raises(OptionError, match=match):
        parse_write_options(options)


def test_whom_nobody_tells_is_said() -> None:
    pulsar = "org.apache.hudi.utilities.callback.pulsar.HoodieWriteCommitPulsarCallback"
    request = parse_write_options(
        {f"{CALLBACK}on": "true", f"{CALLBACK}class": pulsar, f"{METRICS}on": "true", f"{METRICS}reporter.type": "JMX"}
    )
    assert (request.write.callback.enabled, request.write.metrics.enabled) == (False, False)
    assert request.not_done == (
        f"nobody is called back by {pulsar} after a commit ({CALLBACK}on, {CALLBACK}class)",
        f"no metrics are reported to JMX ({METRICS}on, {METRICS}reporter.type)",
    )
    assert not parse_write_options({f"{METRICS}reporter.type": "JMX"}).not_done


def test_secrets_are_in_no_text_of_the_options() -> None:
    options = callback_to(1, **{"api.key": "k3y", "custom.headers": "A:t0ken"})
    shown = repr(parse_write_options(options).write.callback)
    assert "k3y" not in shown
    assert "t0ken" not in shown
    assert "s3cr3t" not in shown
