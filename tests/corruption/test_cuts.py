"""Every file of two golden tables, cut at every length, through the decoder of its kind."""

from collections.abc import Callable

import pyarrow as pa
import pytest

from hoodie.errors import CorruptFileError, UnsupportedTableError
from hoodie.format.commit_avro import decode_commit_file
from hoodie.format.log_block import LogBlock, scan_blocks
from hoodie.format.log_content import decode_avro_data, decode_deletes
from hoodie.format.parquet_file import open_parquet, read_batches
from hoodie.format.plan_avro import decode_compaction_plan, decode_rollback_metadata, decode_rollback_plan
from hoodie.format.properties import parse_properties_file
from hoodie.model.enums import Action, BlockKind, HeaderKey
from hoodie.options.table import parse_table_config
from tests.corruption.damage import Source, load
from tests.effort import in_shares

TABLES = ("v6_mor_logs", "v6_composite_keys_mor", "v6_mor_pending_compaction", "v9_mor")
PATH = "t/the file"


def parquet(data: bytes) -> None:
    with open_parquet(pa.BufferReader(data), path=PATH) as file:
        for _ in read_batches(file, file.schema_arrow.names, batch_rows=1000, path=PATH):
            pass


def completed(action: Action) -> Callable[[bytes], object]:
    return lambda data: decode_commit_file(data, action, path=f"{PATH}.{action}")


DECODERS: dict[str, Callable[[bytes], object]] = {
    ".parquet": parquet,
    ".commit": completed(Action.COMMIT),
    ".deltacommit": completed(Action.DELTACOMMIT),
    ".replacecommit": completed(Action.REPLACECOMMIT),
    ".compaction.requested": lambda data: decode_compaction_plan(data, PATH),
    ".rollback.requested": lambda data: decode_rollback_plan(data, PATH),
    ".rollback": lambda data: decode_rollback_metadata(data, PATH),
}


def files_with(source: Source, ending: str) -> dict[str, bytes]:
    return {
        path: data for path, data in source.files.items() if path.endswith(ending) and data and "metadata/" not in path
    }


@pytest.mark.parametrize("ending", DECODERS)
@pytest.mark.parametrize("table", TABLES)
@in_shares(3)
def test_a_file_that_is_cut_anywhere_is_an_error(table, ending, share):
    decode = DECODERS[ending]
    for data in files_with(load(table), ending).values():
        decode(data)
        for length in share.of(range(len(data))):
            with pytest.raises(CorruptFileError, match=PATH):
                decode(data[:length])


def entries(data: bytes) -> list[int]:
    """How many records and deletes each whole block of a log file holds."""
    blocks = [block for block in scan_blocks(data) if isinstance(block, LogBlock)]
    return [content_of(block, block.content).num_rows if len(block.content) else 0 for block in blocks]


def content_of(block: LogBlock, content: bytes) -> pa.Table:
    if block.kind is BlockKind.AVRO_DATA:
        return decode_avro_data(content, block.header[HeaderKey.SCHEMA])
    return decode_deletes(content, None)


@pytest.mark.parametrize("table", TABLES)
@in_shares(3)
def test_a_log_file_that_is_cut_anywhere_keeps_its_whole_blocks_and_no_half_ones(table, share):
    logs = [data for path, data in load(table).files.items() if ".log." in path and "metadata/" not in path]
    assert logs
    for data in logs:
        ends = [block.offset + block.size_bytes for block in scan_blocks(data) if isinstance(block, LogBlock)]
        whole = entries(data)
        for length in share.of(range(len(data))):
            assert entries(data[:length]) == whole[: sum(end <= length for end in ends)]


@pytest.mark.parametrize("table", TABLES)
def test_a_block_whose_content_is_cut_anywhere_is_an_error(table):
    for path, data in load(table).files.items():
        for block in scan_blocks(data) if ".log." in path and "metadata/" not in path else ():
            content = bytes(block.content)
            for length in range(len(content)):
                with pytest.raises(CorruptFileError):
                    content_of(block, content[:length])


@pytest.mark.parametrize("table", TABLES)
def test_table_properties_that_are_cut_within_a_line_are_an_error(table):
    data = load(table).files[".hoodie/hoodie.properties"]
    whole = parse_properties_file(data, path=PATH)
    for length in range(1, len(data)):
        if data[length - 1 : length] == b"\n":
            kept = parse_properties_file(data[:length], path=PATH)
            assert kept.items() <= whole.items()  # between two lines the file says less, and nothing else
            if "hoodie.table.name" not in kept:
                with pytest.raises((CorruptFileError, UnsupportedTableError)):
                    parse_table_config(kept, uri="t")
            continue
        with pytest.raises(CorruptFileError, match=PATH):
            parse_properties_file(data[:length], path=PATH)
