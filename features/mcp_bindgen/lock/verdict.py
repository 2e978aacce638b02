"""Compare entries of a live server with the locked ones: their texts, and the conditions of their schemas.

A change is compatible if it is proven that a client of the locked contract works with the live server: no valid
arguments are refused, no result is outside of the locked schema, and no text changed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Literal, TypeAlias

from mcp_bindgen.app.catalog import Entry, Kind
from mcp_bindgen.app.inclusion import Answer, prove
from mcp_bindgen.app.validation import is_larger
from mcp_bindgen.runtime.model.json_types import is_array, is_object

from .document import Snapshot, digest

# A change of a text can steer a model, under any keyword, and so can a new name. So the words of JSON Schema and the
# members that change all the time are listed here, and all other texts count, also those of unknown keywords.

Text: TypeAlias = tuple[str, str]
"""Place in the entry, such as `inputSchema.city.description`, and the text, as JSON unless it is a string."""

_MEDIA_TYPE = re.compile(
    r"(?:application|audio|font|image|message|model|multipart|text|video)/[A-Za-z0-9.+-]{1,80}"
    r"(?:; ?(?:charset|profile|version)=[A-Za-z0-9.-]{1,20})?"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?(?:Z|[+-][0-9:]{2,5})?)?"
)
_SIZE = re.compile(r"[0-9]+")

_SCHEMAS = ("inputSchema", "outputSchema")
_NAMES = frozenset({*_SCHEMAS, "arguments"})
"""Places of names; only new ones count."""
_VOLATILE = {"resource": {"size": _SIZE, "mimeType": _MEDIA_TYPE}, "template": {"mimeType": _MEDIA_TYPE}}
"""Members that may change as long as they have their form."""
_WORDS: Set[str] = {
    *("string", "number", "integer", "boolean", "null", "object", "array"),
    *(f"https://json-schema.org/draft/{one}/schema" for one in ("2019-09", "2020-12")),
    *(f"http://json-schema.org/draft-0{one}/schema{end}" for one in "467" for end in ("", "#")),
}
"""Types and dialects of JSON Schema."""
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_NESTED: Set[str] = {
    *("allOf", "anyOf", "oneOf", "prefixItems", "items", "additionalItems", "additionalProperties", "contains"),
    *("contentSchema", "else", "if", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
}
_CONDITIONS: Set[str] = {
    *("$ref", "$schema", "$id", "id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef", "type", "enum"),
    *("const", "format", "pattern", "required", "dependentRequired", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"),
    *("minContains", "maxContains", "minProperties", "maxProperties", "contentEncoding", "contentMediaType"),
}
"""Keywords with conditions as values; names in them are no texts."""


def texts(kind: Kind, entry: Entry) -> Iterator[Text]:
    """Yield the texts of an entry with their places."""
    for member, value in entry.items():
        if kind == "tool" and member in _SCHEMAS:
            yield from _of_schema(member, value)
        elif kind == "prompt" and member == "arguments":
            yield from _of_arguments(value)
        elif not _has_form(value, _VOLATILE.get(kind, {}).get(member)):
            lasting = _lasting(value) if member == "annotations" else value
            if lasting or lasting == value:
                yield member, _written(lasting)


def changed_texts(kind: Kind, old: Entry, new: Entry) -> list[tuple[str, list[str], list[str]]]:
    """Return the places with different texts, each with the old and the new texts that the other side lacks."""
    before, after = Counter(texts(kind, old)), Counter(texts(kind, new))
    before = Counter({text: after[text] if text[0] in _NAMES else count for text, count in before.items()})
    gone, come = before - after, after - before
    places = dict.fromkeys(place for place, _ in (*gone, *come))

    def at(place: str, side: Counter[tuple[str, str]]) -> list[str]:
        return [text for one, text in side.elements() if one == place]

    return [(place, at(place, gone), at(place, come)) for place in places]


def _lasting(value: object) -> Any:
    """Return annotations without the time of the last change."""
    if not is_object(value):
        return value
    return {key: one for key, one in value.items() if key != "lastModified" or not _has_form(one, _DATE)}


def _has_form(value: object, form: re.Pattern[str] | None) -> bool:
    return form is not None and form.fullmatch(_written(value)) is not None


def _of_arguments(value: object) -> Iterator[Text]:
    for one in value if is_array(value) else [value]:
        if not is_object(one):
            yield "arguments", _written(one)
            continue
        for member, words in one.items():
            if member not in ("name", "required"):
                yield f"arguments.{one.get('name')}.{member}", _written(words)
        yield "arguments", _written(one.get("name"))


def _of_schema(place: str, node: object) -> Iterator[Text]:
    if is_array(node):
        for child in node:
            yield from _of_schema(place, child)
    if not is_object(node):
        return
    root = place.partition(".")[0]  # names may move to definitions
    for keyword, value in node.items():
        here = f"{place}.{keyword}"
        if keyword in _MAPS and is_object(value):
            for name, child in value.items():
                yield root, name
                yield from _of_schema(f"{place}.{name}", child)
        elif keyword in _NESTED:
            yield from _of_schema(place if keyword in ("allOf", "anyOf", "oneOf") else here, value)
        elif keyword in _CONDITIONS:
            words = _WORDS if keyword in ("type", "$schema") else ()
            yield from ((root, name) for name in _names(value) if isinstance(name, str) and name not in words)
        else:
            yield here, _written(value)


def _names(value: object) -> Iterator[Any]:
    """Yield the scalars in the value of a condition."""
    if is_array(value):
        for one in value:
            yield from _names(one)
    elif is_object(value):
        for name, one in value.items():
            yield name
            yield from _names(one)
    else:
        yield value


def _written(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)


def texts_of_server(info: Mapping[str, Any], instructions: str | None) -> dict[str, str]:
    """Return the texts of a server by place; name and version are its identity."""
    found = {f"serverInfo.{key}": _written(one) for key, one in info.items() if key not in ("name", "version")}
    return found if instructions is None else {**found, "instructions": instructions}


MAX_PARTS = 20_000
"""Maximum number of JSON values in an entry of a live server."""

Part: TypeAlias = Literal["arguments", "result"]
TextChange: TypeAlias = tuple[str, Sequence[str], Sequence[str]]
"""Place, old texts and new texts."""


class LockStatus(IntEnum):
    """Result of a comparison with the lock; a greater value is worse."""

    SAME = 0
    """Nothing changed."""
    COMPATIBLE = 1
    """It is proven that clients of the locked contract work, and no text changed."""
    ADDED = 2
    """The lock does not have it."""
    TEXT_CHANGED = 3
    """A text or hint that a model or a host reads changed."""
    UNPROVEN = 4
    """It is neither proven that clients work nor that they break."""
    BREAKING = 5
    """Clients of the locked contract break."""

    @property
    def is_open(self) -> bool:
        """True if the entry may be used."""
        return self <= LockStatus.COMPATIBLE


@dataclass(frozen=True)
class Question:
    """Question whether a receiver accepts all that a sender sends.

    Attributes:
        part: The compared part of the entry.
        sender: Schema of the sender.
        receiver: Schema of the receiver.
    """

    part: Part
    sender: Any
    receiver: Any


@dataclass(frozen=True)
class Drift:
    """Differences between a locked and a live entry, before proofs.

    Attributes:
        kind: Kind of the entry.
        name: Name or URI.
        is_same: True if nothing changed.
        texts: The changed texts.
        broken: Reasons why clients break, which need no proof.
        questions: Questions that decide whether clients break.
    """

    kind: Kind
    name: str
    is_same: bool
    texts: Sequence[TextChange] = ()
    broken: Sequence[str] = ()
    questions: Sequence[Question] = ()

    def verdict(self, answers: Sequence[Answer]) -> Verdict:
        """Return the verdict, given the answers to the questions."""
        asked = list(zip(self.questions, answers, strict=True))
        reasons = [(LockStatus.BREAKING, reason) for reason in self.broken]
        reasons += [(LockStatus.BREAKING, _BREAKS[one.part]) for one, answer in asked if answer is Answer.NO]
        reasons += [(LockStatus.UNPROVEN, _UNPROVEN[one.part]) for one, answer in asked if answer is Answer.UNKNOWN]
        reasons += [(LockStatus.TEXT_CHANGED, f"{place} changed") for place, _, _ in self.texts]
        if not reasons:
            status = LockStatus.SAME if self.is_same else LockStatus.COMPATIBLE
            return Verdict(self.kind, self.name, status)
        return Verdict(self.kind, self.name, max(reasons)[0], tuple(dict.fromkeys(text for _, text in reasons)))


@dataclass(frozen=True)
class Verdict:
    """Verdict on a server or an entry.

    Attributes:
        kind: Kind of the entry, or `server`.
        name: Name or URI; empty for the server.
        status: The verdict.
        reasons: Reasons, in a few words each.
    """

    kind: Kind | Literal["server"]
    name: str
    status: LockStatus
    reasons: Sequence[str] = ()


_BREAKS = {"arguments": "it refuses arguments that were valid", "result": "its result may be outside of the schema"}
_UNPROVEN = {
    "arguments": "it is not proven that it accepts all arguments that were valid",
    "result": "it is not proven that its result fits the schema",
}


def judge(pairs: Sequence[tuple[Kind, str, Entry, Entry]], *, isolated: bool = False) -> list[Verdict]:
    """Return the verdicts on entries: kind, name, locked entry and live entry of each.

    Args:
        pairs: The entries.
        isolated: True to prove in another process, within a time limit; for servers without a review.
    """
    drifts = [drift(kind, name, old, new) for kind, name, old, new in pairs]
    questions = [(one.sender, one.receiver) for found in drifts for one in found.questions]
    answers = iter(prove(questions, formats=True, isolated=isolated) if questions else ())
    return [found.verdict([next(answers) for _ in found.questions]) for found in drifts]


def drift(kind: Kind, name: str, old: Entry, new: Entry) -> Drift:
    """Return the differences between a locked and a live entry, for clients of the locked one."""
    if digest(old) == digest(new):
        return Drift(kind, name, is_same=True)
    if is_larger(new, MAX_PARTS):
        return Drift(kind, name, is_same=False, broken=[f"it has more than {MAX_PARTS} parts"])
    broken: list[str] = []
    questions: list[Question] = []
    match kind:
        case "tool":
            questions.append(Question("arguments", old.get("inputSchema", {}), new.get("inputSchema", {})))
            if "outputSchema" in old and "outputSchema" in new:
                questions.append(Question("result", new["outputSchema"], old["outputSchema"]))
            elif "outputSchema" in old:
                broken.append("its result is no longer structured")
        case "prompt":
            sides = [schema_of_arguments(one.get("arguments") or []) for one in (old, new)]
            questions.append(Question("arguments", *sides))
        case "resource" | "template":
            was, now = old.get("mimeType"), new.get("mimeType")
            if was is not None and was != now:
                broken.append(f"its media type was {was}, is {now or 'not stated'}")
    different = [one for one in questions if digest(one.sender) != digest(one.receiver)]
    return Drift(kind, name, is_same=False, texts=changed_texts(kind, old, new), broken=broken, questions=different)


def judge_server(old: Snapshot, new: Snapshot) -> Verdict:
    """Return the verdict on the identity and the instructions of a server."""
    reasons: list[tuple[LockStatus, str]] = []
    if old.info.get("name") != new.info.get("name"):
        names = (repr(one.info.get("name")) for one in (old, new))
        reasons.append((LockStatus.BREAKING, "its name was {}, is {}".format(*names)))
    reasons += [(LockStatus.TEXT_CHANGED, f"{place} changed") for place, _, _ in server_texts(old, new)]
    stated = (("version", old.info.get("version"), new.info.get("version")), ("revision", old.revision, new.revision))
    changed = ((what, was or "not stated", now or "not stated") for what, was, now in stated if was != now)
    reasons += [(LockStatus.COMPATIBLE, f"its {what} was {was}, is {now}") for what, was, now in changed]
    return Verdict("server", "", max(reasons)[0] if reasons else LockStatus.SAME, tuple(text for _, text in reasons))


def server_texts(old: Snapshot, new: Snapshot) -> list[TextChange]:
    """Return the changed texts of a server."""
    before, after = (texts_of_server(one.info, one.instructions) for one in (old, new))
    return [
        (place, [before[place]] if place in before else [], [after[place]] if place in after else [])
        for place in dict.fromkeys([*before, *after])
        if before.get(place) != after.get(place)
    ]


def schema_of_arguments(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON Schema of arguments of the type string, which are listed with their names."""
    kept = ("title", "description", "enum")
    properties = {one["name"]: {"type": "string", **{key: one[key] for key in kept if key in one}} for one in entries}
    required = [one["name"] for one in entries if one.get("required")]
    return {"type": "object", "properties": properties, "required": required}
