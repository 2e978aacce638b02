"""Mcp-Name and Mcp-Param-* headers (MCP 2026-07-28, "Streamable HTTP": Request Metadata).

The schema of a tool may ask for headers that repeat arguments. Clients send these headers, and servers compare them.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mcp_bindgen.json_schema.keywords import NAMED, VALUES
from mcp_bindgen.runtime.model.base import wire_name
from mcp_bindgen.runtime.model.json_types import is_array, is_object
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.invalid_items import InvalidItem
from mcp_bindgen.runtime.protocol.methods import HeaderParams, Method, RequestMethod
from mcp_bindgen.runtime.protocol.revision import Revision

ANNOTATION = "x-mcp-header"
"""Keyword of JSON Schema that asks for a header."""

PREFIX = "Mcp-Param-"
"""Prefix of the names of such headers."""

_BEGIN, _END = "=?base64?", "?="
_PLAIN = re.compile(r"(?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?")
_SENT = re.compile(r"[\t\x20-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_WHOLE = re.compile(r"(-?(?:0|[1-9][0-9]{0,15}))(?:\.0{1,16})?")
_MAX_INTEGER = 2**53 - 1
_MAX_PROBLEM = 200  # characters

Path = tuple[str, ...]


class HeaderMismatch(Exception):
    """Header that is missing, malformed or different from the body."""


def is_plain(value: str) -> bool:
    """Return True if a header can hold `value` unencoded: visible ASCII, with blanks only inside."""
    return _PLAIN.fullmatch(value) is not None


def encode(value: str) -> str:
    """Return `value` as a header: unencoded where that is safe, else in Base64 between markers.

    Raises:
        ValueError: The value has half of a surrogate pair, which is not Unicode text.
    """
    if is_plain(value) and not (value.startswith(_BEGIN) and value.endswith(_END)):
        return value
    return _BEGIN + b64encode(value.encode()).decode() + _END


def decode(header: str) -> str:
    """Return the value of a header; surrounding blanks are ignored, and a single marker is plain text.

    Raises:
        HeaderMismatch: The header has characters that are not allowed, or the text between the markers is not the
            Base64 form of UTF-8 text.
    """
    header = header.strip(" \t")
    if _SENT.fullmatch(header) is None:
        raise HeaderMismatch("a value has characters that headers cannot have")
    if len(header) < len(_BEGIN + _END) or not header.startswith(_BEGIN) or not header.endswith(_END):
        return header
    content = header[len(_BEGIN) : -len(_END)]
    try:
        data = b64decode(content, validate=True)
        if b64encode(data).decode() == content:  # the decoder overlooks padding that is too long
            return data.decode()
    except ValueError:
        pass
    raise HeaderMismatch("a value is marked as Base64, but is not the Base64 form of UTF-8 text")


def text(value: object) -> str | None:
    """Return the text of an argument in a header; None for null, which is not repeated.

    Raises:
        ValueError: The argument is no string, boolean or integer, or an integer beyond 2**53 - 1, which peers round.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, int | float) or not -_MAX_INTEGER <= value <= _MAX_INTEGER or value != int(value):
        raise ValueError("only strings, booleans and integers up to 2**53 - 1 can be repeated in a header")
    return str(int(value))


def header_params(input_schema: object) -> Mapping[Path, str]:
    """Return the arguments that headers repeat: path of property names -> name of the header.

    Args:
        input_schema: The tool's `inputSchema`, as JSON. References in it are not followed.

    Raises:
        ValueError: The schema asks for a header that is not allowed; clients must not offer such a tool.
    """
    found: dict[Path, str] = {}
    names: dict[str, Path] = {}
    for path, schema in _positions(input_schema):
        if ANNOTATION not in schema:
            continue
        name, kind = schema[ANNOTATION], schema.get("type")
        if not path:
            raise ValueError(f"{ANNOTATION} does not belong to one argument")
        place = ".".join(path)
        if not isinstance(name, str) or _TOKEN.fullmatch(name) is None:
            raise ValueError(f"{ANNOTATION} of {place!r} is not the name of a header")
        if kind not in ("string", "integer", "boolean"):
            raise ValueError(f"{ANNOTATION} of {place!r}: only a string, integer or boolean can be repeated")
        if name.lower() in names:
            raise ValueError(f"{place!r} and {'.'.join(names[name.lower()])!r} have the same {ANNOTATION}")
        names[name.lower()] = path
        found[path] = PREFIX + name
    return found


def param_headers(input_schema: object, arguments: Mapping[str, Any] | None) -> dict[str, str]:
    """Return the headers that repeat arguments of a call, encoded.

    Raises:
        ValueError: The schema asks for a header that is not allowed, or an argument cannot stand in a header.
    """
    headers: dict[str, str] = {}
    for path, name in header_params(input_schema).items():
        try:
            value = text(_value(arguments, path))
        except ValueError as error:
            raise ValueError(f"{'.'.join(path)!r}: {error}") from None
        if value is not None:
            headers[name] = encode(value)
    return headers


def check_params(input_schema: object, arguments: Mapping[str, Any] | None, headers: Mapping[bytes, bytes]) -> None:
    """Check that the headers of a call repeat the arguments in its body.

    Args:
        input_schema: The tool's `inputSchema`.
        arguments: The arguments in the body.
        headers: All headers of the request, names in lower case.

    Raises:
        HeaderMismatch: A header differs from its argument, or one of the two is missing.
        ValueError: The schema asks for a header that is not allowed.
    """
    for path, name in header_params(input_schema).items():
        sent = headers.get(name.lower().encode())
        value = _value(arguments, path)
        if value is None:
            if sent is not None:
                raise HeaderMismatch(f"{name} repeats an argument that is not there")
            continue
        if sent is None:
            raise HeaderMismatch(f"{name} is missing")
        if not _is_same(decode(sent.decode("latin-1")), value):
            raise HeaderMismatch(f"{name} differs from the argument")


def _is_same(header: str, value: object) -> bool:
    """Return True if a decoded header equals an argument; integers are compared as numbers."""
    try:
        wanted = text(value)
    except ValueError:
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = _WHOLE.fullmatch(header)
        return number is not None and int(number[1]) == value
    return header == wanted


def _value(arguments: object, path: Path) -> Any:
    """Return the value at a path, or None."""
    for name in path:
        if not is_object(arguments):
            return None
        arguments = arguments.get(name)
    return arguments


def _positions(schema: object) -> Iterator[tuple[Path | None, dict[str, Any]]]:
    """Yield every schema in a schema, with its path if `properties` alone lead there; a schema may be deeply nested."""
    waiting: list[tuple[Path | None, Any]] = [((), schema)]
    while waiting:
        path, node = waiting.pop()
        if is_array(node):
            waiting.extend((None, child) for child in node)
        if not is_object(node):
            continue
        yield path, node
        for keyword, child in node.items():
            if keyword in NAMED and is_object(child):
                here = path if keyword == "properties" else None
                waiting.extend((None if here is None else (*here, name), one) for name, one in child.items())
            elif keyword not in VALUES and not keyword.startswith("x-"):
                waiting.append((None, child))


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
        if isinstance(method, RequestMethod) and method.named_by is not None:
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
    return method.header_params if isinstance(method, RequestMethod) else None
