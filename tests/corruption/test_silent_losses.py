"""Damages after which rows were lost or doubled without a word, each by its cause. All but the named file is whole."""

import pytest

from hoodie.engine.local import LocalEngine
from hoodie.errors import CorruptFileError
from hoodie.model.names import PROPERTIES, PROPERTIES_BACKUP, name_of
from hoodie.table import open_at
from tests.corruption.damage import Source, load

MOR = load("v6_mor_logs")
FIRST, UPDATE, FAILED = "20261121075530617", "20261121075550487", "20261121075610585"


def snapshot(source: Source) -> int:
    return open_at(source.stored(), engine=LocalEngine(1)).scan(meta_columns=True).to_arrow().num_rows


def changed(source: Source, path: str, old: bytes, new: bytes, *, count: int = 1) -> Source:
    data = source.files[path]
    assert len(old) == len(new)
    assert old in data
    return Source(source.name, {**source.files, path: data.replace(old, new, count)})


def the(ending: str, source: Source = MOR) -> str:
    """The one file whose path ends so."""
    (found,) = (path for path in source.files if path.endswith(ending))
    return found


LOG_1, LOG_5 = the("log.1_0-42-53"), the("log.5_0-42-53")
AVRO_DATA, COMMAND = (b"\0\0\0\x01\0\0\0" + kind for kind in (b"\x03", b"\0"))

LOSSES = {
    "a data block turned into a command": (LOG_1, AVRO_DATA, COMMAND),
    "the instant of a block turned into one that is not there": (LOG_1, UPDATE.encode(), b"20261121075550488"),
    "the instant of a block turned into one that was archived": (LOG_1, UPDATE.encode(), b"20251121075550487"),
    "the instant of a block turned into another commit's": (LOG_1, UPDATE.encode(), b"20261121075600950"),
    "the instant of a block turned into no instant": (LOG_1, UPDATE.encode(), b"2026112107555048x"),
    "a rollback turned against a commit": (LOG_5, FAILED.encode(), UPDATE.encode()),
    "the key column of a block renamed": (LOG_1, b'"_hoodie_record_key"', b'"_hoodie_recorc_key"'),
    "the commit time of a record": (LOG_1, b"\x22" + UPDATE.encode(), b"\x22" + FIRST.encode()),
    "the base file's name in its commit": (the(f"{FIRST}.deltacommit"), b"-0_0-19-20_", b"-0_0-19-21_"),
    "the base file's folder in its commit": (the(f"{FIRST}.deltacommit"), b'"a/a60e2e5b', b'"q/a60e2e5b'),
    "the log file's name in its commit": (the(f"{UPDATE}.deltacommit"), b".log.1_0-42-53", b".log.9_0-42-53"),
    "the field of the path in a commit": (the(f"{FIRST}.deltacommit"), b'"path"', b'"pbth"'),
    "the field of all files in a commit": (the(f"{FIRST}.deltacommit"), b"partitionToWrite", b"partitionToWrita"),
    "one partition under another's name": (the(f"{FIRST}.deltacommit"), b'"b" : [', b'"a" : ['),
}


def test_the_undamaged_table_is_read():
    assert snapshot(MOR) == 17


@pytest.mark.parametrize(("path", "old", "new"), LOSSES.values(), ids=LOSSES.keys())
def test_the_loss_is_reported_with_the_file(path, old, new):
    with pytest.raises(CorruptFileError) as caught:
        snapshot(changed(MOR, path, old, new))
    named = name_of(path), name_of(LOG_1), "parquet"
    assert any(name in str(caught.value) for name in named)


def test_a_replaced_group_under_another_id_would_be_there_twice():
    source = load("v6_replace")
    path = the("20261121075746327.replacecommit", source)
    data = source.files[path]
    at = data.index(b"partitionToReplaceFileIds")
    group = data.index(b"-", at) - 8
    damaged = data[:group] + b"00000000" + data[group + 8 :]
    with pytest.raises(CorruptFileError, match=r"20261121075746327\.replacecommit .* replaced file group '00000000"):
        snapshot(Source(source.name, {**source.files, path: damaged}))


def test_properties_that_lost_the_table_type_are_not_those_of_a_copy_on_write_table():
    with pytest.raises(CorruptFileError, match=r"hoodie\.properties: there is no hoodie\.table\.type"):
        snapshot(changed(MOR, PROPERTIES, b"hoodie.table.type", b"hoodie.table.typo"))


def test_properties_that_were_torn_while_a_writer_replaced_them_are_read_from_their_backup():
    data = MOR.files[PROPERTIES]
    torn = Source(MOR.name, {**MOR.files, PROPERTIES: data[:-40], PROPERTIES_BACKUP: data})
    assert snapshot(torn) == 17
    with pytest.raises(CorruptFileError, match=r"hoodie\.properties ends within a line"):
        snapshot(Source(MOR.name, {**MOR.files, PROPERTIES: data[:-40]}))


def test_a_torn_log_file_that_no_commit_names_is_passed_over():
    """What a dead writer left: its instant never completed."""
    log = the("log.6_0-42-53")
    stray = log.replace("log.6_0-42-53", "log.7_0-99-99")
    half = MOR.files[log][:700]
    assert snapshot(Source(MOR.name, {**MOR.files, stray: half})) == 17
