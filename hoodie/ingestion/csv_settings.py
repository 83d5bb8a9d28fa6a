"""How files of CSV are written, by the names of Apache Hudi's `CsvDFSSource`, which are those of Spark's reader."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from hoodie.errors import OptionError
from hoodie.ingestion.streamer_properties import OLD_PREFIX, PREFIX

CSV_PREFIX = f"{PREFIX}csv."
_OLD_CSV_PREFIX = f"{OLD_PREFIX}csv."
_READ = ("sep", "delimiter", "quote", "escape", "encoding", "charset", "header", "nullValue")
_NO_EFFECT = ("inferSchema", "enforceSchema", "samplingRatio", "maxColumns", "maxCharsPerColumn", "multiLine")
_AS_HERE: Mapping[str, tuple[str, ...]] = {
    "comment": ("",),
    "mode": ("permissive",),
    "emptyvalue": ("",),
    "ignoreleadingwhitespace": ("false",),
    "ignoretrailingwhitespace": ("false",),
}
"""Of options that are not read: the values that say what is done anyway."""
_UNICODE = re.compile(r"\\u([0-9a-fA-F]{4})")


@dataclass(frozen=True)
class CsvSettings:
    separator: str = ""
    """Empty: a tab in files whose names end with `.tsv`, otherwise a comma."""
    quote: str = '"'
    """Empty: none. It may stand twice for itself."""
    escape: str = ""
    encoding: str = "utf-8"
    has_names: bool = True
    """The first line has them. Otherwise columns are those of the table, in its order; without a table, `_c0`, `_c1` and so on."""
    null: str = ""
    """An unquoted field that is null, beside the empty one."""


PLAIN_CSV = CsvSettings()


def parse_csv_settings(options: Mapping[str, str] | None) -> tuple[CsvSettings, dict[str, str]]:
    """The settings, and the options that are not about CSV.

    Raises:
        OptionError: an option of CSV is not read here, or cannot have its value.
    """
    given: dict[str, str] = {}
    rest: dict[str, str] = {}
    for key, value in (options or {}).items():
        prefix = next((each for each in (CSV_PREFIX, _OLD_CSV_PREFIX) if key.startswith(each)), None)
        (rest if prefix is None else given)[key.removeprefix(prefix or "")] = value
    for name in set(given) - {*_READ, *_NO_EFFECT}:
        if given[name].lower() not in _AS_HERE.get(name.lower(), ()):
            raise OptionError(f"{CSV_PREFIX}{name}={given[name]!r} is not supported; supported are {', '.join(_READ)}")
    settings = CsvSettings(
        _sign(given, "sep", "delimiter"),
        _sign(given, "quote", usual='"'),
        _sign(given, "escape"),
        _encoding(given),
        _flag(given, "header"),
        given.get("nullValue", ""),
    )
    if settings.escape == settings.quote:  # as Spark says that a quote stands twice
        settings = replace(settings, escape="")
    if settings.separator and settings.separator in (settings.quote, settings.escape):
        raise OptionError(f"{CSV_PREFIX}sep={settings.separator!r} is also the quote or the escape character")
    return settings, rest


def _sign(given: Mapping[str, str], *names: str, usual: str = "") -> str:
    name = next((each for each in names if each in given), None)
    if name is None:
        return usual
    text = given[name].replace("\\t", "\t")
    text = _UNICODE.sub(lambda match: chr(int(match[1], 16)), text)
    if len(text) > 1 or not text.isascii() or text in ("\n", "\r") or (name in ("sep", "delimiter") and not text):
        raise OptionError(f"{CSV_PREFIX}{name}={given[name]!r} is not one ASCII character")
    return text


def _flag(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "true").lower()
    if text not in ("true", "false"):
        raise OptionError(f"{CSV_PREFIX}{name}={given[name]!r} is not true or false")
    return text == "true"


def _encoding(given: Mapping[str, str]) -> str:
    name = "encoding" if "encoding" in given else "charset"
    text = given.get(name, "utf-8")
    try:
        b"x".decode(text, "replace")
    except (LookupError, ValueError) as exc:
        raise OptionError(f"{CSV_PREFIX}{name}={text!r} is no encoding of text") from exc
    return text
