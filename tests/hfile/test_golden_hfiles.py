"""HFiles that Apache Hudi and Apache HBase wrote."""

import base64

import pyarrow as pa
import pytest

from hoodie.format.bloom import parse_bloom
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.hfile.compression import Compression
from hoodie.storage.cache import Cache
from tests.golden_tables import FOLDER
from tests.hfiles import binaries, numbered, opened, scanned

METADATA = "table/.hoodie/metadata/files"
BY_HBASE = {
    "gz_crc32c_bloom_levels": (Compression.GZ, 2),
    "lz4_crc32c": (Compression.LZ4, 1),
    "none_crc32": (Compression.NONE, 1),
    "snappy_crc32c_bloom": (Compression.SNAPPY, 1),
    "tags_and_versions": (Compression.NONE, 1),
    "zstd_null_levels": (Compression.ZSTD, 2),
}


def test_every_file_of_hbase_is_read_here():
    assert {path.stem for path in (FOLDER / "hfiles").glob("*.hfile")} == set(BY_HBASE)


@pytest.mark.parametrize("name", BY_HBASE)
def test_files_of_hbase(name):
    reader = opened((FOLDER / "hfiles" / f"{name}.hfile").read_bytes(), Cache())
    trailer = reader._opened.trailer
    assert (trailer.compression, trailer.data_index_levels) == BY_HBASE[name]
    assert (reader._opened.bloom is not None) == ("bloom" in name)
    pairs = numbered(120)
    assert scanned(reader) == pairs
    assert scanned(reader, b"key 000050", b"key 000060!") == pairs[50:61]
    asked = [*(key for key, _ in pairs), *(key + b"!" for key, _ in pairs)]
    assert [reader.get(key) for key in asked] == [dict(pairs).get(key) for key in asked]
    assert reader.get_many(binaries(asked)).to_pylist() == [dict(pairs).get(key) for key in asked]


@pytest.mark.parametrize("table", ["v6_mdt_cow", "v6_mdt_mor"])
def test_the_base_file_of_a_metadata_table_with_its_bloom_filter(table):
    (path,) = (FOLDER / table / METADATA).glob("*.hfile")
    reader = opened(path.read_bytes())
    ((key, value),) = scanned(reader)
    assert key == b"__all_partitions__"
    assert reader.get(key) == value
    assert reader.info[b"maxRecordKey"] == key
    text = reader.meta("bloomFilter")
    assert text is not None
    bloom = parse_bloom(reader.info[b"bloomFilterTypeCode"].decode(), base64.b64decode(text))
    assert bloom.might_contain(pa.array(["__all_partitions__", "another"])).tolist() == [True, False]


@pytest.mark.parametrize("table", ["v6_mdt_cow", "v6_mdt_mor"])
def test_the_log_blocks_of_a_metadata_table(table):
    found = []
    for path in sorted((FOLDER / table / METADATA).glob(".*.log.*_*")):
        for block in scan_blocks(path.read_bytes()):
            if isinstance(block, LogBlock) and block.kind.name == "HFILE_DATA":
                found.append([key for key, _ in scanned(opened(block.content))])
                assert [opened(block.content).get(key) is not None for key in found[-1]] == [True] * len(found[-1])
    assert found == [[b"__all_partitions__", b"a", b"b"]] * 2 + [[b"__all_partitions__", b"a"]]
