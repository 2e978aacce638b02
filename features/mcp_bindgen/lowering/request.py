"""Lowering of tools: names, verdicts, and the budgets of a request that holds many tools."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from mcp_bindgen.json_schema.keywords import nodes
from mcp_bindgen.runtime.lazy import require
from mcp_bindgen.runtime.model.json_types import is_array, is_object, same_json

from .codecs import IDENTITY, Codec, Json, Lost, Undecodable
from .profiles import Profile, completed, excesses
from .profiles import depth as depth_of
from .profiles import profile as profile_named
from .rewrite import Rewriter
from .rules import Effect, Reason, Refused, Verdict, reason, verdict
from .shapes import Document, Schema, require_valid

if TYPE_CHECKING:
    from jsonschema_rs import Validator as CompiledSchema

    from mcp_bindgen.app.validation import Validator

SCHEMA = "/inputSchema"
_HASHED = 8


class InvalidArguments(ValueError):
    """Arguments of a model that the tool does not accept. The message is for the model: it names each problem."""


@dataclass(frozen=True)
class Lowered:
    """A tool as a profile accepts it.

    Attributes:
        tool: Name of the tool.
        name: Name for the provider.
        description: Description for the provider.
        schema: The lowered schema; `None` if it is refused.
        reasons: The rules that were used, each with its place.
        source: The original schema.
    """

    tool: str
    name: str
    description: str
    schema: Schema | None
    reasons: Sequence[Reason]
    source: Schema
    codec: Codec = field(default=IDENTITY, repr=False, compare=False)

    @property
    def verdict(self) -> Verdict:
        """Relation between the lowered schema and the original."""
        return verdict(self.reasons)

    def decode(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the tool's arguments for a model's arguments.

        Raises:
            InvalidArguments: They are no JSON, nested too deeply, or refused by a guard.
        """
        self._require_schema()
        try:
            decoded: dict[str, Any] = _as_json(self.codec.decode(_as_json(dict(arguments))))
            problems = next(filter(None, (guard.problems(decoded, "arguments") for guard in self._guards)), None)
        except Undecodable as error:
            raise InvalidArguments(f"Invalid arguments of {self.name}: {error}") from None
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError):
            raise InvalidArguments(f"Invalid arguments of {self.name}: they do not fit the schema") from None
        if problems:
            lines = "; ".join(f"{one['path']}: {one['problem']}" for one in problems)
            raise InvalidArguments(f"Invalid arguments of {self.name}: {lines}")
        return decoded

    def encode(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the model's arguments for the tool's arguments.

        Raises:
            ValueError: The lowered schema cannot express them.
        """
        self._require_schema()
        encoded: dict[str, Any] = self.codec.encode(dict(arguments))
        if not self._compiled.is_valid(encoded) or not same_json(self.codec.decode(encoded), dict(arguments)):
            raise Lost(f"the lowered schema of {self.tool} cannot express these arguments")
        return encoded

    def witness(self, reason: Reason) -> dict[str, Any] | None:
        """Return arguments that the tool accepts and that a reason loses; `None` if none is known."""
        import jsonschema_rs

        try:
            found = reason.example() if reason.example is not None else None
        except LookupError:
            return None
        if not is_object(found) or not jsonschema_rs.validator_for(self.source, offline=True).is_valid(found):
            return None
        try:
            return found if not same_json(self.decode(self.encode(found)), found) else None
        except ValueError:
            return found

    def _require_schema(self) -> None:
        if self.schema is None:
            raise ValueError(f"the tool {self.tool} is refused: {self.reasons[-1].text}")

    @cached_property
    def _guards(self) -> list[Validator]:
        """The validators of decoded arguments: a format that is no assertion in the lowered schema has two readings."""
        if not any(one.effect is Effect.GUARDED for one in self.reasons):
            return []
        from mcp_bindgen.app.validation import Validator

        readings = [None, True] if any(one.rule == "check-format" for one in self.reasons) else [None]
        place = f"the inputSchema of {self.tool!r}"
        return [Validator(self.source, place, validate_formats=reading) for reading in readings]

    @cached_property
    def _compiled(self) -> CompiledSchema:
        import jsonschema_rs

        return jsonschema_rs.validator_for(self.schema or {}, offline=True)


def _as_json(value: Json) -> Any:
    """Return a value; raise an error if it is no JSON, no Unicode or nested so deeply that a validator may crash."""
    json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    return value


def lower(tool: Mapping[str, Any] | BaseModel, profile: Profile | str, *, server: str = "") -> Lowered:
    """Return a tool as a profile accepts it.

    Args:
        tool: The tool in wire form, or the `Tool` of any revision.
        profile: The profile, its name, or the path of its TOML file.
        server: The name of its server, which becomes a part of the tool's name.

    Raises:
        BadProfile: There is no such profile.
        NotInstalled: The extra `app` is not installed.
    """
    require("lowering a tool", "jsonschema_rs", extra="app")
    wire = dict(tool) if isinstance(tool, Mapping) else tool.model_dump()
    known = profile_named(profile) if isinstance(profile, str) else profile
    name, source = str(wire.get("name", "")), wire.get("inputSchema", {})
    schema, codec, reasons = _lowered_schema(source, known)
    document = Document(wire)
    placed = tuple(dict.fromkeys(_at_existing_place(one, document) for one in reasons))
    described = _description(wire, known)
    return Lowered(name, function_name(name, known, server), described, schema, placed, source, codec)


def _lowered_schema(source: Json, profile: Profile) -> tuple[Schema | None, Codec, Sequence[Reason]]:
    try:
        require_valid(source, SCHEMA)
        document, depth = Document(completed(source, profile), SCHEMA), profile.max_depth or math.inf
        piece = Rewriter(document, profile, depth).root()
        while depth > 1 and depth_of(piece.schema) > (profile.max_depth or math.inf):
            depth -= 1
            piece = Rewriter(document, profile, depth).root()
        assert piece.schema is not None
        for excess in excesses(piece.schema, profile):
            raise Refused("limit", SCHEMA, excess)
    except Refused as refused:
        return None, IDENTITY, (refused.reason,)
    except RecursionError:
        return None, IDENTITY, (reason("unsupported", SCHEMA, "a schema that is nested this deeply"),)
    return piece.schema, piece.codec, piece.reasons


def _at_existing_place(one: Reason, document: Document) -> Reason:
    """Return a reason with a pointer that exists in the tool: rewrites may have added steps to it."""
    pointer = one.pointer if one.pointer.startswith(SCHEMA) else SCHEMA
    while document.at(pointer) is None and pointer != SCHEMA:
        pointer = pointer.rpartition("/")[0]
    return one if pointer == one.pointer else Reason(pointer, one.rule, one.text, one.fix, one.example)


def _description(tool: Mapping[str, Any], profile: Profile) -> str:
    found = str(tool.get("description") or "")
    if profile.description_required and not found:
        found = str(tool.get("title") or tool.get("name", ""))
    limit = profile.description_length
    return found if limit is None or len(found) <= limit else found[: limit - 3] + "..."


def function_name(tool: str, profile: Profile, server: str = "") -> str:
    """Return a name that a profile accepts, the same for the same tool, and different ones for different tools.

    A name that needs a change ends in a part of its digest, so that no two names become one.
    """
    name = f"{server}__{tool}" if server else tool
    is_ambiguous = bool(server) and (f"{server}|{tool}".count("__") > 0 or server[-1] == "_" or tool[:1] == "_")
    allowed = "".join(char if re.fullmatch(profile.tool_name, char) else "_" for char in name)
    if profile.tool_name_start and not re.match(profile.tool_name_start, allowed):
        allowed = f"_{allowed}"
    if allowed == name and 0 < len(name) <= profile.tool_name_length and not is_ambiguous:
        return name
    digest = hashlib.sha256(json.dumps([server, tool]).encode()).hexdigest()[:_HASHED]
    return f"{allowed[: profile.tool_name_length - _HASHED - 1]}_{digest}"


def estimated_tokens(tools: Iterable[Mapping[str, Any]]) -> int:
    """Return the estimated number of tokens of a list of tools: a quarter of the bytes of its compact JSON."""
    return sum(len(json.dumps(tool, ensure_ascii=False, separators=(",", ":")).encode()) for tool in tools) // 4


class RequestTooLarge(ValueError):
    """A list of tools exceeds a limit of a whole request."""


def require_budgets(tools: Sequence[Lowered], profile: Profile | str) -> None:
    """Raise `RequestTooLarge` if a list of lowered tools exceeds a limit of a whole request."""
    if found := exceeded_budgets(tools, profile):
        raise RequestTooLarge(f"{'; '.join(found)}; send fewer tools")


def exceeded_budgets(tools: Sequence[Lowered], profile: Profile | str) -> list[str]:
    """Return the limits of a whole request that a list of lowered tools exceeds, one sentence for each."""
    profile = profile_named(profile) if isinstance(profile, str) else profile
    schemas = [node for one in tools if one.schema is not None for _, node in nodes(one.schema)]
    unions = len([node for node in schemas if "anyOf" in node or is_array(node.get("type"))])
    optional = sum(len(set(node.get("properties", ())) - set(node.get("required", ()))) for node in schemas)
    counts = [
        ("tools", sum(one.schema is not None for one in tools), profile.max_tools),
        ("unions", unions, profile.max_unions),
        ("optional members", optional, profile.max_optional),
    ]
    above = [(count, words, limit) for words, count, limit in counts if limit and count > limit]
    found = [f"{count} {words}; at most {limit} fit into a request" for count, words, limit in above]
    shared = [name for name, count in Counter(one.name for one in tools).items() if count > 1]
    return found + [f"several tools have the name {name}" for name in shared]
