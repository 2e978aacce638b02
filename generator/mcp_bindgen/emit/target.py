"""Say what one package is generated from, and where to: a revision, an extension of one, or the steps between them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mcp_bindgen.bridge.places import Plan
from mcp_bindgen.bridge.steps import plans, rule_file
from mcp_bindgen.bridge.words import page
from mcp_bindgen.protocol import Protocol, build, naming, slice_protocol
from mcp_bindgen.runtime.home import bindings_folder
from mcp_bindgen.spec import BadInput, EffectiveSchema, ExtensionSchema, Store, extend
from mcp_bindgen.spec.errors import locating

NAMESPACE = "mcp_bindgen"
BRIDGES = "bridges"
"""The package of the steps between revisions."""

_ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Target:
    """One package to generate.

    Attributes:
        source: The effective schema.
        folder: Where the package's files go.
        package: Its import name.
        only: The capabilities to restrict it to; empty means everything.
        command: The command that generates it.
        is_tested: Whether it is a revision of the installation, whose bindings its tests have imported.
        extension: The extension, among those of `source`, that it is of; `None` for a package of a revision.
    """

    source: EffectiveSchema
    folder: Path
    package: str
    only: tuple[str, ...]
    command: str
    is_tested: bool = False
    extension: ExtensionSchema | None = None

    @property
    def name(self) -> str:
        """The name of what it is of: `2026-07-28`, or `2026-07-28 tasks@2026-07-28`."""
        return f"{self.source.revision} {self.extension.label}" if self.extension else self.source.revision

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol model, restricted to `only`; raises `BadInput` where the schema breaks a convention."""
        protocol = build(self.source)
        return slice_protocol(protocol, self.only) if self.only else protocol

    @property
    def inputs(self) -> tuple[str, ...]:
        """All that its files follow from, beside the generator."""
        return repr(self.protocol), self.package, self.command

    @property
    def can_be_tried(self) -> bool:
        """Whether its modules are imported first: not if tests did so, or if somebody's engine would run."""
        return not self.is_tested and not (self.extension and self.extension.semantics["extension"].get("engine"))

    @property
    def counts(self) -> tuple[int, int]:
        """How many definitions and methods it has."""
        origin = self.extension.id if self.extension else ""
        counted = self.protocol.definitions.values(), self.protocol.methods
        definitions, methods = (sum(one.origin == origin for one in these) for these in counted)
        return definitions, methods

    @property
    def file(self) -> Path | str | None:
        """The schema file."""
        return self.extension.file if self.extension else self.source.file

    def render(self) -> dict[str, str]:
        """Return the package's files.

        Raises:
            BadInput: The schema breaks a convention.
        """
        from .bindings import emit, emit_extension  # what it is made with takes time to load

        with locating(self.file):
            if self.extension is None:
                return emit(self.protocol, self.package, self.command)
            core = f"{NAMESPACE}.{naming.package(self.source.revision)}"
            return emit_extension(self.protocol, self.extension.id, self.package, core, self.command)


@dataclass(frozen=True)
class Bridges:
    """The steps between revisions to generate: those of this checkout, or those of the user's revisions.

    Attributes:
        store: The revisions.
        folder: Where the modules go.
        users: Whether they are the user's, or the name of the one revision whose steps are wanted.
    """

    store: Store
    folder: Path
    users: bool | str = False

    command = "mcp-bindgen generate"

    @cached_property
    def plans(self) -> list[Plan]:
        """The plans; raises `BadInput` as `bridge.steps.plans`."""
        return plans(self.store, users=self.users)

    @property
    def file(self) -> Path:
        """The file with the rules."""
        return rule_file(self.store, users=bool(self.users))

    @property
    def inputs(self) -> tuple[str, ...]:
        """All that the modules follow from, beside the generator."""
        return tuple(map(repr, self.plans))

    @property
    def _page(self) -> Path | None:
        """The page about all steps, in a checkout."""
        return None if self.users else self.folder.parents[2] / "docs" / "bridges.md"

    @property
    def is_told(self) -> bool:
        """Whether the page about all steps, if there is to be one, says what they are."""
        return self._page is None or (self._page.exists() and self._page.read_text("utf-8") == page(self.plans))

    def tell(self) -> None:
        """Write the page about all steps, if there is to be one."""
        if self._page is not None and not self.is_told:
            self._page.parent.mkdir(exist_ok=True)
            self._page.write_text(page(self.plans), "utf-8")

    def render(self) -> dict[str, str]:
        """Return the modules; raises `BadInput` as `plans`."""
        from .bridges import emit  # what it is made with takes time to load

        return emit(self.plans, self.command, is_package=not self.users)


def bridges_of(wanted: Iterable[Target]) -> list[Bridges]:
    """Return the steps between the revisions of this checkout, or of the user's, whichever packages are of."""
    folders = {target.folder.parent: not target.is_tested for target in wanted if target.extension is None}
    return [Bridges(Store(), folder / BRIDGES, users) for folder, users in folders.items()]


def is_checkout() -> bool:
    """Return whether we run from a checkout, which has the schemas, and the bindings of which we may write."""
    return (_ROOT / "generated" / NAMESPACE).is_dir() and (_ROOT / "pyproject.toml").exists()


def checkout() -> Path:
    """Return the `generated/` folder of this checkout; raise `BadInput` outside of one."""
    if not is_checkout():
        raise BadInput("this installation has no generated/ folder", fix="give --out DIR and --package NAME")
    return _ROOT / "generated"


def all_revisions(store: Store) -> list[str]:
    """Return the revisions of this checkout, or else those that the user keeps."""
    users = [revision for revision in store.pins if store.is_users(revision)]
    if users and not is_checkout():
        return users
    return [revision for revision in store.pins if revision not in users]


def target_of(store: Store, revision: str) -> Target:
    """Return the package of a revision that is imported: in the user's folder, or in this checkout.

    Raises:
        BadInput: The revision is unknown, or its bindings are part of an installation.
    """
    module, is_users = naming.package(revision), store.is_users(revision)
    users = bindings_folder() if is_users else None
    folder = (users or checkout() / NAMESPACE) / module
    command = f"mcp-bindgen generate {revision}"
    return Target(store.effective(revision), folder, f"{NAMESPACE}.{module}", (), command, is_tested=not is_users)


def extension_of(core: EffectiveSchema, extension: ExtensionSchema) -> Target:
    """Return the package of an extension that stands in the one of the revision that it extends, in this checkout.

    Raises:
        BadInput: The bindings are part of an installation.
    """
    place = [naming.package(core.revision), "extensions", extension.module]
    folder = (checkout() / NAMESPACE).joinpath(*place)
    command = f"mcp-bindgen generate {core.revision} --extension {extension.module}"
    package = ".".join([NAMESPACE, *place])
    return Target(extend(core, extension), folder, package, (), command, is_tested=True, extension=extension)
