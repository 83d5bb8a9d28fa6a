"""Record keys and partition paths are Apache Hudi's, value by value; and both go on writing a table of either's keys."""

import datetime as dt
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hoodie
from hoodie.errors import KeyFieldError, OptionError, UnsupportedTableError
from hoodie.keygen.generator import KeyGenerator
from hoodie.model.names import PROPERTIES
from hoodie.options.keygen import PartitionKind, timestamp_settings
from hoodie.options.values import KeyGeneratorType
from integration import rust_peer
from integration.hudi_client import PeerError
from integration.key_values import COLUMNS, any_rows, date_texts, instants

WRITE = "hoodie.datasource.write."
TIME = "hoodie.keygen.timebased."
CLASSES = {
    KeyGeneratorType.SIMPLE: "org.apache.hudi.keygen.SimpleKeyGenerator",
    KeyGeneratorType.COMPLEX: "org.apache.hudi.keygen.ComplexKeyGenerator",
    KeyGeneratorType.NON_PARTITION: "org.apache.hudi.keygen.NonpartitionedKeyGenerator",
    KeyGeneratorType.TIMESTAMP: "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
    KeyGeneratorType.CUSTOM: "org.apache.hudi.keygen.CustomKeyGenerator",
}
TIMESTAMP = CLASSES[KeyGeneratorType.TIMESTAMP]
CUSTOM = CLASSES[KeyGeneratorType.CUSTOM]
YES_NO = {True: "true", False: "false"}


@pytest.fixture(scope="module")
def keys_of(hudi):
    """Asks Hudi's key generators; dates before 1900 cross as they are."""
    for setting in ("Read", "Write"):
        hudi.sql(f"SET spark.sql.parquet.datetimeRebaseModeIn{setting}=CORRECTED")

    def ask(rows, generator, *, timebased=None):
        kinds = generator.partition_kinds or ("",) * len(generator.partition_fields)
        columns = [f"{name}:{kind}".rstrip(":") for name, kind in zip(generator.partition_fields, kinds, strict=True)]
        options = {
            f"{WRITE}keygenerator.class": CLASSES[generator.kind],
            f"{WRITE}recordkey.field": ",".join(generator.record_key_fields),
            f"{WRITE}partitionpath.field": ",".join(columns),
            f"{WRITE}hive_style_partitioning": YES_NO[generator.hive_style],
            f"{WRITE}partitionpath.urlencode": YES_NO[generator.url_encode],
            f"{WRITE}slash.separated.date.partitioning": YES_NO[generator.slash_dates],
            f"{WRITE}keygenerator.consistent.logical.timestamp.enabled": YES_NO[generator.timestamps_as_text],
            **(timebased or {}),
        }
        return hudi.keys(rows, options)

    return ask


def row_by_row(make, rows):
    """What we make of each row; None where we refuse it."""
    try:
        return make(rows).to_pylist()
    except KeyFieldError:
        if rows.num_rows == 1:
            return [None]
    half = rows.num_rows // 2
    return row_by_row(make, rows.slice(0, half)) + row_by_row(make, rows.slice(half))


def leads_astray(path, columns):
    """Why we refuse a path that Hudi makes."""
    parts = path.split("/")
    values = {part.partition("=")[2] if "=" in part else part for part in parts}
    odd_parts = {"", ".", ".."} & ({*parts} | values)
    too_long = any(len(part.encode()) > 255 for part in parts)
    return (
        odd_parts
        or too_long
        or ":" in parts[0]
        or parts[0].startswith(".hoodie")
        or (columns > 1 and len(parts) > columns)
    )


def compare_paths(asked, rows, generator, *, columns=1):
    mine = row_by_row(generator.partitions, rows)
    both = 0
    for path, error, made in zip(asked["path"].to_pylist(), asked["path_error"].to_pylist(), mine, strict=True):
        if made is None:
            assert error is not None or leads_astray(path, columns), path
        else:
            assert made == path, error
            both += 1
    return both


@pytest.mark.parametrize("as_text", [False, True])
def test_keys_of_all_types(keys_of, as_text):
    rows = any_rows(2000, seed=1)
    generator = KeyGenerator(KeyGeneratorType.COMPLEX, ("n", *COLUMNS), timestamps_as_text=as_text)
    assert generator.keys(rows).to_pylist() == keys_of(rows, generator)["key"].to_pylist()


