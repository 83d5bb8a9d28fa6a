"""docs/API.md, made from the docstrings of the public names.

`python -m docs.make_api` writes it into the checkout that is the current folder; a test compares it with the sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe

PAGE = Path("docs/API.md")
_ROOT = Path(__file__).resolve().parent.parent
_WIDTH = 100

_INTRODUCTION = """\
# Python API

<!-- Made by `python -m docs.make_api`; do not edit. -->

`import hoodie` needs no Spark. `import pyspark_hoodie` is for PySpark: the same methods take and return DataFrames.
[OPTIONS.md](OPTIONS.md) describes the options, and [FILTERS.md](FILTERS.md) the filters.
"""

CORE = {
    "Open and create": ("open_table", "create_table", "is_table"),
    "A table": ("HoodieTable",),
    "Changes of its columns": ("TableAlteration",),
    "A query": ("Scan",),
    "A named consumer": ("Consumer", "ConsumerInfo", "ConsumerLag"),
    "What writes did": (
        "CommitResult",
        "History",
        "CleanResult",
        "EraseResult",
        "ArchiveResult",
        "RestoreResult",
        "Savepoint",
        "ExpiryResult",
        "UpgradeResult",
    ),
    "What a compaction or a clustering would do": (
        "CompactionCandidate",
        "ClusteringPlan",
        "ClusteringGroup",
        "ClusteredSlice",
    ),
    "SQL": ("sql",),
    "Checks and repairs": (
        "Diagnosis",
        "Finding",
        "RepairResult",
        "ValidationResult",
        "repair_properties",
        "PropertiesRepair",
    ),
    "Migrate": ("migrate", "MigrationResult", "MigrationStep", "ColumnCheck"),
    "Ingest": ("ingest", "IngestResult", "IngestRound"),
    "A registration in Hive": ("HiveSyncResult", "RegisteredTable"),
    "A services job": ("ServicesJob", "ServiceRound", "ServiceRun"),
    "What arguments take": (
        "Rows",
        "SchemaLike",
        "Moment",
        "Where",
        "ArrowStreamExportable",
        "ArrowArrayExportable",
        "ArrowSchemaExportable",
    ),
    "The timeline": ("Timeline", "Instant", "InstantRange", "FileSlice"),
    "Options as objects": (
        "WriteOperation",
        "QueryType",
        "TableType",
        "TableVersion",
        "MergeMode",
        "TableOptions",
        "WriteOptions",
        "ReadOptions",
    ),
    "Mergers": ("register_merger",),
    "Indexes": ("TableIndex", "IndexInfo", "IndexCheck"),
    "Indexes of your own": ("register_index", "KeyIndex"),
    "Errors": (),
}
LEFT_OUT = {"read", "writer"}
"""Methods of the table that the doors call."""
BRIEF = {"TableOptions", "WriteOptions", "ReadOptions", "DefaultSource"}
"""What others make of texts: their options are described in OPTIONS.md."""
SPARK = ("enable", "disable", "HoodieTable", "ingest", "last_commit", "stream_writer", "DefaultSource")


def page() -> str:
    """docs/API.md."""
    loader = griffe.GriffeLoader(search_paths=[_ROOT, _ROOT / "spark_ext"], docstring_parser=griffe.Parser.google)
    core, spark = loader.load("hoodie"), loader.load("pyspark_hoodie")
    loader.resolve_aliases(implicit=True)
    lines = [_INTRODUCTION]
    for title, names in CORE.items():
        lines += [f"## {title}", ""]
        for name in names:
            lines += _member(_public(core, name), f"hoodie.{name}", level=3)
        if title == "Errors":
            lines += _errors(loader)
    lines += ["## PySpark", ""]
    for name in SPARK:
        lines += _member(_public(spark, name), f"pyspark_hoodie.{name}", level=3)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip() + "\n"


def _public(module: griffe.Object | griffe.Alias, name: str) -> griffe.Object:
    found = module[name if name in module.members else f"public.{name}"]  # the latter is imported for types alone
    return found.final_target if isinstance(found, griffe.Alias) else found


def _member(found: griffe.Object, called: str, *, level: int) -> list[str]:
    if isinstance(found, griffe.Function):
        return [f"{'#' * level} {called}", "", *_signature(found, called), *_text(found)]
    lines = [f"{'#' * level} {called}", "", *_text(found)]
    if found.name in BRIEF:
        return lines
    public = [each for name, each in _members(found).items() if _shown(name, each)]
    values = [each for each in public if isinstance(each, griffe.Attribute)]
    if isinstance(found, griffe.Class) and any("Enum" in str(base) for base in found.bases):
        names = [name for name, each in found.members.items() if isinstance(each, griffe.Attribute) and name.isupper()]
        lines += [f"Members: {', '.join(f'`{name}`' for name in names)}.", ""]
    if values:
        lines += ["| | |", "|---|---|", *(f"| `{each.name}` | {_first_paragraph(each)} |" for each in values), ""]
    for each in public:
        if isinstance(each, griffe.Function) and each.name != "of":  # values of results are made by services
            lines += [f"{'#' * (level + 1)} {each.name}", "", *_signature(each, each.name), *_text(each)]
    return lines


def _members(found: griffe.Object) -> dict[str, griffe.Object | griffe.Alias]:
    """Those of its own, then those that a class has from ours, in the order of these."""
    inherited = found.inherited_members if isinstance(found, griffe.Class) else {}
    order = (name for base in found.mro() for name in base.members) if isinstance(found, griffe.Class) else ()
    names = (name for name in dict.fromkeys(order) if name in inherited and name not in found.members)
    return found.members | {name: inherited[name].final_target for name in names}


def _shown(name: str, each: griffe.Object | griffe.Alias) -> bool:
    return bool(each.docstring) and not name.startswith("_") and name not in LEFT_OUT


def _signature(found: griffe.Function, called: str) -> list[str]:
    """The signature as a block of code, one parameter a line where it is long."""
    parts = list(_parameters(found))
    gives = f" -> {found.returns}" if found.returns else ""
    short = f"{called}({', '.join(parts)}){gives}"
    if len(short) <= _WIDTH:
        return ["```text", short, "```", ""]
    return ["```text", f"{called}(", *(f"    {part}," for part in parts), f"){gives}", "```", ""]


def _parameters(found: griffe.Function) -> Iterator[str]:
    keywords_only = False
    for each in found.parameters:
        if each.name in {"self", "cls"}:
            continue
        if each.kind is griffe.ParameterKind.keyword_only and not keywords_only:
            keywords_only = True
            yield "*"
        kind = f": {each.annotation}" if each.annotation else ""
        yield f"{each.name}{kind}" + (f"{' = ' if kind else '='}{each.default}" if each.default is not None else "")


def _text(found: griffe.Object) -> list[str]:
    lines: list[str] = []
    # What a method returns is one item, of however many lines.
    said = found.docstring.parse(warnings=False, returns_multiple_items=False) if found.docstring else []
    for section in said:
        if section.kind is griffe.DocstringSectionKind.text:
            lines += [section.value, ""]
        elif section.kind is griffe.DocstringSectionKind.parameters:
            lines += [*(f"- `{each.name}`: {_one_line(each.description)}" for each in section.value), ""]
        elif section.kind is griffe.DocstringSectionKind.raises:
            lines += ["Raises:", ""]
            lines += [*(f"- `{each.annotation}`: {_one_line(each.description)}" for each in section.value), ""]
        elif section.kind is griffe.DocstringSectionKind.returns:
            lines += [f"Returns: {_one_line(each.description)}" for each in section.value] + [""]
        elif section.kind is griffe.DocstringSectionKind.examples:
            lines += ["```text", *(text for _, text in section.value), "```", ""]
    return lines


def _errors(loader: griffe.GriffeLoader) -> list[str]:
    """The tree of the exported errors, each with the first paragraph of its docstring."""
    module, exported = loader.modules_collection["hoodie.errors"], loader.modules_collection["hoodie"].members
    classes = [each for name, each in module.members.items() if isinstance(each, griffe.Class) and name in exported]
    rows = [f"| `{each.name}` | {_bases(each)} | {_first_paragraph(each)} |" for each in classes]
    return ["| error | is a | when |", "|---|---|---|", *rows, ""]


def _bases(found: griffe.Class) -> str:
    return ", ".join(f"`{base}`" for base in found.bases)


def _first_paragraph(found: griffe.Object) -> str:
    text = found.docstring.value if found.docstring else ""
    return _one_line(re.split(r"\n\s*\n|\nRaises:", text)[0])


def _one_line(text: Iterable[str] | str) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
