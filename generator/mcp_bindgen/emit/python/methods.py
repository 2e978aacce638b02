"""Prepare the table of methods for the template of `methods.py`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from mcp_bindgen.ir.model import Array, Method, Need, Ref, Type, Union

from .calls import classes, walk
from .environment import noticed
from .lowered import PythonProtocol
from .package_scope import PackageScope
from .stubs import constant


def values(scope: PackageScope) -> dict[str, object]:
    """Return the variables of the template."""
    return {
        "methods": scope.methods,
        "reopened": list(_reopened(scope)) if scope.origin else [],
        "annotation": scope.annotation,
        "constant": partial(constant, scope),
        "truncation": partial(_truncation, scope.protocol),
        "header_params": partial(_header_params, scope.protocol),
        "filter": partial(_filter, scope.protocol),
        "attribute": scope.protocol.attribute,
        "needed": _needed,
        "doc": _doc,
        "union": Union,
        "path": _path,
        "walk": partial(walk, scope.protocol),
    }


def _truncation(protocol: PythonProtocol, method: Method) -> dict[str, str | int]:
    """Return the arguments of the runtime's `Truncation`, with attributes for members."""
    stated = method.truncation
    if stated is None:
        return {}
    holder = _type_of(protocol, method.result, stated.holder)
    members = {"values": stated.values, "total": stated.total, "more": stated.more}
    names = {name: protocol.attribute(holder, wire) for name, wire in members.items()}
    return {"holder": protocol.attribute(method.result, stated.holder), **names, "max_items": stated.max_items}


def _header_params(protocol: PythonProtocol, method: Method) -> dict[str, str]:
    """Return the arguments of the runtime's `HeaderParams`, with attributes for members."""
    stated = method.header_params
    if stated is None:
        return {}
    listed = next(known.result for known in protocol.methods if known.name == stated.listed_by)
    items = _type_of(protocol, listed, stated.items)
    items = None if items is None else protocol.resolve(items)
    item = items.items if isinstance(items, Array) else None
    return {
        "listed_by": stated.listed_by,
        "items": protocol.attribute(listed, stated.items),
        "name": protocol.attribute(item, stated.name),
        "schema": protocol.attribute(item, stated.schema),
        "arguments": protocol.attribute(method.params, stated.arguments),
    }


def _filter(protocol: PythonProtocol, method: Method) -> tuple[str, str]:
    """Return the attributes of a filter and of the compared member; the latter is empty if no member is compared."""
    stated = method.filter
    if stated is None:
        return "", ""
    compared = protocol.attribute(method.params, stated.compares) if stated.compares else ""
    return protocol.attribute(Ref(stated.definition), stated.member), compared


def _needed(need: Need) -> tuple[str | None, ...]:
    """Return the values that need a capability, `None` for an absent member."""
    return (*need.values, None) if need.absent else need.values


def _type_of(protocol: PythonProtocol, type: Type | None, wire: str) -> Type | None:
    """Return the type of a member of an object."""
    field = protocol.field_of(type, wire)
    return None if field is None else field.type


def _doc(method: Method) -> str:
    """Return the description of a method, the time when the runtime sends it, and the notice if it is deprecated."""
    sent = f"The runtime sends it {method.lifecycle}." if method.lifecycle else ""
    return noticed(" ".join(filter(None, (method.doc, sent))), method.deprecated)


def _path(capability: str) -> tuple[str, ...]:
    return tuple(capability.split("."))


def _reopened(scope: PackageScope) -> Iterator[tuple[Method, tuple[Type, ...]]]:
    """Return the requests of the core that the extension may answer otherwise, and how."""
    alternatives = dict(scope.extension.alternatives)
    for method in scope.protocol.methods:
        if method.name in alternatives:
            found = (name for answer in alternatives[method.name] for name in classes(scope.protocol, Ref(answer)))
            yield method, tuple(map(Ref, dict.fromkeys(found)))
