"""Upserts into a table in a bucket, each request 20 ms late: hoodie beside delta-rs and PyIceberg on one server.

    python -m benchmarks.bucket --peers .venv-bench-embedded/bin/python

The load goes to the server at once, what is measured through a proxy that delays each request and counts them. The first upsert
is that of a new process; the others are of one that goes on. All systems must give the same rows.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from benchmarks.rides import BASE, batches, make_rides
from tests.servers.http_proxy import HttpProxy
from tests.servers.s3 import BUCKET, S3Server, make_bucket, moto

OURS = "hoodie"
SYSTEMS = (OURS, "delta-rs", "pyiceberg")


class Child:
    """A system in a process of its own; see `bucket_systems`."""

    def __init__(self, system: str, python: str, server: S3Server, endpoint: str, folder: Path) -> None:
        home = folder / system
        home.mkdir(exist_ok=True)
        argv = [python, "-m", "benchmarks.bucket_systems", system, f"s3://{BUCKET}", str(home), str(folder / "data")]
        options = server.options
        environment = {
            **os.environ,
            "AWS_ENDPOINT": endpoint,
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_ACCESS_KEY_ID": options["aws_access_key_id"],
            "AWS_SECRET_ACCESS_KEY": options["aws_secret_access_key"],
            "AWS_REGION": options["aws_region"],
        }
        self._process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.version = self._answer()["version"]

    def ask(self, command: str) -> dict[str, Any]:
        print(command, file=_opened(self._process.stdin), flush=True)
        return self._answer()

    def end(self) -> None:
        _opened(self._process.stdin).close()
        self._process.wait(60)

    def _answer(self) -> dict[str, Any]:
        line = _opened(self._process.stdout).readline()
        if not line:
            raise RuntimeError("a system ended; its error stands above")
        answer: dict[str, Any] = json.loads(line)
        return answer


def _opened(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("no pipe")
    return stream


def main(argv: Sequence[str] | None = None) -> int:
    args = _arguments().parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="hoodie-bucket-"))
    try:
        make_rides(folder / "data", rows=args.rows, batch_rows=args.batch, small_count=1)
        with _server(args.endpoint) as server, HttpProxy(server.endpoint) as proxy:
            proxy.delay_s = args.delay_ms / 1000
            answers = {}
            for system in args.systems:
                python = sys.executable if system == OURS else args.peers
                answers[system] = list(_measured(system, python, server, proxy, folder))
    finally:
        shutil.rmtree(folder)
    sums = {system: found[-1]["sums"] for system, found in answers.items()}
    print(_table(answers))
    if len(set(map(str, sums.values()))) > 1:
        print(f"the systems disagree: {sums}", file=sys.stderr)
        return 1
    return 0


def _measured(
    system: str, python: str, server: S3Server, proxy: HttpProxy, folder: Path
) -> Iterator[Mapping[str, Any]]:
    loading = Child(system, python, server, server.endpoint, folder)
    print(f"{system}: {loading.version}", file=sys.stderr)
    yield {"case": "load, no delay", "requests": {}, **loading.ask(f"load {BASE}")}
    loading.end()
    writing = Child(system, python, server, proxy.endpoint, folder)
    steps = [("first upsert", batches()[0]), *(("upsert", name) for name in batches()[1:])]
    proxy.counted()
    for case, name in steps:
        yield {"case": case, **writing.ask(f"upsert {name}"), "requests": proxy.counted()}
    writing.end()
    reading = Child(system, python, server, proxy.endpoint, folder)
    for case in ("first read", "read"):
        yield {"case": case, **reading.ask("read"), "requests": proxy.counted()}
    reading.end()


def _table(answers: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    lines = ["| system | what | wall s | CPU s | requests |", "|---|---|---|---|---|"]
    for system, found in answers.items():
        for case in dict.fromkeys(each["case"] for each in found):
            of_case = [each for each in found if each["case"] == case]
            wall, cpu = (statistics.median(each[name] for each in of_case) for name in ("wall_s", "cpu_s"))
            requests = of_case[-1]["requests"]
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(requests.items()))
            lines.append(f"| {system} | {case} | {wall:.2f} | {cpu:.2f} | {sum(requests.values())}: {kinds} |")
    return "\n".join(lines)


@contextmanager
def _server(endpoint: str | None) -> Iterator[S3Server]:
    with nullcontext(S3Server(endpoint)) if endpoint else moto() as server:
        if endpoint:
            make_bucket(server)
        yield server


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, default=50_000)
    parser.add_argument("--delay-ms", type=float, default=20)
    parser.add_argument("--systems", nargs="+", default=SYSTEMS, choices=SYSTEMS)
    parser.add_argument("--peers", default=sys.executable, help="the interpreter of an environment with the peers")
    parser.add_argument("--endpoint", help="of a server that is there (default: moto, started for this)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
