"""What Apache Hudi's timeline server and its clients tell each other about where they stand: the last instant, and a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hoodie.model.enums import Action
from hoodie.model.instant import Instant
from hoodie.timeline.timeline import Timeline

_COMPACTIONS = (Action.COMPACTION, Action.LOGCOMPACTION)


def timeline_hash(instants: Iterable[Instant], *, by_completion: bool = False) -> str:
    """`HoodieTimeline.getTimelineHash` of these instants, in their order: SHA-256 over time, action and state of each."""
    digest = hashlib.sha256()
    for instant in instants:
        # On version 6 the name of a clustering's file is that of any replacecommit, and Apache Hudi goes by that.
        renamed = instant.action is Action.CLUSTERING and not by_completion
        action = Action.REPLACECOMMIT if renamed else instant.action
        digest.update(f"{instant.time}_{action}_{instant.state.value.upper()}".encode())
    return digest.hexdigest()


def completed_and_compactions(timeline: Timeline) -> tuple[Instant, ...]:
    """The instants of a timeline as Apache Hudi's views take it: what is completed, and pending compactions."""
    return tuple(i for i in timeline if i.is_completed or i.action in _COMPACTIONS)
