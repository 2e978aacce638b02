"""Decide what is generated, and where to: a revision of ours, or bindings of the user's own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from pathlib import Path

from mcp_bindgen.bridge.places import Plan
from mcp_bindgen.bridge.steps import plans, rule_file
from mcp_bindgen.bridge.words import page
from mcp_bindgen.protocol import Protocol, build, naming, slice_protocol
from mcp_bindgen.runtime.core.home import bindings_folder
from mcp_bindgen.spec import BadInput, EffectiveSchema, Store, external, sources
from mcp_bindgen.spec.errors import locating
from mcp_bindgen.spec.semantics import merge_semantics, read_semantics
from mcp_bindgen.spec.sources import Readable

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
    """

    source: EffectiveSchema
    folder: Path
    package: str
    only: tuple[str, ...]
    command: str
    is_tested: bool = False

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
    def file(self) -> Path | str | None:
        """The schema file."""
        return self.source.file

    def render(self) -> dict[str, str]:
        """Return the package's files.

        Raises:
            BadInput: The schema breaks a convention.
        """
        from .bindings import emit  # what it is made with takes time to load

        with locating(self.source.file):
            return emit(self.protocol, self.package, self.command)


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
    folders = {target.folder.parent: not target.is_tested for target in wanted}
    return [Bridges(Store(), folder / BRIDGES, users) for folder, users in folders.items()]


def is_checkout() -> bool:
    """Return whether we run from a checkout, which has the schemas, and the bindings of which we may write."""
    return (_ROOT / "generated" / NAMESPACE).is_dir() and (_ROOT / "pyproject.toml").exists()


def checkout() -> Path:
    """Return the `generated/` folder of this checkout; raise `BadInput` outside of one."""
    if not is_checkout():
        raise BadInput("this installation has no generated/ folder", fix="give --out DIR and --package NAME")
    return _ROOT / "generated"


def targets(
    revisions: list[str],
    *,
    out: Path | None = None,
    package: str | None = None,
    schema: Readable | None = None,
    name: str | None = None,
    semantics: Path | None = None,
    only: tuple[str, ...] = (),
    folder: Path | None = None,
    strict: bool = False,
) -> list[Target]:
    """Return the packages that a command line asks for.

    Args:
        revisions: The revisions to generate; none means all of this checkout, else all that the user keeps.
        out: The folder to put a package of the user's own into.
        package: That package's import name.
        schema: The source of a schema file to generate from, instead of a revision of ours.
        name: What to call the revision of `schema`.
        semantics: A file of the form of `semantics.toml` whose entries are added to ours.
        only: The capabilities to restrict the bindings to.
        folder: Another `schema/` folder than ours.
        strict: Whether drafts are refused where they break a rule.

    Raises:
        BadInput: The arguments do not fit together, or a revision is unknown.
    """
    store = Store(folder, strict=strict)
    if schema is not None and (revisions or name is None):
        raise BadInput("--schema takes the place of a revision", fix="name it with --revision NAME")
    if schema is None and (name is not None or semantics is not None):
        raise BadInput("--revision and --semantics describe the file of --schema", fix="give --schema FILE")
    own = out is not None or package is not None
    if own and (out is None or package is None or (schema is None and len(revisions) != 1)):
        raise BadInput("bindings of your own need --out DIR, --package NAME and one revision", fix="give all three")
    if (schema is not None or only or folder is not None) and not own:
        raise BadInput(
            "--schema, --folder and --only are for bindings of your own", fix="give --out DIR and --package NAME"
        )
    if package is not None and not all(part.isidentifier() and not iskeyword(part) for part in package.split(".")):
        raise BadInput(f"{package!r} is not the name of a package", fix="use letters, digits, _ and dots, no keywords")
    if name is not None and not re.fullmatch(r"[\w.+-]+", name):
        raise BadInput(f"{name!r} is not the name of a revision", fix="use letters, digits and . _ + -")
    if out is None or package is None:
        return [target_of(store, revision) for revision in revisions or _all(store)]
    if schema is None or name is None:
        source, words = store.effective(revisions[0]), [revisions[0]]
        words += ["--folder", _near(folder)] if folder is not None else []
    else:
        facts = merge_semantics(store.semantics, read_semantics(semantics)) if semantics else store.semantics
        file = sources.read(schema)
        source = external(file, name, facts, store.ledger, strict=store.strict)
        words = [
            "--schema",
            _near(Path(str(schema))) if Path(str(schema)).is_file() else file.argument,
            "--revision",
            name,
        ]
        words += ["--semantics", _near(semantics)] if semantics else []
    words += ["--out", _near(out), "--package", package, *(["--only", ",".join(only)] if only else [])]
    command = shlex.join(["mcp-bindgen", "generate", *words])
    if schema == sources.STDIN:
        command += "  # with the schema file as standard input"
    return [Target(source, out.joinpath(*package.split(".")), package, only, command)]


def _all(store: Store) -> list[str]:
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


def _near(path: Path) -> str:
    """Return a path as a command in a file may name it: from here, where it is below, as others have other folders."""
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_absolute() and path.is_relative_to(here) else str(path)
