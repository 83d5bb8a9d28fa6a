"""What a new Python worker imports for tasks of ours, which is most of what a small job costs: what runs tasks, and no pandas."""

import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.options.parse import parse_write_options

pytestmark = pytest.mark.spark

WORKER = """
import pickle, sys
import pyspark.worker, pyspark.sql.pandas.serializers, pyarrow  # what is there when Spark's own worker gets a task
before = set(sys.modules)
from pyspark_hoodie.engine import _attempt
while True:
    try:
        fn, arguments = pickle.load(sys.stdin.buffer)
    except EOFError:
        break
    done = _attempt(0, lambda: list(fn(*arguments)))
    answer = done["failed"].to_pylist(), done["value"].to_pylist(), sorted(set(sys.modules) - before)
    sys.stdout.buffer.write(pickle.dumps(answer))
    sys.stdout.buffer.flush()
"""


class OneWorker(LocalEngine):
    """Tasks travel to another process and run there as Spark's do, one after the other."""

    shares_memory = False

    def __init__(self) -> None:
        super().__init__(1)
        self.process = subprocess.Popen([sys.executable, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.calls = 0
        self.modules: list[str] = []

    def run(self, fn: Callable[..., Any], tasks: Sequence[Any], *, label: str, at_once: int = 1) -> list[Any]:
        return [self._result(map, fn, [task])[0] for task in tasks]

    def stage(self, records: Any, fn: Callable[..., Any], *, label: str) -> list[Any]:
        return self._result(fn, 0, list(records.to_batches()))

    def _result(self, *call: Any) -> list[Any]:
        assert self.process.stdin
        assert self.process.stdout
        pickle.dump((call[0], call[1:]), self.process.stdin)
        self.process.stdin.flush()
        failed, values, self.modules = pickle.load(self.process.stdout)
        self.calls += 1
        assert not any(failed), pickle.loads(values[0])
        return [pickle.loads(value) for value in values]


ROOMS = {
    "engine",
    "errors",
    "filegroup",
    "format",
    "hashes",
    "index",
    "keygen",
    "model",
    "options",
    "publish",
    "storage",
    "write",
}
"""What runs tasks. What opens tables, plans, commits and serves stays with the driver."""


def test_tasks_import_neither_frames_nor_what_plans_and_commits(tmp_path):
    """A load, an upsert and a compaction: 209 modules when this was written; pandas would be 340 more."""
    engine = OneWorker()
    options = {"record_key": "id", "partition_by": "part", "ordering": "ts", "table_type": "MERGE_ON_READ"}
    table = hoodie.create_table(tmp_path / "t", **options, engine=engine)
    rows = pa.table({"id": ["a", "b"], "part": ["x", "y"], "ts": [1, 1], "fare": [1.5, None]})
    with engine.process:
        for operation in ("bulk_insert", "upsert"):
            said = {"hoodie.datasource.write.operation": operation, "hoodie.python.driver.max.bytes": "0"}
            write = parse_write_options(said, defaults={}).write
            table.writer.write(rows, rows.schema, write.operation, write, engine=engine, repeatable=True)
        table.compact()
    assert engine.calls >= 6
    assert {name.split(".")[1] for name in engine.modules if name.startswith("hoodie.")} == ROOMS
    assert not {"pandas", "polars", "duckdb"} & {name.partition(".")[0] for name in engine.modules}
    assert len(engine.modules) < 254
