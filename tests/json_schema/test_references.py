"""Targets of references: by pointer, by anchor, and by the id of a part."""

from __future__ import annotations

from typing import Any

from mcp_bindgen.json_schema.references import Targets
from tests.harness.effort import each

INNER = {"$id": "inner", "$defs": {"y": {"title": "y"}}}
ROOT: dict[str, Any] = {
    "$id": "https://example.com/root",
    "$anchor": "top",
    "$defs": {"a/b": {"title": "x"}, "two words": {"$anchor": "here"}, "inner": INNER},
    "properties": {"$anchor": {"title": "member"}, "$id": {"id": "#old"}},
    "default": {"$anchor": "value"},
    "prefixItems": [{"title": "first"}],
}


@each(
    ("reference", "target"),
    [
        ("#", ROOT),
        ("#top", ROOT),
        ("#/$defs/a~1b", {"title": "x"}),
        ("#/$defs/two%20words", {"$anchor": "here"}),
        ("#here", {"$anchor": "here"}),
        ("inner", INNER),
        ("https://example.com/inner#/$defs/y", {"title": "y"}),
        ("#/prefixItems/0", {"title": "first"}),
        ("#/prefixItems/1", None),
        ("#/properties/$anchor", {"title": "member"}),
        ("#old", {"id": "#old"}),
        ("#value", None),
        ("other", None),
        (7, None),
    ],
)
def test_a_reference_has_its_target(reference: object, target: Any) -> None:
    assert Targets(ROOT).find(reference) == target


def test_parts_with_similar_ids_are_all_possible_and_the_exact_one_is_first() -> None:
    parts = [{"$id": f"https://{host}/same", "title": host} for host in ("a", "b")]
    targets = Targets({"$defs": dict(zip("xy", parts, strict=True))})
    assert targets.all("https://b/same") == parts[::-1]
