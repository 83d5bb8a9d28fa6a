"""Payloads of log blocks: the bytes that Apache Hudi wrote, every cut and every changed byte of them."""

import io
import json
import struct
from decimal import Decimal
from pathlib import Path

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.format.avro_schema import arrow_from_avro, avro_from_arrow, parse_schema, record_type, resolve_record
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.log_content import (
    decode_avro_data,
    decode_deletes,
    decode_parquet_data,
    encode_avro_data,
    encode_deletes,
    encode_parquet_data,
)
from hoodie.model.enums import BlockKind, HeaderKey
from tests.rows import rows_of

GOLDEN = Path(__file__).parent.parent / "golden"
LOGS = sorted(path for path in GOLDEN.rglob(".*.log.*") if not path.name.endswith(".crc"))
MICROS = pa.timestamp("us", "UTC")


def blocks(kind: BlockKind) -> list[tuple[Path, LogBlock]]:
    return [
        (path, block)
        for path in LOGS
        for block in scan_blocks(path.read_bytes())
        if isinstance(block, LogBlock) and block.kind is kind
    ]


def name_of(path: Path) -> str:
    return f"{path.relative_to(GOLDEN).parts[0]}-{path.name[-22:]}"


DATA = blocks(BlockKind.AVRO_DATA)
DELETES = blocks(BlockKind.DELETE)


# --- Avro data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "block"), DATA, ids=[name_of(path) for path, _ in DATA])
def test_golden_data_block_decodes_to_the_rows_of_hudi_and_encodes_back(path, block):
    text = block.header[HeaderKey.SCHEMA]
    table = decode_avro_data(block.content, text)
    table.validate(full=True)
    assert table.schema == arrow_from_avro(parse_schema(text))
    assert set(table["_hoodie_commit_time"].to_pylist()) == {block.header[HeaderKey.INSTANT_TIME]}
    assert encode_avro_data(table, record_type(text)) == bytes(block.content)


def test_rows_of_golden_data_blocks_are_those_that_hudi_reads():
    compared = set()
    whole = [
        (path, block)
        for path, block in DATA
        if not {*block.header} & {HeaderKey.IS_PARTIAL, HeaderKey.COMPACTED_BLOCK_TIMES}
    ]
    whole = [
        (path, block)
        for path, block in whole
        if (GOLDEN / path.relative_to(GOLDEN).parts[0] / "expected.json").exists()
    ]
    for path, block in whole:
        table = path.relative_to(GOLDEN).parts[0]
        expected = json.loads((GOLDEN / table / "expected.json").read_text(encoding="utf-8"))
        read = [expected["snapshot"], *(entry.get("rows", []) for entry in expected["incremental"])]
        by_seqno = {row["_hoodie_commit_seqno"]: row for rows in read for row in rows}
        for row in rows_of(decode_avro_data(block.content, block.header[HeaderKey.SCHEMA])):
            theirs = by_seqno.get(row["_hoodie_commit_seqno"])
            if theirs is not None:
                # A later compaction moves the row into a base file, whose name it then carries.
                assert {**row, "_hoodie_file_name": theirs["_hoodie_file_name"]} == theirs
                compared.add(table)
    assert compared == {path.relative_to(GOLDEN).parts[0] for path, _ in whole}


SCHEMA = avro_from_arrow(pa.schema([("k", pa.string()), ("n", pa.int64())]), table_name="t")
TEXT = json.dumps(SCHEMA)
TABLE = pa.table({"k": ["a", None, "ccc"], "n": [1, -200, None]})
CONTENT = encode_avro_data(TABLE, record_type(TEXT))


def test_data_block_has_the_layout_of_the_format():
    frames = ["00000003 00000003", "00000005 02 0261 02 02", "00000004 00 02 8f03", "00000006 02 06636363 00"]
    assert bytes.fromhex("".join(frames)) == CONTENT


@pytest.mark.parametrize("version", [1, 2])
def test_older_data_blocks_have_the_same_layout(version):
    assert decode_avro_data(struct.pack(">i", version) + CONTENT[4:], TEXT).equals(TABLE)


