"""Check the extensions of the `schema/` folder: pins, facts, words, and how they fit the core revisions they extend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from mcp_bindgen.spec import BadInput, Pin, Reading, Store, extend

from .build import build
from .model import Definition, Object
from .status import open_work


@dataclass(frozen=True)
class ExtensionReport:
    """One version of an extension in a `schema/` folder.

    Attributes:
        id: The extension.
        version: The version.
        is_draft: True if it is not released.
        pinned: True if the structure equals the imported one.
        cores: The known core revisions that it extends.
        definitions: Number of its definitions, hoisted ones included.
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

    @property
    def sound(self) -> bool:
        """Whether it is as pinned, can be read with each core that it names, and a released one has all words."""
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
            lenient = Reading(extension.file, strict=False)
            protocol = build(extend(source, replace(extension, reading=lenient)))
        except BadInput as error:
            return replace(report, problems=(*report.problems, str(error)))
        own = {name: one for name, one in protocol.definitions.items() if one.origin == pin.id}
        missing = [] if extension.docs is None else list(_missing(own))
        report = replace(
            report,
            definitions=len(own),
            undocumented=tuple(missing),
            unused_words=tuple(sorted((extension.docs or {}).keys() - own.keys() - {"common"})),
            problems=(*report.problems, *map(str, protocol.decisions)),
        )
    return report


def _missing(definitions: dict[str, Definition]) -> Iterator[str]:
    for name, definition in definitions.items():
        if not definition.doc:
            yield name
        if isinstance(definition.type, Object):
            yield from (f"{name}.{field.wire}" for field in definition.type.fields if not field.doc)


def extension_tasks(report: ExtensionReport) -> Iterator[str]:
    """Return lines about open work: descriptions to write and problems to solve."""
    yield f"\n{report.id}@{report.version}:"
    found = [
        ("what breaks a rule", report.problems),
        ("what has no words (in its docs.toml)", report.undocumented),
        ("words for what it has not", report.unused_words),
        ("it extends no core revision that is known", () if report.cores else ("import one of its [extension] core",)),
    ]
    yield from open_work(found)
