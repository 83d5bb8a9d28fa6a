"""What Spark has no type for takes the table's, and rows of every type come back as they were read."""

from decimal import Decimal

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.meta_fields import META_COLUMNS
from tests.every_type import ROWS

pytestmark = pytest.mark.spark

PLACES = pytest.mark.parametrize("driver_max_bytes", [0, 67108864], ids=["tasks", "driver"])
KINDS = pytest.mark.parametrize("kind", ["COPY_ON_WRITE", "MERGE_ON_READ"])


def save(df, path, driver_max_bytes):
    options = {"hoodie.datasource.write.recordkey.field": "id", "hoodie.python.driver.max.bytes": str(driver_max_bytes)}
    df.write.format("hoodie").options(**options).mode("append").save(str(path))


@KINDS
@PLACES
def test_a_table_takes_its_own_rows_from_spark(enabled, tmp_path, kind, driver_max_bytes):
    table = hoodie.create_table(tmp_path / "t", ROWS.schema, record_key="id", table_type=kind)
    table.upsert(ROWS)
    before = table.to_arrow().sort_by("id")
    save(enabled.read.format("hoodie").load(str(tmp_path / "t")).drop(*META_COLUMNS), tmp_path / "t", driver_max_bytes)
    assert table.to_arrow().sort_by("id").equals(before)
    assert len(table.history()) == 2


SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("l", pa.list_(pa.int32())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("s", pa.struct([("x", pa.string()), ("y", pa.list_(pa.binary()))])),
        ("d", pa.decimal128(10, 2)),
        ("v", pa.date32()),
    ]
)
QUERY = """
    SELECT 1L id, array() l, map() m, named_struct('x', null, 'y', array()) s, 1.5BD d, null v
"""
OTHERS = """
    SELECT 1L id, array(null) l, map('k', null) m, named_struct('x', 'a', 'y', null) s, 1.2500BD d, null v
"""


@KINDS
@PLACES
def test_what_has_no_type_in_spark_takes_the_tables(enabled, tmp_path, kind, driver_max_bytes):
    table = hoodie.create_table(tmp_path / "t", SCHEMA, record_key="id", table_type=kind)
    save(enabled.sql(QUERY), tmp_path / "t", driver_max_bytes)
    first = {"id": 1, "l": [], "m": [], "s": {"x": None, "y": []}, "d": Decimal("1.50"), "v": None}
    assert table.to_arrow().to_pylist() == [first]
    save(enabled.sql(OTHERS), tmp_path / "t", driver_max_bytes)
    second = {"id": 1, "l": [None], "m": [("k", None)], "s": {"x": "a", "y": None}, "d": Decimal("1.25"), "v": None}
    assert table.to_arrow().to_pylist() == [second]
    assert table.schema == SCHEMA.set(1, table.schema.field("l")).set(3, table.schema.field("s"))
    with pytest.raises(Exception, match=r"column 'd' .* holds 1.2345, which has more digits than that type"):
        save(
            enabled.sql("SELECT 1L id, array() l, map() m, null s, 1.2345BD d, null v"),
            tmp_path / "t",
            driver_max_bytes,
        )
    with pytest.raises(Exception, match=r"cannot start a table: l.element; cast them"):
        save(enabled.sql("SELECT 1L id, array() l"), tmp_path / "new", driver_max_bytes)
