"""A program that leaves a reader in the middle ends like any other: in a process of its own, for that is where it would hang."""

import os
import subprocess
import sys

import pyarrow as pa
import pytest

import hoodie
from tests.effort import HUNG_S, long_but

ENDINGS = {
    "script ends": "reader = t.scan().to_reader(); reader.read_next_batch()",
    "exit": "reader = t.scan().to_reader(); reader.read_next_batch(); sys.exit(0)",
    "closed": "reader = t.scan().to_reader(); reader.read_next_batch(); reader.close()",
    "break": "for batch in t.scan().to_batches(): break",
    "generator": "rows = t.scan().to_batches(); next(rows)",
    "islice": "first = list(itertools.islice(t.scan().to_batches(), 1))",
    "error": "for batch in t.scan().to_reader(): raise ValueError('of the user')",
    "in a cycle": "a = [t.scan().to_reader()]; a[0].read_next_batch(); a.append(a); del a; gc.collect()",
    "changes": "reader = t.changes().to_reader(); reader.read_next_batch()",
    "c stream": "stream = pa.RecordBatchReader.from_stream(t.scan()); stream.read_next_batch()",
    "duckdb": "import duckdb; rows = t.scan().to_reader(); got = duckdb.sql('select * from rows limit 1').fetchall()",
    "forked": """
reader = t.scan().to_reader(); reader.read_next_batch()
if os.fork() == 0:
    sys.exit(0)
os.wait()
""",
    "in a thread": """
def some():
    for batch in t.scan().to_batches():
        return
thread = threading.Thread(target=some); thread.start(); thread.join()
""",
}
PROGRAM = """
import gc, itertools, os, sys, threading
import pyarrow as pa
import hoodie
from hoodie.engine.local import LocalEngine
# As slices that are larger than what is read ahead.
t = hoodie.open_table(sys.argv[1], engine=LocalEngine(2, ahead_bytes=1))
exec(sys.argv[2])
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("half")
    ids = [f"{p}-{n}" for p in range(6) for n in range(20)]
    for kind in ("COPY_ON_WRITE", "MERGE_ON_READ"):
        table = hoodie.create_table(folder / kind, record_key="id", partition_by="p", table_type=kind)
        for value in range(2):
            table.upsert(pa.table({"id": ids, "p": [i[0] for i in ids], "v": [value] * len(ids)}))
    return folder


CASES = [
    *(("MERGE_ON_READ", ending) for ending in ENDINGS),
    ("COPY_ON_WRITE", "script ends"),
    ("COPY_ON_WRITE", "error"),
]
OFTEN = [("MERGE_ON_READ", ending) for ending in ("script ends", "forked")]


@pytest.mark.parametrize("case", long_but(OFTEN, CASES), ids=": ".join)
def test_a_program_that_leaves_a_reader_half_read_ends(tables, case):
    kind, ending = case
    if ending == "duckdb":
        pytest.importorskip("duckdb")
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, str(tables / kind), ENDINGS[ending]],
        timeout=HUNG_S,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == (1 if ending == "error" else 0), done.stderr
    assert "Exception ignored" not in done.stderr
    assert ending == "error" or not done.stderr
