"""Plans and metadata of table services: files of Apache Hudi, round trips, and hostile files."""

import io
import itertools
import json
import zlib

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError, SchemaError, UnsupportedTableError
from hoodie.format.commit_avro import COMMIT, decode_commit_file
from hoodie.format.plan_avro import (
    decode_compaction_plan,
    decode_plan,
    decode_rollback_metadata,
    decode_rollback_plan,
    encode_compaction_plan,
    encode_entry,
    encode_plan,
    encode_rollback_metadata,
    encode_rollback_plan,
    known_schema,
)
from hoodie.model.enums import Action
from hoodie.model.names import is_partition_path
from hoodie.model.payloads import (
    CompactionOperation,
    CompactionPlan,
    RollbackMetadata,
    RollbackPartition,
    RollbackPlan,
    RollbackRequest,
)
from tests.golden_tables import FOLDER

FILES = [
    path
    for path in sorted(FOLDER.glob("*/table/**/.hoodie/**/*"))
    if path.is_file() and path.read_bytes()[:4] == b"Obj\x01"
]
SYNC = b"0123456789abcdef"
NAME = "HoodieRestorePlan"


def long(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    found = bytearray()
    while zigzag > 0x7F:
        found.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes([*found, zigzag])


def sized(data: bytes) -> bytes:
    return long(len(data)) + data


def container(schema: object, record: bytes, *, count: int = 1, **header: bytes) -> bytes:
    """A container file with any schema, honest or not."""
    text = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    entries = [sized(b"avro.schema") + sized(text)]
    entries += [sized(key.replace("_", ".").encode()) + sized(value) for key, value in header.items()]
    head = b"Obj\x01" + long(len(entries)) + b"".join(entries) + long(0) + SYNC
    return head + long(count) + sized(record) + SYNC


def restore_plan(**fields: object) -> dict[str, object]:
    """A schema named as the restore plan's with these fields."""
    return {"type": "record", "name": NAME, "fields": [{"name": key, "type": kind} for key, kind in fields.items()]}


def record_name(path) -> str:
    return fastavro.reader(io.BytesIO(path.read_bytes())).writer_schema["name"].rpartition(".")[2]


def golden(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


def test_there_are_golden_files_of_every_kind():
    assert {record_name(path) for path in FILES} == {
        "HoodieCleanMetadata",
        "HoodieCleanerPlan",
        "HoodieCommitMetadata",
        "HoodieCompactionPlan",
        "HoodieIndexCommitMetadata",
        "HoodieIndexPlan",
        "HoodieRequestedReplaceMetadata",
        "HoodieRestoreMetadata",
        "HoodieRestorePlan",
        "HoodieRollbackMetadata",
        "HoodieRollbackPlan",
        "HoodieSavepointMetadata",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.relative_to(FOLDER).parts[0]}-{path.name}")
def test_golden_plan_decodes_as_fastavro_reads_it_and_comes_back(path):
    data, name = path.read_bytes(), record_name(path)
    value = decode_plan(name, data, path=str(path))
    (expected,) = fastavro.reader(io.BytesIO(data))
    assert value == expected
    again = encode_plan(name, value)
    assert decode_plan(name, again, path=str(path)) == value
    assert list(fastavro.reader(io.BytesIO(again))) == [value]
    assert encode_plan(name, value) == again


def test_golden_compaction_plan_is_typed_and_comes_back():
    data = golden("v6_mor_compacted/table/.hoodie/20261121074858416.compaction.requested")
    plan = decode_compaction_plan(data, "p")
    assert len(plan.operations) == 2
    assert plan.operations[0] == CompactionOperation(
        partition_path="a",
        file_id="af57d032-54ea-4406-a08c-9e1bb1839513-0",
        base_instant="20261121074759507",
        data_file="af57d032-54ea-4406-a08c-9e1bb1839513-0_0-19-20_20261121074759507.parquet",
        log_files=(
            ".af57d032-54ea-4406-a08c-9e1bb1839513-0_20261121074759507.log.1_0-42-53",
            ".af57d032-54ea-4406-a08c-9e1bb1839513-0_20261121074759507.log.2_0-42-53",
        ),
        metrics={
            "TOTAL_LOG_FILES": 2.0,
            "TOTAL_IO_MB": 0.0,
            "TOTAL_IO_READ_MB": 0.0,
            "TOTAL_LOG_FILES_SIZE": 2459.0,
            "TOTAL_IO_WRITE_MB": 0.0,
        },
    )
    again = encode_compaction_plan(plan)
    assert decode_compaction_plan(again, "p") == plan
    # The typed plan keeps all that Hudi's had.
    name = "HoodieCompactionPlan"
    assert decode_plan(name, again, path="p") == decode_plan(name, data, path="p")


def test_golden_rollback_is_typed_and_comes_back():
    data = golden("v6_mor_logs/table/.hoodie/20261121075615150.rollback.requested")
    plan = decode_rollback_plan(data, "p")
    assert (plan.instant, plan.action, plan.version) == ("20261121075610585", Action.DELTACOMMIT, 1)
    assert [request.partition_path for request in plan.requests] == ["a", "b", "a"]
    assert plan.requests[0] == RollbackRequest(
        partition_path="a",
        file_id="a60e2e5b-392c-4934-a94e-f172dc51f440-0",
        base_instant="20261121075530617",
        log_blocks={".a60e2e5b-392c-4934-a94e-f172dc51f440-0_20261121075530617.log.4_0-42-53": 1243},
    )
    assert len(plan.requests[2].files_to_delete) == 1
    again = encode_rollback_plan(plan)
    assert decode_rollback_plan(again, "p") == plan
    assert decode_plan("HoodieRollbackPlan", again, path="p") == decode_plan("HoodieRollbackPlan", data, path="p")


def test_golden_rollback_metadata_is_typed_and_comes_back():
    data = golden("v6_mor_logs/table/.hoodie/20261121075615150.rollback")
    metadata = decode_rollback_metadata(data, "p")
    assert (metadata.started, metadata.took_ms) == ("20261121075615150", 453)
    assert metadata.rolled_back == (("20261121075610585", Action.DELTACOMMIT),)
    first, second = metadata.partitions
    assert (first.partition_path, second.partition_path) == ("a", "b")
    assert len(first.deleted) == 1
    assert list(second.rollback_log_files.values()) == [105]
    assert list(second.failed_log_files.values()) == [1245]
    again = encode_rollback_metadata(metadata)
    assert decode_rollback_metadata(again, "p") == metadata
    name = "HoodieRollbackMetadata"
    assert decode_plan(name, again, path="p") == decode_plan(name, data, path="p")


TEXT = st.text(max_size=4)
LONG = st.integers(-(2**63), 2**63 - 1)
PARTITION = st.text(max_size=4).filter(is_partition_path)
FILE_ID = st.text(st.characters(exclude_characters="/_.\x00", codec="utf-8"), min_size=1, max_size=6)
INSTANT = st.integers(10**16, 10**17 - 1).map(str)


@st.composite
def compactions(draw):
    """One file slice to compact, its files named as the format names them."""
    file_id, instant = draw(FILE_ID), draw(INSTANT)
    versions = draw(st.lists(st.integers(1, 99), max_size=3, unique=True))
    return CompactionOperation(
        partition_path=draw(PARTITION),
        file_id=file_id,
        base_instant=instant,
        data_file=draw(st.none() | st.just(f"{file_id}_0-1-2_{instant}.parquet")),
        log_files=tuple(f".{file_id}_{instant}.log.{version}_0-1-2" for version in versions),
        metrics=draw(st.dictionaries(TEXT, st.floats(allow_nan=False), max_size=2)),
    )


@st.composite
def rollbacks(draw):
    """What one instant left in some file groups."""
    failed = draw(INSTANT)
    mine = st.sampled_from([f"/t/a/f-0_0-1-2_{failed}.parquet", f"file:/t/.f-0_{failed}.log.1_0-1-2"])
    request = st.builds(
        RollbackRequest,
        partition_path=PARTITION,
        file_id=st.none() | FILE_ID,
        base_instant=st.none() | INSTANT,
        files_to_delete=st.lists(mine, max_size=3).map(tuple),
        log_blocks=st.dictionaries(TEXT, LONG, max_size=3),
    )
    requests = tuple(draw(st.lists(request, max_size=4)))
    return RollbackPlan(failed, draw(st.sampled_from(Action)), requests, draw(st.integers(1, 3)))


@given(
    st.lists(compactions(), max_size=4),
    st.dictionaries(TEXT, TEXT, max_size=2),
)
def test_every_compaction_plan_comes_back(operations, extra):
    plan = CompactionPlan(tuple(operations), extra)
    assert decode_compaction_plan(encode_compaction_plan(plan), "p") == plan


@given(rollbacks())
def test_every_rollback_plan_comes_back(plan):
    assert decode_rollback_plan(encode_rollback_plan(plan), "p") == plan


PARTITIONS = st.builds(
    RollbackPartition,
    partition_path=TEXT,
    deleted=st.lists(TEXT, max_size=3).map(tuple),
    failed=st.lists(TEXT, max_size=3).map(tuple),
    rollback_log_files=st.dictionaries(TEXT, LONG, max_size=3),
    failed_log_files=st.dictionaries(TEXT, LONG, max_size=3),
)


@given(
    st.builds(
        RollbackMetadata,
        started=TEXT,
        took_ms=LONG,
        rolled_back=st.lists(
            st.tuples(TEXT, st.sampled_from(Action)), max_size=3, unique_by=lambda entry: entry[0]
        ).map(tuple),
        partitions=st.lists(PARTITIONS, max_size=3, unique_by=lambda part: part.partition_path).map(tuple),
        version=st.integers(1, 3),
    )
)
def test_every_rollback_metadata_comes_back(metadata):
    assert decode_rollback_metadata(encode_rollback_metadata(metadata), "p") == metadata


def test_version_1_compaction_plan_gives_names_instead_of_full_paths():
    operation = {
        "baseInstantTime": "20260101000000",
        "deltaFilePaths": ["file:/t/a/.f_20260101000000.log.1_0-0-0", "/t/a/.f_20260101000000.log.2_0-0-0"],
        "dataFilePath": "s3://b/t/a/f_0-0-0_20260101000000.parquet",
        "fileId": "f",
        "partitionPath": "a",
        "metrics": None,
    }
    for version in (1, None):
        plan = decode_compaction_plan(
            encode_plan("HoodieCompactionPlan", {"operations": [operation], "version": version}), "p"
        )
        (only,) = plan.operations
        assert only.data_file == "f_0-0-0_20260101000000.parquet"
        assert only.log_files == (".f_20260101000000.log.1_0-0-0", ".f_20260101000000.log.2_0-0-0")
        assert only.metrics == {}
        assert plan.version == 2


@pytest.mark.parametrize("name", ["../other/f.parquet", "/f.parquet", "..", ".", "a/", "a\x00b"])
@pytest.mark.parametrize("field", ["dataFilePath", "deltaFilePaths"])
def test_a_compaction_plan_that_names_files_elsewhere_is_refused(name, field):
    operation = {"baseInstantTime": "20260101000000", "fileId": "f", "partitionPath": "a"}
    operation[field] = name if field == "dataFilePath" else [name]
    data = encode_plan("HoodieCompactionPlan", {"operations": [operation], "version": 2})
    with pytest.raises(CorruptFileError, match=r"t/1\.compaction"):
        decode_compaction_plan(data, "t/1.compaction")


@pytest.mark.parametrize("missing", ["baseInstantTime", "fileId"])
def test_a_compaction_of_no_file_group_is_refused(missing):
    operation = {"baseInstantTime": "20260101000000", "fileId": "f", "partitionPath": "a", missing: None}
    with pytest.raises(CorruptFileError, match=r"t/1\.compaction"):
        decode_compaction_plan(encode_plan("HoodieCompactionPlan", {"operations": [operation]}), "t/1.compaction")


def test_empty_plans_have_no_operations():
    assert decode_compaction_plan(encode_plan("HoodieCompactionPlan", {}), "p") == CompactionPlan(())


def test_a_rollback_plan_of_nothing_or_of_no_known_action_is_refused():
    with pytest.raises(CorruptFileError, match="names no instant"):
        decode_rollback_plan(encode_plan("HoodieRollbackPlan", {}), "p")
    instant = {"commitTime": "20260101000000", "action": "undo"}
    with pytest.raises(CorruptFileError, match="'undo'"):
        decode_rollback_plan(encode_plan("HoodieRollbackPlan", {"instantToRollback": instant}), "p")


def test_old_rollback_metadata_without_actions_lists_commits():
    value = {"startRollbackTime": "2", "timeTakenInMillis": 0, "totalFilesDeleted": 0, "partitionMetadata": {}}
    data = encode_plan("HoodieRollbackMetadata", value | {"commitsRollback": ["1"]})
    assert decode_rollback_metadata(data, "p").rolled_back == (("1", Action.COMMIT),)


@pytest.mark.parametrize(
    "value",
    [{"versoin": 2}, {"version": "two"}, {"instantsToRollback": [{"commitTime": "1"}]}, {"instantsToRollback": None}],
)
def test_a_value_that_does_not_fit_is_not_written(value):
    with pytest.raises(SchemaError, match=NAME):
        encode_plan(NAME, value)


def test_a_plan_cut_anywhere_or_with_a_tail_names_the_file():
    data = encode_plan(NAME, {"instantsToRollback": [{"commitTime": "1", "action": "commit"}]})
    for cut in range(len(data)):
        with pytest.raises(CorruptFileError, match=r"^t/1\.restore: "):
            decode_plan(NAME, data[:cut], path="t/1.restore")
    with pytest.raises(CorruptFileError):
        decode_plan(NAME, data + b"\x00", path="p")


def test_another_marker_behind_the_record_than_in_the_header_is_refused():
    data = encode_plan(NAME, {})
    with pytest.raises(CorruptFileError, match="marker"):
        decode_plan(NAME, data[:-1] + bytes([data[-1] ^ 1]), path="p")


def test_any_changed_byte_is_an_error_or_a_plan():
    data = encode_plan(NAME, {"instantsToRollback": [{"commitTime": "1", "action": "commit"}]})
    for at, change in itertools.product(range(len(data)), (0x01, 0x80, 0xFF)):
        changed = bytearray(data)
        changed[at] ^= change
        try:
            value = decode_plan(NAME, bytes(changed), path="p")
        except (CorruptFileError, UnsupportedTableError):
            continue
        assert set(value) == {"instantsToRollback", "version", "savepointToRestoreTimestamp"}


def test_another_record_than_expected_is_refused():
    data = encode_plan(NAME, {})
    with pytest.raises(CorruptFileError, match="HoodieRollbackPlan"):
        decode_plan("HoodieRollbackPlan", data, path="p")


def test_fields_of_other_versions_are_left_out_and_filled_in():
    schema = restore_plan(later={"type": "map", "values": {"type": "array", "items": "long"}}, version=["null", "int"])
    data = container(schema, long(0) + long(1) + long(5))
    assert decode_plan(NAME, data, path="p") == {
        "instantsToRollback": [],
        "version": 5,
        "savepointToRestoreTimestamp": None,
    }


def test_header_of_several_blocks_with_sizes_is_read():
    schema = json.dumps(restore_plan(version="int")).encode()
    entry = sized(b"avro.schema") + sized(schema)
    other = sized(b"avro.codec") + sized(b"null")
    head = b"Obj\x01" + long(-1) + long(len(entry)) + entry + long(1) + other + long(0) + SYNC
    data = head + long(1) + sized(long(7)) + SYNC
    assert decode_plan(NAME, data, path="p")["version"] == 7


def test_a_compressed_plan_is_refused_unread():
    bomb = zlib.compress(bytes(1 << 20))
    with pytest.raises(UnsupportedTableError, match=r"p: .*deflate"):
        decode_plan(NAME, container(restore_plan(version="int"), bomb, avro_codec=b"deflate"), path="p")


def nested(depth: int) -> object:
    kind: object = "long"
    for _ in range(depth):
        kind = {"type": "array", "items": kind}
    return kind


def chained(depth: int) -> dict[str, object]:
    """Records that each hold the one before, by name: flat as text, deep as values."""
    kinds = {"r0": {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "long"}]}}
    for level in range(1, depth):
        field = {"name": "x", "type": f"R{level - 1}"}
        kinds[f"r{level}"] = {"type": "record", "name": f"R{level}", "fields": [field]}
    return restore_plan(**kinds)


