"""Collect the methods: the role unions state the messages and their senders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mcp_bindgen.spec import DiagnosticContext

from ..model import Definition, Kind, Method, Object, Ref, Sender, Union
from ..senders import infer_senders, kind_of
from .build_state import BuildState

_SUFFIX = {"request": "Request", "notification": "Notification"}


def collect_methods(state: BuildState) -> BuildState:
    """Fill in the methods with kind, senders, carrier and params.

    Raises:
        BadInput: In strict mode: there is no role union, a member of one is not a message, a message is in none of
            them, or a method has two.
    """
    methods: dict[str, Method] = {}
    for union, role in state.semantics["unions"].items():
        for name in _members(state, union):
            definition = state.definitions[name]
            method = _checked(definition, union, role["kind"], state.context)
            if method is not None:
                methods[method] = _with_sender(methods.get(method), definition, method, role, state.context)
    if not methods:
        read = "senders are inferred" if any(map(method_of, state.definitions.values())) else "there are no methods"
        state.context.report("role-union", "/$defs", read=read, known=", ".join(state.semantics["unions"]))
    for extension in state.source.extensions:
        _add_roles(state, extension.id, extension.semantics["roles"], methods)
    methods |= dict(_lost(state, methods))
    return replace(state, methods=dict(sorted(methods.items())))


def _add_roles(state: BuildState, origin: str, roles: Mapping[str, str], methods: dict[str, Method]) -> None:
    """Add the messages of an extension: its facts state the senders."""
    for name, role in roles.items():
        definition = state.definitions.get(name)
        method = method_of(definition) if definition is not None and definition.origin == origin else None
        if definition is None or method is None:
            continue  # `check_facts` refuses it later
        kind = kind_of(name, method)
        _checked(definition, origin, kind, state.context)
        for sender in () if role == "none" else ("client", "server") if role == "both" else (role,):
            stated = {"sender": sender, "kind": kind}
            methods[method] = _with_sender(methods.get(method), definition, method, stated, state.context)


def _checked(definition: Definition, union: str, kind: str, context: DiagnosticContext) -> str | None:
    """Return the method of a message, which keeps the conventions for a member of `union`; `None` for other members."""
    method, name, suffix = method_of(definition), definition.name, _SUFFIX[kind]
    if method is None:
        context.report("union-member", f"/$defs/{name}", name=name, union=union)
    elif not name.endswith(suffix) or name == suffix:
        wrong = "has no words before" if name == suffix else "does not end in"
        context.report("message-name", f"/$defs/{name}", name=name, kind=kind, wrong=wrong, suffix=suffix)
    return method


def _members(state: BuildState, union: str, seen: set[str] | None = None) -> list[str]:
    """Return the messages of a union and of those in it, of each of these once: there may be many ways to one."""
    seen = set() if seen is None else seen
    definition = state.definitions.get(union)
    if definition is None:
        return []
    if method_of(definition) is not None:  # facts may name a message directly
        return [union]
    members = definition.type.members if isinstance(definition.type, Union) else (definition.type,)
    names = [member.name for member in members if isinstance(member, Ref)]
    if len(names) != len(members):
        state.context.report("union-member-inline", f"/$defs/{union}", union=union)
    nested = [name for name in names if isinstance(state.definitions[name].type, Union | Ref)]
    found = [name for name in names if name not in nested]
    for name in nested:
        if name not in seen:
            seen.add(name)
            found += _members(state, name, seen)
    return found


def method_of(definition: Definition) -> str | None:
    """Return the method that a message names in its constant; `None` for other definitions."""
    field = definition.type.field("method") if isinstance(definition.type, Object) else None
    return field.constant if field is not None and isinstance(field.constant, str) else None


def _with_sender(
    known: Method | None, definition: Definition, name: str, role: Mapping[str, str], context: DiagnosticContext
) -> Method:
    sender: Sender = "client" if role["sender"] == "client" else "server"
    if known is not None and known.definition != definition.name:
        second = definition.name
        context.report("message-twice", f"/$defs/{second}", first=known.definition, second=second, method=name)
        return known
    if known is not None:
        senders = known.senders if sender in known.senders else (*known.senders, sender)
        return replace(known, senders=tuple(sorted(senders)))
    assert isinstance(definition.type, Object)
    params = definition.type.field("params")
    return Method(
        name=name,
        definition=definition.name,
        kind="request" if role["kind"] == "request" else "notification",
        senders=(sender,),
        carrier="embedded" if role.get("carrier") == "embedded" else "message",
        params=params.type if params is not None else None,
        params_required=params is not None and params.required,
        doc=definition.doc,
        origin=definition.origin,
    )


def _lost(state: BuildState, methods: Mapping[str, Method]) -> Iterator[tuple[str, Method]]:
    """Yield the messages outside of role unions, with inferred senders."""
    lost: dict[str, Method] = {}
    for name, definition in state.definitions.items():
        method = method_of(definition)
        roles = state.facts_about(definition).get("roles", {})
        if method is None or method in methods or roles.get(name) == "none":
            continue
        kind = kind_of(name, method)
        senders, reason = infer_senders(method, kind, name, state, methods.values())
        who = "either side sends it" if len(senders) == 2 else f"the {senders[0]} sends it"
        fix = _role(name, kind, senders, definition.origin)
        state.context.report("sender-inferred", f"/$defs/{name}", name=name, sender=who, because=reason, fix=fix)
        for sender in senders:
            role = {"sender": sender, "kind": kind}
            lost[method] = _with_sender(lost.get(method), definition, method, role, state.context)
    yield from lost.items()


def _role(name: str, kind: Kind, senders: Sequence[Sender], origin: str) -> str:
    """Return the fix for a message without known senders."""
    sender = senders[0] if len(senders) == 1 else "both"
    if origin:
        return f'write roles.{name} = "{sender}" in its facts, or "none" where it goes to nobody of this protocol'
    unions = [f"{sender.capitalize()}{_SUFFIX[kind]}" for sender in senders]
    fact = f'unions.{name} = {{ sender = "{sender}", kind = "{kind}" }}'
    other = f", or write {fact} in a file for --semantics" if len(senders) == 1 else ""
    return f"add it to {' and '.join(unions)}{other}"
