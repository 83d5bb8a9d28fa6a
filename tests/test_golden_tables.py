from datetime import UTC, datetime

import pytest

from tests.golden_tables import golden_names


def test_all_golden_tables_are_there():
    assert len(golden_names()) == 26


@pytest.mark.parametrize("name", golden_names())
def test_every_golden_table_copies_whole(golden, name):
    table = golden(name)
    assert table.expected["name"] == name
    assert table.expected["snapshot"]
    for row in table.expected["snapshot"]:
        folder = table.path / row["_hoodie_partition_path"]
        assert list(folder.glob(f"*{row['_hoodie_file_name']}*"))


def test_a_copy_is_private(golden, tmp_path):
    table = golden("v6_cow_simple")
    assert table.path.is_relative_to(tmp_path)
    assert len(table.expected["snapshot"]) == 38
    (table.path / ".hoodie" / "hoodie.properties").write_text("changed")


def test_a_completed_instant_is_as_old_as_its_name_says(golden):
    timeline = golden("v6_mor_pending_compaction").path / ".hoodie"

    def modified(name):
        return datetime.fromtimestamp((timeline / name).stat().st_mtime, UTC).strftime("%Y%m%d%H%M%S%f")[:17]

    assert modified("20261121074937335.deltacommit") == "20261121074937336"
    assert modified("20261121074937335.deltacommit.requested") == "20261121074937335"
    assert modified("20261121074942289.compaction.requested") == "20261121074942289"
