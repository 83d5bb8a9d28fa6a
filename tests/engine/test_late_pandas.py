"""Pandas is put off in processes of their own: what it does is done once in each."""

import subprocess
import sys

PUT_OFF = """
import sys
import pyarrow as pa
from hoodie.engine.late_pandas import put_pandas_off
put_pandas_off()
put_pandas_off()
pa.array([1, 2]), pa.scalar("a"), pa.array([[{"a": 1}]])
assert not {name for name in sys.modules if name.partition(".")[0] == "pandas"}
"""


def run(program: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_arrays_of_pythons_values_import_no_pandas_and_series_are_known_when_there_are_some():
    """NaN in a series is null to pyarrow, and in a list it is not."""
    run(
        PUT_OFF
        + """
finders = len(sys.meta_path)
import pandas as pd
assert pa.array(pd.Series([1.0, float("nan")])).null_count == 1
assert pa.array([1.0, float("nan")]).null_count == 0
assert pa.table({"a": [1]}).to_pandas().equals(pd.DataFrame({"a": [1]}))
assert len(sys.meta_path) == finders - 1
"""
    )


def test_frames_that_pyarrow_makes_bring_pandas_by_themselves():
    run(PUT_OFF + "assert list(pa.table({'a': [1]}).to_pandas().a) == [1]; assert 'pandas' in sys.modules")


def test_pandas_that_is_there_already_stays_known():
    run(
        """
import pandas as pd
import pyarrow as pa
from hoodie.engine.late_pandas import put_pandas_off
put_pandas_off()
assert pa.array(pd.Series([float("nan")])).null_count == 1
"""
    )
