"""Tables of versions 8 and 9 as Apache Hudi writes them by its defaults: we read every view of them as it does.

Its defaults here are those of its users, not those of the other tests: clean and archival, record positions in log blocks,
upgrades. Its metadata table costs most of a minute a table and is on in one test. What it refuses to read because files are
gone, we refuse as well.
"""

import itertools
import shutil

import pyarrow as pa
import pytest

import hoodie
from hoodie.errors import InstantNotFoundError
from integration.hudi_client import PeerError, read_options
from tests.rows import rows_of

BEGINNING = "000"
DEFAULTS = {
    "hoodie.clean.automatic": "true",
    "hoodie.archive.automatic": "true",
    "hoodie.write.table.version": "9",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "part",
    "hoodie.datasource.write.precombine.field": "ts",
}
# Hudi's own default for these versions is to read the newest files where those of the range are gone; then it has other rows.
NO_FALLBACK = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false"}


def rows(numbers, ts, part=None):
    numbers = list(numbers)
    return pa.table(
        {
            "id": [f"k{number:03d}" for number in numbers],
            "val": pa.array([number * 100 + ts for number in numbers], pa.int64()),
            "ts": pa.array([ts] * len(numbers), pa.int64()),
            "part": [part or "abc"[number % 3] for number in numbers],
        }
    )


class Story:
    """One table that Apache Hudi writes."""

    def __init__(self, hudi, path, kind, **options):
        self.hudi = hudi
        self.path = path
        self.options = DEFAULTS | {"hoodie.table.name": path.name, "hoodie.datasource.write.table.type": kind}
        self.options |= {key.replace("__", "."): value for key, value in options.items()}
        self.begun = False

    def write(self, operation, data, **options):
        more = {key.replace("__", "."): value for key, value in options.items()}
        more["hoodie.datasource.write.operation"] = operation
        self.hudi.write(self.path, data, self.options | more, mode="append" if self.begun else "overwrite")
        self.begun = True

    def check(self):
        """Compare all views; gives how many of them Hudi answered."""
        table = hoodie.open_table(self.path)
        commits = table.timeline.commits
        ends = [BEGINNING, *sorted(commit.position for commit in commits)]
        asked = [
            {},
            {"query_type": "read_optimized"},
            *({"as_of": commit.time} for commit in commits),
            *({"query_type": "incremental", "begin": b, "end": e} for b, e in itertools.combinations(ends, 2)),
        ]
        answers = self.hudi.read_many(self.path, [read_options(**each) | NO_FALLBACK for each in asked])
        for question, answer in zip(asked, answers, strict=True):
            if isinstance(answer, PeerError):
                with pytest.raises(InstantNotFoundError, match=r"were cleaned|archived"):
                    scan_of(table, question).to_arrow()
            else:
                assert rows_of(scan_of(table, question).to_arrow()) == rows_of(answer), question
        return sum(not isinstance(answer, PeerError) for answer in answers)


def scan_of(table, question):
    if question.get("query_type") == "incremental":
        return table.changes(since=question["begin"], until=question["end"], meta_columns=True)
    return table.scan(query=question.get("query_type", "snapshot"), as_of=question.get("as_of"), meta_columns=True)


def version_of(path):
    return int(hoodie.open_table(path).config.version)


@pytest.mark.parametrize(("version", "kind"), [("9", "COPY_ON_WRITE"), ("8", "MERGE_ON_READ")])
def test_every_operation(hudi, tmp_path, version, kind):
    story = Story(hudi, tmp_path / "t", kind, hoodie__write__table__version=version)
    story.write("insert", rows(range(12), 1))
    story.write("upsert", rows([0, 1, 3, 20, 21], 2))
    story.write("delete", rows([3, 5], 3))
    story.write("insert_overwrite", rows(range(30, 33), 4, "a"))
    story.write("upsert", rows([1, 4], 5))
    story.write("delete_partition", rows([2], 6), hoodie__datasource__write__partitions__to__delete="c")
    assert version_of(story.path) == int(version)
    assert story.check() >= 25


def test_beside_its_metadata_table(hudi, tmp_path):
    story = Story(hudi, tmp_path / "t", "MERGE_ON_READ", hoodie__metadata__enable="true")
    story.write("insert", rows(range(6), 1))
    story.write("upsert", rows([0, 1, 7], 2))
    assert (story.path / ".hoodie" / "metadata").is_dir()
    assert story.check() >= 7