@pytest.mark.parametrize("version", [0, 4, -1])
def test_unknown_version_of_a_data_block_is_refused(version):
    with pytest.raises(UnsupportedTableError, match=f"version {version}"):
        decode_avro_data(struct.pack(">i", version) + CONTENT[4:], TEXT)


def test_empty_data_block():
    content = encode_avro_data(TABLE.slice(0, 0), record_type(TEXT))
    assert content == bytes.fromhex("00000003 00000000")
    assert decode_avro_data(memoryview(content), TEXT).equals(TABLE.slice(0, 0))


@pytest.mark.parametrize("cut", range(len(CONTENT)))
def test_data_block_cut_at_any_length_is_corrupt(cut):
    with pytest.raises(CorruptFileError):
        decode_avro_data(CONTENT[:cut], TEXT)


@pytest.mark.parametrize("at", range(4, len(CONTENT)))
def test_changed_byte_of_a_data_block_gives_an_error_or_other_whole_rows(at):
    for value in (0, 1, 2, 0x7F, 0x80, 0xFF):
        data = CONTENT[:at] + bytes([value]) + CONTENT[at + 1 :]
        try:
            table = decode_avro_data(data, TEXT)
        except CorruptFileError:
            continue
        assert encode_avro_data(table, record_type(TEXT)) == data


@pytest.mark.parametrize("count", [-1, 4, 2, 1 << 30, (1 << 31) - 1])
def test_wrong_record_count_is_corrupt(count):
    with pytest.raises(CorruptFileError):
        decode_avro_data(CONTENT[:4] + struct.pack(">i", count) + CONTENT[8:], TEXT)


@pytest.mark.parametrize("length", [-1, -9, 1 << 30, -(1 << 31)])
@pytest.mark.parametrize("at", [8, 17, 25])
def test_wrong_record_length_is_corrupt(at, length):
    with pytest.raises(CorruptFileError):
        decode_avro_data(CONTENT[:at] + struct.pack(">i", length) + CONTENT[at + 4 :], TEXT)


def test_negative_record_length_is_found_before_its_bytes_are_used():
    # Steps back to its own length field, so the walk over the records never leaves the content.
    with pytest.raises(CorruptFileError, match="negative length"):
        decode_avro_data(CONTENT[:8] + struct.pack(">i", -4) + CONTENT[12:], TEXT)


def test_bytes_behind_the_last_record_are_corrupt():
    with pytest.raises(CorruptFileError, match="end at byte"):
        decode_avro_data(CONTENT + b"\x00", TEXT)


def test_many_rows_in_several_chunks():
    rows = 30_000
    table = pa.table({"k": pa.array([f"k{i}" for i in range(rows)]), "n": pa.array(range(rows))})
    both = pa.concat_tables([table, table.slice(5, 100)])
    assert decode_avro_data(encode_avro_data(both, record_type(TEXT)), TEXT).equals(both)


# --- Parquet data ----------------------------------------------------------------------------------------------


