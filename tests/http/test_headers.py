"""Contents of Mcp-Name and Mcp-Param-* headers, and when both sides agree about them (0.5 s)."""

from __future__ import annotations

import base64
import re
from typing import Any

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.http.headers import HeaderMismatch, check_params, decode, encode, header_params, param_headers, text
from tests.harness.effort import each

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "where": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
        "query": {"type": "string"},
    },
}


def annotated(**node: Any) -> dict[str, Any]:
    """Return a string schema, or another schema, with the annotation for a header."""
    return {"type": "string", "x-mcp-header": "A", **node}


def as_sent(headers: dict[str, str]) -> dict[bytes, bytes]:
    """Return headers as a server receives them."""
    return {name.lower().encode(): value.encode("ascii") for name, value in headers.items()}


def packed(value: str) -> str:
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


# --- values ---------------------------------------------------------------------------------------------------


@each(
    ("value", "header"),
    [
        *((value, value) for value in ("us-west1", "", "two  words", "=?base64?x", "x?=", "=?BASE64?x?=")),
        *((value, packed(value)) for value in ("Hello, 世界", " padded ", "line1\nline2", "tab\tinside", "\x7f")),
        *((value, packed(value)) for value in ("=?base64?literal?=", "=?base64?=")),
    ],
)
def test_values_are_encoded_and_decoded(value: str, header: str) -> None:
    assert (encode(value), decode(header), decode(f" \t{header} ")) == (header, value, value)


@each(
    "header",
    [
        *(f"=?base64?{data}?=" for data in ("SGVsbG8", "SGVsbG8==", "SGVsbG8=SGVsbG8=")),  # padding
        *(f"=?base64?{data}?=" for data in ("SGVsbG9=", "SGVs*bG8=", "SGVs bG8=", "____")),  # bits; characters
        *(f"=?base64?{data}?=" for data in ("/w==", "7aCA")),  # not UTF-8
        *("caf\xe9", "a\rb", "a\nb", "a\0b", "a\x7fb"),
    ],
)
def test_invalid_header_values_are_refused(header: str) -> None:
    with pytest.raises(HeaderMismatch):
        decode(header)


def test_incomplete_base64_markers_are_literal() -> None:
    for header in ("=?base64?", "?=", "=?base64?=", "=?base64?x", "x?=", "x=?base64?eA==?="):
        assert decode(header) == header
    assert decode("=?base64??=") == ""


@given(st.text())
def test_every_text_is_decoded_unchanged_and_cannot_break_its_header(value: str) -> None:
    header = encode(value)
    assert re.fullmatch(r"[\x20-\x7e]*", header)
    assert header == header.strip()
    assert decode(header) == value
    h11.Request(method="POST", target="/", headers=[("host", "x"), ("mcp-name", header)])


@given(st.text(alphabet=st.characters(min_codepoint=0, max_codepoint=255)))
def test_decoding_fails_only_with_header_mismatch(header: str) -> None:
    try:
        value = decode(header)
    except HeaderMismatch:
        return
    assert decode(encode(value)) == value


@given(st.binary())
def test_base64_is_decoded_exactly_or_refused(data: bytes) -> None:
    header = f"=?base64?{base64.b64encode(data).decode()}?="
    try:
        assert decode(header).encode() == data
    except HeaderMismatch:
        with pytest.raises(UnicodeDecodeError):
            data.decode()


def test_a_lone_surrogate_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        encode("\ud800")


@each(
    ("value", "expected"),
    [
        *(("As Is ", "As Is "), (None, None), (True, "true"), (False, "false")),
        *((42, "42"), (-7, "-7"), (42.0, "42"), (0, "0")),
        *((2**53 - 1, "9007199254740991"), (-(2**53) + 1, "-9007199254740991")),
    ],
)
def test_scalar_values_are_converted_to_text(value: object, expected: str | None) -> None:
    assert text(value) == expected


@each("value", [2**53, -(2**53), 10**400, 0.5, 1e300, float("inf"), float("nan"), [], {}, ["a"]])
def test_values_that_have_no_text_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="can be repeated"):
        text(value)


# --- schemas --------------------------------------------------------------------------------------------------


