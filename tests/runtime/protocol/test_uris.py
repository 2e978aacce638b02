"""Canonical URIs of resources, and keys of access rules that are independent of a URI's spelling."""

from __future__ import annotations

import time
from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st

from mcp_bindgen.auth.resource_server.policy import rule_keys
from mcp_bindgen.http.server.access import operations_named
from mcp_bindgen.runtime.protocol.uris import canonical, followed_key, lineage
from tests.harness.effort import each

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30) | st.text("aB:/?#[]@.%~2Fé\\ \t\x00", max_size=20)
SEGMENTS = st.text("abcXYZ019-._~é", min_size=1, max_size=6).filter(lambda text: text not in (".", ".."))


@st.composite
def spellings(draw: st.DrawFn) -> tuple[str, str]:
    """Return a URI and an equivalent spelling of it."""
    host, segments = draw(st.text("abc01", min_size=1, max_size=5)), draw(st.lists(SEGMENTS, max_size=3))

    def written(text: str, *, any_case: bool = False) -> str:
        found = ""
        for char in text:
            octets = "".join(f"%{octet:02X}" for octet in char.encode())
            shown = draw(st.sampled_from([char, octets, octets.lower()]))
            found += shown.swapcase() if any_case and shown == char and draw(st.booleans()) else shown
        return found

    path = ""
    for segment in segments:
        detour = draw(st.sampled_from(["", "/.", "/x/..", "/%2e", "/x/%2E."]))
        path += f"{detour}/{written(segment)}"
    scheme = draw(st.sampled_from(["note", "NOTE", "nOte"]))
    return f"note://{'/'.join([host, *segments])}", f"{scheme}://{written(host, any_case=True)}{path}"


@given(spellings())
def test_spellings_of_a_uri_have_one_canonical_form(pair: tuple[str, str]) -> None:
    uri, other = pair
    assert canonical(other) == canonical(uri) == quote(uri, safe=":/~")
    assert rule_keys(other)[-1] == rule_keys(uri)[-1]
    assert followed_key(other) in lineage(uri)


@given(TEXTS)
def test_canonicalization_is_idempotent(text: str) -> None:
    for fold_host in (True, False):
        found = canonical(text, fold_host=fold_host)
        assert (canonical(found, fold_host=fold_host), canonical(found)) == (found, canonical(text))


@each(
    ("uri", "form"),
    [
        ("NOTE://H%41%2f%c3%a9?%7E#%7e", "note://ha%2F%C3%A9?~#~"),
        ("note://User@HOST:80/A", "note://User@host:80/A"),
        ("note://a%2FB/C", "note://a%2Fb/C"),
        ("file:///a/./b/../%2E%2e/c/.", "file:///c/"),
        ("x://h/../../a", "x://h/a"),
        ("urn:a/../b", "urn:a/../b"),  # only absolute paths have dot segments
        ("x:/.//h", "x:/.//h"),  # the path does not become a host
        ("%6eote://a", "note://a"),
        ("note://é", "note://%C3%A9"),
        ("note://e\u0301", "note://e%CC%81"),
        ("note://%C0%AF", "note://%C0%AF"),  # an overlong UTF-8 sequence is not a slash
        ("note://%zz%", "note://%25zz%25"),
        ("note://a\x00 ", "note://a%00%20"),
        ("note://a", "note://a"),
        ("note://a/", "note://a/"),
        ("note:a", "note:a"),
    ],
)
def test_canonical_forms(uri: str, form: str) -> None:
    assert canonical(uri) == form


SAME_RULE = ["note://pay/roll", "note:\\\\pay\\roll", " note://pay/ro\tll"]
SAME_RULE += ["NOTE://%50ay/%72oll", "note:pay/roll", "note:///pay/roll", "note://pay%2Froll", "note://pay%252Froll"]
SAME_RULE += ["note://pay/%2572oll", "note://pay//roll/", "note://x%2F..%2Fpay/roll", "note://x/../pay/roll"]
SAME_RULE += ["note://pay./roll", "note://pay:/roll", "note://pay/roll%00", "note://pay/roll?", "note://pay/roll?a=b"]
SAME_RULE += ["note://pay/roll#c", "note://pay/roll?a#c", "note%3A//pay/roll"]


@each("uri", SAME_RULE)
def test_an_access_rule_applies_to_each_interpretation_of_a_uri(uri: str) -> None:
    (rule,) = rule_keys("note://pay/roll")
    assert rule in rule_keys(uri)


@each("uri", ["note://pay/rolls", "note://pay", "note://pay/ROLL", "notes://pay/roll", "pay/roll"])
def test_an_access_rule_applies_to_no_other_uri(uri: str) -> None:
    assert rule_keys("note://pay/roll")[0] not in rule_keys(uri)


def test_an_access_rule_with_a_query_applies_only_to_that_query() -> None:
    (rule, *_) = rule_keys("db://t?kind=secret")
    assert rule in rule_keys("db://t?kind=%73ecret#row")
    assert rule not in [*rule_keys("db://t?kind=public"), *rule_keys("db://t")]


@each("name", ["read", "Read", "ré", "re\u0301", "a.b", "a/b", "../a"])
def test_names_are_compared_without_normalization(name: str) -> None:
    assert rule_keys(name) == [name]


@each("unit", ["%", "%41", "/", "/..", "/a", "é", "%25", "note:", "?", "\\", "%2F", "/.", "a"])
def test_hostile_uris_take_little_time(unit: str) -> None:
    uri, begun = "note://" + unit * (60_000 // len(unit)), time.process_time()
    for read in (canonical, lineage, rule_keys):
        read(uri)
    assert time.process_time() - begun < 5  # seconds of CPU time; a quadratic search takes minutes


@each("odd", [{}, [], 5, None, True])
def test_names_and_uris_that_are_not_strings_are_ignored(odd: object) -> None:
    assert operations_named("tools/call", {"name": odd}) == [("tools/call", None)]
    assert operations_named("resources/read", {"name": odd, "uri": odd}) == [("resources/read", None)]
