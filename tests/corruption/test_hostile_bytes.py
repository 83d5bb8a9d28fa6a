"""Files made to harm their reader: bombs, endless nesting, lengths that nothing backs, names of classes to run.

Each test is named by its attack. None may take more than some seconds or 100 MB.
"""

import ast
import io
import json
import re
import struct
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import CorruptFileError, HoodieError, OptionError, UnsupportedTableError
from hoodie.format.avro_schema import MAX_DEPTH, parse_schema
from hoodie.format.bloom import parse_bloom
from hoodie.format.commit_avro import decode_commit_file
from hoodie.format.log_block import encode_block, scan_blocks
from hoodie.format.log_content import decode_avro_data, decode_deletes
from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.format.plan_avro import decode_compaction_plan
from hoodie.format.properties import parse_properties_file
from hoodie.model.enums import Action, BlockKind, HeaderKey
from hoodie.options.table import parse_table_config
from hoodie.read.where import parse_filter

SECONDS = 20.0  # generous: the machines are shared. What this catches takes minutes, or for ever
MEMORY_BYTES = 100 << 20
PATH = "t/.hoodie/20260101000000000.commit"


@contextmanager
def bounded() -> Iterator[None]:
    began = time.process_time()
    tracemalloc.start()
    arrow_before = pa.total_allocated_bytes()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < MEMORY_BYTES
        assert pa.total_allocated_bytes() - arrow_before < MEMORY_BYTES
    finally:
        tracemalloc.stop()
    assert time.process_time() - began < SECONDS


def refused(act: Callable[[], object]) -> None:
    with bounded(), pytest.raises(HoodieError) as caught:
        act()
    assert len(str(caught.value)) < 2_000


# --- JSON ---------------------------------------------------------------------------------------------------------


def commit(text: str | bytes) -> Callable[[], object]:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda: decode_commit_file(data, Action.COMMIT, path=PATH)


STAT = '{"fileId":"f-0","path":"p/f-0_0-1-2_20260101000000000.parquet","numWrites":1}'
WHOLE = '{"partitionToWriteStats":{"p":[%s]}}'
JSON_BOMBS = {
    "arrays in arrays": "[" * 1_000_000,
    "objects in objects": '{"a":' * 1_000_000,
    "a number of a million digits": WHOLE % STAT.replace(":1}", f":{'9' * 1_000_000}}}"),
    "a number of 100 digits": WHOLE % STAT.replace(":1}", f":{'9' * 100}}}"),
    "a number beyond 64 bits": WHOLE % STAT.replace(":1}", f":{1 << 63}}}"),
    "an exponent": WHOLE % STAT.replace(":1}", ":1e999}"),
    "no number": WHOLE % STAT.replace(":1}", ":NaN}"),
    "one key twice": WHOLE.replace("]}", '],"p":[]}') % STAT,
    "write stats twice": WHOLE.replace("]}}", ']},"partitionToWriteStats":{}}') % STAT,
    "half a character": WHOLE % STAT.replace("f-0", "\\ud800"),
    "half a character as a partition": '{"partitionToWriteStats":{"\\udc00":[]}}',
    "no write stats": "{}",
    "write stats of nothing": '{"partitionToWriteStats":null}',
    "a file of no name": WHOLE % '{"fileId":"f-0","path":null,"numWrites":1}',
    "overwrite that replaces nothing it says": '{"operationType":"CLUSTER","partitionToWriteStats":{}}',
}


@pytest.mark.parametrize("text", JSON_BOMBS.values(), ids=JSON_BOMBS.keys())
def test_json_bomb_in_commit_metadata(text):
    path = PATH.replace(".commit", ".replacecommit")
    refused(lambda: decode_commit_file(text.encode(), Action.REPLACECOMMIT, path=path))


def test_a_whole_commit_passes():
    (stat,) = decode_commit_file((WHOLE % STAT).encode(), Action.COMMIT, path=PATH).stats()
    assert stat.num_writes == 1


# --- Avro ---------------------------------------------------------------------------------------------------------


def record(*fields: dict, name: str = "r") -> str:
    return json.dumps({"type": "record", "name": name, "fields": list(fields)})


def field(name: str, kind: object) -> dict:
    return {"name": name, "type": kind}