def test_header_parameters_are_found_in_the_schema_of_a_tool() -> None:
    assert header_params(SCHEMA) == {
        ("region",): "Mcp-Param-Region",
        ("count",): "Mcp-Param-Count",
        ("dry",): "Mcp-Param-Dry",
        ("where", "city"): "Mcp-Param-City",
    }
    assert (header_params({"type": "object"}), header_params(None), header_params(True)) == ({}, {}, {})
    assert header_params({"properties": {"a": annotated()}}) == {("a",): "Mcp-Param-A"}


def test_data_in_a_schema_is_not_read_as_a_schema() -> None:
    """A property may have the name of the keyword, and values may look like schemas."""
    assert header_params({"properties": {"x-mcp-header": {"type": "number"}, "properties": {"type": "string"}}}) == {}
    for keyword in ("default", "const", "enum", "examples", "x-other"):
        assert header_params({"properties": {"a": {keyword: [annotated()]}, "b": {keyword: annotated()}}}) == {}
    nested = {"properties": {"properties": {"properties": {"x-mcp-header": annotated()}}}}
    assert header_params(nested) == {("properties", "x-mcp-header"): "Mcp-Param-A"}


@each("name", ["", " ", "My Region", "A:B", "Région", "A\t1", "A\r\nB", "a/b", "a,b", "A\n", 7, None, ["A"]])
def test_invalid_header_names_are_refused(name: object) -> None:
    with pytest.raises(ValueError, match=r"x-mcp-header of 'a' is not the name of a header"):
        header_params({"properties": {"a": {"type": "string", "x-mcp-header": name}}})


@each("kind", ["number", "object", "array", "null", ["string", "null"], ["string"], None, 1])
def test_types_that_cannot_be_mirrored_in_headers_are_refused(kind: object) -> None:
    with pytest.raises(ValueError, match="only a string, integer or boolean"):
        header_params({"properties": {"a": annotated(type=kind)}})
    with pytest.raises(ValueError, match="only a string, integer or boolean"):
        header_params({"properties": {"a": {"x-mcp-header": "A", "anyOf": [{"type": "string"}]}}})


def test_header_names_that_differ_only_in_case_are_refused() -> None:
    schema = {"properties": {"a": annotated(), "b": {"properties": {"c": annotated(**{"x-mcp-header": "a"})}}}}
    with pytest.raises(ValueError, match="have the same x-mcp-header"):
        header_params(schema)


@each(
    "schema",
    [
        annotated(),
        *(
            {"properties": {"a": {keyword: {"properties": {"b": annotated()}}}}}
            for keyword in (
                *("items", "contains", "not", "if", "then", "else", "additionalProperties", "propertyNames"),
                *("unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema"),
            )
        ),
        *({keyword: [{}, {"properties": {"b": annotated()}}]} for keyword in ("allOf", "anyOf", "oneOf", "items")),
        {"prefixItems": [annotated()]},
        *(
            {keyword: {"x": annotated()}}
            for keyword in ("$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies")
        ),
    ],
)
def test_header_annotations_that_belong_to_no_single_argument_are_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="does not belong to one argument"):
        header_params(schema)


def test_references_are_not_followed_and_depth_does_not_matter() -> None:
    loop = {"properties": {"a": {"$ref": "#"}, "b": {"$ref": "https://example.org/x"}}}
    assert header_params(loop) == {}
    deep: dict[str, Any] = annotated()
    for _ in range(5000):
        deep = {"properties": {"p": deep}}
    assert (header_params(deep), param_headers(deep, {"p": {"p": "x"}})) == ({("p",) * 5000: "Mcp-Param-A"}, {})


# --- calls ----------------------------------------------------------------------------------------------------


def test_the_arguments_of_a_call_are_mirrored_in_headers() -> None:
    arguments = {"region": "us-west1", "count": 3, "dry": False, "where": {"city": "Zürich"}, "query": "secret"}
    headers = param_headers(SCHEMA, arguments)
    assert headers == {
        "Mcp-Param-Region": "us-west1",
        "Mcp-Param-Count": "3",
        "Mcp-Param-Dry": "false",
        "Mcp-Param-City": "=?base64?WsO8cmljaA==?=",
    }
    check_params(SCHEMA, arguments, as_sent(headers))


