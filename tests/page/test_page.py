"""The page is one whole document: nothing is loaded, nothing is run, and what comes from a table is only text."""

import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

import hoodie
from hoodie.cli.__main__ import DONE, FAILED, main
from hoodie.model.enums import Action, State
from hoodie.model.instant import Instant, format_instant
from hoodie.model.service_results import ConsumerLag
from hoodie.page.facts import ConsumerFacts, Lane, Mark, PartitionFacts, PendingInstant, TableFacts
from hoodie.page.picture import commit_bars, timeline_picture
from hoodie.page.render import INSTANTS_SHOWN, PARTITIONS_SHOWN, page
from tests.effort import HUNG_S
from tests.golden_tables import FOLDER

NOW = datetime(2026, 3, 1, 12, 0, 0)
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def mark(number, lane=Lane.WRITES, *, step=timedelta(minutes=2), size=1000, state=State.COMPLETED):
    began = NOW - timedelta(days=1) + step * number
    instant = Instant(format_instant(began), Action.DELTACOMMIT, state)
    return Mark(instant, lane, began, "upsert", number, 1, 0, 2, size, float(size))


ONE = (PartitionFacts("p", 1, 10, 1, 5),)


def facts(marks=(), *, partitions=ONE, pending=()):
    return TableFacts(
        uri="memory://t",
        name="trips",
        kind="MERGE_ON_READ, table version 6",
        pairs=(("Record key", "id"),),
        now=NOW,
        zone="UTC",
        marks=tuple(marks),
        pending=tuple(pending),
        partitions=tuple(partitions),
        sizes=(1, 0, 0, 0, 0, 0, 0, 0),
        slices_with_logs=1,
        most_logs=1,
    )


def texts_of(html):
    return re.sub(r"<[^>]+>", " ", html.partition("</style>")[2])


def test_a_page_needs_nothing_from_elsewhere_and_runs_nothing():
    html = page(facts([mark(n) for n in range(5)]))
    assert not re.search(r"<(script|link|img|iframe|object)\b|\bon[a-z]+=|url\(|@import|https?:", html)
    assert "default-src 'none'" in html


def test_colours_can_be_told_from_what_is_behind_them_in_light_and_in_dark():
    """By the rules for accessible pages (WCAG 2.2): 4.5 to 1 for text, 3 to 1 for marks of a picture."""
    style = re.search(r"<style>(.*?)</style>", page(facts()), re.S)[1]
    schemes = [dict(re.findall(r"--(\w+): (#\w+);", each)) for each in re.findall(r":root \{(.*?)\}", style, re.S)]
    assert len(schemes) == 2
    for scheme in schemes:
        for name in scheme.keys() - {"ground", "card", "line"}:
            least = 4.5 if name in ("ink", "soft") else 3
            assert min(contrast(scheme[name], scheme[behind]) for behind in ("ground", "card")) >= least, name


