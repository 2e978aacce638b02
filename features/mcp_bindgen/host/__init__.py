"""Connections to many servers at once: configuration files, logins, routing of calls. Imports `auth` and `runtime`."""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .host import BadConfig as BadConfig
    from .host import Host as Host
    from .host import NotRouted as NotRouted
    from .host import Offer as Offer

_MODULES = {
    "host": ["BadConfig", "Host", "NotRouted", "Offer"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
