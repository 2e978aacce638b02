"""Everything that the pages of the atlas read: the revisions, their history, and the conversions between them."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

from mcp_bindgen.conversion.descriptions import sections
from mcp_bindgen.conversion.differences import Plan
from mcp_bindgen.conversion.steps import plans
from mcp_bindgen.diff.history import History, Step, history
from mcp_bindgen.diff.selectors import find
from mcp_bindgen.diff.source import gates
from mcp_bindgen.ir import Protocol, build
from mcp_bindgen.ir.examples import Unfit, example
from mcp_bindgen.ir.model import Definition, ErrorCode, Extension, Method, Object, Type, references
from mcp_bindgen.ir.text import describe
from mcp_bindgen.report.history import document
from mcp_bindgen.report.markdown import markdown
from mcp_bindgen.spec import Store, named
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.markdown import joined

from ..markdown import Pages, block, code, plain
from ..sources import ROOT

_MAX_EXAMPLE_LINES = 60
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*"|[A-Za-z_]\w*)')


def slug(name: str) -> str:
    """Return the name of a method or an error in an address: `tools-list-changed`."""
    return re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")


def anchor(name: str) -> str:
    """Return the anchor of a name: it ends no attribute and no link."""
    return re.sub(r"[^\w.-]", _hex, name)


def file_name(name: str) -> str:
    """Return the name of a file, for any name of a schema: it leads to no other folder and hides no index."""
    safe = re.sub(r"[^A-Za-z0-9_-]", _hex, name)
    return f"{safe}~" if safe.lower() in ("", "index", "readme") else safe


def _hex(found: re.Match[str]) -> str:
    return f"~{ord(found[0]):x}~"


def definition_page(name: str) -> str:
    """Return the page of a definition."""
    return f"atlas/definitions/{file_name(name)}.md"


def method_page(name: str) -> str:
    """Return the page of a method."""
    return f"atlas/methods/{file_name(re.sub('[/_]', '-', name))}.md"


def revision_page(revision: str) -> str:
    """Return the page of a revision."""
    return f"atlas/revisions/{revision}.md"


def link(text: str, page: str, place: str = "") -> str:
    """Return a link whose target counts from the root of the site; `relative_links` makes it relative."""
    return f"[{text}](/{page}{'#' + anchor(place) if place else ''})"


def definition_link(name: str) -> str:
    """Return a link to the page of a definition."""
    return link(code(name), definition_page(name))


def method_link(name: str) -> str:
    """Return a link to the page of a method."""
    return link(code(name), method_page(name))


def revision_link(revision: str) -> str:
    """Return a link to the page of a revision."""
    return link(revision, revision_page(revision))


def error_link(error: ErrorCode) -> str:
    """Return a link to an error code."""
    return link(f"`{error.code}` {plain(error.name)}", "atlas/errors.md", error.name)


def capability_link(name: str) -> str:
    """Return a link to a capability."""
    return link(code(name), "atlas/capabilities.md", name)


def extension_link(extension: Extension) -> str:
    """Return a link to the page of an extension."""
    return link(extension.name, f"atlas/extensions/{extension.name}.md")


@dataclass(frozen=True)
class Subject:
    """A method or a definition with the newest revision that has it.

    Attributes:
        name: The name.
        protocol: The revision, with its extensions.
        revisions: The revisions with the name in the core, oldest first.
    """

    name: str
    protocol: Protocol
    revisions: tuple[str, ...]


class Atlas:
    """The released revisions with the released extensions of the newest one."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.cores: list[Protocol] = [build(named(revision, store)) for revision in store.pins]
        revision = self.cores[-1].revision
        pins = [pin for pin in store.extension_pins if pin.status == "released" and revision in store.cores(pin)]
        released = tuple(dict.fromkeys(pin.id for pin in pins))
        self.newest = build(named(revision, store, None, released))

    @cached_property
    def protocols(self) -> list[Protocol]:
        """All revisions, newest first; the newest has its extensions."""
        return [self.newest, *reversed(self.cores[:-1])]

    @cached_property
    def methods(self) -> dict[str, Subject]:
        """Name -> method, in alphabetical order."""
        names = {one.name for protocol in self.protocols for one in protocol.methods}
        return {name: self._subject(name, [p for p in self.protocols if method(p, name)]) for name in sorted(names)}

    @cached_property
    def definitions(self) -> dict[str, Subject]:
        """Name -> definition, in alphabetical order."""
        names = {name for protocol in self.protocols for name in protocol.definitions}
        return {
            name: self._subject(name, [p for p in self.protocols if name in p.definitions])
            for name in sorted(names, key=lambda name: (name.lower(), name))
        }

    def _subject(self, name: str, having: Sequence[Protocol]) -> Subject:
        core = [p.revision for p in self.cores if method(p, name) or name in p.definitions]
        return Subject(name, having[0], tuple(core))

    @cached_property
    def steps(self) -> list[Step]:
        """The comparison of each revision with the next one."""
        return [Step(old, new, gates(self.store)) for old, new in pairwise(self.cores)]

    @cached_property
    def plans(self) -> list[Plan]:
        """The conversions between adjacent revisions."""
        return plans(self.store)

    @cached_property
    def reported(self) -> dict[str, set[str]]:
        """Revision -> fingerprints of the findings on the page of its changes."""
        files = (ROOT / "docs" / "changes").glob("2*.md")
        return {file.stem: set(re.findall(r'<sub title="(\w+)">', file.read_text("utf-8"))) for file in files}

    def history(self, words: str) -> History | None:
        """Return the history of a subject in the core, or None."""
        if all(find(protocol, words) is None for protocol in self.cores):
            return None
        return history(words, self.cores, self.steps)

    def extension(self, id: str) -> Extension | None:
        """Return the extension with an id, or None for the core."""
        return next((one for one in self.newest.extensions if one.id == id), None)

    @cached_property
    def users(self) -> dict[str, list[str]]:
        """Definition -> definitions of any revision that refer to it."""
        found: dict[str, set[str]] = {}
        for protocol in self.protocols:
            for name, one in protocol.definitions.items():
                for other in references(one.type):
                    found.setdefault(other, set()).add(name)
        return {name: sorted(users) for name, users in found.items()}

    @cached_property
    def carriers(self) -> dict[str, list[str]]:
        """Definition -> methods whose message, params or results it is, in any revision."""
        found: dict[str, set[str]] = {}
        for protocol in self.protocols:
            for one in protocol.methods:
                types = [type for type in (one.params, one.result, *one.alternatives) if type is not None]
                for name in (one.definition, *(name for type in types for name in references(type))):
                    found.setdefault(name, set()).add(one.name)
        return {name: sorted(methods) for name, methods in found.items()}

    @cached_property
    def conversions(self) -> dict[str, list[tuple[str, str, str, str]]]:
        """Method, definition or `error.NAME` -> step, outcome, places and reason of its conversions."""
        found: dict[str, list[tuple[str, str, str, str]]] = {}
        for plan in self.plans:
            step = f"{plan.source.revision} to {plan.target.revision}"
            for section in sections(plan):
                for names, reason in section.entries:
                    owned: dict[str, list[str]] = {}
                    for name in names:
                        owned.setdefault(_owner(name), []).append(name)
                    for owner, places in owned.items():
                        found.setdefault(owner, []).append((step, section.title, ", ".join(map(code, places)), reason))
        return found


