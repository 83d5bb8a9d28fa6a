"""HFiles of ours, read by Apache HBase with its index and bloom filter, and those of its writer, read by ours."""

import random
from collections.abc import Iterator

import pytest

from hoodie.hfile.block import Coding
from hoodie.hfile.checksums import ChecksumKind
from hoodie.hfile.compression import KNOWN
from hoodie.hfile.writer import HFileOptions
from hoodie.storage.cache import Cache
from integration.hfile_peers import HBASE_JARS, HBaseHFiles, hbase_settings, jvm
from integration.hudi_client import ROOT
from tests.hfiles import binaries, hfile, opened, scanned, small

CODINGS = [Coding(codec, kind) for codec in KNOWN for kind in ChecksumKind]


@pytest.fixture(scope="module")
def hbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HBaseHFiles]:
    if not any((ROOT / HBASE_JARS).glob("hbase-server-*.jar")):
        pytest.fail(f"HBase is not in {HBASE_JARS}; `make integration` fetches it", pytrace=False)
    folder = tmp_path_factory.mktemp("hbase")
    with jvm([hbase_settings(folder), str(ROOT / HBASE_JARS / "*")], folder / "jvm.log") as java:
        yield HBaseHFiles(java)


def rows(count: int, seed: int, *, longest_value: int = 200) -> list[tuple[bytes, bytes]]:
    chance = random.Random(seed)
    made = {
        chance.randbytes(chance.randint(1, 300)): chance.randbytes(chance.randint(0, longest_value))
        for _ in range(count)
    }
    return sorted(made.items())


ABSENT = [b"absent %d" % number for number in range(100)]


@pytest.mark.parametrize("coding", CODINGS, ids=str)
@pytest.mark.parametrize("levels", [1, 3])
def test_hbase_reads_ours(hbase, tmp_path, coding, levels):
    pairs = rows(150, 1)
    keys = [key for key, _ in pairs]
    data = hfile(pairs, HFileOptions(block_bytes=1_000, coding=coding) if levels == 1 else small(coding))
    assert (opened(data)._opened.trailer.data_index_levels > 1) == (levels > 1)
    (tmp_path / "ours.hfile").write_bytes(data)
    answer = hbase.read(tmp_path / "ours.hfile", keys + ABSENT)
    assert answer.pairs == pairs
    assert answer.found == [True] * len(keys) + [False] * len(ABSENT)
    assert all(answer.let_in[: len(keys)])
    assert sum(answer.let_in[len(keys) :]) < 20
    assert answer.middle in keys[len(keys) // 4 : -len(keys) // 4]


@pytest.mark.parametrize("codec", KNOWN)
def test_hbase_reads_our_large_values_and_empty_files(hbase, tmp_path, codec):
    for number, pairs in enumerate(([], rows(6, 2, longest_value=1_000_000), [(b"k" * 32_767, bytes(700_000))])):
        path = tmp_path / f"{number}.hfile"
        path.write_bytes(hfile(pairs, HFileOptions(coding=Coding(codec))))
        assert hbase.read(path, []).pairs == pairs


@pytest.mark.parametrize("bloom", [True, False])
@pytest.mark.parametrize("index_bytes", [300, 131_072])
@pytest.mark.parametrize("checksum", ["NULL", "CRC32", "CRC32C"])
@pytest.mark.parametrize("codec", KNOWN)
def test_we_read_hbases(hbase, tmp_path, codec, checksum, index_bytes, bloom):
    pairs = rows(150, 3)
    path = tmp_path / "theirs.hfile"
    stored = {"codec": codec.name, "checksum": checksum, "block_bytes": 1_000, "index_bytes": index_bytes}
    hbase.write(path, pairs, bloom=bloom, **stored)
    reader = opened(path.read_bytes(), Cache())
    assert (reader._opened.bloom is not None) == bloom
    assert scanned(reader) == pairs
    asked = [key for key, _ in pairs] + ABSENT
    held = dict(pairs)
    assert [reader.get(key) for key in asked] == [held.get(key) for key in asked]
    assert reader.get_many(binaries(asked)).to_pylist() == [held.get(key) for key in asked]


@pytest.mark.parametrize("codec", KNOWN)
def test_we_read_large_values_of_hbase(hbase, tmp_path, codec):
    """Its codecs cut a block that is larger than their buffer into pieces of one frame."""
    pairs = [*rows(5, 4, longest_value=1_000_000), (b"\xff", bytes(600_000))]
    stored = {"codec": codec.name, "checksum": "CRC32C", "block_bytes": 65_536, "index_bytes": 131_072}
    hbase.write(tmp_path / "theirs.hfile", pairs, bloom=False, **stored)
    assert scanned(opened((tmp_path / "theirs.hfile").read_bytes())) == pairs
