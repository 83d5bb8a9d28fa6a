"""Kinds of damage that people meet: each is done to a table on a disk, and says what is to become of the rows."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from tests.corruption.damages import (
    FUTURE,
    PROPERTIES,
    age,
    archive_file,
    base,
    bring_back_archived,
    clustered_without_a_list,
    clustering_of_lost_files,
    copied_folder,
    cut,
    dead_write,
    file_at,
    flip,
    folder_at,
    folder_of_nobody,
    future,
    future_savepoint,
    future_service,
    in_a_page,
    linked_to,
    logs,
    lose_archived,
    lose_timeline,
    lost_instant,
    made,
    names_no_file,
    newest,
    of_another_table,
    of_version_8,
    old_empty_file,
    other_column,
    plan,
    plan_of_lost_files,
    replaced,
    replaces_what_lives,
    rewritten,
    saved_file,
    stated,
    stray,
    swap_logs,
    torn_properties,
    without,
    without_keys,
)


class Damage(NamedTuple):
    do: Callable[[Path], object]
    names: str
    """What the doctor's report has to name, a pattern."""
    values: dict[str, str] = {}  # noqa: RUF012 - nobody changes it
    """What the user knows of properties, for the command that asks for it."""
    undoes: int = 0
    """How many of the newest commits the way out takes back."""
    is_damage: bool = True
    """Whether `validate` finds it, too; else it costs, or will."""
    only_deep: bool = False
    """Whether rows, or the archive, have to be read for it."""
    is_silent: bool = False
    """Whether queries do not know of it: what only the archive says, they do not read."""


KNOWN = {
    "hoodie.table.ordering.fields": "ts",
    "hoodie.table.partition.fields": "city",
    "hoodie.table.recordkey.fields": "id",
    "hoodie.table.type": "MERGE_ON_READ",
    "hoodie.table.version": "6",
    "hoodie.table.name": "table",
}


