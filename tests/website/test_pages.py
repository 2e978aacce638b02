"""Pages of the documentation site: complete, in the navigation, and with a text version for programs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from website.build import pages
from website.markdown import Pages
from website.programs import llms, navigation
from website.reference import errors, packages
from website.sources import handwritten

from mcp_bindgen.diff.finding import RULES
from tests.harness.commands import ROOT


@pytest.fixture(scope="module")
def site() -> Pages:
    return pages()


def test_the_navigation_names_each_handwritten_page() -> None:
    named = navigation()
    assert len(named) == len(set(named))
    assert handwritten({}).keys() - set(named) == set()


@pytest.mark.full
def test_the_navigation_names_only_existing_pages(site: Pages) -> None:
    assert set(navigation()) - site.keys() == set()


@pytest.mark.full
def test_titles_of_the_navigation_are_titles_of_pages(site: Pages) -> None:
    def titled(inside: Any) -> Iterator[tuple[str, str]]:
        for one in inside if isinstance(inside, list) else []:
            for title, value in one.items() if isinstance(one, dict) else ():
                yield from [(title, value)] if isinstance(value, str) else titled(value)

    nav = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    found = dict(titled(nav))
    assert len(found) > 3
    assert [title for title, name in found.items() if not site[name].startswith(f"# {title}\n")] == []


@pytest.mark.full
def test_the_navigation_lists_the_python_api_with_app_first(site: Pages) -> None:
    """Each page begins with classes and functions; values such as `ABSENT` are at its end."""
    listed = [name for name in navigation() if name.startswith("reference/api/")]
    pages = [f"reference/api/{name.removeprefix('mcp_bindgen.')}.md" for name in packages()]
    assert listed == ["reference/api/index.md", "reference/api/app.md", *pages[1:]]
    assert re.findall(r"^## `(\w+)`", site["reference/api/app.md"], re.M)[0] == "App"
    for name in pages:
        headings = re.findall(r"^## `(\w+)`", site[name], re.M)
        assert not headings[0].isupper(), name


@pytest.mark.full
def test_pages_of_changes_show_no_bare_fingerprints(site: Pages) -> None:
    changes = [text for name, text in site.items() if name.startswith("changes/2")]
    assert all('<small id="finding-' in text for text in changes)
    assert [
        found for text in changes for found in re.findall(r"(?<!finding-)(?<!title=\")\b[0-9a-f]{16}\b", text)
    ] == []


@pytest.mark.full
def test_llms_txt_names_each_page(site: Pages) -> None:
    text = llms(site)
    assert [name for name in site if f"/{name})" not in text] == []


@pytest.mark.full
def test_no_page_shows_a_memory_address(site: Pages) -> None:
    """An address of memory would change the page in each build."""
    assert [
        name for name, text in site.items() if name.startswith(("reference/api", "atlas")) and " at 0x" in text
    ] == []


@pytest.mark.full
def test_each_diff_rule_and_each_package_is_listed(site: Pages) -> None:
    assert [rule for rule in RULES if f"{{ #{rule} }}" not in site["reference/diff-rules.md"]] == []
    assert [name for name in packages() if f"`{name}`" not in site["reference/api/index.md"]] == []


@pytest.mark.full
def test_each_public_name_has_a_description(site: Pages) -> None:
    """Headings, signatures and values alone do not describe a name."""
    for page, text in site.items():
        if page.startswith("reference/api/") and not page.endswith("index.md"):
            for section in re.split(r"^(?=##+ )", text, flags=re.MULTILINE)[1:]:
                body = re.sub(
                    r"^```.*?^```$|^##[^\n]*$|^(?:Type: )?`[^`]*`$", "", section, flags=re.DOTALL | re.MULTILINE
                )
                assert body.strip(), f"{page}: {section}"


def test_the_errors_page_lists_each_package_that_raises_bad_input() -> None:
    """Each folder beside a README of a wing counts, so that none is lost in a move."""
    folders = [folder for readme in ROOT.glob("*/README.md") for folder in readme.parent.glob("mcp_bindgen/*/")]
    raising = {
        f"mcp_bindgen.{folder.name}"
        for folder in folders
        if any(re.search(r'\bBadInput\(\s*f?"', path.read_text("utf-8")) for path in folder.rglob("*.py"))
    }
    assert {"mcp_bindgen.spec", "mcp_bindgen.mock"} <= raising
    assert set(re.findall(r"^## `(.+)` ", errors(), re.MULTILINE)) == raising
