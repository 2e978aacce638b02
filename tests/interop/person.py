"""User with a headless Chromium that logs in at an authorization server and consents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager

from playwright.sync_api import Browser, Page

from tests.harness.browser import chromium

LIMIT = 60_000.0  # milliseconds for a page

_browsing: list[tuple[ThreadPoolExecutor, Browser]] = []


@contextmanager
def browsing() -> Iterator[None]:
    """Run the browser of all users in a thread of its own."""
    with ThreadPoolExecutor(1) as thread:
        running = chromium()
        _browsing.append((thread, thread.submit(running.__enter__).result()))
        try:
            yield
        finally:
            _browsing.pop()
            thread.submit(running.__exit__, None, None, None).result()


class Person:
    """User with a browser that logs in and consents.

    Args:
        name: The login name.
        page: Handles the first page before the login form, for example the confirmation of a device code.
    """

    def __init__(self, name: str, page: Callable[[Page], object] = lambda page: None) -> None:
        self.visited: list[str] = []
        self.ended = self.text = ""
        self._name = name
        self._begin = page
        self._visits: list[Future[str]] = []

    def open(self, url: str) -> bool:
        """Open a URL in the background, like a desktop."""
        thread, browser = _browsing[-1]
        self._visits.append(thread.submit(self._visit, browser, url))
        return True

    def close(self) -> None:
        wait(self._visits)

    def visit(self, url: str) -> str:
        """Visit a URL, log in and consent; return the final URL."""
        self.open(url)
        return self._visits[-1].result()

    def _visit(self, browser: Browser, url: str) -> str:
        self.visited.append(url)
        with browser.new_context() as context:
            page = context.new_page()
            page.set_default_timeout(LIMIT)
            page.goto(url)
            self._begin(page)
            page.fill("input[name=login]", self._name)
            page.fill("input[name=password]", "anything")
            page.click("button[type=submit]")
            page.get_by_role("button", name="Continue").click()
            page.wait_for_load_state()
            self.ended = page.url
            self.text = page.inner_text("body")
        return self.ended