def parquet_of(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def test_parquet_block_gives_its_rows_without_file_metadata():
    table = TABLE.append_column("t", pa.array([1, 2, None], MICROS)).replace_schema_metadata({"a": "b"})
    found = decode_parquet_data(memoryview(parquet_of(table)))
    assert found.equals(table)
    assert found.schema.metadata is None


PARQUET = bytes(encode_parquet_data(TABLE, SCHEMA, compression="zstd", dictionaries=["k"]))


def test_a_parquet_block_of_ours_gives_its_rows_or_some_of_their_columns():
    assert decode_parquet_data(PARQUET, TEXT).equals(TABLE)
    assert decode_parquet_data(PARQUET, TEXT, ["n", "not there"]).equals(TABLE.select(["n"]))
    empty = TABLE.slice(0, 0)
    assert decode_parquet_data(
        encode_parquet_data(empty, SCHEMA, compression="none", dictionaries=[]), TEXT, ["n"]
    ).equals(empty.select(["n"]))


def test_a_parquet_block_of_ours_has_the_schema_of_its_records_in_its_footer_and_checksums_on_its_pages():
    file = pq.ParquetFile(io.BytesIO(PARQUET))
    assert json.loads(file.metadata.metadata[b"parquet.avro.schema"]) == SCHEMA
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    at = PARQUET.index(b"ccc") if b"ccc" in PARQUET else 40
    damaged = PARQUET[:at] + bytes([PARQUET[at] ^ 1]) + PARQUET[at + 1 :]
    with pytest.raises(CorruptFileError):
        decode_parquet_data(damaged, TEXT)


def test_a_parquet_block_has_the_columns_of_its_header():
    other = json.dumps(avro_from_arrow(pa.schema([("k", pa.string()), ("m", pa.int64())]), table_name="t"))
    with pytest.raises(CorruptFileError, match=r"has other columns than its header says \(m, n\)"):
        decode_parquet_data(PARQUET, other, ["k"])


@pytest.mark.parametrize("cut", range(0, len(PARQUET), 7))
def test_a_parquet_block_cut_at_any_length_is_corrupt(cut):
    with pytest.raises(CorruptFileError):
        decode_parquet_data(PARQUET[:cut], TEXT)


@pytest.mark.parametrize("kind", ["half", "tail", "head", "empty", "magic only", "footer"])
def test_broken_parquet_block_is_corrupt(kind):
    whole = parquet_of(TABLE)
    data = {
        "half": whole[: len(whole) // 2],
        "tail": whole[:-1],
        "head": b"X" + whole[1:],
        "empty": b"",
        "magic only": b"PAR1",
        "footer": whole[:-12] + b"\xff" * 8 + b"PAR1",
    }[kind]
    with pytest.raises(CorruptFileError):
        decode_parquet_data(data)


# --- deletes ---------------------------------------------------------------------------------------------------


def deletes(ordering: pa.Array | None, *, key: str = "a", path: str = "p") -> bytes:
    rows = 1 if ordering is None else len(ordering)
    return encode_deletes(pa.array([key] * rows), pa.array([path] * rows), ordering)


def test_worked_bytes_of_a_delete_without_ordering():
    content = bytes.fromhex("00000003 0000000d 02 0208 6b303032 0202 62 0400 00")
    assert deletes(None, key="k002", path="b") == content
    assert deletes(pa.array([None], pa.int64()), key="k002", path="b") == content
    table = decode_deletes(content, pa.int64())
    assert table.to_pylist() == [{"record_key": "k002", "partition_path": "b", "ordering": None}]
    assert table.schema == pa.schema(
        [("record_key", pa.string()), ("partition_path", pa.string()), ("ordering", pa.int64())]
    )
    assert decode_deletes(content, None).schema.field("ordering").type == pa.null()


def test_worked_bytes_of_a_delete_with_a_long():
    content = bytes.fromhex("00000003 0000000e 02 0208 6b303033 0202 62 06d804 00")
    assert deletes(pa.array([300]), key="k003", path="b") == content
    assert decode_deletes(content, pa.int64())["ordering"].to_pylist() == [300]


OBSERVED = [
    (pa.array([5], pa.int32()), "040a"),
    (pa.array([300], pa.int64()), "06d804"),
    (pa.array([2.5], pa.float64()), "0a0000000000000440"),
    (pa.array(["zz"]), "0e047a7a"),
    (pa.array([Decimal("3.14")], pa.decimal128(10, 2)), "120e0b27d038984000"),
    (pa.array([300], MICROS), "06d804"),
]
OTHERS = [
    (pa.array([True]), "0201"),
    (pa.array([1.5], pa.float32()), "080000c03f"),
    (pa.array([b"\x00\xff"]), "0c0400ff"),
    (pa.array([-1], pa.timestamp("ms")), "0601"),
    (
        pa.array([Decimal("-1.5")], pa.decimal128(38, 15)),
        "120e" + (-1_500_000_000_000_000).to_bytes(7, "big", signed=True).hex(),
    ),
]


@pytest.mark.parametrize(
    ("ordering", "value"), [*OBSERVED, *OTHERS], ids=[str(a.type) for a, _ in [*OBSERVED, *OTHERS]]
)
def test_ordering_value_by_column_type(ordering, value):
    record = bytes.fromhex("02 020261 020270" + value + "00")
    assert deletes(ordering) == struct.pack(">ii", 3, len(record)) + record
    assert decode_deletes(deletes(ordering), ordering.type)["ordering"].combine_chunks().equals(ordering)


@pytest.mark.parametrize(("path", "block"), DELETES, ids=[name_of(path) for path, _ in DELETES])
def test_golden_delete_block_decodes_and_encodes_back(path, block):
    several = path.relative_to(GOLDEN).parts[0] == "v6_several_ordering_fields"
    kind = pa.struct([("x", pa.int64()), ("y", pa.string())]) if several else pa.int64()
    table = decode_deletes(block.content, kind)
    assert encode_deletes(table["record_key"], table["partition_path"], table["ordering"]) == bytes(block.content)


def test_keys_of_golden_delete_blocks():
    found = {
        (name_of(path)[:11], row["record_key"], row["partition_path"], row["ordering"])
        for path, block in DELETES
        for row in decode_deletes(block.content, pa.int64()).to_pylist()
        if "v6_mor_logs" in str(path)
    }
    assert found == {
        ("v6_mor_logs", "k002", "a", None),
        ("v6_mor_logs", "k001", "b", None),
        ("v6_mor_logs", "k003", "b", 300),
    }


def raw_delete(ordering: str, *, key: str = "020261", path: str = "020270") -> bytes:
    record = bytes.fromhex("02" + key + path + ordering + "00")
    return struct.pack(">ii", 3, len(record)) + record


@pytest.mark.parametrize(
    ("ordering", "kind", "value"),
    [
        ("00", pa.int64(), None),
        ("0400", pa.int64(), None),
        ("040a", pa.int64(), None),  # an Integer where the column has Longs: the delete wins in Hudi, too
        ("0400", pa.int32(), None),
        ("0600", pa.int64(), 0),
        ("06d804", pa.int32(), None),
        ("0e047a7a", pa.int64(), None),
        ("06d804", pa.string(), None),
        ("040a", pa.float64(), None),
        ("0a0000000000000440", pa.float32(), None),
        ("16d00f", pa.timestamp("ms", "UTC"), 1),  # TimestampMicrosWrapper
        ("16d00f", MICROS, 1000),
        ("06d00f", pa.timestamp("ms", "UTC"), 1000),  # LongWrapper: as stored
        ("100a", pa.date32(), 5),
        ("040a", pa.date32(), 5),
        ("0200", pa.bool_(), False),
    ],
)
def test_ordering_of_another_class_than_the_columns_is_a_commit_time_delete(ordering, kind, value):
    column = decode_deletes(raw_delete(ordering), kind)["ordering"].combine_chunks()
    assert column.type == kind
    if pa.types.is_temporal(kind):
        column = column.cast(pa.int32() if kind == pa.date32() else pa.int64())
    assert column.to_pylist() == [value]


def test_null_key_and_path_are_kept():
    row = decode_deletes(raw_delete("0400", key="00", path="00"), None).to_pylist()[0]
    assert (row["record_key"], row["partition_path"]) == (None, None)


def test_several_blocks_with_their_sizes_are_one_list():
    # Other Avro writers cut long arrays and put a block's byte size behind a negated count.
    one = bytes.fromhex("020261 020270 0602")
    body = b"\x03" + bytes([2 * 2 * len(one)]) + one + one + b"\x02" + one + b"\x00"
    table = decode_deletes(struct.pack(">ii", 3, len(body)) + body, pa.int64())
    assert table["ordering"].to_pylist() == [1, 1, 1]


DELETE_SCHEMA = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "d",
        "fields": [
            {"name": "k", "type": ["null", "string"]},
            {"name": "p", "type": ["null", "string"]},
            {
                "name": "o",
                "type": [
                    "null",
                    *(
                        {"type": "record", "name": f"w{i}", "fields": [{"name": "value", "type": kind}]}
                        for i, kind in enumerate(
                            [
                                "boolean",
                                "int",
                                "long",
                                "float",
                                "double",
                                "bytes",
                                "string",
                                "int",
                                "bytes",
                                "long",
                                "long",
                            ]
                        )
                    ),
                ],
            },
        ],
    },
}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=90)
ORDERINGS = {
    pa.int32(): (1, st.integers(-(1 << 31), (1 << 31) - 1)),
    pa.int64(): (2, st.integers(-(1 << 63), (1 << 63) - 1)),
    pa.float32(): (3, st.floats(width=32, allow_nan=False)),
    pa.float64(): (4, st.floats(allow_nan=False)),
    pa.binary(): (5, st.binary(max_size=70)),
    pa.string(): (6, TEXTS),
    pa.bool_(): (0, st.booleans()),
}


