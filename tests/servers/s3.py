"""S3, and other services of AWS, on a server of our own: moto, in a process that ends with the tests. All is in its memory."""

from __future__ import annotations

import atexit
import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import boto3

from hoodie.options.aws import AwsOptions
from tests.servers.ports import free_port

BUCKET = "lake"
AWS = AwsOptions(access_key="tester", secret_key="a secret nobody sees")
"""How other services on it are reached."""
_PATIENCE_S = 300.0


class S3Server(NamedTuple):
    endpoint: str
    objects: Path | None = None
    """Where it keeps its objects as files, if it does."""

    @property
    def options(self) -> Mapping[str, str]:
        """How hoodie reaches it."""
        return {
            "aws_endpoint": self.endpoint,
            "aws_access_key_id": "tester",
            "aws_secret_access_key": "a secret nobody sees",
            "aws_region": "us-east-1",
        }

    def new_uri(self) -> str:
        """Of a folder that nobody else has."""
        return f"s3://{BUCKET}/tables/{secrets.token_hex(8)}"


@contextmanager
def moto() -> Iterator[S3Server]:
    port = free_port()
    server = S3Server(f"http://127.0.0.1:{port}")
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("moto_in_turns.py")), str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(f"{server.endpoint}/moto-api/data.json", process)
        make_bucket(server)
        yield server
    finally:
        process.kill()
        process.wait()


@cache
def shared_moto() -> S3Server:
    """One for all tests of this process."""
    running = moto()
    server = running.__enter__()
    atexit.register(running.__exit__, None, None, None)
    return server


def make_bucket(server: S3Server) -> None:
    options = server.options
    client = boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=options["aws_access_key_id"],
        aws_secret_access_key=options["aws_secret_access_key"],
        region_name=options["aws_region"],
    )
    client.create_bucket(Bucket=BUCKET)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
