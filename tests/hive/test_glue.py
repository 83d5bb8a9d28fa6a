"""What is special about the Glue catalog; all else: test_sync.py, which runs on both."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest
from moto import mock_aws

import hoodie
from hoodie.aws.client import ServiceError
from hoodie.cli.__main__ import main
from hoodie.errors import HiveSyncError
from hoodie.hive.catalog import Registration
from hoodie.hive.glue import Glue
from hoodie.hive.sync import sync
from hoodie.options.hive import HiveSyncOptions
from hoodie.options.parse import parse_write_options
from hoodie.options.values import CatalogKind
from tests.glue_tables import OPTIONS, GlueTables

JOB = {
    "hoodie.datasource.meta.sync.enable": "true",
    "hoodie.meta.sync.client.tool.class": "org.apache.hudi.aws.sync.AwsGlueCatalogSyncTool",
    "hoodie.datasource.hive_sync.database": "lake",
    "hoodie.datasource.meta.sync.glue.metadata_file_listing": "true",
    "hoodie.aws.glue.region": "us-east-1",
}


@pytest.fixture
def tables() -> GlueTables:
    return GlueTables("lake")


@pytest.fixture(autouse=True)
def aws():  # type: ignore[no-untyped-def]
    with mock_aws():
        yield


def table() -> hoodie.HoodieTable:
    return hoodie.create_table(
        f"memory://{secrets.token_hex(8)}/trips",
        {"id": "int64", "city": "string"},
        record_key="id",
        partition_by="city",
    )


def test_a_job_registers_after_its_commits(tables: GlueTables) -> None:
    t = table()
    t.upsert({"id": [1, 2], "city": ["rome", "oslo"]}, options=JOB)
    found = tables.table("trips")
    assert found.partitions == {("rome",): "rome", ("oslo",): "oslo"}
    assert found.parameters["hudi.metadata-listing-enabled"] == "TRUE"
    assert found.parameters["EXTERNAL"] == "TRUE"
    assert not sync(t._context, parse_write_options(JOB).write.hive_sync).changed


def test_it_has_names_of_its_own_for_database_and_table(tables: GlueTables) -> None:
    options = replace(OPTIONS, database="Lake", table="Journeys")
    context = table()._context
    done = sync(context, HiveSyncOptions(catalogs=(CatalogKind.GLUE,), glue=options, database="other"))
    assert (done.database_made, done.tables[0].name) == ("Lake", "Lake.Journeys")
    assert tables.has("journeys")
    assert not sync(context, HiveSyncOptions(catalogs=(CatalogKind.GLUE,), glue=options)).changed


def test_a_failing_catalog_does_not_keep_the_other_from_its_turn(tables: GlueTables) -> None:
    both = HiveSyncOptions(
        catalogs=(CatalogKind.HIVE, CatalogKind.GLUE), servers=(("127.0.0.1", 1),), database="lake", glue=OPTIONS
    )
    with pytest.raises(HiveSyncError, match=r"metastore at 127\.0\.0\.1:1 failed at"):
        sync(table()._context, both)
    assert tables.has("trips")


def test_a_partition_that_glue_refuses_is_named() -> None:
    class Refusing(Glue):
        def _answer(self, call: str, given: object) -> dict[str, object]:
            detail = {"ErrorCode": "InvalidInputException", "ErrorMessage": "too long"}
            return {"Errors": [{"PartitionValues": ["rome"], "ErrorDetail": detail}]}

    registration = Registration("lake", "trips", (), (), "s3://b/t", None, None, None, {}, {})
    with pytest.raises(HiveSyncError, match=r"partition \['rome'\]: InvalidInputException: too long"):
        Refusing(OPTIONS, timeout_s=9).add_partitions(registration, [(("rome",), "s3a://b/t/rome")], 5)


def test_requests_keep_to_the_limits_of_glue_and_addresses_are_those_of_s3() -> None:
    asked: list[tuple[str, int]] = []
    places = set()

    class Counting(Glue):
        def _answer(self, call: str, given: object) -> dict[str, object]:
            (items,) = [value for value in given.values() if isinstance(value, list)]  # type: ignore[attr-defined]
            asked.append((call, len(items)))
            places.update(each["StorageDescriptor"]["Location"] for each in items if "StorageDescriptor" in each)
            return {}

    glue = Counting(OPTIONS, timeout_s=9)
    registration = Registration("lake", "trips", (), (), "s3a://b/t", None, None, None, {}, {})
    many = [((str(n),), "s3a://b/t/x") for n in range(150)]
    glue.add_partitions(registration, many, 1000)
    glue.drop_partitions(registration, [values for values, _ in many[:60]])
    assert [n for call, n in asked if call == "batch_create_partition"] == [100, 50]
    assert [n for call, n in asked if call == "batch_delete_partition"] == [25, 25, 10]
    assert places == {"s3://b/t/x"}


def test_the_command_registers_in_glue(tables: GlueTables, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    t = hoodie.create_table(f"{tmp_path}/trips", {"id": "int64"}, record_key="id")
    assert main(["hive-sync", t.uri, "--glue", "--database", "lake"]) == 0
    assert tables.has("trips")
    assert t.register_in_hive(database="lake", options={"hoodie.datasource.hive_sync.mode": "glue"}).tables


def test_errors_of_aws_are_quoted_by_their_code() -> None:
    assert str(ServiceError("AccessDeniedException", "no" * 999)).startswith("AccessDeniedException: nono")
    assert len(str(ServiceError("x", "no" * 999))) == 300
