"""Jobs that people published run with the options that they have, or one error says all that stops them."""

import pytest

import hoodie
from hoodie.errors import OptionError, UnsupportedTableError
from hoodie.options.parse import parse_write_options
from tests.public_jobs import in_order, public_jobs

JOBS = public_jobs()


@pytest.mark.parametrize("job", [job for job in JOBS if not (job.refused or job.server)], ids=lambda job: job.name)
def test_a_public_job_writes_what_it_means(tmp_path, job):
    first, second = job.rows()
    load = "upsert" if job.operation not in ("insert", "bulk_insert") else job.operation
    table = hoodie.create_table(tmp_path / "t", first, record_key=list(job.keys), options=job.load_options)
    table.write(first, load, job.load_options)
    table.write(second, job.operation, job.options)
    assert in_order(table.scan().to_arrow().to_pylist()) == in_order(job.expected())


@pytest.mark.parametrize("job", [job for job in JOBS if job.server], ids=lambda job: job.name)
def test_a_public_job_with_a_server_is_understood(job):
    assert parse_write_options(job.options).write.concurrency.lock_provider


@pytest.mark.parametrize("job", [job for job in JOBS if job.refused], ids=lambda job: job.name)
def test_a_public_job_that_is_refused_learns_why_in_one_error(job):
    with pytest.raises((OptionError, UnsupportedTableError), match=job.refused):
        parse_write_options(job.options)


@pytest.mark.parametrize("job", [job for job in JOBS if job.misspelled], ids=lambda job: job.name)
def test_a_public_job_with_misspelled_options_learns_of_all_of_them(job):
    with pytest.raises(OptionError) as caught:
        parse_write_options({**job.options, **job.misspelled})
    assert all(f"unknown option '{name}'. did you mean 'hoodie." in str(caught.value) for name in job.misspelled)


def test_most_public_jobs_are_written():
    assert len(JOBS) >= 150
    assert sum(job.refused is None for job in JOBS) / len(JOBS) > 0.85
