"""versitygw: an S3 server that keeps objects as files and holds the conditions of puts. `make integration` builds it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers.s3 import S3Server, free_port, make_bucket

BINARY = Path(os.environ.get("HOODIE_VERSITYGW", "build/bin/versitygw"))
_PATIENCE_S = 60.0


@contextmanager
def versitygw(folder: Path) -> Iterator[S3Server]:
    """A server of its own whose objects lie in `folder`. The test is skipped where there is no binary."""
    if not BINARY.exists():
        pytest.skip(f"not there: {BINARY}; `make integration` builds it where there is Go")
    port = free_port()
    server = S3Server(f"http://127.0.0.1:{port}")
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
        _wait_for(server, process, folder)
        make_bucket(server)
        yield server
    finally:
        process.kill()
        process.wait()


def _wait_for(server: S3Server, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline_s = time.monotonic() + _PATIENCE_S
    host, _, port = server.endpoint.rpartition("/")[2].partition(":")
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=5).close()
        except OSError as exc:
            if process.poll() is not None or time.monotonic() > deadline_s:
                log = (folder / "log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"versitygw does not serve: {log}") from exc
            time.sleep(0.05)
        else:
            return
