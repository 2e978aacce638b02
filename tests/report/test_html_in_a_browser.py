"""The HTML report in a real browser: without errors or requests, accessible, usable by keyboard and on a phone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from mcp_bindgen.diff import Finding
from tests.harness.browser import DESKTOP, PHONE, check_accessibility, chromium, visiting
from tests.harness.example_comparison import ADDED, EVIL, FINDINGS, GENRE, GONE, LIBRARIES, REQUIRED, WIDENED, hostile
from tests.report.test_html import PAGES, html

pytestmark = pytest.mark.full

WINDOWS: list[tuple[tuple[int, int], Literal["light", "dark"]]] = [(DESKTOP, "light"), (PHONE, "dark")]
"""Each size and each colour scheme once, as they are independent."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("report"), html(LIBRARIES))


@pytest.fixture
def report(browser: Browser, file: Path) -> Iterator[Page]:
    """Yield the page about the libraries; the test fails if the page logs an error or sends a request."""
    with visiting(browser, file) as visit:
        yield visit.page
        assert visit.complaints == []
        assert visit.requests == []


def saved(folder: Path, page: str) -> Path:
    path = folder / "report.html"
    path.write_text(page, "utf-8")
    return path


def shown(page: Page) -> list[str]:
    """Return the fingerprints of the visible findings."""
    found: list[str] = page.locator(".finding:visible").evaluate_all("all => all.map(one => one.id)")
    return found


def prints(*findings: Finding) -> list[str]:
    return [finding.fingerprint for finding in findings]


def place(page: Page) -> str:
    """Return the fragment of the address."""
    hash: str = page.evaluate("location.hash")
    return hash.removeprefix("#")


@pytest.mark.parametrize("kind", PAGES)
def test_pages_log_no_errors_send_no_requests_and_fit_a_phone(browser: Browser, tmp_path: Path, kind: str) -> None:
    page = saved(tmp_path, PAGES[kind]())
    for size, scheme in WINDOWS:
        with visiting(browser, page, size=size, scheme=scheme) as visit:
            visit.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
            assert visit.page.evaluate("document.documentElement.scrollWidth") <= size[0]
            assert visit.page.evaluate("typeof boo") == "undefined"
            assert visit.complaints == []
            assert visit.requests == []


