"""The hash by which Apache Hudi names things after a table's path."""

from hoodie.hashes.xxhash64 import xxhash64


def test_the_place_of_a_table_is_the_one_of_apache_hudi():
    assert f"{xxhash64('s3://my-bucket/my_lake/my_table'):016X}" == "C0E15D0CE1AD11CC"