def nested(levels: int) -> object:
    kind: object = "int"
    for level in range(levels):
        kind = {"type": "record", "name": f"n{level}", "fields": [field("f", kind)]}
    return kind


def doubling(levels: int) -> str:
    """A kilobyte of names which stand for 2^levels fields."""
    first = {"type": "record", "name": "n0", "fields": [field("a", "int"), field("b", "int")]}
    fields = [field("f0", first)]
    for level in range(1, levels):
        inner = {"type": "record", "name": f"n{level}", "fields": [field(name, f"n{level - 1}") for name in "ab"]}
        fields.append(field(f"f{level}", inner))
    return record(*fields)


AVRO_SCHEMAS = {
    "a record in itself": record(field("f", ["null", "r"])),
    "a record in an array of itself": record(field("f", {"type": "array", "items": "r"})),
    "records in one another by name": record(
        field("f", {"type": "record", "name": "s", "fields": [field("g", ["null", "r"])]})
    ),
    "deep": record(field("f", nested(MAX_DEPTH + 1))),
    "very deep": '{"type":"array","items":' * 100_000 + '"int"' + "}" * 100_000,
    "types in types": '{"type":' * 100_000 + '"int"' + "}" * 100_000,
    "doubling": doubling(40),
    "long": record(field("f" * (1 << 20), "int")),
    "wide": record(*(field(f"f{number}", "int") for number in range(150_000))),
    "a fixed of 2 GiB": record(field("f", {"type": "fixed", "name": "x", "size": 1 << 31})),
    "a fixed of no byte": record(field("f", {"type": "fixed", "name": "x", "size": 0})),
    "a union of unions": record(field("f", [["null", "int"]])),
    "an enum of nothing": record(field("f", {"type": "enum", "name": "e", "symbols": []})),
}


@pytest.mark.parametrize("schema", AVRO_SCHEMAS.values(), ids=AVRO_SCHEMAS.keys())
def test_avro_writer_schema(schema):
    """One of these, given to fastavro with a record, ends the interpreter: no decoder may see it."""
    refused(lambda: parse_schema(schema))
    refused(lambda: decode_avro_data(struct.pack(">iii", 3, 1, 1) + b"\0", schema))


def zigzag(value: int) -> bytes:
    value = value << 1 ^ value >> 63
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def avro_block(count: int, *records: bytes) -> bytes:
    return struct.pack(">ii", 3, count) + b"".join(struct.pack(">i", len(each)) + each for each in records)


EMPTY = record(field("f", {"type": "record", "name": "e", "fields": []}))
NULLS = record(field("f", {"type": "array", "items": "null"}))
INTS = record(field("f", {"type": "array", "items": "int"}))
STRINGS = record(field("f", "string"))
MAPS = record(field("f", {"type": "map", "values": "int"}))
WIDE_NULLS = record(
    field(
        "f",
        {
            "type": "array",
            "items": ["null", json.loads(record(*(field(f"g{n}", "int") for n in range(9_000)), name="w"))],
        },
    )
)
AVRO_DATA = {
    "2^31 - 1 records": (STRINGS, avro_block((1 << 31) - 1, b"\0")),
    "-1 records": (STRINGS, avro_block(-1, b"\0")),
    "records of no byte": (EMPTY, avro_block(1_000_000, *[b""] * 1_000_000)),
    "20 million nulls in an array": (NULLS, avro_block(1, zigzag(20_000_000) + b"\0")),
    "2^60 ints in an array": (INTS, avro_block(1, zigzag(1 << 60) + b"\0" * 64)),
    "an array of -2^63 items": (INTS, avro_block(1, zigzag(-(1 << 63)) + zigzag(1) + b"\0" * 64)),
    "2^60 entries in a map": (MAPS, avro_block(1, zigzag(1 << 60) + b"\0" * 64)),
    "a string of 2^62 bytes": (STRINGS, avro_block(1, zigzag(1 << 62) + b"x")),
    "a string of -1 bytes": (STRINGS, avro_block(1, zigzag(-1) + b"x")),
    "a number that does not end": (STRINGS, avro_block(1, b"\xff" * 1_000)),
    "nulls of wide structs": (WIDE_NULLS, avro_block(1, zigzag(60_000) + b"\0" * 60_000 + b"\0")),
}


