"""Tables of other projects are read as their own tests state it, in every view."""

import pytest

import hoodie
from tests.public_tables import WHOLE, read_view


@pytest.mark.parametrize("name", WHOLE)
def test_every_view_holds_the_rows_that_are_stated(public, name):
    table = public(name)
    opened = hoodie.open_table(table.path)
    assert {"snapshot", "ro"} <= {*table.views}
    for view in table.views:
        assert read_view(opened, view) == table.expected(view), view