@pytest.mark.parametrize("kind", ORDERINGS, ids=str)
@given(data=st.data())
@settings(max_examples=40)
def test_deletes_have_fastavros_bytes_and_come_back(kind, data):
    branch, values = ORDERINGS[kind]
    rows = data.draw(st.lists(st.tuples(TEXTS, TEXTS, st.none() | values), max_size=6))
    keys, paths = (pa.array([row[i] for row in rows], pa.string()) for i in (0, 1))
    ordering = pa.array([row[2] for row in rows], kind)
    stream = io.BytesIO()
    fastavro.schemaless_writer(
        stream,
        fastavro.parse_schema(DELETE_SCHEMA),
        [
            {"k": k, "p": p, "o": ("w1", {"value": 0}) if o is None else (f"w{branch}", {"value": o})}
            for k, p, o in rows
        ],
    )
    content = encode_deletes(keys, pa.chunked_array([paths]), ordering)
    assert content == struct.pack(">ii", 3, len(stream.getvalue())) + stream.getvalue()
    found = decode_deletes(content, kind)
    assert found["record_key"].to_pylist() == keys.to_pylist()
    assert found["partition_path"].to_pylist() == paths.to_pylist()
    wanted = [None if o == 0 and kind == pa.int32() else o for o in ordering.to_pylist()]
    assert found["ordering"].to_pylist() == wanted


