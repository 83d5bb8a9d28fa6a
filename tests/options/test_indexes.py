"""Indexes of the user's own by their names."""

import sys

import pytest

from hoodie.errors import OptionError
from hoodie.options.indexes import index_named


@pytest.mark.parametrize("name", ["this.s", "no_such_module.Index"])
def test_what_a_table_names_is_never_imported(name):
    with pytest.raises(OptionError, match="is not registered in this process"):
        index_named(name, stored=True)
    assert name.partition(".")[0] not in sys.modules
