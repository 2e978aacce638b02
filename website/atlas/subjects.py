"""Pages of methods, definitions, revisions and extensions."""

from __future__ import annotations

from collections.abc import Iterator

from mcp_bindgen.diff.history import History
from mcp_bindgen.emit.python import naming
from mcp_bindgen.ir import Protocol
from mcp_bindgen.ir.examples import Unfit
from mcp_bindgen.ir.model import Definition, Extension, Method, Object, Ref, Type

from ..markdown import Pages, block, code, page, plain, table
from .fields import fields_table
from .flows import extension_flow, lifecycle_flow, method_asks, method_flow
from .model import (
    Atlas,
    Subject,
    answer,
    capability_link,
    conversion_rows,
    definition_link,
    definition_of,
    definition_page,
    error_link,
    extension_link,
    history_words,
    json_block,
    link,
    message,
    method,
    method_link,
    method_page,
    revision_link,
    revision_page,
    sample,
    type_words,
)

Rows = list[tuple[str, str]]


def subject_pages(atlas: Atlas) -> Pages:
    """Return a page for each method, definition, revision and extension."""
    return {
        **{method_page(name): method_text(atlas, one) for name, one in atlas.methods.items()},
        **{definition_page(name): definition_text(atlas, one) for name, one in atlas.definitions.items()},
        **{revision_page(one.revision): revision_text(atlas, one) for one in atlas.cores},
        **{f"atlas/extensions/{one.name}.md": extension_text(atlas, one) for one in atlas.newest.extensions},
    }


# --- methods --------------------------------------------------------------------------------------------------


def method_text(atlas: Atlas, subject: Subject) -> str:
    """Return the page of a method, as the newest revision with it has it."""
    protocol, name = subject.protocol, subject.name
    found = method(protocol, name)
    assert found is not None
    past = atlas.history(name)
    return page(
        code(name),
        _path("Methods", "methods/index.md"),
        plain(found.doc),
        plain(found.handling) if found.handling != found.doc else "",
        table(
            ["fact", "value"], [*_presence(atlas, subject, past, found.origin), *_method_facts(atlas, protocol, found)]
        ),
        "## Messages",
        *_flows(atlas, found),
        *_message(atlas, protocol, found),
        *_errors(protocol, found),
        *_history(atlas, past),
        *_conversions(atlas, name),
    )


def _flows(atlas: Atlas, newest: Method) -> Iterator[str]:
    """Yield the diagram of the newest revision, and those of older revisions where they differ."""
    may_ask = any(method_asks(protocol, one) for protocol in atlas.protocols if (one := method(protocol, newest.name)))
    shown: dict[str, list[str]] = {}
    for protocol in atlas.protocols:
        if (found := method(protocol, newest.name)) is not None:
            shown.setdefault(method_flow(protocol, found, may_ask=may_ask), []).append(protocol.revision)
    for number, (flow, revisions) in enumerate(shown.items()):
        if number or len(shown) > 1:
            yield f"In {', '.join(map(revision_link, reversed(revisions)))}:"
        yield flow


def _method_facts(atlas: Atlas, protocol: Protocol, found: Method) -> Iterator[tuple[str, str]]:
    yield "kind", found.kind
    yield "sender", "client or server" if len(found.senders) == 2 else found.senders[0]
    if found.carrier == "embedded":
        yield "travels", "inside of a result, and the answer inside of the repeated request"
    yield "message", definition_link(found.definition)
    yield "params", f"{type_words(atlas, found.params) or 'none'}{', required' if found.params_required else ''}"
    if found.result is not None:
        yield "result", type_words(atlas, found.result)
    if others := [*found.alternatives, *_added(protocol, found)]:
        asked = f", if the params have {code(found.opt_in)}" if found.opt_in else ""
        yield "other results", " or ".join(type_words(atlas, one) for one in others) + asked
    for sender, capability in found.capabilities:
        yield f"capability for the {sender} to send it", capability_link(capability)
    for need in found.needs:
        yield f"capability for {code(need.member)}", _need(need.capability, need.values, need.absent)
    if found.lifecycle:
        yield "sent", plain(found.lifecycle)
    if found.filter is not None:
        yield "subscription", f"{code(found.filter.member)} of {definition_link(found.filter.definition)}"
    if found.named_by:
        yield "target", f"{code(found.named_by)} of the params"
    if found.truncation is not None:
        yield "longest list", f"{found.truncation.max_items} {code(found.truncation.values)}"
    if stale := dict(protocol.facts.cache_invalidations).get(found.name):
        yield "makes cached results stale of", ", ".join(map(method_link, stale))
    if found.deprecated:
        yield "deprecated", plain(found.deprecated)


def _added(protocol: Protocol, found: Method) -> Iterator[Type]:
    for extension in protocol.extensions:
        yield from (Ref(name) for name in dict(extension.alternatives).get(found.name, ()))


def _need(capability: str, values: tuple[str, ...], absent: bool) -> str:
    when = f" if it is {' or '.join(map(code, values))}" if values else ""
    return capability_link(capability) + (" if it is absent" if absent else when)


