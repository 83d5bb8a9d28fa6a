"""One Apache Hudi for all integration tests."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.hudi_client import ROOT, HudiPeer
from tests.effort import keep_a_sample
from tests.golden_tables import Golden, copy_golden
from tests.servers.azurite import AzureServer, azurite
from tests.servers.gcs import GoogleServer, google
from tests.servers.hdfs import COMES_TOO_SOON, Hdfs, hdfs
from tests.servers.hive import HiveMetastore, hive_metastore
from tests.servers.proxy import Proxy
from tests.servers.s3 import S3Server
from tests.servers.versitygw import versitygw
from tests.small_files import treat_small_files
from tests.table_version import make_new_tables_of_it

make_new_tables_of_it()

# Where `make integration` puts them.
PYTHON = Path(os.environ.get("HOODIE_PEER_PYTHON", ".venv-integration/bin/python"))
BUNDLE = Path(os.environ.get("HOODIE_BUNDLE_JAR", "build/jars/hudi-spark3.5-bundle_2.12-1.2.0.jar"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Everything in this folder is an integration test."""
    for item in items:
        item.add_marker(pytest.mark.integration)
    keep_a_sample(config, items)


@pytest.fixture(scope="session")
def hudi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiPeer]:
    """Apache Hudi on Spark, started once."""
    with hudi_peer(tmp_path_factory.mktemp("hudi-peer")) as peer:
        yield peer


@contextmanager
def hudi_peer(scratch: Path, settings: Mapping[str, str] | None = None) -> Iterator[HudiPeer]:
    """Apache Hudi on a Spark of its own."""
    python, bundle = ROOT / PYTHON, ROOT / BUNDLE
    missing = [str(path) for path in (python, bundle) if not path.exists()]
    if missing:
        pytest.fail(f"not there: {', '.join(missing)}; `make integration` makes them", pytrace=False)
    with (scratch / "peer.log").open("w", encoding="utf-8") as log:
        peer = HudiPeer(python=python, bundle_jar=bundle, scratch=scratch, log=log, settings=settings)
        try:
            yield peer
        finally:
            peer.close()


@pytest.fixture(scope="session")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """A Hive metastore with tables, started once."""
    with hive_metastore(tmp_path_factory.mktemp("metastore"), tables=True) as server:
        yield server


@pytest.fixture(scope="session")
def hudi_by_name(metastore: HiveMetastore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiPeer]:
    """Apache Hudi on a Spark whose catalog is the metastore."""
    settings = {"spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": metastore.uri}
    with hudi_peer(tmp_path_factory.mktemp("hudi-by-name"), settings) as peer:
        yield peer


@pytest.fixture(autouse=True)
def files_take_rows_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `tests/conftest.py`; the table `mor_small_files` and half of the random histories have the floor."""
    treat_small_files(monkeypatch, as_small=False)


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], Golden]:
    """Gives a golden table by name, copied so that a test may write to it."""
    return lambda name: copy_golden(name, tmp_path)


@pytest.fixture(scope="session")
def hdfs_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A NameNode and a DataNode, started once."""
    with hdfs(tmp_path_factory.mktemp("hdfs")) as server:
        yield server


@pytest.fixture(scope="session")
def quick_hdfs(hdfs_server: Hdfs) -> Iterator[str]:
    """host:port of a quicker way to that NameNode (`COMES_TOO_SOON`)."""
    with Proxy(int(hdfs_server.uri.rpartition(":")[2])) as proxy:
        proxy.later = COMES_TOO_SOON
        yield proxy.address


@pytest.fixture(scope="session")
def azure_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureServer]:
    """Azurite, started once; skipped where it was not installed."""
    with azurite(tmp_path_factory.mktemp("azure") / "server") as server:
        yield server


@pytest.fixture(scope="session")
def google_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GoogleServer]:
    """An emulator of Google Cloud Storage, started once; skipped where it was not built."""
    with google(tmp_path_factory.mktemp("google") / "server") as server:
        yield server


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real one, started once; skipped where it was not built."""
    with versitygw(tmp_path_factory.mktemp("s3") / "server") as server:
        yield server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What tests that ran others on a server say of them."""
    for every in terminalreporter.stats.values():
        for report in every:
            for name, value in getattr(report, "user_properties", ()):
                if name == "on servers" and getattr(report, "when", "") == "call":
                    terminalreporter.write_line(f"{report.nodeid}: {value}")