@pytest.mark.parametrize("kind", [KeyGeneratorType.SIMPLE, KeyGeneratorType.NON_PARTITION, KeyGeneratorType.COMPLEX])
@pytest.mark.parametrize("name", COLUMNS)
def test_keys_of_one_column(keys_of, kind, name):
    rows = any_rows(200, seed=2)
    paths = () if kind is KeyGeneratorType.NON_PARTITION else ("i",)
    generator = KeyGenerator(kind, (name,), paths)
    mine = row_by_row(generator.keys, rows)
    asked = keys_of(rows, generator)
    assert mine == asked["key"].to_pylist()
    assert None in mine  # null keys are refused by both


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (KeyGeneratorType.SIMPLE, "s"),
        (KeyGeneratorType.COMPLEX, "s"),
        (KeyGeneratorType.COMPLEX, "stxdybmwuilf"),
        (KeyGeneratorType.CUSTOM, "s"),
        (KeyGeneratorType.CUSTOM, "sm"),
    ],
)
def test_partition_paths(keys_of, kind, columns, encode, hive):
    rows = any_rows(800, seed=3)
    custom = kind is KeyGeneratorType.CUSTOM
    generator = KeyGenerator(
        kind,
        ("n",),
        tuple(columns),
        hive,
        encode,
        partition_kinds=(PartitionKind.SIMPLE,) * len(columns) if custom else (),
    )
    assert compare_paths(keys_of(rows, generator), rows, generator, columns=len(columns)) > 500


@pytest.mark.parametrize("hive", [False, True])
@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("column", "sd")
def test_folders_of_the_parts_of_dates(keys_of, encode, hive, column):
    rows = any_rows(400, seed=4)
    generator = KeyGenerator(KeyGeneratorType.SIMPLE, ("n",), (column,), hive, encode, slash_dates=True)
    assert compare_paths(keys_of(rows, generator), rows, generator) > 200


def timestamps(keys_of, values, timebased, *, hive=False, encode=True, as_text=False):
    timebased = {TIME + name: value for name, value in timebased.items()}
    rows = pa.table({"n": range(len(values)), "t": values})
    settings = timestamp_settings(timebased, table="t")
    generator = KeyGenerator(
        KeyGeneratorType.TIMESTAMP, ("n",), ("t",), hive, encode, timestamps=settings, timestamps_as_text=as_text
    )
    return compare_paths(keys_of(rows, generator, timebased=timebased), rows, generator)


ZONES = ["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Kiritimati", "GMT-3:30"]
EVERY_LETTER = (
    "yyyy y YYYY Y yy w ww xxxx x xx e E EEEE G CC C MM M MMM MMMM dd D DDD HH H kk k KK K hh h a mm ss S SSS SSSSS Z ZZ ZZZ "
    "'' 'quoted ''Q' -_.,()"
)


@pytest.mark.parametrize("zone", ZONES)
def test_instants_as_every_letter_writes_them(keys_of, zone):
    # At the very ends of 64 bits Joda-Time's weeks overflow.
    values = pa.array([each for each in instants(400, seed=5) if abs(each) < 2**62], pa.int64())
    options = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": EVERY_LETTER, "output.timezone": zone}
    assert timestamps(keys_of, values, options) == len(values)


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(("hive", "encode"), [(False, False), (True, False), (False, True), (True, True)])
def test_instants_as_folders(keys_of, zone, hive, encode):
    values = pa.array([*instants(300, seed=6), None], pa.int64())
    options = {"timestamp.type": "EPOCHMILLISECONDS", "output.dateformat": "yyyy/MM/dd/HH", "timezone": zone}
    assert timestamps(keys_of, values, options, hive=hive, encode=encode) == len(values)


@pytest.mark.parametrize("unit", ["NANOSECONDS", "MICROSECONDS", "MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS"])
def test_numbers_of_every_unit(keys_of, unit):
    values = pa.array([*instants(200, seed=7), None], pa.int64())
    options = {
        "timestamp.type": "SCALAR",
        "timestamp.scalar.time.unit": unit,
        "output.dateformat": "yyyyMMdd HHmmss.SSS",
    }
    assert timestamps(keys_of, values, options) == len(values)


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize("column", "ilxfmwdtu")
def test_every_type_that_is_a_time(keys_of, column, as_text):
    values = any_rows(300, seed=8)[column]
    options = {"timestamp.type": "UNIX_TIMESTAMP", "output.dateformat": "yyyy-MM-dd HHmmss.SSS"}
    assert timestamps(keys_of, values, options, as_text=as_text) == len(values)


