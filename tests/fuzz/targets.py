"""Decoders for a fuzzer: each takes any bytes and may raise `HoodieError`, nothing else.

A target's first byte chooses between variants (schemas, kinds of plans) where it has several.
"""

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from hoodie.format.archive import decode_archive_file, decode_archived_commits, decode_manifest
from hoodie.format.avro_schema import arrow_from_avro, parse_schema
from hoodie.format.base_file import read_footer
from hoodie.format.bloom import build_bloom, parse_bloom
from hoodie.format.clustering_plan import decode_clustering_plan
from hoodie.format.commit_avro import decode_commit_file
from hoodie.format.commit_json import encode_commit
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.log_content import decode_avro_data, decode_deletes
from hoodie.format.plan_avro import decode_compaction_plan, decode_rollback_metadata, decode_rollback_plan
from hoodie.format.properties import parse_properties_file
from hoodie.format.restore_plans import decode_restore_plan, decode_savepoint
from hoodie.format.service_plans import earliest_kept, earliest_kept_by_plan, is_clustering_plan
from hoodie.hfile.reader import HFileReader
from hoodie.hfile.source import BufferSource
from hoodie.model.enums import Action, BlockKind, HeaderKey
from hoodie.model.names import parse_base_file, parse_instant_file, parse_log_file
from hoodie.options.table import parse_table_config
from hoodie.read.where import parse_filter
from hoodie.view.consumers import ConsumerPlace, decode_place, encode_place
from tests.golden_tables import FOLDER

PATH = "t/.hoodie/20261121075530617"
_WHERE_SCHEMA = pa.schema([("id", pa.string()), ("qty", pa.int64()), ("when", pa.date32()), ("price", pa.float64())])
_ORDERING = (None, pa.int32(), pa.int64(), pa.string(), pa.decimal128(10, 2), pa.timestamp("us", "UTC"), pa.bool_())
_COMMITS = (Action.COMMIT, Action.DELTACOMMIT, Action.REPLACECOMMIT)
_BLOOMS = ("SIMPLE", "DYNAMIC_V0", "PYBLOOM_LIVE")


def _files(pattern: str) -> Iterator[bytes]:
    for path in sorted(FOLDER.glob(pattern)):
        if path.is_file() and path.stat().st_size:
            yield path.read_bytes()


def _blocks(*kinds: BlockKind) -> Iterator[LogBlock]:
    for data in _files("v*/table/**/.*.log.*"):
        yield from (block for block in scan_blocks(data) if isinstance(block, LogBlock) and block.kind in kinds)


def _schemas() -> tuple[str, ...]:
    """The writer schemas of the golden log files, each once."""
    return tuple(sorted({block.header[HeaderKey.SCHEMA] for block in _blocks(BlockKind.AVRO_DATA)}))


SCHEMAS = _schemas()


def log_file(data: bytes) -> None:
    for block in scan_blocks(data):
        if isinstance(block, LogBlock) and block.kind is BlockKind.AVRO_DATA and HeaderKey.SCHEMA in block.header:
            decode_avro_data(block.content, block.header[HeaderKey.SCHEMA])


def avro_data(data: bytes) -> None:
    decode_avro_data(data[1:], SCHEMAS[data[0] % len(SCHEMAS)] if data else SCHEMAS[0])


def avro_schema(data: bytes) -> None:
    arrow_from_avro(parse_schema(data.decode("utf-8", "replace")))


def delete_block(data: bytes) -> None:
    decode_deletes(data[1:], _ORDERING[data[0] % len(_ORDERING)] if data else None)


def commit(data: bytes) -> None:
    """JSON or Avro container, by its first bytes; what decodes can be written."""
    action = _COMMITS[data[0] % len(_COMMITS)] if data else Action.COMMIT
    encode_commit(decode_commit_file(data[1:], action, path=f"{PATH}.{action}"))


def plan(data: bytes) -> None:
    kinds = (
        lambda content: decode_compaction_plan(content, PATH),
        lambda content: decode_rollback_plan(content, PATH),
        lambda content: decode_rollback_metadata(content, PATH),
        lambda content: earliest_kept_by_plan(content, path=PATH),
        lambda content: earliest_kept(content, path=PATH),
        lambda content: is_clustering_plan(content, path=PATH),
        lambda content: decode_clustering_plan(content, path=PATH),
        lambda content: decode_restore_plan(content, path=PATH),
        lambda content: decode_savepoint(content, path=PATH),
    )
    kinds[data[0] % len(kinds) if data else 0](data[1:])


def archive(data: bytes) -> None:
    if data[:1] == b"{":
        decode_manifest(data, path=PATH)
        return
    times = frozenset(instant.time for instant in decode_archive_file(data, path=PATH))
    decode_archived_commits(data, times, path=PATH)


def properties(data: bytes) -> None:
    parse_table_config(parse_properties_file(data, path=PATH), uri="t")


