"""Check the `schema/` folder: pins, patches, facts and descriptions of revisions and extensions, and open work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from mcp_bindgen.spec import BadInput, DiagnosticContext, EffectiveSchema, Pin, Store, extend
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.spec.json import is_array, is_object
from mcp_bindgen.spec.toml import key_text, quoted, read_toml

from .build import build
from .model import Field, Object, Protocol, Type
from .text import describe

_TITLES = read_toml(Path(__file__).with_suffix(".toml"))


@dataclass(frozen=True)
class Report:
    """One revision of a `schema/` folder.

    Attributes:
        revision: Its name.
        is_draft: True if it is not released yet.
        has_prose: True if it has the words of its file, so that `docs.toml` need not have any.
        pinned: True if the structure equals the imported one.
        patches: How many known mistakes are corrected.
        corrections: Each of them, with its reason, in a schema file from outside.
        unlisted: Pointers of corrections that the list of errata does not expect in this revision.
        definitions: How many definitions the revision has, inline ones included.
        fields: How many fields they have.
        stubs: Definition with missing descriptions -> field, or `""` for the definition itself -> its type.
        gone: Facts of `semantics.toml` about parts of the previous revision that are gone, with these parts.
        unguarded: New methods without a known capability.
        unfilled: New required members of all results, or of the `_meta` of all requests, without a known value.
        problems: Broken rules, with the reading of a draft that breaks them.
    """

    revision: str
    is_draft: bool
    has_prose: bool
    pinned: bool
    patches: int
    corrections: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()
    definitions: int = 0
    fields: int = 0
    stubs: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    gone: tuple[str, ...] = ()
    unguarded: tuple[str, ...] = ()
    unfilled: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The name of the revision."""
        return self.revision

    @property
    def undocumented_definitions(self) -> list[str]:
        """The definitions without words."""
        return [name for name, missing in self.stubs.items() if "" in missing]

    @property
    def undocumented_fields(self) -> list[str]:
        """The fields without words, as `Definition.field`."""
        return [f"{name}.{wire}" for name, missing in self.stubs.items() for wire in missing if wire]

    @property
    def sound(self) -> bool:
        """True if it is as pinned, breaks no rule, has the listed corrections, and describes every definition."""
        return self.pinned and not (self.unlisted or self.problems or self.undocumented_definitions)

    @property
    def is_open(self) -> bool:
        """True if the revision needs attention: it is not sound, or a draft with diagnostics."""
        return not self.sound or (self.is_draft and any((self.stubs, self.gone, self.unguarded, self.unfilled)))


def reports_of(store: Store, revision: str | None = None) -> list[Report]:
    """Return a report for each revision, or for `revision`, compared with the previous one.

    Raises:
        BadInput: A file is damaged, a patch no longer fits, or there is no such revision.
    """
    reports: list[Report] = []
    before: Protocol | None = None
    names = list(store.pins)
    if revision is not None:
        store.pin(revision)
        names = names[max(0, names.index(revision) - 1) : names.index(revision) + 1]
    for name in names:
        source = store.effective(name)
        unlisted = [patch.pointer for patch in source.applied if name not in patch.revisions]
        protocol = build(replace(source, context=DiagnosticContext(source.file, strict=False)))
        report = Report(
            name,
            is_draft=source.draft,
            has_prose=source.docs is None,
            pinned=store.is_pinned(name),
            patches=len(source.applied),
            corrections=tuple(map(str, source.corrections)),
            unlisted=() if store.is_users(name) else tuple(unlisted),
            definitions=len(protocol.definitions),
            fields=sum(len(_fields(definition.type)) for definition in protocol.definitions.values()),
            stubs={} if source.docs is None else dict(_undocumented(protocol)),
            problems=tuple(map(str, protocol.diagnostics)),
        )
        reports.append(report if before is None else _compared(report, source, protocol, before))
        before = protocol
    return [report for report in reports if revision in (None, report.revision)]


