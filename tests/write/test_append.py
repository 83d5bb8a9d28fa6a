"""Appends: rows as they are, into files of their own, whatever the options of the table say of keys."""

import pytest

import hoodie
from hoodie.errors import SchemaError
from hoodie.model.enums import WriteOperation

KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
LOOKS = [
    {},
    {"hoodie.datasource.write.insert.drop.duplicates": "true", "hoodie.combine.before.insert": "true"},
    {"hoodie.datasource.insert.dup.policy": "fail"},
    {"hoodie.merge.allow.duplicate.on.inserts": "false"},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", LOOKS)
def test_no_key_is_looked_up_and_no_file_rewritten(tmp_path, kind, options):
    table = hoodie.create_table(tmp_path / "t", record_key="id", partition_by="p", table_type=kind, options=options)
    table.upsert({"id": ["a", "b"], "p": ["x", "y"], "n": [1, 2]})
    before = {each.base.name for each in table.files()}
    result = table.append({"id": ["a", "a", "c"], "p": ["x", "x", "x"], "n": [7, 8, 9]})
    assert (result.operation, result.inserted, result.updated, result.files) == (WriteOperation.BULK_INSERT, 3, 0, 1)
    assert result.opened == 0
    assert before < {each.base.name for each in table.files()}
    assert sorted(table.scan(columns=["id", "n"]).to_arrow().to_pydict()["n"]) == [1, 2, 7, 8, 9]
    assert table.history()[-1].operation is WriteOperation.BULK_INSERT
    table.cluster()
    assert len(table.files()) == 2
    assert sorted(table.scan().to_arrow()["n"].to_pylist()) == [1, 2, 7, 8, 9]


def test_nothing_to_append_and_rows_that_do_not_fit(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key="id")
    assert table.append({"id": [1], "n": [1]}).inserted == 1
    assert table.append(table.scan().to_arrow().slice(0, 0)).instant is None
    with pytest.raises(SchemaError):
        table.append({"id": ["text"], "n": [1]})


def test_rows_of_a_bucket_go_to_its_bucket(tmp_path):
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table = hoodie.create_table(tmp_path / "t", record_key="id", options=options)
    table.append({"id": list("abcdef"), "n": [1] * 6})
    table.append({"id": list("ghij"), "n": [2] * 4})
    assert table.upsert({"id": list("aj"), "n": [3, 3]}).updated == 2
    assert table.scan().count() == 10
