"""The option pages, made from the fields that are options: docs/OPTIONS.md, docs/HUDI_OPTIONS.md and conf/hoodie-defaults.conf.

`python -m hoodie.options.document` writes them into the checkout that is the current folder.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import cast

from hoodie.options.class_names import hudi_names
from hoodie.options.option import Key, Keys, key_of, keys_of
from hoodie.options.other_systems import OTHER_SYSTEMS
from hoodie.options.read import MERGE_SCHEMA, TIMESTAMP_AS_OF
from hoodie.options.registry import GROUPS, VALUES
from hoodie.options.settings import READS, VIEWS, WRITES
from hoodie.options.unsupported import NOT_DONE
from hoodie.options.without_effect import ELSEWHERE, REASONS, reason
from hoodie.options.write import WriteOptions

OPTIONS_PAGE = Path("docs/OPTIONS.md")
HUDI_PAGE = Path("docs/HUDI_OPTIONS.md")
DEFAULTS_PAGE = Path("conf/hoodie-defaults.conf")

_HONOURED = (*key_of(WriteOptions, "overwrite_mode").also, TIMESTAMP_AS_OF.name, MERGE_SCHEMA.name)
_INTRODUCTION = """\
# Options

<!-- Made by `python -m hoodie.options.document`; do not edit. -->

hoodie takes Apache Hudi's options with their values, and has options of its own, which begin with `hoodie.python.`.
Names of options are not case-sensitive.

- An unknown option raises an error that suggests the nearest name.
- An option of Delta Lake, Apache Iceberg or Spark's file formats works if hoodie has the same option. Otherwise it raises an
  error that names hoodie's option ("Options of other systems").
- An option of Apache Hudi for something that hoodie does not do raises an error if queries would give other rows without
  it. Otherwise it causes a warning at each write ("Not done").
- Any other option of Apache Hudi has no effect. A warning names it and gives the reason ("Without effect"). This includes
  options of older versions, and of Hudi's modules for AWS, GCP, catalogs and the Streamer
  (`hoodie/options/hudi_keys.tsv`).
- [HUDI_OPTIONS.md](HUDI_OPTIONS.md) says for every option of Apache Hudi whether it works.
- One error names everything that is wrong with the options of a call.
- A table remembers its options: later writes need none of them. An option that contradicts the table raises an error.
- Put defaults for all jobs into `hoodie-defaults.conf`, in the folder that the environment variable `HOODIE_CONF_DIR`
  names. Options of a job override them. Options of a table apply only when it is created.
- Long operations show a progress bar in a terminal or a notebook, and a line in the log elsewhere. The environment variable
  `HOODIE_PROGRESS` chooses: `auto`, `bar`, `log` or `off`.
"""

_DEFAULTS_INTRODUCTION = """\
# Options for all jobs; set the environment variable HOODIE_CONF_DIR to the folder of this file.
# Lines are `key=value` or `key value`. This file has all options with their defaults: remove the `#` to change one.
# Table options apply when a table is created. Made by `python -m hoodie.options.document`; see docs/OPTIONS.md.
"""


def options_page() -> str:
    """docs/OPTIONS.md."""
    lines, texts = [_INTRODUCTION], _texts()
    for title, group in GROUPS.items():
        lines += [f"## {title}", "", "| option | default | values | meaning |", "|---|---|---|---|"]
        for key in group:
            names = "<br>".join([f"`{key.name}`", *(f"also `{name}`" for name in key.names[1:])])
            lines.append(f"| {names} | {key.shown or '(unset)'} | {key.kind.allowed} | {texts[key.name]} |")
        lines.append("")
    return "\n".join([*lines, *_not_done(), *_without_effect(), *_other_systems()])


def _not_done() -> list[str]:
    """The options of Apache Hudi that ask for more than this release does."""
    lines = [
        "## Not done",
        "",
        "| option of Apache Hudi | if it is set | what happens instead |",
        "|---|---|---|",
    ]
    for each in NOT_DONE:
        names = "<br>".join(f"`{name}`" for name in each.names)
        outcome = "error" if each.refused else "warning at each write"
        lines.append(f"| {names} | {outcome} | {each.what} |")
    asks = "An option is set unless its value is `false`, `none` or empty."
    sizes = "A number (commits to retain) is set as soon as it is given, unless the switch above it is `false`."
    return [*lines, "", asks, sizes, ""]


def _without_effect() -> list[str]:
    """The options of Apache Hudi that change nothing, by the reason."""
    lines = ["## Without effect", "", "| reason | options of Apache Hudi, by name or prefix |", "|---|---|"]
    for why, starts in REASONS.items():
        lines.append(f"| {why} | {', '.join(f'`{name}*`' if name[-1] in '._' else f'`{name}`' for name in starts)} |")
    return [*lines, "", "If several prefixes match, the longest applies.", ""]


def _other_systems() -> list[str]:
    """The options of other systems that are errors."""
    honoured = ", ".join(f"`{name}`" for name in _HONOURED)
    lines = [
        "## Options of other systems",
        "",
        f"These work, and are in the tables above: {honoured}. All others raise errors:",
        "",
    ]
    lines += ["| option | is | instead |", "|---|---|---|"]
    return [*lines, *(f"| `{name}` | {whose} | {instead} |" for name, (whose, instead) in OTHER_SYSTEMS.items()), ""]


_OF_HUDI = """\
# Every option of Apache Hudi

