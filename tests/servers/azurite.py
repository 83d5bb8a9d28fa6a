"""Azurite: Microsoft's own emulator of Azure's blob storage, a program of Node.js. `make soak` installs it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import secrets
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.servers.ports import free_port
from tests.servers.started import wait_for

SCRIPT = Path(os.environ.get("HOODIE_AZURITE", "build/azurite/node_modules/azurite/dist/src/blob/main.js"))
ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Of every Azurite there is."""
CONTAINER = "lake"
_VERSION = "2021-12-02"


class AzureServer(NamedTuple):
    endpoint: str

    @property
    def options(self) -> Mapping[str, str]:
        """How hoodie reaches it."""
        return {
            "azure_storage_account_name": ACCOUNT,
            "azure_storage_account_key": KEY,
            "azure_storage_endpoint": f"{self.endpoint}/{ACCOUNT}",
        }

    def new_uri(self) -> str:
        """Of a folder that nobody else has."""
        return f"az://{CONTAINER}/tables/{secrets.token_hex(8)}"


@contextmanager
def azurite(folder: Path) -> Iterator[AzureServer]:
    """A server of its own. The test is skipped where it is not installed."""
    node = shutil.which("node")
    if node is None or not SCRIPT.exists():
        pytest.skip(f"not there: {SCRIPT}; `make soak` installs it where there is Node.js")
    port = free_port()
    server = AzureServer(f"http://127.0.0.1:{port}")
    folder.mkdir(parents=True)
    command = [node, str(SCRIPT.resolve()), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    command += ["--location", str(folder), "--silent", "--skipApiVersionCheck"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_for("Azurite", port, process, folder)
        _make_container(server)
        yield server
    finally:
        process.kill()
        process.wait()


def _make_container(server: AzureServer) -> None:
    """One signed request; obstore makes no containers."""
    date = formatdate(usegmt=True)
    signed = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n"
    signed += f"/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "x-ms-version": _VERSION, "Authorization": f"SharedKey {ACCOUNT}:{signature}"}
    request = urllib.request.Request(
        f"{server.endpoint}/{ACCOUNT}/{CONTAINER}?restype=container", method="PUT", headers=headers
    )
    urllib.request.urlopen(request, timeout=30).close()