SELF = {"type": "record", "name": "S", "fields": [{"name": "s", "type": ["null", "S"]}]}
HOSTILE_SCHEMAS = {
    "itself": (restore_plan(a=SELF), "contains itself"),
    "the plan in itself": (restore_plan(a=["null", NAME]), "contains itself"),
    "undefined": (restore_plan(a="Nowhere"), "does not define"),
    "deep": (restore_plan(a=nested(100)), "nested deeper"),
    "deep as text": (b"[" * 100_000, "not JSON"),
    "deep through names": (chained(100), "nested deeper"),
    "values without bytes": (restore_plan(a={"type": "array", "items": "null"}), "'null'"),
    "records without fields": (
        restore_plan(a={"type": "array", "items": {"type": "record", "name": "E", "fields": []}}),
        "no fields",
    ),
    "fixed of no size": (restore_plan(a={"type": "fixed", "name": "F", "size": 0}), "'fixed'"),
    "wide union": (restore_plan(a=["null", "int", "string"]), "union of 3"),
    "union of nulls": (restore_plan(a=["null", "null"]), "union"),
    "twice": (restore_plan(a=SELF | {"fields": [{"name": "x", "type": "int"}]}, b=SELF), "twice"),
    "no type": (restore_plan(a=7), "'7'"),
    "no name": ({"type": "record", "name": NAME, "fields": [{"type": "int"}]}, "no name"),
    "no record": ({"type": "string", "name": NAME}, "does not"),
    "empty": (b"", "0 bytes"),
    "large": (json.dumps(restore_plan(a="int") | {"doc": "x" * (1 << 20)}).encode(), "bytes; 1 to"),
    "another shape": (restore_plan(version="string"), "known one"),
}


