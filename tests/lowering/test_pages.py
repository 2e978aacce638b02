"""The pages about lowering agree with the profiles and rules."""

from __future__ import annotations

from pathlib import Path

from mcp_bindgen.lowering import RULES, Verdict, names
from tests.lowering.providers import FIX, PAGE, page

LOWERING = (Path(__file__).parents[2] / "docs" / "how-to" / "lowering.md").read_text("utf-8")


def test_the_page_of_profiles_is_generated() -> None:
    assert PAGE.read_text("utf-8") == page(), FIX


def test_the_page_of_lowering_names_each_rule_with_its_effect() -> None:
    for name, rule in RULES.items():
        assert f"| `{name}` | {rule.effect} |" in LOWERING
    assert all(f"| `{verdict}` |" in LOWERING for verdict in Verdict)
    assert all(f"| `{name}` |" in LOWERING for name in names())
