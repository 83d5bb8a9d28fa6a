"""What is said of pending instants."""

import pytest

from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant
from hoodie.timeline.pending import explain_pending

T = "20260101120000000"


@pytest.mark.parametrize(
    ("action", "state", "said"),
    [
        (Action.DELTACOMMIT, State.INFLIGHT, "if its writer died, the next write undoes it"),
        (Action.REPLACECOMMIT, State.REQUESTED, "if its writer died, the next write undoes it"),
        (Action.ROLLBACK, State.REQUESTED, "the next write finishes it"),
        (Action.COMPACTION, State.REQUESTED, "`hoodie compaction run PATH` runs it"),
        (Action.COMPACTION, State.INFLIGHT, "being run; if its runner died, `hoodie compaction run PATH`"),
        (Action.CLEAN, State.INFLIGHT, "`hoodie clean PATH`, finishes it"),
        (Action.SAVEPOINT, State.INFLIGHT, "an unfinished savepoint"),
    ],
)
def test_a_pending_instant_is_explained_with_what_becomes_of_it(action, state, said):
    assert said in explain_pending(Instant(T, action, state), table="PATH")