def _message(atlas: Atlas, protocol: Protocol, found: Method) -> Iterator[str]:
    for title, type in (("Params", found.params), ("Result", found.result)):
        definition = definition_of(protocol, type)
        if definition is not None and isinstance(definition.type, Object):
            yield f"## {title}"
            yield f"{definition_link(definition.name)}: {plain(definition.doc)}" if definition.doc else ""
            yield fields_table(atlas, definition, _names(atlas, definition))
    yield "## Example"
    try:
        shown, reply = message(protocol, found), answer(protocol, found)
    except Unfit:
        yield "No small example exists."
        return
    yield json_block(shown)
    if reply is not None:
        yield "The answer:" if found.carrier == "message" else "The answer, in the repeated request:"
        yield json_block(reply)


def _names(atlas: Atlas, definition: Definition) -> dict[str, str]:
    """Return revision -> name of a definition of the core."""
    past = None if definition.origin else atlas.history(definition.name)
    return past.names if past is not None and past.kind == "definition" else {}


def _errors(protocol: Protocol, found: Method) -> Iterator[str]:
    if found.kind == "request" and found.carrier == "message":
        yield "## Errors"
        yield f"Error codes of MCP {protocol.revision}, for any request:"
        yield table(["code", "cause"], [(error_link(one), plain(one.doc)) for one in protocol.errors])


# --- definitions ----------------------------------------------------------------------------------------------


def definition_text(atlas: Atlas, subject: Subject) -> str:
    """Return the page of a definition, as the newest revision with it has it."""
    protocol, name = subject.protocol, subject.name
    found = protocol.definitions[name]
    past = atlas.history(name)
    past = past if past is not None and past.kind == "definition" else None
    names = past.names if past is not None and not found.origin else {}
    package = protocol.revision.replace("-", "_")
    in_python = name if naming.is_definition(name) else naming.definition(name)
    inside = f"v{package}.extensions.{_extension_name(atlas, found.origin)}" if found.origin else f"v{package}"
    return page(
        code(name),
        _path("Definitions", "definitions/index.md"),
        plain(found.doc),
        table(["fact", "value"], [*_presence(atlas, subject, past, found.origin), *_definition_facts(atlas, found)]),
        *_fields(atlas, found, names),
        *_sample_text(protocol, name),
        *_uses(atlas, name),
        "## In Python",
        block(f"from mcp_bindgen.{inside}.types import {in_python}", "python"),
        *_history(atlas, past),
        *_conversions(atlas, name),
    )


def _extension_name(atlas: Atlas, id: str) -> str:
    extension = atlas.extension(id)
    return extension.name if extension is not None else ""


def _definition_facts(atlas: Atlas, found: Definition) -> Iterator[tuple[str, str]]:
    yield "type", type_words(atlas, found.type)
    if isinstance(found.type, Object):
        yield "other members", type_words(atlas, found.type.extra) if found.type.extra is not None else "none"
    if found.inline:
        yield "in the schema", "an inline object without a name of its own"
    if found.deprecated:
        yield "deprecated", plain(found.deprecated)


def _fields(atlas: Atlas, found: Definition, names: dict[str, str]) -> Iterator[str]:
    if isinstance(found.type, Object) and found.type.fields:
        yield "## Fields"
        yield fields_table(atlas, found, names, anchors=True)


def _sample_text(protocol: Protocol, name: str) -> Iterator[str]:
    try:
        shown = sample(protocol, protocol.definitions[name].type)
    except Unfit:
        return
    yield "## Example"
    yield json_block(shown)


def _uses(atlas: Atlas, name: str) -> Iterator[str]:
    rows = [
        ("methods", ", ".join(map(method_link, atlas.carriers.get(name, ())))),
        ("definitions", ", ".join(map(definition_link, atlas.users.get(name, ())))),
    ]
    if rows := [row for row in rows if row[1]]:
        yield "## Used by"
        yield table(["kind", "names"], rows)


# --- revisions ------------------------------------------------------------------------------------------------


def revision_text(atlas: Atlas, protocol: Protocol) -> str:
    """Return the page of a revision."""
    index = atlas.cores.index(protocol)
    pin = atlas.store.pins[protocol.revision]
    older = atlas.cores[index - 1].revision if index else None
    newer = atlas.cores[index + 1].revision if index + 1 < len(atlas.cores) else None
    facts: Rows = [
        ("era", f"{protocol.era}: {_ERAS[protocol.era]}"),
        ("status", pin.status),
        ("date of the schema file", str(pin.date)),
        ("methods", str(len(protocol.methods))),
        ("definitions", str(len(protocol.definitions))),
        ("JSON-RPC batches", "yes" if protocol.facts.batches else "no"),
    ]
    if older:
        facts.append(("changes since " + revision_link(older), link("diff", f"changes/{protocol.revision}.md")))
    if newer:
        facts.append(("changes to " + revision_link(newer), link("diff", f"changes/{newer}.md")))
    return page(
        f"MCP {protocol.revision}",
        _path("Revisions", "index.md"),
        table(["fact", "value"], facts),
        "## Connection",
        lifecycle_flow(protocol),
        "## Methods",
        methods_table(atlas, protocol),
        "## Errors",
        table(["code", "cause"], [(error_link(one), plain(one.doc)) for one in protocol.errors]),
        "## Capabilities",
        table(
            ["side", "capabilities"],
            [
                (side, ", ".join(capability_link(one.name) for one in protocol.capabilities if one.owner == side))
                for side in ("client", "server")
            ],
        ),
        *_meta_keys(protocol),
        "## Definitions",
        ", ".join(map(definition_link, sorted(protocol.definitions, key=str.lower))),
    )


