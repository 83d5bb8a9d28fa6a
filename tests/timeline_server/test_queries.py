"""What Apache Hudi's methods give of a table that waits for a compaction, by its version."""

import pytest

import hoodie
from hoodie.format.plan_avro import encode_compaction_plan
from hoodie.model.payloads import CompactionOperation, CompactionPlan
from hoodie.timeline_server.queries import Questions

SCHEDULED, LATER = "20301121000000000", "9" * 17


@pytest.mark.parametrize(("name", "gives_empty"), [("v6_mor_logs", False), ("v9_mor", True)])
def test_a_slice_that_a_compaction_is_going_to_write_is_given_empty_in_newer_versions_only(golden, name, gives_empty):
    context = hoodie.open_table(golden(name).path)._context
    before = next(each for each in context.snapshot().view.latest_slices() if each.logs)
    operation = CompactionOperation(
        *before.group,
        before.base_instant,
        before.base.name if before.base else None,
        tuple(log.name for log in before.logs),
    )
    path = f"{context.config.timeline_folder}/{SCHEDULED}.compaction.requested"
    context.storage.create_new(path, encode_compaction_plan(CompactionPlan((operation,))))
    questions = Questions(context.snapshot().view, context.active)
    partition, file_id = before.group

    def given(time, *, with_compactions=True):
        found = questions.before_or_on(partition, time, with_compactions=with_compactions)
        return [(each.base_instant, bool(each.base or each.logs)) for each in found if each.group.file_id == file_id]

    assert given(LATER) == ([(SCHEDULED, False)] if gives_empty else [(before.base_instant, True)])
    assert given(before.base_instant) == [(before.base_instant, True)]
    assert given(LATER, with_compactions=False) == []
