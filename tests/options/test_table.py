"""Table options to and from `hoodie.properties`; the golden tables are the witness."""

from dataclasses import fields, replace

import pytest

from hoodie.errors import CorruptFileError, OptionError, UnsupportedTableError
from hoodie.format.properties import table_checksum
from hoodie.model.buckets import BucketLayout
from hoodie.model.enums import Fill, MergeMode, TableType, TableVersion
from hoodie.model.plans import DeleteMarker, MergeRule
from hoodie.options.compatibility import check_against, check_writable
from hoodie.options.keygen import KeySettings, PartitionKind
from hoodie.options.merging import PAYLOADS
from hoodie.options.table import infer_key_generator, parse_table_config, table_properties
from hoodie.options.table_options import TableOptions
from hoodie.options.values import (
    KEY_GENERATOR_CLASSES,
    SUPPORTED_KEY_GENERATORS,
    IndexType,
    KeyGeneratorType,
    MorInserts,
)
from tests.golden_tables import FOLDER

URI = "file:///tables/t"
TYPE, OUTPUT, INPUT, DELIMITER = (
    f"hoodie.keygen.timebased.{name}"
    for name in ("timestamp.type", "output.dateformat", "input.dateformat", "input.dateformat.list.delimiter.regex")
)
DATES = {TYPE: "DATE_STRING", OUTPUT: "yyyy/MM", INPUT: "yyyy-MM-dd"}
OPTIONS = TableOptions(name="t", record_key_fields=("id",), partition_fields=("part",), ordering_fields=("ts",))
PROPERTIES = table_properties(OPTIONS)
HUDI = "org.apache.hudi.common.model."
DROP = "hoodie_datasource_write_drop_partition_columns"


def golden_properties(name):
    lines = (FOLDER / name / "table/.hoodie/hoodie.properties").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


def config(**changed):
    """Of PROPERTIES with some changed; None removes one. `_` in names stands for `.` unless doubled."""
    values = PROPERTIES | {
        key.replace("__", "\0").replace("_", ".").replace("\0", "_"): v for key, v in changed.items()
    }
    return parse_table_config({key: value for key, value in values.items() if value is not None}, uri=URI)


# -- properties of a new table -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("golden", "options"),
    [
        ("v6_cow_simple", OPTIONS),
        ("v6_mor_logs", replace(OPTIONS, table_type=TableType.MERGE_ON_READ)),
        (
            "v6_composite_keys",
            replace(OPTIONS, record_key_fields=("k1", "k2"), partition_fields=("region", "day"), hive_style=True),
        ),
    ],
)
def test_properties_are_those_of_hudi_but_for_the_zone_and_two_older_names(golden, options):
    written = golden_properties(golden)
    ours = table_properties(replace(options, name=golden))
    by_class = ours.pop("hoodie.table.keygenerator.class")
    assert KEY_GENERATOR_CLASSES[by_class] == ours["hoodie.table.keygenerator.type"]
    if options.table_type is TableType.MERGE_ON_READ:
        assert ours.pop("hoodie.python.mor.inserts") == "base_file"
    assert ours == written | {"hoodie.table.timeline.timezone": "UTC", "hoodie.table.precombine.field": "ts"}


@pytest.mark.parametrize("kind", SUPPORTED_KEY_GENERATORS)
def test_a_key_generator_is_named_by_type_and_by_class(kind):
    columns = {
        KeyGeneratorType.NON_PARTITION: None,
        KeyGeneratorType.CUSTOM: ("city:SIMPLE",),
    }
    asked = replace(OPTIONS, keygen=kind, partition_fields=columns.get(kind, ("city",)), timebased=DATES)
    stored = table_properties(asked)
    assert stored["hoodie.table.keygenerator.type"] == kind
    java_class = stored.pop("hoodie.table.keygenerator.class")
    assert "Avro" not in java_class
    assert parse_table_config(stored, uri=URI).keygen is kind
    del stored["hoodie.table.keygenerator.type"]
    stored["hoodie.table.keygenerator.class"] = java_class
    assert parse_table_config(stored, uri=URI).keygen is kind


