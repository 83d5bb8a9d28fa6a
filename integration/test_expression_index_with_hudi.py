"""Expression indexes: Apache Hudi makes one, or we do; we keep it up, and Apache Hudi leaves out what it may and no more.

With bounds this release of Apache Hudi cannot write to the table any more itself (`pathInfo` is null where it asks its metadata table
for the files of a partition), with filters not to logs.
"""

import uuid
from itertools import product

import pytest

import hoodie
from integration.make_goldens import LOCKED
from integration.tables import trips
from integration.turns import Turns
from tests.effort import soak_but
from tests.rows import rows_of

NAME = "expr_index_by_hour"
FORMAT = "yyyy-MM-dd HH"
IN_UTC = {"hoodie.python.index.expression.timezone": "UTC"}
NO_STATS = {"hoodie.metadata.enable": "true", "hoodie.metadata.index.column.stats.enable": "false"}
HOUR = 3600
KINDS = {  # kind -> table type, column, expression, options, values that are asked for and what is asked for
    "column_stats": (
        "MERGE_ON_READ",
        "ts",
        f"from_unixtime(ts, '{FORMAT}')",
        {"expr": "from_unixtime", "format": FORMAT},
    ),
    "bloom_filters": ("COPY_ON_WRITE", "city", "upper(city)", {"expr": "upper"}),
}
ASKED = {
    "column_stats": {f"1970-01-01 {hour:02d}": lambda row, hour=hour: row["ts"] // HOUR == hour for hour in (0, 2)},
    "bloom_filters": {city.upper(): lambda row, city=city: row["city"] == city for city in ("ny", "sf")},
}


class ExpressionTurns(Turns):
    """As `Turns`. After each turn the index says what the files do, and Apache Hudi finds by it what is there."""

    def __init__(self, hudi, path, kind, version):
        table_type, self.column, self.expression, self.pairs = KINDS[kind]
        super().__init__(hudi, path, table_type, more=NO_STATS | {"hoodie.write.table.version": version})
        self.name, self.kind = f"expressions_{uuid.uuid4().hex}", kind
        said = [f"hoodie.write.table.version={version}", "hoodie.write.auto.upgrade=false"]
        for each in (LOCKED, *map("=".join, NO_STATS.items()), "hoodie.enable.data.skipping=true", *said):
            self.hudi.sql(f"SET {each}")

    def hudi_makes_it(self):
        self.hudi.sql(f"CREATE TABLE {self.name} USING hudi LOCATION '{self.path}'")
        options = ", ".join(f"{key}='{text}'" for key, text in self.pairs.items())
        self.hudi.sql(f"CREATE INDEX by_hour ON {self.name} USING {self.kind} ({self.column}) OPTIONS ({options})")
        self.table.table = hoodie.open_table(self.path, options=IN_UTC)

    def we_make_it(self):
        given = {
            "hoodie.metadata.index.expression.column": self.column,
            "hoodie.metadata.index.expression.options": ",".join(f"{key}={text}" for key, text in self.pairs.items()),
            "hoodie.expression.index.type": self.kind,
        }
        self.table.table.build_index(NAME, IN_UTC | given)

    def check(self, step):
        table = hoodie.open_table(self.path, options=IN_UTC)
        if NAME not in table.config.metadata_partitions:
            return
        found = table.index(NAME).check()
        assert found, (step, found)
        self.hudi.sql(f"REFRESH TABLE {self.name}")
        assert self.hudi.sql(f"CALL validate_metadata_table_files(table => '{self.name}')").rows == [], step
        rows = rows_of(hoodie.open_table(self.path, options={"hoodie.metadata.enable": "false"}).scan().to_arrow())
        for value, fits in ASKED[self.kind].items():
            theirs = self.hudi.sql(f"SELECT id FROM {self.name} WHERE {self.expression} = '{value}'").rows
            assert sorted(row["id"] for row in theirs) == sorted(row["id"] for row in rows if fits(row)), (step, value)

    def check_all(self, step):
        super().check(step)


@pytest.fixture
def session(hudi):
    """Whose statements go by a version, else they make the metadata table one of version 9."""
    yield hudi
    for each in ("hoodie.write.table.version", "hoodie.write.auto.upgrade"):
        hudi.sql(f"RESET {each}")


@pytest.mark.parametrize(("kind", "version"), soak_but([("column_stats", "9")], list(product(KINDS, "98"))))
def test_one_of_each_in_turns(session, tmp_path, kind, version, caplog):
    turns = ExpressionTurns(session, tmp_path / "trips", kind, version)
    turns.create_by_hudi(trips(range(6), fare=1, ts=10))
    turns.hudi_makes_it()
    turns.check("hudi makes it")
    turns.we_upsert(trips([2, 4, 21], fare=2, ts=2 * HOUR))
    if kind == "bloom_filters":
        turns.hudi_upserts(trips([3, 22], fare=3, ts=2 * HOUR + 9))
    turns.we_compact()
    turns.we_delete(trips([2], fare=0, ts=0))
    turns.table.table.clean(retain_commits=1)
    turns.check("we clean")
    assert turns.table.table.drop_index(NAME)
    turns.we_make_it()
    turns.check("we build it")
    if kind == "bloom_filters":
        turns.hudi_upserts(trips([4], fare=7, ts=7 * HOUR))
    assert hoodie.open_table(turns.path).config.metadata_partitions == (NAME, "files")
    assert not [each for each in caplog.records if "expr_index" in each.getMessage()]
    turns.check_all("all read it")
