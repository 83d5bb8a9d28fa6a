"""A database for each test, of each kind of catalog: moto's Glue, and a metastore in memory, or a real one, where
`HOODIE_TEST_HIVE` says where that listens.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto import mock_aws

from hoodie.metastore.interface import connected
from hoodie.options.hive import servers_of
from tests.fake_metastore import FakeMetastore
from tests.glue_tables import GlueTables
from tests.metastore_tables import Catalog


@pytest.fixture
def root(tmp_path: Path) -> str:
    """Where tables are: in memory, and on disk for a real metastore, which looks whether they are there."""
    return str(tmp_path) if "HOODIE_TEST_HIVE" in os.environ else f"memory://{secrets.token_hex(8)}"


@pytest.fixture(params=["hive", "glue"])
def catalog(request: pytest.FixtureRequest) -> Iterator[Catalog | GlueTables]:
    """Each of them as the same tests see it."""
    if request.param == "hive":
        yield hive()
    elif "HOODIE_TEST_HIVE" in os.environ:
        pytest.skip("Glue is no server of ours")
    else:
        with mock_aws():
            yield GlueTables("lake")


def hive() -> Catalog:
    real = os.environ.get("HOODIE_TEST_HIVE")
    if real is None:
        fake = FakeMetastore()
        return Catalog("lake", lambda servers, *, patience_s: fake)
    servers = servers_of(real, option="HOODIE_TEST_HIVE")
    name = f"lake_{secrets.token_hex(4)}"
    return Catalog(name, lambda _, *, patience_s: connected(servers, patience_s=patience_s))
