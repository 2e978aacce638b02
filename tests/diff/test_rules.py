"""The semantic diff: every rule on a small schema, then the revisions themselves."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.conversion.document import Model, write
from mcp_bindgen.diff import Comparison, Finding, compare
from mcp_bindgen.diff.accept import Acceptance, accept, read_acceptances
from mcp_bindgen.diff.finding import RULES, Area, Impact, Message, Outcome, Plane, Severity, impacts
from mcp_bindgen.diff.grouping import grouped
from mcp_bindgen.diff.match import match
from mcp_bindgen.diff.select import Selection
from mcp_bindgen.diff.source import load, timeline
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.spec import BadInput, EffectiveSchema, Store
from mcp_bindgen.spec.document import normalise
from tests.harness.commands import save, shuffled
from tests.harness.effort import selection
from tests.harness.small_schemas import Schema, draft, message, record, ref, small, union

STORE = Store()
REVISIONS = list(STORE.pins)
PAIRS = selection([*pairwise(REVISIONS), *pairwise(REVISIONS[::-1])], list(permutations(REVISIONS, 2)))

B, R, I, S, N = Impact.BREAKS, Impact.RISKY, Impact.IGNORED, Impact.SAFE, Impact.NONE  # noqa: E741

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}


@cache
def revision(name: str) -> Protocol:
    return build(STORE.effective(name))


@cache
def between(old: str, new: str) -> Comparison:
    return compare(revision(old), revision(new))


def model(schema: Schema, semantics: Mapping[str, Any] | None = None) -> Protocol:
    facts = {**STORE.semantics, **(semantics or {})}
    return build(EffectiveSchema("draft", normalise(copy.deepcopy(schema))["$defs"], "digest", facts))


def found(old: Schema, new: Schema) -> list[Finding]:
    return list(compare(model(old), model(new)).findings)


def brief(findings: list[Finding]) -> list[tuple[str, str, Impact, Impact]]:
    return [(finding.rule, finding.subject, finding.old_client, finding.new_client) for finding in findings]


def on_wire(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.plane is Plane.WIRE]


# --- every rule, for values of clients and of servers -------------------------------------------------------------


def sent(field: Any, *, required: bool = False, closed: bool = False) -> Schema:
    """Return a schema in which a client sends the member `it` in params, and a server sends it in a result."""
    names = {"title": TEXT} if field is None else {"title": TEXT, "it": field}
    both = {
        **record("title it" if required else "title", **names),
        **({"additionalProperties": False} if closed else {}),
    }
    return small(FindBookRequestParams=both, FindBookResult=both)


BOOK, FILM = record("form", form={"const": "book"}, pages=WHOLE), record("form", form={"const": "film"})


def either(*names: str) -> Schema:
    return {**sent(union(*names)), "$defs": {**sent(union(*names))["$defs"], "Book": BOOK, "Film": FILM}}


MEMBERS: list[tuple[str, Schema, Schema, Impact, Impact]] = [
    # rule, old, new, and the impacts if a client sends the member; they swap if a server sends it
    ("field-added-optional", sent(None), sent(TEXT), S, I),
    ("field-added-required", sent(None), sent(TEXT, required=True), B, I),
    ("field-became-required", sent(TEXT), sent(TEXT, required=True), B, S),
    ("type-narrowed", sent({"type": ["string", "integer"]}), sent(TEXT), B, S),
    ("became-non-nullable", sent({"type": ["string", "null"]}), sent(TEXT), B, S),
    ("number-to-integer", sent(NUMBER), sent(WHOLE), B, S),
    ("enum-value-removed", sent({"enum": ["a", "b", "c"]}), sent({"enum": ["a", "b"]}), B, S),
    ("const-added", sent(TEXT), sent({"const": "a"}), B, S),
    ("constraint-tightened", sent({**WHOLE, "minimum": 0}), sent({**WHOLE, "minimum": 1}), B, S),
    ("constraint-tightened", sent(WHOLE), sent({**WHOLE, "maximum": 9}), B, S),
    ("constraint-tightened", sent(TEXT), sent({**TEXT, "pattern": "^a"}), B, S),
    ("constraint-tightened", sent({"type": "array"}), sent({"type": "array", "maxItems": 3}), B, S),
    ("type-changed", sent(TEXT), sent(WHOLE), B, B),
    ("type-changed", sent({**WHOLE, "multipleOf": 2}), sent({**WHOLE, "multipleOf": 3}), B, B),
    ("const-changed", sent({"const": "a"}), sent({"const": "b"}), B, B),
    ("pattern-changed", sent({**TEXT, "pattern": "^a"}), sent({**TEXT, "pattern": "^b"}), R, R),
    ("format-changed", sent(TEXT), sent({**TEXT, "format": "uri"}), R, R),
    ("default-changed", sent(TEXT), sent({**TEXT, "default": "a"}), R, R),
    ("type-narrowed", sent(True), sent(TEXT), B, S),
    ("type-narrowed", sent({"type": "object"}), sent({"type": "object", "additionalProperties": TEXT}), B, S),
]


def test_a_changed_field_gives_mirrored_findings_for_client_and_server() -> None:
    for rule, old, new, old_client, new_client in MEMBERS:
        mirror = RULES[rule].mirror
        findings = {finding.subject.split(".")[0]: finding for finding in found(old, new)}
        assert set(findings) == {"FindBookRequest", "FindBookResult"}
        client, server = findings["FindBookRequest"], findings["FindBookResult"]
        assert (client.rule, client.old_client, client.new_client) == (rule, old_client, new_client)
        assert (server.rule, server.old_client, server.new_client) == (rule, new_client, old_client)
        subjects = {finding.subject.replace("{}", "") for finding in findings.values()}
        assert subjects == {"FindBookRequest.params.it", "FindBookResult.it"}
        back = found(new, old)
        assert [finding.rule for finding in back] == [mirror, mirror]
        assert all(finding.witness is not None for finding in [*findings.values(), *back])


def test_added_and_removed_union_members_are_found() -> None:
    one, both = either("Book"), either("Book", "Film")
    client, server = "FindBookRequest.params.it|Film", "FindBookResult.it|Film"
    added, removed = "union-member-added", "union-member-removed"
    assert sorted(brief(on_wire(found(one, both)))) == [(added, client, S, B), (added, server, B, S)]
    assert sorted(brief(on_wire(found(both, one)))) == [(removed, client, B, S), (removed, server, S, B)]


def test_an_added_union_member_that_an_old_member_accepts_is_risky() -> None:
    names = {"Any": record("form", form=TEXT), "Film": FILM}
    old = small(names, FindBookResult=record(it=ref("Any")))
    (finding,) = on_wire(found(old, small(names, FindBookResult=record(it=union("Any", "Film")))))
    assert brief([finding]) == [("union-member-added", "FindBookResult.it|Film", R, S)]
    assert finding.witness is not None
    assert finding.witness.old_accepts


def test_a_variant_that_the_other_type_accepts_breaks_nothing() -> None:
    for rule, old, new in [
        ("enum-value-added", {"anyOf": [{"const": "a"}, TEXT]}, {"anyOf": [{"enum": ["a", "b"]}, TEXT]}),
        ("type-widened", TEXT, {"anyOf": [{"const": "a"}, TEXT]}),
        ("type-widened", NUMBER, {"type": ["integer", "number"]}),
    ]:
        for one, other, known in ((old, new, rule), (new, old, RULES[rule].mirror)):
            findings = on_wire(found(sent(one), sent(other)))
            assert {(one.rule, max(one.old_client, one.new_client)) for one in findings} == {(known, R)}
            assert all(one.witness is not None for one in findings)
    for old, new in [
        ({"type": ["string", "null"]}, {"anyOf": [TEXT, {"const": None}]}),
        ({"type": "array", "items": TEXT}, {"type": "array", "items": {**TEXT, "minLength": 0}, "minItems": 0}),
    ]:
        assert not on_wire(found(sent(old), sent(new)))


def test_a_field_added_to_a_closed_object_is_breaking() -> None:
    findings = found(sent(None, closed=True), sent(TEXT, closed=True))
    assert sorted(brief(findings)) == [
        ("field-added-optional", "FindBookRequest.params.it", S, B),
        ("field-added-optional", "FindBookResult.it", B, S),
    ]
    opened = found(sent(None, closed=True), sent(None))
    assert {finding.rule for finding in opened} == {"additional-properties-opened"}
    closed = found(sent(None), sent(None, closed=True))
    assert {finding.rule for finding in closed} == {"additional-properties-closed"}
    assert all(finding.witness for finding in [*findings, *opened, *closed])


def test_a_renamed_field_is_found() -> None:
    for required in [False, True]:
        names = "title ttl" if required else "title"
        old = small(FindBookRequestParams=record(names, title=TEXT, ttl=WHOLE))
        new = small(FindBookRequestParams=record(names.replace("ttl", "ttlMs"), title=TEXT, ttlMs=WHOLE))
        (finding,) = found(old, new)
        expected = (B, B) if required else (R, R)  # an optional member is lost without an error, in both pairings
        assert brief([finding]) == [("field-renamed", "FindBookRequest.params.ttlMs", *expected)]
        assert (finding.old, finding.new) == ("ttl", "ttlMs")


def test_the_majority_of_references_decides_the_new_name_of_a_definition() -> None:
    book = record("title", title=TEXT, pages=WHOLE, year=WHOLE)
    novel = record("title", title=TEXT, pages=WHOLE, writer=TEXT)

    def shelf(*names: str) -> Schema:
        return record("", **{f"place{index}": ref(name) for index, name in enumerate(names)})

    old = small(FindBookRequestParams=shelf(*["Alpha"] * 5), Alpha=book)
    new = small(FindBookRequestParams=shelf(*["Beta"] * 2, *["Gamma"] * 3), Beta=book, Gamma=novel)
    assert match(model(old), model(new)).new.get("Alpha") == "Gamma"


OPEN: Schema = {"additionalProperties": {}}
ANY = {"type": "object", "properties": {}, "additionalProperties": True}


def holding(*names: str, required: str = "", **more: Any) -> Schema:
    """Return a schema in which a client and a server send an object with these members."""
    return sent({**record(required, **dict.fromkeys(names, TEXT)), **more})


def test_a_declared_field_that_becomes_an_additional_property_is_found() -> None:
    for old, new, client in [
        (holding("type", "it"), holding("type", **OPEN), (I, R)),
        (holding("type", "it"), holding("type", additionalProperties=True), (I, R)),
        (holding("it"), sent(ANY), (I, R)),
        (holding("type", "it"), holding("type", additionalProperties={"type": ["string", "null"]}), (I, R)),
        (holding("type", "it", required="it"), holding("type", **OPEN), (I, B)),
        (holding("type", "it", **OPEN), holding("type", **OPEN), (I, S)),
    ]:
        expected = [("FindBookRequest.params.it.it", *client), ("FindBookResult.it.it", *client[::-1])]
        there = [finding for finding in on_wire(found(old, new)) if finding.subject.endswith(".it.it")]
        back = [finding for finding in on_wire(found(new, old)) if finding.subject.endswith(".it.it")]
        assert sorted(brief(there)) == [("field-opened", *one) for one in expected]
        assert sorted(brief(back)) == [("field-closed", *one[:1], *one[:0:-1]) for one in expected]
        assert all(finding.witness for finding in [*there, *back])
        assert {finding.hint.partition(".")[0] for finding in there} == {"Keep it, under the same name"}


def test_a_field_that_no_open_object_accepts_is_removed() -> None:
    for old, new, rule in [
        (holding("type", "it"), holding("type"), "field-removed-optional"),  # accepted by default only
        (holding("type", "it"), holding("type", additionalProperties={"type": "integer"}), "field-removed-optional"),
        (holding("type", "it"), holding("type", additionalProperties=False), "field-removed-optional"),
        (holding("type", "a/it"), holding("type", **OPEN), "field-removed-optional"),
        (holding("it", required="it", **OPEN), holding("b", required="b", **OPEN), "field-removed-required"),
    ]:
        changes = [finding for finding in found(old, new) if "it.it" in finding.subject or "a/it" in finding.subject]
        assert {finding.rule for finding in changes} == {rule}


def test_opening_a_field_of_any_type_affects_only_generated_code() -> None:
    findings = found(sent({**record(it={}), "additionalProperties": {}}), sent(ANY))
    assert {(finding.rule, finding.plane) for finding in findings} == {("field-opened", Plane.SOURCE)}


@pytest.mark.full
def test_no_hint_advises_to_stop_sending_fields_of_tool_schemas() -> None:
    """JSON Schemas of tools keep `properties` and `required`, with and without a declaration in the protocol."""
    for old, new in PAIRS:
        for finding in between(old, new).findings:
            if (
                finding.subject.startswith(("Tool.inputSchema.", "Tool.outputSchema."))
                and "$schema" not in finding.subject
            ):
                assert finding.rule in ("field-opened", "field-closed", "type-widened", "type-narrowed"), finding
                assert "top sending" not in finding.hint


def test_a_moved_field_is_found() -> None:
    where = record(shelf=TEXT, room=TEXT)
    old = small(FindBookResult=record(place=record(room=TEXT), shelf=TEXT))
    (finding,) = found(old, small(FindBookResult=record(place=where)))
    assert brief([finding]) == [("field-moved", "FindBookResult.place.shelf", R, R)]
    assert finding.old == "FindBookResult.shelf"
    for outer, place, inner, effects in [
        ("", "", "", (R, R)),
        ("", "", "shelf", (R, R)),
        ("shelf", "place", "shelf", (B, B)),
    ]:
        outside = small(FindBookResult=record(outer, shelf=TEXT, pages=WHOLE))
        inside = small(FindBookResult=record(place, pages=WHOLE, place=record(inner, shelf=TEXT)))
        (there,), (back,) = found(outside, inside), found(inside, outside)
        assert brief([there]) == [("field-moved", "FindBookResult.place.shelf", *effects)]
        assert (back.subject, back.old) == ("FindBookResult.shelf", "FindBookResult.place.shelf")
        assert there.witness
        assert back.witness
    both = small(FindBookResult=record(place=where))  # the object has a member of its own
    assert brief(found(small(FindBookResult=record(shelf=TEXT)), both)) == [
        ("field-moved", "FindBookResult.place.shelf", R, R),
        ("field-added-optional", "FindBookResult.place", I, S),
    ]
    opened = {**record(place=where), "additionalProperties": {}}  # a move, although the old place accepts any member
    assert [one.rule for one in found(old, small(FindBookResult=opened))] == ["field-moved"]


def test_a_boolean_equals_the_enumeration_of_true_and_false() -> None:
    flag = {"enum": [True, False]}
    for old, new in [
        ({"type": "boolean"}, {"type": "boolean", **flag}),
        ({"type": ["null", "boolean"]}, {"enum": [True, False, None]}),
        ({"type": "array", "items": {"type": "boolean"}}, {"type": "array", "items": flag}),
    ]:
        assert found(sent(old), sent(new)) == found(sent(new), sent(old)) == []


def test_a_renamed_safety_hint_is_risky() -> None:
    """Absence of the hint has a meaning, and the receiver ignores the renamed hint."""
    flag = {"type": "boolean", "default": True}
    old = small(FindBookResult=record(destructiveHint=flag, title=TEXT))
    (finding,) = found(old, small(FindBookResult=record(isDestructiveHint=flag, title=TEXT)))
    assert (finding.rule, finding.severity) == ("field-renamed", Severity.RISKY)
    assert "ignores it without an error" in finding.hint


# --- messages -----------------------------------------------------------------------------------------------------

ASK, TOLD = message("reader/ask"), message("notifications/told")


def roles(**members: str) -> Schema:
    """Return the small schema with more messages, each in the given role unions."""
    definitions: Schema = {"AskReaderRequest": ASK, "AskReaderResult": record(answer=TEXT), "ToldNotification": TOLD}
    used = " ".join(members.values()).split()
    kept = {name: schema for name, schema in definitions.items() if name in used or name.endswith("Result")}
    return small(kept, **{union_: union(*names.split()) for union_, names in members.items()})


UP, DOWN = "client->server", "server->client"
ASKS, TELLS = "request reader/ask", "notification notifications/told"
TOLD_UP, TOLD_DOWN = {"ClientNotification": "ToldNotification"}, {"ServerNotification": "ToldNotification"}
ASK_UP, ASK_DOWN = {"ClientRequest": "FindBookRequest AskReaderRequest"}, {"ServerRequest": "AskReaderRequest"}
MESSAGES: list[tuple[str, str, dict[str, str], dict[str, str], Impact, Impact]] = [
    ("request-method-added", f"{UP} {ASKS}", {}, ASK_UP, S, B),
    ("request-method-added", f"{DOWN} {ASKS}", {}, ASK_DOWN, B, S),
    ("notification-added", f"{UP} {TELLS}", {}, TOLD_UP, S, R),
    ("notification-added", f"{DOWN} {TELLS}", {}, TOLD_DOWN, R, S),
    ("message-direction-added", f"{DOWN} {TELLS}", TOLD_UP, TOLD_UP | TOLD_DOWN, R, S),
    ("message-carrier-changed", f"{DOWN} {ASKS}", ASK_DOWN, {"InputRequest": "AskReaderRequest"}, B, B),
]


def test_a_changed_message_gives_one_finding() -> None:
    for rule, subject, before, after, old_client, new_client in MESSAGES:
        old, new, was_there = roles(**before), roles(**after), "carrier" in rule
        (finding,) = on_wire(found(old, new))
        assert brief([finding]) == [(rule, subject, old_client, new_client)]
        assert finding.witness is not None
        assert (finding.witness.old_accepts, finding.witness.new_accepts) == (was_there, not was_there)
        assert brief(on_wire(found(new, old))) == [(RULES[rule].mirror, subject, new_client, old_client)]


def test_a_capability_makes_a_new_request_safe() -> None:
    old = roles()
    new = roles(**ASK_DOWN)
    new["$defs"]["ClientCapabilities"] = record(reader=record())
    findings = {finding.rule: finding for finding in on_wire(found(old, new))}
    asked = findings["request-method-added"]
    assert (asked.old_client, asked.new_client, asked.gate) == (S, S, "client.reader")
    old["$defs"]["ClientCapabilities"] = record(reader=record())
    (asked,) = on_wire(found(old, new))
    assert (asked.old_client, asked.new_client, asked.gate) == (B, S, "")


def test_added_and_removed_capabilities_are_found() -> None:
    old = small(FindBookRequestParams=record(mine=ref("ClientCapabilities")), ClientCapabilities=record(a=record()))
    new = small(FindBookRequestParams=record(mine=ref("ClientCapabilities")), ClientCapabilities=record(b=record()))
    assert sorted(brief(found(old, new))) == [
        ("capability-added", "ClientCapabilities.b", S, I),
        ("capability-removed", "ClientCapabilities.a", R, R),
    ]


def test_an_optional_member_that_leaves_a_result_is_risky_for_its_reader() -> None:
    findings = brief(on_wire(found(sent(TEXT), sent(None))))
    assert sorted(findings) == [
        ("field-removed-optional", "FindBookRequest.params.it", I, S),
        ("field-removed-optional", "FindBookResult.it", R, I),
    ]


def test_a_form_that_needs_a_new_capability_is_safe_without_it() -> None:
    """The value of a member derives the capability, or the result of an embedded request, or a rule of a bridge."""
    old = roles(**ASK_DOWN)
    old["$defs"] |= {"Film": FILM, "Print": record("form", form={"const": "print"})}
    old["$defs"]["AskReaderRequest"] = message("reader/ask", union("Print"))
    old["$defs"]["ClientCapabilities"] = record(reader=record(print=record()))
    new = copy.deepcopy(old)
    new["$defs"]["AskReaderRequest"] = message("reader/ask", union("Print", "Film"))
    (plain,) = on_wire(found(old, new))
    assert (plain.old_client, plain.new_client, plain.gate) == (B, S, "")
    new["$defs"]["ClientCapabilities"] = record(reader=record(print=record(), film=record()))
    gated = next(one for one in on_wire(found(old, new)) if one.rule == "union-member-added")
    assert (gated.old_client, gated.new_client, gated.gate) == (S, S, "client.reader.film")
    assert gated.hint.startswith("Safe unless the other side declares `client.reader.film`")
    before, after = model(either("Book")), model(either("Book", "Film"))
    place, elsewhere, unasked = ("FindBookResult", "it", "Film"), ("Shelf", "it", "Film"), ("server.film", (B, S))
    for path, (capability, effects) in [
        (place, ("client.film", (S, S))),
        (place, unasked),  # a server that declares it sends the form to all clients
        (elsewhere, ("client.film", (B, S))),
    ]:
        one = compare(before, after, gates={path: capability}).findings
        assert {(f.old_client, f.new_client) for f in one if f.subject == "FindBookResult.it|Film"} == {effects}

    def shelves(*names: str) -> Protocol:
        definitions = {"Thing": union(*names), "Book": BOOK, "Film": FILM, "Loan": record(it=ref("Thing"))}
        return model(small(definitions, FindBookResult=record(it=ref("Thing"), loan=ref("Loan"))))

    for known, effect in [(("FindBookResult", "Loan"), S), (("FindBookResult",), B)]:
        rules: dict[tuple[str, ...], str] = {(name, "it", "Film"): "client.film" for name in known}
        (form,) = on_wire(compare(shelves("Book"), shelves("Book", "Film"), gates=rules).findings)
        assert (form.subject, form.old_client) == ("Thing|Film", effect)  # a rule for each place of a named union

    def answers(*names: str) -> Schema:
        definitions = {f"{name}Request": message(f"{name.lower()}/it") for name in names}
        definitions |= {f"{name}Result": record(name, **{name: TEXT}) for name in ("Reader", "Lend", "Loan")}
        definitions["InputRequest"] = union(*(f"{name}Request" for name in names))
        params = record(it=union(*(f"{name}Result" for name in names)))
        abilities = record(**{name.lower(): record() for name in names})
        return small(definitions, FindBookRequestParams=params, ClientCapabilities=abilities)

    gone = next(
        one
        for one in found(answers("Reader", "Lend", "Loan"), answers("Lend", "Loan"))
        if one.rule == "union-member-removed"
    )
    assert (gone.subject, gone.gate, gone.old_client) == ("FindBookRequest.params.it|ReaderResult", "client.reader", S)


def test_changed_error_codes_are_found() -> None:
    def wrong(name: str, code: int) -> Schema:
        return {f"{name}Error": record("code", code={"const": code, "type": "integer"})}

    old, new = small(wrong("Old", -1) | wrong("Same", -2)), small(wrong("New", -4) | wrong("Same", -3))
    assert sorted(brief(on_wire(found(old, new)))) == [
        ("error-code-added", "-4 New", R, S),
        ("error-code-removed", "-1 Old", S, I),
        ("error-code-renumbered", "-3 Same", R, R),
    ]


def test_a_removed_error_names_its_successor() -> None:
    hints = {one.subject: one.hint for one in between("2025-11-25", "2026-07-28").findings if one.group == "errors"}
    assert hints["-32002 ResourceNotFound"] == "`-32602 InvalidParams` takes its place."
    assert hints["-32042 URLElicitationRequired"] == RULES["error-code-removed"].hint


def test_an_added_result_type_of_a_request_is_found() -> None:
    film = {"Film": FILM, "FindBookResultResponse": record("result", result=union("FindBookResult", "Film"))}
    old, new = small(FindBookResult=record("pages", pages=WHOLE)), small(film)
    (finding,) = on_wire(found(old, new))
    assert brief([finding]) == [("union-member-added", "server->client result books/find|Film", B, S)]
    assert finding.reaches == (Message("books/find", "request", "client"),)


# --- the same structure, divided into other definitions -------------------------------------------------------------

LOAN = record("due", due=TEXT)


INLINE = small(FindBookRequest=message("books/find", record("title", title=TEXT)), FindBookRequestParams=None)
ENVELOPE = {"jsonrpc": {"const": "2.0"}, "id": TEXT}
FIND = {"method": {"const": "books/find"}, "params": ref("FindBookRequestParams")}
WHOLE_FIND = small(FindBookRequest=record("jsonrpc id method params", **ENVELOPE, **FIND))
LENT, LENDING = record(loan=ref("Loan")), record(loan=ref("Lending"))


def test_generated_code_changes_and_the_wire_does_not() -> None:
    for rule, subject, old, new in [
        ("ref-extracted", "Loan", small(FindBookResult=record(loan=LOAN)), small(FindBookResult=LENT, Loan=LOAN)),
        ("ref-inlined", "FindBookRequestParams", small(), INLINE),
        ("definition-added", "Loan", small(), small(Loan=LOAN)),
        ("definition-renamed", "Loan", small(X=LENT, Loan=LOAN), small(X=LENDING, Lending=LOAN)),
        ("envelope-inlined", "FindBookRequest", small(), WHOLE_FIND),
    ]:
        (finding,) = found(old, new)
        assert (finding.rule, finding.subject, finding.plane) == (rule, subject, Plane.SOURCE)
        (back,) = found(new, old)
        assert (back.rule, back.plane) == (RULES[rule].mirror, Plane.SOURCE)


def test_params_are_named_after_their_message_inline_or_not() -> None:
    more = small(FindBookRequestParams=record("title", title=TEXT, shelf=TEXT))
    for old in (INLINE, small()):
        assert [finding.subject for finding in on_wire(found(old, more))] == ["FindBookRequest.params.shelf"]


def test_equal_inline_types_that_become_one_definition_are_compared_once() -> None:
    more = record("due", due=TEXT, fee=WHOLE)
    old = small(FindBookResult=record(one=LOAN, other=LOAN), FindBookRequestParams=record(mine=LOAN))
    results, params = record(one=ref("Loan"), other=ref("Loan")), record(mine=ref("Loan"))
    findings = found(old, small(FindBookResult=results, FindBookRequestParams=params, Loan=more))
    assert brief(on_wire(findings)) == [("field-added-optional", "Loan.fee", I, I)]
    assert Counter(finding.rule for finding in findings) == {"field-added-optional": 1, "ref-extracted": 1}


def test_a_replaced_definition_is_compared_once_for_all_its_messages() -> None:
    def levels(name: str, level: Schema) -> Schema:
        both = record("level", level=ref(name))
        return small({name: level}, FindBookRequestParams=both, FindBookResult=both)

    old = levels("Level", {"enum": ["low", "high"]})
    (finding,) = on_wire(found(old, levels("Depth", {"type": ["string", "integer"]})))
    assert brief([finding]) == [("type-widened", "FindBookRequest.params.level", B, B)]


def test_a_reused_definition_name_is_found() -> None:
    old = small(FindBookResult=record(it=ref("Thing")), Thing=BOOK)
    new = small(FindBookResult=record(it=ref("Book")), Book=BOOK, Film=FILM, Thing=union("Book", "Film"))
    findings = found(old, new)
    assert on_wire(findings) == []
    rules = sorted(finding.rule for finding in findings)
    assert rules == ["definition-added", "definition-redefined", "definition-renamed"]


def test_a_field_named_id_is_not_part_of_the_envelope() -> None:
    old, new = small(FindBookResult=record(method=TEXT)), small(FindBookResult=record(method=TEXT, id=TEXT))
    assert brief(found(old, new)) == [("field-added-optional", "FindBookResult.id", I, S)]


def test_a_changed_description_is_a_documentation_change() -> None:
    old, new = small(), small(FindBookResult={**record("pages", pages=WHOLE), "description": "What was found."})
    (finding,) = found(old, new)
    assert (finding.rule, finding.subject, finding.plane) == ("description-changed", "FindBookResult", Plane.DOC)


def test_added_and_removed_deprecations_are_found() -> None:
    notice = {"since": "2020-01-01", "instead": "walk there", "definitions": ["FindBookRequest", "FindBookResult"]}
    before, after = model(small()), model(small(), {"deprecations": [notice]})
    there, back = compare(before, after).findings, compare(after, before).findings
    subjects = {"client->server request books/find", "FindBookResult"}
    assert {(finding.rule, finding.subject) for finding in there} == {("deprecated", each) for each in subjects}
    assert {finding.rule for finding in back} == {"undeprecated"}


def test_a_deprecation_is_found_where_the_params_become_a_definition() -> None:
    inline = small(FindBookRequest=message("books/find", record(title=TEXT)), FindBookRequestParams=None)
    notice = {"since": "2020-01-01", "instead": "ask for all", "definitions": ["FindBookRequestParams.title"]}
    named = model(small(FindBookRequestParams=record(title=TEXT)), {"deprecations": [notice]})
    found = {(finding.rule, finding.subject) for finding in compare(model(inline), named).findings}
    assert ("deprecated", "FindBookRequest.params.title") in found


def test_a_method_renamed_with_its_message_is_one_pair_of_findings() -> None:
    renamed = {"ClientRequest": union("SeekBookRequest"), "FindBookRequest": None, "FindBookRequestParams": None}
    renamed |= {"FindBookResult": None, "SeekBookResult": record("pages", pages=WHOLE)}
    renamed |= {"SeekBookRequest": message("books/seek", ref("SeekBookRequestParams"))}
    findings = on_wire(found(small(), small(renamed, SeekBookRequestParams=record("title", title=TEXT))))
    assert [finding.subject for finding in findings if "Request.method" in finding.subject] == []
    assert {finding.hint for finding in findings} == {"It is called `books/seek` now.", "It was called `books/find`."}


def test_every_rule_is_the_mirror_of_its_mirror() -> None:
    assert all(RULES[rule.mirror].mirror == rule.id for rule in RULES.values())
    assert all(rule.hint.endswith(".") and rule.says for rule in RULES.values())
    one_sided = {"capability-added", "capability-removed", "error-code-added", "error-code-removed"}
    for rule in RULES.values():
        if rule.id not in one_sided:
            assert RULES[rule.mirror].client == rule.client[::-1], rule.id
            assert RULES[rule.mirror].server == rule.server[::-1], rule.id
    assert impacts(["type-narrowed"], ["client", "server"]) == (B, B)
    assert impacts(["type-narrowed"], []) == (N, N)


# --- whole schemas --------------------------------------------------------------------------------------------------


@pytest.mark.full
def test_a_revision_does_not_differ_from_itself() -> None:
    for name in REVISIONS:
        same = compare(revision(name), build(STORE.effective(name)))
        assert (same.findings, between(name, name).findings) == ((), ())
        assert (same.old_client.outcome, same.new_client.outcome) == (Outcome.WORKS, Outcome.WORKS)


def test_order_and_dialect_do_not_matter() -> None:
    for seed in range(3):
        schema = draft()
        assert found(schema, shuffled(schema, seed)) == []
        assert found(schema, json.loads(json.dumps(schema).replace("$defs", "definitions"))) == []


def test_findings_have_unique_fingerprints_and_are_sorted() -> None:
    for old, new in PAIRS:
        findings, causes = between(old, new).findings, grouped(between(old, new).findings)
        assert len({finding.fingerprint for finding in (*findings, *causes)}) == len(findings) + sum(
            bool(cause.places) for cause in causes
        )
        assert [place for cause in causes for place in cause.places or (cause,)] == list(findings)
        assert [finding.severity for finding in causes] == sorted((f.severity for f in causes), reverse=True)
        areas = [list(Area).index(one.area) for one in causes if one.severity is Severity.BREAKING]
        assert areas == sorted(areas)


def test_wire_findings_have_evidence_except_for_error_codes() -> None:
    for old, new in PAIRS:
        for finding in on_wire(list(between(old, new).findings)):
            assert (finding.witness is None) == finding.rule.startswith("error-code-"), (finding, finding.unwitnessed)
            if finding.witness is not None and Impact.BREAKS in (finding.old_client, finding.new_client):
                assert finding.witness.old_accepts != finding.witness.new_accepts, finding


def test_the_number_of_findings_is_plausible() -> None:
    limits = [(15, 30, 2), (45, 70, 2), (130, 200, 5), (240, 340, 20)]
    for (old, new), (least, most, breaking) in zip(pairwise(REVISIONS), limits, strict=True):
        assert least <= len(between(old, new).findings) <= most, (old, new)
        causes = grouped(between(old, new).findings)
        assert sum(cause.severity is Severity.BREAKING for cause in causes) == breaking, (old, new)


def test_equal_changes_are_one_finding_in_the_order_of_the_lifecycle() -> None:
    causes = [cause for cause in grouped(between("2025-11-25", "2026-07-28").findings) if cause.plane is Plane.WIRE]
    places = {cause.subject: len(cause.places) for cause in causes if cause.severity is Severity.BREAKING}
    assert list(places)[:2] == [f"{UP} request initialize", f"{UP} notification notifications/initialized"]
    assert list(places.items())[2:6] == [
        (f"{UP} request server/discover", 0),
        ("*._meta", 5),
        ("*.resultType", 8),
        ('RequestMetaObject["io.modelcontextprotocol/(clientCapabilities, protocolVersion)"]', 2),
    ]
    assert {subject: count for subject, count in list(places.items())[6:] if count} == {
        f"{DOWN} request (elicitation/create, roots/list, sampling/createMessage)": 3,
        "client<->server request ping": 2,
        f"{UP} request resources/(subscribe, unsubscribe)": 2,
        "*|InputRequiredResult": 3,
        "*.(cacheScope, ttlMs)": 10,
        "*.params": 4,
    }
    tasks = next(cause for cause in causes if "tasks/(" in cause.subject)
    assert tasks.subject == "client<->server request tasks/(cancel, get, list, result)"
    assert {place.cause for place in tasks.places} == {tasks.fingerprint}
    assert len({place.fingerprint for place in tasks.places}) == len(tasks.places) == 8


def test_equal_changes_with_other_effects_are_two_findings() -> None:
    old, new = sent(TEXT), sent({**TEXT, "maxLength": 9})
    both = grouped(found(old, new))
    assert [(one.subject, one.places) for one in both] == [
        ("FindBookRequest.params.it", ()),
        ("FindBookResult.it", ()),
    ]
    added = grouped(found(either("Book"), either("Book", "Film")))
    (one,) = (cause for cause in added if cause.plane is Plane.WIRE)
    assert (one.subject, one.old_client, one.new_client) == ("*|Film", B, B)


def test_a_place_or_a_whole_cause_is_accepted_and_a_new_place_is_not() -> None:
    whole = between("2025-11-25", "2026-07-28")
    cause = next(one for one in grouped(whole.findings) if one.subject == "*._meta" and one.places)
    for fingerprint, count in ((cause.fingerprint, 5), (cause.places[0].fingerprint, 1), ("", 0)):
        assert accept([whole], [Acceptance(fingerprint, "known")], TODAY, [whole]).count == count
    (left,) = accept([whole], [Acceptance(cause.places[0].fingerprint, "known")], TODAY, [whole]).comparisons
    rest = next(one for one in grouped(left.findings) if one.fingerprint == cause.fingerprint)
    assert rest.places == cause.places[1:]
    shelves = [{f"Shelf{number}": record("title", title=TEXT) for number in range(count)} for count in (2, 3)]
    results = [record("", **{name: ref(name) for name in one}) for one in shelves]
    bare = [
        small(FindBookResult=result, **{name: record() for name in one})
        for result, one in zip(results, shelves, strict=True)
    ]
    causes = [
        next(one for one in grouped(found(old, small(FindBookResult=result, **one))) if one.subject == "*.title")
        for old, result, one in zip(bare, results, shelves, strict=True)
    ]
    assert causes[0].fingerprint != causes[1].fingerprint


def test_only_the_step_to_the_newest_revision_prevents_communication() -> None:
    steps = [between(old, new) for old, new in pairwise(REVISIONS)]
    outcomes = [(step.old_client.outcome, step.new_client.outcome) for step in steps]
    assert outcomes == [(Outcome.LIMITED, Outcome.LIMITED)] * 3 + [(Outcome.CANNOT_TALK, Outcome.CANNOT_TALK)]
    last = between("2025-11-25", "2026-07-28")
    assert "`initialize`" in last.old_client.reasons[0]
    assert "`initialize`" in last.new_client.reasons[0]


def test_a_failing_handshake_prevents_communication() -> None:
    def handshake(*required: str) -> Schema:
        asked = message("initialize", record(" ".join(required), name=TEXT, key=TEXT))
        requests = union("FindBookRequest", "InitializeRequest")
        return small(ClientRequest=requests, InitializeRequest=asked, InitializeResult=record())

    result = compare(model(handshake("name")), model(handshake("name", "key")))
    assert (result.old_client.outcome, result.new_client.outcome) == (Outcome.LIMITED, Outcome.WORKS)
    bare = handshake("name")
    del bare["$defs"]["InitializeRequest"]["properties"]["params"]["properties"]["key"]
    result = compare(model(bare), model(handshake("name", "key")))
    assert (result.old_client.outcome, result.new_client.outcome) == (Outcome.CANNOT_TALK, Outcome.WORKS)
    assert "InitializeRequest.params.key" in result.old_client.reasons[0]


def test_renamed_definitions_of_real_revisions_are_found() -> None:
    findings = [finding for old, new in pairwise(REVISIONS) for finding in between(old, new).findings]
    assert {(finding.old, finding.new) for finding in findings if finding.rule == "definition-renamed"} == {
        ("ResourceReference", "ResourceTemplateReference"),
        ("EnumSchema", "LegacyTitledEnumSchema"),
        ("JSONRPCError", "JSONRPCErrorResponse"),
        ("JSONRPCResponse", "JSONRPCResultResponse"),
    }


def test_hints_name_replacements() -> None:
    hints = {f.subject: f.hint for f in between("2025-11-25", "2026-07-28").findings}
    assert "`server/discover`" in hints["client->server request ping"]
    assert "`server/discover`" in hints["client->server request initialize"]
    assert "`subscriptions/listen`" in hints["client->server request resources/subscribe"]
    assert "logLevel" in hints["client->server request logging/setLevel"]


# --- only the parts that users need ---------------------------------------------------------------------------------


def test_findings_can_be_selected_by_method_and_capability() -> None:
    whole = between("2025-11-25", "2026-07-28")
    for chosen in (Selection(methods=frozenset({"tools/call"})), Selection(capabilities=frozenset({"tools"}))):
        chosen.check([whole])
        part = chosen.of(whole)
        assert 0 < len(part.findings) < len(whole.findings)
        assert "tools/call" in {message.method for finding in part.findings for message in finding.reaches}
        assert part.old_client.outcome is Outcome.CANNOT_TALK
        assert all("prompts/get" not in reason for reason in part.old_client.reasons)


def test_findings_can_be_selected_by_role_plane_and_severity() -> None:
    whole = between("2025-06-18", "2025-11-25")
    mine = Selection(role="server").of(whole).findings
    assert mine
    assert all(any(m.sender == "server" for m in f.reaches) or not f.reaches for f in mine)
    source = Selection(planes=frozenset({Plane.SOURCE})).of(whole)
    assert {finding.plane for finding in source.findings} == {Plane.SOURCE}
    worst = Selection(least=Severity.BREAKING).of(whole)
    assert {finding.severity for finding in worst.findings} == {Severity.BREAKING}
    assert worst.old_client == source.old_client == whole.old_client


def test_unknown_methods_and_capabilities_cannot_be_selected() -> None:
    known = [between("2025-06-18", "2025-11-25")]
    with pytest.raises(BadInput, match=r"no method|a method 'tools/cal'; did you mean tools/call"):
        Selection(methods=frozenset({"tools/cal"})).check(known)
    with pytest.raises(BadInput, match="a capability 'tool'; did you mean tools"):
        Selection(capabilities=frozenset({"tool"})).check(known)


# --- accepted findings ----------------------------------------------------------------------------------------------

TODAY = date(2026, 8, 1)


def test_accepted_changes_are_left_out() -> None:
    whole = between("2024-11-05", "2025-03-26")
    one, other = (finding.fingerprint for finding in whole.findings[:2])
    late, unused = Acceptance(other, "for a while", date(2026, 7, 31)), Acceptance("0" * 16, "gone")
    report = accept([whole], [Acceptance(one, "known"), late, unused], TODAY, [whole])
    assert report.count == 1
    assert [finding.fingerprint for finding in report.findings] == [f.fingerprint for f in whole.findings[1:]]
    assert (report.expired, report.unused) == ((late,), (unused,))
    last = accept([whole], [Acceptance(one, "known", TODAY)], TODAY, [whole])
    assert (last.count, last.expired) == (1, ())


def test_an_acceptance_outside_the_selection_is_not_reported_as_unused() -> None:
    whole = between("2025-11-25", "2026-07-28")
    part = Selection(methods=frozenset({"tools/call"})).of(whole)
    (other, *_) = [f for f in whole.findings if f not in part.findings]
    report = accept([part], [Acceptance(other.fingerprint, "known")], TODAY, [whole])
    assert (report.count, report.unused) == (0, ())


def test_a_damaged_acceptance_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "accepted.toml"
    for text, words in (
        *(("a = 1", "is not a table"), ("[a]", "has no reason"), ("[a]\nreason = ' '", "has no reason")),
        ("[a]\nreason = 'x'\nexpires = 'soon'", "'expires' is not a date"),
        ("[a]\nreason = 'x'\nexpires = 2026-01-01T00:00:00Z", "'expires' is not a date"),
        *(("[a]\nreason = 'x'\nbecause = 'y'", "'because' says nothing here"), ("[a", "is not TOML")),
        *(("a = " + "[" * 5000, "nested too deeply"), ("a = " + "9" * 5000, "is not TOML")),
    ):
        path.write_text(text)
        with pytest.raises(BadInput, match=words) as error:
            read_acceptances(path)
        assert str(path) in str(error.value)


def test_an_acceptance_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "accepted.toml"
    path.write_text("[00ff00ff00ff00ff]\nreason = 'we never send it'\nexpires = 2027-01-31\n")
    assert read_acceptances(path) == (Acceptance("00ff00ff00ff00ff", "we never send it", date(2027, 1, 31)),)


# --- compared revisions ---------------------------------------------------------------------------------------------


def pairs(*names: str) -> list[tuple[str, str]]:
    return [(old.revision, new.revision) for old, new in load(names, STORE, STORE.semantics)]


def test_a_chain_has_a_step_for_each_revision() -> None:
    assert pairs("2024-11-05..2025-11-25") == list(pairwise(REVISIONS[:4]))
    assert pairs("2025-11-25..2025-03-26") == list(pairwise(REVISIONS[3:0:-1]))


@pytest.mark.full
def test_chains_and_timelines_may_end_with_schema_files_and_models(tmp_path: Path) -> None:
    file = save(tmp_path / "library.json", draft())
    model = tmp_path / "model.json"
    model.write_text(write(Model(revision("2025-11-25"))))
    assert pairs(f"2025-06-18..{file}") == list(pairwise([*REVISIONS[2:], "library"]))
    assert pairs(f"2026-07-28..{model}") == [("2026-07-28", "2025-11-25")]
    found = timeline(STORE, [str(model), str(file)], STORE.semantics)
    assert [one.revision for one in found] == [*REVISIONS, "2025-11-25", "library"]


def test_a_schema_file_is_named_after_its_file_or_dated_folder(tmp_path: Path) -> None:
    file = save(tmp_path / "library.json", draft())
    (tmp_path / "2030-01-01").mkdir()
    dated = save(tmp_path / "2030-01-01" / "schema.json", draft())
    assert pairs("2025-11-25", str(file)) == [("2025-11-25", "library")]
    assert pairs(str(dated), str(file)) == [("2030-01-01", "library")]


def test_invalid_comparison_arguments_are_refused() -> None:
    for names, words in [
        ((), "two revisions are compared"),
        (("2025-11-25",), "two revisions are compared"),
        (("2025-11-25", "2025-06-18", "2024-11-05"), "two revisions are compared"),
        (("2025-11-25..2025-11-25",), "a chain of one"),
        (("2025-11-25..2026-07-82",), "no revision '2026-07-82'; did you mean 2026-07-28"),
        (("2025-11-25", "2026-07-82"), "no revision '2026-07-82'; did you mean 2026-07-28"),
        (("2025-11-25", "missing.json"), "missing.json: cannot be read"),
    ]:
        with pytest.raises(BadInput, match=words):
            pairs(*names)
