"""Results as users get them."""

from __future__ import annotations

from hoodie.model.enums import WriteOperation
from hoodie.model.instant import InstantTime
from hoodie.model.results import ArchiveResult, CommitResult

T = "20261121075818449"


def test_instants_of_results_are_plain_texts():
    commit = CommitResult.of(InstantTime(T), WriteOperation.UPSERT, [], completed=InstantTime(T))
    archived = ArchiveResult((InstantTime(T),), earliest=InstantTime(T))
    for found in (commit.instant, commit.completed, commit.position, *archived.instants, archived.earliest):
        assert type(found) is str
        assert found == T
