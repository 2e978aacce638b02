"""Suggest replacements of removed methods. The evidence is too weak for a renaming, so they are hints only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from mcp_bindgen.ir.model import Method, Protocol, Ref, references
from mcp_bindgen.ir.naming import words

from .location import HOW, NEW, OLD, Change
from .match import Matches, renamed_methods
from .messages import MessageChange

_MIN_PREFIX_LENGTH = 6
"""Minimum length of the common prefix of two words: `subscribe` and `subscriptions` share eight letters."""

_NOTHING = "nothing is asked"


def replacements(
    protocols: tuple[Protocol, Protocol],
    messages: Sequence[MessageChange],
    changes: Sequence[Change],
    matches: Matches,
) -> dict[str, str]:
    """Return method -> hint about its counterpart in the other revision, for removed and added methods."""
    removed, added = ([change for change in messages if change.rule == f"request-method-{how}"] for how in HOW)
    found: dict[str, list[str]] = defaultdict(list)
    renamed = renamed_methods(*protocols, matches)
    for was, now in product(removed, added):
        if renamed.get(was.group) == now.group:
            found[was.subject].append(f"It is called `{now.group}` now.")
            found[now.subject].append(f"It was called `{was.group}`.")
    removed, added = (
        [change for change in changes if not (change.gate or change.subject in found)] for changes in (removed, added)
    )
    traces = _traces(removed, protocols[OLD], matches.new), _traces(added, protocols[NEW], {})
    for trace in sorted(traces[OLD].keys() & traces[NEW].keys(), key=repr):
        before, after = traces[OLD][trace], traces[NEW][trace]
        if trace[1] == _NOTHING and len(after) > 1 and len(before) > 1:
            continue
        for was, now in product(before, after):
            found[was.subject].append(f"`{now.group}` may take its place.")
            found[now.subject].append(f"It may take the place of `{was.group}`.")
    for side, ours in enumerate((removed, added)):
        for change in ours:
            found[change.subject].extend(_carried(change, side, protocols[side], changes, matches))
    return {subject: " ".join(dict.fromkeys(hints)) for subject, hints in found.items() if hints}


def _traces(
    changes: Sequence[MessageChange], protocol: Protocol, rename: Mapping[str, str]
) -> dict[tuple[str, str], list[MessageChange]]:
    """Return trait -> methods with this trait; a replacement shares a trait with a removed method.

    A trait is the prefix of a long word of the name, a definition that only this result refers to, or the absence of
    params and capabilities. Methods with a common trait have the same sender.
    """
    used = Counter(name for method in protocol.methods for name in set(_result_types(method, protocol)))
    found: dict[tuple[str, str], list[MessageChange]] = defaultdict(list)
    for change in changes:
        method = change.methods[OLD] or change.methods[NEW]
        if method is None or change.message is None:
            continue
        marks = {word[:_MIN_PREFIX_LENGTH] for word in _words(method.name) if len(word) >= _MIN_PREFIX_LENGTH}
        marks |= {f"->{rename.get(name, name)}" for name in _result_types(method, protocol) if used[name] == 1}
        if not (_asks(method, protocol) or method.capabilities):
            marks.add(_NOTHING)
        for mark in marks:
            found[change.message.sender, mark].append(change)
    return found


def _words(name: str) -> list[str]:
    return [word.lower().removeprefix("un") for word in words(name)]


def _result_types(method: Method, protocol: Protocol) -> Iterator[str]:
    for type in method.answers[:1]:
        fields = protocol.fields_of(type)
        yield from (name for field in fields if field.wire != "_meta" for name in references(field.type))


def _asks(method: Method, protocol: Protocol) -> bool:
    """Return whether the params of a method have members of their own."""
    return any(field.wire != "_meta" for field in protocol.fields_of(method.params))


def _carried(
    change: MessageChange, side: int, protocol: Protocol, changes: Sequence[Change], matches: Matches
) -> Iterator[str]:
    """Return the members that only the other revision has, with the types of the params of a method."""
    method, other = change.methods[side], 1 - side
    renamed = matches.new if side == OLD else matches.old
    for field in protocol.fields_of(method.params if method is not None else None):
        if isinstance(field.type, Ref) and not protocol.definitions[field.type.name].inline:
            wanted = Ref(renamed.get(field.type.name, ""))
            same = [
                known
                for known in changes
                if known.rule.startswith(f"field-{HOW[other]}-")
                and known.types[other] == wanted
                and known.location.step[1] != "_meta"
            ]
            if same:
                best = max(same, key=lambda known: len({*_words(field.wire)} & {*_words(known.location.step[1])}))
                yield f"Its `{field.wire}` {('is', 'was')[side]} `{best.subject}`."
