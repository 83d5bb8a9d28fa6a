"""Make the site, with search, in build/site: `make docs`.

The pages are those of the root folder, docs/ and benchmarks/. A link to another file becomes text.
"""

import posixpath
import re
import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx

_ROOT = Path(__file__).resolve().parent.parent
_FIRST = "index.md"
SECTIONS = {
    "Start": "COMING_FROM CHOOSING RECIPES CHANGELOG",
    "Read and write": "FILTERS TYPES INGEST MIGRATION UPDATE_AND_MERGE CHANGES MERGING INDEXES ERASURE KEY_VALUE",
    "Spark": "SPARK SQL STREAMING CLUSTER",
    "Run": "STORAGE CONCURRENCY SERVICES CHECKS MONITORING COMMAND_LINE HIVE PUBLISH TIMELINE_SERVICE",
    "Look up": "API OPTIONS HUDI_OPTIONS FORMAT RESULTS KEY_VALUE_FIGURES",
    "Contribute": "CONTRIBUTING ARCHITECTURE contributing/FILES contributing/FIGURES contributing/FAULTS "
    "contributing/WALKS contributing/WITNESSES",
}
"""Of the menu, each with its pages; those of docs/contributing/decisions are found by links."""
_MOVED = {
    "README.md": _FIRST,
    "benchmarks/RESULTS.md": "RESULTS.md",
    "benchmarks/KEY_VALUE.md": "KEY_VALUE_FIGURES.md",
}
_SETTINGS = {
    "project": "hoodie",
    "html_title": "hoodie",
    "html_theme": "furo",
    "extensions": ["myst_parser"],
    "myst_heading_anchors": 4,
    "suppress_warnings": ["misc.highlighting_failure", "toc.not_included"],
}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s]+)(#[^)]*)?\)")


def pages() -> dict[str, str]:
    """Path in the repository -> path on the site."""
    found = [path for folder in (_ROOT, _ROOT / "benchmarks") for path in folder.glob("*.md")]
    found += [path for kind in ("*.md", "*.svg") for path in (_ROOT / "docs").rglob(kind)]
    paths = [path.relative_to(_ROOT).as_posix() for path in found]
    return {path: _MOVED.get(path, path.removeprefix("docs/")) for path in paths}


def on_site(text: str, path: str, known: dict[str, str]) -> str:
    """A page with its links as they are on the site."""

    def point(link: re.Match[str]) -> str:
        words, target, anchor = link.groups()
        if ":" in target:
            return link[0]
        place = known.get(posixpath.normpath(posixpath.join(posixpath.dirname(path), target)))
        here = posixpath.dirname(known[path]) or "."
        return words if place is None else f"[{words}]({posixpath.relpath(place, here)}{anchor or ''})"

    return _LINK.sub(point, text)


def menu() -> str:
    """What Sphinx makes the menu of."""
    lists = (f":caption: {name}\n:hidden:\n\n" + "\n".join(names.split()) for name, names in SECTIONS.items())
    return "".join(f"\n```{{toctree}}\n{each}\n```\n" for each in lists)


def make(build: Path) -> int:
    """Makes the site in a folder `site`; gives 0 if there was nothing to warn of."""
    source = build / "site-source"
    shutil.rmtree(source, ignore_errors=True)
    known = pages()
    for path, place in known.items():
        (source / place).parent.mkdir(parents=True, exist_ok=True)
        text = (_ROOT / path).read_text(encoding="utf-8")
        if place.endswith(".md"):
            text = on_site(text, path, known) + (menu() if place == _FIRST else "")
        (source / place).write_text(text, encoding="utf-8")
    out, trees = build / "site", build / "site-trees"
    site = Sphinx(source, None, out, trees, "html", confoverrides=_SETTINGS, warningiserror=True, status=None)
    site.build()
    return site.statuscode


if __name__ == "__main__":
    sys.exit(make(_ROOT / "build"))
