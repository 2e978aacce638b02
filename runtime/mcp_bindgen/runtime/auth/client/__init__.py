"""The client's side of authorization: find out who issues tokens, get them, keep them, and send them.

`metadata`, `clients`, `registration`, `request` and `grants` say what is sent and what an answer means, and do no I/O.
`discovery`, `token_endpoint`, `login` and `authorizer` drive them; users name what is in `oauth`, `machines`, `bearer`.
"""

from typing import TYPE_CHECKING

from ...core.lazy import lazy_modules

if TYPE_CHECKING:
    from .bearer import Bearer as Bearer
    from .clients import ClientSecret as ClientSecret, KnownClient as KnownClient
    from .login import Browser as Browser, DeviceCode as DeviceCode, Headless as Headless, Manual as Manual
    from .machines import ClientCredentials as ClientCredentials, EnterpriseManaged as EnterpriseManaged
    from .machines import PrivateKeyJwt as PrivateKeyJwt, WorkloadIdentity as WorkloadIdentity
    from .oauth import OAuth as OAuth
    from .registration import client_metadata as client_metadata
    from .source import Departures as Departures

_MODULES = {
    "bearer": ["Bearer"],
    "clients": ["ClientSecret", "KnownClient"],
    "login": ["Browser", "DeviceCode", "Headless", "Manual"],
    "machines": ["ClientCredentials", "EnterpriseManaged", "PrivateKeyJwt", "WorkloadIdentity"],
    "oauth": ["OAuth"],
    "registration": ["client_metadata"],
    "source": ["Departures"],
}

__getattr__ = lazy_modules(__name__, _MODULES)
