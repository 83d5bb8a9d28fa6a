"""The option pages say what the code does."""

import re
from dataclasses import fields
from pathlib import Path

from hoodie.model.buckets import BucketEngine
from hoodie.options import registry
from hoodie.options.class_names import hudi_names
from hoodie.options.defaults_file import parse_defaults
from hoodie.options.document import (
    DEFAULTS_PAGE,
    HUDI_PAGE,
    OPTIONS_PAGE,
    defaults_page,
    hudi_page,
    options_page,
    outcome_of,
)
from hoodie.options.option import keys_of
from hoodie.options.parse import parse_read_options, parse_write_options
from hoodie.options.read import ReadOptions
from hoodie.options.table_options import TableOptions
from hoodie.options.without_effect import reason
from hoodie.options.write import WriteOptions

ROOT = Path(__file__).resolve().parent.parent.parent
REMAKE = "run `python -m hoodie.options.document`"


def test_options_page_is_up_to_date():
    assert (ROOT / OPTIONS_PAGE).read_text(encoding="utf-8") == options_page(), REMAKE


def test_each_option_of_apache_hudi_counts_has_a_reason_not_to_or_is_said():
    assert (ROOT / HUDI_PAGE).read_text(encoding="utf-8") == hudi_page(), REMAKE
    names = {line[0] for line in hudi_names()}
    assert len(names) > 1000
    unknown = f"no effect: {reason('_job')}"
    assert [name for name in names if outcome_of(name) == unknown] == []


def test_defaults_file_is_up_to_date():
    assert (ROOT / DEFAULTS_PAGE).read_text(encoding="utf-8") == defaults_page(), REMAKE


def test_every_option_stands_on_the_page():
    page = options_page()
    assert all(f"`{name}`" in page for group in registry.GROUPS.values() for key in group for name in key.names)


def test_the_defaults_file_as_it_is_sets_nothing():
    assert parse_defaults(defaults_page(), path="f") == {}


def test_the_written_defaults_are_the_defaults():
    text = "\n".join(found[1] for found in re.finditer(r"(?m)^#(\S+=.+)$", defaults_page()))
    defaults = parse_defaults(text, path="f")
    assert len(defaults) > 30
    request = parse_write_options({}, defaults=defaults)
    assert request.write == WriteOptions()
    assert parse_read_options({}, defaults=defaults) == ReadOptions()
    assert request.ignored == ()
    asked = {
        each.name: key.default
        for each in fields(TableOptions)
        for key in keys_of(TableOptions, only=each.name)
        if key.default is not None
    }
    assert request.table_defaults == TableOptions(
        **asked, index=WriteOptions().index.type, bucket_engine=BucketEngine.SIMPLE
    )
    assert len(asked) > 5


def test_every_option_has_a_text_and_a_default_that_is_a_value_of_it():
    for line in options_page().splitlines():
        assert not line.startswith("| `hoodie.") or not line.endswith("|  |"), line
    for group in registry.GROUPS.values():
        for key in group:
            assert not key.shown or key.parse(key.shown) == key.default, key.name