@pytest.mark.parametrize(("schema", "says"), HOSTILE_SCHEMAS.values(), ids=HOSTILE_SCHEMAS.keys())
def test_a_schema_that_no_plan_has_is_refused(schema, says):
    with pytest.raises(CorruptFileError) as error:
        decode_plan(NAME, container(schema, long(0)), path="p")
    assert says in str(error.value)


def test_nesting_up_to_the_bound_is_read():
    schema = restore_plan(a=nested(60), version="int")
    assert decode_plan(NAME, container(schema, long(0) + long(3)), path="p")["version"] == 3
    schema = chained(50)
    schema["fields"].append({"name": "version", "type": "int"})
    assert decode_plan(NAME, container(schema, long(1) * 50 + long(3)), path="p")["version"] == 3


HOSTILE_RECORDS = {
    "negative union branch": (["null", "string"], long(-1) + sized(b"1")),
    "union branch too far": (["null", "string"], long(2)),
    "long string": ("string", long(1 << 40)),
    "negative length": ("string", long(-5)),
    "no UTF-8": ("string", sized(b"\xff")),
    "array without end": ({"type": "array", "items": "long"}, long(1 << 40) + long(1)),
    "boolean of 5": ("boolean", b"\x05"),
    "long of 12 bytes": ("long", b"\xff" * 11 + b"\x01"),
    "bytes behind": ("long", long(1) + b"\x00"),
    "bytes missing": ("long", b""),
}