def test_no_merge_mode_and_nothing_empty_is_stored():
    stored = table_properties(TableOptions(name="t", record_key_fields=("id",)))
    assert "hoodie.record.merge.mode" not in stored
    assert all(stored.values())
    assert stored["hoodie.table.keygenerator.type"] == "NON_PARTITION"
    assert stored["hoodie.table.partition_extractor_class"] == "org.apache.hudi.hive.NonPartitionedExtractor"
    assert stored["hoodie.compaction.payload.class"] == HUDI + "OverwriteWithLatestAvroPayload"
    assert stored["hoodie.record.merge.strategy.id"] == "ce9acb64-bde0-424c-9b91-f6ebba25356d"
    assert not {key for key in stored if "ordering" in key or "precombine" in key or "partition.fields" in key}


def test_commit_time_is_kept_beside_an_ordering_field():
    stored = table_properties(replace(OPTIONS, merge_mode=MergeMode.COMMIT_TIME_ORDERING))
    parsed = parse_table_config(stored, uri=URI)
    assert parsed.merge_mode is MergeMode.COMMIT_TIME_ORDERING
    assert parsed.ordering_fields == ("ts",)


def test_values_are_plain_text():
    assert {type(value) for value in PROPERTIES.values()} == {str}


def test_the_checksum_is_of_both_names():
    stored = table_properties(replace(OPTIONS, database_name="db"))
    assert stored["hoodie.table.checksum"] == str(table_checksum("t", "db"))
    assert parse_table_config(stored, uri=URI).database_name == "db"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"name": None}, "needs a name"),
        ({"ordering_fields": (), "merge_mode": MergeMode.EVENT_TIME_ORDERING}, "needs an ordering column"),
        ({"merge_mode": MergeMode.CUSTOM}, "does not say how table"),
        ({"keygen": KeyGeneratorType.TIMESTAMP}, "nothing says hoodie.keygen.timebased.timestamp.type"),
        ({"keygen": KeyGeneratorType.TIMESTAMP, "partition_fields": ()}, "TIMESTAMP needs a partition column"),
        ({"keygen": KeyGeneratorType.TIMESTAMP, "record_key_fields": ("a", "b")}, "use CUSTOM"),
        ({"keygen": KeyGeneratorType.GLOBAL_DELETE}, "GLOBAL_DELETE is not supported"),
        ({"keygen": KeyGeneratorType.CUSTOM}, "CUSTOM, and it needs them"),
        ({"keygen": KeyGeneratorType.COMPLEX, "partition_fields": ("a:SIMPLE",)}, "go with CUSTOM"),
        ({"partition_fields": ("a:SIMPLE", "b")}, "'b' is not of the form column:KIND"),
        ({"partition_fields": ("a:DAILY",)}, "'a:DAILY' is not of the form column:KIND"),
        ({"partition_fields": ("a:TIMESTAMP",)}, "nothing says hoodie.keygen.timebased.timestamp.type"),
        ({"partition_fields": ("a", "b"), "slash_dates": True}, "takes a single partition column"),
        (
            {"timebased": {TYPE: "DATE_STRING", OUTPUT: "yyyy"}, "partition_fields": ("a:TIMESTAMP",)},
            "nothing says .*input.dateformat",
        ),
        (
            {"timebased": {TYPE: "DAYS", OUTPUT: "yyyy"}, "partition_fields": ("a:TIMESTAMP",)},
            "is not one of UNIX_TIMESTAMP",
        ),
        ({"timebased": DATES | {DELIMITER: "("}, "partition_fields": ("a:TIMESTAMP",)}, "is not a regular expression"),
        ({"keygen": KeyGeneratorType.SIMPLE, "record_key_fields": ("a", "b")}, "use COMPLEX"),
        ({"keygen": KeyGeneratorType.SIMPLE, "partition_fields": ("a", "b")}, "use COMPLEX"),
        ({"keygen": KeyGeneratorType.NON_PARTITION}, "takes no partition column"),
    ],
)
def test_a_table_that_cannot_be_created_is_refused(changed, told):
    with pytest.raises(OptionError, match=told):
        table_properties(replace(OPTIONS, **changed))


