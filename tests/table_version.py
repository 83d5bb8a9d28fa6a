"""`HOODIE_TABLE_VERSION`: the suites make tables of that version, where a test does not ask for one; `make soak` runs them so."""

import os

import hoodie.options.table
from hoodie.format.layout import LAYOUTS, NEW, Layout


def chosen() -> Layout:
    """The layout of new tables."""
    version = os.environ.get("HOODIE_TABLE_VERSION")
    return NEW if version is None else next(each for each in LAYOUTS.values() if str(int(each.version)) == version)


def make_new_tables_of_it() -> None:
    """From here on."""
    hoodie.options.table.NEW = chosen()
