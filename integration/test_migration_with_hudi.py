"""Tables that were migrated: Apache Hudi and hudi-rs read each row of the source, and Hudi writes on."""

import pytest

import hoodie
from hoodie.model.meta_fields import META_COLUMNS
from integration import rust_peer
from tests.migrated_sources import ROWS, delta_table, iceberg_table, parquet_folder
from tests.rows import rows_of, without

KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "day",
    "hoodie.table.name": "t",
}


def of_format(format, folder):
    make = {"parquet": parquet_folder, "delta": delta_table}
    return make[format](folder / "source") if format in make else iceberg_table(folder)


@pytest.mark.parametrize(
    ("format", "kind", "version"),
    [("parquet", "COPY_ON_WRITE", 6), ("delta", "MERGE_ON_READ", 9), ("iceberg", "COPY_ON_WRITE", 9)],
)
def test_a_copied_table_is_read_row_for_row_and_written_by_hudi(hudi, tmp_path, format, kind, version):
    target = tmp_path / "t"
    assert hoodie.migrate(
        of_format(format, tmp_path), target, record_key="id", table_type=kind, table_version=version, step_bytes=2000
    ).ok
    for rows in (hudi.read(target).rows, rust_peer.read(target)):
        assert without(rows, *META_COLUMNS) == rows_of(ROWS)
    changed = ROWS.slice(0, 2).set_column(2, "n", [[100, 101]])
    hudi.write(
        target, changed, KEYS | {"hoodie.datasource.write.table.type": kind, "hoodie.write.table.version": str(version)}
    )
    expected = without(rows_of(ROWS.slice(2)) + rows_of(changed))
    assert without(hudi.read(target).rows, *META_COLUMNS) == expected
    assert without(rows_of(hoodie.open_table(target).scan().to_arrow())) == expected