@pytest.mark.parametrize(("kind", "record"), HOSTILE_RECORDS.values(), ids=HOSTILE_RECORDS.keys())
def test_a_record_that_is_no_value_of_its_schema_is_refused(kind, record):
    with pytest.raises(CorruptFileError, match="record does not decode"):
        decode_plan(NAME, container(restore_plan(a=kind), record), path="p")


def test_the_record_of_a_commit_ends_where_it_should():
    """It is not encoded again to see that."""
    stats = {
        "b/c": [
            {"fileId": "f-0", "path": "b/c/f-0_0-0-0_20260101000000000.parquet", "prevCommit": "null", "numWrites": 2}
        ]
    }
    record = encode_entry(COMMIT, {"partitionToWriteStats": stats, "extraMetadata": {}, "operationType": "UPSERT"})
    path = "20260101000000000.commit"
    assert decode_commit_file(container(known_schema(COMMIT), record), Action.COMMIT, path=path).write_stats.keys() == {
        "b/c"
    }
    for damaged in (record + b"\0", record[:-1], record[: len(record) // 2]):
        with pytest.raises(CorruptFileError, match="record does not decode"):
            decode_commit_file(container(known_schema(COMMIT), damaged), Action.COMMIT, path=path)


@pytest.mark.parametrize("count", [0, 2, -1, 1 << 40])
def test_another_number_of_records_than_one_is_refused(count):
    with pytest.raises(CorruptFileError, match="expected 1"):
        decode_plan(NAME, container(restore_plan(version="int"), long(1), count=count), path="p")


def test_a_header_of_many_entries_is_refused_before_they_are_read():
    with pytest.raises(CorruptFileError, match="entries in the header"):
        decode_plan(NAME, b"Obj\x01" + long(1 << 40) + sized(b"k") + sized(b"v"), path="p")
