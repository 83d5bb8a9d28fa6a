"""A real Ctrl-C, again and again in one process: it is itself, and the table and the process go on."""

import os
import subprocess
import sys

import pytest

from tests.effort import HUNG_S

PROGRAM = """
import random, signal, sys, threading
import pyarrow as pa
import hoodie

path, kind, seed = sys.argv[1:]
choose = random.Random(int(seed))
# A shell's background jobs are started with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

def interrupt():
    if armed:
        signal.raise_signal(signal.SIGINT)

table = hoodie.create_table(path, record_key="id", partition_by="p", ordering="ts", table_type=kind)
table.upsert(pa.table({"id": ["k0"], "p": ["0"], "ts": [0], "v": [0]}))
model, interrupted = {"k0": 0}, 0
for clock in range(1, 41):
    ids = sorted({f"k{choose.randrange(30)}" for _ in range(choose.choice([1, 10]))})
    rows = pa.table({"id": ids, "p": [i[-1] for i in ids], "ts": [clock] * len(ids), "v": [clock] * len(ids)})
    what = choose.choice("uuudcs")
    new = dict(model)
    if what == "u":
        new |= dict.fromkeys(ids, clock)
        act = lambda: table.upsert(rows)
    elif what == "d" and model:
        new = {key: value for key, value in model.items() if key not in ids}
        act = lambda: table.delete(rows.select(["id", "p"]))
    elif what == "c" and kind == "MERGE_ON_READ":
        act = lambda: table.compact()
    else:
        act = lambda: table.scan().count()
    armed, done = True, False
    # By the time that the process works and not by the clock: so it hits work also where the machine is busy.
    signal.setitimer(signal.ITIMER_PROF, choose.uniform(0.0005, 0.03))
    signal.signal(signal.SIGPROF, lambda *_: interrupt())
    try:
        try:
            act()
            done = True
        finally:
            armed = False
            signal.setitimer(signal.ITIMER_PROF, 0)
    except KeyboardInterrupt:
        interrupted += 1
    found = table.scan().to_arrow().to_pydict()
    got = dict(zip(found["id"], found["v"]))
    assert len(got) == len(found["id"]), (clock, what)
    assert got == new or (got == model and not done), (clock, what, done)
    model = got
table.upsert(pa.table({"id": ["last"], "p": ["t"], "ts": [1], "v": [1]}))
if kind == "MERGE_ON_READ":
    table.compact()
assert not table.timeline.pending(), table.timeline.pending()
for thread in threading.enumerate():
    if thread.name.startswith("hoodie") and thread.ident:  # interrupted before it began, it stays on Python's list
        thread.join(10)
        assert not thread.is_alive()
print(interrupted)
"""


@pytest.mark.long
@pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_a_process_that_is_interrupted_again_and_again(tmp_path, kind):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "table"), kind, "1"],
        timeout=HUNG_S,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5
