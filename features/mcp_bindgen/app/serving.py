"""The servers of an `App` or a contract for one endpoint, their changes, and connections in this process."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any

from mcp_bindgen.runtime.bindings import installed_revisions
from mcp_bindgen.runtime.concurrency import background_tasks
from mcp_bindgen.runtime.model.base import wire_fields
from mcp_bindgen.runtime.protocol.revision import KnownRevision, facts_of
from mcp_bindgen.runtime.protocol.transport import Transport
from mcp_bindgen.runtime.session.endpoint import serve
from mcp_bindgen.runtime.session.server import Server

from .catalog import KINDS, SCOPES
from .context import Context
from .features import Feature, Lifespan, Settings, Tools
from .handlers import BoundContract

if TYPE_CHECKING:
    from mcp_bindgen.extensions.tasks.service import Tasks
    from mcp_bindgen.runtime.protocol.request_scope import Link
    from mcp_bindgen.runtime.session.targets import Address, Auth, Served, WebRoute

    from .changes import ChangeNotifier


class InProcess:
    """Provider of servers that is also a target of clients: `Client.connect(app)`, `Host({"notes": app}, Client)`.

    Each connection has servers and a lifespan of its own.
    """

    @abstractmethod
    def served(self) -> Served:
        """Return servers for one endpoint."""

    def address(self, headers: Mapping[str, str], stderr: int | IO[Any] | None, auth: Auth | None) -> Address:
        """Return the address of servers in this process; raise `ValueError` for headers or `auth`, which need a URL."""
        if headers or auth is not None:
            raise ValueError("headers and auth are for URLs; a server of this process has no HTTP requests")
        from mcp_bindgen.runtime.session.targets import Address

        return Address(self._connection)

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Transport]:
        from mcp_bindgen.runtime.transports.memory import pair  # few processes have both sides

        served = self.served()
        ours, theirs = pair()
        async with served.lifespan(), background_tasks() as tasks:
            tasks.start_soon(serve, theirs, served)
            yield ours


class ContractServers:
    """The servers of a contract for one endpoint.

    If tools are tasks, there is none for revisions with tasks in their core: the server of the revision with the
    extension serves these, and runs the same tasks for both.

    Args:
        contract: The contract and its handlers.
        settings: The settings of the servers.
        running: Starts and stops the resources that the servers share.
        name: The name of the servers' classes.
        doc: The description of the servers in `--help`.

    Attributes:
        made: Revision -> server, of the servers that were needed so far.
        states: App -> the value of its lifespan.
        own_tasks: The service that runs tools as tasks; `None` if no tool is a task.
        features: The features of the contract.
        routes: HTTP routes beside the endpoint.
    """

    routes: Sequence[WebRoute] = ()

    def __init__(
        self, contract: BoundContract, settings: Settings, running: Lifespan, name: str, doc: str | None
    ) -> None:
        document = contract.catalog.document
        self.made: dict[str, Feature] = {}
        self.states: dict[Any, Any] = {}
        self.features: tuple[type[Feature], ...] = features_of(contract)
        self._contract, self._settings, self._running = contract, settings, running
        self._name, self._doc = name, doc
        self._info = settings.info or document.get("serverInfo") or {"name": name, "version": "0"}
        self._instructions = document.get("instructions") if settings.instructions is None else settings.instructions
        given = settings.revisions
        known = installed_revisions().values() if given is None else [facts_of(one.REVISION) for one in given]
        self._known = {one.name: one for one in sorted(known, key=lambda one: one.rank)}
        self._notifier: ChangeNotifier | None = None
        self._packages = [one.package for one in self._known.values()]
        self._extended: dict[str, type[Server]] = {}  # with tasks
        self.own_tasks: Tasks | None = settings.tasks
        if self.own_tasks is not None or any(handler.task for handler in contract.handlers["tool"].values()):
            self._add_tasks()

    def _add_tasks(self) -> None:
        from mcp_bindgen.extensions.tasks.service import Tasks  # few contracts have tasks
        from mcp_bindgen.extensions.tasks.tools import has_tasks, with_tasks

        self.own_tasks = self.own_tasks or Tasks()
        bases = {name: with_tasks(one.bindings) for name, one in self._known.items()}
        self._extended = {name: base for name, base in bases.items() if base is not self._known[name].bindings.Server}
        if self._extended:
            self._known = {name: one for name, one in self._known.items() if not has_tasks(one.bindings)}

    @property
    def has_tasks(self) -> bool:
        """True if tools can run as tasks."""
        return bool(self._extended)

    @property
    def states_scopes(self) -> bool:
        """True if an entry needed scopes when the servers were first served."""
        return any(one.required_scopes is not Server.required_scopes for one in self.features)

    @property
    def announces(self) -> Collection[str]:
        """The notifications about changes that the servers may send: also of lists that depend on their callers."""
        depends = self.states_scopes and self._settings.hide_forbidden is not False
        known = (one.changed for one in KINDS.values() if one.member in self._contract.catalog.document)
        return {*self._contract.announces, *(known if depends else ())}

    def announce(self, method: str, uri: str | None = None, link: Link | None = None) -> None:
        """Send a notification of a change soon, to one client or to all; while no client is served, do nothing."""
        if self._notifier is not None:
            self._notifier.add(method, uri, link)

    def served(self) -> Served:
        """Return this object."""
        return self

    def revisions(self) -> Sequence[KnownRevision]:
        """Return the revisions that are served, the best last."""
        return [*self._known.values()]

    def server(self, revision: str) -> Feature:
        """Return the server of a revision, which is made when it is first needed."""
        if revision not in self.made:
            package = self._known[revision].bindings
            base = self._extended.get(revision, package.Server)
            server: Feature = _server_class(self._name, self._doc, package, base, self.features)()
            server.contract, server.package, server.packages = self._contract, package, self._packages
            server.states = self.states
            server.info = package.types.Implementation.model_validate(self._info_in(package))
            server.instructions, server.announces = self._instructions, self.announces
            server.announce, server.settings = self.announce, self._settings
            server.has_tasks_elsewhere = self.has_tasks and revision not in self._extended
            server.own_tasks = self.own_tasks
            self.made[revision] = server
        return self.made[revision]

    def _info_in(self, package: ModuleType) -> dict[str, Any]:
        """Return the introduction of a revision's server, without the members that only a later revision has."""
        later = self._info.keys() - wire_fields(package.types.Implementation)
        if later:
            newest = max(installed_revisions().values(), key=lambda one: one.rank).bindings
            later &= wire_fields(newest.types.Implementation).keys()
        return {name: value for name, value in self._info.items() if name not in later}

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None]:
        """Run the shared resources, and the tasks of earlier processes, for which servers are made at once."""
        async with AsyncExitStack() as stack:
            if self.announces:
                from .changes import ChangeNotifier  # few contracts change

                self._notifier = ChangeNotifier(self.made)
                await stack.enter_async_context(self._notifier.running())
            await stack.enter_async_context(self._running())
            for revision in self._extended:
                await stack.enter_async_context(self.server(revision).extension_lifespan())
            yield