@pytest.mark.parametrize(("golden", "kind"), [("v9_cow", "COPY_ON_WRITE"), ("v9_mor", "MERGE_ON_READ")])
def test_properties_of_version_9_are_those_of_apache_hudi(golden, kind):
    options = replace(OPTIONS, name=golden, table_type=TableType(kind), version=TableVersion.V9)
    ours, theirs = table_properties(options), golden_properties(golden)
    of_hudi = {
        "hoodie.archivelog.folder",
        "hoodie.table.multiple.base.file.formats.enable",
        "hoodie.table.timeline.timezone",
    }
    apart = of_hudi | {key for key in theirs if key.startswith("hoodie.table.metadata.")}
    assert {key: value for key, value in theirs.items() if key not in apart} == {
        key: ours.get(key) for key in theirs if key not in apart
    }
    assert ours.keys() - theirs.keys() <= {"hoodie.python.mor.inserts"}


def test_version_8_states_mode_payload_class_and_strategy():
    ours = table_properties(replace(OPTIONS, version=TableVersion.V8))
    assert ours["hoodie.record.merge.mode"] == "EVENT_TIME_ORDERING"
    assert ours["hoodie.compaction.payload.class"] == f"{HUDI}DefaultHoodieRecordPayload"
    assert ours["hoodie.record.merge.strategy.id"] == "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"
    assert (ours["hoodie.table.version"], ours["hoodie.table.initial.version"]) == ("8", "8")


@pytest.mark.parametrize("payload", [name for name, rule in PAYLOADS.items() if not rule.positions])
@pytest.mark.parametrize("version", TableVersion)
def test_a_payload_class_means_the_same_in_each_version(payload, version):
    rule = PAYLOADS[payload]
    ordering = rule.ordering_fields or (("ts",) if rule.mode is MergeMode.EVENT_TIME_ORDERING else ())
    properties = table_properties(replace(OPTIONS, version=version, payload=payload, ordering_fields=ordering))
    found = parse_table_config(properties, uri="t").rule
    assert (found.mode, found.fill, found.ordering_fields) == (rule.mode, rule.fill, ordering)
    assert (found.delete_marker is None) == (rule.delete_marker is None)


@pytest.mark.parametrize(
    ("keys", "partition", "kind"),
    [
        (("id",), (), KeyGeneratorType.NON_PARTITION),
        (("a", "b"), (), KeyGeneratorType.NON_PARTITION),
        (("id",), ("p",), KeyGeneratorType.SIMPLE),
        (("a", "b"), ("p",), KeyGeneratorType.COMPLEX),
        (("id",), ("p", "q"), KeyGeneratorType.COMPLEX),
        ((), ("p",), KeyGeneratorType.SIMPLE),
        (("a", "b"), ("p:SIMPLE", "q:TIMESTAMP"), KeyGeneratorType.CUSTOM),
    ],
)
def test_key_generator_is_inferred_from_the_fields(keys, partition, kind):
    assert infer_key_generator(keys, partition) is kind


def test_what_is_said_stands_over_what_is_not():
    mine, other = TableOptions(name="a", hive_style=False, partition_fields=()), replace(OPTIONS, hive_style=True)
    both = mine.over(other)
    assert both == replace(other, name="a", hive_style=False, partition_fields=())


# -- properties of a table that is there ---------------------------------------------------------------------------


def test_every_option_of_a_new_table_is_read_back():
    asked = TableOptions(
        name="t",
        database_name="db",
        table_type=TableType.MERGE_ON_READ,
        version=TableVersion.V6,
        record_key_fields=("k1", "k2"),
        partition_fields=("p", "q"),
        ordering_fields=("ts",),
        keygen=KeyGeneratorType.COMPLEX,
        hive_style=True,
        url_encode=True,
        populate_meta_fields=False,
        drops_partition_columns=False,
        merge_mode=MergeMode.EVENT_TIME_ORDERING,
        mor_inserts=MorInserts.BASE_FILE,
        index=IndexType.BLOOM,
    )
    stored = parse_table_config(table_properties(asked), uri=URI)
    in_files = {
        "index",
        "bucket_engine",
        "index_name",
        "bucket_count",
        "bucket_fields",
        "bucket_rules",
        "timebased",
        "timestamps_as_text",
        "slash_dates",
        "payload",
        "change_logs",
        "change_log_mode",
        "metafiles_in_base_format",
    }  # the tests below
    names = [each.name for each in fields(asked) if each.name not in in_files]
    assert {name: getattr(stored, name) for name in names} == {name: getattr(asked, name) for name in names}
    assert (stored.buckets, stored.payload) == (None, "")
    assert (stored.timezone, stored.archive_folder) == ("UTC", "history")
    check_against(stored, asked)
    check_writable(stored)


