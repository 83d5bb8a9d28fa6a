"""The hash of a timeline is over time, action and state of each instant; integration/test_timeline_hash.py asks Apache Hudi."""

import hashlib

from hoodie.format.layout import V8
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.timeline.timeline import Timeline, completed_and_compactions, timeline_hash

INSTANTS = (
    Instant("20261125000000001", Action.DELTACOMMIT, State.COMPLETED),
    Instant("20261125000000002", Action.COMPACTION, State.REQUESTED),
    Instant("20261125000000003", Action.CLUSTERING, State.INFLIGHT),
)


def test_texts_of_the_instants_are_hashed_one_after_the_other():
    text = (
        "20261125000000001_deltacommit_COMPLETED"
        "20261125000000002_compaction_REQUESTED"
        "20261125000000003_replacecommit_INFLIGHT"
    )
    assert timeline_hash(INSTANTS) == hashlib.sha256(text.encode()).hexdigest()


def test_a_clustering_has_an_action_of_its_own_where_its_files_have():
    text = "20261125000000003_clustering_INFLIGHT"
    assert timeline_hash(INSTANTS[2:], V8) == hashlib.sha256(text.encode()).hexdigest()


def test_views_take_what_is_completed_and_pending_compactions():
    assert completed_and_compactions(Timeline(INSTANTS)) == INSTANTS[:2]
