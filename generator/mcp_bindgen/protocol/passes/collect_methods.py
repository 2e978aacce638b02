"""Collect the methods: the role unions say which messages there are and who sends them."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.spec import BadInput

from .. import naming
from ..model import Const, Definition, Method, Object, Ref, Sender, Type, Union
from .draft import Draft

_SUFFIX = {"request": "Request", "notification": "Notification"}


def collect_methods(draft: Draft) -> Draft:
    """Fill in the methods with kind, senders, carrier and params.

    Raises:
        BadInput: There is no role union, a member of one is not a message, a message is in none of them, or a method
            has two.
    """
    methods: dict[str, Method] = {}
    for union, role in draft.semantics["unions"].items():
        for name in _members(draft, union):
            definition = draft.definitions[name]
            method = _checked(definition, union, role["kind"])
            methods[method] = _with_sender(methods.get(method), definition, method, role)
    if not methods:
        raise BadInput(
            "no role union says who sends what",
            pointer="/$defs",
            fix=f"define one of {_known(draft)}, or name the union under [unions] in semantics.toml",
        )
    _check_all_found(draft, methods)
    return replace(draft, methods=dict(sorted(methods.items())))


def _checked(definition: Definition, union: str, kind: str) -> str:
    """Return the method of a message, which keeps the conventions for a member of `union`."""
    method, name, suffix = method_of(definition), definition.name, _SUFFIX[kind]
    if method is None:
        raise BadInput(
            f"{name} is a member of {union} but has no 'method' constant",
            pointer=f"/$defs/{name}",
            fix="every message names its one method in properties.method.const",
        )
    if not name.endswith(suffix) or name == suffix:
        wrong = "has no words before" if name == suffix else "does not end in"
        raise BadInput(
            f"{name} is a {kind} but its name {wrong} {suffix!r}",
            pointer=f"/$defs/{name}",
            fix="stubs are named after the definition: rename it",
        )
    return method


def _known(draft: Draft) -> str:
    return ", ".join(draft.semantics["unions"])


def _members(draft: Draft, union: str) -> list[str]:
    definition = draft.definitions.get(union)
    if definition is None:
        return []
    members = definition.type.members if isinstance(definition.type, Union) else (definition.type,)
    names = [member.name for member in members if isinstance(member, Ref)]
    if len(names) != len(members):
        raise BadInput(
            f"{union} has a member that is not a reference to a message",
            pointer=f"/$defs/{union}",
            fix="refer to a definition with a 'method' constant",
        )
    nested = [name for name in names if isinstance(draft.definitions[name].type, Union | Ref)]
    return [name for name in names if name not in nested] + [leaf for name in nested for leaf in _members(draft, name)]


def method_of(definition: Definition) -> str | None:
    """Return the method that a message names in its constant; `None` for what is no message."""
    field = definition.type.field("method") if isinstance(definition.type, Object) else None
    if field is None or not isinstance(field.type, Const) or len(field.type.values) != 1:
        return None
    (value,) = field.type.values
    return value if isinstance(value, str) else None


def _with_sender(known: Method | None, definition: Definition, name: str, role: dict[str, str]) -> Method:
    sender: Sender = "client" if role["sender"] == "client" else "server"
    if known is not None:
        if known.definition != definition.name:
            raise BadInput(
                f"{known.definition} and {definition.name} are both the message of {name!r}",
                pointer=f"/$defs/{definition.name}",
                fix="give each method one message",
            )
        senders = known.senders if sender in known.senders else (*known.senders, sender)
        return replace(known, senders=tuple(sorted(senders)))
    params: tuple[Type, bool] | None = None
    assert isinstance(definition.type, Object)
    if (field := definition.type.field("params")) is not None:
        params = (field.type, field.required)
    request = role["kind"] == "request"
    return Method(
        name=name,
        definition=definition.name,
        stub=naming.request_stub(definition.name) if request else naming.notification_stub(definition.name),
        kind="request" if request else "notification",
        senders=(sender,),
        carrier="embedded" if role.get("carrier") == "embedded" else "message",
        params=params[0] if params else None,
        params_required=params[1] if params else False,
        doc=definition.doc,
    )


def _check_all_found(draft: Draft, methods: dict[str, Method]) -> None:
    for name, definition in draft.definitions.items():
        method = method_of(definition)
        if method is not None and method not in methods:
            raise BadInput(
                f"{name} is a message but stands in no role union, so nobody is known to send it",
                pointer=f"/$defs/{name}",
                fix=f"add it to one of {_known(draft)}, or name its union under [unions] in semantics.toml",
            )
