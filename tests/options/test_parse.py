"""Options from text: the three-way rule, names, values, layers."""

import pickle
import re
from dataclasses import fields, is_dataclass, replace
from importlib import resources
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.model.enums import MergeMode, QueryType, TableType, TableVersion, WriteOperation
from hoodie.model.plans import FileOptions
from hoodie.options import registry
from hoodie.options.class_names import newest_names
from hoodie.options.defaults_file import load_defaults, parse_defaults
from hoodie.options.option import keys_of
from hoodie.options.other_systems import OTHER_SYSTEMS
from hoodie.options.parse import parse_read_options, parse_write_options
from hoodie.options.read import ReadOptions
from hoodie.options.table_options import TableOptions
from hoodie.options.unsupported import NOT_DONE, names_not_done
from hoodie.options.values import IndexType, KeyGeneratorType, MorInserts, OverwriteMode
from hoodie.options.write import WriteOptions

HUDI = resources.files("hoodie.options").joinpath("hudi_keys.tsv").read_text(encoding="utf-8").splitlines()[1:]
HUDI_NAMES = [name for line in HUDI for cell in line.split("\t") for name in cell.split(",")]
OURS = [name for group in registry.GROUPS.values() for key in group for name in key.names]


def refusal(options, *, parse=parse_write_options, error=OptionError, **more):
    with pytest.raises(error) as caught:
        parse(options, **more)
    return str(caught.value)


def test_of_two_names_of_a_table_that_of_the_table_counts():
    """As in Apache Hudi, where both may be set."""
    names = {"hoodie.table.name": "t", "hoodie.datasource.write.table.name": "w"}
    assert parse_write_options({"hoodie.datasource.write.recordkey.field": "id", **names}).table.name == "t"
    del names["hoodie.table.name"]
    assert parse_write_options({"hoodie.datasource.write.recordkey.field": "id", **names}).table.name == "w"


def test_nothing_set_gives_the_defaults():
    request = parse_write_options({})
    assert request.write == WriteOptions()
    assert request.table == TableOptions()
    assert request.ignored == ()
    assert parse_read_options({}) == ReadOptions()


def test_defaults_are_those_that_are_promised():
    write = WriteOptions()
    assert write.operation is WriteOperation.UPSERT
    assert (write.max_file_size_bytes, write.small_file_limit_bytes) == (125_829_120, 104_857_600)
    assert (write.compression, write.log_block_format, write.driver_max_bytes) == ("zstd", "avro", 134_217_728)
    assert (write.index.type, write.index.bloom_num_entries) == (IndexType.BLOOM, None)
    assert (write.compaction.inline, write.compaction.max_delta_commits) == (False, 5)
    assert (write.concurrency.heartbeat_interval_s, write.concurrency.lock_timeout_s) == (60, 60)


def test_a_whole_upsert_job_is_parsed():
    request = parse_write_options(
        {
            "hoodie.table.name": "flights",
            "hoodie.datasource.write.recordkey.field": "carrier, flight",
            "hoodie.datasource.write.partitionpath.field": "month",
            "hoodie.datasource.write.precombine.field": "updated_at",
            "hoodie.datasource.write.table.type": "merge_on_read",
            "hoodie.datasource.write.operation": "Bulk_Insert",
            "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
            "hoodie.datasource.write.hive_style_partitioning": "TRUE",
            "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload",
            "hoodie.bulkinsert.shuffle.parallelism": "7",
            "hoodie.parquet.small.file.limit": "-1",
            "hoodie.parquet.compression.codec": "UNCOMPRESSED",
            "hoodie.index.type": "SIMPLE",
            "hoodie.write.lock.wait_time_ms": "1500",
            "hoodie.python.mor.inserts": "base_file",
            "hoodie.write.table.version": "6",
        }
    )
    assert request.table == TableOptions(
        name="flights",
        table_type=TableType.MERGE_ON_READ,
        version=TableVersion.V6,
        record_key_fields=("carrier", "flight"),
        partition_fields=("month",),
        ordering_fields=("updated_at",),
        keygen=KeyGeneratorType.COMPLEX,
        hive_style=True,
        merge_mode=MergeMode.COMMIT_TIME_ORDERING,
        payload="",
        mor_inserts=MorInserts.BASE_FILE,
        index=IndexType.SIMPLE,
    )
    write = request.write
    assert write.operation is WriteOperation.BULK_INSERT
    assert write.parallelism[WriteOperation.BULK_INSERT] == 7
    assert (write.small_file_limit_bytes, write.compression) == (0, "none")
    assert (write.index.type, write.concurrency.lock_timeout_s) == (IndexType.SIMPLE, 1.5)
    assert request.ignored == ()


