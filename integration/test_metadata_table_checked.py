"""Apache Hudi's own check of a metadata table finds nothing after each thing that we do to the table, and its queries leave no row out
by what we have put into it.
"""

import hoodie
from integration.make_goldens import OWN_DEFAULTS, rows
from integration.metadata_tables import check
from integration.turns import of_types_and_versions
from tests.rows import rows_of

INDEXES = {
    "hoodie.metadata.enable": "true",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.bloom.filter.enable": "true",
}
OURS = INDEXES | {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
}
CONDITIONS = (
    "qty > 230",
    "name = 'name8'",
    "name is null",
    "price < 3",
    "id in ('k001', 'k030')",
    "part = 'b' and ts = 2",
)


@of_types_and_versions(("COPY_ON_WRITE", "9"), ("MERGE_ON_READ", "6"))
def test_every_action_of_ours(hudi, tmp_path, table_type, version):
    path, name = tmp_path / "table", f"checked_{table_type.lower()}_{version}"
    in_version = {"hoodie.write.table.version": version}
    hoodie.create_table(
        path,
        rows([0], turn=0).schema,
        record_key="id",
        partition_by="part",
        ordering="ts",
        table_type=table_type,
        options=in_version,
    )
    hudi.sql(f"CREATE TABLE {name} USING hudi LOCATION '{path}'")

    def table():
        return hoodie.open_table(path, options=OURS)

    def checked():
        check(path, keys=False)
        assert hudi.sql(f"CALL validate_metadata_table_files(table => '{name}')").rows == []

    def asked():
        hudi.sql(f"REFRESH TABLE {name}")
        for condition in CONDITIONS:
            found = hudi.sql(f"SELECT id, name, qty, price, ts, part FROM {name} WHERE {condition}").rows
            assert found == rows_of(table().scan(where=condition).to_arrow()), condition

    table().upsert(rows(range(30), turn=1))
    table().upsert(rows(range(20, 40), turn=2))
    table().delete(rows([3, 4], turn=3))
    checked()
    asked()
    if table_type == "MERGE_ON_READ":
        table().upsert(rows(range(25), turn=4))
        assert table().compact_logs(blocks=2)
        checked()
        asked()
        assert table().compact()
    assert table().cluster(sort_by="qty")
    checked()
    saved = table().savepoint()
    table().upsert(rows(range(9), turn=5))
    table().rollback(table().timeline.commits[-1].time)
    checked()
    table().insert_overwrite(rows([50, 53], turn=6))
    table().delete_partitions(["b"])
    checked()
    table().restore(saved)
    checked()
    table().drop_savepoint(saved)
    for turn in range(7, 12):
        table().upsert(rows(range(turn, turn + 4), turn=turn))
    table().clean(retain_commits=1)
    table().archive(min_commits=3)
    checked()
    asked()
    partitions = hudi.sql(f"CALL show_metadata_table_partitions(table => '{name}')").rows
    assert sorted(row["partition"] for row in partitions) == ["a", "b", "c"]
    files = hudi.sql(f"CALL show_metadata_table_files(table => '{name}', partition => 'a')").rows
    there = {
        each.name
        for each in (path / "a").iterdir()
        if not each.name.startswith(".hoodie") and not each.name.endswith(".crc")
    }
    assert {row["file_path"].rpartition("/")[2] for row in files} == there
    hudi.sql(f"CALL show_metadata_table_stats(table => '{name}')")
    # Apache Hudi goes on with all of it.
    more = (
        OWN_DEFAULTS
        | INDEXES
        | in_version
        | {"hoodie.table.name": "table", "hoodie.datasource.write.table.type": table_type}
    )
    for turn in (12, 13):
        hudi.write(path, rows(range(turn, turn + 20), turn=turn), more)
        checked()
        table().upsert(rows(range(turn - 5, turn + 2), turn=turn))
        checked()
    asked()
    by_hudi = () if version == "6" else ("partition_stats",)
    assert hoodie.open_table(path).config.metadata_partitions == ("bloom_filters", "column_stats", "files", *by_hudi)
