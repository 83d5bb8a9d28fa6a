"""Java properties text: vectors that java.util.Properties of JDK 17 gave, and round trips."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoodie.errors import CorruptFileError
from hoodie.format.properties import format_properties, parse_properties, parse_properties_file, table_checksum
from tests.golden_tables import FOLDER

FILES = sorted([*FOLDER.glob("*/table/**/hoodie.properties"), *FOLDER.glob("*/table/**/.hoodie_partition_metadata")])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b\n", {"a": "b"}),
        ("a:b\r\nc d\re = f ", {"a": "b", "c": "d", "e": "f "}),
        ("  a\t\f=\t b", {"a": "b"}),
        ("a\nb=\nc:", {"a": "", "b": "", "c": ""}),
        ("a==b\nc=:d\ne : = f", {"a": "=b", "c": ":d", "e": "= f"}),
        ("# x=1\n ! y=2\n\n \t\n\\# z=3", {"#": "z=3"}),
        ("# no continuation \\\na=b", {"a": "b"}),
        ("a=b\\\n   c\\\r\n\td", {"a": "bcd"}),
        ("a=b\\\\\nc=d", {"a": "b\\", "c": "d"}),
        ("a=b\\\\\\\nc=d", {"a": "b\\c=d"}),
        ("a=b\\\n# not a comment", {"a": "b# not a comment"}),
        ("\\\n# a comment\nb=c", {"b": "c"}),
        ("a=b\\\n\nc=d", {"a": "b", "c": "d"}),
        ("a=b\\", {"a": "b"}),
        ("a\\ b\\=\\:\\#=\\ c", {"a b=:#": " c"}),
        (r"a=\t\n\r\f\q\\", {"a": "\t\n\r\fq\\"}),
        (r"\u0061=\u00e9\u2603\uD83D\uDE00\u004a9", {"a": "é☃\U0001f600J9"}),
        ("a=é", {"a": "é"}),
        ("a=1\na=2", {"a": "2"}),
        ("=b", {"": "b"}),
        ("", {}),
    ],
)
def test_text_reads_as_java_reads_it(text, expected):
    assert parse_properties(text) == expected


@pytest.mark.parametrize("text", [r"a=\u12", r"a=\u12g4", r"\u=b", r"a=\uD83D", r"a=\uDE00\uD83D"])
def test_a_broken_unicode_escape_names_the_file(text):
    with pytest.raises(CorruptFileError, match=r"\.hoodie/hoodie\.properties"):
        parse_properties(text, path=".hoodie/hoodie.properties")


def test_text_is_written_as_java_writes_it():
    values = {"a b": "  c d", "e": "é\U0001f600\t=:#!\\", "f": ""}
    assert format_properties(values, comment=["two\nlines", "é"]) == (
        "#two\n#lines\n#\\u00E9\na\\ b=\\  c d\ne=\\u00E9\\uD83D\\uDE00\\t\\=\\:\\#\\!\\\\\nf=\n"
    )


@given(st.dictionaries(st.text(), st.text()), st.lists(st.text()))
def test_values_come_back_in_their_order_whatever_they_and_the_comments_hold(values, comment):
    text = format_properties(values, comment=comment)
    assert text.isascii()
    assert list(parse_properties(text).items()) == list(values.items())


def test_there_are_golden_files():
    assert len(FILES) > 40


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.relative_to(FOLDER).parts[0]}-{path.parent.name}")
def test_golden_properties_come_back_and_their_checksum_holds(path):
    values = parse_properties(path.read_text("latin-1"))
    assert parse_properties(format_properties(values, comment=[])) == values
    if path.name == "hoodie.properties":
        name, database = values["hoodie.table.name"], values.get("hoodie.database.name", "")
        assert values["hoodie.table.checksum"] == str(table_checksum(name, database))
    else:
        assert set(values) == {"commitTime", "partitionDepth"}


def test_checksum_covers_database_and_table():
    assert table_checksum("v6_mor_logs") == 1328958999
    assert table_checksum("v6_mor_logs", "db") != 1328958999


def test_who_changes_what_was_read_of_a_file_changes_nobody_else_s():
    first = parse_properties_file(b"a=b\n", path="t/hoodie.properties")
    first["a"] = "changed"
    assert parse_properties_file(b"a=b\n", path="t/hoodie.properties") == {"a": "b"}
