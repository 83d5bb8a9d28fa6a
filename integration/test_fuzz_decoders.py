"""A coverage-guided fuzzer (atheris) on each decoder: three or six seconds here, ten minutes with HOODIE_SOAK=1.

Only `HoodieError` may come out of a decoder, within ten seconds an input and a gigabyte. The targets and what to do with an
input that was found: tests/fuzz/. It starts from files that Apache Hudi wrote and takes the same way each time.
"""

import importlib.util
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from integration.hudi_client import ROOT
from tests.effort import SOAK
from tests.fuzz.targets import TARGETS

WHOLE = frozenset({"log_file", "commit", "hfile", "bloom", "properties", "names"})
"""One decoder of each kind of bytes that a table has; those of the parts, such as Avro blocks of logs, are short."""
AT_A_TIME = 2
START_S = 120

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("atheris") is None, reason="atheris has no wheel for this interpreter or system"
)


def seconds(name: str) -> int:
    return 600 if SOAK else 6 if name in WHOLE else 3


def fuzz(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.fuzz.run", name, str(seconds(name)), str(folder / name)]
    return subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds(name) + START_S,
        check=False,
    )


def test_no_input_makes_a_decoder_raise_another_error_hang_or_grow(tmp_path):
    assert TARGETS.keys() >= WHOLE
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        ended = dict(zip(TARGETS, pool.map(lambda name: fuzz(name, tmp_path), TARGETS), strict=True))
    for name, done in ended.items():
        assert done.returncode == 0, f"{name}: status {done.returncode}\n{done.stdout[-500:]}\n{done.stderr[-4000:]}"
        assert "stat::number_of_executed_units" in done.stderr, name
