"""Round trips of printed models, and the JSON Schema that describes them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_bindgen.conversion.document import Model, json_schema, read, write
from mcp_bindgen.conversion.source import is_model, model_of
from mcp_bindgen.ir import build
from mcp_bindgen.ir import model as m
from mcp_bindgen.spec import BadInput, Store, extend
from mcp_bindgen.spec.sources import Source
from tests.harness.commands import ROOT, inside
from tests.harness.effort import examples

STORE = Store()
NAMES = ["A", "B", "C"]

words = st.text(max_size=4)
names = st.lists(words, max_size=2).map(tuple)
json_scalars = st.none() | st.booleans() | st.integers() | words | st.floats(allow_nan=False, allow_infinity=False)
limits = st.dictionaries(st.sampled_from(["minLength", "maximum"]), st.integers(), max_size=2).map(
    lambda found: tuple(found.items())
)
references = st.sampled_from(NAMES).map(m.Ref)
types: st.SearchStrategy[m.Type] = st.recursive(
    st.builds(m.AnyValue, implied=st.booleans())
    | st.builds(m.Scalar, st.sampled_from(["string", "integer", "null"]), limits, st.none() | words)
    | st.builds(m.Const, st.lists(json_scalars, max_size=3).map(tuple))
    | references,
    lambda inner: (
        st.builds(m.Array, inner, limits)
        | st.builds(m.Map, inner)
        | st.builds(m.Union, st.lists(inner, min_size=1, max_size=3).map(tuple))
    ),
    max_leaves=4,
)
fallbacks = st.just("") | st.recursive(json_scalars, lambda inner: st.lists(inner), max_leaves=3).map(json.dumps)
fields = st.builds(m.Field, words, types, st.booleans(), st.none() | json_scalars, words, fallbacks)
objects = st.builds(m.Object, st.lists(fields, max_size=3).map(tuple), st.none() | types)


def pairs(values: st.SearchStrategy[Any], keys: st.SearchStrategy[str] = words) -> st.SearchStrategy[Any]:
    """Return a strategy for pairs with different keys."""
    return st.dictionaries(keys, values, max_size=2).map(lambda found: tuple(found.items()))


methods = st.builds(
    m.Method,
    words,
    st.sampled_from(NAMES),
    st.sampled_from(["request", "notification"]),
    st.sampled_from([("client",), ("server",), ("client", "server")]),
    params=st.none() | references,
    result=st.none() | types,
    alternatives=st.lists(types, max_size=2).map(tuple),
    capabilities=pairs(words.map("client.{}".format), st.sampled_from(["client", "server"])),
    setting=words,
)
extensions = st.builds(
    m.Extension,
    *(words, words, words, words),
    options=pairs(words),
    meta_keys=st.lists(st.builds(m.MetaKey, words, types), max_size=2).map(tuple),
    alternatives=pairs(st.lists(st.sampled_from(NAMES), max_size=2).map(tuple)),
    cache_invalidations=pairs(names),
)
random_models = st.builds(
    lambda bodies, **more: Model(
        m.Protocol("draft", "stateless", "", {name: m.Definition(name, body) for name, body in bodies.items()}, **more)
    ),
    st.fixed_dictionaries(dict.fromkeys(NAMES, objects | types)),
    methods=st.lists(methods, max_size=3).map(tuple),
    errors=st.lists(st.builds(m.ErrorCode, words, st.integers()), max_size=2).map(tuple),
    capabilities=st.lists(st.builds(m.Capability, st.just("client"), words, st.booleans()), max_size=2).map(tuple),
    facts=st.builds(m.Facts, utilities=pairs(words), meta_keys=names, batches=st.booleans()),
    extensions=st.lists(extensions, max_size=2).map(tuple),
)


def source(text: str) -> Source:
    """Return printed text as a source file."""
    return Source(text.encode(), "model.json", "draft", "model.json")


@cache
def validator() -> jsonschema_rs.Draft202012Validator:
    """Return the validator of printed models."""
    schema = json_schema()
    jsonschema_rs.meta.validate(schema)
    return jsonschema_rs.Draft202012Validator(schema)


def check_round_trip(model: Model) -> None:
    """Check that printing and reading a model changes nothing."""
    text = write(model)
    assert is_model(source(text))
    again = read(source(text))
    assert again == model
    assert repr(again) == repr(model)  # to Python, the constants 1, 1.0 and true are equal
    assert write(again) == text
    validator().validate(json.loads(text))


@pytest.mark.full
@pytest.mark.parametrize("revision", STORE.pins)
def test_models_of_revisions_round_trip(revision: str) -> None:
    model = model_of(revision, STORE)
    assert {plan.source.revision for plan in model.bridges} == {revision}
    check_round_trip(model)


def test_models_with_extensions_round_trip() -> None:
    core = STORE.effective("2026-07-28")
    model = Model(build(extend(core, *STORE.extensions_of(core))))
    assert len(model.protocol.extensions) == 3
    check_round_trip(model)


@pytest.mark.parametrize("revision", STORE.pins)
def test_the_model_has_the_order_that_its_page_states(revision: str) -> None:
    protocol = build(STORE.effective(revision))
    codes = [error.code for error in protocol.errors]
    assert codes == sorted(codes)
    for found in (
        list(protocol.definitions),
        [method.name for method in protocol.methods],
        *([field.wire for field in protocol.fields_of(one.type)] for one in protocol.definitions.values()),
    ):
        assert found == sorted(found)
    union = protocol.definitions["ClientRequest"].type
    stated = STORE.effective(revision).definitions["ClientRequest"]["anyOf"]
    assert isinstance(union, m.Union)
    assert [one["$ref"].rpartition("/")[2] for one in stated] == m.references(union)


@pytest.mark.full
@given(random_models)
@settings(max_examples=examples(20, 600), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_random_models_round_trip(model: Model) -> None:
    check_round_trip(model)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all objects and arrays of a document with the keys of their members."""
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in members:
        yield node, key
        yield from places(inner)


