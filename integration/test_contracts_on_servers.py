"""The contracts of `tests/contract/` held against storages that need a server, which `make test` does not start.

An entry of `tests/storages.py` is there when the environment says where its server is. So the same files run here once more.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from integration.hudi_client import ROOT
from tests.effort import HUNG_S, SOAK
from tests.servers.hdfs import Hdfs
from tests.servers.hive import hive_metastore
from tests.servers.s3 import S3Server

CONTRACTS = ("test_storage.py", "test_storage_races.py", "test_publisher.py", "test_lock.py")
RENAMING = (*CONTRACTS, "test_renaming_storage.py", "test_appending_storage.py")


def test_hdfs_keeps_the_contracts(hdfs_server: Hdfs) -> None:
    hold_contracts("hdfs", {"HOODIE_TEST_HDFS": hdfs_server.uri.removeprefix("hdfs://")}, RENAMING)


def test_a_real_s3_server_keeps_the_contracts(s3_server: S3Server) -> None:
    hold_contracts("versitygw", {"HOODIE_TEST_S3": s3_server.endpoint}, CONTRACTS)


@pytest.mark.skipif(not SOAK, reason="HOODIE_SOAK=1 runs it")
def test_azurite_keeps_the_contracts(request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("azure_server")
    hold_contracts("azurite", {"HOODIE_TEST_AZURE": server.endpoint}, CONTRACTS)


@pytest.mark.skipif(not SOAK, reason="HOODIE_SOAK=1 runs it")
def test_an_emulator_of_google_cloud_storage_keeps_the_contracts(request: pytest.FixtureRequest) -> None:
    server = request.getfixturevalue("google_server")
    hold_contracts("gcs", {"HOODIE_TEST_GCS": server.endpoint}, CONTRACTS)


def test_locks_in_a_hive_metastore_keep_the_contract(tmp_path: Path) -> None:
    with hive_metastore(tmp_path / "metastore") as server:
        hold_contracts("hive_metastore", {"HOODIE_TEST_HIVE": server.uri}, ("test_lock.py",))


def hold_contracts(name: str, environment: dict[str, str], files: tuple[str, ...]) -> None:
    """Run the contracts of the entry `name`; some test of the files has to be there."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", name]
    command += [str(ROOT / "tests" / "contract" / file) for file in files]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert " passed" in run.stdout
