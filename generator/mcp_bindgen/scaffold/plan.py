"""Plan a project: style of the code, revisions and features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.imports import use
from mcp_bindgen.emit.python.installation import NAMESPACE
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import build
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.revisions import order

from .features import Feature, choose, find_wanted, offered_extensions
from .own_bindings import OwnBindings, own_bindings, refused_contract
from .project import TRANSPORTS, Kind, Names, Project

APP_FEATURES = ("completions", "prompts", "resources", "tools")
"""Capabilities that an `App` project has an example of."""


class Style(StrEnum):
    """Style of a server's code."""

    APP = "app"
    CLASS = "class"


def class_option(
    revisions: Sequence[str] = (),
    features: Collection[str] = (),
    extensions: Collection[str] = (),
    contract: str | None = None,
) -> str | None:
    """Return the option of a server that only a class can meet, or None.

    Args:
        revisions: The revisions that were named; functions have no types of a revision.
        features: The capabilities of the server.
        extensions: The modules of its extensions.
        contract: The option that names its contract, if it has one.
    """
    if contract is not None:
        return contract
    if revisions:
        return "--revision"
    more = sorted({*features} - {*APP_FEATURES}) + sorted(extensions)
    return f"--with {more[0]}" if more else None


def style_of(wanted: Style | None, option: str | None) -> Style:
    """Return the style of a server: as it is wanted, or else an `App`, unless an option needs a class.

    Args:
        wanted: The style that was asked for.
        option: The option that needs a class, if there is one.

    Raises:
        BadInput: An `App` is wanted, and an option needs a class.
    """
    if wanted is Style.APP and option is not None:
        raise BadInput(f"{option} needs a class, not an App", fix=f"give --style class, or leave {option} out")
    return wanted or (Style.CLASS if option is not None else Style.APP)


DEFAULTS: Mapping[Kind, tuple[str, ...]] = {"server": ("tools",), "client": ()}
"""Default features of a project."""


@dataclass(frozen=True)
class RevisionPlan:
    """One revision of a project.

    Attributes:
        protocol: The revision.
        features: The features of the project in it.
        module: The module of the project's class for it.
        own: The bindings in the project, if they are not part of mcp-bindgen.
        extensions: The modules of the extensions that the project speaks in it.
    """

    protocol: PythonProtocol
    features: tuple[Feature, ...]
    module: str
    own: OwnBindings | None = None
    extensions: tuple[str, ...] = ()

    @property
    def package(self) -> str:
        """The last name of the package of its bindings."""
        return naming.package(self.protocol.revision)

    @property
    def bindings(self) -> str:
        """The import name of that package."""
        return self.own.package if self.own is not None else f"{NAMESPACE}.{self.package}"

    @property
    def prefix(self) -> str:
        """The text before the names of its types in code."""
        return f"{use(self.bindings, 'types', 'mcp')}."

    def bases(self, kind: Kind) -> str:
        """Return the bases of the project's class, which is a server or a client."""
        name, extensions = kind.capitalize(), f"{self.bindings}.extensions"
        return ", ".join(f"{use(extensions, one)}.{name}" for one in self.extensions) or use(self.bindings, name)


@dataclass(frozen=True)
class ProjectContract(ABC):
    """Contract that the server of a project implements, or that the server of a client has.

    Attributes:
        option: The option that named it.
        source: The file that it was read from, or the name of the file that it becomes.
        text: The text of that file.
        info: The name and the version of the server, if they are stated.
        scopes: The scopes that it states beside its entries.
        requirement: The distribution that its server needs, if it needs one.
    """

    option: str
    source: Path
    text: str
    info: Mapping[str, Any] | None
    scopes: Sequence[str]
    requirement: str | None

    @abstractmethod
    def calls(self) -> list[str]:
        """Return arguments of `mcp-bindgen call` that show first answers."""

    @abstractmethod
    def client_class(self, package: str) -> str:
        """Return the name of the typed client in the package of a project."""

    @abstractmethod
    def refuse_unservable(self, revisions: Sequence[str]) -> None:
        """Raise `BadInput` if one of the revisions that shall serve the contract does not allow an entry."""

    @abstractmethod
    def server_files(self, plan: Plan) -> dict[str, str]:
        """Return path -> text of the files of a server that its user owns."""

    @abstractmethod
    def generated_files(self, project: Project) -> dict[str, str]:
        """Return the generated files, by their names in `project.generated`."""

    @abstractmethod
    def warn(self) -> None:
        """Print warnings about its entries."""


