"""Indexes of the atlas: methods, definitions, fields, errors, capabilities, extensions, and all names from A to Z."""

from __future__ import annotations

from itertools import groupby

from mcp_bindgen.ir.model import ErrorCode

from ..markdown import Pages, anchored, code, page, plain, table
from .fields import all_fields
from .model import (
    Atlas,
    anchor,
    capability_link,
    conversion_rows,
    definition_link,
    error_link,
    extension_link,
    history_words,
    link,
    method,
    method_link,
    revision_link,
)


def index_pages(atlas: Atlas) -> Pages:
    """Return the pages that lead to others."""
    return {
        "atlas/index.md": _start(atlas),
        "atlas/methods/index.md": _methods(atlas),
        "atlas/definitions/index.md": _definitions(atlas),
        "atlas/fields.md": _field_names(atlas),
        "atlas/errors.md": _errors(atlas),
        "atlas/capabilities.md": _capabilities(atlas),
        "atlas/extensions/index.md": _extensions(atlas),
        "atlas/a-z.md": _a_to_z(atlas),
    }


def _start(atlas: Atlas) -> str:
    rows = [
        (
            revision_link(one.revision),
            one.era,
            str(len(one.methods)),
            str(len(one.definitions)),
            link("changes", f"changes/{one.revision}.md") if number else "",
        )
        for number, one in enumerate(atlas.cores)
    ]
    return page(
        "Protocol atlas",
        "Look up the Model Context Protocol: every method, definition, field, error code and capability of every "
        "released revision. Each page has the revision that added the subject, its changes, the flow of its messages, "
        "and an example that validates.",
        "All facts are read from the JSON Schemas of the protocol, and from our own descriptions. "
        "Search with `/` or `s`, or begin here:",
        table(
            ["index", "content"],
            [
                (
                    link("Methods", "atlas/methods/index.md"),
                    f"{len(atlas.methods)} requests and notifications by sender",
                ),
                (
                    link("Definitions", "atlas/definitions/index.md"),
                    f"{len(atlas.definitions)} types of messages and parts",
                ),
                (link("Fields", "atlas/fields.md"), "names of fields, and the definitions that have them"),
                (link("Errors", "atlas/errors.md"), "JSON-RPC error codes"),
                (link("Capabilities", "atlas/capabilities.md"), "declarations of clients and servers"),
                (
                    link("Extensions", "atlas/extensions/index.md"),
                    ", ".join(one.name for one in atlas.newest.extensions),
                ),
                (link("A to Z", "atlas/a-z.md"), "all names on one page"),
            ],
        ),
        "## Revisions",
        table(["revision", "era", "methods", "definitions", "since the previous revision"], rows[::-1]),
        "A *stateful* revision begins a connection with a handshake. In a *stateless* revision each request carries "
        "the revision and the capabilities of the client.",
    )


def _matrix(atlas: Atlas, name: str) -> tuple[str, ...]:
    subject = atlas.methods[name]
    return tuple("yes" if one.revision in subject.revisions else "" for one in atlas.cores)


def _methods(atlas: Atlas) -> str:
    def rows(sender: str, kind: str) -> list[tuple[str, ...]]:
        found: list[tuple[str, ...]] = []
        for name, subject in atlas.methods.items():
            one = method(subject.protocol, name)
            assert one is not None
            if (sender, kind) == (one.sender, one.kind):
                extension = atlas.extension(one.origin)
                found.append((method_link(name), *_matrix(atlas, name), extension_link(extension) if extension else ""))
        return found

    head = ["method", *(one.revision for one in atlas.cores), "extension"]
    parts: list[str] = []
    for sender, words in (("client", "of the client"), ("server", "of the server"), ("both", "of either side")):
        for kind in ("request", "notification"):
            if found := table(head, rows(sender, kind)):
                parts += [f"## {kind.capitalize()}s {words}", found]
    return page("Methods", "Each method with the revisions that have it; its sender is that of the newest one.", *parts)


def _definitions(atlas: Atlas) -> str:
    rows = [
        (
            definition_link(name),
            plain(subject.protocol.definitions[name].doc.partition(". ")[0]),
            _span(atlas, subject.revisions) or _extension(atlas, subject.protocol.definitions[name].origin),
        )
        for name, subject in atlas.definitions.items()
    ]
    return page("Definitions", "All named types.", table(["definition", "meaning", "revisions"], rows))