ODD_DATES = [None, "", " ", "2024-13-01", "2024-02-30", "2023-02-29", "+2024-1-1", "-44-3-15", "99999-1-1", "999999999-1-1",
             "2024-1-1 ", "２０２４-01-01", "2024-01", "24:00", "1:5", "13:00 AM",
             "12:00 AM", "12:00 pm", "jan 1 2024", "JANUARY 1 2024", "jAn 1 2024", "Sept 1 2024", "May 5 5"]  # fmt: skip


@pytest.mark.parametrize(
    "zones",
    [
        {}, {"timezone": "Europe/Berlin"}, {"input.timezone": "America/St_Johns"}, {"output.timezone": "Asia/Kathmandu"},
        {"input.timezone": "Asia/Tokyo", "output.timezone": "GMT+8"},
    ],
)  # fmt: skip
def test_dates_in_several_forms(keys_of, zones):
    chance = random.Random(9)
    forms = ["%Y-%m-%d", "%d/%m/%Y", "%Y%m%d", "%b %d %Y", "%B %-d %Y", "%H:%M", "%I:%M %p"]
    texts = date_texts(300, lambda at: at.strftime(chance.choice(forms)), seed=10)
    options = {
        "timestamp.type": "MIXED",
        "input.dateformat": "yyyy-MM-dd; dd/MM/yyyy;yyyyMMdd;MMM d yyyy;HH:mm;hh:mm a",
        "input.dateformat.list.delimiter.regex": "[;]",
        "output.dateformat": "yyyy-MM-dd HHmmss Z",
        **zones,
    }
    assert timestamps(keys_of, pa.array([*texts, *ODD_DATES]), options) > 300


@pytest.mark.parametrize("zones", [{}, {"timezone": "Europe/Berlin"}, {"output.timezone": "Asia/Kathmandu"}])
def test_dates_that_say_their_zone_or_do_not(keys_of, zones):
    chance = random.Random(11)
    ends = ["Z", "z", "+01:00", "-0330", "+05", "+14:00:30", "", "+5", "+0:0", "-24:00"]
    texts = date_texts(300, lambda at: at.strftime("%Y-%m-%dT%H:%M:%S.%f") + chance.choice(ends), seed=12)
    pattern = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSZ,yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
    options = {
        "timestamp.type": "DATE_STRING",
        "input.dateformat": pattern,
        "output.dateformat": "yyyyMMddHHmmss Z",
        **zones,
    }
    assert timestamps(keys_of, pa.array([*texts, None]), options) > 180


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("yyyy-MM-dd HH:mm", ["2024-03-31 01:59", "2024-03-31 02:00", "2024-03-31 02:59", "2024-03-31 03:00", "2024-10-27 02:00",
                              "2024-10-27 02:59", "2024-10-27 03:00", "1893-04-01 00:00", "1893-03-31 23:58"]),
        ("E yyyy-MM-dd,e yyyy", ["Mon 2024-01-02", "Tue 2024-01-02", "sunday 2024-01-02", "SUN 2024-02-29", "7 2024"]),
        ("yyyy-D,yyyy-DDD d", ["2024-366", "2023-366", "2024-1", "2023-060 5"]),
        ("k", ["24", "0", "1"]), ("K a", ["11 PM", "0 am", "12 AM"]), ("M/d", ["2/29", "12/31", "13/1", "0/1"]),
        ("YYYY", ["2024", "-5", "0"]), ("y'x',y", ["2024", "-5", "0", "2024x"]),
        ("yyyyMMddHHmmssSSS", ["20240102030405678", "2024010203040567"]), ("'a b''c'yyyy", ["a b'c2024", "A B'C2024"]),
    ],
)  # fmt: skip
def test_patterns_of_dates(keys_of, pattern, texts):
    options = {
        "timestamp.type": "DATE_STRING",
        "input.dateformat": pattern,
        "output.dateformat": "yyyy-MM-dd HHmmss.SSS Z",
        "timezone": "Europe/Berlin",
    }
    assert timestamps(keys_of, pa.array(texts), options) > 0