@given(st.lists(st.none() | st.integers(-(10**30) + 1, 10**30 - 1), max_size=5))
def test_decimal_orderings_come_back(numbers):
    kind = pa.decimal128(30, 15)
    values = [None if n is None else Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -15)) for n in numbers]
    ordering = pa.array(values, kind)
    content = encode_deletes(pa.array(["k"] * len(values)), pa.array(["p"] * len(values)), ordering)
    assert decode_deletes(content, kind)["ordering"].to_pylist() == values


def test_no_deletes_are_the_empty_list_of_the_golden_metadata_table():
    content = encode_deletes(pa.array([], pa.string()), pa.array([], pa.string()), None)
    assert content == bytes.fromhex("00000003 00000001 00")
    assert decode_deletes(content, MICROS).num_rows == 0


def test_dictionary_large_and_sliced_columns_are_taken():
    keys = pa.array(["x", "a", "b"]).dictionary_encode().slice(1)
    paths = pa.chunked_array([["p"], ["q"]], pa.large_string())
    ordering = pa.array([9, 1, None], pa.timestamp("s", "UTC")).slice(1)
    found = decode_deletes(encode_deletes(keys, paths, ordering), MICROS)
    assert found.select([0, 1]).to_pylist() == [
        {"record_key": "a", "partition_path": "p"},
        {"record_key": "b", "partition_path": "q"},
    ]
    assert found["ordering"].cast(pa.int64()).to_pylist() == [1_000_000, None]


