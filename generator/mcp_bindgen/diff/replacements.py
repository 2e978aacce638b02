"""Suggest what may take the place of a method that is gone: weaker evidence than a rename needs, so only a hint."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from mcp_bindgen.protocol.model import Method, Object, Protocol, Ref, references
from mcp_bindgen.protocol.naming import words

from .location import Change
from .match import Matches
from .messages import MessageChange
from .reach import answers

_SHORTEST = 6
"""How long a common beginning of two words must be: `subscribe` and `subscriptions` share eight letters."""

_NOTHING = "nothing is asked"


def replacements(
    old: Protocol, new: Protocol, said: Sequence[MessageChange], changes: Sequence[Change], matches: Matches
) -> dict[str, str]:
    """Return, for each method that is gone or new, a hint about what stands for it in the other revision."""
    gone = [change for change in said if change.rule == "request-method-removed" and not change.gate]
    come = [change for change in said if change.rule == "request-method-added" and not change.gate]
    found: dict[str, list[str]] = defaultdict(list)
    traces = _traces(gone, old, matches.new), _traces(come, new, {})
    for trace in sorted(traces[0].keys() & traces[1].keys(), key=repr):
        before, after = traces[0][trace], traces[1][trace]
        if trace[1] == _NOTHING and len(after) > 1 and len(before) > 1:
            continue
        for was in before:
            for now in after:
                found[was.subject].append(f"`{_name(now)}` may take its place.")
                found[now.subject].append(f"It may take the place of `{_name(was)}`.")
    for change in gone:
        found[change.subject].extend(_carried(change, old, changes, matches, "added"))
    for change in come:
        found[change.subject].extend(_carried(change, new, changes, matches, "removed"))
    return {subject: " ".join(dict.fromkeys(hints)) for subject, hints in found.items() if hints}


def _name(change: MessageChange) -> str:
    assert change.message is not None
    return change.message.method


def _traces(
    changes: Sequence[MessageChange], protocol: Protocol, rename: Mapping[str, str]
) -> dict[tuple[str, str], list[MessageChange]]:
    """Return the traits that a replacement would share with a method -> the methods that have them.

    It is the beginning of a long word of the name, a definition that only this result refers to, or that neither
    anything is asked nor a capability needed. The sender is always the same.
    """
    used = Counter(name for method in protocol.methods for name in set(_result_types(method, protocol)))
    found: dict[tuple[str, str], list[MessageChange]] = defaultdict(list)
    for change in changes:
        method = change.old_method or change.new_method
        if method is None or change.message is None:
            continue
        marks = {word[:_SHORTEST] for word in _words(method.name) if len(word) >= _SHORTEST}
        marks |= {f"->{rename.get(name, name)}" for name in _result_types(method, protocol) if used[name] == 1}
        if not (_asks(method, protocol) or method.capabilities):
            marks.add(_NOTHING)
        for mark in marks:
            found[change.message.sender, mark].append(change)
    return found


def _words(name: str) -> list[str]:
    return [word.lower().removeprefix("un") for word in words(name)]


def _result_types(method: Method, protocol: Protocol) -> Iterator[str]:
    for type in answers(method)[:1]:
        if isinstance(resolved := protocol.resolve(type), Object):
            yield from (name for field in resolved.fields if field.wire != "_meta" for name in references(field.type))


def _asks(method: Method, protocol: Protocol) -> bool:
    """Return whether its params have anything of their own."""
    params = protocol.resolve(method.params) if method.params is not None else None
    return isinstance(params, Object) and any(field.wire != "_meta" for field in params.fields)


def _carried(
    change: MessageChange, protocol: Protocol, changes: Sequence[Change], matches: Matches, how: str
) -> Iterator[str]:
    """Find where the other revision has what the params of a method hold: members of the same type that only it has."""
    method = change.old_method or change.new_method
    params = protocol.resolve(method.params) if method is not None and method.params is not None else None
    if not isinstance(params, Object):
        return
    for field in params.fields:
        if not isinstance(field.type, Ref) or protocol.definitions[field.type.name].hoisted:
            continue
        same = [
            other
            for other in changes
            if other.rule.startswith(f"field-{how}-") and _is_same(field.type, other, matches, how)
        ]
        if same:
            other = max(same, key=lambda other: _shared(field.wire, other.location.step[1]))
            yield f"Its `{field.wire}` {'is' if how == 'added' else 'was'} `{other.subject}`."


def _shared(one: str, other: str) -> int:
    """Count the words that two names have in common."""
    return len(set(_words(one)) & set(_words(other)))


def _is_same(type: Ref, change: Change, matches: Matches, how: str) -> bool:
    other = change.new_type if how == "added" else change.old_type
    if not isinstance(other, Ref) or change.location.step[1] == "_meta":
        return False
    return matches.same(type.name, other.name) if how == "added" else matches.same(other.name, type.name)
