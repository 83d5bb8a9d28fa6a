"""The word count of `examples/` is killed again and again: at the end every count is what a plain recount gives.

HOODIE_SOAK=1 kills about sixty times, on S3, too.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest

from integration.word_counts import MOMENTS, WordCount
from tests.effort import SOAK
from tests.servers.s3 import S3Server

SEED = 11
DRIVERS = 32 if SOAK else 3
"""That are killed at a moment; besides some at their start."""
WORKERS = 8 if SOAK else 1
HALF = "half of the buckets have the batch"
_TRIES = 4


@pytest.fixture(params=["disk", *(["s3"] if SOAK else [])])
def job(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[WordCount]:
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        for name, value in server.options.items():
            monkeypatch.setenv(name.upper(), value)
        made = WordCount(tmp_path, server.new_uri(), seed=SEED, quicker=True)
    else:
        made = WordCount(tmp_path, str(tmp_path / "store"), seed=SEED)
    yield made
    made.close()


def test_a_word_count_that_is_killed_again_and_again_counts_every_word_once(job: WordCount) -> None:
    chance, found = Random(SEED), Counter[str]()
    for _ in range(6):
        job.feed()
    while found["drivers"] < DRIVERS or not found["half"]:
        assert found["drivers"] < _TRIES * DRIVERS, found
        moment = HALF if not found["half"] else chance.choice(list(MOMENTS))
        if found["drivers"] and (not found["early"] or chance.random() < 0.3):
            die_early(job, chance, found)
        before = job.seen()
        job.start()
        assert job.until(partial(MOMENTS[moment], before)), job.tail()
        if moment != HALF:
            time.sleep(chance.random() * 0.3)  # whatever comes then is a moment, too
        workers_too = moment == HALF or chance.random() < 0.5
        job.kill(workers_too=workers_too)
        found["drivers"] += 1
        if workers_too:  # else some may still be at it, when the next driver comes
            note_what_is_given_again(job, found)
        job.check_readers()
    while found["workers"] < WORKERS:
        kill_workers(job, found)
    job.finish()
    assert job.counts() == job.expected, found
    assert min(found[name] for name in ("again", "half", "early")) > 0, found


def die_early(job: WordCount, chance: Random, found: Counter[str]) -> None:
    """Twice in quick succession: when there is a JVM, and while it takes up what the one before has left."""
    job.start()
    assert job.until(lambda _: len(job.processes()) > 1), job.tail()
    time.sleep(chance.random() * 0.2)
    job.kill()
    before = job.seen()
    job.start()
    if before.planned > before.done:
        assert job.until(lambda now: now.turns > before.turns), job.tail()
    else:
        assert job.until(lambda now: now.planned > before.planned), job.tail()
    job.kill()
    note_what_is_given_again(job, found)
    found["early"] += 2


def note_what_is_given_again(job: WordCount, found: Counter[str]) -> None:
    """The next start gives the last batch again where the checkpoint does not know it to be written."""
    now = job.seen()
    if now.planned > now.done and (windows := job.committed()):
        has_it = [window == now.planned for window in windows]
        found["again"] += any(has_it)
        found["half"] += any(has_it) and not all(has_it)


def kill_workers(job: WordCount, found: Counter[str]) -> None:
    """Those of a batch that is being written. Spark tries its tasks again, or gives up and the next start does it."""
    before = job.seen()
    job.start()
    if job.until(lambda now: now.planned > now.done and now.turns > before.turns):
        found["workers"] += job.kill_workers()
        reached = job.seen().planned
        job.until(lambda now: now.done >= reached)
    job.kill()
    job.check_readers()