def test_absent_arguments_have_no_header() -> None:
    absent: list[Any] = [None, {}, {"region": None}, {"where": None}, {"where": "x"}, {"where": {}}, {"query": "x"}]
    for arguments in absent:
        assert param_headers(SCHEMA, arguments) == {}
        check_params(SCHEMA, arguments, {b"mcp-param-query": b"not ours", b"mcp-param-other": b"\xff"})
    assert param_headers(SCHEMA, {"region": ""}) == {"Mcp-Param-Region": ""}


def test_arguments_that_cannot_be_mirrored_are_refused() -> None:
    for arguments in ({"count": 2**53}, {"count": 1.5}, {"region": ["a"]}):
        with pytest.raises(ValueError, match=r"^'(count|region)': only"):
            param_headers(SCHEMA, arguments)
        with pytest.raises(HeaderMismatch):
            check_params(SCHEMA, arguments, {b"mcp-param-count": b"9007199254740992", b"mcp-param-region": b"['a']"})


@each(
    ("arguments", "headers"),
    [
        *(({"region": "a"}, {"region": sent}) for sent in ("b", "A", "a, a", "=?base64?YQ?=", "a\xe9", "a\x00")),
        *(({"region": None}, {"region": sent}) for sent in ("", "null")),
        *(({"count": 42}, {"count": sent}) for sent in ("43", "42.5", "0x2a", "4_2", "٤٢", "")),
        *(({"dry": True}, {"dry": sent}) for sent in ("1", "True")),
        ({"count": 1}, {"count": "true"}),
        ({"region": "a "}, {"region": "a "}),  # whitespace around a value does not count
        *(({}, {"region": "a"}), ({"region": "a"}, {}), ({"where": {"city": "a"}}, {})),
    ],
)
def test_headers_that_differ_from_the_arguments_are_refused(arguments: dict[str, Any], headers: dict[str, str]) -> None:
    sent = {f"mcp-param-{name}".encode(): value.encode("utf-8") for name, value in headers.items()}
    with pytest.raises(HeaderMismatch):
        check_params(SCHEMA, arguments, sent)


@each(
    ("arguments", "headers"),
    [
        *(({"count": count}, {"count": sent}) for count, sent in ((42, "42.0"), (42.0, "42"), (-42, " -42.00 "))),
        ({"count": 42}, {"count": "=?base64?NDI=?="}),
        *(({"region": "a"}, {"region": sent}) for sent in ("=?base64?YQ==?=", "\ta ")),
        *(({"region": same}, {"region": same}) for same in ("=?base64?", "")),
        ({"dry": True}, {"dry": "true"}),
    ],
)
def test_headers_that_match_the_arguments_are_accepted(arguments: dict[str, Any], headers: dict[str, str]) -> None:
    check_params(SCHEMA, arguments, {f"mcp-param-{name}".encode(): value.encode() for name, value in headers.items()})


ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "region": st.none() | st.text(),
        "count": st.none() | st.integers(-(2**53) + 1, 2**53 - 1),
        "dry": st.none() | st.booleans(),
        "where": st.none() | st.fixed_dictionaries({}, optional={"city": st.text()}),
    },
)


@given(ARGUMENTS)
def test_a_server_accepts_the_headers_of_a_client(arguments: dict[str, Any]) -> None:
    headers = param_headers(SCHEMA, arguments)
    assert all(re.fullmatch(r"[\x20-\x7e]*", value) for value in headers.values())
    check_params(SCHEMA, arguments, as_sent(headers))


@given(ARGUMENTS, ARGUMENTS)
def test_a_server_refuses_the_headers_of_different_arguments(arguments: dict[str, Any], others: dict[str, Any]) -> None:
    ours, theirs = param_headers(SCHEMA, arguments), param_headers(SCHEMA, others)
    if ours == theirs:
        check_params(SCHEMA, arguments, as_sent(theirs))
    else:
        with pytest.raises(HeaderMismatch):
            check_params(SCHEMA, arguments, as_sent(theirs))
