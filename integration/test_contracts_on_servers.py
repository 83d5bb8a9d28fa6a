"""The contracts of `tests/contract/` held against storages that need a server, which `make test` does not start.

An entry of `tests/storages.py` is there when the environment says where its server is. So the same files run here once more.
"""

import os
import subprocess
import sys

from integration.hudi_client import ROOT
from tests.servers.hdfs import Hdfs

CONTRACTS = ("test_storage.py", "test_renaming_storage.py", "test_storage_races.py", "test_publisher.py")


def test_hdfs_keeps_the_contracts(hdfs_server: Hdfs) -> None:
    hold_contracts("hdfs", {"HOODIE_TEST_HDFS": hdfs_server.uri.removeprefix("hdfs://")})


def hold_contracts(name: str, environment: dict[str, str]) -> None:
    """Run the contracts of the entry `name`; at least one test of each file has to be there."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", name]
    command += [str(ROOT / "tests" / "contract" / file) for file in CONTRACTS]
    run = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=900, check=False
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
