"""The bucket rules of a table as they are now."""

from __future__ import annotations

from dataclasses import replace

from hoodie.format.bucket_rules import CONFIGS, SUFFIX, format_rules, parse_rules, rules_path
from hoodie.model.buckets import BucketLayout
from hoodie.model.enums import Action
from hoodie.model.instant import InstantTime
from hoodie.storage.base import Storage
from hoodie.timeline.timeline import Timeline


def ruled(storage: Storage, timeline: Timeline, layout: BucketLayout) -> BucketLayout:
    """The layout with the rules of now, and the number of buckets where none applies; as it is where there are none.

    Raises:
        CorruptFileError, UnsupportedTableError: as `parse_rules`.
    """
    pending = {each.time for each in timeline.pending(Action.REPLACECOMMIT, Action.CLUSTERING)}
    names = [name.removesuffix(SUFFIX) for name in storage.names(CONFIGS) if name.endswith(SUFFIX)]
    counting = [name for name in names if name not in pending]
    if not counting:
        return layout
    path = rules_path(InstantTime(max(counting)))
    rules, count = parse_rules(storage.read(path), path=f"{storage.uri}/{path}")
    return replace(layout, rules=rules, count=count)


def keep_rules(storage: Storage, layout: BucketLayout) -> None:
    """Write the rules that a table is made with, where Apache Hudi looks for them."""
    if layout.rules is not None and not storage.names(CONFIGS):
        storage.replace(rules_path(layout.rules.instant), format_rules(layout.rules, layout.count))
