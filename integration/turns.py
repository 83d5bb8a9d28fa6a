"""One table that hoodie and Apache Hudi write in turns; after every turn all readers see the same rows."""

import itertools
import uuid
from collections.abc import Sequence

import pyarrow as pa
import pytest

import hoodie
from hoodie.model.meta_fields import META_COLUMNS
from hoodie.model.names import PROPERTIES
from hoodie.storage.local import LocalStorage
from hoodie.table import HoodieTable
from integration.tables import TRIPS, Written
from integration.views import BEGINNING, View, by_hudi, by_rust, ours
from tests.effort import soak_but
from tests.followed import Followers
from tests.rows import rows_of, without

TYPES_AND_VERSIONS = tuple(itertools.product(["COPY_ON_WRITE", "MERGE_ON_READ"], ["6", "9"]))


def of_types_and_versions(*kept: tuple[str, str], indirect: Sequence[str] = ()) -> pytest.MarkDecorator:
    """For a test of a table type and a version: `make integration` runs these, `make soak` all of them."""
    return pytest.mark.parametrize(("table_type", "version"), soak_but(kept, TYPES_AND_VERSIONS), indirect=indirect)


METADATA_ON = {"hoodie.metadata.enable": "true"}
COMPACT_NOW = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
CLEAN_NOW = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
ARCHIVE_NOW = {
    "hoodie.clean.automatic": "true",
    "hoodie.clean.commits.retained": "1",
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.archive.automatic": "true",
    "hoodie.metadata.enable": "false",
}
FAIL_AFTER_WRITING = {
    "hoodie.precommit.validators": "org.apache.hudi.client.validator.SqlQuerySingleResultPreCommitValidator",
    "hoodie.precommit.validators.single.value.sql.queries": "select count(*) from <TABLE_NAME> where 1 = 0#1",
}

HUDI_DEFAULTS = {
    "hoodie.metadata.enable": "true",
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    "hoodie.write.auto.upgrade": "true",
}
"""Apache Hudi's defaults, which the peer's settings turn off."""


def from_the_archive(view):
    """Of a pull that begins there both peers leave out rows that a later commit changed (Hudi), or archived commits (hudi-rs)."""
    return view.begin == BEGINNING


class Turns:
    """One table, two writers, three readers.

    `more`: options of Apache Hudi's writes. `own`: of the table where we create it, beside its version.
    """

    written = Written

    def __init__(self, hudi, path, table_type, *, more=None, own=None):
        self.hudi = hudi
        self.options = {
            "hoodie.table.name": path.name,
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city",
            "hoodie.datasource.write.precombine.field": "ts",
            "hoodie.datasource.write.table.type": table_type,
            **(more or {}),
        }
        self.own = own or {}
        self.path = path
        self.table_type = table_type
        self.table = None
        self.followers = None
        """Who follow the table by its timeline, from the first check on."""

    def create(self):
        version = {key: value for key, value in self.options.items() if key == "hoodie.write.table.version"}
        self.table = self.written(
            self.path,
            TRIPS,
            record_key="id",
            partition_by="city",
            ordering="ts",
            table_type=self.table_type,
            options=version | self.own,
        )
        return self.table

    def create_by_hudi(self, rows):
        self.hudi.write(self.path, self.arrow(rows), self.options, mode="overwrite")
        self.table = Written(self.path, TRIPS, table=hoodie.open_table(self.path))
        self.table.merge(rows)
        self.check("hudi creates")

    def arrow(self, rows):
        return pa.Table.from_pylist(rows, schema=TRIPS)

    def hudi_upserts(self, rows):
        self.hudi.write(self.path, self.arrow(rows), self.options)
        self.table.merge(rows)
        self.check("hudi upserts")

    def hudi_upserts_and_cleans_up(self, rows):
        """With inline compaction, where there are logs, and inline clean."""
        services = CLEAN_NOW | (COMPACT_NOW if self.table_type == "MERGE_ON_READ" else {})
        self.hudi.write(self.path, self.arrow(rows), self.options | services)
        self.table.merge(rows)
        assert list(self.path.glob(".hoodie/**/*.clean"))
        self.check("hudi upserts, compacts and cleans")

    def hudi_deletes(self, rows):
        options = {"hoodie.datasource.write.operation": "delete"}
        self.hudi.write(self.path, self.arrow(rows), self.options | options)
        self.table.remove(rows)
        self.check("hudi deletes")

    def we_upsert(self, rows):
        self.table.upsert(rows)
        self.check("we upsert")

    def we_delete(self, rows):
        self.table.delete(rows)
        self.check("we delete")

    def we_compact(self):
        if self.table_type == "MERGE_ON_READ":
            assert self.table.table.compact()
            self.check("we compact")

    def check(self, step):
        """All readers agree with each other and with the rows that were written; no key twice."""
        mine = ours(self.path, View())
        keys = [(row["_hoodie_partition_path"], row["_hoodie_record_key"]) for row in mine]
        assert len(set(keys)) == len(keys), step
        assert without(mine, *META_COLUMNS) == self.table.rows, step
        assert by_hudi(self.hudi)(self.path, View()) == mine, step
        if METADATA_ON.items() <= self.options.items():
            assert by_hudi(self.hudi, METADATA_ON)(self.path, View()) == mine, f"{step}; by its metadata table"
        assert by_rust(self.path, View()) == mine, step
        if self.followers is None:
            self.followers = Followers(LocalStorage(self.path), f"memory://{uuid.uuid4().hex}")
        self.followers.check()
        assert rows_of(HoodieTable(self.followers.quick).scan(meta_columns=True).to_arrow()) == rows_of(
            hoodie.open_table(self.path).scan(meta_columns=True).to_arrow()
        ), f"{step}; followed"

    def properties(self):
        return (self.path / PROPERTIES).read_text()