@pytest.mark.parametrize(("schema", "data"), AVRO_DATA.values(), ids=AVRO_DATA.keys())
def test_avro_records_that_claim_more_than_they_are(schema, data):
    refused(lambda: decode_avro_data(data, schema))


def test_avro_container_that_is_a_deflate_bomb():
    body = zlib.compress(b"\0" * (512 << 20), 9)[2:-4]

    def sized(data: bytes) -> bytes:
        return zigzag(len(data)) + data

    header = zigzag(2) + sized(b"avro.schema") + sized(b'"long"') + sized(b"avro.codec") + sized(b"deflate") + b"\0"
    data = b"Obj\x01" + header + b"s" * 16 + zigzag(512 << 20) + sized(body) + b"s" * 16
    assert len(data) < 600_000
    for act in (lambda: decode_compaction_plan(data, PATH), commit(data)):
        with bounded(), pytest.raises(UnsupportedTableError, match="deflate"):
            act()


DELETES = {
    "2^60 deletes": zigzag(1 << 60),
    "-2^63 deletes": zigzag(-(1 << 63)) + zigzag(5),
    "a key of 2^62 bytes": zigzag(1) + b"\x02" + zigzag(1 << 62),
    "ordering values in one another": zigzag(1) + b"\x02\x02a\x02\x02p" + b"\x18\x02" * 100_000,
    "a number that does not end": b"\xff" * 100_000,
}


@pytest.mark.parametrize("body", DELETES.values(), ids=DELETES.keys())
@pytest.mark.parametrize("ordering", [None, pa.int64(), pa.string()])
def test_delete_block_that_claims_more_than_it_is(body, ordering):
    refused(lambda: decode_deletes(struct.pack(">ii", 3, len(body)) + body, ordering))


# --- log files ----------------------------------------------------------------------------------------------------

BLOCK = encode_block(BlockKind.AVRO_DATA, {HeaderKey.INSTANT_TIME: "20260101000000000"}, b"x" * 40)


@pytest.mark.parametrize("at", [6, 14, 18, 22, 26, 30, len(BLOCK) - 12, len(BLOCK) - 8], ids=lambda at: f"byte {at}")
@pytest.mark.parametrize("value", [-1, -(1 << 31), (1 << 31) - 1, 1 << 24], ids=hex)
def test_log_block_with_a_length_that_nothing_backs(at, value):
    data = BLOCK[:at] + struct.pack(">i", value) + BLOCK[at + 4 :]
    with bounded():
        found = list(scan_blocks(data + BLOCK))
    assert [block.offset for block in found][-1] == len(BLOCK)
    assert sum(block.size_bytes for block in found) == 2 * len(BLOCK)


def test_log_file_of_nothing_but_magics():
    with bounded():
        assert len(list(scan_blocks(b"#HUDI#" * 20_000))) == 20_000


@pytest.mark.parametrize("code", ["SIMPLE", "DYNAMIC_V0", "PYBLOOM_LIVE"])
def test_bloom_filter_of_2_gib_in_twenty_bytes(code):
    for size in ((1 << 31) - 1, -1, 1 << 30):
        refused(lambda size=size: parse_bloom(code, struct.pack(">iibiiii", -1, 10, 1, size, size, size, size)))


# --- table properties ---------------------------------------------------------------------------------------------

PLAIN = {"hoodie.table.name": "t", "hoodie.table.version": "6", "hoodie.table.type": "COPY_ON_WRITE"}


def config(**changes: str) -> Callable[[], object]:
    text = "".join(f"{key}={value}\n" for key, value in {**PLAIN, **changes}.items())
    return lambda: parse_table_config(parse_properties_file(text.encode(), path=PATH), uri="t")


def test_property_of_ten_megabytes():
    with bounded():
        assert config(**{"hoodie.some.key": "x" * 10_000_000})()


def test_property_that_goes_on_over_a_million_lines():
    with bounded():
        found = parse_properties_file(b"a=" + b"\\\n" * 200_000 + b"x\n", path=PATH)
    assert found == {"a": "x"}


