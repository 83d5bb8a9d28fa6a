"""Fuzz one decoder with atheris, in this process.

    python -m tests.fuzz.run TARGET SECONDS CORPUS

CORPUS is a folder that keeps what the fuzzer found worth trying; it is filled with the target's seeds first. Ends with a
status other than 0 and the input on standard error when the decoder raises another error than `HoodieError`, takes more
than a gigabyte, or more than ten seconds for one input.
"""

import sys
from hashlib import sha1
from pathlib import Path

import atheris

with atheris.instrument_imports(
    include=["hoodie.format", "hoodie.model", "hoodie.options", "hoodie.read.where", "hoodie.read.where_text"]
):
    from hoodie.errors import HoodieError
    from tests.fuzz.targets import TARGETS

MAX_BYTES = 64 * 1024
LIMIT_MB = 1024
ONE_INPUT_S = 10


def main(name: str, seconds: int, corpus: Path) -> None:
    target = TARGETS[name]
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / sha1(seed, usedforsecurity=False).hexdigest()).write_bytes(seed)

    def one(data: bytes) -> None:
        try:
            target.decode(data)
        except HoodieError:
            return

    flags = [
        f"-max_total_time={seconds}",
        f"-max_len={MAX_BYTES}",
        f"-rss_limit_mb={LIMIT_MB}",
        f"-timeout={ONE_INPUT_S}",
        f"-artifact_prefix={corpus}/crash-",
        "-verbosity=0",
        "-print_final_stats=1",
        "-seed=1",
    ]
    atheris.Setup([sys.argv[0], str(corpus), *flags], one)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