def _owner(place: str) -> str:
    """Return the method, definition or error that a place belongs to."""
    first, _, rest = place.partition(".")
    return f"error.{rest}" if first == "error" else first


def method(protocol: Protocol, name: str) -> Method | None:
    """Return a method of a revision, or None."""
    return next((one for one in protocol.methods if one.name == name), None)


# --- texts ----------------------------------------------------------------------------------------------------


def type_words(atlas: Atlas, type: Type | None) -> str:
    """Return a type in words, with links to the definitions that it names."""
    if type is None:
        return ""
    parts = _TOKEN.split(describe(type, formats=True))
    return joined(_token(atlas, part) if at % 2 else plain(part) for at, part in enumerate(parts))


def _token(atlas: Atlas, token: str) -> str:
    if token.startswith('"'):
        return code(token)
    return definition_link(token) if token in atlas.definitions else plain(token)


def definition_of(protocol: Protocol, type: Type | None) -> Definition | None:
    """Return the definition that a type refers to, or None."""
    names = list(references(type)) if type is not None else []
    return protocol.definitions[names[0]] if len(names) == 1 and hasattr(type, "name") else None


def json_block(value: Any) -> str:
    """Return a JSON value as a block of code."""
    return block(json.dumps(value, ensure_ascii=False, indent=2), "json")


