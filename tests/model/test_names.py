"""File names: what each kind looks like, that every name comes back as it was, and whose names are nobody's."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.model.names import (
    BaseFileName,
    LogFileName,
    WriteToken,
    format_base_file,
    format_instant_file,
    format_log_file,
    join,
    log_sort_key,
    marker_path,
    new_file_id,
    parse_base_file,
    parse_instant_file,
    parse_log_file,
    parse_write_token,
)
from tests.golden_tables import FOLDER

T = "20261121075818449"
ID = "eac2e14e-eb53-464f-a48c-15cd0749dca5-0"
V6 = sorted(path for path in FOLDER.glob("v6_*/table") if path.is_dir())


# --- timeline files --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "state", "name"),
    [
        (Action.COMMIT, State.REQUESTED, f"{T}.commit.requested"),
        (Action.COMMIT, State.INFLIGHT, f"{T}.inflight"),
        (Action.COMMIT, State.COMPLETED, f"{T}.commit"),
        (Action.COMPACTION, State.REQUESTED, f"{T}.compaction.requested"),
        (Action.COMPACTION, State.INFLIGHT, f"{T}.compaction.inflight"),
        (Action.LOGCOMPACTION, State.REQUESTED, f"{T}.logcompaction.requested"),
        (Action.LOGCOMPACTION, State.INFLIGHT, f"{T}.logcompaction.inflight"),
        *(
            (Action(word), state, f"{T}.{word}{ending}")
            for word in ("deltacommit", "replacecommit", "clean", "rollback", "savepoint", "restore", "indexing")
            for state, ending in (
                (State.REQUESTED, ".requested"),
                (State.INFLIGHT, ".inflight"),
                (State.COMPLETED, ""),
            )
        ),
    ],
)
def test_state_files_of_layout_1(action, state, name):
    assert format_instant_file(T, action, state) == name
    assert parse_instant_file(name) == Instant(T, action, state)


def test_a_compaction_completes_as_a_commit_and_a_log_compaction_as_a_delta_commit():
    assert format_instant_file(T, Action.COMPACTION, State.COMPLETED) == f"{T}.commit"
    assert format_instant_file(T, Action.LOGCOMPACTION, State.COMPLETED) == f"{T}.deltacommit"


@pytest.mark.parametrize("time_", ["20130307101112", T, T + "001", "00000000000000000"])
def test_times_of_old_tables_and_of_metadata_tables_are_instants(time_):
    assert parse_instant_file(f"{time_}.deltacommit") == Instant(time_, Action.DELTACOMMIT, State.COMPLETED)


NOT_INSTANTS = [
    "",
    ".",
    T,
    f"{T}.",
    f"{T}.commit.",
    f"{T}.commit.completed",
    f"{T}.commit.0b8a0b6e-7c09-4e06-a4a4-cbdca3b5f7b5",
    f"{T}.inflight.0b8a0b6e-7c09-4e06-a4a4-cbdca3b5f7b5",
    f"{T}.commit.requested.0b8a0b6e-7c09-4e06-a4a4-cbdca3b5f7b5",
    f".{T}.commit.crc",
    f"{T}.commit.crc",
    f"{T}.requested",
    f"{T}.commit.inflight",
    f"{T}.clustering.requested",
    f"{T}.compaction",
    f"{T}.COMMIT",
    f"{T}.merge",
    f"{T}_20261121075818499.commit",
    "2026112107581.commit",
    "2026112107581x.commit",
    "٢٠٢٦١١٢١٠٧٥٨١٨.commit",
    "²0261121075818.commit",
    "hoodie.properties",
    f" {T}.commit",
    "9" * 100_000 + ".commit",
    f"{T}." + "commit." * 20_000,
    "." * 100_000,
]


@pytest.mark.parametrize("name", NOT_INSTANTS, ids=lambda name: name[:60])
def test_other_names_in_the_timeline_folder_are_no_instants(name):
    assert parse_instant_file(name) is None


# --- data files ------------------------------------------------------------------------------------------------


def test_names_of_data_files():
    base = BaseFileName(ID, "0-26-43", T)
    log = LogFileName(ID, T, 3, "1-0-2147483647")
    assert format_base_file(base) == f"{ID}_0-26-43_{T}.parquet"
    assert format_base_file(base, ".hfile") == f"{ID}_0-26-43_{T}.hfile"
    assert format_log_file(log) == f".{ID}_{T}.log.3_1-0-2147483647"
    assert format_log_file(log._replace(suffix=".cdc")) == f".{ID}_{T}.log.3_1-0-2147483647.cdc"
    assert format_log_file(log._replace(write_token="")) == f".{ID}_{T}.log.3"


FILE_IDS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,40}", fullmatch=True)
INSTANTS = st.from_regex(r"[0-9]{14}|[0-9]{17}|[0-9]{20}", fullmatch=True)
NUMBERS = st.integers(0, 2**31)
TOKENS = st.builds(WriteToken, NUMBERS, NUMBERS, NUMBERS).map(str)


@given(st.builds(BaseFileName, FILE_IDS, TOKENS, INSTANTS))
def test_every_base_file_name_comes_back(name):
    assert parse_base_file(format_base_file(name)) == name
    assert parse_log_file(format_base_file(name)) is None


@given(st.builds(LogFileName, FILE_IDS, INSTANTS, NUMBERS, st.just("") | TOKENS, st.sampled_from(["", ".cdc"])))
def test_every_log_file_name_comes_back(name):
    assert parse_log_file(format_log_file(name)) == name
    assert parse_base_file(format_log_file(name)) is None


BASE = f"{ID}_0-26-43_{T}.parquet"
LOG = f".{ID}_{T}.log.1_1-0-1"
NOT_DATA = [
    "",
    ".",
    "..",
    "_",
    ".hoodie_partition_metadata",
    ".hoodie_partition_metadata.crc",
    f".{BASE}.crc",
    f".{LOG}.crc",
    f"{LOG}.crc",
    f"{BASE}.marker.CREATE",
    f"{BASE}.0b8a0b6e-7c09-4e06-a4a4-cbdca3b5f7b5",
    f"{ID}_0-26-43_{T}",
    f"{ID}_0-26-43_{T}.",
    f"_0-26-43_{T}.parquet",
    f"{ID}__{T}.parquet",
    f"{ID}_0-26-43_x.parquet",
    f"{ID}_0_26_{T}.parquet",
    f"{ID}_{T}.parquet",
    f"._{T}.log.1_1-0-1",
    f".{ID}.log.1_1-0-1",
    f".{ID}_.log.1_1-0-1",
    f".{ID}_x.log.1_1-0-1",
    f".{ID}_{T}.log._1-0-1",
    f".{ID}_{T}.log.x_1-0-1",
    f".{ID}_{T}.log.²_1-0-1",
    f".{ID}_{T}.log.-1_1-0-1",
    f".{ID}_{T}.log.1_1-0",
    f".{ID}_{T}.log.1_1-0-x",
    f".{ID}_{T}.lag.1_1-0-1",
    f"{ID}_{T}.log.1_1-0-1",
    "part-00000.parquet",
    "_SUCCESS",
    "a" * 100_000,
    "_" * 100_000 + ".parquet",
    f".{ID}_{T}.log." + "9" * 100_000,
    "." + "a_" * 50_000 + ".log.1_1-0-1",
]


@pytest.mark.parametrize("name", NOT_DATA, ids=lambda name: name[:60])
def test_other_names_in_a_partition_are_no_data_files(name):
    assert parse_base_file(name) is None
    assert parse_log_file(name) is None


def test_no_name_takes_long():
    def once():
        began = time.process_time()
        for name in (*NOT_INSTANTS, *NOT_DATA):
            parse_instant_file(name), parse_base_file(name), parse_log_file(name)
        return time.process_time() - began

    assert min(once() for _ in range(3)) < 0.05


@given(st.text(st.sampled_from(f".-_{T}logcdcommitinflight²\n\0/"), max_size=60))
def test_no_text_breaks_a_parser(name):
    for parse in (parse_instant_file, parse_base_file, parse_log_file):
        found = parse(name)
        assert found is None or found.__class__ in (Instant, BaseFileName, LogFileName)


@pytest.mark.parametrize("table", V6, ids=lambda path: path.parent.name)
def test_all_names_that_hudi_wrote_are_known_and_come_back(table):
    data = known = 0
    for path in table.rglob("*"):
        name = path.name
        if path.is_dir() or name.endswith(".crc") or "archived" in path.parts or "history" in path.parts:
            continue
        in_timeline = path.parent.name == ".hoodie"
        if in_timeline and name[0].isdigit():
            instant = parse_instant_file(name)
            assert instant is not None, name
            assert format_instant_file(*instant) == name
            known += 1
        elif not in_timeline and ".log." in name:
            log = parse_log_file(name)
            assert log is not None, name
            assert format_log_file(log) == name
            data += 1
        elif not in_timeline and name.endswith((".parquet", ".hfile")):
            base = parse_base_file(name)
            assert base is not None, name
            assert format_base_file(base, "." + name.rpartition(".")[2]) == name
            assert parse_write_token(base.write_token) is not None
            data += 1
        else:
            assert parse_instant_file(name) is None
            assert parse_base_file(name) is None
            assert parse_log_file(name) is None
    assert data >= 1
    assert known >= 3


def test_there_are_golden_tables_of_version_6():
    assert len(V6) >= 12


def test_logs_are_read_by_instant_then_version_then_token_as_numbers():
    names = [
        LogFileName(ID, "20261121075818449", 1, "0-0-9"),
        LogFileName(ID, "20261121075818449", 1, "0-0-10"),
        LogFileName(ID, "20261121075818449", 1, "2-0-1"),
        LogFileName(ID, "20261121075818449", 1, "10-0-1"),
        LogFileName(ID, "20261121075818449", 2, "0-0-1"),
        LogFileName(ID, "20261121075818449", 10, "0-0-1"),
        LogFileName(ID, "20261121075818450", 1, "0-0-1"),
    ]
    assert sorted([*names[4:], *names[:4]], key=log_sort_key) == names


def test_logs_of_a_slice_of_14_digits_come_after_those_of_earlier_slices_in_its_second():
    texts = (f".{ID}_{time}.log.1_0-0-1" for time in ("20261121075818500", "20261121075818", "20261121075819000"))
    within, short, after = (parse_log_file(text) for text in texts)
    assert sorted([after, short, within], key=log_sort_key) == [within, short, after]


@pytest.mark.parametrize("text", ["", "1-2", "1-2-3-4", "1--3", "-1-2", "a-b-c", "1-2-³", " 1-2-3"])
def test_what_is_no_write_token(text):
    assert parse_write_token(text) is None


def test_a_write_token_comes_back():
    assert parse_write_token("1-0-2147483647") == WriteToken(1, 0, 2**31 - 1)


def test_paths_have_no_empty_part():
    assert join("", "a") == "a"
    assert join("p=1/q=2", "", "f") == "p=1/q=2/f"
    assert join("") == ""


def test_a_marker_names_instant_partition_file_and_kind():
    assert marker_path(T, "a/b", BASE, "CREATE") == f".hoodie/.temp/{T}/a/b/{BASE}.marker.CREATE"
    assert marker_path(T, "", BASE, "MERGE") == f".hoodie/.temp/{T}/{BASE}.marker.MERGE"


def test_file_ids_are_new_and_fit_into_names():
    ids = {new_file_id() for _ in range(100)}
    assert len(ids) == 100
    for file_id in ids:
        assert file_id.endswith("-0")
        assert parse_base_file(format_base_file(BaseFileName(file_id, "0-0-0", T))).file_id == file_id