# -- tables that both write ----------------------------------------------------------------------------------------

EVENTS = pa.schema(
    [("id", pa.string()), ("day", pa.string()), ("at", pa.timestamp("us", "UTC")), ("ms", pa.int64()), ("city", pa.string()),
     ("v", pa.int64())]
)  # fmt: skip
NOON = dt.datetime(2024, 2, 28, 12, tzinfo=dt.UTC)


def events(ids, v):
    rows = []
    for n in ids:
        at = NOON + dt.timedelta(days=n % 4, milliseconds=n)
        rows.append({"id": f"e{n}", "day": f"{at:%Y-%m-%d}", "at": at, "ms": int(at.timestamp() * 1000),
                     "city": ("a b", "c/d=é")[n % 2], "v": v})  # fmt: skip
    return pa.Table.from_pylist(rows, EVENTS)


def stored(path):
    """(key, path) -> value of every row, from our reader; a key that stands twice fails."""
    table = hoodie.open_table(path).scan(meta_columns=True).to_arrow()
    rows = list(
        zip(*(table[name].to_pylist() for name in ("_hoodie_partition_path", "_hoodie_record_key", "v")), strict=True)
    )
    found = {row[:2]: row[2] for row in rows}
    assert len(found) == len(rows)
    return found


def by_hudi_rs(path):
    found = rust_peer.read(path)
    return {(row["_hoodie_partition_path"], row["_hoodie_record_key"]): row["v"] for row in found}


ENCODED = {f"{WRITE}hive_style_partitioning": "true", f"{WRITE}partitionpath.urlencode": "true"}
DAYS = {f"{TIME}timestamp.type": "EPOCHMILLISECONDS", f"{TIME}output.dateformat": "yyyy/MM/dd"}
TABLES = {
    "timestamp": {
        f"{WRITE}recordkey.field": "id", f"{WRITE}partitionpath.field": "ms", f"{WRITE}keygenerator.class": TIMESTAMP, **DAYS,
    },
    "timestamp-of-text": {
        f"{WRITE}recordkey.field": "id", f"{WRITE}partitionpath.field": "day", f"{WRITE}keygenerator.class": TIMESTAMP,
        f"{TIME}timestamp.type": "DATE_STRING", f"{TIME}input.dateformat": "yyyy-MM-dd", f"{TIME}output.dateformat": "yyyyMM",
    },
    "custom": {
        f"{WRITE}recordkey.field": "id", f"{WRITE}partitionpath.field": "city:SIMPLE,ms:TIMESTAMP",
        f"{WRITE}keygenerator.class": CUSTOM, **ENCODED, **DAYS,
    },
    "custom-two-keys": {
        f"{WRITE}recordkey.field": "id,day", f"{WRITE}partitionpath.field": "ms:timestamp", f"{WRITE}keygenerator.class": CUSTOM,
        **DAYS,
    },
    "slash-dates": {
        f"{WRITE}recordkey.field": "id", f"{WRITE}partitionpath.field": "day",
        f"{WRITE}slash.separated.date.partitioning": "true",
    },
    "slash-dates-hive": {
        f"{WRITE}recordkey.field": "id", f"{WRITE}partitionpath.field": "day",
        f"{WRITE}slash.separated.date.partitioning": "true", f"{WRITE}hive_style_partitioning": "true",
    },
    "text-of-timestamps": {
        f"{WRITE}recordkey.field": "id,at", f"{WRITE}partitionpath.field": "at", **ENCODED,
        f"{WRITE}keygenerator.consistent.logical.timestamp.enabled": "true",
    },
    "one-named-key": {
        f"{WRITE}recordkey.field": "id", f"{WRITE}partitionpath.field": "city,day", **ENCODED,
        "hoodie.write.complex.keygen.validation.enable": "false",
    },
    "one-plain-key": {
        f"{WRITE}recordkey.field": "id", f"{WRITE}partitionpath.field": "city,day", **ENCODED,
        "hoodie.write.complex.keygen.validation.enable": "false", "hoodie.write.complex.keygen.new.encoding": "true",
    },
}  # fmt: skip
UNREMEMBERED = {"custom", "custom-two-keys"}
"""Hudi's properties of these do not say enough."""


