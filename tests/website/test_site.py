"""The built site in a browser: links, accessibility, diagrams, and no request to another host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal
from urllib.parse import urljoin, urlsplit

import pytest
from playwright.sync_api import Browser, Page
from website.build import SITE
from website.sources import ROOT

from tests.harness.browser import check_accessibility, chromium
from tests.harness.commands import SOURCE_ROOTS, execute
from tests.harness.file_server import FileServer, serving
from tests.harness.shared import alone, shared_folder

pytestmark = pytest.mark.full

DESKTOP, PHONE = (1280, 900), (390, 844)
PALE = "rgba(0, 0, 0, 0.07)", "rgba(255, 255, 255, 0.07)"
SAMPLE = ("changes/2025-03-26/", "atlas/methods/tools-call/", "reference/cli/")
_ID = re.compile(r"""\bid=["']?([^"'\s>]+)""")
_HREF = re.compile(r"""\bhref=["']?([^"'\s>]+)""")
_SOURCES = {".md", ".py", ".toml", ".json", ".css", ".js", ".html"}
_TYPES = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".json": "application/json"}


@pytest.fixture(scope="module", autouse=True)
def site(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Build the site if a source is newer; the first process of a run decides, as all processes read its build."""
    checked = shared_folder(tmp_path_factory) / "site-is-built"
    with alone(checked) as is_first:
        if is_first:
            index = SITE / "llms.txt"
            if not index.is_file() or index.stat().st_mtime < max(path.stat().st_mtime for path in _sources()):
                execute("make", "docs", cwd=ROOT, code=0)
            checked.touch()


def _sources() -> Iterator[Path]:
    yield ROOT / "zensical.toml"
    for root in ("docs", "website", "schema", *SOURCE_ROOTS):
        for path in (ROOT / root).rglob("*"):
            if path.suffix in _SOURCES and "node_modules" not in path.parts:
                yield path


def _file(path: str) -> Path:
    return SITE / (path.lstrip("/") + ("index.html" if path.endswith("/") else ""))


@cache
def _ids(file: Path) -> set[str]:
    return set(_ID.findall(file.read_text("utf-8")))


def test_every_link_leads_to_an_existing_page_and_anchor() -> None:
    broken: set[str] = set()
    count = 0
    for file in SITE.rglob("index.html"):
        here = f"http://site/{file.relative_to(SITE).as_posix().removesuffix('index.html')}"
        for target in set(_HREF.findall(file.read_text("utf-8"))):
            place = urlsplit(urljoin(here, target))
            if place.netloc == "site":
                count += 1
                found = _file(place.path)
                if not found.is_file() or (place.fragment and place.fragment not in _ids(found)):
                    broken.add(f"{here}: {target}")
    assert broken == set()
    assert count > 10_000


@pytest.fixture(scope="module")
def server() -> Iterator[FileServer]:
    with serving() as found:
        for file in SITE.rglob("*"):
            if file.is_file() and file.suffix in _TYPES:
                path = "/" + file.relative_to(SITE).as_posix().removesuffix("index.html")
                found.file(path, file.read_bytes(), Content_Type=_TYPES[file.suffix])
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.mark.parametrize(("size", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")])
def test_pages_are_accessible_and_send_no_request_to_another_host(
    browser: Browser, server: FileServer, size: tuple[int, int], scheme: Literal["light", "dark"]
) -> None:
    context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page: Page = context.new_page()
    asked: list[str] = []
    failures: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: failures.append(str(error)))
    try:
        for path in SAMPLE:
            page.goto(server.url(f"/{path}"))
            assert page.locator("header").get_by_role("link", name="Repository").is_visible()
            for button in page.locator(".md-code__button").all():
                assert button.evaluate("each => getComputedStyle(each).color") not in PALE, "copy buttons are visible"
            if "methods" in path:
                page.wait_for_selector("html[data-diagrams]")
                assert page.locator(".diagram svg").count() > 1
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
            check_accessibility(page)
    finally:
        context.close()
    assert failures == []
    assert [url for url in asked if not url.startswith((server.url("/"), "data:", "blob:"))] == []
