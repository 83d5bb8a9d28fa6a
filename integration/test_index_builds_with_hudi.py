"""Indexes that we build for an existing table are read, believed and kept up by Apache Hudi; those that it drops are gone for us."""

import pytest

import hoodie
from integration.make_goldens import OWN_DEFAULTS, rows
from integration.metadata_tables import check
from tests.effort import soak_but
from tests.rows import rows_of

QUIET = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false", "hoodie.compact.inline": "false"}
NAMES = ("column_stats", "bloom_filters", "record_index")
ITS = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
    "hoodie.metadata.record.index.enable": "true",
}


@pytest.mark.parametrize("table_type", soak_but(["MERGE_ON_READ"], ["COPY_ON_WRITE", "MERGE_ON_READ"]))
def test_what_we_built_beside_its_writes(hudi, tmp_path, table_type):
    path, name = tmp_path / "table", f"built_{table_type.lower()}"
    hudi_options = OWN_DEFAULTS | {"hoodie.table.name": "table", "hoodie.datasource.write.table.type": table_type}
    hudi.write(path, rows(range(30), turn=1), hudi_options | {"hoodie.metadata.enable": "false"}, mode="overwrite")
    table = hoodie.open_table(path, options=QUIET)
    table.upsert(rows(range(20, 40), turn=2))
    for index in NAMES:
        assert table.build_index(index)
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")

    def checked():
        check(path)
        for each in hoodie.open_table(path).config.metadata_partitions:
            assert hoodie.open_table(path).index(each).check()
        assert hudi.sql(f"CALL validate_metadata_table_files(table => '{name}')").rows == []
        hudi.sql(f"REFRESH TABLE {name}")
        for condition in ("id = 'k001'", "qty > 230", "id in ('k003', 'k038')"):
            found = hudi.sql(f"SELECT id, name, qty, price, ts, part FROM {name} WHERE {condition}").rows
            assert found == rows_of(hoodie.open_table(path).scan(where=condition).to_arrow()), condition

    checked()
    for turn in (3, 5):
        hudi.write(
            path, rows(range(turn, turn + 30), turn=turn), hudi_options | ITS | {"hoodie.index.type": "RECORD_INDEX"}
        )
        checked()
        hoodie.open_table(path, options=QUIET).upsert(rows(range(turn + 20, turn + 40), turn=turn + 1))
        checked()
    assert set(hoodie.open_table(path).config.metadata_partitions) >= {*NAMES, "files"}
    assert hoodie.open_table(path).drop_index("bloom_filters")
    hudi.write(
        path, rows(range(4), turn=7), hudi_options | ITS | {"hoodie.metadata.index.bloom.filter.enable": "false"}
    )
    checked()
