"""Registration after commits, and by the names that users call it by."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

import hoodie
from hoodie.cli.__main__ import main
from hoodie.errors import HiveSyncError, OptionError
from hoodie.options.parse import parse_write_options

ENABLED = {"hoodie.datasource.hive_sync.enable": "true"}
URIS = "hoodie.datasource.hive_sync.metastore.uris"


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections, and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"thrift://127.0.0.1:{server.getsockname()[1]}"


def table_at(path: Path) -> hoodie.HoodieTable:
    return hoodie.create_table(path / "t", {"id": "int64"}, record_key="id")


@pytest.mark.parametrize("reachable", [True, False])
def test_a_metastore_that_does_not_answer_costs_one_warning_and_no_commit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, silent: str, reachable: bool
) -> None:
    t = table_at(tmp_path)
    uri = silent if reachable else "thrift://127.0.0.1:1"
    more = {
        URIS: uri,
        "hoodie.python.hive_sync.timeout": "1",
        "hoodie.datasource.hive_sync.password": "s3cr3t",
        "hoodie.datasource.hive_sync.table_properties": "token=s3cr3t",
    }
    with caplog.at_level(logging.INFO, logger="hoodie"):
        result = t.upsert({"id": [1]}, options={**ENABLED, **more})
    assert result.instant is not None
    assert t.scan().count() == 1
    said = [r.getMessage() for r in caplog.records if "the commit stands" in r.getMessage()]
    assert len(said) == 1
    assert said[0].startswith("the commit stands, but the registration of the table after it failed")
    assert "s3cr3t" not in caplog.text


def test_a_writer_that_does_no_services_registers_all_the_same(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {**ENABLED, URIS: "thrift://127.0.0.1:1", "hoodie.table.services.enabled": "false"}
    table_at(tmp_path).upsert({"id": [1]}, options=options)
    assert "the registration of the table after it failed" in caplog.text


def test_without_the_switch_nobody_is_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table_at(tmp_path).upsert({"id": [1]}, options={URIS: "thrift://127.0.0.1:1"})
    assert "metastore" not in caplog.text


def test_a_registration_that_was_asked_for_fails_with_an_error(tmp_path: Path) -> None:
    t = table_at(tmp_path)
    with pytest.raises(HiveSyncError, match=r"127\.0\.0\.1:1 failed at get_database"):
        hoodie.hive.register(t, metastore="thrift://127.0.0.1:1", database="lake")


def test_the_command_says_so_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    t = table_at(tmp_path)
    assert main(["hive-sync", t.uri, "--metastore", "thrift://127.0.0.1:1", "--database", "lake"]) == 1
    assert "the Hive metastore at 127.0.0.1:1" in capsys.readouterr().err
    assert main(["hive-sync", t.uri]) == 2


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("hoodie.datasource.hive_sync.mode", "odbc", "is not one of hms, jdbc, hiveql, glue"),
        ("hoodie.datasource.hive_sync.base_file_format", "ORC", "base files are Parquet"),
        ("hoodie.datasource.hive_sync.table.strategy", "BOTH", "is not one of ALL, RO, RT"),
        (URIS, "http://a/b:1", "names no server"),
    ],
)
def test_what_is_not_done_is_refused_by_name(name: str, value: str, match: str) -> None:
    with pytest.raises(OptionError, match=match):
        parse_write_options({name: value})


def test_an_address_with_a_password_is_not_shown() -> None:
    with pytest.raises(OptionError, match="names no server") as caught:
        parse_write_options({URIS: "thrift://me:s3cr3t@host:9083"})
    assert "s3cr3t" not in str(caught.value)


def test_either_switch_of_apache_hudi_counts() -> None:
    assert not parse_write_options({}).write.hive_sync.enabled
    for name in (*ENABLED, "hoodie.datasource.meta.sync.enable"):
        request = parse_write_options(
            {name: "true", "hoodie.meta.sync.client.tool.class": "org.apache.hudi.hive.HiveSyncTool"}
        )
        assert request.write.hive_sync.enabled
        assert not request.not_done


TOOL, MODE = "hoodie.meta.sync.client.tool.class", "hoodie.datasource.hive_sync.mode"
GLUE = "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool"


DATA_HUB = "org.apache.hudi.sync.datahub.DataHubSyncTool"
HIVE_ONLY, GLUE_ONLY = ("hive",), ("glue",)


@pytest.mark.parametrize(
    ("options", "registers", "catalogs"),
    [
        ({"hive_sync.enable": "true", MODE: "jdbc"}, True, HIVE_ONLY),
        ({"hive_sync.enable": "true", MODE: "hiveql"}, True, HIVE_ONLY),
        ({"hive_sync.enable": "true", MODE: "glue"}, True, GLUE_ONLY),
        ({"meta.sync.enable": "true", TOOL: GLUE}, True, GLUE_ONLY),
        ({"meta.sync.enable": "true", TOOL: f"{GLUE},org.apache.hudi.hive.HiveSyncTool"}, True, ("glue", "hive")),
        ({"hive_sync.enable": "true", TOOL: GLUE}, True, ("glue", "hive")),
        ({"hive_sync.enable": "true", TOOL: GLUE, MODE: "glue"}, True, GLUE_ONLY),
        ({TOOL: GLUE}, False, GLUE_ONLY),
        ({"meta.sync.enable": "true", TOOL: DATA_HUB}, False, HIVE_ONLY),
        ({"hive_sync.enable": "true", TOOL: DATA_HUB}, True, HIVE_ONLY),
    ],
)
def test_options_choose_the_catalogs(options: dict[str, str], registers: bool, catalogs: tuple[str, ...]) -> None:
    given = {f"hoodie.datasource.{name}" if name.endswith("enable") else name: text for name, text in options.items()}
    request = parse_write_options(given)
    assert (request.write.hive_sync.enabled, request.write.hive_sync.catalogs) == (registers, catalogs)
    others = (f"the table is not registered by {DATA_HUB} ({TOOL})",) if DATA_HUB in options.values() else ()
    assert request.not_done == others


def test_properties_are_lines() -> None:
    name = "hoodie.datasource.hive_sync.table_properties"
    found = parse_write_options({name: "a=1\n b = x=y \n"}).write.hive_sync.table_properties
    assert found == {"a": "1", "b": "x=y"}
    with pytest.raises(OptionError, match="not name=value"):
        parse_write_options({name: "a"})