def _span(atlas: Atlas, revisions: tuple[str, ...]) -> str:
    if not revisions:
        return ""
    if revisions[-1] == atlas.cores[-1].revision:
        return f"since {revisions[0]}"
    return revisions[0] if len(revisions) == 1 else f"{revisions[0]} to {revisions[-1]}"


def _extension(atlas: Atlas, id: str) -> str:
    extension = atlas.extension(id)
    return f"extension {extension_link(extension)}" if extension is not None else ""


def _field_names(atlas: Atlas) -> str:
    return page(
        "Fields",
        "Names of fields, with the definitions that have them in any revision.",
        table(
            ["field", "definitions"],
            [(code(wire), ", ".join(map(definition_link, names))) for wire, names in all_fields(atlas)],
        ),
    )


def _errors(atlas: Atlas) -> str:
    found: dict[str, list[tuple[str, ErrorCode]]] = {}
    for protocol in atlas.protocols:
        for one in protocol.errors:
            found.setdefault(one.name, []).append((protocol.revision, one))
    newest = sorted((known[0][1] for known in found.values()), key=lambda one: one.code)
    parts: list[str] = []
    for one in newest:
        revisions = [revision for revision, _ in reversed(found[one.name])]
        past = atlas.history(one.name)
        rows = list(conversion_rows(atlas, f"error.{one.name}"))
        parts += [
            f"## `{one.code}` {plain(one.name)} {{ #{anchor(one.name)} }}",
            plain(one.doc),
            f"Revisions: {', '.join(map(revision_link, revisions))}."
            + (f" Definition: {definition_link(one.definition)}." if one.definition else ""),
            history_words(atlas, past) if past is not None and len(past.events) > 1 else "",
            table(["step", "outcome", "places", "reason"], rows),
        ]
    return page(
        "Errors",
        "Codes of the member `error` of a response. Codes from -32768 to -32000 are reserved by JSON-RPC.",
        table(["code", "cause"], [(error_link(one), plain(one.doc)) for one in newest]),
        *parts,
    )


def _capabilities(atlas: Atlas) -> str:
    names: dict[str, list[str]] = {}
    for protocol in atlas.cores:
        for one in protocol.capabilities:
            names.setdefault(one.name, []).append(protocol.revision)
    users: dict[str, set[str]] = {}
    for protocol in atlas.protocols:
        for each in protocol.methods:
            needed = [name for _, name in each.capabilities] + [need.capability for need in each.needs]
            for name in needed:
                users.setdefault(name, set()).add(each.name)
    rows = {
        name: (
            anchored(name.partition(".")[2], anchor(name)),
            _span(atlas, tuple(revisions)),
            ", ".join(map(method_link, sorted(users.get(name, ())))),
        )
        for name, revisions in sorted(names.items())
    }
    parts: list[str] = []
    for side, definition in (("client", "ClientCapabilities"), ("server", "ServerCapabilities")):
        parts += [
            f"## Capabilities of the {side}",
            f"Declared in {definition_link(definition)}." if definition in atlas.definitions else "",
            table(
                ["capability", "revisions", "methods that need it"],
                [row for name, row in rows.items() if name.startswith(f"{side}.")],
            ),
        ]
    return page("Capabilities", "A side declares a capability before the other side may use its methods.", *parts)


def _extensions(atlas: Atlas) -> str:
    return page(
        "Extensions",
        f"Released extensions of MCP {revision_link(atlas.newest.revision)}.",
        table(
            ["extension", "identifier", "version", "purpose"],
            [
                (extension_link(one), code(one.id), plain(one.version), plain(one.doc))
                for one in atlas.newest.extensions
            ],
        ),
    )


def _a_to_z(atlas: Atlas) -> str:
    entries = [(name, method_link(name), "method") for name in atlas.methods]
    entries += [(name, definition_link(name), "definition") for name in atlas.definitions]
    entries += [(one.name, extension_link(one), "extension") for one in atlas.newest.extensions]
    errors = {one.name: one for protocol in reversed(atlas.protocols) for one in protocol.errors}
    entries += [(name, error_link(one), "error") for name, one in errors.items()]
    capabilities = {one.name for protocol in atlas.cores for one in protocol.capabilities}
    entries += [(name.partition(".")[2], capability_link(name), "capability") for name in capabilities]
    entries.sort(key=lambda entry: (entry[0].lower(), entry[1]))
    parts: list[str] = []
    for letter, found in groupby(entries, lambda entry: entry[0][:1].upper()):
        parts += [f"## {plain(letter)}", table(["name", "kind"], [entry[1:] for entry in found])]
    return page("A to Z", "All methods, definitions, errors, capabilities and extensions.", *parts)