def contrast(one, other):
    brighter, darker = sorted(map(luminance, (one, other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = [each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_names_of_a_table_are_text():
    evil = "\"><script>alert(1)</script><b a='&"
    spoiled = replace(
        facts([replace(mark(1), operation=evil)], partitions=[PartitionFacts(evil, 1, 1, 0, 0)]),
        uri=evil,
        name=evil,
        kind=evil,
        pairs=((evil, evil),),
        zone=evil,
        pending=(PendingInstant(mark(1).instant, NOW, 1, f"`{evil}`"),),
        consumers=(consumer(evil, 1, 1, position=evil),),
    )
    html = page(spoiled)
    assert "<script" not in html
    assert "<b " not in html
    ET.fromstring(as_xml(html))


def as_xml(html):
    """The document without what HTML has and XML has not."""
    return re.sub(r"<meta [^>]*>", "", html.removeprefix("<!doctype html>"))


@pytest.mark.parametrize(
    "marks",
    [
        [],
        [mark(1)],
        [mark(n) for n in range(400)],
        [mark(n, step=timedelta(days=40)) for n in range(100)],
        [mark(n, step=timedelta(milliseconds=1), size=10**12) for n in range(3)],
        [mark(1, state=State.REQUESTED, size=0)],
    ],
)
def test_a_page_is_well_formed_and_has_headings_and_labels(marks):
    root = ET.fromstring(as_xml(page(facts(marks))))
    assert root.get("lang") == "en"
    assert len(root.findall(".//h1")) == 1
    for section in root.iter("section"):
        named = section.get("aria-labelledby")
        assert [h.get("id") for h in section.findall("h2")] == [named]
    for svg in root.iter("svg"):
        assert svg.get("aria-label") or svg.get("aria-hidden") == "true"
    for table in root.iter("table"):
        assert table.find("caption").text
        assert all(th.get("scope") == "col" for th in table.iter("th"))


def test_every_instant_is_in_the_picture_and_what_is_not_completed_is_a_ring():
    marks = [mark(n, lane) for n, lane in enumerate(Lane)] + [mark(9, state=State.INFLIGHT)]
    root = ET.fromstring(timeline_picture(marks))
    circles = list(root.iter("circle"))
    assert len(circles) == len(marks)
    assert [c.find("title").text.split()[0] for c in circles if "ring" in c.get("class").split()] == [
        marks[-1].instant.time
    ]
    assert [t.text for t in root.iter("text") if t.get("class") == "title"] == [lane.value for lane in Lane]
    later = [float(c.get("cx")) for c in circles if "writes" in c.get("class")]
    assert later == sorted(later)
    assert all(0 <= x <= 1000 for x in later)
    # From the first instant at the left end to the last one at the right end.
    places = [float(c.get("cx")) for c in circles]
    assert (min(places), max(places)) == (20, 980)


def test_a_mark_says_what_its_instant_did():
    silent = replace(mark(2), inserted=0, updated=0, deleted=0, files=0)
    root = ET.fromstring(timeline_picture([mark(3), silent]))
    assert [circle.find("title").text.partition(" ")[2] for circle in root.iter("circle")] == [
        "upsert; 3 inserted; 1 updated; 2 files, 1.0 KB",
        "upsert",
    ]


def test_a_larger_mark_wrote_more():
    sizes = [0, 1000, 10**6, 10**9]
    root = ET.fromstring(timeline_picture([mark(n, size=size) for n, size in enumerate(sizes)]))
    radii = [float(circle.get("r")) for circle in root.iter("circle")]
    assert radii == sorted(set(radii))


@pytest.mark.parametrize(
    ("step", "ticks"),
    [
        (timedelta(seconds=1), ["12:00:02", "12:00:04", "12:00:06", "12:00:08", "12:00:10"]),
        (timedelta(hours=1), ["02-28 14:00", "02-28 16:00", "02-28 18:00", "02-28 20:00", "02-28 22:00"]),
        (timedelta(days=1), ["2026-03-02", "2026-03-04", "2026-03-06", "2026-03-08", "2026-03-10"]),
    ],
)
def test_the_axis_has_a_few_round_moments(step, ticks):
    root = ET.fromstring(timeline_picture([mark(n, step=step) for n in range(11)]))
    assert [t.text for t in root.iter("text") if t.get("class") in ("axis", "last")] == ticks


def test_bars_are_as_tall_as_commits_are_large():
    root, scale = map(ET.fromstring, commit_bars([mark(1, size=100), mark(2, size=400), mark(3, size=0)]))
    small, large = (float(rect.get("height")) for rect in root.iter("rect"))
    assert large == pytest.approx(4 * small)
    assert [t.text for t in scale.iter("text")] == ["200 B", "400 B"]
    tops = {line.get("y1") for line in root.iter("line")}
    assert len(tops) == 3


def test_the_scale_stays_beside_the_bars_and_a_picture_that_scrolls_says_so():
    bars, scale = commit_bars([mark(1, size=100)])
    html = page(facts([mark(1, size=100)]))
    assert f'<div class="scaled"><div class="beside">{scale}</div><div class="scrolls newest"' in html
    assert html.count('<p class="hint">') == html.count('class="scrolls newest"') == 2
    # In one picture both were 70 and 930 of 1,000 wide; the style sheet gives them these shares, so they are equally tall.
    sizes = [ET.fromstring(svg).get("viewBox").split()[2:] for svg in (scale, bars)]
    assert sizes == [["70", "180"], ["930", "180"]]


def test_of_many_commits_the_last_sixty_have_bars():
    root = ET.fromstring(commit_bars([mark(n) for n in range(75)])[0])
    bars = [rect.find("title").text.split()[0] for rect in root.iter("rect")]
    assert bars == [mark(n).instant.time for n in range(15, 75)]
    assert root.get("aria-label") == "bytes written by the last 60 commits"


def test_the_page_begins_with_how_old_the_newest_write_is_and_how_old_the_oldest_plan():
    marks = [mark(0), mark(30)]
    plans = [
        PendingInstant(mark(5, state=State.REQUESTED).instant, NOW - timedelta(hours=n), n, f"plan {n}") for n in (5, 2)
    ]
    html = page(facts(marks, pending=plans))
    told = " ".join(texts_of(html).split())
    assert "Latest write 23 hours ago 2026-02-28 13:00:00" in told
    assert "Pending 2 oldest 5 hours ago" in told
    assert [(row[1], row[2], row[3]) for row in cells_of(section_of(html, "Pending"))] == [
        ("5 hours ago", "5", "plan 5"),
        ("2 hours ago", "2", "plan 2"),
    ]


def test_the_table_of_instants_has_the_newest_first():
    html = page(facts([mark(n) for n in range(4)]))
    assert [row[0] for row in cells_of(section_of(html, "Timeline"))] == [mark(n).instant.time for n in (3, 2, 1, 0)]


def test_what_services_wrote_is_told_apart_from_what_writes_wrote():
    marks = [mark(1, size=4000), replace(mark(2, Lane.COMPACTION, size=6000), changed_bytes=0.0)]
    html = page(facts(marks))
    assert "Changed rows took 4.0 KB" in texts_of(html)
    assert "writes wrote 4.0 KB, compaction and clustering 6.0 KB." in texts_of(html)
    assert "Write amplification 2.5 ×" in " ".join(texts_of(html).split())


def test_bars_of_logs_begin_where_those_of_base_files_end():
    there = [PartitionFacts("large", 1, 60, 1, 40), PartitionFacts("small", 1, 10, 1, 20)]
    section = section_of(page(facts([mark(1)], partitions=there)), "Partitions")
    bars = [(float(bar.get("x")), float(bar.get("width"))) for bar in section.iter("rect")]
    assert bars == [(0, 60), (60, 40), (0, 10), (10, 20)]


def test_bars_of_sizes_are_as_wide_as_there_are_slices():
    section = section_of(page(replace(facts([mark(1)]), sizes=(1, 4, 0, 0, 0, 0, 0, 2))), "Sizes of file slices")
    assert [float(bar.get("width")) for bar in section.iter("rect") if bar.get("class") == "writes"] == [
        *(25, 100, 0, 0, 0, 0, 0),
        50,
    ]


def consumer(name, commits, seconds, *, position="20260301110000000", moved=timedelta(hours=3)):
    return ConsumerFacts(name, position, NOW - moved, ConsumerLag(commits, seconds))


def section_of(html, title):
    (found,) = (each for each in ET.fromstring(as_xml(html)).iter("section") if each.find("h2").text == title)
    return found


def cells_of(section):
    return [["".join(cell.itertext()) for cell in row.iter("td")] for row in section.find(".//tbody").iter("tr")]


def test_consumers_stand_there_with_their_lag_the_furthest_behind_first():
    there = [consumer("b", 0, 0), consumer("a", 3, 90.0), consumer("new", 12, 7200.0, position=None)]
    html = page(replace(facts([mark(1)]), consumers=there))
    section = section_of(html, "Consumers")
    assert cells_of(section) == [
        ["new", "12", "2 hours ago", "(beginning)", "3 hours ago", ""],
        ["a", "3", "1 minute ago", "20260301110000000", "3 hours ago", ""],
        ["b", "0", "up to date", "20260301110000000", "3 hours ago", ""],
    ]
    assert [float(bar.get("width")) for bar in section.iter("rect") if bar.get("class") == "writes"] == [100, 25, 0]
    assert section.find(".//caption").text == "3 named consumers, the furthest behind first"
    assert "Consumers 3 2 behind, by up to 12 commits" in " ".join(texts_of(html).split())


def test_consumers_that_are_up_to_date_need_no_bar():
    html = page(replace(facts([mark(1)]), consumers=[consumer("only", 0, 0)]))
    assert "Consumers 1 up to date" in " ".join(texts_of(html).split())
    assert cells_of(section_of(html, "Consumers"))[0][1:3] == ["0", "up to date"]


def test_of_a_table_without_consumers_nothing_is_said_of_them():
    assert "onsumer" not in texts_of(page(facts([mark(1)])))


def test_long_lists_are_cut_and_say_so():
    many = [PartitionFacts(f"p{n:05d}", 1, n, 0, 0) for n in range(PARTITIONS_SHOWN + 30)]
    told = texts_of(page(facts([mark(n) for n in range(INSTANTS_SHOWN + 7)], partitions=many)))
    assert "30 smaller partitions" in told
    assert f"p{PARTITIONS_SHOWN + 29:05d}" in told
    assert "p00003" not in told
    assert f"{INSTANTS_SHOWN} instants, the newest of {INSTANTS_SHOWN + 7}" in told


def test_the_command_writes_the_file(tmp_path, capsys):
    path, out = FOLDER / "v6_mor_pending_compaction" / "table", tmp_path / "report.html"
    assert main(["report", str(path), "-o", str(out)]) == DONE
    assert str(out) in capsys.readouterr().out
    told = texts_of(out.read_text(encoding="utf-8"))
    assert all(partition in told for partition in hoodie.open_table(path).partitions())
    assert "hoodie compaction run /" in told
    assert main(["report", str(path), "-o", str(tmp_path / "not" / "there.html")]) == FAILED
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.skipif(BROWSER is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [320, 390, 900, 1400])
@pytest.mark.parametrize("name", ["v6_mor_pending_compaction", "v6_replace"])
def test_a_browser_shows_it_without_a_sideways_scroll(tmp_path, width, name):
    out, path = tmp_path / "report.html", tmp_path / "table"
    shutil.copytree(FOLDER / name / "table", path)
    if name == "v6_replace":
        hoodie.open_table(path).consumer("a-rather-long-name." + "x" * 80)
    assert main(["report", str(path), "-o", str(out)]) == DONE
    html = out.read_text(encoding="utf-8")
    # The page runs nothing; the test's own script needs the rule gone that says so.
    measured = re.sub(r"<meta http-equiv[^>]*>", "", html).replace(
        "</body>",
        "<script>const all = document.documentElement, pictures = [...document.querySelectorAll('.newest')];"
        "parent.postMessage(JSON.stringify([innerWidth, all.scrollWidth <= innerWidth, document.querySelectorAll('section').length,"
        "pictures.every(p => p.scrollWidth <= p.clientWidth || p.scrollLeft === 0), pictures.length,"
        "document.querySelector('.lanes').checkVisibility(), pictures[0].scrollWidth > pictures[0].clientWidth"
        "]), '*')</script></body>",
    )
    out.write_text(measured, encoding="utf-8")
    # No window of a browser is as narrow as a phone, but a frame in one is.
    frame = tmp_path / "frame.html"
    frame.write_text(
        "<script>onmessage = told => { document.title = told.data }</script>"
        f'<iframe src="{out.name}" style="border: 0; width: {width}px; height: 850px"></iframe>',
        encoding="utf-8",
    )
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--no-first-run",
        "--disable-sync",
    ]
    shown = subprocess.run(
        [
            BROWSER,
            *options,
            f"--user-data-dir={tmp_path / 'profile'}",
            f"--window-size={width + 100},900",
            "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=HUNG_S,
        check=True,
    )
    title = re.search(r"<title>(.*?)</title>", shown.stdout)
    shown_width, fits, sections, newest, pictures, named, cut = json.loads(title[1])
    assert shown_width == width
    assert fits
    assert sections == html.count("<section")
    assert newest
    assert pictures == 2
    assert named or not cut, "the names in the picture may be out of sight"
    assert named == (width < 800)
