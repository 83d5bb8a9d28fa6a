"""Files of `tests/` once more, with their tables on a real server: a process of their own, whose environment names it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest

from integration.hudi_client import ROOT
from tests.effort import SOAK
from tests.servers.s3 import S3Server

SERVERS = ("s3", "hdfs")
_SAID = re.compile(r"on \w+: (\d+) tests made (\d+) tables and tried (\d+) places to die at")
_HOURS_S = 6 * 3600.0 if SOAK else 900.0


class Ran(NamedTuple):
    tests: int
    """Those that made a table on the server."""
    tables: int
    places: int
    """Places to die at, or to be interrupted at, that were tried."""


def where(server: str, request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment that has tables made on the server, which is started if it does not run."""
    if server == "hdfs":
        return {"HOODIE_TEST_TABLES": "hdfs", "HOODIE_TEST_HDFS": request.getfixturevalue("quick_hdfs")}
    running: S3Server = request.getfixturevalue("s3_server")
    return {
        "HOODIE_TEST_TABLES": "s3",
        "HOODIE_TEST_S3": running.endpoint,
        "HOODIE_TEST_S3_OBJECTS": str(running.objects),
    }


def run(request: pytest.FixtureRequest, environment: Mapping[str, str], words: Sequence[str], *, every: int = 1) -> Ran:
    """Run the tests that the words name, and say at the end of the session how many there were.

    `every`: of the places to die at, one in so many.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not spark", *words]
    command += ["-n", "2"] if SOAK else []
    ended = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment, "HOODIE_TEST_EVERY": str(every), "HOODIE_EVERY": "1"},
        capture_output=True,
        text=True,
        timeout=_HOURS_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-12000:] + ended.stderr[-2000:]
    said = _SAID.search(ended.stdout)
    assert said is not None, ended.stdout[-2000:]
    request.node.user_properties.append(("on servers", f"{said[0]} ({ended.stdout.strip().splitlines()[-1]})"))
    return Ran(*map(int, said.groups()))