<!-- Made by `python -m hoodie.options.document`; do not edit. -->

This page lists each option of Apache Hudi 1.2.0 and its modules by its newest name. An option counts as
[OPTIONS.md](OPTIONS.md) says, for `hoodie ingest`, or for a statement of Spark SQL; or it has no effect, for the reason
given; or hoodie does not do what it asks for, and warns or raises an error.

| option | here |
|---|---|
"""


def hudi_page() -> str:
    """docs/HUDI_OPTIONS.md."""
    return _OF_HUDI + "".join(f"| `{line[0]}` | {outcome_of(line[0])} |\n" for line in hudi_names())


def outcome_of(name: str) -> str:
    """What becomes of an option of Apache Hudi, by its newest name."""
    folded = name.lower()
    asking = next((each for each in NOT_DONE if folded in {alias.lower() for alias in each.names}), None)
    if asking is not None:
        return f"{'error' if asking.refused else 'warning'}: {asking.what}"
    if folded in WRITES or folded in READS or folded in VIEWS:
        return "counts"
    why = reason(name)
    return why.removeprefix("it ") if why in ELSEWHERE else f"no effect: {why}"


def defaults_page() -> str:
    """conf/hoodie-defaults.conf: every option is commented out."""
    lines, texts = [_DEFAULTS_INTRODUCTION], _texts()
    for title, group in GROUPS.items():
        lines += [f"# ---- {title}", ""]
        for key in group:
            lines += textwrap.wrap(texts[key.name], 116, initial_indent="# ", subsequent_indent="# ")
            lines += textwrap.wrap(f"Values: {key.kind.allowed}", 116, initial_indent="# ", subsequent_indent="# ")
            lines += [f"#{key.name}={key.shown}", ""]
    return "\n".join(lines)


def _texts() -> dict[str, str]:
    """What each option means, by its name: its own text, or the docstring below its constant, else below its field."""
    texts = {key.name: key.doc for group in GROUPS.values() for key in group}
    bodies: dict[str, list[ast.stmt]] = {}
    for module in dict.fromkeys(cast(ModuleType, inspect.getmodule(value)) for value in VALUES):
        body = ast.parse(inspect.getsource(module)).body
        bodies |= {each.name: each.body for each in body if isinstance(each, ast.ClassDef)}
        _add_texts(texts, body, {name: (key,) for name, key in vars(module).items() if isinstance(key, Key)})
    for value in VALUES:
        _add_texts(texts, bodies[value.__name__], {each.name: keys_of(value, only=each.name) for each in fields(value)})
    return texts


def _add_texts(texts: dict[str, str], body: list[ast.stmt], keys: Mapping[str, Keys]) -> None:
    for each, below in pairwise(body):
        match each, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(text))),
            ):
                for key in keys.get(name, ()):
                    texts[key.name] = texts[key.name] or " ".join(text.split())


if __name__ == "__main__":
    OPTIONS_PAGE.write_text(options_page(), encoding="utf-8")
    HUDI_PAGE.write_text(hudi_page(), encoding="utf-8")
    DEFAULTS_PAGE.write_text(defaults_page(), encoding="utf-8")
