"""Every fuzz target takes its seeds, and small damages of them, without another error than ours (atheris: integration/)."""

import random

import pytest

from hoodie.errors import HoodieError
from tests.fuzz.targets import TARGETS

DAMAGES = 3000


@pytest.mark.parametrize("name", TARGETS)
def test_all_seeds_decode(name):
    target = TARGETS[name]
    seeds = target.seeds()
    assert seeds
    for seed in seeds:
        target.decode(seed)


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_seeds_decode_or_are_refused(name):
    target, chance = TARGETS[name], random.Random(name)
    seeds = sorted(target.seeds(), key=len)[:12]
    refused = 0
    for _ in range(DAMAGES):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        try:
            target.decode(bytes(data[: chance.randrange(len(data) // 2, len(data) + 1)]))
        except HoodieError:
            refused += 1
    assert refused or name == "names"