def test_a_custom_key_generator_is_stored_as_hudi_does_and_its_kinds_and_times_beside():
    asked = replace(
        OPTIONS, partition_fields=("city:simple", "day:TIMESTAMP"), timebased=DATES, timestamps_as_text=True
    )
    properties = table_properties(asked)
    assert properties["hoodie.table.partition.fields"] == "city,day"
    assert properties["hoodie.table.keygenerator.type"] == "CUSTOM"
    assert {name: properties[name] for name in DATES} == DATES
    stored = parse_table_config(properties, uri=URI)
    assert stored.partition_fields == ("city", "day")
    kinds = (PartitionKind.SIMPLE, PartitionKind.TIMESTAMP)
    assert stored.key_settings == asked.key_settings == KeySettings(DATES, kinds, timestamps_as_text=True)
    check_against(stored, asked)
    check_against(stored, TableOptions(partition_fields=("city", "day")))
    with pytest.raises(
        OptionError, match="kinds of the partition columns is 'SIMPLE,TIMESTAMP' in the table, 'SIMPLE,SIMPLE'"
    ):
        check_against(stored, TableOptions(partition_fields=("city:SIMPLE", "day:SIMPLE")))
    with pytest.raises(OptionError, match=r"output\.dateformat is 'yyyy/MM' in the table, 'yyyy' in your options"):
        check_against(stored, TableOptions(timebased={OUTPUT: "yyyy"}))
    with pytest.raises(OptionError, match=r"timestamp\.enabled is true in the table, false in your options"):
        check_against(stored, TableOptions(timestamps_as_text=False))


def test_kinds_that_version_9_stores_with_the_columns_are_read():
    stored = config(hoodie_table_partition_fields="city:SIMPLE,ts:TIMESTAMP", hoodie_table_keygenerator_type="CUSTOM")
    assert stored.key_settings.partition_kinds == (PartitionKind.SIMPLE, PartitionKind.TIMESTAMP)


def test_kinds_contradict_a_table_without_kinds():
    with pytest.raises(OptionError, match="key generator is 'SIMPLE' in the table, 'CUSTOM' in your options"):
        check_against(config(), TableOptions(partition_fields=("part:SIMPLE",)))


def test_folders_of_parts_of_dates_are_told_by_hudi_s_extractor_and_by_our_property():
    properties = table_properties(replace(OPTIONS, slash_dates=True))
    assert properties["hoodie.table.partition_extractor_class"].endswith(".SlashEncodedDayPartitionValueExtractor")
    assert parse_table_config(properties, uri=URI).key_settings.slash_dates is True
    del properties["hoodie.datasource.write.slash.separated.date.partitioning"]
    assert parse_table_config(properties, uri=URI).key_settings.slash_dates is True
    hive = table_properties(replace(OPTIONS, slash_dates=True, hive_style=True))
    assert hive["hoodie.table.partition_extractor_class"].endswith(".HiveStylePartitionValueExtractor")
    assert config().key_settings.slash_dates is None


def test_a_table_without_record_key_generates_its_keys():
    properties = table_properties(replace(OPTIONS, record_key_fields=None))
    assert "hoodie.table.recordkey.fields" not in properties
    stored = parse_table_config(properties, uri=URI)
    assert stored.generates_keys
    check_writable(stored)
    with pytest.raises(OptionError, match="record key is none in the table, 'id' in your options"):
        check_against(stored, TableOptions(record_key_fields=("id",)))


