"""Delta and Iceberg tables in a bucket become Hudi tables, with hoodie's storage options for all three libraries."""

from __future__ import annotations

from typing import Any

import pytest

import hoodie
from tests.migrated_sources import ROWS, delta_table_at, iceberg_at, rows_of, with_rows
from tests.servers.s3 import S3Server


def source_of(server: S3Server, kind: str) -> tuple[Any, dict[str, Any]]:
    """What `migrate` is given, and how it reaches it."""
    options = dict(server.options)
    if kind == "delta":
        return delta_table_at(server.new_uri(), {**options, "allow_http": "true"}), {"source_options": options}
    properties = {
        "s3.endpoint": server.endpoint,
        "s3.access-key-id": options["aws_access_key_id"],
        "s3.secret-access-key": options["aws_secret_access_key"],
        "s3.region": options["aws_region"],
    }
    table = with_rows(iceberg_at(server.new_uri(), ROWS.schema, ["day"], properties))
    return (table, {}) if kind == "iceberg of a catalog" else (table.location(), {"source_options": options})


@pytest.mark.parametrize(("table_type", "version"), [("COPY_ON_WRITE", 6), ("MERGE_ON_READ", 9)])
@pytest.mark.parametrize("mode", ["in_place", "copy"])
@pytest.mark.parametrize("kind", ["delta", "iceberg", "iceberg of a catalog"])
def test_a_table_in_a_bucket_is_migrated_and_written(
    s3_server: S3Server, kind: str, mode: str, table_type: str, version: int
) -> None:
    source, reached = source_of(s3_server, kind)
    uri, options = s3_server.new_uri(), s3_server.options
    done = hoodie.migrate(
        source,
        uri,
        record_key="id",
        mode=mode,
        table_type=table_type,
        table_version=version,
        storage_options=options,
        **reached,
    )
    assert done.ok
    assert (done.source_rows, done.partition_by) == (30, ("day",))
    table = hoodie.open_table(uri, storage_options=options)
    assert rows_of(table.scan().to_arrow()) == rows_of(ROWS)
    changed = ROWS.slice(3, 4).set_column(2, "n", [[7, 8, 9, 10]])
    expected = sorted(ROWS.slice(7).to_pylist() + ROWS.slice(0, 3).to_pylist() + changed.to_pylist(), key=by_id)
    for change in (lambda: table.upsert(changed), table.compact if table_type == "MERGE_ON_READ" else table.clean):
        change()
        assert rows_of(table.scan().to_arrow()) == expected
    assert table.scan(where="day = 'tue wed' and n > 8").count() == sum(
        row["day"] == "tue wed" and (row["n"] or 0) > 8 for row in expected
    )
    assert table.doctor().findings == ()
    # The source is as it was.
    assert hoodie.migrate(source, s3_server.new_uri(), record_key="id", storage_options=options, **reached).ok


def by_id(row: dict[str, Any]) -> str:
    return str(row["id"])
