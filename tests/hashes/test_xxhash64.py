"""The hash by which Apache Hudi names things after a table's path."""

import pytest

from hoodie.hashes.xxhash64 import xxhash64


def test_the_place_of_a_table_is_the_one_of_apache_hudi():
    assert f"{xxhash64('s3://my-bucket/my_lake/my_table'):016X}" == "C0E15D0CE1AD11CC"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("abcd", 0xDE0327B0D25D92CC),
        ("0123456789abcdef" * 4 + "0123456789abc", 0xD0A6B2FD482E7746),
    ],
)
def test_values_that_are_published_without_a_seed(data, value):
    assert xxhash64(data, 0) == value