def test_the_bucket_index_of_a_new_table_is_read_back_and_holds_against_options():
    asked = replace(
        OPTIONS, index=IndexType.BUCKET, bucket_count=8, bucket_fields=("k2",), record_key_fields=("k1", "k2")
    )
    properties = table_properties(asked)
    stored = parse_table_config(properties, uri=URI)
    assert stored.buckets == BucketLayout(8, ("k2",))
    assert "hoodie.python.mor.inserts" not in properties
    check_against(stored, asked)
    check_against(stored, TableOptions())
    for other in (
        TableOptions(index=IndexType.SIMPLE),
        TableOptions(bucket_count=9),
        TableOptions(bucket_fields=("k1", "k2")),
    ):
        with pytest.raises(OptionError, match="in your options"):
            check_against(stored, other)


@pytest.mark.parametrize("count", ["many", "0", "-4", "9" * 30])
def test_a_number_of_buckets_that_is_none_is_damage(count):
    properties = {**table_properties(OPTIONS), "hoodie.python.bucket.count": count}
    with pytest.raises(CorruptFileError, match=r"hoodie\.python\.bucket\.count=.* is not a number of buckets"):
        parse_table_config(properties, uri=URI)


@pytest.mark.parametrize(
    ("golden", "version", "kind", "metadata"),
    [
        ("v6_cow_simple", TableVersion.V6, TableType.COPY_ON_WRITE, ()),
        ("v6_mor_logs", TableVersion.V6, TableType.MERGE_ON_READ, ()),
        ("v6_mdt_mor", TableVersion.V6, TableType.MERGE_ON_READ, ("files",)),
        ("v9_cow", TableVersion.V9, TableType.COPY_ON_WRITE, ()),
        ("v9_mor", TableVersion.V9, TableType.MERGE_ON_READ, ()),
    ],
)
def test_tables_of_hudi_are_read(golden, version, kind, metadata):
    stored = golden_properties(golden)
    parsed = parse_table_config(stored, uri=URI)
    assert (parsed.name, parsed.version, parsed.table_type) == (golden, version, kind)
    assert (parsed.record_key_fields, parsed.partition_fields, parsed.ordering_fields) == (("id",), ("part",), ("ts",))
    assert (parsed.keygen, parsed.merge_mode) == (KeyGeneratorType.SIMPLE, MergeMode.EVENT_TIME_ORDERING)
    assert (parsed.timezone, parsed.metadata_partitions) == ("LOCAL", metadata)
    assert parsed.raw == stored


def test_old_names_and_defaults_are_understood():
    old = parse_table_config(
        {
            "hoodie.table.name": "t",
            "hoodie.table.version": "6",
            "hoodie.table.type": "COPY_ON_WRITE",
            "hoodie.table.precombine.field": "ts",
            "hoodie.table.recordkey.fields": "a, b",
            "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.ComplexAvroKeyGenerator",
        },
        uri=URI,
    )
    assert (old.ordering_fields, old.record_key_fields) == (("ts",), ("a", "b"))
    assert (old.keygen, old.table_type) == (KeyGeneratorType.COMPLEX, TableType.COPY_ON_WRITE)
    assert (old.archive_folder, old.timezone, old.mor_inserts) == ("archived", "LOCAL", MorInserts.BASE_FILE)


def test_unknown_properties_are_kept():
    assert config(hoodie_some_future_thing="7").raw["hoodie.some.future.thing"] == "7"


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ({"hoodie_table_keygenerator_type": "COMPLEX_AVRO"}, KeyGeneratorType.COMPLEX),
        ({"hoodie_table_keygenerator_type": "custom"}, KeyGeneratorType.CUSTOM),
        ({"hoodie_table_keygenerator_type": "USER_PROVIDED"}, KeyGeneratorType.OTHER),
        ({"hoodie_table_keygenerator_type": None}, KeyGeneratorType.SIMPLE),
        (
            {"hoodie_table_keygenerator_type": None, "hoodie_table_keygenerator_class": "os.system"},
            KeyGeneratorType.OTHER,
        ),
    ],
)
def test_key_generator_is_looked_up_by_name(changed, kind):
    assert config(**changed).keygen is kind


