"""The suites of writes, reads and services with their tables on a real S3 server and on HDFS: a sample.

HOODIE_SOAK=1 runs them all, the random ones among them as long as `make integration` does: longer ones are in
`test_suites_on_servers.py`.
"""

import pytest

from integration.on_servers import SERVERS, run, where
from tests.effort import SOAK

# Tests of transactions and of writers at once take hold of calls that a store without renames does not get. In memory they run
# for such a store, too (`tests/bucket.py`); on the servers `test_many_writers.py` tries the same by many processes.
SUITES = (
    "tests/write",
    "tests/read",
    "tests/services",
    "tests/undo",
    "tests/repair",
    "tests/index",
    "tests/test_incremental_ranges.py",
)
SAMPLE = ("tests/write/test_operations.py", "tests/read/test_changes.py")
SOME = "MERGE_ON_READ and (overwrite or deleted)"


@pytest.mark.parametrize("server", SERVERS)
def test_operations_do_there_what_they_do_in_memory(server: str, request: pytest.FixtureRequest) -> None:
    as_integration = {"HOODIE_SOAK": ""}  # histories of 18,000 steps for each kind of table take days on a server
    ran = run(request, where(server, request) | as_integration, SUITES if SOAK else [*SAMPLE, "-k", SOME])
    assert ran.tests >= (300 if SOAK else 8)
