"""Lower the protocol model to Python: give each definition, member, method and error its name in Python code.

Each scope is a bijection. Two things that would have the same name in one scope break a rule: an error in a strict
reading, else the second one gets a number and a diagnostic is recorded.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import Any

from mcp_bindgen.ir.model import Definition, ErrorCode, Field, Method, Object, Protocol, Ref, Type
from mcp_bindgen.ir.naming import free, numbered, pascal
from mcp_bindgen.spec import BadInput
from mcp_bindgen.spec.json import join

from . import naming
from .calls import argument_fields, may_omit, members
from .lowered import PythonProtocol


def lower(protocol: Protocol) -> PythonProtocol:
    """Return the Python view of a revision; its `diagnostics` include those about names.

    Raises:
        BadInput: In strict mode: a name cannot be used in Python, or two things have one name.
    """
    if isinstance(protocol, PythonProtocol):
        return protocol
    values: dict[str, Any] = {attribute.name: getattr(protocol, attribute.name) for attribute in fields(Protocol)}
    values["context"] = protocol.context.fork()
    lowered = PythonProtocol(**values)
    for step in PASSES:
        lowered = step(lowered)
    diagnostics = dict.fromkeys((*protocol.diagnostics, *lowered.context.diagnostics))
    return replace(lowered, diagnostics=tuple(diagnostics))


# --- definitions and members ----------------------------------------------------------------------------------


def name_classes(protocol: PythonProtocol) -> PythonProtocol:
    """Rename the definitions that no class can be named after, and the references to them."""
    names: dict[str, str] = {}
    for name, definition in protocol.definitions.items():
        if naming.is_definition(name):
            continue
        taken = {*protocol.definitions, *names.values()}
        other = naming.definition(name)
        names[name] = free(other, taken)
        if definition.inline and pascal(name) != name:
            continue  # its parent, after which it is named, has been reported
        known = f", which is also importable as {name!r}" if naming.is_importable(name) else ""
        place = join("/$defs", name)
        protocol.context.report("definition-name", place, name=name, other=names[name], importable=known)
        protocol.context.moved(names[name], place)
    schema_names = {new: old for old, new in names.items()}
    return replace(protocol.renamed(names), schema_names=schema_names) if names else protocol


def name_attributes(protocol: PythonProtocol) -> PythonProtocol:
    """Name the members of each class."""
    attributes = {
        name: naming.fields(name, (field.wire for field in definition.type.fields), protocol.context)
        for name, definition in protocol.definitions.items()
        if isinstance(definition.type, Object)
    }
    return replace(protocol, attributes=attributes)


def name_meta_keys(protocol: PythonProtocol) -> PythonProtocol:
    """Name the keys of `_meta`.

    Raises:
        BadInput: Two keys of an extension would have the same name in Python.
    """
    names = naming.fields("_meta", protocol.facts.meta_keys, protocol.context)
    for extension in protocol.extensions:
        taken: dict[str, str] = {}
        for wire in (key.key for key in extension.meta_keys):
            names[wire] = naming.field(wire)
            if (other := taken.setdefault(names[wire], wire)) != wire:
                raise BadInput(
                    f"the keys {other!r} and {wire!r} of _meta are both {names[wire]!r} in Python",
                    file=extension.id,
                    fix="rename one of them in the table [meta] of its facts",
                )
    return replace(protocol, meta_names=names)


# --- methods and errors ---------------------------------------------------------------------------------------


def name_stubs(protocol: PythonProtocol) -> PythonProtocol:
    """Name methods and errors after their definitions."""
    stubs = {method.name: naming.stub(method.definition, method.kind) for method in protocol.methods}
    return replace(protocol, stubs=stubs, constants={one.code: naming.error_code(one.name) for one in protocol.errors})


def order_arguments(protocol: PythonProtocol) -> PythonProtocol:
    """Choose the positional arguments of calls: as the model states, else a single required argument."""
    return replace(
        protocol, positional={method.name: tuple(_positional(protocol, method)) for method in protocol.methods}
    )


def _positional(protocol: PythonProtocol, method: Method) -> Iterator[str]:
    """Yield members up to the first required one behind an optional one, which Python does not allow."""
    known = {field.wire: field for field in argument_fields(protocol.fields_of(method.params))}
    stated = [known[wire] for wire in method.arguments if wire in known]
    required: list[Field] = [field for field in known.values() if not may_omit(field)]
    has_gap = False
    for field in stated or (required if len(required) == 1 else []):
        has_gap = has_gap or may_omit(field)
        if has_gap and not may_omit(field):
            return
        yield field.wire


_WORD = re.compile(r"[a-z]+")
_MEMBERS = re.compile(r"(?<!`)`([\w$]+(?:\.[\w$]+)*)`")
"""Names in backticks, joined by dots: a member, a path of members, or a class and its member."""


def spell_members(protocol: PythonProtocol) -> PythonProtocol:
    """Write attributes in documentation, instead of wire names; keys with a vendor and examples in JSON stay."""
    anywhere = {
        wire: name
        for attributes in protocol.attributes.values()
        for wire, name in attributes.items()
        if not _WORD.fullmatch(wire)  # `list` and `from` are words of prose, too
    }

    def spelled(text: str, *types: Type | None) -> str:
        own = ChainMap(*(dict(protocol.attributes.get(protocol.class_of(type) or "", {})) for type in types), anywhere)

        def attribute(found: re.Match[str]) -> str:
            words = found[1].split(".")
            names = protocol.attributes.get(words[0], own)
            return "`{}`".format(".".join(names.get(word, anywhere.get(word, word)) for word in words))

        return _MEMBERS.sub(attribute, text)

    def definition(one: Definition) -> Definition:
        type, itself = one.type, Ref(one.name)
        if isinstance(type, Object):
            fields = tuple(replace(field, doc=spelled(field.doc, itself)) for field in type.fields)
            type = replace(type, fields=fields)
        return replace(one, doc=spelled(one.doc, itself), type=type)

    def method(one: Method) -> Method:
        doc, handling = (spelled(text, one.params, one.result) for text in (one.doc, one.handling))
        return replace(one, doc=doc, handling=handling)

    return replace(
        protocol,
        definitions={name: definition(one) for name, one in protocol.definitions.items()},
        methods=tuple(map(method, protocol.methods)),
        errors=tuple(replace(one, doc=spelled(one.doc)) for one in protocol.errors),
    )


_Named = tuple[str, str, Method | ErrorCode]


def separate_scopes(protocol: PythonProtocol) -> PythonProtocol:
    """Number the second of two methods or errors with the same name in one module or class."""
    while (clash := next(_clashes(protocol), None)) is not None:
        protocol = _separated(clash, protocol)
    return protocol


def _clashes(protocol: PythonProtocol) -> Iterator[tuple[_Named, _Named]]:
    seen: dict[tuple[str, str], _Named] = {}
    for scope, name, owner in _scoped_names(protocol):
        if (scope, name) in seen:
            yield seen[scope, name], (scope, name, owner)
        seen[scope, name] = scope, name, owner


def _scoped_names(protocol: PythonProtocol) -> Iterator[_Named]:
    """Yield scope, name and owner of everything that is named after a method or an error."""
    for method in protocol.methods:
        yield "methods.py", naming.descriptor(protocol.stub(method)), method
    for error in protocol.errors:
        yield "errors.py", protocol.constants[error.code], error
    for method in protocol.methods:
        yield from ((owner, name, method) for _, owner, name, _ in members(protocol, method))


def _separated(clash: tuple[_Named, _Named], protocol: PythonProtocol) -> PythonProtocol:
    (_, _, first), (scope, name, second) = clash
    owner = second.definition or second.name
    words = {"first": first.definition or first.name, "second": owner, "name": name, "scope": scope}
    if isinstance(second, ErrorCode):
        taken = protocol.constants.values()
        other = naming.error_code(numbered(second.name, lambda name: naming.error_code(name) in taken))
        protocol = replace(protocol, constants={**protocol.constants, second.code: other})
    else:
        other = numbered(f"{protocol.stub(second).removesuffix('_')}_", {*protocol.stubs.values()}.__contains__)
        protocol = replace(protocol, stubs={**protocol.stubs, second.name: other})
    protocol.context.report("stub-taken", join("/$defs", owner), **words, other=other)
    return protocol


PASSES: tuple[Callable[[PythonProtocol], PythonProtocol], ...] = (
    name_classes,
    name_attributes,
    name_meta_keys,
    name_stubs,
    spell_members,
    separate_scopes,
    order_arguments,
)
"""The passes of the lowering, in order."""