@dataclass(frozen=True)
class Plan:
    """A project to be written.

    Attributes:
        names: Its names.
        kind: Whether it is a server or a client.
        revision_plans: The revisions that its classes are written in, the oldest first.
        transports: How messages travel.
        contract: The contract of the server, or of the server that a client talks to, if it is known.
        auth: Whether it wants tokens over HTTP.
        narrowed: The only revisions that a server shall speak; by default it speaks all.
        style: Whether a server is an `App` or a class; a client is a class.
        class_option: The option that needs a class, if there is one.
    """

    names: Names
    kind: Kind
    revision_plans: tuple[RevisionPlan, ...]
    transports: tuple[str, ...] = ("stdio",)
    contract: ProjectContract | None = None
    auth: bool = False
    narrowed: tuple[str, ...] = ()
    style: Style = Style.CLASS
    class_option: str | None = None

    @property
    def file(self) -> str | None:
        """The name of the contract's file in the project."""
        return f"contract{self.contract.source.suffix.lower()}" if self.contract is not None else None

    @property
    def http(self) -> bool:
        """True if it speaks HTTP, of either kind."""
        return not {"http", "sse"}.isdisjoint(self.transports)

    @property
    def path(self) -> str:
        """The path of its documented HTTP address; tokens are issued for `/mcp`."""
        return "/mcp" if "http" in self.transports or self.auth else "/sse"

    @property
    def revisions(self) -> tuple[str, ...]:
        """The names of the revisions that its classes are written in."""
        return tuple(revision_plan.protocol.revision for revision_plan in self.revision_plans)

    @property
    def introduced(self) -> str:
        """The name by which a server introduces itself: the name in its contract, or of the project."""
        info = self.contract.info if self.contract is not None else None
        return str((info or {}).get("name", self.names.project))

    @property
    def requirement(self) -> str:
        """The requirement on mcp-bindgen, with extras and the bounds of docs/versioning.md."""
        needs = {
            "app": self.style is Style.APP or self.contract is not None,
            "auth": self.auth,
            "http": self.http and not self.auth,
        }
        extras = [name for name, needed in needs.items() if needed]  # auth brings http with it
        wanted = f"[{','.join(extras)}]" if extras else ""
        major, minor = map(int, version("mcp-bindgen").split(".")[:2])
        return f"mcp-bindgen{wanted}>={major}.{minor},<{f'0.{minor + 1}' if major == 0 else major + 1}"


def default_revision(store: Store) -> str:
    """Return the newest released revision of ours with a handshake, which all clients know."""
    ours = [pin for pin in store.pins.values() if not store.is_users(pin.name)]
    pins = [pin.name for pin in ours if pin.era == "stateful" and pin.status == "released"]
    return pins[-1] if pins else list(store.pins)[-1]


def transports_of(words: Sequence[str]) -> tuple[str, ...]:
    """Return the transports that `words` name; raise `BadInput` if one does not exist."""
    for word in words:
        if word not in TRANSPORTS:
            raise BadInput(f"there is no transport {word!r}", fix=f"known: {', '.join(TRANSPORTS)}")
    return tuple(name for name in TRANSPORTS if name in words)


def plan(
    names: Names,
    kind: Kind,
    revisions: Sequence[str] = (),
    wanted: tuple[str, ...] | None = None,
    transports: Sequence[str] = ("stdio",),
    contract: ProjectContract | None = None,
    auth: bool = False,
    store: Store | None = None,
    style: Style | None = None,
) -> Plan:
    """Plan a project.

    Args:
        names: Its names.
        kind: Whether it is a server or a client.
        revisions: The revisions to write it in; by default the revision that all clients know. A server is written in
            the newest of several and speaks only these; a client is written in the newest and talks to servers of all;
            a server with a contract is written in each of them.
        wanted: The capabilities that it shall offer, and the extensions that it shall speak. With an extension and no
            revision it is written in the newest that has it.
        transports: How messages shall travel.
        contract: The contract of the server.
        auth: Whether a server shall want tokens over HTTP.
        store: The `schema/` folder.
        style: Whether a server shall be an `App` or a class; by default an `App`, unless an option needs a class.

    Raises:
        BadInput: A revision, capability or transport does not exist, the contract comes with capabilities, a revision
            does not allow the contract, nothing checks its scopes, or an option needs another style.
    """
    store = store or Store()
    if contract is not None and kind == "server" and wanted is not None:
        raise BadInput("--with and --contract both say what the server offers", fix="leave --with out")
    asked = find_wanted(store, wanted, revisions)
    known = sorted({store.pin(name).name for name in asked.revisions or [default_revision(store)]}, key=order)
    users = [revision for revision in known if store.is_users(revision)]
    if contract is not None and users:
        raise refused_contract(users[0], "leave --contract out")
    each = kind == "server" and contract is not None
    newest = [name for name in known if name not in users][-1:]  # of mcp-bindgen: its messages can be converted
    written = known if each else [name for name in known if name in (*users, *newest)]
    protocols = [lower(build(store.effective(name))) for name in written]
    offered = DEFAULTS[kind] if asked.features is None else asked.features
    chosen = choose(protocols, kind, offered)
    names_chosen = [feature.name for features, _ in chosen.values() for feature in features]
    named = contract.option if contract is not None else None
    option = class_option(revisions, names_chosen, asked.extensions, named) if kind == "server" else None
    written_style = style_of(style, option) if kind == "server" else Style.CLASS
    if written_style is Style.APP and "completions" in names_chosen:
        chosen = choose(protocols, kind, (*offered, "prompts"))  # its example completes the argument of a prompt
    alone = each or len(written) == 1
    revision_plans = tuple(
        RevisionPlan(
            protocol,
            features,
            kind if alone else f"{kind}_{naming.package(revision).removeprefix('v')}",
            own_bindings(store, revision, names.package) if revision in users else None,
            tuple(name for name in asked.extensions if name in offered_extensions(store, [revision])),
        )
        for revision, (features, protocol) in chosen.items()
    )
    if contract is not None and kind == "server":
        contract.refuse_unservable(known)
    narrowed = tuple(known) if kind == "server" and len(known) > 1 else ()
    ways = transports_of(transports)
    if "sse" in ways and store.pin(known[0]).era == "stateless":
        raise BadInput(f"MCP {known[0]} has no HTTP+SSE", fix="give an older --revision, or --transport http")
    planned = Plan(names, kind, revision_plans, ways, contract, auth, narrowed, written_style, option)
    if auth and not planned.http:
        raise BadInput("--auth is for servers over HTTP", fix="add http to --transport")
    if kind == "server" and planned.http and not auth and contract is not None and contract.scopes:
        raise BadInput(
            "the contract states scopes, and nothing would check them over HTTP", file=contract.source, fix="add --auth"
        )
    return planned
