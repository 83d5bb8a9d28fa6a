"""Apache Hudi's change queries on tables with change logs that hoodie writes, alone and in turns with Apache Hudi."""

import itertools
from pathlib import Path

import pyarrow as pa
import pytest

import hoodie
from integration.change_queries import EACH_PAIR, KINDS_OF_LOGS, changes_by_hudi, events, options_of, rows
from integration.hudi_client import HudiPeer, PeerError
from integration.turns import METADATA_ON
from integration.views import by_hudi, by_rust, differences, ours
from tests.change_feed import check_feed
from tests.effort import soak_but
from tests.memory_tables import KEEP_ALL

SMALL_FILES = {"hoodie.parquet.small.file.limit": "104857600"}
LOGS_INSERTS = {"hoodie.merge.allow.duplicate.on.inserts": "false"}
"""Else an insert of Apache Hudi 1.2.0 into a small file writes no change log, and its change queries fail on that commit."""
CASES = [*EACH_PAIR, ("MERGE_ON_READ", "8", "op_key_only")]


class History:
    """Writes of each kind to one table; in turns every other one is Apache Hudi's."""

    def __init__(self, hudi: HudiPeer, path: Path, options: dict[str, str], *, in_turns: bool) -> None:
        self.hudi, self.path, self.options = hudi, path, options | SMALL_FILES
        self.number = itertools.count()
        self.in_turns = in_turns

    def write(self, operation: str, data: pa.Table) -> None:
        if self.in_turns and next(self.number) % 2:
            options = {**self.options, **LOGS_INSERTS, "hoodie.datasource.write.operation": operation}
            self.hudi.write(self.path, data, options)
        else:
            getattr(hoodie.open_table(self.path, options=SMALL_FILES | KEEP_ALL), operation)(data)

    def run(self) -> None:
        hoodie.create_table(self.path, rows(n=0, ts=0).schema, record_key="id", options=self.options)
        self.write("insert", rows("1a", "2a", "3b", "4b", n=1, ts=10))
        self.write("insert", rows("5a", "9c", n=1, ts=10))
        self.write("upsert", rows("1a", "5a", "3b", "6a", n=2, ts=20))
        self.write("upsert", rows("2a", n=3, ts=5))  # late: it changes nothing
        self.write("delete", rows("4b", "1a", n=4, ts=30))
        self.write("upsert", rows("4b", "3b", n=5, ts=40))
        if self.options["hoodie.datasource.write.table.type"] == "MERGE_ON_READ":
            hoodie.open_table(self.path, options=KEEP_ALL).compact()
            self.write("upsert", rows("2a", "5a", n=6, ts=50))
            self.write("insert", rows("7c", n=6, ts=50))
        self.write("delete", rows("2a", "5a", "6a", n=6, ts=60))  # all of a file
        self.write("upsert", rows("2a", n=7, ts=70))
        self.write("insert_overwrite", rows("6b", n=7, ts=10))
        self.write("upsert", rows("6b", "7b", n=8, ts=20))
        hoodie.open_table(self.path, options=KEEP_ALL).delete_partitions(["b"])
        self.write("bulk_insert", rows("8b", n=9, ts=10))


@pytest.mark.parametrize("in_turns", soak_but([True], [False, True]))
@pytest.mark.parametrize(("kind", "version", "mode"), soak_but(CASES, [*KINDS_OF_LOGS, CASES[-1]]))
def test_apache_hudi_gives_the_events_that_hoodie_gives(
    hudi: HudiPeer, tmp_path: Path, kind: str, version: str, mode: str, in_turns: bool
) -> None:
    path = tmp_path / "t"
    options = options_of(kind, version, mode)
    if in_turns and version == "9":
        options |= METADATA_ON
    History(hudi, path, options, in_turns=in_turns).run()
    assert (path / ".hoodie/metadata").exists() == (METADATA_ON.items() <= options.items())
    table = hoodie.open_table(path)
    check_feed(table)
    assert differences(path, ours, by_hudi(hudi, METADATA_ON)) == []
    assert differences(path, ours, by_rust) == []
    begin = None
    for instant in table.timeline.commits:
        found = events(table.changes(begin, instant.position, images="cdc").to_arrow())
        since, until = begin or "000", instant.position
        stats = table._context.active.read_commit(instant).stats()
        if version == "6" and any(stat.log_version is not None for stat in stats):
            # Hudi 1.2.0 takes the metadata of a delta commit that wrote logs for an Avro file, on tables of its own as well.
            with pytest.raises(PeerError, match="Not an Avro data file"):
                changes_by_hudi(hudi, path, since, until)
        else:
            assert found == events(changes_by_hudi(hudi, path, since, until)), str(instant)
        begin = instant.position