def _values(value):
    """A parsed value and those in it."""
    yield value
    for each in fields(value):
        if is_dataclass(inside := getattr(value, each.name)):
            yield from _values(inside)


def test_every_number_of_a_value_arrives_at_its_field():
    groups = [group for title, group in registry.GROUPS.items() if title not in ("Table", "Reading")]
    numbers = {key.name for group in groups for key in group if key.shown.isdigit()}
    texts = {name: str(1000 + number) for number, name in enumerate(sorted(numbers))}
    texts |= {"hoodie.keep.max.commits": "2000", "hoodie.filesystem.view.type": "remote_first"}  # more than the least
    found = {}
    write = parse_write_options(texts).write
    for value in _values(write):
        for each in fields(value):
            keys_of_field = keys_of(type(value), only=each.name)
            if len(keys_of_field) == 1:
                found[keys_of_field[0].name] = keys_of_field[0], getattr(value, each.name)
    retries, limit_mb = "hoodie.filesystem.view.remote.retry.max_numbers", "hoodie.python.memory.limit.mb"
    tasks = [f"hoodie.{each}.shuffle.parallelism" for each in ("upsert", "insert", "bulkinsert", "delete")]
    assert numbers - set(found) == {retries, *tasks}
    found.pop(limit_mb)
    assert write.view.remote.retries == int(texts[retries])
    assert [write.parallelism[WriteOperation[each]] for each in ("UPSERT", "INSERT", "BULK_INSERT", "DELETE")] == [
        int(texts[name]) for name in tasks
    ]
    assert write.memory_limit_bytes == int(texts[limit_mb]) * 1024 * 1024
    assert {name: got for name, (_, got) in found.items() if name in numbers} == {
        name: key.parse(texts[name]) for name, (key, _) in found.items() if name in numbers
    }


def test_markers_are_gathered_where_an_option_says_so():
    by_number = parse_write_options({}).write
    assert (by_number.gathers_markers(100), by_number.gathers_markers(101)) == (False, True)
    assert parse_write_options({"hoodie.write.markers.type": "timeline_server_based"}).write.gathers_markers(1)
    assert not parse_write_options({"hoodie.write.markers.type": "DIRECT"}).write.gathers_markers(1000)


def test_the_tasks_are_told_of_files_what_the_options_say():
    options = {
        "hoodie.parquet.compression.codec": "snappy",
        "hoodie.bloom.index.filter.type": "SIMPLE",
        "hoodie.index.bloom.fpp": "0.01",
        "hoodie.index.bloom.num_entries": "7",
        "hoodie.bloom.index.filter.dynamic.max.entries": "8",
        "hoodie.logfile.data.block.max.size": "9",
    }
    assert parse_write_options(options).write.file_options() == FileOptions("snappy", "SIMPLE", 0.01, 7, 8, 9)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("hoodie.combine.before.upsert", "combine_before_upsert"),
        ("hoodie.combine.before.insert", "combine_before_insert"),
        ("hoodie.combine.before.delete", "combine_before_delete"),
        ("hoodie.write.complex.keygen.new.encoding", "complex_key_new_encoding"),
    ],
)
def test_every_flag_of_a_write_arrives_where_it_belongs(name, field):
    for text, value in (("true", True), ("false", False)):
        assert parse_write_options({name: text}).write == replace(WriteOptions(), **{field: value})


def test_requests_survive_pickling():
    request = parse_write_options({"hoodie.table.name": "t"})
    assert pickle.loads(pickle.dumps(request)) == request


@pytest.mark.parametrize(
    ("operation", "combines"),
    [("upsert", True), ("delete", True), ("insert", False), ("bulk_insert", False)],
)
def test_combining_is_chosen_by_the_operation(operation, combines):
    assert parse_write_options({"hoodie.datasource.write.operation": operation}).write.combine is combines


# -- keys ----------------------------------------------------------------------------------------------------------


