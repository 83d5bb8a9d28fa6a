"""The pages: their examples run, their links lead somewhere, their lines fit a screen, and they speak to their readers."""

import logging
import re

import pytest

import hoodie
from tests.pages import ALL_PAGES, ROOT, USER_PAGES, blocks_of, name_of, run_block

GENERATED = {"docs/API.md", "docs/OPTIONS.md", "docs/HUDI_OPTIONS.md"}
LINE = 120
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
NAMES = re.compile(r"\btest_\w+")


def prose(page):
    """Numbered lines outside of blocks of code."""
    inside = False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside:
            yield number, line


def anchors(page):
    """Headings as GitHub links to them."""
    headings = (re.match(r"#+ (.*)", line) for _, line in prose(page))
    return {re.sub(r"[^\w\- ]", "", found[1].lower()).replace(" ", "-") for found in headings if found}


@pytest.mark.parametrize("page", [page for page in USER_PAGES if blocks_of(page, "python")], ids=name_of)
def test_the_examples_of_a_page_run_as_they_stand(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    log = logging.getLogger("hoodie")
    before = log.level
    try:
        for block in blocks_of(page, "python", "sh"):
            run_block(block, names)
    finally:
        log.setLevel(before)  # an example may have set another one


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_links_lead_to_pages_and_headings_that_are_there(page):
    for target in LINK.findall("\n".join(line for _, line in prose(page))):  # a link's text may go on in the next line
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{name_of(page)}: {target}"
        assert not anchor or anchor in anchors(there), f"{name_of(page)}: {target}"


@pytest.mark.parametrize("page", [page for page in ALL_PAGES if name_of(page) not in GENERATED], ids=name_of)
def test_lines_fit_a_screen(page):
    long = [number for number, line in prose(page) if len(line) > LINE and not line.startswith("|")]
    assert not long, f"{name_of(page)}: lines {long} have more than {LINE} characters"


@pytest.mark.parametrize("page", USER_PAGES, ids=name_of)
def test_pages_for_users_name_no_tests(page):
    for number, line in prose(page):
        assert not NAMES.search(line), f"{name_of(page)}:{number}"
        assert not re.search(r"\b(tests|integration)/", line), f"{name_of(page)}:{number}"


def test_the_page_of_the_python_api_is_that_of_the_docstrings():
    make_api = pytest.importorskip("docs.make_api")
    assert (ROOT / make_api.PAGE).read_text(encoding="utf-8") == make_api.page(), "run python -m docs.make_api"
    shown = {name for names in make_api.CORE.values() for name in names}
    assert shown == {name for name in hoodie.__all__ if not name.startswith("_") and not name.endswith("Error")}
    assert {*make_api.SPARK} == {*pytest.importorskip("pyspark_hoodie").__all__}


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_the_site_is_made_without_a_warning(tmp_path):
    make_site = pytest.importorskip("docs.make_site")
    assert make_site.make(tmp_path) == 0
    first = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert 'href="COMING_FROM.html"' in first
    assert 'href="docs/' not in first
    inside = {path.stem for path in (ROOT / "docs").glob("*.md")}
    assert inside <= set(" ".join(make_site.SECTIONS.values()).split()), "a page is in no section of the menu"


def test_the_tests_that_pages_for_contributors_name_are_there():
    sources = [path for folder in ("tests", "integration") for path in (ROOT / folder).rglob("*.py")]
    known = {path.stem for path in sources}
    for path in sources:
        known |= set(re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8")))
    for page in (ROOT / "docs/contributing").rglob("*.md"):
        assert not set(NAMES.findall(page.read_text(encoding="utf-8"))) - known


def test_the_files_of_tests_that_sources_name_are_there():
    for folder in ("hoodie", "spark_ext"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in re.findall(r"\b(?:tests|integration)/[\w/]+\.py", path.read_text(encoding="utf-8")):
                assert (ROOT / name).exists(), f"{path} names {name}"