def bloom(data: bytes) -> None:
    code = _BLOOMS[data[0] % len(_BLOOMS)] if data else None
    parse_bloom(code, data[1:]).might_contain(pa.array(["a", "key-1", ""]))


def hfile(data: bytes) -> None:
    reader = HFileReader(BufferSource(data, PATH))
    keys = pa.array([b"key 000007", b"__all_partitions__", b""], pa.binary())
    reader.get_many(keys)
    reader.get(b"key 000003")
    for name in reader.meta_names:
        reader.meta(name)
    for _ in reader.scan():
        pass


def names(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for parsed in (parse_base_file(text), parse_log_file(text)):
        assert parsed is None or "/" not in text, "a file name never leads to another folder"
    for layout in (1, 2):
        parse_instant_file(text, layout)


def where(data: bytes) -> None:
    parse_filter(data.decode("utf-8", "replace"), _WHERE_SCHEMA)


def consumer(data: bytes) -> None:
    place = decode_place(data, name="dash", table="t")
    assert decode_place(encode_place(place), name="dash", table="t") == place


def _all_names() -> list[bytes]:
    return sorted({path.name.encode() for path in FOLDER.glob("*/table/**/*") if path.is_file()})


def _schema_numbers(block: LogBlock) -> int:
    return SCHEMAS.index(block.header[HeaderKey.SCHEMA])


def _seeds_of_commits() -> list[bytes]:
    return [
        bytes([number]) + data
        for number, action in enumerate(_COMMITS)
        for folder in (".hoodie", ".hoodie/timeline")
        for data in _files(f"*/table/{folder}/*.{action}")
    ]


def _seeds_of_plans() -> list[bytes]:
    patterns = ("compaction.requested", "rollback.requested", "rollback", "clean.requested", "clean")
    found = [
        bytes([number]) + data for number, end in enumerate(patterns) for data in _files(f"*/table/.hoodie/*.{end}")
    ]
    later = ((5, "replacecommit.requested"), (6, "replacecommit.requested"), (7, "restore.requested"), (8, "savepoint"))
    found += [bytes([number]) + data for number, end in later for data in _files(f"*/table/.hoodie/*.{end}")]
    return [seed for seed in found if seed[0] != 6 or is_clustering_plan(seed[1:], path=PATH)]


def _seeds_of_consumers() -> list[bytes]:
    places = (ConsumerPlace("dash", position, True, 1_795_581_571_268) for position in (None, "20261121075530617"))
    return [encode_place(place) for place in places]


def _seeds_of_blooms() -> list[bytes]:
    found = []
    for path in sorted(FOLDER.glob("v6_[cm]*/table/*/*.parquet")):
        footer = read_footer(pq.read_metadata(path), path=path.name)
        if footer.bloom_base64 is not None and footer.bloom_type in _BLOOMS and len(footer.bloom_base64) < 4096:
            found.append(bytes([_BLOOMS.index(footer.bloom_type)]) + base64.b64decode(footer.bloom_base64))
    keys = pa.array(["a", "b", "key-1"])
    for number, code in enumerate(_BLOOMS):
        filled = build_bloom(code, keys, num_entries=8, fpp=0.01, max_entries=16)
        found.append(bytes([number]) + filled.to_bytes())
    return found


class Target(NamedTuple):
    decode: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]


TARGETS: Mapping[str, Target] = {
    "log_file": Target(log_file, lambda: list(_files("v*/table/**/.*.log.*"))),
    "avro_data": Target(
        avro_data,
        lambda: [bytes([_schema_numbers(block)]) + bytes(block.content) for block in _blocks(BlockKind.AVRO_DATA)],
    ),
    "avro_schema": Target(avro_schema, lambda: [schema.encode() for schema in SCHEMAS]),
    "delete_block": Target(
        delete_block, lambda: [b"\x02" + bytes(block.content) for block in _blocks(BlockKind.DELETE)]
    ),
    "commit": Target(commit, _seeds_of_commits),
    "plan": Target(plan, _seeds_of_plans),
    "archive": Target(
        archive,
        lambda: [
            *_files("*/table/.hoodie/**/.commits_.archive*"),
            *_files("*/table/.hoodie/timeline/history/manifest*"),
        ],
    ),
    "properties": Target(properties, lambda: list(_files("*/table/.hoodie/hoodie.properties"))),
    "bloom": Target(bloom, _seeds_of_blooms),
    "consumer": Target(consumer, _seeds_of_consumers),
    "hfile": Target(
        hfile, lambda: [*_files("hfiles/*.hfile"), *_files("v6_mdt_*/table/.hoodie/metadata/files/*.hfile")]
    ),
    "names": Target(names, _all_names),
    "where": Target(where, lambda: [b"id = 'a' and qty >= 1000", b"\"when\" between '2024-01-01' and '2024-02-01'"]),
}