PAYLOAD, STRATEGY = "hoodie_compaction_payload_class", "hoodie_record_merge_strategy_id"
MODE, PARTIAL = "hoodie_record_merge_mode", "hoodie_table_partial_update_mode"
LEGACY = "hoodie_table_legacy_payload_class"
EVENT, COMMIT = "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5", "ce9acb64-bde0-424c-9b91-f6ebba25356d"
V8 = {"hoodie_table_version": "8", "hoodie_timeline_layout_version": "2"}
V9 = {"hoodie_table_version": "9", "hoodie_timeline_layout_version": "2", PAYLOAD: None, STRATEGY: None}


@pytest.mark.parametrize(
    ("changed", "mode"),
    [
        ({PAYLOAD: HUDI + "EventTimeAvroPayload", STRATEGY: COMMIT}, "EVENT_TIME_ORDERING"),
        ({PAYLOAD: HUDI + "OverwriteWithLatestAvroPayload", STRATEGY: EVENT}, "COMMIT_TIME_ORDERING"),
        ({PAYLOAD: HUDI + "PartialUpdateAvroPayload"}, "EVENT_TIME_ORDERING"),
        ({PAYLOAD: "com.acme.OurPayload"}, "CUSTOM"),
        ({PAYLOAD: None, STRATEGY: COMMIT}, "COMMIT_TIME_ORDERING"),
        ({PAYLOAD: None, STRATEGY: "00000000-0000-0000-0000-000000000000"}, "CUSTOM"),
        ({PAYLOAD: None, STRATEGY: None}, "EVENT_TIME_ORDERING"),
        (
            {PAYLOAD: None, STRATEGY: None, "hoodie_table_ordering_fields": None, "hoodie_table_precombine_field": ""},
            "COMMIT_TIME_ORDERING",
        ),
        # Ignored on version 6, as Hudi does.
        ({"hoodie_record_merge_mode": "COMMIT_TIME_ORDERING"}, "EVENT_TIME_ORDERING"),
        (V9 | {"hoodie_record_merge_mode": "COMMIT_TIME_ORDERING"}, "COMMIT_TIME_ORDERING"),
        (V9 | {"hoodie_record_merge_mode": "CUSTOM"}, "CUSTOM"),
        (V9, "EVENT_TIME_ORDERING"),
        (V9 | {STRATEGY: COMMIT, PAYLOAD: HUDI + "EventTimeAvroPayload"}, "COMMIT_TIME_ORDERING"),
        (V9 | {MODE: "EVENT_TIME_ORDERING", PARTIAL: "IGNORE_DEFAULTS"}, "EVENT_TIME_ORDERING"),
        (V9 | {MODE: "EVENT_TIME_ORDERING", PARTIAL: "SOMETHING_NEW"}, "CUSTOM"),
        (V9 | {MODE: "COMMIT_TIME_ORDERING", LEGACY: HUDI + "AWSDmsAvroPayload"}, "COMMIT_TIME_ORDERING"),
        (V9 | {MODE: "COMMIT_TIME_ORDERING", LEGACY: "com.acme.OurPayload"}, "CUSTOM"),
        (V8 | {MODE: "CUSTOM", PAYLOAD: HUDI + "PartialUpdateAvroPayload"}, "EVENT_TIME_ORDERING"),
        (V8 | {MODE: "CUSTOM", PAYLOAD: None}, "CUSTOM"),
        (V8 | {MODE: "COMMIT_TIME_ORDERING"}, "COMMIT_TIME_ORDERING"),
        (V9 | {MODE: "EVENT_TIME_ORDERING", LEGACY: HUDI + "DefaultHoodieRecordPayload"}, "EVENT_TIME_ORDERING"),
    ],
)
def test_merge_mode_is_decided_as_hudi_does(changed, mode):
    assert config(**changed).merge_mode == mode


