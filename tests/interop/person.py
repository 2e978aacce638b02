"""Somebody with a browser, headless Chromium, who logs in at an authorization server and consents."""

from __future__ import annotations

import threading
from collections.abc import Callable

from playwright.sync_api import Page

from tests.support.browser import chromium

LIMIT = 20_000.0  # milliseconds for a page


class Person:
    """Somebody with a browser, who logs in and consents.

    Args:
        name: The name to log in with.
        page: What to do with the first page that is shown, if it is not about logging in.
    """

    def __init__(self, name: str, page: Callable[[Page], object] = lambda page: None) -> None:
        self.visited: list[str] = []
        self.ended = self.text = ""
        self._name = name
        self._begin = page
        self._threads: list[threading.Thread] = []

    def open(self, url: str) -> bool:
        """Open a URL in the background, as a desktop does."""
        self._threads.append(threading.Thread(target=self.visit, args=(url,)))
        self._threads[-1].start()
        return True

    def close(self) -> None:
        for thread in self._threads:
            thread.join()

    def visit(self, url: str) -> str:
        """Visit a URL, log in and consent; return where that ends."""
        self.visited.append(url)
        with chromium() as browser:
            page = browser.new_page()
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