def _compared(report: Report, source: EffectiveSchema, protocol: Protocol, before: Protocol) -> Report:
    known = {method.name for method in before.methods}
    return replace(
        report,
        gone=tuple(_gone(source.semantics, _names(before) - _names(protocol))),
        unguarded=tuple(
            method.name
            for method in protocol.methods
            if not (method.capabilities or method.name in known or method.name in source.semantics["lifecycle"])
        ),
        unfilled=tuple(sorted(_owed(protocol) - _owed(before))),
    )


# --- open work ------------------------------------------------------------------------------------------------


def tasks(report: Report | ExtensionReport) -> Iterator[str]:
    """Return lines about open work, with the names of the places, and about corrected mistakes."""
    yield f"\n{report.label}:"
    titles = _TITLES["revision" if isinstance(report, Report) else "extension"]
    found: dict[str, Sequence[str]] = {title: getattr(report, name) for name, title in titles.items()}
    for title, lines in found.items():
        if lines:
            yield f"  {title}:"
            yield from (f"    {line}" for line in lines)
    if not any(found.values()):
        yield "  nothing to write"
    yield from (f"  corrected: {correction}" for correction in report.corrections)


def entries(reports: Iterable[Report], docs: Mapping[str, Any]) -> str:
    """Return entries to append to `docs.toml` and to fill in, for parts without a description in any revision.

    Args:
        reports: The revisions.
        docs: The content of `docs.toml`; missing parts of an existing entry are new since the revision.
    """
    missing: dict[str, dict[str, str]] = {}
    for report in reports:
        for name, places in report.stubs.items():
            table = f"{name}.since.{quoted(report.revision)}" if name in docs else name
            known = missing.setdefault(table, {})
            known |= {wire: what for wire, what in places.items() if not _is_asked(missing, name, wire)}
    return "\n".join(line for table, places in missing.items() if places for line in _entry(table, places))


def _is_asked(missing: Mapping[str, Mapping[str, str]], name: str, wire: str) -> bool:
    """Return whether an entry for an older revision asks for the same words."""
    return any(wire in places for table, places in missing.items() if table.partition(".since.")[0] == name)


def _entry(table: str, places: Mapping[str, str]) -> Iterator[str]:
    words = {wire: f'{key_text(wire) if wire else "doc"} = ""  # {printable(what)}' for wire, what in places.items()}
    if "" in words:
        yield f"[{table}]"
        yield words.pop("")
    if words:
        yield f"[{table}.fields]"
        yield from words.values()
    yield ""


# --- words ----------------------------------------------------------------------------------------------------