@pytest.mark.parametrize(
    ("ordering", "message"),
    [
        (pa.array([[1]]), "type list"),
        (pa.array([1], pa.uint64()), "type uint64"),
        (pa.array([Decimal(10) ** 16], pa.decimal128(20, 0)), "does not fit"),
        (pa.array([Decimal("1e-16")], pa.decimal128(20, 16)), "does not fit"),
        (pa.array([1], pa.timestamp("ns")), "does not fit"),
        (pa.array([1, 2]), "2 ordering values"),
    ],
)
def test_ordering_that_no_delete_block_can_hold_is_an_error(ordering, message):
    with pytest.raises(SchemaError, match=message):
        encode_deletes(pa.array(["a"]), pa.array(["p"]), ordering)


@pytest.mark.parametrize(("key", "path", "what"), [(None, "p", "record key"), ("a", None, "partition path")])
def test_delete_without_key_or_path_is_an_error(key, path, what):
    with pytest.raises(SchemaError, match=f"have no {what}"):
        encode_deletes(pa.array([key], pa.string()), pa.array([path], pa.string()), None)


TWO = pa.struct([("x", pa.int64()), ("y", pa.int64())])


def test_several_ordering_fields_have_the_bytes_of_hudi():
    ordering = pa.array([{"x": 7, "y": 2}], TWO)
    content = encode_deletes(pa.array(["a"]), pa.array(["p"]), ordering)
    assert content == raw_delete("18 02 04 06 0e 06 04 00")
    assert decode_deletes(content, TWO)["ordering"].combine_chunks().equals(ordering)


def test_a_date_is_stored_as_an_int_of_days_and_read_from_each_form_of_it():
    days = pa.array([19_000], pa.int32()).cast(pa.date32())
    assert encode_deletes(pa.array(["a"]), pa.array(["p"]), days) == raw_delete("04 f0a802")
    for form in ("04 f0a802", "10 f0a802"):
        assert decode_deletes(raw_delete(form), pa.date32())["ordering"].combine_chunks().equals(days)
    two = pa.struct([("x", pa.date32()), ("y", pa.int64())])
    for form in ("04 f0a802", "10 f0a802", "18 f0a802"):  # the last is LocalDateWrapper
        (found,) = decode_deletes(raw_delete(f"18 02 04 {form} 06 04 00"), two)["ordering"].to_pylist()
        assert found == {"x": days[0].as_py(), "y": 2}


def test_ordering_values_of_another_shape_make_a_delete_that_always_wins():
    for form, kind in (
        ("06 0e", TWO),
        ("18 02 02 06 0e 00", TWO),
        ("18 00", TWO),
        ("18 02 04 06 0e 06 04 00", pa.int64()),
    ):
        assert decode_deletes(raw_delete(form), kind)["ordering"].to_pylist() == [None]


@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-(1 << 63), (1 << 63) - 1).filter(bool),
            st.none() | TEXTS,
            st.none() | st.decimals(-999, 999, places=2),
        ),
        max_size=6,
    )
)
@settings(max_examples=60)
def test_tuples_of_ordering_values_come_back(rows):
    kind = pa.struct([("x", pa.int64()), ("y", pa.string()), ("z", pa.decimal128(5, 2))])
    ordering = pa.array([None if row == (None, None, None) else dict(zip("xyz", row)) for row in rows], kind)
    keys = pa.array([str(n) for n in range(len(rows))], pa.string())
    found = decode_deletes(encode_deletes(keys, keys, ordering), kind)
    assert found["ordering"].to_pylist() == ordering.to_pylist()
    assert found["record_key"].to_pylist() == keys.to_pylist()


@pytest.mark.parametrize("value", ["18 04 00", "18 02 7f", "18 02 04 1a 0e 06 04 00", "18 02 04 06 0e 06 04"])
def test_arrays_of_ordering_values_that_are_none_are_corrupt(value):
    with pytest.raises(CorruptFileError):
        decode_deletes(raw_delete(value), TWO)


@pytest.mark.parametrize(("version", "message"), [(0, "version 0"), (4, "version 4")])
def test_other_versions_of_delete_blocks_are_refused(version, message):
    with pytest.raises(UnsupportedTableError, match=message):
        decode_deletes(struct.pack(">i", version) + b"\x00" * 9, None)


LIST = encode_deletes(pa.array(["a", "x" * 70]), pa.array(["p", ""]), pa.array([300, None]))


