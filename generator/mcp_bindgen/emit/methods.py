"""Prepare the table of methods for the template of `methods.py`."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial

from mcp_bindgen.protocol import Protocol
from mcp_bindgen.protocol.calls import walk
from mcp_bindgen.protocol.model import Method

from .annotations import annotation
from .stubs import answers, constant, params_annotation


def values(protocol: Protocol) -> dict[str, object]:
    """Return what the template shows."""
    words = {"Request" if method.kind == "request" else "Notification" for method in protocol.methods}
    words |= {"Need" for method in protocol.methods if method.needs}
    words |= {"Filter" for method in protocol.methods if method.filter is not None}
    words |= {"Truncation" for method in protocol.methods if method.truncation is not None}
    words |= {"HeaderParams" for method in protocol.methods if method.header_params is not None}
    return {
        "words": ["Json", *sorted(words), "by_name"],
        "annotation": annotation,
        "constant": constant,
        "fields": asdict,
        "generic": _generic,
        "params_annotation": params_annotation,
        "path": lambda capability: repr(tuple(capability.split("."))),
        "walk": partial(walk, protocol),
    }


def _generic(method: Method) -> str:
    params = params_annotation(method) or "None"
    if method.result is None:
        return f"Notification[{params}]"
    more = f", {answers(method)}" if method.alternatives else ""
    return f"Request[{params}, {annotation(method.result)}{more}]"
