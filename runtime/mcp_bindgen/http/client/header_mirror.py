"""Headers that repeat parts of stateless requests (MCP 2026-07-28, "Streamable HTTP": Request Metadata)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.invalid_items import InvalidItem
from mcp_bindgen.runtime.protocol.methods import HeaderParams, Method, Request
from mcp_bindgen.runtime.protocol.revision import Revision

from ..headers import encode, header_params, param_headers

_MAX_PROBLEM = 200  # characters


class HeaderMirror:
    """Headers of a client's messages, and the arguments that listed tools want there.

    Args:
        revision: The revision of the connection.
    """

    def __init__(self, revision: Revision) -> None:
        self._revision = revision.name
        rules = [_rule(method) for method in revision.methods.values()]
        self._rules: dict[str, HeaderParams] = {rule.listed_by: rule for rule in rules if rule is not None}
        self._schemas: dict[tuple[HeaderParams, str], Any] = {}

    def headers(self, method: Method, params: object) -> Mapping[str, str]:
        """Return the headers of a message; raises `ValueError` if an argument cannot stand in a header."""
        found = {"MCP-Protocol-Version": self._revision, "Mcp-Method": method.name}
        if isinstance(method, Request) and method.named_by is not None:
            found["Mcp-Name"] = encode(getattr(params, method.named_by))
        rule = _rule(method)
        if rule is not None:
            schema = self._schemas.get((rule, getattr(params, rule.name)))
            if schema is not None:
                found |= param_headers(schema, getattr(params, rule.arguments))
        return found

    def source(self, method: Method) -> str | None:
        """Return the name of the list method with the schemas for a method, or None."""
        rule = _rule(method)
        return None if rule is None else rule.listed_by

    def learn(self, method: Method, answer: Any, report: Callable[[InvalidItem], object]) -> Any:
        """Note the headers that the items of a list want; return the list without items that want invalid headers.

        Args:
            method: The method of the result.
            answer: The typed result.
            report: Called with each item that is left out.
        """
        rule = self._rules.get(method.name)
        if rule is None:
            return answer
        items = getattr(answer, rule.items)
        problems = [self._problem(rule, item) for item in items]
        for position, problem in enumerate(problems):
            if problem is not None:
                report(InvalidItem(method.name, f"/{rule.items}/{position}/{wire_name(rule.schema)}", problem))
        valid = [item for item, problem in zip(items, problems, strict=True) if problem is None]
        return answer if len(valid) == len(items) else answer.model_copy(update={rule.items: valid})

    def _problem(self, rule: HeaderParams, item: object) -> str | None:
        name, schema = getattr(item, rule.name), jsonrpc.plain(getattr(item, rule.schema))
        self._schemas.pop((rule, name), None)
        try:
            if header_params(schema):
                self._schemas[rule, name] = schema
        except ValueError as error:
            return str(error)[:_MAX_PROBLEM]
        return None


def _rule(method: Method) -> HeaderParams | None:
    return method.header_params if isinstance(method, Request) else None
