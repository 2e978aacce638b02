"""Emit `methods.py`: the table of methods."""

from __future__ import annotations

from mcp_bindgen.protocol import Protocol
from mcp_bindgen.protocol.model import Method

from .annotations import annotation
from .environment import render
from .stubs import answers, constant, params_annotation


def emit(protocol: Protocol, header: str) -> str:
    """Return the text of `methods.py`."""
    kinds = {"Request" if method.kind == "request" else "Notification" for method in protocol.methods}
    return render(
        "methods.py.jinja",
        header=header,
        protocol=protocol,
        words=[*sorted(kinds), "by_name"],
        annotation=annotation,
        constant=constant,
        generic=_generic,
        params_annotation=params_annotation,
    )


def _generic(method: Method) -> str:
    params = params_annotation(method) or "None"
    if method.result is None:
        return f"Notification[{params}]"
    more = f", {answers(method)}" if method.alternatives else ""
    return f"Request[{params}, {annotation(method.result)}{more}]"
