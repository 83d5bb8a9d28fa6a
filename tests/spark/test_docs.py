"""The examples of the pages that need Spark, as a user runs them: a page is a program in a folder of its own."""

import os
import subprocess
import sys

import pytest

from tests.effort import HUNG_S
from tests.pages import ROOT, USER_PAGES, blocks_of, name_of

pytestmark = pytest.mark.spark


PAGES = [page for page in USER_PAGES if blocks_of(page, "python spark")]


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_the_examples_of_a_page_run_as_they_stand(page, tmp_path):
    path = os.pathsep.join([str(ROOT), str(ROOT / "spark_ext"), os.environ.get("PYTHONPATH", "")])
    ran = subprocess.run(
        [sys.executable, "-m", "tests.pages", name_of(page)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