def test_the_known_names_are_all_of_hudi_and_ours():
    assert len(HUDI) == 1050
    assert {name.lower() for name in (*HUDI_NAMES, *OURS)} == set(registry.known_keys())


def test_no_name_stands_for_two_options():
    assert len({name.lower() for name in OURS}) == len(OURS)


def test_our_own_keys_are_the_only_ones_that_hudi_does_not_know():
    own = {name for name in OURS if name.lower() not in {each.lower() for each in HUDI_NAMES}}
    assert own == {
        "where",
        "columns",
        "hoodie.clustering.preserve.commit.metadata",  # of Apache Hudi 0.x
        "hoodie.python.index.expression.timezone",
        "hoodie.python.mor.inserts",
        "hoodie.python.parquet.key.map",
        "hoodie.python.mor.row.copies",
        "hoodie.python.driver.max.bytes",
        "hoodie.python.durability",
        "hoodie.python.publish.delta",
        "hoodie.python.publish.iceberg",
        "hoodie.python.memory.limit.mb",
        "hoodie.payload.delete.field",
        "hoodie.payload.delete.marker",
        "hoodie.python.merger",
        "hoodie.python.upsert.partial",
        "hoodie.python.upsert.partial.blocks",
        "hoodie.python.view.checkpoint.path",
        "hoodie.python.write.integers.to.floating",
        "hoodie.python.hive_sync.timeout",
        "hoodie.python.index.hbase.thrift",
        "hoodie.python.index.update.partition.path",
        "hoodie.python.consumer.hours.retained",
        "hoodie.python.stream.id",
        "hoodie.python.stream.batch",
        "hoodie.python.view.remote.token",
        "maxCommitsPerTrigger",
        "maxBytesPerTrigger",
        "mergeSchema",
        "partitionOverwriteMode",
        "timestampAsOf",
    }


@pytest.mark.parametrize("parse", [parse_write_options, parse_read_options])
@pytest.mark.parametrize(
    ("typo", "meant"),
    [
        ("hoodie.datasource.write.operaton", "hoodie.datasource.write.operation"),
        ("HOODIE.TABLE.NAM", "hoodie.table.name"),
        ("hoodie.python.driver.max.byte", "hoodie.python.driver.max.bytes"),
        ("hoodie.cleaner.comits.retained", "hoodie.cleaner.commits.retained"),
    ],
)
def test_an_unknown_key_suggests_the_nearest(parse, typo, meant):
    assert refusal({typo: "x"}, parse=parse) == f"unknown option {typo!r}. did you mean {meant!r}?"


def test_several_unknown_keys_are_told_at_once_and_briefly():
    message = refusal({f"hoodie.zzzzzz.{n}": "1" for n in range(9)})
    assert message.count("unknown option") == 5
    assert message.splitlines()[-1] == "and 4 more"


def test_every_key_of_hudi_is_known_in_any_case():
    unused = {name.upper() for name in HUDI_NAMES} - {name.upper() for name in OURS}
    assert (
        len({name.lower() for name in HUDI_NAMES}) > 700
    )  # the list is whole: `unused` shrinks with each that we honour
    assert unused
    for parse, reading in ((parse_write_options, False), (parse_read_options, True)):
        of_capabilities = {name for name in unused if newest_names()[name.lower()] in names_not_done(reading=reading)}
        plain = unused - of_capabilities
        assert parse(dict.fromkeys(plain, "x")).ignored == tuple(sorted(plain))
        assert parse(dict.fromkeys(of_capabilities, "false")).ignored == ()


def test_the_payloads_own_keys_are_accepted():
    options = {"hoodie.payload.event.time.field": "ts", "hoodie.payload.ordering.field": "ts"}
    assert parse_write_options(options).ignored == tuple(sorted(options))


# -- what nobody knows, and what other systems call so ---------------------------------------------------------------


@pytest.mark.parametrize("parse", [parse_write_options, parse_read_options])
@pytest.mark.parametrize("name", ["path", "header", "spark.hoodie.x", "fs.s3a.access.key", "fare", ""])
def test_a_key_that_nobody_knows_is_an_error_whatever_it_begins_with(parse, name):
    assert f"unknown option {name!r}" in refusal({name: "x"}, parse=parse)
    assert f"unknown option {name!r}" in refusal({name: "x", "hoodie.table.name": "t"}, parse=parse)


