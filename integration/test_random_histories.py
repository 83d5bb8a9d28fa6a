"""Random histories in which hoodie and Apache Hudi write one table in turns: every reader gives the same rows, and the model's.

Every seed is one history, the same each time. `HOODIE_SEEDS=17,20-25` plays those; HOODIE_SOAK=1 plays 200 of 10 steps and
compares all views after every step. A history that fails is shortened as long as it fails, and shown.
"""

import os
import shutil
from itertools import count

import pytest

from integration.histories import CAPABILITIES, SERVICES, History, random_history
from integration.history_run import Play, reduced
from tests.effort import SOAK

STEPS = 10 if SOAK else 6
USUAL = (*range(14), 2001)
SERVED_STEPS = 9
USUAL_SERVED = tuple(range(6))
TRIALS = 40
"""How many shorter histories are tried at most."""


def seeds(*, served=False):
    """Those of HOODIE_SEEDS, or the usual ones."""
    usual = USUAL_SERVED if served else USUAL
    chosen = os.environ.get("HOODIE_SEEDS") or ("1000-1199" if SOAK else ",".join(map(str, usual)))
    for part in chosen.split(","):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


@pytest.fixture
def play(hudi, tmp_path):
    """Plays a history on a table of its own; gives what the readers disagree about."""
    number = count()

    def run(history: History) -> list[str]:
        folder = tmp_path / str(next(number))
        try:
            return Play(history, folder, hudi).run(check_each=SOAK)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    return run


@pytest.mark.parametrize("seed", list(seeds()))
def test_all_readers_agree_after_a_random_history(play, seed):
    check(play, random_history(seed, steps=STEPS))


@pytest.mark.parametrize("seed", list(seeds(served=True)))
def test_all_readers_agree_where_either_serves_the_table_between_the_writes(play, seed):
    check(play, random_history(seed, steps=SERVED_STEPS, services=True))


def check(play, history):
    """Play it; shorten it where it fails."""
    found = play(history)
    if found:
        trials = iter(range(TRIALS))
        shortest = reduced(history, lambda shorter: next(trials, None) is not None and bool(play(shorter)))
        again = play(shortest) or ["(not when it was played again)"]
        pytest.fail("\n".join([str(history), *found, "shortened to", shortest.as_text(), *again]), pytrace=False)


def test_the_usual_seeds_play_everything_that_can_be_played():
    played = {step.operation for seed in USUAL for step in random_history(seed, steps=6).steps}
    assert played == set(CAPABILITIES)
    histories = [random_history(seed, steps=SERVED_STEPS, services=True) for seed in USUAL_SERVED]
    served = {(step.writer, step.operation) for history in histories for step in history.steps}
    assert {(writer, name) for name, ability in SERVICES.items() for writer in ability.writers} <= served


def test_a_seed_is_always_the_same_history():
    assert random_history(7) == random_history(7)
    assert random_history(7).steps != random_history(8).steps
    assert random_history(7, steps=10).steps[:6] == random_history(7, steps=6).steps
