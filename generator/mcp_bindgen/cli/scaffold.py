"""`mcp-bindgen scaffold`: start a project of the user."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.ir import build
from mcp_bindgen.scaffold.contracts import contracts
from mcp_bindgen.scaffold.features import choose, features, offered_extensions
from mcp_bindgen.scaffold.layout import calls, layout, refuse_occupied, tree, write_new
from mcp_bindgen.scaffold.plan import (
    APP_FEATURES,
    DEFAULTS,
    Plan,
    ProjectContract,
    Style,
    class_option,
    default_revision,
    plan,
    style_of,
    transports_of,
)
from mcp_bindgen.scaffold.project import TRANSPORTS, Kind, names_of
from mcp_bindgen.spec import BadInput, Store

from .options import Commands, ContractFile, DryRun, Env, From, Out, SeveralRevisions, Transport, With, names, option
from .terminal import say, write

_EVERYTHING = "npx -y @modelcontextprotocol/server-everything"

scaffold = Commands("Start a project of your own.")


@dataclass(frozen=True)
class ProjectOptions:
    """Options of a project to start."""

    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the project; a terminal asks for it.")] = (
        None
    )
    revision: SeveralRevisions = None
    with_: With = None
    transport: Transport = None
    contract: ContractFile = None
    out: Out = None
    dry_run: DryRun = False


@scaffold.command()
def server(
    project: ProjectOptions,
    from_module: Annotated[str | None, option("from-module")] = None,
    style: Annotated[Style | None, option("style")] = None,
    auth: Annotated[bool, option("auth")] = False,
) -> None:
    """Start a server: a small project with an `App` of annotated functions, tests that pass, and a README.

    Examples:

    `mcp-bindgen scaffold server weather`

    `mcp-bindgen scaffold server weather --with tools,resources --transport stdio,http`

    `mcp-bindgen scaffold server weather --style class` makes one with a typed handler for each method.

    `mcp-bindgen scaffold server weather --with tools,tasks` makes such a class, whose tool can run as a task.

    `mcp-bindgen scaffold server weather --contract weather.yaml`

    `mcp-bindgen scaffold server weather --from-module tools` makes one that calls the functions of `tools.py`.

    `mcp-bindgen scaffold server weather --auth` makes one that is protected over HTTP.
    """
    if auth and project.transport is None:
        project = replace(project, transport="stdio,http")
    known = contracts().read(project.contract) if project.contract is not None else None
    if from_module is not None:
        known = contracts().of_module(from_module, known)
    if project.name is None:
        project, auth, style = interview("server", project, known, auth=auth, style=style)
    if known is not None:
        known.warn()
    _start("server", project, known, auth=auth, style=style)


@scaffold.command()
def client(project: ProjectOptions, from_: From = None, env: Env = None) -> None:
    """Start a client: a small project that connects to a server, with tests that pass, and a README.

    Examples:

    `mcp-bindgen scaffold client explorer --with sampling,roots`

    `mcp-bindgen scaffold client explorer --from 'npx -y @modelcontextprotocol/server-everything'`
    """
    if project.contract is not None and from_ is not None:
        raise BadInput("--contract and --from both name a contract", fix="leave one of them out")
    if project.name is None:
        project, _, _ = interview("client", project, None)
    known, example = contracts().read(project.contract) if project.contract is not None else None, None
    if from_ is not None:
        known, example = contracts().of_server(from_, env)
    _start("client", project, known, server=_EVERYTHING if example is None or env else example)


def _start(
    kind: Kind,
    project: ProjectOptions,
    known: ProjectContract | None,
    *,
    server: str = "",
    auth: bool = False,
    style: Style | None = None,
) -> None:
    """Plan a project, write it, and print the next steps."""
    name = project.name or ""
    planned = plan(
        names_of(name),
        kind,
        project.revision or (),
        names(project.with_, "--with") if project.with_ is not None else None,
        names(project.transport, "--transport") if project.transport is not None else ("stdio",),
        known,
        auth=auth,
        style=style,
    )
    folder = (project.out or Path()) / name
    refuse_occupied(folder)
    files = layout(planned)
    if not project.dry_run:
        write_new(folder, files)
    for line in tree(str(folder), files):
        say(line)
    if not project.dry_run:
        if style is None and known is None and planned.class_option is not None:
            say("")
            say(f"{planned.class_option} needs a class, so the server is one, as with --style class.")
        write(_next(planned, folder, server) + "\n")


def _next(planned: Plan, folder: Path, server: str) -> str:
    """Return the next commands; `server` is an example of a server for clients."""
    source, package = shlex.quote(str(folder / "src")), planned.names.package
    if planned.kind == "server":
        arguments = next(iter(calls(planned)), "--list")
        first = ["Call it:", f"    mcp-bindgen call 'python -m {package}' {arguments} --env PYTHONPATH={source}"]
    else:
        first = ["Connect it to a server:", f"    PYTHONPATH={source} python -m {package} {shlex.quote(server)}"]
    return "\n".join(
        [
            "",
            *first,
            "Next:",
            f"    cd {shlex.quote(str(folder))}",
            "    python -m pip install --editable '.[dev]'",
            "    python -m pytest",
        ]
    )


T = TypeVar("T")


def interview(
    kind: Kind,
    project: ProjectOptions,
    contract: ProjectContract | None,
    *,
    auth: bool = False,
    style: Style | None = None,
) -> tuple[ProjectOptions, bool, Style | None]:
    """Ask for missing options: name, style, revisions, capabilities, transports, and tokens over HTTP.

    An `App` speaks every revision, so it is asked for none.

    Raises:
        BadInput: Stdin or stdout is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("the project needs a name", fix=f"as in: mcp-bindgen scaffold {kind} weather")
    store = Store()
    name = _ask("Name", "my-server" if kind == "server" else "my-client", lambda said: names_of(said).project)
    with_ = project.with_
    if kind == "server" and style is None and contract is None and not project.revision and with_ is None:
        style = _ask(f"Style ({', '.join(Style)})", Style.APP.value, _style)
    is_app = style is Style.APP
    revisions = project.revision
    if not revisions and not is_app:
        revisions = _ask(
            f"Revisions ({', '.join(store.pins)})",
            default_revision(store),
            lambda said: [store.pin(one).name for one in names(said, "an answer")],
        )
    if with_ is None and (kind == "client" or contract is None):
        typed_in = revisions or [default_revision(store)]
        protocols = [lower(build(store.effective(one))) for one in typed_in]
        more = offered_extensions(store, typed_in)
        known = (
            APP_FEATURES
            if is_app
            else sorted({*more, *(one for protocol in protocols for one in features(protocol, kind))})
        )

        def offered(answer: str) -> str:
            wanted = () if answer == "nothing" and kind == "client" else names(answer, "an answer")
            chosen = choose(protocols, kind, tuple(one for one in wanted if one not in more))
            if is_app:
                offers = [feature.name for found, _ in chosen.values() for feature in found]
                style_of(style, class_option(features=offers, extensions={*wanted} & {*more}))
            return ",".join(wanted)

        with_ = _ask(f"Offers ({', '.join(known)})", ",".join(DEFAULTS[kind]) or "nothing", offered) or None
    way = project.transport or _ask(
        f"Transports ({', '.join(TRANSPORTS)})", "stdio", lambda said: ",".join(transports_of(names(said, "an answer")))
    )
    if kind == "server" and set(transports_of(names(way, "--transport"))) - {"stdio"} and not auth:
        stated = contract.scopes if contract is not None else ()

        def protected(answer: str) -> bool:
            if answer.lower() not in ("yes", "y", "no", "n"):
                raise BadInput(f"{answer!r} is neither yes nor no")
            if stated and answer.lower() in ("no", "n"):
                raise BadInput(f"the contract states scopes, which only tokens have: {', '.join(stated)}")
            return answer.lower() in ("yes", "y")

        auth = _ask("Tokens of an authorization server over HTTP (yes, no)", "yes" if stated else "no", protected)
    return replace(project, name=name, revision=revisions, with_=with_, transport=way), auth, style


def _style(answer: str) -> Style:
    if answer not in [*Style]:
        raise BadInput(f"{answer!r} is no style", fix=f"known: {', '.join(Style)}")
    return Style(answer)


def _ask(question: str, default: str, read: Callable[[str], T]) -> T:
    """Ask until the answer is valid, and return its value."""
    while True:
        try:
            return read(str(typer.prompt(question, default=default)).strip())
        except BadInput as error:
            say(f"  {error}", err=True)
