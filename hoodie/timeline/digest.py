"""What Apache Hudi's timeline server and its clients tell each other about where they stand: the last instant, and a hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from hoodie.format.layout import V6, Layout
from hoodie.model.enums import Action
from hoodie.model.instant import Instant
from hoodie.timeline.timeline import Timeline

_COMPACTIONS = (Action.COMPACTION, Action.LOGCOMPACTION)


def timeline_hash(instants: Iterable[Instant], layout: Layout = V6) -> str:
    """`HoodieTimeline.getTimelineHash` of these instants, in their order: SHA-256 over time, action and state of each."""
    digest = hashlib.sha256()
    for instant in instants:
        digest.update(f"{instant.time}_{layout.action_in_names(instant)}_{instant.state.value.upper()}".encode())
    return digest.hexdigest()


def completed_and_compactions(timeline: Timeline) -> tuple[Instant, ...]:
    """The instants of a timeline as Apache Hudi's views take it: what is completed, and pending compactions."""
    return tuple(i for i in timeline if i.is_completed or i.action in _COMPACTIONS)
