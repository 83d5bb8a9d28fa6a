"""Table options to and from `hoodie.properties`; the golden tables are the witness."""

from dataclasses import fields, replace

import pytest

from hoodie.errors import CorruptFileError, OptionError, UnsupportedTableError
from hoodie.model.enums import MergeMode, TableType, TableVersion
from hoodie.options.table import (
    TableOptions,
    check_against,
    check_writable,
    infer_key_generator,
    parse_table_config,
    table_checksum,
    table_properties,
)
from hoodie.options.values import KeyGeneratorType, MorInserts
from tests.golden_tables import FOLDER

URI = "file:///tables/t"
OPTIONS = TableOptions(name="t", record_key_fields=("id",), partition_fields=("part",), ordering_fields=("ts",))
PROPERTIES = table_properties(OPTIONS)
HUDI = "org.apache.hudi.common.model."


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
def test_properties_are_those_of_hudi_but_for_the_zone_and_the_older_ordering_name(golden, options):
    written = golden_properties(golden)
    ours = table_properties(replace(options, name=golden))
    if options.table_type is TableType.MERGE_ON_READ:
        assert ours.pop("hoodie.python.mor.inserts") == "base_file"
    assert ours == written | {"hoodie.table.timeline.timezone": "UTC", "hoodie.table.precombine.field": "ts"}


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


def test_checksum_is_that_of_the_witness():
    assert table_checksum("v6_mor_logs") == 1328958999
    stored = table_properties(replace(OPTIONS, database_name="db"))
    assert stored["hoodie.table.checksum"] == str(table_checksum("t", "db"))
    assert parse_table_config(stored, uri=URI).database_name == "db"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"name": None}, "needs a name"),
        ({"record_key_fields": None}, "set hoodie.datasource.write.recordkey.field"),
        ({"record_key_fields": ()}, "set hoodie.datasource.write.recordkey.field"),
        ({"ordering_fields": (), "merge_mode": MergeMode.EVENT_TIME_ORDERING}, "needs an ordering column"),
        ({"merge_mode": MergeMode.CUSTOM}, "CUSTOM is not supported"),
        ({"keygen": KeyGeneratorType.TIMESTAMP}, "key generator TIMESTAMP is not supported"),
        ({"keygen": KeyGeneratorType.SIMPLE, "record_key_fields": ("a", "b")}, "use COMPLEX"),
        ({"keygen": KeyGeneratorType.SIMPLE, "partition_fields": ("a", "b")}, "use COMPLEX"),
        ({"keygen": KeyGeneratorType.NON_PARTITION}, "takes no partition column"),
    ],
)
def test_a_table_that_cannot_be_created_is_refused(changed, told):
    with pytest.raises(OptionError, match=told):
        table_properties(replace(OPTIONS, **changed))


def test_only_version_6_is_created():
    with pytest.raises(UnsupportedTableError, match="version 6 only"):
        table_properties(replace(OPTIONS, version=TableVersion.V9))


@pytest.mark.parametrize(
    ("keys", "partition", "kind"),
    [
        (("id",), (), KeyGeneratorType.NON_PARTITION),
        (("a", "b"), (), KeyGeneratorType.NON_PARTITION),
        (("id",), ("p",), KeyGeneratorType.SIMPLE),
        (("a", "b"), ("p",), KeyGeneratorType.COMPLEX),
        (("id",), ("p", "q"), KeyGeneratorType.COMPLEX),
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
        merge_mode=MergeMode.EVENT_TIME_ORDERING,
        mor_inserts=MorInserts.BASE_FILE,
    )
    stored = parse_table_config(table_properties(asked), uri=URI)
    assert {each.name: getattr(stored, each.name) for each in fields(asked)} == vars(asked)
    assert (stored.timezone, stored.archive_folder, stored.populate_meta_fields) == ("UTC", "history", True)
    check_against(stored, asked)
    check_writable(stored)


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
V9 = {"hoodie_table_version": "9", "hoodie_timeline_layout_version": "2", PAYLOAD: None, STRATEGY: None}


@pytest.mark.parametrize(
    ("changed", "mode"),
    [
        ({PAYLOAD: HUDI + "EventTimeAvroPayload", STRATEGY: COMMIT}, "EVENT_TIME_ORDERING"),
        ({PAYLOAD: HUDI + "OverwriteWithLatestAvroPayload", STRATEGY: EVENT}, "COMMIT_TIME_ORDERING"),
        ({PAYLOAD: HUDI + "PartialUpdateAvroPayload"}, "CUSTOM"),
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
        (V9 | {MODE: "EVENT_TIME_ORDERING", PARTIAL: "IGNORE_DEFAULTS"}, "CUSTOM"),
        (V9 | {MODE: "COMMIT_TIME_ORDERING", LEGACY: HUDI + "AWSDmsAvroPayload"}, "CUSTOM"),
        (V9 | {MODE: "EVENT_TIME_ORDERING", LEGACY: HUDI + "DefaultHoodieRecordPayload"}, "EVENT_TIME_ORDERING"),
    ],
)
def test_merge_mode_is_decided_as_hudi_does(changed, mode):
    assert config(**changed).merge_mode == mode


def test_custom_partition_fields_are_given_as_columns():
    stored = config(hoodie_table_partition_fields="city:SIMPLE,ts:TIMESTAMP", hoodie_table_keygenerator_type="CUSTOM")
    assert stored.partition_fields == ("city", "ts")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"hoodie_table_version": "5"}, "version is 5.*upgrade"),
        ({"hoodie_table_version": None}, "version is not said"),
        ({"hoodie_table_version": "7"}, "version is 7, this release reads 6, 8 and 9"),
        ({"hoodie_table_version": "10"}, "version is 10"),
        ({"hoodie_table_version": "9"}, "layout.version is 1, version 9 has 2"),
        ({"hoodie_timeline_layout_version": "2"}, "layout.version is 2, version 6 has 1"),
        ({"hoodie_table_base_file_format": "ORC"}, "base files are ORC"),
        ({"hoodie_table_log_file_format": "X"}, "log files are X"),
        ({"hoodie_table_multiple_base_file_formats_enable": "true"}, "mixes"),
        ({"hoodie_bootstrap_base_path": "/elsewhere"}, "bootstrap"),
        ({"hoodie_datasource_write_drop_partition_columns": "true"}, "lack the partition columns"),
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
        ({"hoodie_table_version": "six"}, "is no number"),
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
        (V9, "version is 9"),
        ({"hoodie_populate_meta_fields": "false"}, "_hoodie_ columns"),
        ({PAYLOAD: "com.acme.P"}, r"merged by com\.acme\.P"),
        ({"hoodie_table_keygenerator_type": "TIMESTAMP"}, "key generator is TIMESTAMP"),
        ({"hoodie_table_recordkey_fields": None}, "no record key"),
        ({"hoodie_table_cdc_enabled": "true"}, "change logs"),
        ({"hoodie_datasource_write_slash_separated_date_partitioning": "true"}, "parts of dates"),
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
    check_against(config(hoodie_table_keygenerator_type=None), TableOptions(keygen=KeyGeneratorType.COMPLEX))