@pytest.mark.parametrize("version", ["9" * 5_000, "-6", "6.0", "٦", "0x6", "6 6"])
def test_table_version_that_is_no_small_number(version):
    refused(config(**{"hoodie.table.version": version}))


EVIL = ["os.system", "antigravity", "subprocess:Popen", "__import__('os')", "org.evil.Payload", "../evil"]


@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize(
    "key",
    [
        "hoodie.compaction.payload.class",
        "hoodie.table.keygenerator.class",
        "hoodie.record.merge.strategy.id",
        "hoodie.table.legacy.payload.class",
        "hoodie.table.partition_extractor_class",
    ],
)
def test_class_name_in_table_properties_is_looked_up_and_never_imported(tmp_path, key, name):
    made = hoodie.create_table(tmp_path / "t", None, record_key="id", ordering="ts", table_type="MERGE_ON_READ")
    made.upsert(pa.table({"id": ["a"], "ts": [1]}))
    path = tmp_path / "t/.hoodie/hoodie.properties"
    kept = [line for line in path.read_text().splitlines() if not line.startswith(key)]
    path.write_text("\n".join([*kept, f"{key}={name}", ""]))
    modules = set(sys.modules)
    for act in (lambda table: table.scan().to_arrow(), lambda table: table.upsert(pa.table({"id": ["b"], "ts": [2]}))):
        try:
            act(hoodie.open_table(tmp_path / "t"))
        except HoodieError as error:
            assert name in str(error) or "merge" in str(error) or "payload" in str(error)  # noqa: PT017
    assert not {"antigravity", "this"} & (set(sys.modules) - modules)


FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "yaml", "runpy", "ctypes"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "import_module", "load_module", "exec_module"}


def _begins_in_the_code(name):
    """Whether a module's name is a literal, or a module of ours by a literal prefix."""
    start = name.values[0] if isinstance(name, ast.JoinedStr) else name
    return isinstance(start, ast.Constant) and (start is name or start.value.startswith("hoodie."))


def test_no_code_of_the_package_runs_or_unpickles_what_it_reads():
    """Engines ship our own tasks between our own processes; files of a table are decoded by hand."""
    root = Path(hoodie.__file__).parent
    found = []
    for path in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name.partition(".")[0] for alias in node.names if alias.name != "ast"]
            elif isinstance(node, ast.ImportFrom):
                names = [(node.module or "").partition(".")[0]]
            elif isinstance(node, ast.Call):
                called = node.func
                name = (
                    called.id
                    if isinstance(called, ast.Name)
                    else called.attr
                    if isinstance(called, ast.Attribute)
                    else ""
                )
                # `re.compile` makes patterns, `model/late.py` imports what code names as an attribute of a room, and
                # `options/indexes.py` and `ingestion/database_connections.py` what a program names, and no table.
                owner = getattr(getattr(called, "value", None), "id", "")
                named = path.name in ("late.py", "indexes.py", "database_connections.py")
                ours = name == "import_module" and (named or _begins_in_the_code(node.args[0]))
                if name in FORBIDDEN_CALLS and owner != "re" and not ours:
                    found.append(f"{path.relative_to(root)}:{node.lineno} {name}")
            found += [f"{path.relative_to(root)}:{node.lineno} {name}" for name in names if name in FORBIDDEN_MODULES]
    assert found == []


# --- Parquet ------------------------------------------------------------------------------------------------------


def parquet(table: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, store_schema=False, **options)
    return out.getvalue()


def rows_in(data: bytes, columns: list[str]) -> int:
    with open_parquet(pa.BufferReader(data), path="f.parquet") as file:
        return sum(batch.num_rows for batch in read_batches(file, columns, batch_rows=65_536, path="f.parquet"))


def claiming(data: bytes, rows: int, claimed: int, *, place: int | None = None) -> bytes:
    """The file with another number of rows in one place of its footer, or wherever it states it (an i64, zigzag)."""
    (length,) = struct.unpack("<i", data[-8:-4])
    body, footer = data[: -8 - length], data[-8 - length : -8]
    parts = footer.split(b"\x16" + zigzag(rows))
    assert len(parts) == 5  # of the file, of two columns, of the row group
    numbers = [claimed if place in (None, number) else rows for number in range(4)]
    changed = parts[0] + b"".join(b"\x16" + zigzag(each) + part for each, part in zip(numbers, parts[1:], strict=True))
    return body + changed + struct.pack("<i", len(changed)) + b"PAR1"