def _undocumented(protocol: Protocol) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield definitions with missing descriptions, and the type of each place without one."""
    uses = {method.definition: f"{method.kind} {method.name}, sent by: {method.sender}" for method in protocol.methods}
    uses |= {describe(method.result): f"answers {method.name}" for method in protocol.methods if method.result}
    for name, definition in protocol.definitions.items():
        missing = {} if definition.doc else {"": uses.get(name, describe(definition.type))}
        for one in _fields(definition.type):
            if not one.doc:
                missing[one.wire] = describe(one.type) + (", required" if one.required else "")
        if missing:
            yield name, missing


def _fields(type: Type) -> tuple[Field, ...]:
    return type.fields if isinstance(type, Object) else ()


# --- facts ----------------------------------------------------------------------------------------------------


def _names(protocol: Protocol) -> set[str]:
    """Return everything of a revision that a fact can name."""
    names = {method.name for method in protocol.methods} | protocol.definitions.keys()
    names |= {capability.name for capability in protocol.capabilities}
    owners = {name: _fields(definition.type) for name, definition in protocol.definitions.items()}
    owners |= {method.name: protocol.fields_of(method.params) for method in protocol.methods}
    for owner, fields in owners.items():
        names |= {name for one in fields for name in (one.wire, f"{owner}.{one.wire}")}
    return names


def _gone(semantics: Mapping[str, Any], names: set[str]) -> Iterator[str]:
    """Return the facts that name one of `names`, and which."""
    for table, entries in semantics.items():
        for key, value in entries.items() if is_object(entries) else enumerate(entries):
            named = dict.fromkeys(name for name in (key, *_strings(value)) if name in names)
            if named:
                title = f'[{table}] "{key}"' if isinstance(key, str) else f"[[{table}]] number {key + 1}"
                others = [name for name in named if name != key]
                yield f"{title}: {', '.join(others)}" if others else title


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for part in value.values() if is_object(value) else value if is_array(value) else ():
        yield from _strings(part)


def _owed(protocol: Protocol) -> set[str]:
    """Return the members that all results, or the `_meta` of all requests of clients, must have, unfilled."""
    requests = [method for method in protocol.methods if method.result is not None and method.carrier == "message"]
    metas = [
        meta.type if (meta := protocol.field_of(method.params, "_meta")) is not None else None
        for method in requests
        if "client" in method.senders
    ]
    return _common(protocol, [method.result for method in requests]) | {
        f"_meta.{wire}" for wire in _common(protocol, metas)
    }


def _common(protocol: Protocol, types: Sequence[Type | None]) -> set[str]:
    found = [{one.wire for one in protocol.fields_of(type) if one.required and one.filled is None} for type in types]
    return set[str].intersection(*found) if found else set()


# --- extensions -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExtensionReport:
    """One version of an extension in a `schema/` folder.

    Attributes:
        id: The extension.
        version: The version.
        is_draft: True if it is not released.
        pinned: True if the structure equals the imported one.
        cores: The known core revisions that it extends.
        definitions: Number of its definitions, inline ones included.
        undocumented: The definitions, and fields of them as `Definition.field`, without a description.
        unused_words: Entries of `docs.toml` without a definition or field.
        problems: Broken rules, and errors that prevent reading.
    """

    id: str
    version: str
    is_draft: bool
    pinned: bool
    cores: tuple[str, ...]
    definitions: int = 0
    undocumented: tuple[str, ...] = ()
    unused_words: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    corrections: ClassVar[tuple[str, ...]] = ()

    @property
    def label(self) -> str:
        """The name on the command line, `ID@VERSION`."""
        return f"{self.id}@{self.version}"

    @property
    def unknown_cores(self) -> list[str]:
        """The task of an extension of unknown core revisions."""
        return [] if self.cores else ["import one of its [extension] core"]

    @property
    def sound(self) -> bool:
        """True if it is as pinned and is read with each core that it names, and a released one has all words."""
        words = not self.is_draft and (self.undocumented or self.unused_words)
        return self.pinned and bool(self.cores) and not (self.problems or words)


def extension_reports(store: Store, name: str | None = None) -> list[ExtensionReport]:
    """Return a report for each version of each extension, or for one; raise `BadInput` where there is none."""
    pins = store.extension_pins if name is None else [store.extension(name)]
    return [_report(store, pin) for pin in pins]


def _report(store: Store, pin: Pin) -> ExtensionReport:
    report = ExtensionReport(
        pin.id,
        pin.name,
        pin.status == "draft",
        store.is_pinned(pin),
        tuple(store.cores(pin)),
    )
    for core in report.cores:
        try:
            source = store.effective(core)
            extension = store.extension_schema(pin, source)
            lenient = DiagnosticContext(extension.file, strict=False)
            protocol = build(extend(source, replace(extension, context=lenient)))
        except BadInput as error:
            return replace(report, problems=(*report.problems, str(error)))
        own = {name: one for name, one in protocol.definitions.items() if one.origin == pin.id}
        missing = {} if extension.docs is None else dict(_undocumented(protocol))
        report = replace(
            report,
            definitions=len(own),
            undocumented=tuple(
                f"{name}.{wire}" if wire else name for name in missing if name in own for wire in missing[name]
            ),
            unused_words=tuple(sorted((extension.docs or {}).keys() - own.keys() - {"common"})),
            problems=(*report.problems, *map(str, protocol.diagnostics)),
        )
    return report