_PLAIN = frozenset({"serverInfo", "instructions", "tools"})
"""The members of a contract that has tools alone."""


def features_of(contract: BoundContract) -> tuple[type[Feature], ...]:
    """Return the features of a contract, in the order of the bases of a server's class.

    A list in the document counts even if it is empty. Completion needs values of an `enum`, or a method that completes.
    """
    document = contract.catalog.document
    tools = document.get("tools", ())
    own = (Tools,) if "tools" in document else ()
    is_plain = document.keys() <= _PLAIN and not contract.has_conditions
    if is_plain and not any(SCOPES in tool or "_meta" in tool for tool in tools):
        return own
    from .optional_features import optional_features  # few contracts have them

    return (*own, *optional_features(contract))


@cache
def _server_class(
    name: str, doc: str | None, package: ModuleType, base: type[Server], features: tuple[type[Feature], ...]
) -> type[Any]:
    """Return the class of a server, whose capabilities follow from the features among its bases.

    It is made at run time, because only then are the bindings of the revision and the entries of the contract known.
    """
    found: dict[type[Feature], Any] = {}
    if any(feature.extension for feature in features):
        from mcp_bindgen.extension_abi import extension_of  # few contracts use extensions

        found = {feature: extension_of(package, feature.extension) for feature in features if feature.extension}
    own = [feature for feature in features if found.get(feature, package) is not None]
    extended = [extension.Server for extension in found.values() if extension is not None]
    kind: type[Any] = type(name, (*own, Feature, *extended, base), {"__doc__": doc})
    kind.context = type("Context", (Context, kind.context), {"__doc__": Context.__doc__})
    return kind
