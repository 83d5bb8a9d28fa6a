"""Actions stopped at every storage call, on a real S3 server and on HDFS: a sample; with HOODIE_SOAK=1 the whole of both files."""

import pytest

from integration.on_servers import SERVERS, run, where
from tests.effort import SOAK

EVERY_STEP = "tests/crash/test_every_step.py"
INTERRUPTS = "tests/crash/test_interrupts.py"


@pytest.mark.parametrize("server", SERVERS)
def test_a_crash_or_an_error_at_any_step_leaves_the_old_or_the_new_table(
    server: str, request: pytest.FixtureRequest
) -> None:
    sample = "(after_a_crash or io_error) and (merge-on-read or rollback) and not newest"
    ran = run(request, where(server, request), [EVERY_STEP, *([] if SOAK else ["-k", sample])], every=1 if SOAK else 12)
    assert ran.places > (2000 if SOAK else 8)


@pytest.mark.parametrize("server", SERVERS)
def test_an_interrupt_at_any_call_leaves_the_old_or_the_new_table_and_nothing_held(
    server: str, request: pytest.FixtureRequest
) -> None:
    sample = "any_storage_call and compaction and KeyboardInterrupt"
    ran = run(request, where(server, request), [INTERRUPTS, *([] if SOAK else ["-k", sample])], every=1 if SOAK else 4)
    assert ran.places > (1000 if SOAK else 3)