def sample(protocol: Protocol, type: Type) -> Any:
    """Return an example of a type, with optional members where it stays short.

    Raises:
        Unfit: No example can be found without searching.
    """
    small = dated(protocol, example(protocol, type))
    try:
        full = example(protocol, type, full=True)
    except Unfit:
        return small
    full = dated(protocol, full)
    return full if len(json.dumps(full, indent=2).splitlines()) <= _MAX_EXAMPLE_LINES else small


def message(protocol: Protocol, found: Method) -> dict[str, Any]:
    """Return an example of a message: required members of the params, and those that calls take by position.

    Raises:
        Unfit: No example can be found without searching.
    """
    shown: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": found.name}
    if found.carrier == "embedded":
        shown = {"method": found.name}
    elif found.kind == "notification":
        del shown["id"]
    if found.params is not None:
        params = example(protocol, found.params)
        type = protocol.resolve(found.params)
        if isinstance(type, Object):
            fields = (field for field in type.fields if field.wire in found.arguments and field.wire not in params)
            params |= {field.wire: example(protocol, field.type) for field in fields}
        if params or found.params_required:
            shown["params"] = dated(protocol, params)
    return shown


def answer(protocol: Protocol, found: Method) -> dict[str, Any] | None:
    """Return an example of the response to a request, or of the answer to an embedded one; None without a result.

    Raises:
        Unfit: No example can be found without searching.
    """
    if found.result is None:
        return None
    result = dated(protocol, example(protocol, found.result))
    return result if found.carrier == "embedded" else {"jsonrpc": "2.0", "id": 1, "result": result}


def dated(protocol: Protocol, value: Any) -> Any:
    """Return an example with the name of the revision in each member that is made for it."""
    if is_object(value):
        return {
            name: protocol.revision if name.endswith("protocolVersion") else dated(protocol, inner)
            for name, inner in value.items()
        }
    return [dated(protocol, one) for one in value] if is_array(value) else value


def history_words(atlas: Atlas, found: History) -> str:
    """Return the events of a history, with links to revisions and to the reports of `diff`."""
    prints = {event.revision: [one.cause or one.fingerprint for one in event.findings] for event in found.events}

    def heading(match: re.Match[str]) -> str:
        revision = match[1].replace("\\", "")
        known = prints.get(revision, [])
        shown = next((one for one in known if one in atlas.reported.get(revision, ())), None)
        place = finding_anchor(shown) if shown is not None else ""
        report = link("diff", f"changes/{revision}.md", place) if known else ""
        return f"**{revision_link(revision)}**{f' ({report})' if report else ''}"

    _, *sections = markdown(document([(None, found)])).split("\n\n")
    return re.sub(r"^## (.*)$", heading, "\n\n".join(sections), flags=re.MULTILINE)


def finding_anchor(fingerprint: str) -> str:
    """Return the anchor of a finding on a page of changes."""
    return f"finding-{fingerprint}"


def conversion_rows(atlas: Atlas, owner: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the rows on the conversions of a subject."""
    for step, outcome, places, reason in atlas.conversions.get(owner, ()):
        place = re.sub(r"[^a-z0-9]+", "-", step.lower())
        yield link(step, "explanation/bridges.md", place), outcome.lower(), places, plain(reason)


_ABSOLUTE = re.compile(r"\]\(/([^)#]*)(#[^)]*)?\)")


def relative_links(pages: Pages) -> Pages:
    """Return pages with relative links in place of those that count from the root of the site."""
    return {name: _relative(name, text) for name, text in pages.items()}


def _relative(name: str, text: str) -> str:
    folder = posixpath.dirname(name)
    return _ABSOLUTE.sub(lambda found: f"]({posixpath.relpath(found[1], folder)}{found[2] or ''})", text)


def store() -> Store:
    """Return the schemas of this checkout."""
    return Store(ROOT / "schema")