_ERAS = {
    "stateful": "a connection begins with a handshake",
    "stateless": "each request carries the revision and the capabilities of the client",
}


def _meta_keys(protocol: Protocol) -> Iterator[str]:
    keys = [*protocol.facts.meta_keys, *protocol.facts.trace_context]
    if keys:
        yield "## Keys of `_meta`"
        yield ", ".join(map(code, keys))


def methods_table(atlas: Atlas, protocol: Protocol, origin: str | None = "") -> str:
    """Return the methods of a revision: of the core, of an extension, or all for None."""
    return table(
        ["method", "kind", "sender", "params", "result", "capability"],
        [
            (
                method_link(one.name),
                one.kind,
                "both" if len(one.senders) == 2 else one.senders[0],
                type_words(atlas, one.params),
                " or ".join(type_words(atlas, each) for each in (one.result, *one.alternatives) if each is not None),
                ", ".join(dict.fromkeys(capability_link(name) for _, name in one.capabilities)),
            )
            for one in protocol.methods
            if origin is None or one.origin == origin
        ],
    )


# --- extensions -----------------------------------------------------------------------------------------------


def extension_text(atlas: Atlas, extension: Extension) -> str:
    """Return the page of an extension."""
    protocol = atlas.newest
    facts: Rows = [
        ("identifier", code(extension.id)),
        ("version", plain(extension.version)),
        ("extends", f"MCP {revision_link(protocol.revision)}"),
        *((f"settings of the {side}", definition_link(name)) for side, name in extension.settings),
        *(
            (f"results of {method_link(name)}", ", ".join(map(definition_link, types)))
            for name, types in extension.alternatives
        ),
        *((f"members of {definition_link(name)}", definition_link(other)) for name, other in extension.extends),
        *(
            (
                f"{code('_meta')} key {code(key.key)}",
                f"{type_words(atlas, key.type)} on {', '.join(map(definition_link, key.on))}",
            )
            for key in extension.meta_keys
        ),
    ]
    flow = extension_flow(protocol, extension)
    own = [name for name, one in protocol.definitions.items() if one.origin == extension.id]
    methods = methods_table(atlas, protocol, extension.id)
    return page(
        f"Extension {extension.name}",
        _path("Extensions", "extensions/index.md"),
        plain(extension.doc),
        table(["fact", "value"], facts),
        *(("## Messages", flow) if flow else ()),
        *(("## Methods", methods) if methods else ()),
        "## Definitions",
        ", ".join(map(definition_link, sorted(own, key=str.lower))),
    )


# --- parts ----------------------------------------------------------------------------------------------------


def _path(title: str, target: str) -> str:
    return f"{link('Protocol atlas', 'atlas/index.md')} / {link(title, f'atlas/{target}')}"


def _presence(atlas: Atlas, subject: Subject, past: History | None, origin: str) -> Iterator[tuple[str, str]]:
    if past is not None:
        had = list(past.names)
        yield "since", revision_link(had[0])
        changed = [event.revision for event in past.events if event.kind in ("changed", "renamed")]
        yield "changed in", ", ".join(map(revision_link, changed)) or "no revision"
        gone = [event.revision for event in past.events if event.kind in ("gone", "opened")]
        if gone:
            yield "removed in", revision_link(gone[-1])
        earlier = [name for name in dict.fromkeys(past.names.values()) if name != subject.name]
        if earlier:
            links = [definition_link(one) if one in atlas.definitions else method_link(one) for one in earlier]
            yield "other names", ", ".join(links)
        if had != list(past.revisions)[list(past.revisions).index(had[0]) :]:
            yield "revisions", ", ".join(map(revision_link, had))
    if (extension := atlas.extension(origin)) is not None:
        yield "extension", f"{extension_link(extension)} {plain(extension.version)}"


def _history(atlas: Atlas, past: History | None) -> Iterator[str]:
    if past is not None:
        yield "## History"
        yield history_words(atlas, past)


def _conversions(atlas: Atlas, owner: str) -> Iterator[str]:
    if rows := list(conversion_rows(atlas, owner)):
        yield "## Conversion between revisions"
        yield "Bridges convert messages for peers of another revision:"
        yield table(["step", "outcome", "places", "reason"], rows)
