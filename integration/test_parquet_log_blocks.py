"""Parquet data blocks in log files: Hudi and hudi-rs read ours, Hudi compacts them and goes on; we read those of Hudi."""

from collections import Counter

import pyarrow as pa
import pytest

import hoodie
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.model.enums import BlockKind
from hoodie.model.meta_fields import META_COLUMNS
from integration.peer_defects import hudi_rs_defects, with_decoded_regions
from integration.tables import BUILDERS, TYPES, each_once, trips, typed
from integration.turns import Turns
from integration.views import View, by_hudi, by_rust, differences, ours
from tests.rows import without

PARQUET = {"hoodie.logfile.data.block.format": "parquet"}
AVRO = {"hoodie.logfile.data.block.format": "avro"}
WITH_LOGS = [name for name in BUILDERS if name.startswith("mor")]


@pytest.fixture(scope="module", autouse=True)
def parquet_by_default(tmp_path_factory):
    """Our writes that say nothing else."""
    folder = tmp_path_factory.mktemp("conf")
    (folder / "hoodie-defaults.conf").write_text("".join(f"{key}={value}\n" for key, value in PARQUET.items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOODIE_CONF_DIR", str(folder))
        yield


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    return each_once(tmp_path_factory)


def block_kinds(path):
    """How many blocks of each kind the log files hold."""
    logs = [file for file in path.rglob(".*.log.*") if ".hoodie" not in file.parts and file.suffix != ".crc"]
    blocks = [block for log in logs for block in scan_blocks(log.read_bytes())]
    return Counter(block.kind for block in blocks if isinstance(block, LogBlock))


@pytest.mark.parametrize("name", WITH_LOGS)
def test_every_reader_sees_the_rows_that_we_wrote(hudi, written, name):
    table = written(name)
    kinds = block_kinds(table.path)
    assert kinds[BlockKind.PARQUET_DATA]
    assert not kinds[BlockKind.AVRO_DATA]
    for instant, rows in table.states.items():
        assert without(ours(table.path, View(as_of=instant)), *META_COLUMNS) == rows
    read = by_hudi(hudi)
    if name.endswith("composite_hive"):
        read = with_decoded_regions(read)
    assert differences(table.path, ours, read) == []
    assert differences(table.path, ours, by_rust, skip=hudi_rs_defects(name, table)) == []


@pytest.mark.parametrize("hudi_s", [PARQUET, AVRO], ids=["hudi-parquet", "hudi-avro"])
def test_in_turns_with_hudi(hudi, tmp_path, hudi_s):
    turns = Turns(hudi, tmp_path / "trips", "MERGE_ON_READ", more=hudi_s)
    turns.create()
    turns.we_upsert(trips(range(20), fare=1, ts=10))
    turns.we_upsert(trips([1, 2, 20, 21], fare=2, ts=20))
    turns.hudi_upserts(trips([1, 3, 20, 22], fare=3, ts=30))
    kinds = block_kinds(turns.path)
    assert kinds[BlockKind.PARQUET_DATA]
    assert bool(kinds[BlockKind.AVRO_DATA]) == (hudi_s is AVRO)
    turns.we_upsert(trips([3, 4, 22, 23], fare=4, ts=40) + trips([5], fare=4, ts=1))
    turns.hudi_deletes(trips([4, 23], fare=0, ts=50))
    turns.hudi_upserts_and_cleans_up(trips([6, 24], fare=5, ts=50))
    turns.we_upsert(trips([6, 7, 24], fare=6, ts=60))
    turns.table.upsert(trips([7, 8], fare=7, ts=70), AVRO)
    turns.check("we upsert in Avro")
    turns.we_delete(trips([8], fare=0, ts=0))
    turns.we_compact()
    turns.hudi_upserts(trips([7, 25, 26], fare=8, ts=80))
    turns.we_upsert(trips([26, 27], fare=9, ts=90))


def by_texts(values, what):
    return pa.table({"id": [f"k{n:02d}" for n in range(len(values))], "what": [what] * len(values), "o": values})


@pytest.mark.parametrize("writer", ["hudi", "ours"])
def test_where_texts_order_hudi_misreads_its_parquet_blocks_and_ours_are_avro(hudi, tmp_path, writer):
    """When this fails for Hudi's blocks, a release of it got better: `WriteOptions.for_text_ordering` can go."""
    path, count = tmp_path / "t", 40
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.precombine.field": "o",
        "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
        **PARQUET,
    }
    stored = [f"{37 * n % 100:03d}" for n in range(count)]
    newer = [f"{53 * n % 100:03d}" for n in range(count)]
    hudi.write(path, by_texts(stored, "stored"), options, mode="overwrite")
    if writer == "hudi":
        hudi.write(path, by_texts(newer, "newer"), options)
    else:
        hoodie.open_table(path).upsert(by_texts(newer, "newer"), PARQUET)
    expected = [("newer" if new >= old else "stored") for old, new in zip(stored, newer, strict=True)]
    assert [row["what"] for row in ours(path, View())] == expected
    assert [row["what"] for row in by_rust(path, View())] == expected
    assert bool(block_kinds(path)[BlockKind.PARQUET_DATA]) == (writer == "hudi")
    assert ([row["what"] for row in by_hudi(hudi)(path, View())] == expected) == (writer == "ours")


def test_hudi_compacts_records_of_every_type(hudi, written):
    table = written("mor_all_types")
    before = without(ours(table.path, View()), *META_COLUMNS)
    hudi.run_compaction(table.path, op="scheduleAndExecute", options={"hoodie.compact.inline.max.delta.commits": "1"})
    assert hoodie.open_table(table.path).timeline.commits[-1].action == "commit"
    assert without(ours(table.path, View("read_optimized")), *META_COLUMNS) == before
    assert differences(table.path, ours, by_hudi(hudi)) == []


def full_lists(n, *, ts, **more):
    """A row of every type; Hudi's writer of Parquet fails on lists with null elements, in base files too."""
    row = typed(n, ts=ts) | more
    if row["items"] is None:
        return row
    inside = {"x": n, "deep": {"y": ["a", "ü😀"]}}
    return row | {"items": [1, n], "inside": inside, "many": [inside, {"x": None, "deep": None}]}


@pytest.mark.parametrize("version", ["6", "9"])
def test_we_read_those_of_hudi(hudi, tmp_path, version):
    path = tmp_path / "t"
    options = {
        "hoodie.table.name": "t",
        "hoodie.write.table.version": version,
        "hoodie.datasource.write.table.type": "MERGE_ON_READ",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "part",
        "hoodie.datasource.write.precombine.field": "ts",
        **PARQUET,
    }
    turns = [
        ("upsert", [full_lists(n, ts=1) for n in range(12)]),
        ("upsert", [full_lists(n, ts=2, text="changed") for n in (0, 1, 2, 5)] + [full_lists(50, ts=1)]),
        ("delete", [full_lists(3, ts=3)]),
        ("upsert", [full_lists(n, ts=4) for n in (1, 3)] + [full_lists(2, ts=1, text="late")]),
    ]
    for number, (operation, rows) in enumerate(turns):
        given = {"hoodie.datasource.write.operation": operation}
        batch = pa.Table.from_pylist(rows, schema=TYPES)
        hudi.write(path, batch, options | given, mode="append" if number else "overwrite")
    kinds = block_kinds(path)
    assert kinds[BlockKind.PARQUET_DATA] >= 3
    assert not kinds[BlockKind.AVRO_DATA]
    assert differences(path, ours, by_hudi(hudi)) == []
    if version == "6":
        table = hoodie.open_table(path)
        before = without(ours(path, View()), *META_COLUMNS)
        assert table.compact()
        assert without(ours(path, View("read_optimized")), *META_COLUMNS) == before
