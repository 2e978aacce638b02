"""Challenges: the parser reads written challenges, and follows the grammar or skips challenges of other software."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.auth.challenges import Challenge, parse, write
from tests.harness.effort import each

NAMES = st.text("!#$%&'*+-.^_`|~09azAZ", min_size=1, max_size=8)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20)


def read(*values: str) -> list[tuple[str, dict[str, str], str | None]]:
    return [(one.scheme, dict(one.parameters), one.token) for one in parse(values)]


@given(st.lists(st.tuples(NAMES, st.dictionaries(NAMES.map(str.lower), VALUES, max_size=4)), max_size=4), st.booleans())
def test_written_challenges_are_parsed_from_one_or_several_headers(
    written: list[tuple[str, dict[str, str]]], one: bool
) -> None:
    values = [write(scheme, parameters) for scheme, parameters in written]
    expected = [(scheme.lower(), parameters, None) for scheme, parameters in written]
    assert read(*([", ".join(values)] if one else values)) == expected


BASIC, QUOTED = ("basic", {"realm": "x"}, None), ("basic", {"realm": 'a, Bearer b="c"'}, None)
DPOP = ("dpop", {"algs": "ES256 PS256", "error": "use_dpop_nonce"}, None)
BEARER = ("bearer", {"scope": "a b", "error": "invalid_token"}, None)


@each(
    ("value", "expected"),
    [
        ("Bearer", [("bearer", {}, None)]),
        ("Negotiate a87421000492aa874209af8bc028==", [("negotiate", {}, "a87421000492aa874209af8bc028==")]),
        ("NTLM, Basic realm=x", [("ntlm", {}, None), BASIC]),
        ('Basic realm="a, Bearer b=\\"c\\"" , DPoP algs="ES256 PS256", error=use_dpop_nonce', [QUOTED, DPOP]),
        (',, Bearer  scope = \t"a b" ,, ERROR=invalid_token,', [BEARER]),
        ("Bearer a=1, b", [("bearer", {"a": "1"}, None), ("b", {}, None)]),
        ("Bearer a=1, a=2, Basic realm=x", [BASIC]),
        ('Bearer a="open, Basic realm=x', []),
        ("Basic realm=x, Bearer a=b c, DPoP", [BASIC]),
        ('Bearer scope="a\x00b"', []),
        ("", []),
    ],
)
def test_challenges_are_parsed_by_the_grammar(value: str, expected: object) -> None:
    assert read(value) == expected


@given(st.text('Bearer =",\\ \t\x00é', max_size=40))
def test_the_parser_does_not_fail_on_any_text(value: str) -> None:
    assert all(isinstance(one, Challenge) for one in parse([value]))


def test_a_long_value_is_read_in_linear_time() -> None:
    start = time.process_time()
    for text in ('a="' + "\\" * 100_000, "a " * 50_000, "a=" * 50_000, "," * 100_000, "Bearer " + "a=1, " * 20_000):
        parse([text])
    assert time.process_time() - start < 2


@each("parameters", [{"a b": "x"}, {"a": "x\r\nSet-Cookie: y"}, {"": "x"}, {"a": "é"}])
def test_parameters_that_are_invalid_in_a_header_are_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="in a challenge"):
        write("Bearer", parameters)
