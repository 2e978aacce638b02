"""Headless Chromium to test pages with the keyboard, windows of any size, and light and dark colour schemes."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

NAMES = ("chromium", "chromium-browser", "google-chrome")
DESKTOP = (1280, 900)
PHONE = (360, 740)


@dataclass
class Visit:
    """A page in its own window.

    Attributes:
        page: The page.
        complaints: Errors and warnings in the console, and uncaught exceptions of scripts.
        requests: URLs of all network requests, with or without a response.
    """

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Start to collect complaints and requests."""
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._asked)

    def _heard(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "about:")):
            self.requests.append(request.url)


def check_accessibility(page: Page) -> Any:
    """Run axe on a page and assert that it finds no violation; return its results."""
    results: Any = import_module("axe_playwright_python.sync_playwright").Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    return results


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yield a running browser; skip the test if none is installed, or fail in CI."""
    from playwright.sync_api import sync_playwright

    binary = next(filter(None, map(shutil.which, NAMES)), None)
    if binary is None:
        missing = f"no browser: none of {', '.join(NAMES)} is installed"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    with sync_playwright() as driver:
        # the sandbox needs a separate user, which containers do not have; the pages are ours
        browser = driver.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visiting(
    browser: Browser,
    file: Path,
    place: str = "",
    *,
    size: tuple[int, int] = DESKTOP,
    scheme: Literal["light", "dark"] = "light",
    scripts: bool = True,
) -> Iterator[Visit]:
    """Yield the page in `file`, opened at the fragment `place` in a window of `size` CSS pixels."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, java_script_enabled=scripts
    )
    try:
        visit = Visit(context.new_page())
        visit.watch()
        visit.page.goto(file.as_uri() + (f"#{place}" if place else ""))
        yield visit
    finally:
        context.close()


class Outline(HTMLParser):
    """Elements of a page, and the text of its script and its styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.inline: dict[str, str] = {}
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self.inline[self.cdata_elem] = self.inline.get(self.cdata_elem, "") + data

    def values(self, attribute: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(attribute)) is not None]
