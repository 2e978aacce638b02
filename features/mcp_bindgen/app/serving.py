"""Run an `App`, a module of functions or servers from the command line: `run(app)`, `run(tools)`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from types import ModuleType

from mcp_bindgen.runtime import serving
from mcp_bindgen.runtime.protocol.access import AccessPolicy
from mcp_bindgen.runtime.session.server import Server

from .app import App


def run(
    *served: Server | serving.Served | ModuleType,
    auth: AccessPolicy | Callable[[], AccessPolicy] | None = None,
    revisions: Sequence[str] | None = None,
    allowed_hosts: Collection[str] | None = None,
    allowed_origins: Collection[str] | None = None,
    log_format: str | None = None,
) -> None:
    """Serve an `App`, a module or servers, as `mcp_bindgen.runtime.run` does; see there for arguments and options.

    Args:
        served: An `App`, a module, an object of a contract's class, or servers, at most one for each revision. A module
            stands for the `App` in it; without one, each public function of the module is a tool.
        auth: Access policy of requests over HTTP, or a function that makes it.
        revisions: The revisions to serve.
        allowed_hosts: Values of `Host` that requests over HTTP may have.
        allowed_origins: Origins of web pages that may send requests.
        log_format: `text` or `json`.

    Raises:
        BadFunction: A function of a module cannot be a tool.
        ValueError: There is nothing to serve, or two servers for a revision.
    """
    serving.run(
        *(_app_of(one) if isinstance(one, ModuleType) else one for one in served),
        auth=auth,
        revisions=revisions,
        allowed_hosts=allowed_hosts,
        allowed_origins=allowed_origins,
        log_format=log_format,
    )


def _app_of(module: ModuleType) -> App:
    found = (value for value in vars(module).values() if isinstance(value, App))
    return next(found, None) or App.of_module(module)