@pytest.mark.full
@given(random_models, st.integers(0, 2**32))
@settings(max_examples=examples(100, 1000), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_models_that_violate_the_json_schema_are_refused(model: Model, seed: int) -> None:
    document, random = json.loads(write(model)), Random(seed)
    holder, key = random.choice([*places(document)])
    if random.random() < 0.3:
        del holder[key]
    else:
        holder[key] = random.choice([None, 0, "x", {}, [], {"kind": "none"}, {"kind": "ref", "name": "Nothing"}])
    try:
        read(source(json.dumps(document)))
    except BadInput:
        return
    validator().validate(document)


REMOVED: Any = object()
ROLE = ("protocol", "definitions", "Annotations", "type", "fields", 0, "type", "items")
REQUESTS = ("protocol", "definitions", "ClientRequest", "type")
METHODS = ("protocol", "methods")
MEMBERS = [
    *((0, "truncation", member) for member in ("holder", "values", "total", "more")),
    (0, "arguments", 0),
    *((5, "filter", member) for member in ("member", "compares")),
    (10, "named_by"),
    (16, "needs", 0, "member"),
    (16, "opt_in"),
    *((19, "header_params", member) for member in ("listed_by", "items", "name", "schema", "arguments")),
]
"""Places in the methods of 2026-07-28 that name members."""

DAMAGES: list[tuple[tuple[Any, ...], Any, str]] = [
    (("format",), "mcp-bindgen-model/9", "#/format: the format is 'mcp-bindgen-model/9'"),
    (("protocol", "era"), 1, "#/protocol/era: "),
    (("protocol", "era"), None, "#/protocol/era: "),
    (("protocol", "era"), REMOVED, "#/protocol: the member 'era' is missing"),
    (("protocol", "era"), "modern", "#/protocol/era: "),
    (("protocol", "age"), 1, "#/protocol/age: "),
    ((*REQUESTS, "members"), [], "#/protocol/definitions/ClientRequest/type/members: "),
    ((*REQUESTS, "tag"), "a b", "#/protocol/definitions/ClientRequest: there is no member 'a b'"),
    *(((*METHODS, *place), "a b", f"#/protocol/methods/{place[0]}: there is no member ") for place in MEMBERS),
    ((*METHODS, 0, "capabilities", "client"), "a b", "#/protocol/methods/0/capabilities/client: "),
    ((*METHODS, 16, "needs", 0, "capability"), "tools", "#/protocol/methods/16/needs/0/capability: "),
    ((*ROLE, "kind"), "reff", "#/protocol/definitions/Annotations/type/fields/0/type/items: "),
    ((*ROLE, "name"), "Rule", "#/protocol/definitions/Annotations: there is no definition 'Rule'"),
    (("protocol", "definitions", "Role", "name"), "Rule", "#/protocol/definitions/Role/name: "),
]


@pytest.mark.full
@pytest.mark.parametrize(("place", "value", "says"), DAMAGES)
def test_a_damaged_model_is_refused_with_its_json_pointer(place: tuple[Any, ...], value: Any, says: str) -> None:
    document = holder = json.loads(write(model_of("2026-07-28", STORE)))
    for key in place[:-1]:
        holder = holder[key]
    if value is REMOVED:
        del holder[place[-1]]
    else:
        holder[place[-1]] = value
    with pytest.raises(BadInput) as caught:
        read(source(json.dumps(document)))
    assert str(caught.value).removeprefix("model.json").startswith(says)


@pytest.mark.full
def test_commands_accept_a_printed_model(tmp_path: Any) -> None:
    for revision in ("2025-11-25", "2026-07-28"):
        done = inside("model", revision)
        assert (done.returncode, done.stderr) == (0, "")
        (tmp_path / f"{revision}.json").write_text(done.stdout, "utf-8")
    files = [str(tmp_path / f"{revision}.json") for revision in ("2025-11-25", "2026-07-28")]
    assert inside("diff", *files).stdout == inside("diff", "2025-11-25", "2026-07-28").stdout
    done = inside("generate", "--schema", files[1], "--out", str(tmp_path), "--package", "acme")
    assert (done.returncode, done.stderr) == (0, "")
    ours = (ROOT / "generated" / "mcp_bindgen" / "v2026_07_28" / "methods.py").read_text("utf-8")
    made = (tmp_path / "acme" / "methods.py").read_text("utf-8")
    assert made.partition('"""')[2] == ours.partition('"""')[2]
    assert inside("methods", files[1]).stdout == inside("methods", "2026-07-28").stdout


def test_the_json_schema_is_printed() -> None:
    assert json.loads(inside("model", "--json-schema").stdout) == json_schema()


def test_the_example_of_the_documentation_is_part_of_the_model() -> None:
    page = (ROOT / "docs" / "reference" / "model.md").read_text("utf-8")
    shown = [json.loads(block) for block in page.split("```json\n")[1:] for block in [block.partition("```")[0]]]
    model = json.loads(write(model_of("2026-07-28", STORE)))
    whole = json.dumps(model)
    assert len(shown) >= 4
    for part in shown:
        assert json.dumps(part) in whole, part
