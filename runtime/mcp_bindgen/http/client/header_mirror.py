"""Repeat parts of stateless requests in HTTP headers (MCP 2026-07-28, "Streamable HTTP": Request Metadata)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.invalid_items import InvalidItem
from mcp_bindgen.runtime.protocol.methods import HeaderParams, Method
from mcp_bindgen.runtime.protocol.revision import Revision

from ..headers import encode, header_params, param_headers

_LONGEST = 200  # characters of a problem


class HeaderMirror:
    """Makes headers from messages, and remembers which arguments are wanted there.

    Args:
        revision: The revision that is spoken.
        methods: Its methods, by name.
    """

    def __init__(self, revision: Revision) -> None:
        self._revision = revision.name
        rules = [getattr(method, "header_params", None) for method in revision.methods.values()]
        self._rules: dict[str, HeaderParams] = {rule.listed_by: rule for rule in rules if rule is not None}
        self._schemas: dict[tuple[HeaderParams, str], Any] = {}

    def headers(self, method: Method, params: Any) -> Mapping[str, str]:
        """Return the headers of a message.

        Raises:
            ValueError: An argument that is wanted there cannot stand in a header.
        """
        found = {"MCP-Protocol-Version": self._revision, "Mcp-Method": method.name}
        if method.kind == "request" and method.named_by is not None:
            found["Mcp-Name"] = encode(getattr(params, method.named_by))
        rule = method.header_params if method.kind == "request" else None
        if rule is not None:
            schema = self._schemas.get((rule, getattr(params, rule.name)))
            if schema is not None:
                found |= param_headers(schema, getattr(params, rule.arguments))
        return found

    def source(self, method: Method) -> str | None:
        """Return the method whose results say which headers messages of `method` need, if there is one."""
        rule = method.header_params if method.kind == "request" else None
        return None if rule is None else rule.listed_by

    def learn(self, method: Method, answer: Any, report: Callable[[InvalidItem], object]) -> Any:
        """Remember what the entries of a list want in headers; leave out, and report, those that must not want it."""
        rule = self._rules.get(method.name)
        if rule is None:
            return answer
        entries = getattr(answer, rule.items)
        problems = [self._problem(rule, entry) for entry in entries]
        for position, problem in enumerate(problems):
            if problem is not None:
                report(InvalidItem(method.name, f"/{rule.items}/{position}/{wire_name(rule.schema)}", problem))
        fine = [entry for entry, problem in zip(entries, problems, strict=True) if problem is None]
        return answer if len(fine) == len(entries) else answer.model_copy(update={rule.items: fine})

    def _problem(self, rule: HeaderParams, entry: Any) -> str | None:
        name, schema = getattr(entry, rule.name), jsonrpc.plain(getattr(entry, rule.schema))
        self._schemas.pop((rule, name), None)
        try:
            if header_params(schema):
                self._schemas[rule, name] = schema
        except ValueError as error:
            return str(error)[:_LONGEST]
        return None