@pytest.mark.parametrize(
    ("typo", "meant"),
    [("as.of.instnt", "as.of.instant"), ("AS.OF.INSTANTS", "as.of.instant"), ("timestampAsOff", "timestampAsOf")],
)
def test_a_misspelt_key_without_the_prefix_suggests_the_nearest(typo, meant):
    assert refusal({typo: "x"}, parse=parse_read_options) == f"unknown option {typo!r}. did you mean {meant!r}?"


@pytest.mark.parametrize("parse", [parse_write_options, parse_read_options])
@pytest.mark.parametrize("name", OTHER_SYSTEMS)
def test_a_key_of_another_system_is_an_error_that_names_ours(parse, name):
    for spelled in (name, name.upper(), name.lower()):
        message = refusal({spelled: "x"}, parse=parse)
        assert message.startswith(f"option {spelled!r} is ")
        assert "instead: " in message
        assert len(message.splitlines()) == 1
    named = [word for word in re.findall(r"hoodie\.[\w.]+\w", OTHER_SYSTEMS[name][1]) if word != "hoodie.table"]
    assert {word.lower() for word in named} <= set(registry.known_keys())


def test_no_key_of_another_system_is_also_one_of_ours():
    assert not {name.lower() for name in OTHER_SYSTEMS} & set(registry.known_keys())


@pytest.mark.parametrize("value", ["dynamic", "DYNAMIC", "Dynamic"])
def test_a_partition_overwrite_mode_is_honoured(value):
    for name in ("partitionOverwriteMode", "partitionoverwritemode"):
        assert parse_write_options({name: value}).write.overwrite_mode is OverwriteMode.DYNAMIC
    assert parse_write_options({"partitionOverwriteMode": "static"}).write.overwrite_mode is OverwriteMode.STATIC
    assert parse_write_options({}).write.overwrite_mode is None
    refusal({"partitionOverwriteMode": value, "hoodie.datasource.overwrite.mode": "STATIC"})
    operation = {"hoodie.datasource.write.operation": "insert_overwrite_table"}
    assert "drop one of them" in refusal({"partitionOverwriteMode": value, **operation})


@pytest.mark.parametrize(
    ("text", "session", "instant"),
    [
        ("2026-01-02 03:04:05", "America/Los_Angeles", "20260102110405000"),
        ("2026-01-02T03:04:05.5", "UTC", "20260102030405500"),
        ("2026-01-02", "Asia/Tokyo", "20260101150000000"),
        ("2026-01-02 03:04:05+02:00", "Asia/Tokyo", "20260102010405000"),
        ("20260102030405000", "Asia/Tokyo", "20260102030405000"),
    ],
)
def test_timestamp_as_of_is_wall_clock_of_the_session(text, session, instant):
    options = {"timestampAsOf": text}
    assert parse_read_options(options, session_zone=ZoneInfo(session)).as_of == instant
    if text[-6:-5] == "+" or text.isdigit():
        assert parse_read_options(options).as_of == instant
    else:
        assert "has no offset, and the session's time zone is not seen" in refusal(options, parse=parse_read_options)
    both = options | {"as.of.instant": instant}
    assert "drop one of them" in refusal(both, parse=parse_read_options, session_zone=ZoneInfo(session))
    incremental = options | {"hoodie.datasource.query.type": "incremental"}
    assert "does not go with" in refusal(incremental, parse=parse_read_options, session_zone=ZoneInfo(session))


def test_new_columns_are_always_merged_and_never_not():
    for parse in (parse_write_options, parse_read_options):
        assert parse({"mergeSchema": "true"}) == parse({})
        assert "always added" in refusal({"MERGESCHEMA": "false"}, parse=parse)


def test_options_of_the_users_own_are_kept_in_the_metadata_of_the_commit():
    assert parse_write_options({"_job": "7", "_Run": 8}).write.commit_entries == {"_job": "7", "_Run": "8"}
    assert parse_read_options({"_job": "7"}).ignored == ("_job",)
    prefixed = {"hoodie.datasource.write.commitmeta.key.prefix": "my.", "MY.job": "7"}
    assert parse_write_options(prefixed).write.commit_entries == {"MY.job": "7"}
    assert "unknown option '_job'" in refusal(prefixed | {"_job": "7"})
    assert "unknown option '_hoodie.job'" in refusal({"_hoodie.job": "7"})


