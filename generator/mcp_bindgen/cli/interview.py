"""Questions of `scaffold` on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import typer

from mcp_bindgen.emit.python.lowering import lower
from mcp_bindgen.protocol import build
from mcp_bindgen.scaffold.extended import offered as offered_extensions
from mcp_bindgen.scaffold.features import choose, features
from mcp_bindgen.scaffold.names import names_of
from mcp_bindgen.scaffold.plan import DEFAULTS, default_revision, scopes_of, transports_of
from mcp_bindgen.scaffold.project import TRANSPORTS, Kind
from mcp_bindgen.scaffold.style import APP_FEATURES, Style, class_option, style_of
from mcp_bindgen.spec import BadInput, Store

from .options import names
from .terminal import say

if TYPE_CHECKING:
    from mcp_bindgen.contract.model import Contract

T = TypeVar("T")


def interview(
    kind: Kind,
    revision: list[str] | None,
    with_: str | None,
    transport: str | None,
    contract: Contract | None,
    *,
    auth: bool = False,
    style: Style | None = None,
) -> tuple[str, list[str] | None, str | None, str, bool, Style | None]:
    """Ask for missing options: name, style, revisions, capabilities, transports, and tokens over HTTP.

    An `App` speaks every revision, so it is asked for none.

    Raises:
        BadInput: Stdin or stdout is not a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise BadInput("the project needs a name", fix=f"as in: mcp-bindgen scaffold {kind} weather")
    store = Store()
    name = _ask("Name", "my-server" if kind == "server" else "my-client", lambda said: names_of(said).project)
    if kind == "server" and style is None and contract is None and not revision and with_ is None:
        style = _ask(f"Style ({', '.join(Style)})", Style.APP.value, _style)
    is_app = style is Style.APP
    revisions = revision or (
        None
        if is_app
        else _ask(
            f"Revisions ({', '.join(store.pins)})",
            default_revision(store),
            lambda said: [store.pin(one).name for one in names(said, "an answer")],
        )
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

        def offered(said: str) -> str:
            wanted = () if said == "nothing" and kind == "client" else names(said, "an answer")
            chosen = choose(protocols, kind, tuple(one for one in wanted if one not in more))
            if is_app:
                offers = [feature.name for found, _ in chosen.values() for feature in found]
                style_of(style, class_option(features=offers, extensions={*wanted} & {*more}))
            return ",".join(wanted)

        with_ = _ask(f"Offers ({', '.join(known)})", ",".join(DEFAULTS[kind]) or "nothing", offered) or None
    way = transport or _ask(
        f"Transports ({', '.join(TRANSPORTS)})", "stdio", lambda said: ",".join(transports_of(names(said, "an answer")))
    )
    if kind == "server" and set(transports_of(names(way, "--transport"))) - {"stdio"} and not auth:
        stated = scopes_of(contract)

        def protected(said: str) -> bool:
            if said.lower() not in ("yes", "y", "no", "n"):
                raise BadInput(f"{said!r} is neither yes nor no")
            if stated and said.lower() in ("no", "n"):
                raise BadInput(f"the contract states scopes, which only tokens have: {', '.join(stated)}")
            return said.lower() in ("yes", "y")

        auth = _ask("Tokens of an authorization server over HTTP (yes, no)", "yes" if stated else "no", protected)
    return name, revisions, with_, way, auth, style


def _style(said: str) -> Style:
    if said not in [*Style]:
        raise BadInput(f"{said!r} is no style", fix=f"known: {', '.join(Style)}")
    return Style(said)


def _ask(question: str, default: str, read: Callable[[str], T]) -> T:
    """Ask until the answer is valid, and return its value."""
    while True:
        try:
            return read(str(typer.prompt(question, default=default)).strip())
        except BadInput as error:
            say(f"  {error}", err=True)
