"""Look-ups of a few keys: bloom filters say which files may have them, and the rows are those of a whole scan."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import KeyFieldError, OptionError
from hoodie.read import by_keys

FILES = 6


def filled(path, key="text", **create):
    """Six files whose keys lie between each other, so that bounds rule none out."""
    make = {"text": lambda n: f"k{n:04}", "int": lambda n: n}[key]
    table = hoodie.create_table(path, record_key="id", **{"table_type": "MERGE_ON_READ"} | create)
    for part in range(FILES):
        numbers = range(part, 300, FILES)
        table.bulk_insert([{"id": make(n), "day": f"d{n % 2}", "ts": 1, "n": n} for n in numbers])
    return table, make


def numbers(scan):
    return sorted(scan.to_arrow().column("n").to_pylist())


@pytest.mark.parametrize("key", ["text", "int"])
@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("partition_by", [None, "day"])
def test_only_files_that_may_have_a_key_are_read(key, table_type, partition_by, tmp_path):
    create = {"partition_by": partition_by} if partition_by else {}
    table, make = filled(tmp_path / "t", key, table_type=table_type, ordering="ts", **create)
    quoted = repr(make(7))
    for scan in (
        table.lookup([make(7)], ["n"]),
        table.scan(where=f"id = {quoted}"),
        table.scan(where=f"n >= 0 and id in ({quoted})"),
        table.scan(where=[("id", "=", make(7))]),
    ):
        assert numbers(scan) == [7]
        assert len(scan.plan.tasks) == 1
    assert numbers(table.scan(where=f"id = {quoted} or n = 8")) == [7, 8]
    assert numbers(table.scan(where=f"id <> {quoted}")) == [n for n in range(300) if n != 7]
    assert numbers(table.lookup([make(n) for n in (0, 1, 299)] + [make(9999)])) == [0, 1, 299]
    assert table.lookup([make(9999)]).count() == 0


def test_what_logs_and_later_files_hold_is_found(tmp_path):
    table, make = filled(tmp_path / "t", partition_by="day", ordering="ts")
    table.upsert([{"id": make(7), "day": "d1", "ts": 2, "n": 700}, {"id": "new", "day": "d1", "ts": 2, "n": 1}])
    table.delete([{"id": make(8), "day": "d0"}])
    found = table.lookup([make(7), make(8), "new"])
    assert numbers(found) == [1, 700]
    table.schedule_compaction()
    table.upsert([{"id": make(9), "day": "d1", "ts": 3, "n": 900}, {"id": make(8), "day": "d0", "ts": 3, "n": 800}])
    assert numbers(table.lookup([make(8), make(9)])) == [800, 900]
    table.run_compaction()
    assert numbers(table.lookup([make(8), make(9)])) == [800, 900]
    assert numbers(table.scan(where=f"id = '{make(7)}'", as_of=table.history()[FILES - 1])) == [7]
    assert numbers(table.changes(where=f"id = '{make(8)}'")) == [800]


@pytest.mark.parametrize("copies", ["true", "false"])
@pytest.mark.parametrize("block", ["avro", "parquet"])
@pytest.mark.parametrize("version", ["6", "9"])
def test_look_ups_give_the_rows_of_a_whole_scan(tmp_path, version, block, copies):
    options = {"hoodie.python.mor.row.copies": copies, "hoodie.logfile.data.block.format": block}
    create = {"options": {"hoodie.write.table.version": version}}
    table, make = filled(tmp_path / "t", partition_by="day", ordering="ts", **create)
    table.upsert([{"id": make(n), "day": f"d{n % 2}", "ts": 2, "n": -n} for n in range(0, 300, 7)], options)
    table.delete([{"id": make(n), "day": f"d{n % 2}"} for n in range(0, 300, 11)], options)
    table.upsert([{"id": make(n), "day": f"d{n % 2}", "ts": 3, "n": 5000 + n} for n in range(0, 400, 13)], options)
    every = table.scan().to_arrow()
    many = [make(n) for n in range(0, 420, 3)]
    very_many = [make(n) for n in range(5, 2 * by_keys.MAX_KEYS, 2)]  # of which filters of files are not asked
    for keys in (many, very_many, [make(77)], [make(7)], [make(13), make(390)]):
        wanted = every.filter(pc.field("id").isin(keys)).sort_by("id")
        assert table.lookup(keys).to_arrow().sort_by("id").equals(wanted)


def test_footers_are_read_once_for_their_bounds(tmp_path, monkeypatch):
    table, make = filled(tmp_path / "t", table_type="COPY_ON_WRITE")
    monkeypatch.setattr("hoodie.read.file_ranges.statement_of", lambda *_: None)
    opened = []
    ranges = hoodie.read.file_ranges.read_ranges
    monkeypatch.setattr("hoodie.read.file_ranges.read_ranges", lambda *args: opened.append(args[-1]) or ranges(*args))
    for number in (7, 8):
        assert numbers(table.lookup([make(number)])) == [number]
    assert len(opened) == FILES


def test_keys_of_several_columns(tmp_path):
    table = hoodie.create_table(tmp_path / "t", record_key=["a", "b"], partition_by="day")
    for part in range(4):
        table.bulk_insert([{"a": n, "b": "x", "day": "d", "n": n} for n in range(part, 40, 4)])
    found = table.lookup([{"a": 6, "b": "x"}, {"a": 6, "b": "y"}])
    assert numbers(found) == [6]
    assert len(found.plan.tasks) == 1
    with pytest.raises(KeyFieldError, match="'b'"):
        table.lookup([{"a": 6}])


@pytest.mark.parametrize("options", [{"hoodie.populate.meta.fields": "false"}, {"hoodie.index.type": "BUCKET"}])
def test_files_without_filters_are_read(options, tmp_path):
    table, make = filled(tmp_path / "t", table_type="COPY_ON_WRITE", partition_by="day", options=options)
    assert numbers(table.lookup([make(7)])) == [7]


def test_a_damaged_filter_rules_nothing_out(tmp_path):
    table, make = filled(tmp_path / "t", table_type="COPY_ON_WRITE")
    path = tmp_path / "t" / next(task.slice.base.path for task in table.lookup([make(7)]).plan.tasks)
    rows = pq.read_table(path)
    metadata = {**(rows.schema.metadata or {}), b"org.apache.hudi.bloomfilter": b"AAAA"}
    pq.write_table(rows.replace_schema_metadata(metadata), path)
    assert numbers(hoodie.open_table(tmp_path / "t").lookup([make(7)])) == [7]


def test_what_is_no_key(tmp_path):
    with pytest.raises(OptionError, match="empty"):
        hoodie.create_table(tmp_path / "e", record_key="id").lookup(["a"])
    table, _ = filled(tmp_path / "t")
    with pytest.raises(hoodie.SchemaError):
        table.lookup("k0001")
    assert numbers(table.lookup(pa.table({"id": ["k0001"], "more": [1]}))) == [1]
    assert pc.sum(table.lookup([f"k{n:04}" for n in range(250)]).to_arrow().column("n")).as_py() == sum(range(250))


def test_filters_count_in_the_cache_with_what_they_take_in_memory(tmp_path):
    table, make = filled(tmp_path / "t")
    assert numbers(table.lookup([make(7)])) == [7]
    context = table._context
    entries = [(*at, value) for at, (value, _) in context.cache._entries.items()]
    kept = [v for kind, key, v in entries if kind is by_keys._FILTERS and key[0] == context.storage.identity]
    assert len(kept) == FILES
    assert all(0 <= each.size_bytes - each.bloom.rows.nbytes < 64 for each in kept)
