"""Cleans and archiving leave what a consumer of the change feed has not read, for as long as the bound says, and no longer."""

import pytest

from hoodie.errors import InstantNotFoundError
from hoodie.services.consumer_needs import needed_by_consumers
from tests.change_feed import apply, by_key
from tests.memory_tables import Input, batch, new_table, opened

HOURS = 3600.0
KINDS = ["COPY_ON_WRITE", "MERGE_ON_READ"]
POLICIES = {
    "commits": {"retain_commits": 1},
    "hours": {"retain_hours": 1},
    "versions": {"retain_versions": 1},
}


class Setting:
    def __init__(self, kind, options=None, *, more=None):
        self.storage, self.clock = new_table(table_type=kind, more=more)
        self.options = options or {}

    @property
    def table(self):
        return opened(self.storage, self.clock, self.options)

    def write(self, turns, *, every_s=60.0):
        """Commits that all change the same two rows."""
        for _ in range(turns):
            self.clock.now_s += every_s
            now = int(self.clock.now_s)
            self.table.upsert(batch([Input("a", "p", now, now), Input("b", "q", now, now)]))

    def compact(self):
        if self.table.config.table_type == "MERGE_ON_READ":
            self.table.compact()

    def begin(self, name="feed", **more):
        """A consumer of the change feed that has read all there is."""
        with self.table.consumer(name, **more) as consumer:
            consumer.changes(images="before_after").to_arrow()
        return self.table.consumer(name).position

    def catches_up(self, since):
        """Whether the consumer's feed since a position, from the rows of then, gives the rows of now."""
        rows = dict(since)
        with self.table.consumer("feed") as consumer:
            apply(consumer.changes(images="before_after").to_arrow().to_pylist(), rows, lambda row: row["id"])
        return rows == self.rows()

    def rows(self):
        return by_key(self.table.scan().to_arrow().to_pylist(), lambda row: row["id"])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_keeps_what_a_consumer_has_not_read(kind, policy):
    setting = Setting(kind)
    setting.write(3)
    setting.compact()
    place, rows = setting.begin(), setting.rows()
    for _ in range(4):
        setting.write(3, every_s=HOURS)
        setting.compact()
        setting.table.clean(**POLICIES[policy])
    assert setting.table.scan(as_of=place).to_arrow().num_rows == 2
    assert setting.catches_up(rows)
    # Read, nothing holds the files any more.
    result = setting.table.clean(**POLICIES[policy])
    assert result.files > 0
    with pytest.raises(InstantNotFoundError, match="cleaned"):
        setting.table.scan(as_of=place)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_consumer_has_what_was_there_before_a_compaction_of_an_earlier_instant(policy):
    setting = Setting("MERGE_ON_READ", more={"hoodie.write.table.version": "9"})
    setting.write(2)
    setting.table.schedule_compaction()
    setting.write(1)
    setting.begin()
    rows = setting.rows()
    setting.write(1)
    setting.table.run_compaction()
    for _ in range(2):
        setting.write(2)
        setting.table.clean(**POLICIES[policy])
    assert setting.catches_up(rows)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("kind", KINDS)
def test_beyond_the_bound_the_files_go_and_the_consumer_is_told(kind, policy):
    setting = Setting(kind)
    setting.write(2)
    setting.compact()
    place = setting.begin()
    setting.write(4, every_s=HOURS)
    setting.compact()
    setting.clock.now_s += 48 * HOURS
    setting.write(1)
    setting.compact()
    assert setting.table.clean(**POLICIES[policy]).files > 0
    consumer = setting.table.consumer("feed")
    assert consumer.lag().seconds > 48 * HOURS
    with pytest.raises(InstantNotFoundError) as error:
        consumer.changes(images="before_after")
    for part in ("consumer 'feed' stands at", place, "cleaned", "the earliest instant to read changes since", "seek("):
        assert part in str(error.value)
    # The latest state needs no old file, and the rest of the feed is there again after a seek.
    assert consumer.changes().count() == 2
    consumer.seek("latest")
    rows = setting.rows()
    setting.write(1)
    assert setting.catches_up(rows)


def test_a_bound_of_nothing_keeps_nothing():
    setting = Setting("COPY_ON_WRITE", {"hoodie.python.consumer.hours.retained": "0"})
    setting.write(2)
    setting.begin()
    setting.write(3)
    assert setting.table.clean(retain_commits=1).files > 0
    with pytest.raises(InstantNotFoundError, match="seek"):
        setting.table.consumer("feed").changes(images="before_after")


def test_who_reads_the_latest_state_holds_nothing_and_loses_nothing():
    setting = Setting("COPY_ON_WRITE")
    setting.write(2)
    with setting.table.consumer("pull") as consumer:
        consumer.changes().to_arrow()
    setting.write(6)
    assert setting.table.clean(retain_commits=1).files > 0
    assert len(setting.table.archive(min_commits=1).instants) > 0
    with setting.table.consumer("pull") as consumer:
        assert consumer.changes().count() == 2


@pytest.mark.parametrize("kind", KINDS)
def test_archiving_leaves_the_commits_that_a_consumer_has_not_read(kind):
    options = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    setting = Setting(kind, options)
    setting.write(3)
    place, rows = setting.begin(), setting.rows()
    setting.write(6)
    result = setting.table.archive(min_commits=2)
    assert "consumer 'feed'" in result.held_by
    assert setting.table.timeline.commits[0].time == place
    assert setting.catches_up(rows)
    assert len(setting.table.archive(min_commits=2).instants) > 0


def test_what_is_gone_already_holds_up_no_clean():
    """A consumer that was put back to before a clean cannot be helped, so it keeps nothing."""
    setting = Setting("COPY_ON_WRITE")
    setting.write(6)
    setting.begin()
    assert setting.table.clean(retain_commits=1).files > 0
    setting.table.consumer("feed").seek("earliest")
    setting.write(2)
    assert setting.table.clean(retain_commits=1).files > 0


def test_the_neediest_consumer_counts():
    setting = Setting("COPY_ON_WRITE")
    setting.write(1)
    first = setting.begin("slow")
    setting.write(1)
    setting.begin("quick")
    setting.write(1)
    context = setting.table._context
    timeline = setting.table.timeline
    assert needed_by_consumers(context, timeline, hours=48) == (first, "slow")
    assert needed_by_consumers(context, timeline, hours=0) is None
    later = timeline.commits[-1].time
    assert needed_by_consumers(context, timeline, hours=48, readable_from=later) is None


def test_a_damaged_file_of_a_consumer_stops_no_clean(caplog):
    setting = Setting("COPY_ON_WRITE")
    setting.write(2)
    setting.begin()
    setting.storage.replace(".hoodie/.hoodie_py/consumers/feed.json", b"{")
    setting.write(3)
    assert setting.table.clean(retain_commits=1).files > 0
    assert "does not say where consumer 'feed' stands" in caplog.text