@pytest.mark.parametrize("value", [None, ["x"], b"x", object()])
def test_a_value_that_is_no_text(value):
    assert "option 'hoodie.table.name' has a value of type" in refusal({"hoodie.table.name": value})


def test_values_that_are_numbers_and_flags_are_taken_as_spark_takes_them():
    write = parse_write_options({"hoodie.compact.inline": True, "hoodie.parquet.max.file.size": 7}).write
    assert (write.compaction.inline, write.max_file_size_bytes) == (True, 7)
    assert "option 7 is a int" in refusal({7: "x"})


# -- what Apache Hudi would do and is not done -----------------------------------------------------------------------


@pytest.mark.parametrize("each", NOT_DONE, ids=lambda each: each.names[0])
def test_an_option_for_what_is_not_done_is_an_error_or_said(each):
    parse = parse_read_options if each.reading else parse_write_options
    for name in each.names:
        if each.refused:
            for value in ("true", "com.acme.X"):
                message = refusal({name.upper(): value}, parse=parse)
                assert message == f"option {name.upper()}={value!r} is not supported by this release: {each.what}"
            assert "not supported" in refusal({}, parse=parse, defaults={name: "true"})
        else:
            for given in (parse({name.upper(): "true"}), parse({}, defaults={name.upper(): "true"})):
                assert given.not_done == (f"{each.what} ({name.upper()})",)
                assert given.ignored == ()
        if name in each.switches:
            quiet = parse({name: " False "}, defaults={name: "true"})
            assert quiet.ignored == ()
            assert each.reading or quiet.not_done == ()


def test_every_option_of_what_is_not_done_is_one_of_apache_hudi_and_no_check_of_ours():
    for each in NOT_DONE:
        for name in each.names:
            assert newest_names()[name.lower()] == name.lower()
            assert name not in OURS


def test_mergers_of_apache_hudi_are_what_the_merge_mode_says_anyway():
    name = "hoodie.datasource.write.record.merger.impls"
    hudi = "org.apache.hudi.HoodieSparkRecordMerger,org.apache.hudi.common.model.HoodieAvroRecordMerger"
    assert parse_write_options({name: hudi}).ignored == ()
    assert "mergers written in Java are not run" in refusal({name: hudi + ",com.acme.Mine"})


def test_what_the_other_door_understands_is_named_as_unused():
    options = {"hoodie.table.name": "t", "hoodie.datasource.query.type": "snapshot"}
    assert parse_read_options(options).ignored == ("hoodie.table.name",)
    assert parse_write_options(options).ignored == ("hoodie.datasource.query.type",)


TEXTS = {
    "hoodie.datasource.write.payload.class": "org.apache.hudi.common.model.EventTimeAvroPayload",
    "hoodie.write.record.merge.strategy.id": "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5",
    "hoodie.write.record.merge.mode": "EVENT_TIME_ORDERING",
    "hoodie.datasource.write.keygenerator.type": "COMPLEX",
    "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.ComplexKeyGenerator",
    "hoodie.datasource.write.table.type": "MERGE_ON_READ",
    "hoodie.datasource.query.type": "read_optimized",
    "hoodie.datasource.overwrite.mode": "DYNAMIC",
    "hoodie.write.lock.storage.renew.interval.secs": "7",
    "hoodie.clean.async.enabled": "true",
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.async.enabled": "true",
    "hoodie.clean.policy": "KEEP_LATEST_BY_HOURS",
    "hoodie.clean.commits.retained": "7",
    "hoodie.clean.hours.retained": "7",
    "hoodie.clean.fileversions.retained": "7",
    "hoodie.clean.trigger.max.commits": "7",
    "hoodie.clean.incremental.enabled": "false",
    "hoodie.clean.multiple.enabled": "true",
    "hoodie.clean.failed.writes.policy": "LAZY",
    "hoodie.keygen.timebased.timestamp.type": "SCALAR",
    "hoodie.keygen.timebased.timestamp.scalar.time.unit": "DAYS",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.record.index.min.filegroup.count": "7",
    "hoodie.metadata.record.index.max.filegroup.count": "7",
    "hoodie.metadata.record.level.index.min.filegroup.count": "7",
    "hoodie.metadata.record.level.index.max.filegroup.count": "7",
}


