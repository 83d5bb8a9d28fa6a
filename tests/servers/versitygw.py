"""versitygw: an S3 server that keeps objects as files and holds the conditions of puts. `make integration` builds it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.ports import free_port
from tests.servers.s3 import S3Server, make_bucket
from tests.servers.started import wait_for

BINARY = Path(os.environ.get("HOODIE_VERSITYGW", "build/bin/versitygw"))


@contextmanager
def versitygw(folder: Path) -> Iterator[S3Server]:
    """A server of its own whose objects lie in `folder`. The test is skipped where there is no binary."""
    if not BINARY.exists():
        pytest.skip(f"not there: {BINARY}; `make integration` builds it where there is Go")
    port = free_port()
    server = S3Server(f"http://127.0.0.1:{port}", folder / "objects")
    options = server.options
    (folder / "objects").mkdir(parents=True)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [str(BINARY.resolve()), "--port", f"127.0.0.1:{port}", "--quiet", "posix", str(folder / "objects")],
            env={
                **os.environ,
                "ROOT_ACCESS_KEY": options["aws_access_key_id"],
                "ROOT_SECRET_KEY": options["aws_secret_access_key"],
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for("versitygw", int(server.endpoint.rpartition(":")[2]), process, folder)
        make_bucket(server)
        yield server
    finally:
        process.kill()
        process.wait()
