"""Keys of a metadata table's records, as Apache Hudi wrote them in public tables."""

import numpy as np
import pyarrow as pa
import pytest

from hoodie.metadata.keys import (
    BLOOM_FILTERS,
    RECORD_INDEX,
    bloom_keys,
    group_number,
    group_numbers,
    identifier_of,
    partition_of,
    stats_keys,
)

PATH = "part_col=A/0f8308df-3c45-4eb8-8954-294eb01534b5-0_0-40-94_20250521133208877.parquet"


def test_keys_of_statistics_are_hashes_of_column_partition_and_file():
    (key,) = stats_keys([PATH], "col_smallint").to_pylist()
    assert key == "/NrV3FYrl+Q=BbAs5Q33O70=bBrd0Q75i8skVNOGLeIgmw=="
    assert bloom_keys([PATH]).to_pylist() == ["BbAs5Q33O70=bBrd0Q75i8skVNOGLeIgmw=="]


def test_keys_are_spread_by_their_java_hash_codes():
    keys = pa.array(["uuid1", "uuid2", "uuid3", "polygenelubricants", "🔑"])
    # The fourth has the least integer as its hash code, whose absolute value Java does not know.
    assert group_numbers(keys, 10).tolist()[:4] == [8, 9, 0, 8]
    assert group_numbers(keys, 1).tolist() == [0] * 5
    assert group_numbers(keys[:0], 4).dtype == np.int64


@pytest.mark.parametrize(
    ("file_id", "number"),
    [
        ("record-index-0000-0", 0),
        ("record-index-0123-0", 123),
        ("record-index-12345-0", 12345),
        ("record-index-0001", 1),
        ("record-index-part-0001-0", None),
        ("record-index-1-0", None),
        ("files-0000-0", None),
    ],
)
def test_numbers_of_file_groups_are_in_their_ids(file_id, number):
    assert group_number(file_id, RECORD_INDEX) == number
    assert group_number("bloom-filters-0003-0", BLOOM_FILTERS) == 3


def test_a_table_without_partitions_has_a_name_for_its_folder():
    assert (identifier_of(""), identifier_of("a/b")) == (".", "a/b")
    assert (partition_of("."), partition_of("a/b")) == ("", "a/b")
