"""What OpenTelemetry is told of writes, scans, services and ingestion, by its API alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

import hoodie
from hoodie import telemetry
from hoodie.cli.__main__ import main
from hoodie.errors import CommitConflictError
from hoodie.lock.base import Waiting
from hoodie.lock.in_process import InProcessLock
from hoodie.model.results import CommitResult
from hoodie.storage.memory import MemoryStorage
from hoodie.write.attempt import Attempt
from tests.servers.ports import free_port

OTEL = ("opentelemetry.trace", "opentelemetry.metrics")


class Told:
    """Stands in for both modules of the API, and keeps what it is told."""

    def __init__(self) -> None:
        self.spans: list[SimpleNamespace] = []
        self.values: list[tuple[str, float, Mapping[str, Any]]] = []
        self.open: list[SimpleNamespace] = []

    def get_tracer(self, scope: str) -> Told:
        assert scope == "hoodie"
        return self

    get_meter = get_tracer

    def get_tracer_provider(self) -> Told:
        return self

    get_meter_provider = get_tracer_provider

    @contextmanager
    def start_as_current_span(self, name: str, attributes: Mapping[str, Any]) -> Iterator[None]:
        parent = self.open[-1].name if self.open else None
        made = SimpleNamespace(name=name, parent=parent, attributes=dict(attributes))
        self.spans.append(made)
        self.open.append(made)
        try:
            yield
        finally:
            self.open.pop()

    def get_current_span(self) -> Told:
        return self

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        if self.open:
            self.open[-1].attributes.update(attributes)

    def _made(self, name: str, unit: str, text: str) -> SimpleNamespace:
        def keep(value: float, labels: Mapping[str, Any]) -> None:
            self.values.append((name, value, labels))

        return SimpleNamespace(add=keep, record=keep, set=keep)

    create_counter = create_histogram = create_gauge = _made

    def span(self, name: str) -> SimpleNamespace:
        (found,) = [each for each in self.spans if each.name == name]
        return found

    def sum(self, name: str, **labels: str) -> float:
        return sum(v for n, v, have in self.values if n == name and labels.items() <= have.items())


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Iterator[Told]:
    made = Told()
    for module in OTEL:
        monkeypatch.setitem(sys.modules, module, made)
    telemetry._tracer.cache_clear()
    telemetry._teller.cache_clear()
    yield made
    telemetry._tracer.cache_clear()
    telemetry._teller.cache_clear()


@pytest.fixture
def table(request: pytest.FixtureRequest) -> hoodie.HoodieTable:
    uri = f"memory://{request.node.name}-{free_port()}/trips"
    return hoodie.create_table(
        uri, {"id": "int64"}, record_key="id", table_type="MERGE_ON_READ", options={"hoodie.compact.inline": "false"}
    )


def test_spans_of_a_write(table: hoodie.HoodieTable, told: Told) -> None:
    done = table.upsert({"id": [1, 2]})
    whole = told.span("hoodie.write")
    assert whole.attributes == {
        "hoodie.table": "trips",
        "hoodie.path": table.uri,
        "hoodie.operation": "UPSERT",
        "hoodie.instant": done.instant,
        "hoodie.rows": 2,
        "hoodie.files": 1,
        "hoodie.bytes": done.bytes_written,
    }
    parts = ["hoodie.write.tag", "hoodie.write.plan", "hoodie.write.files", "hoodie.write.commit"]
    assert [each.name for each in told.spans if each.parent == "hoodie.write"] == parts
    assert all("hoodie.lock_wait_s" in told.span(f"hoodie.write.{part}").attributes for part in ("plan", "commit"))


def test_a_try_that_lost_is_told(table: hoodie.HoodieTable, told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    run, lost = Attempt.run, [CommitConflictError("another writer was faster")]

    def lose_once(attempt: Attempt) -> CommitResult:
        if lost:
            raise lost.pop()
        return run(attempt)

    monkeypatch.setattr(Attempt, "run", lose_once)
    table.upsert({"id": [1]})
    assert (
        told.sum("hoodie.write.retries", table="trips") == told.span("hoodie.write").attributes["hoodie.retries"] == 1
    )


def test_figures_of_writes_and_services(table: hoodie.HoodieTable, told: Told) -> None:
    with table.consumer("job") as consumer:
        consumer.changes()
    written = table.upsert({"id": [1, 2]}).bytes_written + table.upsert({"id": [1, 2]}).bytes_written
    assert told.sum("hoodie.write.rows", kind="inserted") + told.sum("hoodie.write.rows", kind="updated") == 4
    assert told.sum("hoodie.write.bytes") == written
    assert 0 < told.sum("hoodie.write.changed_bytes") <= written
    assert told.sum("hoodie.consumer.lag_commits", consumer="job") == 1 + 2  # a gauge, told after each commit
    compacted = table.compact(strategy="unbounded")
    assert told.span("hoodie.compaction").attributes["hoodie.instant"] == compacted[0].instant
    assert told.sum("hoodie.write.bytes") == written + sum(each.bytes_written for each in compacted)
    assert table.clean(retain_versions=1) is not None
    assert {"hoodie.clean", "hoodie.clean.plan"} <= {each.name for each in told.spans}
    assert [labels["action"] for name, _, labels in told.values if name == "hoodie.service.duration"] == [
        "compaction",
        "clean",
    ]


def test_a_scan_says_how_many_files_it_opens(table: hoodie.HoodieTable, told: Told) -> None:
    table.upsert({"id": [1]})
    table.upsert({"id": [1]})
    table.scan().to_arrow()
    assert told.spans[-1].name == "hoodie.scan.plan"
    assert told.sum("hoodie.scan.files") == told.spans[-1].attributes["hoodie.files"] == 2
    assert told.sum("hoodie.scan.bytes") == told.spans[-1].attributes["hoodie.bytes"] > 0


def test_a_pending_plan_has_an_age(table: hoodie.HoodieTable, told: Told) -> None:
    table.upsert({"id": [1]})
    table.upsert({"id": [1]})
    table.schedule_compaction()
    table.upsert({"id": [2]})
    ages = [value for name, value, _ in told.values if name == "hoodie.pending.oldest_age"]
    assert ages[:2] == [0, 0]
    assert 0 < ages[2] < 600


def test_a_wait_for_the_lock_is_told(told: Told) -> None:
    storage, now = MemoryStorage(), [0.0]
    other = InProcessLock(storage)
    thread = Thread(target=other.acquire, args=(0,))
    thread.start()
    thread.join()

    def sleep(_: float) -> None:
        now[0] += 2
        other.release()

    with InProcessLock(storage, Waiting(sleep, lambda: now[0])).held(5):
        pass
    assert [name for name, _, _ in told.values] == ["hoodie.lock.wait"] * 2
    assert told.values[1][1] == 2


def test_rounds_of_ingestion(tmp_path: Any, told: Told) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text(json.dumps({"id": 1}) + "\nnonsense\n")
    done = hoodie.ingest(tmp_path / "in", tmp_path / "t", record_key="id")
    found = next(each for each in told.spans if each.name == "hoodie.ingest.round")
    assert (found.attributes["hoodie.rows"], found.attributes["hoodie.instant"]) == (1, done.rounds[0].instant)
    assert told.span("hoodie.write").parent == "hoodie.ingest.round"
    assert [told.sum(f"hoodie.ingest.{name}") for name in ("rows", "bad", "waiting")] == [1, 1, 0]


def test_every_instrument_is_one_of_the_api() -> None:
    metrics = pytest.importorskip("opentelemetry.metrics")
    meter = metrics.NoOpMeter("hoodie")
    for name, kind in telemetry.INSTRUMENTS.items():
        made = getattr(meter, kind.make)(f"hoodie.{name}", kind.unit, kind.text)
        getattr(made, kind.tell)(1, {"table": "t"})


def test_until_a_provider_is_set_nobody_is_told() -> None:
    pytest.importorskip("opentelemetry.metrics")
    pytest.importorskip("opentelemetry.trace")
    assert not telemetry.measures()
    assert telemetry.span("write") is telemetry._NO_SPAN


def test_nothing_is_imported_for_it() -> None:
    program = """
import sys, hoodie
hoodie.create_table("memory://none/t", record_key="id").upsert({"id": [1]})
print([name for name in sys.modules if name.startswith("opentelemetry")])
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_command_says_what_was_written_for_what(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    table = hoodie.create_table(tmp_path / "t", {"id": "int64"}, record_key="id")
    written = table.upsert({"id": list(range(99))}).bytes_written + table.upsert({"id": [1]}).bytes_written
    assert main(["metrics", table.uri, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    by = {each["by"]: each["value"] for each in data["hoodie_written_bytes"]}
    assert by == {"writes": written, "services": 0}
    assert written / 2 < data["hoodie_changed_bytes"][0]["value"] < written
    assert data["hoodie_scan_files"] == [{"value": 1}]
    assert data["hoodie_rollbacks"] == [{"value": 0}]
