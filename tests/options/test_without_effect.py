"""Each option of Apache Hudi that changes nothing has a reason, and the log gives it."""

import logging

import pytest

import hoodie
from hoodie.options import registry
from hoodie.options.class_names import newest_names
from hoodie.options.parse import parse_read_options, parse_write_options
from hoodie.options.settings import READS, WRITES
from hoodie.options.unsupported import NOT_DONE
from hoodie.options.without_effect import REASONS, reason, with_reasons

_NOTE = reason("_job")
MODULES = {
    "className": "org.apache.hudi",
    "hoodie.datasource.meta.sync.glue.all_partitions_read_parallelism": "1",
    "hoodie.meta.sync.datahub.emitter.server": "x",
    "hoodie.gcp.bigquery.sync.base_path": "x",
    "hoodie.streamer.source.dfs.root": "x",
    "hoodie.deltastreamer.transformer.sql": "x",
    "hoodie.deltastreamer.jdbc.extra.options.fetchsize": "7",
    "hoodie.index.hbase.qps.fraction": "x",
    "hoodie.assume.date.partitioning": "false",
    "hoodie.datasource.hive_sync.assume_date_partitioning": "false",
}


def test_every_option_without_effect_has_a_reason():
    asked = {name.lower() for each in NOT_DONE for name in each.names}
    bare = [
        name
        for folded, name in registry.known_keys().items()
        if folded not in {*WRITES, *READS} and newest_names().get(folded) not in asked and reason(name) == _NOTE
    ]
    assert bare == []


def test_every_reason_is_of_an_option_that_is_known():
    known = registry.known_keys()
    idle = [
        start for starts in REASONS.values() for start in starts if not any(n.startswith(start.lower()) for n in known)
    ]
    assert idle == []


@pytest.mark.parametrize("parse", [parse_write_options, parse_read_options])
def test_keys_of_the_other_modules_are_accepted_without_effect(parse):
    found = parse(MODULES)
    assert found.ignored == tuple(sorted(MODULES))
    assert parse({}) == parse({}) != found


def test_the_log_says_why(tmp_path, caplog):
    options = {
        "className": "org.apache.hudi",
        "hoodie.datasource.write.row.writer.enable": "false",
        "hoodie.parquet.page.size": "1",
    }
    table = hoodie.create_table(tmp_path / "t", {"id": "int64"}, record_key="id")
    with caplog.at_level(logging.WARNING, logger="hoodie"):
        table.upsert({"id": [1]}, options=options)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line == (
        "options of Apache Hudi that have no effect here: className (it is for AWS Glue's connector; format(…) names the format); "
        "hoodie.datasource.write.row.writer.enable, hoodie.parquet.page.size (rows are written as Arrow in any case)"
    )


def test_what_the_other_door_understands_is_for_that_door():
    assert with_reasons(("hoodie.table.name", "hoodie.datasource.query.type", "_job")) == (
        "hoodie.table.name (it is for writes); hoodie.datasource.query.type (it is for reads); "
        "_job (it is kept in the metadata of a commit, where it is set for a write)"
    )
