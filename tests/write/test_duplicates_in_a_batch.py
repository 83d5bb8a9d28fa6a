import pyarrow as pa
import pytest

import hoodie


@pytest.mark.parametrize(
    ("operation", "options", "left"),
    [
        ("upsert", {}, 2),
        ("insert", {}, 3),
        ("bulk_insert", {}, 3),
        ("insert", {"hoodie.combine.before.insert": "true"}, 2),
        ("bulk_insert", {"hoodie.combine.before.insert": "true"}, 2),
        ("upsert", {"hoodie.combine.before.upsert": "false"}, 3),
    ],
)
def test_a_batch_is_combined_as_the_option_of_its_operation_says(tmp_path, operation, options, left):
    batch = pa.table({"k": ["a", "a", "b"], "v": [1, 2, 3]})
    table = hoodie.create_table(tmp_path / "t", batch.schema, record_key="k")
    result = getattr(table, operation)(batch, options)
    assert result.inserted == left
    assert table.scan().count() == left
