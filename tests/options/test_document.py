"""The option pages say what the code does."""

import re
from pathlib import Path

from hoodie.options import keys, registry
from hoodie.options.defaults_file import parse_defaults
from hoodie.options.document import DEFAULTS_PAGE, OPTIONS_PAGE, defaults_page, options_page
from hoodie.options.parse import parse_read_options, parse_write_options
from hoodie.options.read import ReadOptions
from hoodie.options.table import TableOptions
from hoodie.options.write import WriteOptions

ROOT = Path(__file__).resolve().parent.parent.parent
REMAKE = "run `python -m hoodie.options.document`"


def test_options_page_is_up_to_date():
    assert (ROOT / OPTIONS_PAGE).read_text(encoding="utf-8") == options_page(), REMAKE


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
    said = {key.name: key.default for key in registry.GROUPS["Table"]}
    assert request.table_defaults == TableOptions(
        table_type=said[keys.TABLE_TYPE.name],
        version=said[keys.CREATE_VERSION.name],
        hive_style=said[keys.HIVE_STYLE.name],
        url_encode=said[keys.URL_ENCODE.name],
        populate_meta_fields=said[keys.META_FIELDS.name],
        drops_partition_columns=said[keys.DROP_COLUMNS.name],
        index=keys.INDEX_TYPE.default,
    )
