"""State in requests of the stateful era what those of the stateless one say of their sender."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from mcp_bindgen.runtime.era.stateless import ROUND
from mcp_bindgen.runtime.protocol import jsonrpc
from mcp_bindgen.runtime.protocol.request_scope import Negotiated
from mcp_bindgen.runtime.protocol.revision import Revision
from mcp_bindgen.runtime.session.handlers import Handle

from .context import implementation


def stated(work: Handle, revision: Revision, method: Any) -> Handle:
    """Return a handler of the stateless era as one for requests of the other one.

    What a request says of its sender is what the connection knows. What belongs to a round of a request cannot come
    over such a connection: it would be taken for what this server has sealed.

    Args:
        work: The handler.
        revision: Its revision.
        method: Its method.
    """
    kind = method.params.model_fields["meta"].annotation
    known: WeakKeyDictionary[Negotiated, tuple[str | None, Any]] = WeakKeyDictionary()

    async def stated(params: Any, ctx: Any) -> Any:
        for name in ROUND:
            if getattr(params, name, None) is not None:
                setattr(params, name, None)
        agreed = ctx.negotiated
        level, said = known.get(agreed, (None, None))
        if params.meta is not None:
            said = _fitting(kind, meta(revision, agreed, jsonrpc.plain(params.meta)))
        elif said is None or level != agreed.log_level:
            said = _fitting(kind, meta(revision, agreed, {}))
            known[agreed] = agreed.log_level, said
        vars(params)["meta"] = said  # without pydantic's detour
        params.model_fields_set.add("meta")
        return await work(params, ctx)

    return stated


def meta(revision: Revision, agreed: Negotiated, said: dict[str, Any]) -> dict[str, Any]:
    """Return the `_meta` of a stateless request: what is said in one of the other era, and by its connection.

    Args:
        revision: The stateless revision.
        agreed: What the connection knows.
        said: The `_meta` of the request.
    """
    capabilities = revision.types.ClientCapabilities
    declared = agreed.declared["client"].items()
    client = agreed.peer_info and implementation(revision, jsonrpc.plain(agreed.peer_info))
    told = {
        "protocol_version": revision.name,
        "client_info": client and jsonrpc.plain(client),
        "client_capabilities": {name: value for name, value in declared if _fits(capabilities, {name: value})},
        "log_level": agreed.log_level,
    }
    keys = revision.meta_keys
    own = {name: value for name, value in said.items() if name not in keys.values()}
    return own | {keys[name]: value for name, value in told.items() if name in keys and value is not None}


def _fitting(kind: Any, wire: dict[str, Any]) -> Any:
    """Return a `_meta` without the members that another revision has another use for."""
    try:
        return kind.model_validate(wire)
    except ValidationError as error:
        odd = {one["loc"][0] for one in error.errors()}
        return kind.model_validate({name: value for name, value in wire.items() if name not in odd})


def _fits(kind: Any, wire: dict[str, Any]) -> bool:
    try:
        kind.model_validate(wire)
    except ValueError:
        return False
    return True
