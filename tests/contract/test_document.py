"""Contracts that cannot be used: they are refused with a pointer and a reason, and nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.harness.commands import Done, inside, save
from tests.harness.file_server import serving


def with_tool(**members: Any) -> dict[str, Any]:
    """Return a contract of one tool."""
    return {"tools": [{"name": "t", "inputSchema": {"type": "object"}, **members}]}


def with_input(**schema: Any) -> dict[str, Any]:
    """Return a contract of one tool with this input schema."""
    return with_tool(inputSchema={"type": "object", **schema})


INPUT = "/tools/0/inputSchema"
A = f"{INPUT}/properties/a"

REFUSED: dict[str, tuple[Any, str, str]] = {
    "no input schema": ({"tools": [{"name": "t"}]}, "/tools/0", "inputSchema"),
    "input is no object": (with_tool(inputSchema={"type": "string"}), INPUT, "object"),
    "no name": ({"tools": [{"inputSchema": {"type": "object"}}]}, "/tools/0", "name"),
    "a name that is a number": (with_tool(name=1), "/tools/0/name", "string"),
    "the same tool twice": ({"tools": [with_tool()["tools"][0]] * 2}, "/tools/1", "t"),
    "not a type": (with_input(properties={"a": {"type": "strnig"}}), f"{A}/type", "strnig"),
    "properties are a list": (with_input(properties=[]), f"{INPUT}/properties", "object"),
    "a reference to nothing": (with_input(properties={"a": {"$ref": "#/$defs/B"}}), A, "B"),
    "a reference to itself": (with_input(properties={"a": {"$ref": "#/properties/a"}}), A, "circle"),
    "not in this revision": (with_tool(outputSchema={"type": "array"}), "/tools/0/outputSchema/type", "2025-11-25"),
    "a broken pattern": (with_input(properties={"a": {"pattern": "("}}), INPUT, "("),
    "an unknown dialect": (with_input(**{"$schema": "https://example.com/x"}), INPUT, "example.com"),
    "a member that is misspelled": ({"tool": []}, "tool", "tools"),
    "scopes that are no list": (with_tool(**{"x-mcp-scopes": "a b"}), "/tools/0/x-mcp-scopes", "list of scopes"),
    "a scope with a blank": (with_tool(**{"x-mcp-scopes": ["a", "b c"]}), "/tools/0/x-mcp-scopes/1", "not a scope"),
    "a broken template": ({"resourceTemplates": [{"uriTemplate": "a:{b", "name": "x"}]}, "/resourceTemplates/0", "{b"),
    "no contract": ([], "", "object"),
}
"""Mistake -> the contract, the pointer to the mistake, and a word of the reason."""


@pytest.mark.parametrize("name", REFUSED)
def test_bad_contracts_are_refused_with_a_pointer_and_a_reason(name: str, tmp_path: Path) -> None:
    document, pointer, reason = REFUSED[name]
    done = refused(document, tmp_path)
    assert pointer in done.stderr, done.stderr
    assert reason in done.stderr, done.stderr


def test_a_remote_reference_is_never_fetched(tmp_path: Path) -> None:
    local = tmp_path / "schema.json"
    local.write_text('{"type": "string"}', "utf-8")
    with serving() as server:
        for number, uri in enumerate([server.file("/s.json", local.read_bytes()), local.as_uri(), "schema.json"]):
            for schema in (
                {"properties": {"a": {"$ref": uri}}},
                {"$defs": {"X": {"$dynamicRef": uri}}, "properties": {"a": {"$ref": "#/$defs/X"}}},
                {"$id": uri.rpartition("/")[0] + "/x", "properties": {"a": {"$ref": "s.json"}}},
                {"$id": "http://[", "properties": {"a": {"$ref": "s.json"}}},
                {"$schema": uri},
            ):
                folder = tmp_path / f"{number}-{len(str(schema))}"
                folder.mkdir(exist_ok=True)
                assert "/tools/0/inputSchema" in refused(with_input(**schema), folder).stderr
    assert server.asked == []


def refused(document: Any, folder: Path) -> Done:
    """Scaffold from a contract that is refused; check that there is one line of output and no file."""
    path = save(folder / "contract.json", document)
    done = inside("scaffold", "server", "refused", "--contract", path, "--out", folder, code=2)
    assert done.stderr.count("\n") <= 2, done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "refused").exists()
    return done
