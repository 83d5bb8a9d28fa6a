"""HFiles of ours, read by Apache Hudi's own reader, and those of its writer, read by ours."""

import base64
import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from hoodie.format.bloom import build_bloom
from hoodie.hfile.block import Coding
from hoodie.hfile.checksums import ChecksumKind
from hoodie.hfile.compression import Compression
from hoodie.hfile.writer import HFileOptions
from hoodie.storage.cache import Cache
from integration.conftest import BUNDLE, PYTHON
from integration.hfile_peers import HudiHFiles, jvm
from integration.hudi_client import ROOT
from tests.hfiles import binaries, hfile, opened, scanned, small

FOUND, IN_RANGE, AT_END = 0, 1, 2
CODINGS = [Coding(codec, kind) for codec in (Compression.NONE, Compression.GZ) for kind in ChecksumKind]


@pytest.fixture(scope="module")
def hudi_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HudiHFiles]:
    bundle, jars = ROOT / BUNDLE, (ROOT / PYTHON).parents[1].glob("lib/python*/site-packages/pyspark/jars/*.jar")
    if not bundle.exists():
        pytest.fail(f"{bundle} is not there; `make integration` makes it", pytrace=False)
    with jvm([str(bundle), *map(str, jars)], tmp_path_factory.mktemp("hudi-hfiles") / "jvm.log") as java:
        yield HudiHFiles(java)


def rows(count: int, longest_key: int, seed: int) -> list[tuple[str, bytes]]:
    """Sorted text keys of many lengths."""
    chance = random.Random(seed)
    made = {
        f"{chance.randrange(10**9):0{chance.randint(4, longest_key)}d}é": chance.randbytes(chance.randrange(200))
        for _ in range(count)
    }
    return sorted(made.items(), key=lambda pair: pair[0].encode())


def in_bytes(pairs: list[tuple[str, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(key.encode(), value) for key, value in pairs]


@pytest.mark.parametrize("longest_key", [40, 300])
@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_hudi_reads_ours(hudi_files, coding, longest_key):
    pairs = in_bytes(rows(400, longest_key, 1))
    for options in (small(coding), HFileOptions(coding=coding)):
        assert hudi_files.read(hfile(pairs, options)) == pairs
    assert hudi_files.read(hfile([], HFileOptions(coding=coding))) == []


def test_hudi_seeks_keys_and_prefixes_in_ours(hudi_files):
    pairs = [(f"part-{number % 26:02d}/{number:05d}".encode(), b"%d" % number) for number in range(500)]
    pairs.sort()
    data = hfile(pairs, small(Coding()))
    asked = ["part-03/00003", "part-07/", "part-07/00033x", "part-25/99999"]
    (exact, first), (_, before), (_, between), (end, none) = hudi_files.seek(data, asked)
    assert (exact, first) == (FOUND, (b"part-03/00003", b"3"))
    # The reader stands on the last key in front of one that is not there, and goes on from it.
    assert before == max(pair for pair in pairs if pair[0] < b"part-07/")
    assert between == (b"part-07/00033", b"33")
    assert (end, none) == (AT_END, None)


@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_hudi_reads_our_meta_blocks_and_its_bloom_filter_in_one(hudi_files, coding):
    keys = [f"key {number}" for number in range(300)]
    bloom = build_bloom("DYNAMIC_V0", pa.array(keys), num_entries=300, fpp=1e-6, max_entries=1_000)
    text = base64.b64encode(bloom.to_bytes())
    pairs = in_bytes([(key, b"") for key in sorted(keys)])
    data = hfile(pairs, small(coding), metas={"bloomFilter": text}, infos={b"bloomFilterTypeCode": b"DYNAMIC_V0"})
    stored = hudi_files.meta(data, "bloomFilter")
    assert stored == text
    assert hudi_files.meta(data, "other") is None
    assert hudi_files.info(data, "bloomFilterTypeCode") == b"DYNAMIC_V0"
    assert all(hudi_files.bloom_lets_in("DYNAMIC_V0", stored.decode(), keys[::9]))
    assert not any(hudi_files.bloom_lets_in("DYNAMIC_V0", stored.decode(), ["key x", "key 300"]))


@pytest.mark.parametrize("longest_key", [40, 120, 300])
@pytest.mark.parametrize("codec", ["NONE", "GZIP"])
def test_we_read_hudis(hudi_files, codec, longest_key):
    pairs = rows(400, longest_key, 2)
    reader = opened(hudi_files.write(pairs, codec=codec, block_bytes=2_000, meta=b"bits"), Cache())
    assert scanned(reader) == in_bytes(pairs)
    assert reader.get_many(binaries(key for key, _ in in_bytes(pairs))).to_pylist() == [value for _, value in pairs]
    assert all(reader.get(key) == value for key, value in in_bytes(pairs)[::5])
    assert reader.get(b"absent") is None
    assert reader.meta("bloomFilter") == b"bits"
    assert reader.info[b"schema"] == b"{}"
