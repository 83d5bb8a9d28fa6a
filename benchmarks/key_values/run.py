"""Measures the key-value store and its peers, and writes benchmarks/KEY_VALUE.md.

    python -m benchmarks.key_values.run --peers-python .venv-bench-embedded/bin/python [hdht] [beside] [s3] [growth]

Each store runs in a process of its own, one after the other. What was measured is kept in a file of JSON lines, from which the page is
made, so that parts can be measured anew.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.key_values.page import page

PARTS = ("hdht", "beside", "s3", "growth")
LOCAL = ("hoodie", "hoodie, blocks", "RocksDB", "LMDB", "SQLite")
GROWING = ("hoodie", "RocksDB")
WINDOWS_S = (0.5, 5.0, 15.0)
HDHT_KEYS = {0.5: 990_000, 5.0: 1_650_000, 15.0: 3_300_000}
"""For two windows and more."""
GROWTH = (1_000_000, 3_000_000, 10_000_000, 30_000_000, 100_000_000)
HERE = Path(__file__).parent
PAGE = HERE.parent / "KEY_VALUE.md"


class Runs:
    """Runs one case of one store after the other, and keeps what they told."""

    def __init__(self, folder: Path, peers_python: Path, out: Path) -> None:
        self._folder = folder
        self._peers_python = peers_python
        self._out = out

    def run(
        self,
        part: str,
        store: str,
        case: str,
        told: Mapping[str, Any],
        *,
        place: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        python = Path(sys.executable) if store.startswith("hoodie") else self._peers_python
        folder = self._folder / "store"
        command = [str(python), "-m", "benchmarks.key_values.work", store, place or str(folder), case, json.dumps(told)]
        print(part, store, case, json.dumps(told), flush=True)
        try:
            found = subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, **(env or {})})
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        with self._out.open("a", encoding="utf-8") as lines:
            for line in found.stdout.splitlines():
                entry = {"part": part, "store": store, "told": dict(told), "found": json.loads(line)}
                lines.write(json.dumps(entry) + "\n")


def hdht(runs: Runs, folder: Path) -> None:
    """On a disk, and on HDFS where its jars are."""
    with _hdfs(folder) as uri:
        for place in ("disk", *(["HDFS"] if uri else [])):
            for window_s in WINDOWS_S:
                for reads in (False, True):
                    for keys_come in ("sequential", "ranges"):
                        told = {
                            "place": place,
                            "keys": HDHT_KEYS[window_s],
                            "window_s": window_s,
                            "reads": reads,
                            "keys_come": keys_come,
                        }
                        where = None if place == "disk" else f"{uri}/{keys_come}-{reads}-{window_s}"
                        runs.run("hdht", "hoodie", "hdht", told, place=where)
    told = {"place": 'disk, `sync="process"`', "keys": HDHT_KEYS[0.5], "window_s": 0.5, "reads": False}
    runs.run("hdht", "hoodie, unsynced", "hdht", {**told, "keys_come": "sequential"})


def beside(runs: Runs, folder: Path) -> None:
    for store in LOCAL:
        runs.run("beside", store, "beside", {"keys": 1_000_000, "more": 200_000, "gets": 300})


def s3(runs: Runs, folder: Path) -> None:
    from tests.servers.versitygw import versitygw  # noqa: PLC0415

    for store in ("hoodie", "SlateDB"):
        place = Path(folder) / f"s3-{store}"
        with versitygw(place) as server:
            options = {name.upper(): value for name, value in server.options.items()}
            env = {**options, "AWS_ALLOW_HTTP": "true", "CLOUD_PROVIDER": "aws"}
            uri = server.new_uri()
            runs.run("s3", store, "beside", {"keys": 200_000, "more": 50_000, "gets": 200}, place=f"{uri}/kv", env=env)
        shutil.rmtree(place, ignore_errors=True)


def growth(runs: Runs, folder: Path, most: int, value_bytes: int) -> None:
    steps = [step for step in GROWTH if step <= most]
    for store in GROWING:
        runs.run("growth", store, "growth", {"value_bytes": value_bytes, "steps": steps, "gets": 300})


@contextmanager
def _hdfs(folder: Path) -> Iterator[str | None]:
    if not Path(os.environ.get("HOODIE_HDFS_JARS", "build/jars/hdfs")).exists():
        yield None
        return
    from tests.servers.hdfs import hdfs  # noqa: PLC0415 - needs pytest

    place = folder / "hdfs"
    place.mkdir()
    with hdfs(place) as server:
        yield server.uri


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("parts", nargs="*", default=PARTS[:3], help=f"of {', '.join(PARTS)} (growth takes an hour)")
    parser.add_argument("--value-bytes", type=int, default=16, help="of the values of growing stores")
    parser.add_argument("--most", type=int, default=GROWTH[-1], help="keys up to which stores grow")
    parser.add_argument("--peers-python", type=Path, required=True, help="with rocksdict, lmdb and slatedb")
    parser.add_argument("--out", type=Path, default=Path("build/key-values.jsonl"))
    parser.add_argument("--folder", type=Path, help="on the disk to measure; default: a temporary folder")
    args = parser.parse_args(argv)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    _forget(args.out, args.parts)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        runs = Runs(Path(folder), args.peers_python, args.out)
        steps = {
            "hdht": hdht,
            "beside": beside,
            "s3": s3,
            "growth": partial(growth, most=args.most, value_bytes=args.value_bytes),
        }
        for part in args.parts:
            steps[part](runs, Path(folder))
    lines = [json.loads(line) for line in args.out.read_text().splitlines()]
    PAGE.write_text(page(lines, made=datetime.now(UTC).date().isoformat(), machine=_machine()), encoding="utf-8")
    return 0


def _forget(out: Path, parts: Sequence[str]) -> None:
    """What was measured before of the parts that are measured now."""
    if out.exists():
        kept = [line for line in out.read_text().splitlines() if json.loads(line)["part"] not in parts]
        out.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")


def _machine() -> str:
    return f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}, Python {platform.python_version()}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
