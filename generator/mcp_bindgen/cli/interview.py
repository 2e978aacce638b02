"""Ask somebody at a terminal what a new project shall be."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import typer

from mcp_bindgen.protocol import build
from mcp_bindgen.scaffold.features import choose, features
from mcp_bindgen.scaffold.names import names_of
from mcp_bindgen.scaffold.plan import DEFAULTS, default_revision, transports_of
from mcp_bindgen.scaffold.project import TRANSPORTS, Kind
from mcp_bindgen.spec import BadInput, Store

from .options import names

T = TypeVar("T")


def interview(
    kind: Kind, revision: list[str] | None, with_: str | None, transport: str | None, contract: object
) -> tuple[str, list[str], str | None, str]:
    """Ask for what was not said: name, revisions, capabilities, transports.

    Raises:
        BadInput: There is nobody to ask.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("the project needs a name", fix=f"as in: mcp-bindgen scaffold {kind} weather")
    store = Store()
    name = _ask("Name", "my-server" if kind == "server" else "my-client", lambda said: names_of(said).project)
    revisions = revision or _ask(
        f"Revisions ({', '.join(store.pins)})",
        default_revision(store),
        lambda said: [store.pin(one).name for one in names(said, "an answer")],
    )
    if with_ is None and (kind == "client" or contract is None):
        protocols = [build(store.effective(one)) for one in revisions]
        known = sorted({one for protocol in protocols for one in features(protocol, kind)})

        def offered(said: str) -> str:
            wanted = () if said == "nothing" and kind == "client" else names(said, "an answer")
            choose(protocols, kind, wanted)
            return ",".join(wanted)

        with_ = _ask(f"Offers ({', '.join(known)})", ",".join(DEFAULTS[kind]) or "nothing", offered) or None
    way = transport or _ask(
        f"Transports ({', '.join(TRANSPORTS)})", "stdio", lambda said: ",".join(transports_of(names(said, "an answer")))
    )
    return name, revisions, with_, way


def _ask(question: str, default: str, read: Callable[[str], T]) -> T:
    """Ask until the answer can be used, and return what was read of it."""
    while True:
        try:
            return read(str(typer.prompt(question, default=default)).strip())
        except BadInput as error:
            typer.echo(f"  {error}", err=True)