DAMAGES = {
    # data files
    "a base file is missing": Damage(lambda t: base(t).unlink(), r"rome/.*\.parquet is gone"),
    "a base file is cut": Damage(lambda t: cut(base(t)), r"rome/.*\.parquet"),
    "a base file is empty": Damage(lambda t: cut(base(t), 0), r"rome/.*\.parquet"),
    "a folder in the place of a base file": Damage(lambda t: folder_at(base(t)), r"rome/.*\.parquet is gone"),
    "a base file with fewer rows than its log files replace": Damage(
        lambda t: rewritten(base(t), lambda rows: rows.slice(3)), r"rome/.*\.parquet", only_deep=True
    ),
    "a base file whose rows have no keys": Damage(
        lambda t: rewritten(base(t), without_keys), "4 rows without a record key", only_deep=True
    ),
    "the last byte of a base file is missing": Damage(
        lambda t: cut(base(t), base(t).stat().st_size - 1), r"rome/.*\.parquet"
    ),
    "a base file has a damaged page": Damage(
        lambda t: flip(base(t), in_a_page(base(t))), r"rome/.*\.parquet", only_deep=True
    ),
    "a base file is zeros": Damage(
        lambda t: base(t).write_bytes(bytes(base(t).stat().st_size)), r"rome/.*\.parquet", only_deep=True
    ),
    "a base file of another folder": Damage(
        lambda t: rewritten(base(t), lambda rows: pq.read_table(base(t, "bern"))), r"rome/.*\.parquet", only_deep=True
    ),
    "a base file that is a link to itself": Damage(
        lambda t: linked_to(base(t), base(t).name), r"rome/.*Too many levels"
    ),
    "a base file with other values in its key column": Damage(
        other_column("id", lambda ids: [100 + each for each in ids]),
        r"id makes other record keys .*rome/",
    ),
    "a base file whose keys are in another order than its rows": Damage(
        other_column("_hoodie_record_key", lambda keys: keys[::-1]), r"id makes other record keys .*rome/"
    ),
    "a base file without values in its key column": Damage(
        other_column("id", lambda ids: [None for _ in ids]), "4 rows whose columns make", only_deep=True
    ),
    "a base file whose rows have no commit times": Damage(
        other_column("_hoodie_commit_time", lambda times: [None for _ in times]),
        "rows without a commit time",
        only_deep=True,
    ),
    "an empty base file of an instant that nothing knows": Damage(old_empty_file, "it is empty"),
    "a base file of an archived commit is missing": Damage(
        lose_archived, r"oslo/.*\.parquet is gone", only_deep=True, is_silent=True
    ),
    "a base file that a retried task left": Damage(stray, r"7-7-7", is_damage=False),
    "a log file is missing": Damage(lambda t: logs(t)[-1].unlink(), r"rome/\..*\.log\."),
    "the first log file is missing": Damage(lambda t: logs(t)[0].unlink(), r"rome/\..*\.log\."),
    "a log file is cut": Damage(lambda t: cut(logs(t)[0]), r"rome/\..*\.log\."),
    "a log file is empty": Damage(lambda t: cut(logs(t)[0], 0), r"rome/\..*\.log\."),
    "a log file has a damaged block": Damage(lambda t: flip(logs(t)[0], 8), r"rome/\..*\.log\.", only_deep=True),
    "a log file is zeros": Damage(
        lambda t: logs(t)[0].write_bytes(bytes(logs(t)[0].stat().st_size)), r"rome/\..*\.log\.", only_deep=True
    ),
    "a log file of another folder": Damage(swap_logs, r"rome/\..*\.log\.", only_deep=True),
    "all files of a folder are missing": Damage(lambda t: shutil.rmtree(t / "bern"), r"bern"),
    # folders
    "a file in the place of a folder": Damage(lambda t: file_at(t / "rome"), "a file stands at rome"),
    "the table was copied into itself": Damage(
        lambda t: shutil.copytree(t, t / "copy", ignore=shutil.ignore_patterns("copy")), "copy is a table itself"
    ),
    "a folder that was copied": Damage(copied_folder, "so readers count its rows", is_silent=True),
    "a folder without partition metadata": Damage(
        lambda t: (t / "rome/.hoodie_partition_metadata").unlink(), "rome/.hoodie_partition_metadata"
    ),
    "a folder of archived commits without it": Damage(
        lambda t: (t / "oslo/.hoodie_partition_metadata").unlink(), "oslo/.hoodie_partition_metadata"
    ),
    "partition metadata are empty": Damage(
        lambda t: cut(t / "rome/.hoodie_partition_metadata", 0), "rome/.hoodie_partition_metadata"
    ),
    "partition metadata are garbage": Damage(
        lambda t: (t / "rome/.hoodie_partition_metadata").write_bytes(b"\xff\0"), "rome/.hoodie_partition_metadata"
    ),
    "a folder in the place of partition metadata": Damage(
        lambda t: folder_at(t / "rome/.hoodie_partition_metadata"), "a folder stands at rome/.hoodie_part"
    ),
    # commits
    "the timeline is lost": Damage(lose_timeline, "has no instant, and"),
    "an archived commit is back": Damage(bring_back_archived, "which was archived, as later ones were", is_silent=True),
    "a commit that others build on is lost": Damage(lambda t: lost_instant(t, 0), "which is on no timeline"),
    "a commit of a log file that others build on is lost": Damage(
        lambda t: lost_instant(t, -2), "which is on no timeline", only_deep=True, is_silent=True
    ),
    "the newest commit is lost": Damage(
        lambda t: lost_instant(t, -1), "is on no timeline, and nothing says", is_silent=True
    ),
    "the completed file of the newest commit is lost": Damage(
        lambda t: newest(t).unlink(), "its completed file is lost", is_silent=True
    ),
    "the completed file of an older commit is lost": Damage(
        lambda t: newest(t, at=-2).unlink(), "its completed file is lost", is_silent=True
    ),
    "a commit has a name of another table version": Damage(
        lambda t: newest(t).rename(newest(t).with_name(f"{newest(t).name[:17]}_{newest(t).name}")),
        "has a name of another table version",
        is_silent=True,
    ),
    "a commit has the name of a copy": Damage(
        lambda t: newest(t).rename(newest(t).with_name(f"{newest(t).name}.bak")),
        r"\.deltacommit\.bak has a name of",
        is_silent=True,
    ),
    "a replacecommit replaces a file group that lives": Damage(
        replaces_what_lives, "its rows do not count", is_silent=True
    ),
    "a folder in the place of a commit": Damage(lambda t: folder_at(newest(t)), "a folder stands at", is_silent=True),
    "the newest commit is cut": Damage(lambda t: cut(newest(t)), r"\.deltacommit", undoes=1),
    "the newest commit is empty": Damage(lambda t: cut(newest(t), 0), r"\.deltacommit", undoes=1),
    "the newest commit is garbage": Damage(lambda t: newest(t).write_bytes(b"garbage"), r"\.deltacommit", undoes=1),
    "the newest commit has the schema of another table": Damage(
        lambda t: of_another_table(newest(t)), r"\.deltacommit lacks city, id", undoes=1
    ),
    "the newest commit names no file": Damage(
        lambda t: names_no_file(newest(t)), r"\.deltacommit names no file", is_silent=True
    ),
    "an older commit names no file": Damage(
        lambda t: names_no_file(newest(t, at=-3)), r"\.deltacommit names no file", is_silent=True
    ),
    "a compaction names no file": Damage(
        lambda t: names_no_file(newest(t, action="commit")), r"\.commit names no file"
    ),
    "a clustering does not say what it replaced": Damage(
        clustered_without_a_list, r"\.replacecommit does not replace 3 file groups", is_silent=True
    ),
    "a commit says what the one after it says": Damage(
        lambda t: shutil.copyfile(newest(t), newest(t, at=-2)), "says what .* says"
    ),
    "the newest commit says what the one before it says": Damage(
        lambda t: shutil.copyfile(newest(t, at=-2), newest(t)), "says what .* says", undoes=1
    ),
    "a commit that is a link to itself": Damage(lambda t: linked_to(newest(t), newest(t).name), "Too many levels"),
    "a commit that is a link to a file that is gone": Damage(lambda t: linked_to(newest(t), "nowhere"), "No such file"),
    "the two newest commits are cut": Damage(
        lambda t: [cut(newest(t, at=at)) for at in (-1, -2)], r"\.deltacommit", undoes=2
    ),
    "an older commit is cut": Damage(lambda t: cut(newest(t, at=-2)), r"\.deltacommit"),
    "the replacecommit is cut": Damage(lambda t: cut(newest(t, action="replacecommit")), r"\.replacecommit"),
    "a commit names another file": Damage(lambda t: replaced(newest(t), ".log.", ".lox."), r"\.deltacommit", undoes=1),
    "a commit is completed under two names": Damage(
        lambda t: shutil.copyfile(newest(t), newest(t).with_suffix(".commit")), "completed twice"
    ),
    "an instant of 2099": Damage(lambda t: future(t, newest(t)), FUTURE),
    "a pending write of 2099": Damage(lambda t: (t / f".hoodie/{FUTURE}.deltacommit.requested").touch(), FUTURE),
    "an unfinished savepoint of 2099": Damage(lambda t: (t / f".hoodie/{FUTURE}.savepoint.inflight").touch(), FUTURE),
    "a clean of 2099": Damage(lambda t: future_service(t, "clean"), FUTURE),
    "an instant that is no moment": Damage(
        lambda t: (t / f".hoodie/{newest(t).name[:12]}99999.deltacommit.requested").touch(), "99999"
    ),
    "a pending write from before the archive": Damage(
        lambda t: (t / ".hoodie/20200101000000000.deltacommit.requested").touch(), "20200101000000000", is_silent=True
    ),
    # pending work
    "a write that was requested": Damage(
        lambda t: dead_write(t, ("requested",)), "deltacommit.requested", is_damage=False
    ),
    "a write that was begun": Damage(
        lambda t: dead_write(t, ("requested", "inflight")), "deltacommit.inflight", is_damage=False
    ),
    "a write that is inflight and was never requested": Damage(
        lambda t: dead_write(t, ("inflight",)), "deltacommit.inflight", is_damage=False
    ),
    "an overwrite that was begun": Damage(
        lambda t: dead_write(t, ("requested", "inflight"), "replacecommit"), "replacecommit.inflight", is_damage=False
    ),
    "a compaction plan is garbage": Damage(lambda t: plan(t, "compaction.requested"), "compaction.requested"),
    "a compaction plan is empty": Damage(lambda t: plan(t, "compaction.requested", b""), "compaction.requested"),
    "a compaction plan is garbage and young": Damage(
        lambda t: plan(t, "compaction.requested", age=False), "compaction.requested"
    ),
    "a compaction without its plan": Damage(lambda t: plan(t, "compaction.inflight", b""), "compaction.requested"),
    "a log compaction plan is garbage": Damage(lambda t: plan(t, "logcompaction.requested"), "logcompaction.requested"),
    "a clustering plan is garbage": Damage(
        lambda t: plan(t, "replacecommit.requested"), "replacecommit.requested", is_damage=False
    ),
    "a clustering plan names files of other file groups": Damage(
        clustering_of_lost_files, "clustering.requested does not decode"
    ),
    "a clean plan is garbage": Damage(lambda t: plan(t, "clean.requested"), "clean.requested"),
    "a completed clean is cut": Damage(lambda t: age(newest(t, action="clean"), cut), r"\d\.clean"),
    "a compaction plan names files that are not there": Damage(
        plan_of_lost_files, r"the plan names .*\.log\.7.*not there"
    ),
    "a restore was begun and its plan is gone": Damage(
        lambda t: dead_write(t, ("inflight",), "restore"), r"the plan of \d+\.restore is gone"
    ),
    "a rollback plan is garbage": Damage(lambda t: plan(t, "rollback.requested"), "rollback.requested"),
    "a restore plan is garbage": Damage(lambda t: plan(t, "restore.requested"), "restore.requested", is_damage=False),
    # what else lies in .hoodie
    "a savepoint is cut": Damage(lambda t: cut(newest(t, action="savepoint")), r"\.savepoint"),
    "a savepoint of 2099": Damage(future_savepoint, FUTURE),
    "a folder in the place of the lock": Damage(
        lambda t: folder_at(t / ".hoodie/.hoodie_py/table.lock"), "a folder stands at"
    ),
    "a file in the place of the row copies": Damage(
        lambda t: file_at(t / ".hoodie/.hoodie_py/rows"), "a file stands at"
    ),
    "a file in the place of the metadata table": Damage(lambda t: file_at(t / ".hoodie/metadata"), "a file stands at"),
    "a file in the place of the history of columns": Damage(
        lambda t: file_at(t / ".hoodie/.schema"), "a file stands at"
    ),
    "a file in the place of another version's timeline": Damage(
        lambda t: file_at(t / ".hoodie/timeline"), "a file stands at"
    ),
    "a file in the place of the markers": Damage(lambda t: file_at(t / ".hoodie/.temp"), "a file stands at"),
    "a file of a savepoint is gone": Damage(lambda t: saved_file(t).unlink(), "of savepoint"),
    "the place of a consumer is garbage": Damage(
        lambda t: (t / ".hoodie/.hoodie_py/consumers/reader.json").write_bytes(b"{"), "reader"
    ),
    "the archive is lost": Damage(lambda t: archive_file(t).unlink(), "history lacks instant", only_deep=True),
    "a file of the archive is empty": Damage(
        lambda t: cut(archive_file(t), 0), "history lacks instant", only_deep=True
    ),
    "a file of the archive is cut": Damage(lambda t: cut(archive_file(t)), "history"),
    "a row copy is damaged": Damage(
        lambda t: cut(next((t / ".hoodie/.hoodie_py/rows").glob("*.parquet"))), "rows/", is_damage=False
    ),
    "a heartbeat of nobody": Damage(
        lambda t: age(made(t / ".hoodie/.heartbeat/20200101000000000")), "heartbeat", is_damage=False
    ),
    "markers of nobody": Damage(
        lambda t: folder_of_nobody(t, ".hoodie/.temp/20200101000000000"), "20200101000000000", is_damage=False
    ),
    "a staging folder of nobody": Damage(
        lambda t: folder_of_nobody(t, ".hoodie/.hoodie_py/staging/20200101000000000"),
        "20200101000000000",
        is_damage=False,
    ),
    # properties
    "the properties are empty": Damage(lambda t: cut(t / PROPERTIES, 0), "hoodie.properties is empty", KNOWN),
    "the properties are missing": Damage(lambda t: (t / PROPERTIES).unlink(), "hoodie.properties is missing", KNOWN),
    "a folder in the place of the properties": Damage(
        lambda t: folder_at(t / PROPERTIES), "a folder stands at .hoodie/hoodie.properties", KNOWN
    ),
    "the properties are torn": Damage(torn_properties, "hoodie.properties", KNOWN),
    "the properties are garbage": Damage(
        lambda t: (t / PROPERTIES).write_bytes(b"\xff\xfe\0garbage"), "hoodie.properties", KNOWN
    ),
    "the table type is missing": Damage(
        lambda t: replaced(t / PROPERTIES, "hoodie.table.type=", "#"), "hoodie.table.type", KNOWN
    ),
    "a wrong record key": Damage(
        lambda t: replaced(t / PROPERTIES, "recordkey.fields=id", "recordkey.fields=nope"), "'nope'", KNOWN
    ),
    "a record key that is another column": Damage(
        lambda t: replaced(t / PROPERTIES, "recordkey.fields=id", "recordkey.fields=fare"), "fare", KNOWN
    ),
    "a wrong partition column": Damage(
        lambda t: replaced(t / PROPERTIES, "partition.fields=city", "partition.fields=nope"), "'nope'", KNOWN
    ),
    "a partition column that is another one": Damage(
        lambda t: replaced(t / PROPERTIES, "partition.fields=city", "partition.fields=fare"), "fare", KNOWN
    ),
    "folders that are said to name their columns": Damage(
        lambda t: replaced(t / PROPERTIES, "hive_style_partitioning=false", "hive_style_partitioning=true"),
        "hive_style",
        KNOWN,
    ),
    "a wrong ordering column": Damage(lambda t: replaced(t / PROPERTIES, "=ts\n", "=tss\n"), "'tss'", KNOWN),
    "a wrong table type": Damage(
        lambda t: replaced(t / PROPERTIES, "MERGE_ON_READ", "COPY_ON_WRITE"), "COPY_ON_WRITE", KNOWN
    ),
    "a table name that is empty": Damage(stated("hoodie.table.name", ""), "has no hoodie.table.name", KNOWN),
    "a version that no table has": Damage(stated("hoodie.table.version", "7"), "hoodie.table.version is 7", KNOWN),
    "a timeline layout of another version": Damage(
        stated("hoodie.timeline.layout.version", "2"), "hoodie.timeline.layout.version is 2", KNOWN
    ),
    "base files that are said to be of another format": Damage(
        stated("hoodie.table.base.file.format", "ORC"), "hoodie.table.base.file.format is ORC", KNOWN
    ),
    "a key generator type that there is not": Damage(
        stated("hoodie.table.keygenerator.type", "NOPE"), "which is no key generator", KNOWN
    ),
    "a version that is not a number": Damage(stated("hoodie.table.version", "six"), "is not a number", KNOWN),
    "a table type that is none": Damage(stated("hoodie.table.type", "COPY"), "not a value of this property", KNOWN),
    "a flag that is none": Damage(stated("hoodie.populate.meta.fields", "maybe"), "true or false", KNOWN),
    "a key generator of tables without partitions": Damage(
        stated("hoodie.table.keygenerator.type", "NON_PARTITION"), "keygenerator.type is that of", KNOWN
    ),
    "partition columns that are said to be dropped": Damage(
        stated("hoodie.datasource.write.drop.partition.columns", "true"), "has column 'city'", KNOWN
    ),
    "a key generator of times": Damage(
        stated("hoodie.table.keygenerator.type", "TIMESTAMP"), "keygenerator.type is that of times", KNOWN
    ),
    "the ordering column is missing": Damage(
        without("hoodie.table.ordering.fields", "hoodie.table.precombine.field"), "there is no ordering column", KNOWN
    ),
    "another folder of the archive": Damage(
        stated("hoodie.archivelog.folder", "nope"), "nope, which is empty, and", KNOWN
    ),
    "a wrong version": Damage(lambda t: of_version_8(t / PROPERTIES), "version 8", KNOWN),
}