ROWS = parquet(pa.table({"a": range(7_777), "b": ["xyz"] * 7_777}), compression="none", write_statistics=False)


@pytest.mark.parametrize("claimed", [7_778, 1 << 20, 1 << 40, 1 << 62])
@pytest.mark.parametrize("columns", [["a"], ["a", "b"], []], ids=str)
def test_parquet_footer_that_claims_more_rows_than_there_are(claimed, columns):
    assert rows_in(ROWS, columns) == 7_777
    refused(lambda: rows_in(claiming(ROWS, 7_777, claimed), columns))


@pytest.mark.parametrize("claimed", [0, 1, 7_776, 7_778])
@pytest.mark.parametrize("place", [0, 3], ids=["file", "row group"])
def test_parquet_footer_that_contradicts_itself(claimed, place):
    refused(lambda: rows_in(claiming(ROWS, 7_777, claimed, place=place), ["a", "b"]))


@pytest.mark.parametrize("claimed", [1, 7_776, 7_778])
@pytest.mark.parametrize("place", [1, 2])
def test_parquet_column_that_states_another_number_of_values_than_its_pages(claimed, place):
    """Arrow goes by the pages."""
    assert rows_in(claiming(ROWS, 7_777, claimed, place=place), ["a", "b"]) == 7_777


def test_parquet_file_of_many_equal_rows_is_read_in_pieces():
    rows = 4_000_000
    data = parquet(pa.table({"a": pa.repeat(pa.scalar("x" * 50), rows).dictionary_encode()}), row_group_size=rows)
    assert len(data) < 1 << 20
    with bounded():
        assert rows_in(data, ["a"]) == rows


def test_parquet_footer_whose_length_leads_out_of_the_file():
    data = parquet(pa.table({"a": [1]}))
    for length in (0, 1, len(data), (1 << 31) - 1, -1):
        refused(lambda length=length: rows_in(data[:-8] + struct.pack("<i", length) + b"PAR1", ["a"]))


def test_parquet_column_of_another_name_in_the_footer_than_in_its_avro_schema():
    avro = record(field("a", "int"), field("b", "string"))
    rows, out = pa.table({"a": [1], "b": ["x"]}), io.BytesIO()
    with pq.ParquetWriter(out, rows.schema, store_schema=False) as writer:
        writer.write_table(rows)
        writer.add_key_value_metadata({"parquet.avro.schema": avro})
    data = out.getvalue()
    assert rows_in(data, ["a", "b"]) == 1
    renamed = data.replace(b"\x18\x01b", b"\x18\x01c", 1)
    assert renamed != data
    with pytest.raises(CorruptFileError, match=r"f\.parquet has other columns"):
        rows_in(renamed, ["a"])


# --- filters ------------------------------------------------------------------------------------------------------

SCHEMA = pa.schema([("a", pa.int64())])
FILTERS = {
    "parentheses": "(" * 90_000,
    "closed parentheses": "(" * 40_000 + "a = 1" + ")" * 40_000,
    "not not": "not " * 20_000 + "a = 1",
    "minus minus": "a = " + "-" * 90_000 + "1",
    "and and": " and ".join(["a = 1"] * 10_000),
    "in in": "a " + "in (a " * 10_000,
    "a number of many digits": "a = " + "9" * 90_000,
    "quotes": "a = '" + "''" * 45_000,
    "too long": "a = 1 or " * 20_000 + "a = 1",
    "a call": "__import__('os').system('true')",
    "an attribute": "a.__class__ = 1",
    "a lambda": "(lambda: 1)() = 1",
    "a walrus": "(b := 1) = 1",
    "an f-string": "a = f'{1}'",
    "NUL": "a = 1\0",
}


@pytest.mark.parametrize("text", FILTERS.values(), ids=FILTERS.keys())
def test_filter_text(text):
    with bounded(), pytest.raises(OptionError) as caught:
        parse_filter(text, SCHEMA)
    assert len(re.findall("\n", str(caught.value))) < 8