def hudi_options(path, options, table_type="COPY_ON_WRITE"):
    return {"hoodie.table.name": path.name, f"{WRITE}table.type": table_type, **options}


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_hudi_goes_on(hudi, tmp_path, name):
    path = tmp_path / name
    options = hudi_options(path, TABLES[name])
    hudi.write(path, events(range(8), 1), options, mode="overwrite")
    told = options if name in UNREMEMBERED else {}
    if told:
        with pytest.raises(OptionError, match="properties do not say"):
            hoodie.open_table(path).upsert(events([0], 2))
    hoodie.open_table(path).upsert(
        events(range(4, 12), 2), {key: value for key, value in told.items() if "table" not in key}
    )
    assert sorted(stored(path).values()) == [1] * 4 + [2] * 8
    assert by_hudi_rs(path) == stored(path)
    hudi.write(path, events(range(10, 14), 3), options)
    assert sorted(stored(path).values()) == [1] * 4 + [2] * 6 + [3] * 4
    hoodie.open_table(path).delete(
        events(range(13), 0), {key: value for key, value in told.items() if "table" not in key}
    )
    assert list(stored(path).values()) == [3]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_of_ours_goes_on(hudi, tmp_path, name):
    path = tmp_path / name
    options = hudi_options(path, TABLES[name], "MERGE_ON_READ")
    ours = {key: value for key, value in options.items() if "validation" not in key}
    key, partition = ours.pop(f"{WRITE}recordkey.field"), ours.pop(f"{WRITE}partitionpath.field")
    hoodie.create_table(
        path, EVENTS, record_key=key, partition_by=partition, options=ours, table_type="MERGE_ON_READ"
    ).upsert(events(range(8), 1))
    plain = hoodie.open_table(path)
    plain.upsert(events(range(4, 12), 2), {name: ours[name] for name in ours if "new.encoding" in name})
    assert sorted(stored(path).values()) == [1] * 4 + [2] * 8
    hudi.write(path, events(range(10, 14), 3), options)
    assert sorted(stored(path).values()) == [1] * 4 + [2] * 6 + [3] * 4
    hoodie.open_table(path).upsert(events(range(11, 16), 4))
    assert sorted(stored(path).values()) == [1] * 4 + [2] * 6 + [3] + [4] * 5
    assert by_hudi_rs(path) == stored(path)


@pytest.mark.parametrize("name", ["slash-dates", "text-of-timestamps"])
def test_what_we_remember_hudi_needs_no_option_for(hudi, tmp_path, name):
    path = tmp_path / name
    options = dict(TABLES[name])
    key, partition = options.pop(f"{WRITE}recordkey.field"), options.pop(f"{WRITE}partitionpath.field")
    hoodie.create_table(path, EVENTS, record_key=key, partition_by=partition, options=options).upsert(
        events(range(8), 1)
    )
    untold = {f"{WRITE}recordkey.field": key, f"{WRITE}partitionpath.field": partition, "hoodie.table.name": path.name}
    hudi.write(path, events(range(8), 2), untold | (ENCODED if name.startswith("text") else {}))
    assert sorted(stored(path).values()) == [2] * 8


def test_wrong_settings_for_a_table_of_hudi_are_refused(hudi, tmp_path):
    path = tmp_path / "custom"
    hudi.write(path, events(range(8), 1), hudi_options(path, TABLES["custom"]), mode="overwrite")
    wrong = {f"{WRITE}partitionpath.field": "city:SIMPLE,ms:TIMESTAMP", **DAYS, f"{TIME}output.dateformat": "yyyy-MM"}
    with pytest.raises(UnsupportedTableError, match="other keys or paths"):
        hoodie.open_table(path).upsert(events(range(4), 2), wrong)
    assert set(stored(path).values()) == {1}


def test_the_properties_of_a_timestamp_table_are_hudi_s(hudi, tmp_path):
    def properties(path):
        lines = (path / PROPERTIES).read_text().splitlines()
        return {line for line in lines if "keygen" in line or "partition.fields" in line or "recordkey" in line}

    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    hudi.write(theirs, events(range(2), 1), hudi_options(theirs, TABLES["timestamp"]), mode="overwrite")
    options = {option: value for option, value in TABLES["timestamp"].items() if "keygen" in option}
    hoodie.create_table(ours, EVENTS, record_key="id", partition_by="ms", options=options)
    # Hudi 1.2 names the generator by type only, 0.x did by class, and readers of that age look for it.
    assert properties(ours) == properties(theirs) | {f"hoodie.table.keygenerator.class={TIMESTAMP}"}