def test_payload_classes_and_delete_markers_are_stored_as_hudi_does_and_hold_against_options():
    payload = HUDI + "PartialUpdateAvroPayload"
    asked = replace(OPTIONS, payload=payload, delete_marker=DeleteMarker("op", "D"))
    properties = table_properties(asked)
    assert properties["hoodie.compaction.payload.class"] == payload
    assert properties["hoodie.record.merge.strategy.id"] == "00000000-0000-0000-0000-000000000000"
    assert properties["hoodie.record.merge.property.hoodie.payload.delete.field"] == "op"
    stored = parse_table_config(properties, uri=URI)
    assert stored.rule == MergeRule(
        MergeMode.EVENT_TIME_ORDERING, ("ts",), fill=Fill.NULLS, payload=True, delete_marker=DeleteMarker("op", "D")
    )
    check_against(stored, asked)
    check_writable(stored)
    for changed in ({"payload": ""}, {"payload": HUDI + "AWSDmsAvroPayload"}):
        with pytest.raises(OptionError, match=r"payload class is '.*PartialUpdateAvroPayload' in the table"):
            check_against(stored, replace(asked, **changed))
    with pytest.raises(OptionError, match="delete marker is 'op=D' in the table, 'op=X' in your options"):
        check_against(stored, replace(asked, delete_marker=DeleteMarker("op", "X")))
    check_against(config(), TableOptions(delete_marker=DeleteMarker("op", "X")))  # each writer brings it along


def test_half_a_delete_marker_is_damage():
    with pytest.raises(CorruptFileError, match=r"delete\.field is set without hoodie\.payload\.delete\.marker"):
        config(hoodie_payload_delete_field="op")


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({PAYLOAD: HUDI + "OverwriteNonDefaultsWithLatestAvroPayload"}, {"fill": Fill.NULLS, "payload": True}),
        (V9 | {MODE: "COMMIT_TIME_ORDERING", PARTIAL: "IGNORE_DEFAULTS"}, {"fill": Fill.NULLS}),
        (V9 | {MODE: "COMMIT_TIME_ORDERING", PARTIAL: "KEEP_VALUES"}, {}),
        (
            V9
            | {
                MODE: "COMMIT_TIME_ORDERING",
                PARTIAL: "FILL_UNAVAILABLE",
                "hoodie_record_merge_property_hoodie_write_partial_update_unavailable_value": "?",
            },
            {"fill": Fill.UNAVAILABLE, "unavailable": "?"},
        ),
        ({PAYLOAD: HUDI + "AWSDmsAvroPayload"}, {"payload": True, "delete_marker": DeleteMarker("Op", "D", True)}),
    ],
)
def test_what_gives_way_is_what_the_tables_version_says(changed, rule):
    assert config(**changed).rule == MergeRule(MergeMode.COMMIT_TIME_ORDERING, ("ts",), **rule)


def test_custom_partition_fields_are_given_as_columns():
    stored = config(hoodie_table_partition_fields="city:SIMPLE,ts:TIMESTAMP", hoodie_table_keygenerator_type="CUSTOM")
    assert stored.partition_fields == ("city", "ts")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"hoodie_table_version": "2"}, "version is 2.*upgrade it to 6"),
        ({"hoodie_table_version": None}, "version is not said"),
        ({"hoodie_table_version": "7"}, "version is 7, this release reads 3, 4, 5, 6, 8 and 9"),
        ({"hoodie_table_version": "10"}, "version is 10"),
        ({"hoodie_table_version": "9"}, "layout.version is 1, version 9 has 2"),
        ({"hoodie_timeline_layout_version": "2"}, "layout.version is 2, version 6 has 1"),
        ({"hoodie_table_base_file_format": "ORC"}, "base files are ORC"),
        ({"hoodie_table_log_file_format": "X"}, "log files are X"),
        ({"hoodie_table_multiple_base_file_formats_enable": "true"}, "mixes"),
    ],
)
def test_tables_that_cannot_be_read_are_unsupported(changed, told):
    with pytest.raises(UnsupportedTableError, match=f"(?s)^table at {URI}: .*{told}"):
        config(**changed)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"hoodie_table_name": None}, "there is no hoodie.table.name"),
        ({"hoodie_table_name": "renamed"}, "hoodie.table.checksum=.* was it edited"),
        ({"hoodie_table_version": "six"}, "is not a number"),
        ({"hoodie_table_type": "MOR"}, "hoodie.table.type='MOR'"),
        ({"hoodie_populate_meta_fields": "maybe"}, "expected true or false"),
    ],
)
def test_broken_properties_are_told_with_their_file(changed, told):
    with pytest.raises(CorruptFileError, match=rf"^{URI}/\.hoodie/hoodie\.properties: .*{told}"):
        config(**changed)


