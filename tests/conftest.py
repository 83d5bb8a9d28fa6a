"""Settings and the few fixtures that every room's tests share."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.effort import keep_a_sample
from tests.golden_tables import Golden, copy_golden
from tests.placed import SERVER, TRIED
from tests.public_tables import PublicTable, public_table
from tests.servers.java import SHORT_LIVED
from tests.servers.zookeeper import ZooKeeper, zookeeper
from tests.small_files import set_few_rows, treat_small_files
from tests.table_version import make_new_tables_of_it

# Derandomised: a failure seen once is seen by everybody. No deadline, and no check how long values take to make: the machines
# are shared, time is no property.
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ci")

make_new_tables_of_it()

# Spark reads these when its JVM starts. Its Python workers must be this interpreter: the default is whatever
# `python3` is first on the path, which may have no pyarrow.
os.environ.setdefault("SPARK_CONF_DIR", str(Path(__file__).resolve().parent.parent / "conf"))
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f'--driver-java-options "{" ".join(SHORT_LIVED)}" pyspark-shell')


@pytest.hookimpl(trylast=True)  # Among those that `-m` chooses.
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    keep_a_sample(config, items)


@pytest.fixture(autouse=True)
def files_take_rows_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the floor each insert would rewrite a base file of a test's small table, and hardly a log would be written.

    Tests about small files turn it on again.
    """
    treat_small_files(monkeypatch, as_small=False)


@pytest.fixture(autouse=True)
def columns_have_dictionaries(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the large files of users: a test's small table would hardly have one."""
    set_few_rows(monkeypatch, 3)


@pytest.fixture
def golden(tmp_path: Path) -> Callable[[str], Golden]:
    """Gives a golden table by name, copied so that a test may write to it."""
    return lambda name: copy_golden(name, tmp_path)


@pytest.fixture
def public(tmp_path: Path) -> Callable[[str], PublicTable]:
    """Gives a public table by name, unpacked so that a test may write to it; skips the test where it is absent."""
    return lambda name: public_table(name, tmp_path)


@pytest.fixture(scope="session")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeper]:
    """One ZooKeeper for the session."""
    with zookeeper(tmp_path_factory.mktemp("zookeeper") / "server") as server:
        yield server


@pytest.fixture(autouse=True)
def counts_what_ran_on_the_server(request: pytest.FixtureRequest) -> Iterator[None]:
    TRIED.clear()
    yield
    request.node.user_properties += [*TRIED.items()]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where tables were on a server: how many, by how many tests, and how many places to die at were tried."""
    if SERVER is None:
        return
    reports = [
        each for every in terminalreporter.stats.values() for each in every if getattr(each, "when", "") == "teardown"
    ]
    found = [dict(report.user_properties) for report in reports]
    tests, tables, places = (
        sum(bool(each) for each in found),
        *(sum(each.get(what, 0) for each in found) for what in ("tables", "places")),
    )
    terminalreporter.write_line(f"on {SERVER}: {tests} tests made {tables} tables and tried {places} places to die at")