@pytest.mark.parametrize(("size", "scheme"), WINDOWS, ids=["desktop", "phone"])
def test_pages_are_accessible(
    browser: Browser, file: Path, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    """Pages keep the rules of axe-core, which include names of controls, landmarks and contrast."""
    with visiting(browser, file, size=size, scheme=scheme) as visit:
        visit.page.locator("details").evaluate_all("all => all.forEach(one => one.open = true)")
        results = check_accessibility(visit.page)
        assert any(rule["id"] == "color-contrast" for rule in results.response["passes"])


def test_the_page_follows_the_preferred_colour_scheme(browser: Browser, file: Path) -> None:
    pages: list[str] = []
    for scheme in ("light", "dark"):
        with visiting(browser, file, scheme=scheme) as visit:
            pages.append(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    brightness = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in pages]
    assert brightness[0] > 700
    assert brightness[1] < 100


def test_the_page_opens_with_the_verdicts(report: Page) -> None:
    top = report.get_by_role("banner")
    expect(top.get_by_role("heading", level=1)).to_have_text(re.compile(r"2030-01-01\s+→\s+2031-01-01"))
    expect(top).to_contain_text("Cannot talk")
    expect(top).to_contain_text("Works with limits")
    expect(top.get_by_text("Queries need a language.")).to_be_in_viewport()
    expect(top.get_by_role("link", name="3 breaking")).to_be_in_viewport()


def test_a_finding_shows_its_details_and_evidence(report: Page) -> None:
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


def test_search_filters_while_the_user_types(report: Page) -> None:
    status = report.get_by_role("status")
    expect(status).to_have_text("7 findings")
    report.get_by_role("searchbox").fill("genre ENUM")
    assert shown(report) == prints(GENRE)
    expect(status).to_have_text("1 of 7 findings")
    assert place(report) == "q=genre+ENUM"
    assert report.locator("nav li:visible").all_inner_texts() == ["Members and types\n1", "Definitions"]
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
def test_each_filter_shows_only_matching_findings(report: Page, label: str, option: str, left: list[Finding]) -> None:
    report.get_by_label(label).select_option(option)
    assert shown(report) == prints(*left)
    expect(report.get_by_role("status")).to_have_text(f"{len(left)} of 7 findings")


def test_sender_and_method_filters_apply_to_the_same_message(report: Page) -> None:
    report.get_by_label("Method").select_option("books/find")
    assert shown(report) == prints(REQUIRED, WIDENED, GENRE)
    report.get_by_label("Sender").select_option("server")
    assert shown(report) == []


def test_the_url_fragment_contains_the_filters(browser: Browser, file: Path, report: Page) -> None:
    report.get_by_label("Severity").select_option("breaking")
    report.get_by_label("Method").select_option("books/find")
    report.get_by_role("searchbox").fill("title")
    with visiting(browser, file, place(report)) as other:
        assert shown(other.page) == prints(WIDENED)
        expect(other.page.get_by_label("Method")).to_have_value("books/find")
    with visiting(browser, file, "severity=unheard&q=genre&nonsense=1") as other:
        assert shown(other.page) == prints(GENRE)
        expect(other.page.get_by_label("Severity")).to_have_value("")


def test_a_click_on_a_count_filters_the_findings(report: Page) -> None:
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


def test_a_link_to_a_hidden_finding_clears_the_filters(report: Page) -> None:
    report.get_by_role("searchbox").fill("genre")
    report.evaluate(f"location.hash = '{GONE.fingerprint}'")
    expect(report.locator(f"[id='{GONE.fingerprint}']")).to_be_focused()
    expect(report.get_by_role("status")).to_have_text("7 findings")


def test_findings_and_definitions_link_to_each_other(report: Page) -> None:
    report.locator(f"[id='{WIDENED.fingerprint}']").get_by_role("link", name="Book", exact=True).click()
    book = report.locator("[id='definition.Book']")
    expect(book).to_be_focused()
    expect(book).to_contain_text("title: string | Member")
    book.get_by_role("link", name="Shelf").click()  # only its description changed
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


def test_unchanged_definitions_are_hidden_until_a_link_opens_them(report: Page) -> None:
    unchanged = report.locator("[id='definition.FindRequest']")
    expect(unchanged).to_be_hidden()
    report.evaluate("location.hash = 'definition.FindRequest'")
    expect(unchanged).to_be_visible()
    expect(unchanged).to_be_in_viewport()


def test_the_page_works_with_the_keyboard(report: Page) -> None:
    keys = report.keyboard
    keys.press("/")
    expect(report.get_by_role("searchbox")).to_be_focused()
    keys.type("book/j")  # the search box takes shortcuts as text
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


def test_the_first_tab_stop_is_the_skip_link(report: Page) -> None:
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


def test_the_page_is_readable_without_scripts(browser: Browser, file: Path) -> None:
    with visiting(browser, file, REQUIRED.fingerprint, scripts=False) as visit:
        assert len(visit.page.locator(".finding:visible").all()) == len(FINDINGS)
        for useless in (visit.page.locator("form"), visit.page.get_by_role("button", name="Copy").first):
            expect(useless).to_be_hidden()
        expect(visit.page.locator(f"[id='{REQUIRED.fingerprint}']")).to_be_in_viewport()


def test_the_printed_page_has_no_controls(report: Page) -> None:
    report.emulate_media(media="print")
    for useless in (report.locator("form"), report.locator("nav"), report.get_by_role("button", name="Copy").first):
        expect(useless).to_be_hidden()
    assert len(report.locator(".finding:visible").all()) == len(FINDINGS)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return saved(tmp_path_factory.mktemp("large"), PAGES["real"]())


def test_a_large_page_opens_with_the_lifecycle_and_folds_the_rest(browser: Browser, large: Path) -> None:
    with visiting(browser, large) as visit:
        page, groups = visit.page, visit.page.locator(".group")
        assert page.evaluate("document.documentElement.scrollHeight") < 20_000
        assert groups.evaluate_all("all => all.map(one => one.open)") == [True, *[False] * (groups.count() - 1)]
        expect(groups.first).to_contain_text("client->server request initialize")
        methods = groups.nth(1).locator("summary").first
        expect(methods).to_contain_text(re.compile(r"Methods.*\d+ breaking"))
        methods.focus()
        page.keyboard.press("Enter")
        expect(groups.nth(1).locator(".finding").first).to_be_visible()
        page.get_by_role("searchbox").fill("completion.values")
        (left,) = shown(page)
        expect(page.locator(".group:visible")).to_have_count(1)
        page.keyboard.press("Escape")
        expect(page.locator(f"[id='{left}']")).to_be_hidden()  # after the event that clears the form
        page.evaluate(f"location.hash = '{left}'")
        expect(page.locator(f"[id='{left}']")).to_be_focused()
        last = groups.nth(1).locator(".finding").first
        groups.first.locator(".finding").last.focus()
        page.keyboard.press("j")
        expect(last).to_be_focused()


@pytest.mark.parametrize("scripts", [True, False])
def test_a_printed_large_page_is_unfolded(browser: Browser, large: Path, scripts: bool) -> None:
    with visiting(browser, large, scripts=scripts) as visit:
        visit.page.emulate_media(media="print")
        assert len(shown(visit.page) if scripts else visit.page.locator(".finding:visible").all()) > 100
        expect(visit.page.locator("[id='definition.CallToolResult'] .lines")).to_be_visible()


def test_a_link_into_a_folded_group_works_without_scripts(browser: Browser, large: Path) -> None:
    links = re.findall(r'<article class="finding [^"]*" id="(\w+)"', large.read_text("utf-8"))
    with visiting(browser, large, links[-1], scripts=False) as visit:
        expect(visit.page.locator(f"[id='{links[-1]}']")).to_be_in_viewport()


def test_a_step_without_matching_findings_is_hidden(browser: Browser, tmp_path: Path) -> None:
    changed = replace(LIBRARIES, findings=(GENRE,))
    with visiting(browser, saved(tmp_path, html(LIBRARIES, changed)), "severity=breaking") as visit:
        steps = visit.page.get_by_role("heading", name="Findings", level=2)
        expect(steps).to_have_count(1)
        visit.page.keyboard.press("Escape")
        expect(steps).to_have_count(2)


def test_a_link_to_a_definition_with_a_hostile_name_works(browser: Browser, tmp_path: Path) -> None:
    with visiting(browser, saved(tmp_path, html(hostile()))) as visit:
        visit.page.locator(".finding").first.locator(".foot a[href*='definition']").click()
        assert visit.page.evaluate("document.activeElement.id") == f"definition.{quote(EVIL, safe='/')}"
        assert visit.complaints == []