# -- generated keys ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
@pytest.mark.parametrize("partition", ["day", ""])
def test_both_add_rows_to_a_table_that_generates_its_keys(hudi, tmp_path, table_type, partition):
    path = tmp_path / "keyless"
    options = {
        "hoodie.table.name": "keyless",
        f"{WRITE}partitionpath.field": partition,
        f"{WRITE}table.type": table_type,
    }
    if not partition:
        del options[f"{WRITE}partitionpath.field"]
    hudi.write(path, events(range(6), 1), options | {f"{WRITE}operation": "insert"}, mode="overwrite")
    result = hoodie.open_table(path).upsert(events(range(6), 2))
    assert (result.inserted, result.updated) == (6, 0)
    hudi.write(path, events(range(3), 3), options | {f"{WRITE}operation": "upsert"})
    hoodie.open_table(path).bulk_insert(events(range(2), 4))
    deleted = hoodie.open_table(path).delete(where="v = 2 and id < 'e3'")
    assert deleted.deleted == 3
    hudi.write(path, events(range(1), 5), options | {f"{WRITE}operation": "insert"})
    assert sorted(stored(path).values()) == [1] * 6 + [2] * 3 + [3] * 3 + [4] * 2 + [5]
    theirs = hudi.read(path).table
    assert sorted(theirs["v"].to_pylist()) == sorted(stored(path).values())
    assert by_hudi_rs(path) == stored(path)


@pytest.mark.parametrize("table_type", ["COPY_ON_WRITE", "MERGE_ON_READ"])
def test_hudi_goes_on_with_a_table_of_ours_that_generates_its_keys(hudi, tmp_path, table_type):
    path = tmp_path / "keyless"
    ours = hoodie.create_table(path, EVENTS, record_key=(), partition_by="day", table_type=table_type)
    instant = ours.insert(events(range(6), 1)).instant
    assert {key.rpartition("_")[0] for _, key in stored(path)} == {f"{instant}_0"}
    options = {"hoodie.table.name": "keyless", f"{WRITE}partitionpath.field": "day", f"{WRITE}table.type": table_type}
    hudi.write(path, events(range(6), 2), options | {f"{WRITE}operation": "insert"})
    hudi.write(path, events(range(6), 3), options)
    assert sorted(stored(path).values()) == [1] * 6 + [2] * 6 + [3] * 6
    assert sorted(hudi.read(path).table["v"].to_pylist()) == [1] * 6 + [2] * 6 + [3] * 6


# -- what Apache Hudi does otherwise; each notices when that changes -----------------------------------------------------


def test_hudi_s_row_writer_makes_other_keys_of_timestamps(hudi, tmp_path):
    path = tmp_path / "bulk"
    options = {"hoodie.table.name": "bulk", f"{WRITE}recordkey.field": "at", f"{WRITE}partitionpath.field": "day"}
    hudi.write(path, events([1], 1), options | {f"{WRITE}operation": "bulk_insert"}, mode="overwrite")
    (file,) = path.rglob("*.parquet")
    assert pq.ParquetFile(file).read(columns=["_hoodie_record_key"])[0].to_pylist() == ["2024-02-29 12:00:00.001"]


def test_hudi_s_data_source_passes_over_the_type_of_the_key_generator(hudi, tmp_path):
    path = tmp_path / "typed"
    options = {name: value for name, value in TABLES["timestamp"].items() if not name.endswith("generator.class")}
    hudi.write(
        path, events([1], 1), hudi_options(path, options | {f"{WRITE}keygenerator.type": "TIMESTAMP"}), mode="overwrite"
    )
    assert hoodie.open_table(path).config.keygen is KeyGeneratorType.SIMPLE


def test_hudi_cannot_read_paths_of_times_that_are_not_of_its_column_s_type(hudi, tmp_path):
    path = tmp_path / "custom"
    hudi.write(path, events(range(4), 1), hudi_options(path, TABLES["custom"]), mode="overwrite")
    with pytest.raises(PeerError, match="Failed to cast value"):
        hudi.read(path)
    assert len(stored(path)) == 4
