"""Row numbers as roaring bitmaps, read back by a reader of the format's specification."""

import numpy as np
import pytest

from hoodie.filegroup.positions import encode_positions
from tests.bitmaps import decoded


@pytest.mark.parametrize(
    "positions",
    [
        [0],
        [0, 1, 2, 65_535, 65_536, 70_000, (1 << 31) - 1],
        range(4096),
        range(4097),
        range(10, 140_000, 7),
        range(60_000, 70_000),
    ],
)
def test_row_numbers_are_read_back(positions):
    assert decoded(encode_positions(np.array(positions))) == list(positions)
