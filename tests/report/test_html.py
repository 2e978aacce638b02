"""The HTML report as text: complete, safe, and self-contained."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import pairwise

import pytest

from mcp_bindgen.diff import Comparison, compare
from mcp_bindgen.ir.build import build
from mcp_bindgen.report.comparison_html import comparison_html
from mcp_bindgen.spec import Store
from tests.harness.browser import Outline
from tests.harness.example_comparison import FINDINGS, LIBRARIES, REQUIRED, SAME, hostile

REVISIONS = list(Store().pins)
LOADING = {"audio", "base", "embed", "frame", "iframe", "img", "link", "object", "script", "style", "svg", "video"}
"""Elements that can make a browser load a resource."""

LARGEST = 600_000
"""Maximum size in bytes of the page about the largest comparison."""


def html(*comparisons: Comparison) -> str:
    return comparison_html(comparisons)


@cache
def real(*revisions: str) -> str:
    """Return the page about a chain of real revisions."""
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


@pytest.mark.full
def test_a_page_loads_no_external_resources(page: str) -> None:
    outline = Outline(page)
    assert not outline.values("src")
    assert {link[:1] for link in outline.values("href")} - {"#"} == {"d"}  # the href "data:," of the empty icon
    assert sorted(tag for tag, _ in outline.elements if tag in LOADING) == ["link", "script", "style"]
    assert "url(" not in outline.inline["style"]
    assert "@import" not in outline.inline["style"]


@pytest.mark.full
def test_the_content_security_policy_allows_only_the_inline_script_and_style(page: str) -> None:
    outline = Outline(page)
    policy = next(attributes["content"] for _, attributes in outline.elements if "http-equiv" in attributes)
    hashes = {tag: b64encode(sha256(text.encode()).digest()).decode() for tag, text in outline.inline.items()}
    assert policy is not None
    ours = f"script-src 'sha256-{hashes['script']}'; style-src 'sha256-{hashes['style']}'"
    assert policy == f"default-src 'none'; {ours}; img-src data:; base-uri 'none'; form-action 'none'"
    assert not outline.values("style")
    assert not [name for _, attributes in outline.elements for name in attributes if name.startswith("on")]


@pytest.mark.full
def test_every_link_has_a_target(page: str) -> None:
    outline = Outline(page)
    places = outline.values("id")
    assert [place for place, count in Counter(places).items() if count > 1] == []
    links = {link[1:] for link in outline.values("href") if link.startswith("#") and "=" not in link}
    assert links <= set(places)
    assert {label for value in outline.values("aria-labelledby") for label in value.split()} <= set(places)


@pytest.mark.full
def test_headings_skip_no_level(page: str) -> None:
    levels = [int(tag[1]) for tag, _ in Outline(page).elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))


def test_every_finding_has_an_anchor() -> None:
    assert {finding.fingerprint for finding in FINDINGS} <= set(Outline(html(LIBRARIES)).values("id"))


def test_a_repeated_finding_in_a_chain_has_two_anchors() -> None:
    places = Outline(html(LIBRARIES, LIBRARIES)).values("id")
    assert {REQUIRED.fingerprint, f"{REQUIRED.fingerprint}-2"} <= set(places)


def test_hostile_text_is_escaped() -> None:
    outline = Outline(html(hostile()))
    assert {tag for tag, _ in outline.elements} <= {tag for tag, _ in Outline(html(LIBRARIES)).elements}
    assert "boo" not in "".join(outline.inline.values())
    assert "49" not in html(replace(hostile(), findings=()))


def test_the_page_of_the_largest_comparison_is_small() -> None:
    assert len(real(*REVISIONS[-2:]).encode()) < LARGEST


def test_the_same_comparison_gives_the_same_page() -> None:
    assert html(LIBRARIES) == html(LIBRARIES)
