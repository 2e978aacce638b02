"""Expansion and matching of URI templates."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
import uritemplate
from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.app import UriTemplate
from tests.harness.effort import each

OPERATORS = ["", "+", "#", ".", "/", ";", "?", "&"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PLAIN = st.text("abcXYZ019-_~äß€ %:/?#[]@!$&'()*+,;=", max_size=8)

VALUES: dict[str, Any] = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"comma": ",", "dot": ".", "semi": ";"},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "undef": None,
}
"""Variables of the examples in RFC 6570, section 3.2."""

BODIES = [
    "var", "hello", "half", "path", "base", "empty", "undef", "list", "list*", "keys", "keys*", "var:3", "var:30",
    "x,y", "x,hello,y", "x,empty", "x,undef", "undef,y", "v,empty,who", "path,x", "who,who", "half,who", "count",
    "count*", "dom*", "path*,dub:4", "list*,path:4", "keys,keys*", "hello:5", "path:6",
]  # fmt: skip


@pytest.mark.full
@each("operator", OPERATORS)
@each("body", BODIES)
def test_expansion_matches_the_reference_implementation(operator: str, body: str) -> None:
    template = f"a/{{{operator}{body}}}/z"
    assert UriTemplate(template).expand(VALUES) == uritemplate.expand(template, VALUES)


@each(
    ("template", "uri"),
    [
        ("{var}{hello}{half}", "valueHello%20World%2150%25"),
        ("{+base}index", "http://example.com/home/index"),
        ("{+hello}{+half}", "Hello%20World!50%25"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{#path:6}here", "#/foo/bhere"),
        ("X{.x,y}{.undef}", "X.1024.768"),
        ("www{.dom*}", "www.example.com"),
        ("{/var:1,var}{/list*,path:4}", "/v/value/red/green/blue/%2Ffoo"),
        ("{;x,y,empty}{;list*}", ";x=1024;y=768;empty;list=red;list=green;list=blue"),
        ("{?x,y,empty,undef}{&keys*}", "?x=1024&y=768&empty=&comma=%2C&dot=.&semi=%3B"),
    ],
)
def test_expansion_matches_rfc_6570(template: str, uri: str) -> None:
    assert UriTemplate(template).expand(VALUES) == uri


@given(st.sampled_from(OPERATORS), st.sampled_from(["{%sa}", "{%sa,b}", "x{%sb:2}", "{%sa*}y"]), TEXTS, TEXTS)
def test_expansion_of_any_text_matches_the_reference_implementation(operator: str, form: str, a: str, b: str) -> None:
    template = form % operator
    assert UriTemplate(template).expand({"a": a, "b": b}) == uritemplate.expand(template, {"a": a, "b": b})


@each("operator", OPERATORS)
@each("nothing", [[], {}, None])
@each("modifier", ["", "*"])
def test_an_undefined_variable_expands_to_nothing(operator: str, nothing: Any, modifier: str) -> None:
    assert UriTemplate(f"a{{{operator}x{modifier}}}").expand({"x": nothing}) == "a"


def test_partly_encoded_values_are_encoded_completely() -> None:
    assert UriTemplate("grün/{+a}{#a}").expand({"a": "a b%20ü"}) == "gr%C3%BCn/a%20b%20%C3%BC#a%20b%20%C3%BC"


def test_members_keep_their_order() -> None:
    values = {"a": {"y": "1", "x": "2"}, "b": {"d": "1", "c": "2"}}
    assert UriTemplate("{?a*}{&b}").expand(values) == "?y=1&x=2&b=d,1,c,2"


def test_numbers_and_booleans_expand_to_text() -> None:
    assert UriTemplate("{a}{b}{?c}").expand({"a": 1, "b": 2.5, "c": True}) == "12.5?c=true"


@each(
    ("template", "uri", "found"),
    [
        ("note://{id}", "note://7", {"id": "7"}),
        ("note://{id}", "note://a%20b%2Fc", {"id": "a b/c"}),
        ("note://{id}", "note://a b", {"id": "a b"}),
        ("note://{id}", "note://gr%C3%BCn", {"id": "grün"}),
        ("note://{id}", "note://grün", {"id": "grün"}),
        ("note://{id}", "note://a/b", None),
        ("note://{id}", "note://a?b", None),
        ("note://{id}", "notes://a", None),
        ("note://{id}", "note://", {}),
        ("note://{id}", "note://%FF", None),
        ("note://{id}", "note://%zz", {"id": "%zz"}),
        ("grün/{id}", "gr%c3%bcn/1", {"id": "1"}),
        ("file:///{+path}", "file:///a/b/c.txt", {"path": "a/b/c.txt"}),
        ("file:///{+path}/edit", "file:///a/edit/b/edit", {"path": "a/edit/b"}),
        ("{+a}-{b}", "x-y/z-w", {"a": "x-y/z", "b": "w"}),
        ("day://{y}-{m}-{d}", "day://2026-11-21", {"y": "2026", "m": "11", "d": "21"}),
        ("{x}/{x}", "1/1", {"x": "1"}),
        ("{x}/{x}", "1/2", None),
        ("map{x,y}", "map1,2", {"x": "1", "y": "2"}),
        ("map{x,y}", "map1", {"x": "1"}),
        ("map{x,y}", "map1,2,3", None),
        ("a{/b*}", "a/b/c", {"b": ["b", "c"]}),
        ("a{/first,rest*}", "a/b/c/d", {"first": "b", "rest": ["c", "d"]}),
        ("a{/all*,last}", "a/b/c/d", {"all": ["b", "c"], "last": "d"}),
        ("a{/b}{/c}", "a/1/2", {"b": "1", "c": "2"}),
        ("www{.dom*}", "www.example.com", {"dom": ["example", "com"]}),
        ("a{;x,y}", "a;x=1;y", {"x": "1", "y": ""}),
        ("a{?q,limit}", "a", {}),
        ("a{?q,limit}", "a?limit=5&q=a%26b", {"q": "a&b", "limit": "5"}),
        ("a{?q,limit}", "a?other=1", None),
        ("a{?q}", "a?q=1&q=2", None),
        ("a?fixed=1{&q}", "a?fixed=1&q=x", {"q": "x"}),
        ("a{?q*}", "a?q=1&q=2", {"q": ["1", "2"]}),
        ("a{?q*}", "a?x=1&y=2", {"q": {"x": "1", "y": "2"}}),
        ("a{?q*}", "a?x=1&q=2", None),
        ("a{?q*}", "a?q=1&x=2", None),
        ("a{#part}", "a#b/c", {"part": "b/c"}),
        ("a{#part}", "a", {}),
        ("nothing", "nothing", {}),
        ("nothing", "nothing more", None),
        ("", "", {}),
    ],
)
def test_matching_a_uri_returns_its_variables(template: str, uri: str, found: Mapping[str, object] | None) -> None:
    assert UriTemplate(template).match(uri) == found


BETWEEN = st.sampled_from(["/", "/and/", "?a=", ":", "#"])
"""Literals that no percent-encoded value of a simple variable contains."""


@given(st.lists(st.tuples(BETWEEN, PLAIN.filter(bool)), min_size=1, max_size=5))
def test_simple_variables_round_trip(parts: list[tuple[str, str]]) -> None:
    values = {f"v{number}": value for number, (_, value) in enumerate(parts)}
    template = UriTemplate("s:" + "".join(f"{literal}{{v{number}}}" for number, (literal, _) in enumerate(parts)))
    assert template.match(template.expand(values)) == values


@given(st.sampled_from([";", "?", "&"]), st.dictionaries(st.sampled_from(["a", "b_1", "c.d"]), PLAIN))
def test_named_variables_round_trip(operator: str, values: dict[str, str]) -> None:
    template = UriTemplate(f"x{{{operator}a,b_1,c.d}}/z" if operator == ";" else f"x{{{operator}a,b_1,c.d}}")
    assert template.match(template.expand(values)) == values


@given(st.sampled_from(["/", ";", "?", "&"]), st.lists(PLAIN.filter(bool), min_size=1, max_size=4))
def test_lists_round_trip(operator: str, values: list[str]) -> None:
    template = UriTemplate(f"x{{{operator}many*}}")
    assert template.match(template.expand({"many": values})) == {"many": values}


@given(st.dictionaries(PLAIN.filter(lambda name: name != "many"), PLAIN, min_size=1, max_size=4))
def test_dicts_round_trip(values: dict[str, str]) -> None:
    template = UriTemplate("x{?many*}")
    assert template.match(template.expand({"many": values})) == {"many": values}


@given(st.text("abc/{}*:,+?&;#.%0ä", max_size=20), TEXTS)
def test_any_text_is_a_template_or_refused(text: str, uri: str) -> None:
    try:
        template = UriTemplate(text)
    except ValueError:
        return
    template.match(uri)
    assert template.match(template.expand({})) is not None or template.variables


@each("text", ["{", "}", "a{b", "a}b", "{}", "{a,}", "{,a}", "{a b}", "{-a}", "{=a}", "{!a}", "{a:0}", "{a:12345}",
               "{a:x}", "{a:}", "{a*:3}", "{a:3*}", "{{a}}", "a b", "a\nb", "{ä}", "{a..b}", "{%4}"])  # fmt: skip
def test_bad_templates_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a URI template"):
        UriTemplate(text)


def test_a_template_describes_its_variables() -> None:
    described = [
        (one.name, one.explode, one.length, one.optional, one.named)
        for one in UriTemplate("{a}{+b:3}{/c*}{?d,a}").variables
    ]
    assert described == [
        ("a", False, None, False, False),
        ("b", False, 3, False, False),
        ("c", True, None, True, False),
        ("d", False, None, True, True),
    ]


def test_literal_templates_are_more_specific_than_general_ones() -> None:
    texts = ["note://{+all}", "note://{id}/{part}", "note://{id}/x", "note://fixed", "{+all}"]
    ordered = sorted(texts, key=lambda text: UriTemplate(text).specificity, reverse=True)
    assert ordered == ["note://fixed", "note://{id}/x", "note://{id}/{part}", "note://{+all}", "{+all}"]


@each(
    ("template", "uri"),
    [
        ("cal://{a}-{b}-{c}-{d}", "cal://" + "-" * 60_000 + "/"),
        ("cal://{a}-{b}-{c}-{d}", "cal://" + "-" * 60_000),
        ("x{+a}{+b}{+c}{+d}y", "x" + "x" * 60_000),
        ("x{/a}{/b}{/c*}", "x" + "/a" * 30_000 + "?"),
        ("x{?a*}", "x?" + "&".join(f"k{number}=1" for number in range(5_000))),
    ],
)
def test_hostile_uris_are_matched_within_a_second(template: str, uri: str) -> None:
    began = time.process_time()
    UriTemplate(template).match(uri)
    assert time.process_time() - began < 1


def test_overlong_uris_do_not_match() -> None:
    assert UriTemplate("{a}").match("a" * 100_000) is None
