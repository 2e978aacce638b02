"""Connections to many servers at once: configuration files, logins, routing of calls. Imports `auth` and `runtime`."""

from typing import TYPE_CHECKING

from mcp_bindgen.runtime.lazy import lazy_modules

if TYPE_CHECKING:
    from .configuration import BadConfig as BadConfig
    from .configuration import Entry as Entry
    from .host import Host as Host
    from .host import NotRouted as NotRouted
    from .host import Offer as Offer
    from .host import Status as Status
    from .stored_login import LoginNeeded as LoginNeeded

_MODULES = {
    "configuration": ["BadConfig", "Entry"],
    "host": ["Host", "NotRouted", "Offer", "Status"],
    "stored_login": ["LoginNeeded"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
