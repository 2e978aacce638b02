"""The HTML report, as text and in a real browser: complete, quiet, safe, usable by keyboard and on a phone."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from mcp_bindgen.diff import Comparison, Finding, compare
from mcp_bindgen.protocol.build import build
from mcp_bindgen.report.comparison_html import comparison_html
from mcp_bindgen.spec import Store
from tests.support.browser import DESKTOP, PHONE, Outline, chromium, visiting
from tests.support.effort import cases
from tests.support.example_comparison import (
    ADDED,
    EVIL,
    FINDINGS,
    GENRE,
    GONE,
    LIBRARIES,
    REQUIRED,
    SAME,
    WIDENED,
    hostile,
)

REVISIONS = list(Store().pins)
LOADING = {"audio", "base", "embed", "frame", "iframe", "img", "link", "object", "script", "style", "svg", "video"}
"""Elements that can make a browser load something."""

LARGEST = 600_000
"""Bytes of the page about the greatest change so far."""


def html(*comparisons: Comparison) -> str:
    return comparison_html(comparisons)


@cache
def real(*revisions: str) -> str:
    """The page about a chain of real revisions."""
    protocols = [build(Store().effective(revision)) for revision in revisions]
    return html(*(compare(old, new) for old, new in pairwise(protocols)))


PAGES = {
    "by hand": lambda: html(LIBRARIES),
    "nothing": lambda: html(SAME),
    "chain": lambda: html(LIBRARIES, SAME, LIBRARIES),
    "hostile": lambda: html(hostile()),
    "real": lambda: real(*REVISIONS[-2:]),
    "real chain": lambda: real(*REVISIONS),
}


@pytest.fixture(scope="module", params=PAGES)
def page(request: pytest.FixtureRequest) -> str:
    return PAGES[request.param]()


# --- the text of the page --------------------------------------------------------------------------------------


def test_a_page_needs_nothing_else(page: str) -> None:
    outline = Outline(page)
    assert not outline.values("src")
    assert {link[:1] for link in outline.values("href")} - {"#"} == {"d"}  # the empty icon, data:,
    assert sorted(tag for tag, _ in outline.elements if tag in LOADING) == ["link", "script", "style"]
    assert "url(" not in outline.inline["style"]
    assert "@import" not in outline.inline["style"]


def test_the_policy_admits_our_script_and_styles_and_nothing_else(page: str) -> None:
    outline = Outline(page)
    policy = next(attributes["content"] for _, attributes in outline.elements if "http-equiv" in attributes)
    hashes = {tag: b64encode(sha256(text.encode()).digest()).decode() for tag, text in outline.inline.items()}
    assert policy is not None
    assert policy.split("; ") == [
        "default-src 'none'",
        f"script-src 'sha256-{hashes['script']}'",
        f"style-src 'sha256-{hashes['style']}'",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    assert not outline.values("style")
    assert not [name for _, attributes in outline.elements for name in attributes if name.startswith("on")]


def test_every_link_has_a_target(page: str) -> None:
    outline = Outline(page)
    places = outline.values("id")
    assert [place for place, count in Counter(places).items() if count > 1] == []
    links = {link[1:] for link in outline.values("href") if link.startswith("#") and "=" not in link}
    assert links <= set(places)
    assert {label for value in outline.values("aria-labelledby") for label in value.split()} <= set(places)


def test_headings_skip_no_level(page: str) -> None:
    levels = [int(tag[1]) for tag, _ in Outline(page).elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


def test_every_finding_has_its_place() -> None:
    places = Outline(html(LIBRARIES)).values("id")
    assert {finding.fingerprint for finding in FINDINGS} <= set(places)


def test_in_a_chain_the_same_finding_twice_has_two_places() -> None:
    places = Outline(html(LIBRARIES, LIBRARIES)).values("id")
    assert {REQUIRED.fingerprint, f"{REQUIRED.fingerprint}-2"} <= set(places)


def test_hostile_words_stay_words() -> None:
    outline = Outline(html(hostile()))
    assert {tag for tag, _ in outline.elements} <= {tag for tag, _ in Outline(html(LIBRARIES)).elements}
    assert "boo" not in "".join(outline.inline.values())
    assert "49" not in html(replace(hostile(), findings=()))


def test_the_greatest_change_is_a_small_page() -> None:
    assert len(real(*REVISIONS[-2:]).encode()) < LARGEST


def test_the_same_comparison_gives_the_same_page() -> None:
    assert html(LIBRARIES) == html(LIBRARIES)


# --- in a browser ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("report"), html(LIBRARIES))


@pytest.fixture
def report(browser: Browser, file: Path) -> Iterator[Page]:
    """The page about the libraries; a test fails if the page complains or wants something from a network."""
    with visiting(browser, file) as visit:
        yield visit.page
        assert visit.complaints == []
        assert visit.requests == []


def saved(folder: Path, page: str) -> Path:
    path = folder / "report.html"
    path.write_text(page, "utf-8")
    return path


def shown(page: Page) -> list[str]:
    """The fingerprints of the findings that can be seen."""
    found: list[str] = page.locator(".finding:visible").evaluate_all("all => all.map(one => one.id)")
    return found


def prints(*findings: Finding) -> list[str]:
    return [finding.fingerprint for finding in findings]


def place(page: Page) -> str:
    """What the address says behind the `#`."""
    hash: str = page.evaluate("location.hash")
    return hash.removeprefix("#")


@pytest.mark.parametrize("kind", cases(PAGES, quick=["hostile"]))
@pytest.mark.parametrize("scheme", cases(["light", "dark"], quick=["light"]))
def test_pages_are_quiet_and_fit_a_phone(
    browser: Browser, tmp_path: Path, kind: str, scheme: Literal["light", "dark"]
) -> None:
    for size in (DESKTOP, PHONE):
        with visiting(browser, saved(tmp_path, PAGES[kind]()), size=size, scheme=scheme) as visit:
            visit.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert visit.page.evaluate("typeof boo") == "undefined"
            assert visit.complaints == []
            assert visit.requests == []


@pytest.mark.parametrize("size", [DESKTOP, pytest.param(PHONE, marks=pytest.mark.full)], ids=["desktop", "phone"])
@pytest.mark.parametrize("scheme", cases(["light", "dark"], quick=["dark"]))
def test_pages_are_accessible(
    browser: Browser, file: Path, scheme: Literal["light", "dark"], size: tuple[int, int]
) -> None:
    """By the rules of axe-core, which include names of controls, landmarks and contrast."""
    with visiting(browser, file, size=size, scheme=scheme) as visit:
        visit.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        results: Any = Axe().run(visit.page)
        assert results.violations_count == 0, results.generate_report()
        assert any(rule["id"] == "color-contrast" for rule in results.response["passes"])


def test_light_and_dark_are_what_the_reader_prefers(browser: Browser, file: Path) -> None:
    pages: list[str] = []
    for scheme in ("light", "dark"):
        with visiting(browser, file, scheme=scheme) as visit:
            pages.append(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in pages]
    assert brightness[0] > 700
    assert brightness[1] < 100


def test_it_opens_with_the_verdicts(report: Page) -> None:
    top = report.get_by_role("banner")
    expect(top.get_by_role("heading", level=1)).to_have_text(re.compile(r"2030-01-01\s+→\s+2031-01-01"))
    expect(top).to_contain_text("Cannot talk")
    expect(top).to_contain_text("Works with limits")
    expect(top.get_by_text("Queries need a language.")).to_be_in_viewport()
    expect(top.get_by_role("link", name="3 breaking")).to_be_in_viewport()


def test_a_finding_says_everything_in_words(report: Page) -> None:
    finding = report.locator(f"[id='{REQUIRED.fingerprint}']")
    for words in (
        "breaking",
        "FindRequest.params.language",
        "field-added-required",
        "on the wire",
        "Old client, new server: breaks",
        "New client, old server: ignored",
        "client → server request books/find",
        "Always send language.",
        REQUIRED.fingerprint,
    ):
        expect(finding).to_contain_text(words)
    evidence = finding.get_by_text("2030-01-01 accepts it, 2031-01-01 rejects it")
    expect(finding.get_by_text('"title": "Emma"')).to_be_hidden()
    evidence.click()
    expect(finding.get_by_text('"title": "Emma"')).to_be_visible()
    gated = report.locator(f"[id='{ADDED.fingerprint}']")
    expect(gated).to_contain_text("Gated by server.lending")
    expect(gated).to_contain_text("No evidence: a method has no value of its own")


def test_search_narrows_as_one_types(report: Page) -> None:
    status = report.get_by_role("status")
    expect(status).to_have_text("7 findings")
    report.get_by_role("searchbox").fill("genre ENUM")
    assert shown(report) == prints(GENRE)
    expect(status).to_have_text("1 of 7 findings")
    assert place(report) == "q=genre+ENUM"
    assert report.locator("nav li:visible").all_inner_texts() == ["Genre\n1", "Definitions"]
    report.get_by_role("searchbox").fill("no such thing")
    assert shown(report) == []
    report.get_by_role("button", name="Clear the filters").click()
    expect(status).to_have_text("7 findings")
    assert place(report) == ""


@pytest.mark.parametrize(
    ("label", "option", "left"),
    [
        ("Severity", "breaking", [REQUIRED, ADDED, WIDENED]),
        ("Sender", "server", [WIDENED, GENRE]),
        ("Method", "books/lend", [ADDED, WIDENED]),
        ("Plane", "in documentation", [FINDINGS[-1]]),
    ],
)
def test_filters(report: Page, label: str, option: str, left: list[Finding]) -> None:
    report.get_by_label(label).select_option(option)
    assert shown(report) == prints(*left)
    expect(report.get_by_role("status")).to_have_text(f"{len(left)} of 7 findings")


def test_role_and_method_are_those_of_the_same_message(report: Page) -> None:
    report.get_by_label("Method").select_option("books/find")
    assert shown(report) == prints(REQUIRED, WIDENED, GENRE)
    report.get_by_label("Sender").select_option("server")
    assert shown(report) == []


def test_an_address_holds_the_filters(browser: Browser, file: Path, report: Page) -> None:
    report.get_by_label("Severity").select_option("breaking")
    report.get_by_label("Method").select_option("books/find")
    report.get_by_role("searchbox").fill("title")
    with visiting(browser, file, place(report)) as other:
        assert shown(other.page) == prints(WIDENED)
        expect(other.page.get_by_label("Method")).to_have_value("books/find")
    with visiting(browser, file, "severity=unheard&q=genre&nonsense=1") as other:
        assert shown(other.page) == prints(GENRE)
        expect(other.page.get_by_label("Severity")).to_have_value("")


def test_counts_are_filters(report: Page) -> None:
    report.get_by_role("link", name="1 risky").click()
    expect(report.get_by_role("status")).to_have_text("1 of 7 findings")
    assert shown(report) == prints(GENRE)
    report.go_back()
    expect(report.get_by_role("status")).to_have_text("7 findings")


def test_a_deep_link_opens_its_finding(browser: Browser, file: Path) -> None:
    with visiting(browser, file, REQUIRED.fingerprint, size=(1280, 300)) as visit:
        finding = visit.page.locator(f"[id='{REQUIRED.fingerprint}']")
        expect(finding.get_by_role("heading")).to_be_in_viewport(ratio=1)
        expect(finding).to_be_focused()
        expect(finding.get_by_text('"title": "Emma"')).to_be_visible()


def test_a_link_to_what_a_filter_hides_shows_it(report: Page) -> None:
    report.get_by_role("searchbox").fill("genre")
    report.evaluate(f"location.hash = '{GONE.fingerprint}'")
    expect(report.locator(f"[id='{GONE.fingerprint}']")).to_be_focused()
    expect(report.get_by_role("status")).to_have_text("7 findings")


def test_findings_and_definitions_link_to_each_other(report: Page) -> None:
    report.locator(f"[id='{WIDENED.fingerprint}']").get_by_role("link", name="Book", exact=True).click()
    book = report.locator("[id='definition.Book']")
    expect(book).to_be_focused()
    expect(book).to_contain_text("title: string | Member")
    book.get_by_role("link", name="Shelf").click()  # nothing changed in it but words
    expect(report.locator("[id='definition.Shelf']")).to_be_focused()
    report.go_back()
    book.get_by_role("link", name="Member").click()
    expect(report.locator("[id='definition.Member']")).to_be_focused()
    report.go_back()
    book.get_by_role("link", name="Book.title").click()
    expect(report.locator(f"[id='{WIDENED.fingerprint}']")).to_be_focused()


def test_definitions_stand_side_by_side_with_changes_marked(report: Page) -> None:
    book, genre = report.locator("[id='definition.Book']"), report.locator("[id='definition.Genre']")
    assert book.locator("del").all_inner_texts() == ["title: string"]
    assert book.locator("ins").all_inner_texts() == ["title: string | Member"]
    was, now = book.locator("del").bounding_box(), book.locator("ins").bounding_box()
    assert was is not None
    assert now is not None
    assert was["y"] == now["y"]
    assert was["x"] + was["width"] < now["x"]
    assert genre.locator("li > :is(del, ins)").all_inner_texts() == ['| "science"']
    expect(report.locator("[id='definition.Member']")).to_contain_text("renamed from Reader")
    expect(report.locator("[id='definition.old.Stamp']")).to_contain_text("gone")
    expect(report.locator("[id='definition.LendRequest']")).to_contain_text("new")


def test_unchanged_definitions_are_out_of_the_way_until_a_link_leads_there(report: Page) -> None:
    unchanged = report.locator("[id='definition.FindRequest']")
    expect(unchanged).to_be_hidden()
    report.evaluate("location.hash = 'definition.FindRequest'")
    expect(unchanged).to_be_visible()
    expect(unchanged).to_be_in_viewport()


def test_everything_works_from_the_keyboard(report: Page) -> None:
    keys = report.keyboard
    keys.press("/")
    expect(report.get_by_role("searchbox")).to_be_focused()
    keys.type("book/j")  # in the box they are letters
    expect(report.get_by_role("searchbox")).to_have_value("book/j")
    keys.press("Escape")
    expect(report.get_by_role("searchbox")).to_have_value("")
    expect(report.get_by_role("status")).to_have_text("7 findings")
    report.get_by_role("searchbox").blur()
    keys.press("j")
    first = report.locator(f"[id='{REQUIRED.fingerprint}']")
    expect(first).to_be_focused()
    assert first.evaluate("node => getComputedStyle(node).outlineStyle") == "solid"
    keys.press("Enter")
    expect(first.get_by_text('"title": "Emma"')).to_be_visible()
    keys.press("j")
    expect(report.locator(f"[id='{ADDED.fingerprint}']")).to_be_focused()
    keys.press("k")
    expect(first).to_be_focused()
    keys.press("Tab")
    expect(first.get_by_role("link", name=REQUIRED.subject)).to_be_focused()


def test_the_first_thing_to_tab_to_skips_the_rest(report: Page) -> None:
    report.keyboard.press("Tab")
    expect(report.get_by_role("link", name="Skip to the findings")).to_be_focused()
    expect(report.get_by_role("link", name="Skip to the findings")).to_be_in_viewport()


def test_a_fingerprint_can_be_copied(browser: Browser, file: Path) -> None:
    with visiting(browser, file) as visit:
        button = visit.page.locator(f"[id='{REQUIRED.fingerprint}']").locator(".copy")
        button.click()
        expect(button).to_have_text("Copied")
        visit.page.get_by_role("searchbox").press("Control+V")
        expect(visit.page.get_by_role("searchbox")).to_have_value(REQUIRED.fingerprint)


def test_without_scripts_it_is_a_page_to_read(browser: Browser, file: Path) -> None:
    with visiting(browser, file, REQUIRED.fingerprint, scripts=False) as visit:
        assert len(visit.page.locator(".finding:visible").all()) == len(FINDINGS)
        for useless in (visit.page.locator("form"), visit.page.get_by_role("button", name="Copy").first):
            expect(useless).to_be_hidden()
        expect(visit.page.locator(f"[id='{REQUIRED.fingerprint}']")).to_be_in_viewport()


def test_printed_it_is_without_controls(report: Page) -> None:
    report.emulate_media(media="print")
    for useless in (report.locator("form"), report.locator("nav"), report.get_by_role("button", name="Copy").first):
        expect(useless).to_be_hidden()
    assert len(report.locator(".finding:visible").all()) == len(FINDINGS)


def test_a_step_without_matches_is_out_of_the_way(browser: Browser, tmp_path: Path) -> None:
    changed = replace(LIBRARIES, findings=(GENRE,))
    with visiting(browser, saved(tmp_path, html(LIBRARIES, changed)), "severity=breaking") as visit:
        steps = visit.page.get_by_role("heading", name="Findings", level=2)
        expect(steps).to_have_count(1)
        visit.page.keyboard.press("Escape")
        expect(steps).to_have_count(2)


@pytest.mark.full
def test_hostile_names_can_be_linked_to(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, saved(tmp_path, html(hostile()))) as visit:
        visit.page.locator(".finding").first.locator(".foot a[href*='definition']").click()
        focused = visit.page.evaluate("document.activeElement.id")
        assert focused == f"definition.{quote(EVIL, safe='/')}"
        assert visit.complaints == []
