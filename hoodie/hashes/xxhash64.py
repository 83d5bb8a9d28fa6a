"""xxHash64 with the seed of Apache Hudi, by which it names things after a path."""

from __future__ import annotations

import xxhash

HUDI_SEED = 0xFFFFFFFFDABADABA
"""Its 32-bit seed, with the sign that Java extends."""


def xxhash64(text: str) -> int:
    return xxhash.xxh64_intdigest(text.encode(), HUDI_SEED)
