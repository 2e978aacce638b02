"""Write the rules that a step lacks, with examples and likely rules in comments, as lines of `bridges.toml`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from mcp_bindgen.ir.assignability import Assignability
from mcp_bindgen.ir.examples import Unfit, example
from mcp_bindgen.ir.model import AnyValue, Array, Field, Protocol, Ref, Type
from mcp_bindgen.spec.errors import printable, shortened
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.toml import key_text, quoted

from .alternatives import alternatives
from .differences import Plan
from .rules import Path

_MAX_CHARACTERS = 400
"""Maximum length of an example."""


def with_missing_rules(text: str, plan: Plan, revisions: Mapping[str, Protocol]) -> str:
    """Return the text of a file of rules, with refusals for the rules that a step lacks; the text stays as it is.

    Args:
        text: The file so far.
        plan: The step.
        revisions: Name -> revision, for both ends of the step.
    """
    ends = revisions[plan.source.revision], revisions[plan.target.revision]
    entries = "".join(f"{line}\n" for one in plan.missing for line in _entry(one.path, one.description, *ends))
    step = re.search(rf"^[ \t]*\[[ \t]*[\"']{re.escape(plan.name)}[\"'][ \t]*\].*\n?", text, re.MULTILINE)
    if step is None:
        return "\n".join([*([text] if text else []), f"[{quoted(plan.name)}]", entries]) if entries else text
    return f"{step[0].rstrip()}\n{entries}".join([text[: step.start()], text[step.end() :]])


def _entry(path: Path, reason: str, source: Protocol, target: Protocol) -> Iterator[str]:
    """Yield the lines of a rule that is missing: in comments examples and other rules, and the refusal."""
    yield f"# {printable(reason)}"
    yield f"#   a value before: {_example(source, path)}"
    yield f"#   a value after:  {_example(target, path)}"
    yield from (f"#   or: {_line(place, action, reason)}" for place, action in _others(path, source, target))
    yield _line(path, 'do = "refuse"', reason)


def _line(path: Path, action: str, reason: str) -> str:
    return f"{'.'.join(map(key_text, path))} = {{ {action}, because = {quoted(reason)} }}"


def _example(protocol: Protocol, path: Path) -> str:
    """Return an example of the innermost definition in a path as JSON text."""
    answers = {method.name: method.result for method in protocol.methods}
    names = [name for name in path if name in protocol.definitions]
    type = Ref(names[-1]) if names else answers.get(path[0])
    value: Any = {} if type is None else _value(protocol, type, full=True)
    shown = {name: one for name, one in value.items() if name != "_meta"} if is_object(value) else value
    return shortened(json.dumps(shown).replace('"_meta": {}, ', ""), _MAX_CHARACTERS)


def _value(protocol: Protocol, type: Type, *, full: bool = False) -> Any:
    with suppress(Unfit):
        return example(protocol, type, full=full)
    return {}


def _others(path: Path, source: Protocol, target: Protocol) -> Iterator[tuple[Path, str]]:
    """Yield other rules for a place, and their places; the likeliest first."""
    owner, wire = Ref(path[0]), path[1]
    ours, theirs = source.field_of(owner, wire), target.field_of(owner, wire)
    if theirs is not None and not path[2:]:
        gone = [one for one in source.fields_of(owner) if target.field_of(owner, one.wire) is None]
        for one in gone if ours is None else [ours]:
            yield from (((path[0], one.wire), action) for action in _moves(one, theirs, source, target))
        yield from [(path, f"give = {_toml(_value(target, theirs.type))}")] if ours is None else []
        yield from [(path, 'do = "drop"')] if not theirs.required else []
    yield path, 'by = "package.module:function"'


def _moves(ours: Field, theirs: Field, source: Protocol, target: Protocol) -> Iterator[str]:
    """Yield the actions that move a member of the source to a member of the target whose type accepts it."""

    def accepts(other: Field) -> bool:
        is_known = other.wire == ours.wire or not isinstance(target.resolve(other.type), AnyValue)
        return is_known and Assignability(target, source).accepts(other.type, ours.type)

    is_same, found = ours.wire == theirs.wire, target.resolve(theirs.type)
    if accepts(theirs) and not is_same:
        yield f"rename = {quoted(theirs.wire)}"
    if isinstance(found, Array) and is_same and accepts(theirs.of(found.items)):
        yield 'wrap = "[]"'
    for one in alternatives(target, found.items if isinstance(found, Array) else theirs.type):
        for inner in filter(accepts, target.fields_of(one)):
            if isinstance(found, Array):
                tags = {other.wire for other in target.fields_of(one) if other.constant is not None}
                sample = sorted(_value(target, one).items(), key=lambda pair: pair[0] not in tags)  # the first decides
                item = {name: value for name, value in sample if name != inner.wire}
                yield f"merge = {quoted(theirs.wire)}, item = {_toml(item)}, member = {quoted(inner.wire)}"
            else:
                yield f"wrap = {quoted(inner.wire)}" if is_same else f"move = {_toml([theirs.wire, inner.wire])}"


def _toml(value: Any) -> str:
    if is_object(value):
        return f"{{ {', '.join(f'{key_text(key)} = {_toml(one)}' for key, one in value.items())} }}"
    return f"[{', '.join(map(_toml, value))}]" if is_array(value) else json.dumps(value, ensure_ascii=False)