def test_a_missing_checksum_is_fine():
    assert config(hoodie_table_checksum=None).name == "t"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (
            {"hoodie_populate_meta_fields": "false", "hoodie_table_keygenerator_type": "TIMESTAMP"},
            "SIMPLE, COMPLEX, NON_PARTITION go without",
        ),
        ({"hoodie_populate_meta_fields": "false", "hoodie_table_recordkey_fields": ""}, "generated stand nowhere"),
        ({DROP: "true", "hoodie_table_type": "MERGE_ON_READ"}, "keep partition columns"),
        ({DROP: "true", "hoodie_table_keygenerator_type": "TIMESTAMP"}, "do not say the values"),
        ({PAYLOAD: "com.acme.P"}, r"merged by com\.acme\.P"),
        ({"hoodie_table_keygenerator_type": "SPARK_SQL"}, "key generator is SPARK_SQL"),
    ],
)
def test_tables_that_can_only_be_read_are_refused_for_writing(changed, told):
    with pytest.raises(UnsupportedTableError, match=f"can be read, not written: .*{told}"):
        check_writable(config(**changed))


def test_a_secret_among_the_properties_does_not_show():
    assert "CANARY" not in repr(config(hoodie_some_password="CANARY"))


# -- options against a table ---------------------------------------------------------------------------------------


def test_options_that_say_nothing_or_the_same_contradict_nothing():
    check_against(config(), TableOptions())
    check_against(config(), OPTIONS)


def test_contradictions_are_told_with_both_values():
    with pytest.raises(OptionError) as caught:
        check_against(config(), TableOptions(record_key_fields=("name",), partition_fields=(), hive_style=True))
    assert str(caught.value).splitlines() == [
        "options contradict table 't' at file:///tables/t",
        "  record key is 'id' in the table, 'name' in your options",
        "  partition column is 'part' in the table, none in your options",
        "  hive-style partitioning is false in the table, true in your options",
        "  drop these options: the table remembers them",
    ]


@pytest.mark.parametrize(
    "asked",
    [
        {"name": "u"},
        {"database_name": "db"},
        {"table_type": TableType.MERGE_ON_READ},
        {"version": TableVersion.V8},
        {"record_key_fields": ("id", "x")},
        {"partition_fields": ("x",)},
        {"ordering_fields": ()},
        {"keygen": KeyGeneratorType.COMPLEX},
        {"hive_style": True},
        {"url_encode": True},
        {"merge_mode": MergeMode.COMMIT_TIME_ORDERING},
    ],
)
def test_each_option_can_contradict(asked):
    with pytest.raises(OptionError) as caught:
        check_against(config(), TableOptions(**asked))
    assert len(str(caught.value).splitlines()) == 3


def test_a_message_has_eight_lines_at_most():
    other = TableOptions("u", "d", TableType.MERGE_ON_READ, None, ("x",), ("y",), ("z",), None, True, True)
    with pytest.raises(OptionError) as caught:
        check_against(config(), other)
    lines = str(caught.value).splitlines()
    assert len(lines) == 7
    assert lines[-2] == "  and 4 more"


def test_a_key_generator_that_the_table_does_not_name_contradicts_nothing():
    check_against(
        config(hoodie_table_keygenerator_type=None, hoodie_table_keygenerator_class=None),
        TableOptions(keygen=KeyGeneratorType.COMPLEX),
    )


@pytest.mark.parametrize(("asked", "stored"), [(None, "false"), (False, "false"), (True, None)])
def test_a_table_says_nothing_of_partition_files_that_a_job_of_hudi_would_contradict(asked, stored):
    options = TableOptions(name="t", record_key_fields=("k",), metafiles_in_base_format=asked)
    assert table_properties(options).get("hoodie.partition.metafile.use.base.format") == stored
