"""Lowering of one schema: a recursion over places that returns a schema, a codec and the reasons for both."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

from mcp_bindgen.json_schema.keywords import edited, nodes
from mcp_bindgen.json_schema.pointer import tokens
from mcp_bindgen.runtime.model.json_types import ABSENT, distinct, is_object, json_key

from . import codecs
from .codecs import IDENTITY, Codec, Json
from .profiles import Profile, is_free_of_references, refused_at
from .profiles import depth as depth_of
from .rules import Reason, Refused, reason
from .shapes import FORMATS, Alternative, Conj, Document, Located, Schema, Shape, is_of

UNROLLED = 2
"""How often a recursive definition is repeated inside of itself where recursion is not allowed."""

_NULL: Schema = {"type": "null"}
_NOT_NULL: Shape = [Alternative("any", "", limits={"not": {"enum": [None]}})]
_OLD = ("format", "dependencies")
_NO_LIMIT = {"minLength": 0, "minItems": 0, "minProperties": 0}


@dataclass(frozen=True)
class Piece:
    """The lowered form of a place: its schema (`None` if it accepts nothing), codec and reasons."""

    schema: Schema | None
    codec: Codec = IDENTITY
    reasons: tuple[Reason, ...] = ()

    def noted(self, *reasons: Reason) -> Piece:
        """Return the piece with more reasons."""
        return Piece(self.schema, self.codec, self.reasons + reasons) if reasons else self


@dataclass
class _Record:
    """An object in the making.

    Attributes:
        members: Name for the model -> member of the tool.
        properties: Name for the model -> lowered schema.
        required: Names for the model that are required.
        hidden: Names of the tool without a lowered form.
        reasons: The rules that were used.
        entries: Name for the model of the member that holds the entries.
    """

    members: dict[str, codecs.Member] = field(default_factory=dict[str, codecs.Member])
    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    required: list[str] = field(default_factory=list[str])
    hidden: set[str] = field(default_factory=set[str])
    reasons: list[Reason] = field(default_factory=list[Reason])
    entries: str = ""


class Rewriter:
    """Lowers the schema of a document for a profile."""

    def __init__(self, document: Document, profile: Profile, max_depth: float = math.inf) -> None:
        self.max_depth = max_depth
        self.document = document
        self.profile = profile
        self.definitions: dict[str, Schema] = {}
        self._codecs: dict[str, Codec] = {}
        self._names: dict[str, str] = {}
        self._inlined: Counter[str] = Counter()
        self._lowered = Document({"$defs": self.definitions})
        self._has_references = profile.takes("$ref") and profile.takes("$defs")

    # --- the root -------------------------------------------------------------------------------------------------

    def root(self) -> Piece:
        """Return the lowered form of the whole schema, with its definitions."""
        source = self.document.root
        keeps_meaning = "$schema" in source.schema or not self._is_old(source.schema)
        if keeps_meaning and self._conforms(source.schema, root=True) and self.profile.exact_case:
            return Piece(source.schema)
        objects = self.document.meet(self.document.head((source,)), [Alternative("object", source.pointer)])
        shape = [one for one in objects if one.kind == "object"]
        if len(shape) == 1:
            piece = self.object(shape[0], 0, root=True).noted(*shape[0].reasons)
        else:
            piece = self.union(shape, 1)
        if piece.schema is None:
            raise Refused("empty", source.pointer)
        if len(shape) > 1 or piece.schema.get("type") != "object":
            piece = self._wrapped(piece, "arguments").noted(reason("wrap-root", source.pointer))
        schema = {**(piece.schema or {}), **({"$defs": self.definitions} if self.definitions else {})}
        return replace(piece, schema=self.published(schema))

    def published(self, schema: Schema) -> Schema:
        """Return a schema without the keywords that only the codecs need."""
        if self.profile.takes("additionalProperties"):
            return schema
        found: Schema = edited(schema, lambda _, part: part.pop("additionalProperties", None))
        return found

    def _conforms(self, schema: Json, *, root: bool = False) -> bool:
        if refused_at(schema, self.profile, root=root) is not None:
            return False
        return is_free_of_references(schema) or (root and self.profile.recursion)

    def _is_old(self, schema: Schema) -> bool:
        """Return whether a part of a schema means something else in JSON Schema 2020-12 than in its own dialect."""
        return self.document.is_old and any(not node.keys().isdisjoint(_OLD) for _, node in nodes(schema))

    # --- places ---------------------------------------------------------------------------------------------------

    def place(self, conj: Conj, depth: int) -> Piece:
        """Return the lowered form of a place; a schema that conforms stays as it is."""
        self.document.count_step()
        if len(conj) == 1 and self._can_stay(schema := conj[0].schema, depth):
            return Piece(schema)
        piece = self.union(self.document.head(conj), depth)
        return self._described(piece, self._notes(conj))

    def _can_stay(self, schema: Json, depth: int) -> bool:
        if not is_object(schema) or not self.profile.exact_case or not self._conforms(schema) or self._is_old(schema):
            return False
        is_flat = self.max_depth == math.inf or depth + depth_of(schema) <= self.max_depth
        return is_flat and not ("enum" in schema and self.profile.max_enum_values)

    def union(self, shape: Shape, depth: int) -> Piece:
        """Return the lowered form of alternatives."""
        constants = [one for one in map(_as_constants, shape) if one.kind == "values"]
        others = [one for one in map(_as_constants, shape) if one.kind != "values"]
        pieces = [*self.constants(constants), *(self.alternative(one, depth) for one in others)]
        if len(pieces) == 1:
            return pieces[0]
        reasons = tuple(one for piece in pieces for one in piece.reasons)
        alive = [replace(piece, reasons=()) for piece in pieces if piece.schema is not None]
        found = self.any_of(alive)
        return replace(found, reasons=reasons + found.reasons)

    def any_of(self, pieces: Sequence[Piece]) -> Piece:
        """Return the union of lowered forms, tagged where decoding could not tell them apart."""
        pieces = [one for index, one in enumerate(pieces) if one not in pieces[:index]]
        if len(pieces) < 2:
            return pieces[0] if pieces else Piece(None)
        others = [piece for piece in pieces if piece.schema != _NULL]
        if len(others) == 1 < len(pieces):
            codec = others[0].codec
            nullable = codec if codec is IDENTITY else codecs.Nullable(codec, None, None)
            return Piece(self._or_null(others[0].schema or {}), nullable)
        schema: Schema = {"anyOf": [piece.schema for piece in pieces]}
        if all(piece.codec is IDENTITY for piece in pieces):
            return Piece(schema)
        if self._are_apart(pieces):
            return Piece(schema, codecs.Branches([(self.test(piece.schema), piece.codec) for piece in pieces]))
        tagged = [self._wrapped(piece, f"option_{index}") for index, piece in enumerate(pieces, 1)]
        found = codecs.Branches([(self.test(piece.schema), piece.codec) for piece in tagged])
        return Piece({"anyOf": [piece.schema for piece in tagged]}, found, (reason("tag-union", ""),))

    def _or_null(self, schema: Schema) -> Schema:
        if schema == _NULL:
            return schema
        is_plain = isinstance(schema.get("type"), str) and schema.keys().isdisjoint({"anyOf", "const"})
        if not self.profile.type_arrays or not is_plain:
            return {"anyOf": [*schema.get("anyOf", [schema]), _NULL] if schema.keys() == {"anyOf"} else [schema, _NULL]}
        enum = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
        return {**schema, "type": [schema["type"], "null"], **enum}

    def _are_apart(self, pieces: Sequence[Piece]) -> bool:
        """Return whether the encoded values of each piece fit none of the pieces before it."""
        try:
            encoded = [self._lowered.expand(Located(piece.schema, "")) for piece in pieces]
            accepted = [self._lowered.expand(Located(self.published(piece.schema or {}), "")) for piece in pieces]
            return all(
                self._lowered.apart(left, right) or (pieces[index].codec is pieces[other].codec is IDENTITY)
                for index, left in enumerate(encoded)
                for other, right in enumerate(accepted[:index])
            )
        except Refused:  # a definition is not complete yet
            return False

    def test(self, schema: Schema | None) -> Callable[[Any], bool]:
        """Return a test of values by a lowered schema, which is compiled on first use."""

        @cache
        def compiled() -> Callable[[Any], bool]:
            import jsonschema_rs

            document = self.published({**(schema or {}), "$defs": self.definitions})
            return jsonschema_rs.validator_for(document, offline=True).is_valid

        return lambda value: value is not ABSENT and compiled()(value)

    def _wrapped(self, piece: Piece, name: str) -> Piece:
        return Piece(_record({name: piece.schema}), codecs.Wrapped(name, piece.codec), piece.reasons)

    # --- constants and scalars ------------------------------------------------------------------------------------

    def constants(self, shape: Shape) -> list[Piece]:
        """Return the lowered forms of constants, one for each type."""
        if not shape:
            return []
        pointer = shape[0].pointer
        reasons = tuple(one for alternative in shape for one in alternative.reasons)
        values = distinct(value for one in shape for value in one.values)
        texts = (f"{', '.join(map(_text, one.values))}: {one.description}" for one in shape if one.description)
        description = shape[0].description if len(shape) == 1 else "; ".join(texts)
        if self.profile.only_strings_enumerated and not _is_boolean(values):
            pieces = [self._labels(values, pointer)]
        else:
            types = ("string", "number", "boolean", "null")
            groups = {type: [one for one in values if is_of(type, one)] for type in types}
            pieces = [self._group(type, group, pointer) for type, group in groups.items() if group]
        pieces[0] = pieces[0].noted(*reasons)
        return [self._described(piece, description) for piece in pieces]

    def _labels(self, values: Sequence[Any], pointer: str) -> Piece:
        labels = {value if isinstance(value, str) and value else _text(value): value for value in values}
        if len(labels) < len(values):
            labels = {_text(value): value for value in values}
        codec = IDENTITY if all(label == value for label, value in labels.items()) else codecs.Labels(labels)
        piece = Piece({"type": "string", "enum": list(labels)}, codec)
        return piece if codec is IDENTITY else piece.noted(reason("label-values", pointer))

    def _group(self, type: str, values: list[Any], pointer: str) -> Piece:
        if type == "null":
            return Piece(_NULL)
        if type == "boolean" and len(values) == 2:
            return Piece({"type": "boolean"})
        if type == "number" and all(isinstance(value, int) for value in values):
            type = "integer"
        profile, size = self.profile, sum(len(_text(value)) for value in values)
        large = profile.max_enum_characters is not None and len(values) > profile.large_enum
        if (large and size > (profile.max_enum_characters or 0)) or len(values) > (profile.max_enum_values or math.inf):
            return Piece({"type": type}, reasons=(reason("drop-enum", pointer, len(values)),))
        piece = Piece({"type": type, "enum": values})
        if profile.exact_case or type != "string" or not any(value.lower() != value.upper() for value in values):
            return piece
        labels = codecs.Labels({value: value for value in values})
        return replace(piece, codec=labels).noted(reason("restore-case", pointer))

    def alternative(self, one: Alternative, depth: int) -> Piece:
        """Return the lowered form of an alternative that is no constant."""
        if one.kind in ("object", "array") and depth >= self.max_depth:
            return self.text(one, f"nesting below level {depth}")
        rewrites = {"any": self.anything, "link": self.link, "object": self.object, "array": self.array}
        piece = rewrites.get(one.kind, self.scalar)(one, depth)
        return self._described(piece, one.description).noted(*one.reasons)

    def text(self, one: Alternative, subject: str) -> Piece:
        """Return a string that holds a JSON document."""
        schema: Schema = {"type": "string", "description": "The text of a JSON document."}
        return Piece(schema, codecs.JsonText(), (reason("json-text", one.pointer, subject),))

    def anything(self, one: Alternative, depth: int) -> Piece:
        """Return the lowered form of any JSON value, perhaps without null."""
        nullable = json_key(None) not in map(json_key, one.limits.get("not", {"enum": []})["enum"])
        others = len(one.limits.get("not", {"enum": []})["enum"]) > (not nullable)
        reasons = (reason("drop-condition", one.pointer, "not"),) * others
        if self.profile.untyped:
            return Piece({}, reasons=reasons if nullable else (reason("drop-condition", one.pointer, "not"),))
        if not (self.profile.recursion and self._has_references):
            return self.text(one, "a value without a type").noted(*reasons)
        name = "any_json"
        if name not in self.definitions:
            inner: Schema = {"anyOf": [{"$ref": f"#/$defs/{name}"}, _NULL]}
            entry = _record({"key": {"type": "string"}, "value": inner})
            scalars: list[Schema] = [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]
            entries = _record({"entries": {"type": "array", "items": entry}})
            self.definitions[name] = {"anyOf": [*scalars, {"type": "array", "items": inner}, entries]}
        schema: Schema = {"$ref": f"#/$defs/{name}"}
        schema = {"anyOf": [schema, _NULL]} if nullable else schema
        return Piece(schema, codecs.JsonValue(), (*reasons, reason("any-json", one.pointer)))

    def link(self, one: Alternative, depth: int) -> Piece:
        """Return a reference, or the definition itself where references or recursion are not allowed."""
        recursive = self.document.is_recursive(one.target)
        if not (self._has_references and (self.profile.recursion or not recursive)):
            if self._inlined[one.target] > UNROLLED:
                target = self.document.at(one.target)
                targets = (target,) if target else ()
                cut = reason("cut-recursion", one.pointer, UNROLLED, lambda: self.document.sample(targets))
                return Piece(None, reasons=(cut,))
            self._inlined[one.target] += 1
            piece = self.union(self.document.follow(one.target), depth)
            self._inlined[one.target] -= 1
            return piece
        if (name := self._names.get(one.target)) is not None:
            return Piece({"$ref": f"#/$defs/{name}"}, self._codecs.get(name) or codecs.Named(self._codecs, name))
        stem = re.sub(r"[^A-Za-z0-9_]", "_", tokens(one.target)[-1]) if tokens(one.target) else "root"
        self._names[one.target] = name = _free(stem, {*self._names.values(), "any_json"})
        piece = self.union(self.document.follow(one.target), 0)
        if piece.schema is None:
            if recursive:
                raise Refused("empty", one.target)
            del self._names[one.target]
            return piece
        self.definitions[name] = piece.schema
        self._codecs[name] = piece.codec
        codec = codecs.Named(self._codecs, name) if recursive else piece.codec
        return Piece({"$ref": f"#/$defs/{name}"}, codec, piece.reasons)

    def scalar(self, one: Alternative, depth: int) -> Piece:
        """Return the lowered form of a string, number or boolean."""
        schema: Schema = {"type": one.kind}
        reasons = self._limit(schema, one, dict(one.limits))
        return Piece(schema, reasons=reasons)

    def _limit(self, schema: Schema, one: Alternative, limits: dict[str, Any]) -> tuple[Reason, ...]:
        """Enter the limits of an alternative into a schema; return the reasons for those that are not allowed."""
        profile, reasons = self.profile, list[Reason]()
        if one.kind == "integer":
            _make_inclusive(limits, [word for word in limits if not profile.takes(word)])
        if limits.get("multipleOf") == 1 and one.kind == "integer":
            del limits["multipleOf"]
        for word, value in limits.items():
            place = f"{one.pointer}/{word}"
            if _NO_LIMIT.get(word) == value or (word in ("minContains", "maxContains") and "contains" not in limits):
                continue
            if word == "format":
                known, noted = self._format(value, place, has_pattern="pattern" in limits)
                schema |= known
                reasons += noted
                if word in schema or "pattern" in known:
                    continue
            elif word == "pattern" and profile.takes(word) and not profile.takes_pattern(value):
                reasons.append(reason("drop-pattern", place))
            elif word == "minItems" and profile.takes(word) and value > (profile.max_min_items or math.inf):
                schema[word] = profile.max_min_items
                reasons.append(reason("drop-keyword", place, f"{word} above {profile.max_min_items}"))
            elif profile.takes(word) and word not in ("contains", "minContains", "maxContains"):
                schema[word] = value
                continue
            else:
                reasons.append(reason("drop-keyword", place, word))
            if isinstance(value, str | int | float):
                schema["description"] = f"{schema.get('description', '')} {word}: {_text(value)}.".strip()
        return tuple(reasons)

    def _format(self, format: str, place: str, *, has_pattern: bool) -> tuple[Schema, list[Reason]]:
        """Return the keywords for a format, and the reasons: a provider may assert it, and a server may too."""
        allowed, asserted = self.profile.takes_format(format), self.document.is_old
        kept: Schema = {"format": format} if allowed else {}
        if allowed and not asserted:
            return kept, []
        known = FORMATS.get(format, {})
        if "pattern" in known and not has_pattern and self.profile.takes_pattern(known["pattern"]):
            lossy = reason("format-to-pattern", place, format, lambda: known.get("loses", ""))
            return kept | {"pattern": known["pattern"]}, [lossy]
        checked = [reason("check-format", place, format)]
        return kept, checked if asserted else [*checked, reason("assert-format", place, format)]

    def _described(self, piece: Piece, description: str) -> Piece:
        """Return a piece with a description, before the notes on limits that were dropped."""
        schema = piece.schema
        if not description or schema is None or "$ref" in schema or not self.profile.takes("description"):
            return piece
        if self.profile.alone & schema.keys():
            first = self._described(Piece(schema["anyOf"][0]), description)
            return replace(piece, schema={**schema, "anyOf": [first.schema, *schema["anyOf"][1:]]})
        known = schema.get("description", "")
        text = known if description in known else f"{description} {known}".strip()
        return Piece({**schema, "description": text}, piece.codec, piece.reasons)

    def _notes(self, conj: Conj) -> str:
        """Return the description of a place, and its default if the profile takes none."""
        schemas = [one.schema for one in conj if is_object(one.schema)]
        found = next((str(schema["description"]) for schema in schemas if "description" in schema), "")
        default = next((schema["default"] for schema in schemas if schema.get("default") is not None), None)
        if default is None or self.profile.takes("default"):
            return found
        return f"{found} Default: {_text(default)}.".strip()

    # --- arrays ---------------------------------------------------------------------------------------------------

    def array(self, one: Alternative, depth: int) -> Piece:
        """Return the lowered form of an array or tuple."""
        limits = dict(one.limits)
        least, most = limits.get("minItems", 0), limits.get("maxItems", math.inf)
        never = one.rest is not None and not self.document.head(one.rest)
        if least > (min(most, len(one.prefix)) if never else most):
            return Piece(None)
        if one.prefix and least >= len(one.prefix) and (never or most == len(one.prefix)):
            return self._tuple(one, depth, limits)
        reasons: list[Reason] = []
        shape = self.document.head(one.rest or ())
        if one.prefix:
            shape = [each for conj in one.prefix for each in self.document.head(conj)] + shape * (not never)
            reasons.append(reason("open-tuple", one.pointer))
            if never:
                limits["maxItems"] = min(most, len(one.prefix))
        piece = self.place(one.rest or (), depth + 1) if not one.prefix else self.union(shape, depth + 1)
        count = max(1, least)
        reasons += [inner.inside(lambda value: [value] * count) for inner in piece.reasons]
        if piece.schema is None:
            limits["maxItems"] = 0
            if least:
                return Piece(None, reasons=tuple(reasons))
            piece = Piece({"type": "string"})
        distinct = bool(limits.get("uniqueItems")) and not self.profile.takes("uniqueItems") and least < 2
        if distinct:
            del limits["uniqueItems"]
            reasons.append(reason("drop-duplicates", f"{one.pointer}/uniqueItems"))
        schema: Schema = {"type": "array", "items": piece.schema}
        if piece.schema == {} and "items" not in self.profile.requires:
            del schema["items"]
        reasons += self._limit(schema, one, limits)
        codec = IDENTITY if piece.codec is IDENTITY and not distinct else codecs.Items((), piece.codec, distinct)
        return Piece(schema, codec, tuple(reasons))

    def _tuple(self, one: Alternative, depth: int, limits: dict[str, Any]) -> Piece:
        pieces = [self.place(conj, depth + 1) for conj in one.prefix]
        wraps = [(partial(self._with_item, one, index), piece) for index, piece in enumerate(pieces)]
        reasons = tuple(inner.inside(wrap) for wrap, piece in wraps for inner in piece.reasons)
        if any(piece.schema is None for piece in pieces):
            return Piece(None, reasons=reasons)
        schemas, own = [piece.schema for piece in pieces], [piece.codec for piece in pieces]
        limits = {word: value for word, value in limits.items() if word not in ("minItems", "maxItems")}
        if self.profile.takes("prefixItems") and self.profile.takes("maxItems"):
            sizes = {"minItems": len(pieces), "maxItems": len(pieces)}
            schema: Schema = {"type": "array", "prefixItems": schemas, "items": {"type": "string"}, **sizes}
            reasons += self._limit(schema, one, limits)
            identity = all(codec is IDENTITY for codec in own)
            return Piece(schema, IDENTITY if identity else codecs.Items(own, IDENTITY), reasons)
        schema = _record({str(index): each for index, each in enumerate(schemas)})
        reasons += (reason("tuple-to-object", one.pointer), *self._limit({}, one, limits))
        return Piece(schema, codecs.Positions(own), reasons)

    def _with_item(self, one: Alternative, index: int, value: Json) -> Any:
        items = self.document.sample_of(one)
        return [*items[:index], value, *items[index + 1 :]]

    # --- objects --------------------------------------------------------------------------------------------------

    def object(self, one: Alternative, depth: int, *, root: bool = False) -> Piece:
        """Return the lowered form of an object, or of a map."""
        entries = self._entries(one, depth + bool(one.named)) if self._needs_entries(one, root=root) else Piece(None)
        if entries.schema is not None and not one.named:
            return entries
        record = _Record(reasons=list(entries.reasons))
        for name in one.named:
            if not self._add_member(record, one, one.member(name), name, depth, root=root) and name in one.required:
                return Piece(None, reasons=tuple(record.reasons))
        schema: Schema = {"type": "object", "properties": record.properties, "required": record.required}
        rest = self._add_rest(record, one, schema, entries, depth, root=root)
        closed = schema.get("additionalProperties") is False and not record.entries
        if closed and one.limits.get("minProperties", 0) > len(record.properties):
            return Piece(None, reasons=tuple(record.reasons))
        is_checked = closed and self.profile.takes("additionalProperties")
        optional = [each.codec for each in record.members.values() if isinstance(each.codec, codecs.Nullable)]
        moved = bool(record.entries or record.hidden) or any(one.wire is not one.value for one in optional)
        recounted = moved or (closed and not is_checked)
        record.reasons += self._limit_members(one, schema, recounted=recounted)
        if not record.required and not self.profile.all_required:
            del schema["required"]
        if not record.properties and not root and not self.profile.empty_objects:
            if rest is not None:
                return self.text(one, "an object without properties")
            labels = Piece({"type": "string", "enum": ["{}"]}, codecs.Labels({"{}": {}}), tuple(record.reasons))
            return labels.noted(reason("label-values", one.pointer))
        codec = codecs.Members(record.members, rest, frozenset(record.hidden), record.entries, entries.codec)
        identity = all(wire == each.name and each.codec is IDENTITY for wire, each in record.members.items())
        if identity and not record.entries and (is_checked or (rest is IDENTITY and not record.hidden)):
            return Piece(schema, IDENTITY, tuple(record.reasons))
        return Piece(schema, codec, tuple(record.reasons))

    def _needs_entries(self, one: Alternative, *, root: bool) -> bool:
        """Return whether members without a name of their own are expressed as entries."""
        if one.rest is not None and not one.patterns and not self.document.head(one.rest):
            return False
        if self._takes_rest(one):
            return False
        if one.patterns or not (one.rest is None or _is_free(self.document.head(one.rest))):
            return True
        closes = one.named or (root and one.rest is None)
        return not closes if self.profile.closed_objects else not (self.profile.empty_objects or root or one.named)

    def _add_member(self, record: _Record, one: Alternative, conj: Conj, name: str, depth: int, *, root: bool) -> bool:
        """Enter a named member; return whether it accepts anything."""
        if one.names and not self._is_name(one, name):
            conj = (Located(False, one.pointer),)
        piece, is_required = self.member(conj, name, depth + 1, name in one.required)
        sample = partial(self.document.sample_of, one)
        record.reasons += [each.inside(lambda value: sample() | {name: value}) for each in piece.reasons]
        if piece.schema is None:
            record.hidden.add(name)
            return False
        wire = name
        if not self.profile.takes_member(name, root=root):
            stem = re.sub("[^A-Za-z0-9_]", "_", name)[:48] or "member"
            wire = _free(stem, {*record.properties, *one.named})
            record.reasons.append(reason("rename-member", conj[0].pointer if conj else one.pointer, repr(name)))
        record.members[wire] = codecs.Member(name, piece.codec)
        record.properties[wire] = piece.schema
        record.required += [wire] * is_required
        return True

    def _add_rest(
        self, record: _Record, one: Alternative, schema: Schema, entries: Piece, depth: int, *, root: bool
    ) -> Codec | None:
        """Enter the members without a name of their own; return their codec if they stay members."""
        closed = not one.patterns and one.rest is not None and not self.document.head(one.rest)
        if entries.schema is not None:
            record.entries = _free("other_members", {*record.properties, *one.named})
            record.properties[record.entries] = entries.schema
            record.required += [record.entries] * self.profile.all_required
            record.reasons.append(reason("mixed-entries", one.pointer))
        elif self.profile.closed_objects and not closed:
            lost = _free("other", set(one.named))
            sample = partial(self.document.sample_of, one)
            record.reasons.append(reason("close-object", one.pointer, example=lambda: sample() | {lost: None}))
        elif not closed and not self._needs_entries(one, root=True):
            return self._open(record, one, schema, depth, root=root)
        elif not self.profile.takes("additionalProperties"):
            record.reasons.append(reason("drop-unknown", one.pointer))
        schema["additionalProperties"] = False
        return None

    def _takes_rest(self, one: Alternative) -> bool:
        profile = self.profile
        allowed = profile.takes("additionalProperties") and not profile.closed_objects
        return allowed and (not one.patterns or profile.takes("patternProperties"))

    def _open(self, record: _Record, one: Alternative, schema: Schema, depth: int, *, root: bool) -> Codec | None:
        """Enter the schemas of other members; return their codec."""
        codec: Codec | None = IDENTITY
        if self.profile.takes("not") and self.profile.untyped:
            stated = {name for name in record.hidden if self.profile.takes_member(name, root=root)}
            record.properties |= dict.fromkeys(stated, False)
            record.hidden -= stated
        if record.hidden:
            record.reasons.append(reason("drop-unknown", one.pointer))
        if one.rest is not None and not _is_free(self.document.head(one.rest)):
            piece = self.place(one.rest, depth + 1)
            schema["additionalProperties"] = False if piece.schema is None else piece.schema
            codec = None if piece.schema is None else piece.codec
            record.reasons += piece.reasons
        renamed = [wire for wire, each in record.members.items() if wire != each.name]
        for wire in renamed:
            shadowed = partial(self._with_member, one, wire)
            record.reasons.append(reason("shadow-member", one.pointer, repr(wire), shadowed))
        for pattern, conj in one.patterns.items():
            piece = self.place(conj, depth + 1)
            is_ambiguous = any(Alternative("object", "", patterns={pattern: conj}).member(wire) for wire in renamed)
            if piece.codec is not IDENTITY or codec not in (None, IDENTITY) or is_ambiguous:
                record.reasons.append(reason("drop-keyword", one.pointer + "/patternProperties", "a patternProperties"))
                piece = Piece({}, reasons=piece.reasons)
            schema.setdefault("patternProperties", {})[pattern] = False if piece.schema is None else piece.schema
            codec = IDENTITY
            record.reasons += piece.reasons
        if one.names:
            record.reasons.append(reason("drop-keyword", one.names[0].pointer, "propertyNames"))
        return codec

    def _with_member(self, one: Alternative, name: str) -> Any:
        return self.document.sample_of(one) | {name: self.document.sample(one.member(name))}

    def _limit_members(self, one: Alternative, schema: Schema, *, recounted: bool) -> tuple[Reason, ...]:
        limits = dict(one.limits)
        if limits.get("minProperties", 0) <= len(one.required):
            limits.pop("minProperties", None)
        if schema.get("additionalProperties") is False and limits.get("maxProperties", 0) >= len(schema["properties"]):
            limits.pop("maxProperties", None)
        if recounted and limits:
            return tuple(reason("drop-keyword", f"{one.pointer}/{word}", word) for word in limits)
        return self._limit(schema, one, limits)

    def _is_name(self, one: Alternative, name: str) -> bool:
        return any(self.document.accepts(each, name) for each in self.document.head(one.names))

    def member(self, conj: Conj, name: str, depth: int, required: bool) -> tuple[Piece, bool]:
        """Return the lowered form of a property, and whether the lowered schema requires it."""
        profile, document = self.profile, self.document
        if required and (profile.null or not self._is_nullable(conj)):
            return self.place(conj, depth), True
        if not required and not profile.all_required and (profile.null or not self._is_nullable(conj)):
            return self.place(conj, depth), False
        pointer = conj[0].pointer if conj else ""
        if not self._is_nullable(conj):
            return self._null_if_absent(self.place(conj, depth), name, pointer), True
        rest = document.meet(document.head(conj), _NOT_NULL)
        piece = self._described(self.union(rest, depth), self._notes(conj))
        if required:
            if piece.schema is None:
                return self.place(conj, depth), True
            codec = codecs.Nullable(piece.codec, ABSENT, None)
            return replace(piece, codec=codec).noted(reason("absent-if-null", pointer, repr(name))), False
        if piece.schema is None or any(is_object(one.schema) and one.schema.get("default", 0) is None for one in conj):
            piece = piece.noted(reason("drop-null", pointer, repr(name), lambda: None))
        else:
            mark = Piece(_record({"is": {"type": "string", "enum": ["null"]}}), codecs.Constant({"is": "null"}, None))
            union = self.any_of([replace(piece, reasons=()), mark])
            piece = self._described(replace(union, reasons=piece.reasons + union.reasons), self._notes(conj))
            piece = piece.noted(reason("mark-null", pointer))
        if not profile.all_required:
            return piece, False
        return self._null_if_absent(piece, name, pointer), True

    def _is_nullable(self, conj: Conj) -> bool:
        return any(self.document.accepts(one, None) for one in self.document.head(conj))

    def _null_if_absent(self, piece: Piece, name: str, pointer: str) -> Piece:
        if piece.schema is None:
            return piece
        codec = codecs.Nullable(piece.codec, None, ABSENT)
        absent = reason("null-if-absent", pointer, repr(name))
        return Piece(self._or_null(piece.schema), codec, piece.reasons).noted(absent)

    def _entries(self, one: Alternative, depth: int) -> Piece:
        """Return the lowered form of a map: an array of keys and values."""
        reasons = [reason("map-to-entries", one.pointer)]
        if one.patterns and (one.rest is None or self.document.head(one.rest)):
            reasons.append(reason("close-object", one.pointer))
        text: Schema = {"type": "string"}
        if len(one.patterns) > 1:
            reasons.append(reason("drop-condition", one.pointer + "/patternProperties", "a choice of patterns"))
            shape = [each for conj in one.patterns.values() for each in self.document.head(conj)]
            value = self.union(shape, depth + 2)
        else:
            pattern, conj = next(iter(one.patterns.items()), ("", one.rest or ()))
            text |= {"pattern": pattern} if pattern else {}
            value = self.place(conj, depth + 2)
        keys = self.place((Located(text, one.pointer), *one.names), depth)
        reasons += keys.reasons
        reasons += [inner.inside(lambda each: {self._a_name(one): each}) for inner in value.reasons]
        if keys.schema is None or value.schema is None:
            return Piece(None, reasons=tuple(reasons))
        schema: Schema = {"type": "array", "items": _record({"key": keys.schema, "value": value.schema})}
        limits = dict(one.limits)
        sizes = {f"{word[:3]}Items": limits.pop(word) for word in ("minProperties", "maxProperties") if word in limits}
        if sizes.get("minItems", 0) > 1:
            reasons.append(reason("drop-keyword", one.pointer + "/minProperties", "minProperties above 1"))
        if one.named:
            sizes = {}
        reasons += self._limit(schema, one, {**limits, **sizes})
        return Piece(schema, codecs.Entries(keys.codec, value.codec), tuple(reasons))

    def _a_name(self, one: Alternative) -> str:
        pattern = next(iter(one.patterns), None)
        text = {"type": "string"} if pattern is None else {"type": "string", "pattern": pattern}
        return str(self.document.sample((Located(text, ""), *one.names)))


def _as_constants(one: Alternative) -> Alternative:
    return replace(one, kind="values", values=(None,)) if one.kind == "null" else one


def _is_free(shape: Shape) -> bool:
    return len(shape) == 1 and shape[0].kind == "any" and not shape[0].limits and not shape[0].reasons


def _is_boolean(values: Iterable[Any]) -> bool:
    return {json_key(value) for value in values} == {json_key(False), json_key(True)}


def _record(properties: Mapping[str, Schema | None]) -> Schema:
    closed: Schema = {"type": "object", "properties": dict(properties), "required": list(properties)}
    return {**closed, "additionalProperties": False}


def _make_inclusive(limits: dict[str, Any], words: Iterable[str]) -> None:
    """Replace exclusive bounds of integers by the nearest inclusive ones."""
    for word in words:
        if word == "exclusiveMinimum":
            limits["minimum"] = max(math.floor(limits.pop(word)) + 1, limits.get("minimum", -math.inf))
        elif word == "exclusiveMaximum":
            limits["maximum"] = min(math.ceil(limits.pop(word)) - 1, limits.get("maximum", math.inf))


def _text(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not taken, with a number if necessary."""
    names = (f"{name}_{number}" if number else name for number in range(len(taken) + 2))
    return next(one for one in names if one not in taken)