def test_compaction_pending_failed_writes_and_compaction_done(hudi, tmp_path):
    story = Story(hudi, tmp_path / "t", "MERGE_ON_READ")
    compaction = {"hoodie.compact.inline.max.delta.commits": "1"}
    story.write("insert", rows(range(6), 1))
    story.write("upsert", rows([0, 1, 2], 2))
    hudi.run_compaction(story.path, op="schedule", options=compaction)
    story.write("upsert", rows([1, 3], 3))
    assert hoodie.open_table(story.path).pending_compactions()
    assert story.check() >= 10

    timeline = story.path / ".hoodie" / "timeline"
    newest = max(timeline.glob("*.deltacommit"))
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink(missing_ok=True)
    assert hoodie.open_table(story.path).timeline.pending_writes
    assert story.check() >= 6

    story.write("upsert", rows([0, 4], 4))
    assert list(timeline.glob("*.rollback"))
    hudi.run_compaction(story.path, op="run", options=compaction)
    assert not hoodie.open_table(story.path).pending_compactions()
    story.write("delete", rows([4], 5))
    assert story.check() >= 20


def test_clustering(hudi, tmp_path):
    story = Story(
        hudi,
        tmp_path / "t",
        "COPY_ON_WRITE",
        hoodie__clustering__inline="true",
        hoodie__clustering__inline__max__commits="2",
        hoodie__clustering__plan__strategy__sort__columns="val",
    )
    story.write("insert", rows(range(6), 1))
    story.write("insert", rows(range(10, 13), 2))
    story.write("upsert", rows([0, 11], 3))
    assert list((story.path / ".hoodie" / "timeline").glob("*.replacecommit"))
    assert story.check() >= 12


def test_clean_and_archival(hudi, tmp_path):
    """Ranges from before the archive's end are ours to get right: Hudi leaves rows of archived commits out of them."""
    story = Story(
        hudi,
        tmp_path / "t",
        "COPY_ON_WRITE",
        hoodie__clean__commits__retained="1",
        hoodie__keep__min__commits="2",
        hoodie__keep__max__commits="3",
    )
    for ts in range(1, 7):
        story.write("upsert", rows([ts, ts + 1, ts + 20], ts, "a"))
    table = hoodie.open_table(story.path)
    archived = [
        each
        for each in table.history(archived=True)
        if each.position not in {c.position for c in table.timeline.commits}
    ]
    assert archived
    ends = sorted(commit.position for commit in table.timeline.commits)
    state = rows_of(table.scan(meta_columns=True).to_arrow())
    assert rows_of(hudi.read(story.path).table) == state
    assert rows_of(table.changes(meta_columns=True).to_arrow()) == state
    for begin, end in itertools.combinations(ends, 2):
        question = {"query_type": "incremental", "begin": begin, "end": end}
        (answer,) = hudi.read_many(story.path, [read_options(**question) | NO_FALLBACK])
        if isinstance(answer, PeerError):
            with pytest.raises(InstantNotFoundError, match="were cleaned"):
                scan_of(table, question)
        else:
            assert rows_of(scan_of(table, question).to_arrow()) == rows_of(answer)
    since = archived[-2].position
    committed = {each.instant for each in table.history(archived=True) if each.position > since}
    for fallback in (False, True):  # the archive says which rows came since
        found = table.changes(since=since, full_scan_fallback=fallback, meta_columns=True).to_arrow()
        assert rows_of(found) == [row for row in state if row["_hoodie_commit_time"] in committed]


def test_a_table_that_hudi_upgrades_from_version_6_reads_as_before(hudi, tmp_path):
    path = tmp_path / "t"
    schema = rows([0], 0).schema
    table = hoodie.create_table(
        path, schema, record_key="id", partition_by="part", ordering="ts", table_type="MERGE_ON_READ"
    )
    for ts in range(1, 4):
        table.upsert(rows(range(ts, ts + 4), ts))
    before = table.scan().to_arrow().sort_by("id")
    old = shutil.copytree(path, tmp_path / "old")
    story = Story(hudi, path, "MERGE_ON_READ")
    story.begun = True
    story.write("upsert", rows([50], 9), hoodie__write__auto__upgrade="true")
    assert version_of(path) == 9
    now = hoodie.open_table(path).scan().to_arrow().sort_by("id")
    assert now.filter(pa.compute.not_equal(now["id"], "k050")) == before
    assert rows_of(hudi.read(path).table) == rows_of(hoodie.open_table(path).scan(meta_columns=True).to_arrow())
    assert hoodie.open_table(old).scan().to_arrow().sort_by("id") == before
    for act in (lambda: table.upsert(rows([1], 10)), lambda: table.scan().count()):
        with pytest.raises(hoodie.TableChangedError, match="of version 6 when it was opened, and is of version 9 now"):
            act()
    hoodie.open_table(path).upsert(rows([1], 10))
    assert version_of(path) == 9
    assert rows_of(hudi.read(path).table) == rows_of(hoodie.open_table(path).scan(meta_columns=True).to_arrow())