@pytest.mark.parametrize("key", [key for group in registry.GROUPS.values() for key in group if key.names[1:]])
def test_every_other_name_means_the_same(key):
    parse = parse_read_options if key in registry.READ_KEYS else parse_write_options
    if key.kind.allowed.endswith("others are refused"):
        for name in key.names:
            assert refusal({name: "other"}, parse=parse).startswith(f"option {name}='other' is not supported")
        return
    first, *others = [parse({name.upper(): TEXTS.get(key.name, "x")}) for name in key.names]
    assert others == [first] * len(others)
    assert first != parse({})


def test_two_names_of_one_option_must_agree():
    options = {"hoodie.table.ordering.fields": "ts", "hoodie.datasource.write.precombine.field": " ts "}
    assert parse_write_options(options).table.ordering_fields == ("ts",)
    message = refusal(options | {"hoodie.table.precombine.field": "seq"})
    assert "hoodie.table.ordering.fields='ts'" in message
    assert "hoodie.table.precombine.field='seq'" in message


@pytest.mark.parametrize(
    ("options", "about"),
    [
        (
            {
                "hoodie.record.merge.mode": "EVENT_TIME_ORDERING",
                "hoodie.datasource.write.payload.class": (
                    "org.apache.hudi.common.model.OverwriteWithLatestAvroPayload"
                ),
            },
            "merge mode",
        ),
        (
            {
                "hoodie.datasource.write.keygenerator.type": "COMPLEX",
                "hoodie.datasource.write.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator",
            },
            "key generator",
        ),
    ],
)
def test_options_that_say_one_thing_in_two_words_must_agree(options, about):
    message = refusal(options)
    assert f"contradict each other about the {about}" in message
    assert all(name in message for name in options)


# -- values --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("hoodie.datasource.write.operation", "upsrt", "did you mean 'upsert'?"),
        ("hoodie.datasource.write.operation", "cluster", "is not supported by this release"),
        ("hoodie.datasource.write.table.type", "MOR", "is not one of COPY_ON_WRITE, MERGE_ON_READ"),
        ("hoodie.index.type", "FLINK_STATE", "this release, which has BLOOM, SIMPLE, GLOBAL_BLOOM, GLOBAL_SIMPLE, BUCKET, "),
        ("hoodie.bucket.index.num.buckets", "0", "is not a whole number, at least 1"),
        ("hoodie.index.type", "BLOM", "did you mean 'BLOOM'?"),
        ("hoodie.compact.inline", "yes", "is not one of true, false"),
        ("hoodie.compact.inline.max.delta.commits", "0", "is not a whole number, at least 1"),
        ("hoodie.parquet.max.file.size", "120MB", "is not a whole number, at least 1"),
        ("hoodie.parquet.max.file.size", "1" * 400, "is not a whole number"),
        ("hoodie.index.bloom.fpp", "1", "is not a number between 0 and 1"),
        ("hoodie.index.bloom.fpp", "nan", "is not a number between 0 and 1"),
        ("hoodie.index.bloom.fpp", "low", "is not a number between 0 and 1"),
        ("hoodie.datasource.write.recordkey.field", "a,,b", "has an empty name"),
        ("hoodie.datasource.write.recordkey.field", "a,b,a", "names 'a' twice"),
        ("hoodie.datasource.write.recordkey.field", "city:SIMPLE", "only partition columns take the form column:KIND"),
        ("hoodie.datasource.write.keygenerator.type", "AUTO_RECORD", "is a key generator that is not supported"),
        ("hoodie.keygen.timebased.timestamp.type", "EPOCH", "is not one of UNIX_TIMESTAMP"),
        ("hoodie.keygen.datetime.parser.class", "com.acme.Dates", "is not supported by this release"),
        ("hoodie.datasource.write.keygenerator.type", "SIMPEL", "did you mean 'SIMPLE'?"),
        ("hoodie.datasource.write.keygenerator.class", "com.acme.MyKeys", "is a key generator that is not supported"),
        ("hoodie.write.record.merge.mode", "LATEST", "is not one of"),
        ("hoodie.datasource.write.payload.class", "com.acme.P", "is a payload class that is not supported"),
        ("hoodie.python.mor.inserts", "log", "is not supported by this release"),
        ("hoodie.python.merger", "two words", "is not a name"),
        ("hoodie.write.lock.provider", "Zookeper", "it can be in_process, filesystem, storage, zookeeper"),
        ("hoodie.logfile.data.block.format", "hfile", "is not supported by this release, which has avro, parquet"),
        ("hoodie.base.file.format", "ORC", "only PARQUET is"),
        ("hoodie.table.name", "  ", "is empty"),
        ("hoodie.write.table.version", "5", "only 6, 8 and 9 are"),
    ],
)  # fmt: skip
def test_a_bad_value_is_told_with_key_value_and_what_is_allowed(name, value, told):
    message = refusal({name: value})
    assert message.startswith(f"option {name}={value!r} ")
    assert told in message
    assert len(message.splitlines()) == 1


