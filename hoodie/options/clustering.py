"""How rows are put in order, and small files together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from hoodie.errors import OptionError
from hoodie.model.enums import PartitionFilter, RowOrder, UpdateStrategy
from hoodie.options.option import Keys, combined, first_set, fixed, key, option, option_name
from hoodie.options.values import boolean, choice, fields, one_of, paths, positive, regex, text, whole

NO_LIMIT = 2**63 - 1
_CLUSTERING = "hoodie.clustering.plan.strategy."
_UPDATES = "org.apache.hudi.client.clustering.update.strategy."
_STRATEGY = "org.apache.hudi.client.clustering."
_PLANS = {
    f"{_STRATEGY}plan.strategy.{engine}{name}ClusteringPlanStrategy": mode
    for name, mode in {
        "SizeBased": None,
        "RecentDays": PartitionFilter.RECENT_DAYS,
        "SelectedPartitions": PartitionFilter.SELECTED_PARTITIONS,
    }.items()
    for engine in ("Spark", "Java")
} | {f"{_STRATEGY}plan.strategy.SparkConsistentBucketClusteringPlanStrategy": None}
_OTHER_PLANS = [
    f"{_STRATEGY}plan.strategy.{name}"
    for name in (
        "SparkSingleFileSortPlanStrategy",
        *("FlinkSizeBasedClusteringPlanStrategy", "SparkStreamCopyClusteringPlanStrategy"),
    )
]
_FILTER = key(
    "hoodie.clustering.plan.partition.filter.mode", one_of(PartitionFilter, unsupported=("DAY_ROLLING",)), "NONE"
)
"""Which partitions are clustered: all, the last ones by their names, or those between two names."""
_PLAN = key("hoodie.clustering.plan.strategy.class", choice(_PLANS, unsupported=_OTHER_PLANS), None)
"""How files are chosen: small files of a partition together, up to a size. RecentDays and SelectedPartitions are older
names of the filter modes of partitions."""


@dataclass(frozen=True)
class ClusteringOptions:
    inline: bool = option("hoodie.clustering.inline", boolean(), False)
    """Cluster after a write when it is due: schedule a plan and run it."""
    inline_commits: int = option("hoodie.clustering.inline.max.commits", whole(1), 4)
    """Commits since the last clustering after which one is due, with `hoodie.clustering.inline`."""
    in_background: bool = option("hoodie.clustering.async.enabled", boolean(), False)
    """Cluster in a thread of the writing process, which does not wait for it."""
    background_commits: int = option("hoodie.clustering.async.max.commits", whole(1), 4)
    """The same number of commits for clusterings in a thread, and for those that are only scheduled."""
    schedules: bool = option("hoodie.clustering.schedule.inline", boolean(), False)
    """Only schedule clusterings after writes, and leave it to others to run them."""
    sort_columns: tuple[str, ...] = option(f"{_CLUSTERING}sort.columns", fields(), "")
    """Columns to sort rows by. Unset: small files are merged as they are."""
    layout: RowOrder = option(
        "hoodie.layout.optimize.strategy",
        choice(
            {
                "linear": RowOrder.LINEAR,
                "z-order": RowOrder.ZORDER,
                "zorder": RowOrder.ZORDER,
                "hilbert": RowOrder.HILBERT,
            }
        ),
        "linear",
    )
    """How rows are sorted by several columns: one after the other, or along a curve that serves filters on each of them."""
    target_bytes: int = option(f"{_CLUSTERING}target.file.max.bytes", whole(1), 1024**3)
    """Bytes of the new base files, about."""
    small_file_limit: int | None = option(f"{_CLUSTERING}small.file.limit", whole(0), None)
    """Bytes; larger base files are left as they are. Unset: 314572800, and no limit for `cluster()` that sorts."""
    max_group_bytes: int | None = option(f"{_CLUSTERING}max.bytes.per.group", whole(1), None)
    """Bytes of files of one partition that are sorted together. Unset: 2147483648, and no limit for `cluster()` that
    sorts."""
    max_groups: int | None = option(f"{_CLUSTERING}max.num.groups", whole(1), None)
    """Groups of files of one plan. Unset: 30, and no limit for `cluster()`."""
    single_files: bool = option(f"{_CLUSTERING}single.group.clustering.enabled", boolean(), True)
    """Also plan a group of one file, where rows are sorted or logs merged by that."""
    partition_filter: PartitionFilter = combined(first_set, _PLAN, _FILTER)
    regex: str | None = option(f"{_CLUSTERING}partition.regex.pattern", regex(), None)
    """Only partitions whose whole path fits this regular expression. Unset: all."""
    selected: tuple[str, ...] = option(f"{_CLUSTERING}partition.selected", paths(), "")
    """Only these partitions. Unset: all."""
    begin: str | None = option(f"{_CLUSTERING}cluster.begin.partition", text("a partition path"), None)
    """With SELECTED_PARTITIONS: the first one."""
    end: str | None = option(f"{_CLUSTERING}cluster.end.partition", text("a partition path"), None)
    """With SELECTED_PARTITIONS: the last one."""
    lookback: int = option(f"{_CLUSTERING}daybased.lookback.partitions", whole(0), 2)
    """With RECENT_DAYS: so many partitions; 0: all."""
    skip: int = option(f"{_CLUSTERING}daybased.skipfromlatest.partitions", whole(0), 0)
    """With RECENT_DAYS: so many of the last are left out."""
    updates: UpdateStrategy = option(
        "hoodie.clustering.updates.strategy",
        choice(
            {
                f"{_UPDATES}SparkRejectUpdateStrategy": UpdateStrategy.REJECT,
                f"{_UPDATES}SparkAllowUpdateStrategy": UpdateStrategy.ALLOW,
                "reject": UpdateStrategy.REJECT,
                "allow": UpdateStrategy.ALLOW,
            },
            unsupported=(f"{_UPDATES}SparkConsistentBucketDuplicateUpdateStrategy",),
        ),
        "reject",
    )
    """A write that changes a file group of a pending clustering is refused, or it goes first and the clustering fails."""
    split_threshold: float = option("hoodie.bucket.index.split.threshold", positive(), 2.0)
    """Consistent buckets: one is split that is larger than so many times `hoodie.parquet.max.file.size`."""
    merge_threshold: float = option("hoodie.bucket.index.merge.threshold", positive(), 0.2)
    """Consistent buckets: neighbours are merged that are smaller than so many times `hoodie.parquet.max.file.size`."""
    most_buckets: int | None = option("hoodie.bucket.index.max.num.buckets", whole(1), None)
    """Consistent buckets: none of a partition with so many is split. Unset: `hoodie.bucket.index.num.buckets`."""
    least_buckets: int | None = option("hoodie.bucket.index.min.num.buckets", whole(1), None)
    """Consistent buckets: none of a partition with so many are merged. Unset: `hoodie.bucket.index.num.buckets`."""
    whole: bool = False
    """It was asked for by hand: limits that were not said do not count. Else those of Apache Hudi do."""
    partitions: frozenset[str] | None = None
    """Only these, by a condition; None: all."""

    OTHERS: ClassVar[Keys] = (
        key(
            "hoodie.clustering.execution.strategy.class",
            one_of(
                [
                    f"{_STRATEGY}run.strategy.{name}"
                    for name in (
                        *("SparkSortAndSizeExecutionStrategy", "JavaSortAndSizeExecutionStrategy"),
                        "SparkConsistentBucketClusteringExecutionStrategy",
                        "SingleSparkJobConsistentHashingExecutionStrategy",
                    )
                ],
                unsupported=(
                    f"{_STRATEGY}run.strategy.{name}"
                    for name in (
                        "SparkSingleFileSortExecutionStrategy",
                        *("SparkStreamCopyClusteringExecutionStrategy", "SparkBinaryCopyClusteringExecutionStrategy"),
                    )
                ),
            ),
            f"{_STRATEGY}run.strategy.SparkSortAndSizeExecutionStrategy",
            "How rows are clustered: sorted, and cut into files of a size; those of consistent buckets by the hash of their key.",
        ),
        fixed(
            f"{_CLUSTERING}file.slices.sort.by",
            "SIZE",
            "the largest files of a partition are taken first",
            "Which files of a partition are taken together.",
        ),
        fixed(
            "hoodie.clustering.preserve.commit.metadata",
            "true",
            "clustered rows keep their commit times, or every incremental query would show them again",
            "Rows keep their commit times and sequence numbers.",
        ),
        fixed(
            "hoodie.clustering.rollback.pending.replacecommit.on.conflict",
            "false",
            "a write that is allowed beside a pending clustering leaves its plan, which is dropped when it is run",
            "Drop a pending clustering whose file groups a write changes.",
        ),
    )

    def check(self) -> None:
        """Refuse options that contradict each other."""
        mode = self.partition_filter
        if mode is PartitionFilter.SELECTED_PARTITIONS and (self.begin is None or self.end is None):
            begin, end = (option_name(ClusteringOptions, each) for each in ("begin", "end"))
            raise OptionError(f"{_FILTER.name}={mode.value} needs {begin} and {end}")

    @property
    def small_file_bytes(self) -> int:
        """Base files below this size are taken."""
        unsaid = NO_LIMIT if self.whole and self.sort_columns else 300 * 1024**2
        return unsaid if self.small_file_limit is None else self.small_file_limit

    @property
    def group_bytes(self) -> int:
        """One order goes over so much of a partition."""
        unsaid = NO_LIMIT if self.whole and self.sort_columns else 2 * 1024**3
        return unsaid if self.max_group_bytes is None else self.max_group_bytes

    @property
    def groups(self) -> int:
        """So many are in one plan, at most."""
        return (NO_LIMIT if self.whole else 30) if self.max_groups is None else self.max_groups
