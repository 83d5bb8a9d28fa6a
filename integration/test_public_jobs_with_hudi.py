"""Public jobs by us and by Apache Hudi: the two tables have the same rows, keys and folders, and each reads the other's."""

import pytest

from integration.job_runs import compared, compared_later
from tests.effort import SOAK
from tests.public_jobs import public_jobs

JOBS = {job.name: job for job in public_jobs() if not job.refused}
FEW = (
    "quick start 0.8, delete",
    "quick start 1.2, insert overwrite",
    "quick start 1.0, without a record key",
    "notebook, create and update",
)
"""What `make integration` runs in the session that is there: some three seconds each. `make soak` runs all."""

LATER = "notebook, merge on read"
"""Of more writes by both, each read by both: some ten seconds."""


@pytest.mark.parametrize("names", [(name,) for name in JOBS] if SOAK else [FEW], ids=lambda names: names[0])
def test_jobs_make_what_apache_hudi_makes_of_their_options(hudi, tmp_path, names):
    found = {name: compared(hudi, JOBS[name], tmp_path / str(number)) for number, name in enumerate(names)}
    surprising = {name: lines for name, lines in found.items() if bool(lines) != bool(JOBS[name].differs)}
    assert surprising == {}


@pytest.mark.parametrize("name", [*JOBS] if SOAK else [LATER])
def test_both_read_and_write_on_what_became_of_the_tables(hudi, tmp_path, name):
    lines = compared_later(hudi, JOBS[name], tmp_path)
    assert not lines or JOBS[name].differs, lines