@given(st.sampled_from(sorted({name.lower() for name in (*HUDI_NAMES, *OURS)})), st.text(max_size=8))
def test_any_text_is_parsed_or_refused_with_its_key(name, value):
    for parse in (parse_write_options, parse_read_options):
        try:
            parse({name: value})
        except (OptionError, UnsupportedTableError) as error:
            told = str(error).lower()
        else:
            continue
        assert name.rpartition(".")[2] in told


SECRETS = ("key", "secret", "token", "password", "credential")


# -- secrets -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [name for name in HUDI_NAMES if name not in OURS and any(word in name.lower() for word in SECRETS)]
    + ["hoodie.zzz.password", "hoodie.zzz.secret", "fs.s3a.access.key", "fs.s3a.session.token", "HOODIE.API.TOKEN"],
)
def test_a_secret_shows_in_no_repr_and_no_message(name):
    shown = []
    for parse in (parse_write_options, parse_read_options):
        try:
            shown.append(repr(parse({name: "CANARY"}, defaults={})))
        except OptionError as error:
            shown.append(str(error) + repr(error))
    assert "CANARY" not in "".join(shown)


# -- layers --------------------------------------------------------------------------------------------------------


def test_an_option_stands_over_the_default_of_the_file_by_any_of_its_names():
    defaults = {"hoodie.table.ordering.fields": "a", "hoodie.compact.inline": "true"}
    request = parse_write_options({"hoodie.datasource.write.precombine.field": "b"}, defaults=defaults)
    assert request.write.compaction.inline is True
    assert request.table.ordering_fields == ("b",)
    assert request.to_create().ordering_fields == ("b",)
    assert parse_write_options({"hoodie.compact.inline": "false"}, defaults=defaults).write.compaction.inline is False


def test_table_defaults_count_at_creation_and_are_not_asked_of_a_table():
    request = parse_write_options(
        {"hoodie.table.name": "t"}, defaults={"hoodie.datasource.write.hive_style_partitioning": "true"}
    )
    assert request.table.hive_style is None
    assert request.to_create() == TableOptions(name="t", hive_style=True)


def test_a_false_option_stands_over_a_true_default():
    name = "hoodie.datasource.write.hive_style_partitioning"
    assert parse_write_options({name: "false"}, defaults={name: "true"}).to_create().hive_style is False


@pytest.mark.parametrize(
    ("options", "wanted"), [({}, True), ({"automatic": "true"}, True), ({"automatic": "false"}, False)]
)
def test_writes_clean_and_archive_unless_told_otherwise(options, wanted):
    given = {f"hoodie.{service}.{name}": value for name, value in options.items() for service in ("clean", "archive")}
    write = parse_write_options(given).write
    assert (write.cleaning.automatic, write.archiving.automatic) == (wanted, wanted)


def test_of_the_defaults_only_what_no_door_understands_is_named():
    defaults = {"hoodie.datasource.query.type": "snapshot", "hoodie.table.name": "t", "hoodie.clean.automatic": "true"}
    defaults |= {"hoodie.embed.timeline.server.gzip": "true"}
    assert parse_write_options({}, defaults=defaults).ignored == ("hoodie.embed.timeline.server.gzip",)
    assert parse_read_options({}, defaults=defaults).ignored == ("hoodie.embed.timeline.server.gzip",)


