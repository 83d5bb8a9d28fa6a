"""Rows that a statement makes of stored ones: deletes at the old place, rows at the new one."""

import pyarrow as pa
import pytest

from hoodie.errors import OptionError
from hoodie.keygen.generator import KeyGenerator
from hoodie.model.meta_fields import PARTITION_PATH, RECORD_KEY
from hoodie.model.plans import DELETED
from hoodie.options.values import KeyGeneratorType
from hoodie.write.prepare import placed_rows

BY_ID = KeyGenerator(KeyGeneratorType.SIMPLE, ("id",), ("p",))
GENERATED = KeyGenerator(KeyGeneratorType.SIMPLE, (), ("p",))


def placed(rows, keygen=BY_ID, *, moves=True):
    """The places and values of (stored key, stored path, goes, id, p)."""
    columns = list(zip(*rows, strict=True))
    given = pa.table(dict(zip((RECORD_KEY, PARTITION_PATH, DELETED, "id", "p"), columns, strict=True)))
    places, values = placed_rows(given, given.select(["id", "p"]), keygen, moves=moves, table="t")
    return [
        (place[RECORD_KEY], place[PARTITION_PATH], place[DELETED], value["id"])
        for place, value in zip(places.to_pylist(), values.to_pylist(), strict=True)
    ]


def test_a_delete_keeps_its_place_whatever_its_columns_say():
    assert placed([("1", "a", True, None, None)]) == [("1", "a", True, None)]


def test_a_row_that_stays_and_a_new_one_are_where_their_columns_say():
    assert placed([("1", "a", False, "1", "a"), (None, None, False, "2", "b")]) == [
        ("1", "a", False, "1"),
        ("2", "b", False, "2"),
    ]


def test_a_row_whose_partition_changes_is_a_delete_there_and_a_row_here():
    assert placed([("1", "a", False, "1", "b")]) == [("1", "a", True, "1"), ("1", "b", False, "1")]


def test_where_keys_are_unique_in_the_table_the_write_moves_the_row():
    assert placed([("1", "a", False, "1", "b")], moves=False) == [("1", "b", False, "1")]


def test_a_key_does_not_change():
    with pytest.raises(OptionError, match="would become '2' and is '1'"):
        placed([("1", "a", False, "2", "a")])


def test_generated_keys_stay_and_new_rows_get_others():
    stored, moved, *new = placed(
        [
            ("k_0", "a", False, "1", "a"),
            (None, None, False, "2", "a"),
            (None, None, False, "3", "a"),
            ("k_1", "a", True, None, None),
        ],
        GENERATED,
    )
    assert (stored[:3], moved[:3]) == (("k_1", "a", True), ("k_0", "a", False))
    assert len({row[0] for row in new} | {"k_0", "k_1"}) == 4