@pytest.mark.parametrize("cut", range(len(LIST)))
def test_delete_block_cut_at_any_length_is_corrupt(cut):
    with pytest.raises(CorruptFileError):
        decode_deletes(LIST[:cut], pa.int64())
    shorter = LIST[:4] + struct.pack(">i", max(cut - 8, 0)) + LIST[8:cut]
    with pytest.raises(CorruptFileError):
        decode_deletes(shorter, pa.int64())


@given(st.binary(max_size=40), st.sampled_from([*ORDERINGS, None, MICROS, pa.date32(), pa.decimal128(10, 2), TWO]))
@settings(max_examples=400)
def test_arbitrary_bytes_are_a_delete_list_or_an_error(body, kind):
    for data in (body, LIST[8:20] + body + b"\x00"):
        try:
            table = decode_deletes(struct.pack(">ii", 3, len(data)) + data, kind)
        except (CorruptFileError, UnsupportedTableError):
            continue
        table.validate(full=True)


def test_changed_byte_of_a_delete_block_never_crashes():
    for at in range(4, len(LIST)):
        for value in (0, 1, 2, 0x7F, 0x80, 0xFF):
            try:
                table = decode_deletes(LIST[:at] + bytes([value]) + LIST[at + 1 :], pa.int64())
            except (CorruptFileError, UnsupportedTableError):
                continue
            table.validate(full=True)
            assert table.num_rows == 2


def test_delete_count_is_held_against_the_size_first():
    data = bytes.fromhex("feffffffff0f")
    with pytest.raises(CorruptFileError, match="6 bytes claims 274877906943 records"):
        decode_deletes(struct.pack(">ii", 3, len(data)) + data, None)


@pytest.mark.parametrize(
    "body",
    [
        "ffffffffff0f",  # count of -2^38
        "feffffffff0f",  # count of 2^38 - 1
        "01" * 3,  # negated count without a size
        "02 0201 020270 0400 00",  # key of -1 bytes
        "02 02feffffff0f 61 020270 0400 00",  # key of 2^31 - 1 bytes
        "02 0202ff 020270 0400 00",  # key that is no UTF-8
        "02 040261 020270 0400 00",  # no such branch for a key
        "02 020261 020270 1a00 00",  # no such branch for an ordering value
        "02 020261 020270 8400 00",
        "02 020261 020270 06ffffffffffffffffff7f 00",  # more than 64 bits
        "02 020261 020270 068100 00",  # padded
        "02 020261 020270 0400",  # no end
        "02 020261 020270 0400 0000",  # more than the end
    ],
)
def test_hostile_delete_list_is_corrupt(body):
    data = bytes.fromhex(body)
    with pytest.raises(CorruptFileError):
        decode_deletes(struct.pack(">ii", 3, len(data)) + data, pa.int64())


@pytest.mark.parametrize(
    "columns", [["i"], ["s", "b"], ["d"], ["nested"], ["absent"], ["s", "i", "d", "f", "b", "n", "nested"]]
)
def test_only_the_columns_that_are_asked_for_are_decoded(columns):
    table = pa.table(
        {
            "s": pa.array(["a", None, "ü"]),
            "i": pa.array([1, None, -(2**31)], pa.int32()),
            "d": pa.array([Decimal("1.50"), None, Decimal("-2.25")], pa.decimal128(10, 2)),
            "f": pa.array([0.5, None, 2.0]),
            "b": pa.array([b"x", b"", None]),
            "n": pa.array([True, None, False]),
            "nested": pa.array([{"x": 1}, None, {"x": None}], pa.struct([("x", pa.int64())])),
        }
    )
    avro = avro_from_arrow(table.schema, table_name="t")
    content, text = encode_avro_data(table, resolve_record(avro)), json.dumps(avro)
    found = decode_avro_data(content, text, columns)
    kept = [name for name in table.column_names if name in columns] or table.column_names[:1]
    assert found.equals(decode_avro_data(content, text).select(kept))
    with pytest.raises(CorruptFileError):
        decode_avro_data(content[:-1], text, columns)
