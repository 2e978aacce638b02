"""JSON with comments: a member is set, and nothing else changes."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.jsonc import loads, with_member, without_member
from tests.harness.effort import examples

NAMES = st.sampled_from(["a", "b", "mcpServers", 'q"', "é\\", "//no", "/*no*/"])
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["// x", "/* x */", ","])
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3), max_leaves=8
)
BLANKS = st.sampled_from(["", " ", "\n", "\t", "// said\n", "/* said,\n} */", "\r\n  "])


@st.composite
def written(draw: Any, value: Any) -> str:
    """Return a value as JSON with random blanks, comments and trailing commas."""

    def blank() -> str:
        return str(draw(BLANKS))

    if isinstance(value, dict):
        inner = [f"{blank()}{json.dumps(name)}{blank()}:{draw(written(one))}" for name, one in value.items()]
    elif isinstance(value, list):
        inner = [draw(written(one)) for one in value]
    else:
        return f"{blank()}{json.dumps(value)}{blank()}"
    start, end = "{}" if isinstance(value, dict) else "[]"
    comma = "," if inner and draw(st.booleans()) else ""
    return f"{blank()}{start}{','.join(inner)}{comma}{blank()}{end}{blank()}"


@pytest.mark.full
@settings(max_examples=examples(30, 300))
@given(st.data(), st.dictionaries(NAMES, VALUES, max_size=4), NAMES, NAMES, VALUES)
def test_setting_a_member_changes_nothing_else(
    data: st.DataObject, document: dict[str, Any], outer: str, inner: str, value: Any
) -> None:
    text = data.draw(written(document))
    assert loads(text) == document
    expected = json.loads(json.dumps(document))
    if outer in expected and not isinstance(expected[outer], dict):
        with pytest.raises(BadInput, match="is not an object"):
            with_member(text, [outer, inner], value)
        return
    expected.setdefault(outer, {})[inner] = value
    after = with_member(text, [outer, inner], value)
    assert loads(after) == expected
    if inner not in document.get(outer, {}):
        left = iter(after)
        assert all(char in left for char in "".join(text.split())), "all is there, in its order"
    assert loads(with_member(after, [outer, inner], value)) == expected


@pytest.mark.full
@settings(max_examples=examples(30, 300))
@given(st.data(), st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), min_size=1, max_size=4))
def test_removing_a_member_changes_nothing_else(data: st.DataObject, document: dict[str, Any]) -> None:
    text = data.draw(written(document))
    path = [data.draw(st.sampled_from(sorted(document)))]
    if document[path[0]] and data.draw(st.booleans()):
        path.append(data.draw(st.sampled_from(sorted(document[path[0]]))))
    expected = json.loads(json.dumps(document))
    owner = expected if len(path) == 1 else expected[path[0]]
    del owner[path[-1]]
    after = without_member(text, path)
    assert loads(after) == expected
    left = iter(text)
    assert all(char in left for char in "".join(after.split())), "nothing is added"
    with pytest.raises(KeyError):
        without_member(after, path)


@settings(max_examples=examples(30, 300))
@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4), VALUES)
def test_removing_a_member_that_was_set_restores_the_exact_text(document: dict[str, Any], value: Any) -> None:
    text = json.dumps(document, indent=2) + "\n"
    assert without_member(with_member(text, ["new"], value), ["new"]) == text


@settings(max_examples=examples(50, 500))
@given(st.text(max_size=20))
def test_any_text_is_read_or_refused_as_bad_input(text: str) -> None:
    with suppress(BadInput):
        json.dumps(loads(text))


def test_invalid_json_is_refused_with_its_line() -> None:
    for text, said in [
        ('{"a": 1', 'line 1: "," or "}" is missing'),
        ('{\n"a": 1, "a": 2}', "line 2: the member 'a' appears twice"),
        ("{} {}", "line 1: there is more than one value"),
        ("{a: 1}", 'line 1: a name in quotes or "}" is missing'),
        ("[" * 5000, "line 1: the value is nested too deeply"),
        ("{} /* open", "line 1: there is more than one value"),
        ('{"a": tru}', "line 1: this is no JSON value"),
    ]:
        with pytest.raises(BadInput, match=said.replace("{", r"\{").replace("}", r"\}")):
            with_member(text, ["a"], 1)