def test_defaults_file_has_both_forms_of_lines():
    text = "# a comment\n\nhoodie.table.name = t\nhoodie.compact.inline true\nwhere=a = 1\nhoodie.DATABASE.name=\n"
    assert parse_defaults(text, path="f") == {
        "hoodie.table.name": "t",
        "hoodie.compact.inline": "true",
        "where": "a = 1",
        "hoodie.DATABASE.name": "",
    }


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("hoodie.table.nam=t", "unknown option 'hoodie.table.nam' in f:2. did you mean 'hoodie.table.name'?"),
        ("spark.executor.memory 2g", "unknown option 'spark.executor.memory' in f:2"),
        ("hoodie.table.name", "f:2: 'hoodie.table.name' has no value"),
    ],
)
def test_a_bad_line_of_the_defaults_file_is_told_with_file_and_line(line, told):
    with pytest.raises(OptionError) as caught:
        parse_defaults(f"# first\n{line}\n", path="f")
    assert str(caught.value).startswith(told)


def test_defaults_come_from_the_folder_that_the_environment_names(tmp_path, monkeypatch):
    monkeypatch.delenv("HOODIE_CONF_DIR", raising=False)
    assert load_defaults() == {}
    monkeypatch.setenv("HOODIE_CONF_DIR", str(tmp_path))
    assert load_defaults() == {}
    (tmp_path / "hoodie-defaults.conf").write_text("hoodie.compact.inline=true\n", encoding="utf-8")
    assert load_defaults() == {"hoodie.compact.inline": "true"}
    monkeypatch.setenv("HOODIE_CONF_DIR", str(tmp_path / "absent"))
    with pytest.raises(OptionError, match="is not a folder"):
        load_defaults()


def test_a_defaults_file_that_is_no_text_is_told(tmp_path, monkeypatch):
    (tmp_path / "hoodie-defaults.conf").write_bytes(b"\xff\xfe")
    monkeypatch.setenv("HOODIE_CONF_DIR", str(tmp_path))
    with pytest.raises(OptionError, match=r"hoodie-defaults\.conf cannot be read"):
        load_defaults()


# -- reading -------------------------------------------------------------------------------------------------------


def test_a_snapshot_read_is_parsed():
    read = parse_read_options(
        {
            "As.Of.Instant": "2026-01-01",
            "where": "fare > 3",
            "columns": "id, fare",
            "hoodie.datasource.view.type": "realtime",
        }
    )
    assert read == ReadOptions(QueryType.SNAPSHOT, as_of="20260101000000000", where="fare > 3", columns=("id", "fare"))


def test_an_incremental_read_is_parsed():
    read = parse_read_options(
        {
            "hoodie.datasource.query.type": "incremental",
            "hoodie.datasource.read.begin.instanttime": "000",
            "hoodie.datasource.read.end.instanttime": "20260101093000",
        }
    )
    assert (read.begin, read.end) == ("000", "20260101093000")
    assert read.range.contains("00000000000000010")
    assert read.range.contains("20260101093000999")
    assert not read.range.contains("20260101093001000")
    assert not read.full_scan_fallback


def test_the_fallback_of_an_incremental_read_has_hudi_s_name():
    options = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.read.begin.instanttime": "000",
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable": "true",
    }
    read = parse_read_options(options)
    assert read.full_scan_fallback
    assert read.ignored == ()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"hoodie.datasource.query.type": "incremental"}, "needs hoodie.datasource.read.begin.instanttime"),
        ({"hoodie.datasource.read.begin.instanttime": "000"}, "does not go with hoodie.datasource.query.type=snapshot"),
        (
            {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": "0",
                "as.of.instant": "20260101000000000",
            },
            "as.of.instant does not go with",
        ),
        (
            {
                "hoodie.datasource.query.type": "incremental",
                "hoodie.datasource.read.begin.instanttime": "20260102000000000",
                "hoodie.datasource.read.end.instanttime": "20260101000000000",
            },
            "is after",
        ),
        ({"hoodie.datasource.query.type": "snapshoot"}, "did you mean 'snapshot'?"),
        ({"hoodie.datasource.query.incremental.format": "cdd"}, "did you mean 'cdc'?"),
        ({"hoodie.datasource.merge.type": "skip_merge"}, "only payload_combine is"),
    ],
)
def test_a_read_that_contradicts_itself_is_refused(options, told):
    assert told in refusal(options, parse=parse_read_options)
