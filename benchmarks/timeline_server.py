"""A timeline server and 200 clients at once: requests a second, how long they take, and that none fails.

    python -m benchmarks.timeline_server

Server, writer and clients share this machine, each kind in a process of its own; every client has a connection that it keeps. While
they ask, a writer commits, so that the server has to sync. Clients that the server tells that they are behind count by themselves.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

import hoodie
from hoodie.engine.local import LocalEngine
from hoodie.options.view import RemoteOptions
from hoodie.storage.uri import open_storage
from hoodie.timeline.timeline import completed_and_compactions, timeline_hash
from hoodie.view.context import TableContext
from hoodie.view.remote_client import NoAnswerError, RemoteClient

SCHEMA = pa.schema([("id", pa.int64()), ("part", pa.string()), ("val", pa.int64())])
_LATEST = "/v1/hoodie/view/slices/partition/latest/"


class Measured(NamedTuple):
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    longest_ms: float
    behind: int
    errors: int


def make_table(path: str, partitions: int, *, files: int) -> None:
    """A table of so many partitions, with so many file groups in each."""
    table = hoodie.create_table(path, SCHEMA, record_key="id", partition_by="part")
    for number in range(files):
        ids = range(number * partitions, (number + 1) * partitions)
        parts = [f"p{n:05d}" for n in range(partitions)]
        rows = pa.table({"id": list(ids), "part": parts, "val": [0] * partitions}, schema=SCHEMA)
        table.bulk_insert(rows)


def ask(
    path: str, port: int, token: str, clients: int, seconds: float, partitions: int
) -> tuple[list[float], int, int, float]:
    """Times of all requests in seconds, clients that were behind, errors, and how long it went on."""
    options = RemoteOptions("127.0.0.1", port, token, timeout_s=60.0, retries=0)
    times: list[float] = []
    counts = {"behind": 0, "errors": 0}
    known: list[dict[str, str]] = [{}]
    active = TableContext.open(open_storage(path), LocalEngine(1)).active
    ended = threading.Event()

    def look() -> None:
        timeline = active.load()
        instants = completed_and_compactions(timeline)
        known[0] = {
            "basepath": path,
            "lastinstantts": instants[-1].time,
            "timelinehash": timeline_hash(instants, timeline.layout),
        }

    def run(number: int) -> None:
        client, rng, mine = RemoteClient(options), random.Random(number), []
        while not ended.is_set():
            params = {**known[0], "partition": f"p{rng.randrange(partitions):05d}"}
            started = time.perf_counter()
            try:
                client.get(_LATEST, params)
            except NoAnswerError as exc:
                counts["behind" if "status 400" in str(exc) else "errors"] += 1
            else:
                mine.append(time.perf_counter() - started)
        times.extend(mine)

    look()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    started = time.perf_counter()
    for each in threads:
        each.start()
    while time.perf_counter() - started < seconds:
        time.sleep(0.2)
        look()
    ended.set()
    for each in threads:
        each.join()
    return times, counts["behind"], counts["errors"], time.perf_counter() - started


def measure(path: str, *, store: str, clients: int, seconds: float, partitions: int, writes: bool) -> Measured:
    """Start a server and a process of clients, and commit beside them, if asked for."""
    command = [sys.executable, "-m", "hoodie", "timeline-server", path, "--store", store, "--json"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        said = json.loads(server.stdout.readline())
        port, token = int(said["address"].rpartition(":")[2]), said["token"]
        asked = [sys.executable, "-m", "benchmarks.timeline_server", "--ask", path, str(port), token]
        asked += ["--clients", str(clients), "--seconds", str(seconds), "--partitions", str(partitions)]
        asking = subprocess.Popen(asked, stdout=subprocess.PIPE, text=True)
        table = hoodie.open_table(path)
        row = 10_000_000
        while writes and asking.poll() is None:
            row += 1
            table.insert(pa.table({"id": [row], "part": ["p00000"], "val": [1]}, schema=SCHEMA))
            time.sleep(0.5)
        out, _ = asking.communicate()
        return Measured(*json.loads(out))
    finally:
        server.terminate()
        server.wait(30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--files", type=int, default=10, help="file groups of a partition")
    parser.add_argument("--ask", nargs=3, metavar=("PATH", "PORT", "TOKEN"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.ask:
        path, port, token = args.ask
        times, behind, errors, took = ask(path, int(port), token, args.clients, args.seconds, args.partitions)
        times.sort()
        at_99 = times[int(len(times) * 0.99)]
        print(
            json.dumps(
                [len(times) / took, statistics.median(times) * 1000, at_99 * 1000, times[-1] * 1000, behind, errors]
            )
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "table")
        make_table(path, args.partitions, files=args.files)
        print("| store | clients | writer | requests/s | median ms | p99 ms | longest ms | behind | errors |")
        print("|---|---|---|---|---|---|---|---|---|")
        for store, clients, writes in (
            ("memory", 1, False),
            ("memory", args.clients, False),
            ("memory", args.clients, True),
            ("spillable", args.clients, False),
        ):
            found = measure(
                path, store=store, clients=clients, seconds=args.seconds, partitions=args.partitions, writes=writes
            )
            print(
                f"| {store} | {clients} | {'commits' if writes else '-'} | {found.requests_per_s:,.0f} | {found.p50_ms:.1f} | "
                f"{found.p99_ms:.1f} | {found.longest_ms:.1f} | {found.behind:,} | {found.errors} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
