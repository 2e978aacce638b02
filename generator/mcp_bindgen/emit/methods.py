"""Prepare the table of methods for the template of `methods.py`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial

from mcp_bindgen.protocol.calls import classes, walk
from mcp_bindgen.protocol.model import Method, Ref, Type

from .part import Part
from .stubs import constant, params_annotation


def values(part: Part) -> dict[str, object]:
    """Return what the template shows."""
    words = {"Request" if method.kind == "request" else "Notification" for method in part.methods}
    words |= {"Need" for method in part.methods if method.needs}
    words |= {"Filter" for method in part.methods if method.filter is not None}
    words |= {"Truncation" for method in part.methods if method.truncation is not None}
    words |= {"HeaderParams" for method in part.methods if method.header_params is not None}
    reopened = list(_reopened(part)) if part.origin else []
    words |= {"Request" for _ in reopened}
    return {
        "words": ["Json", *sorted(words), "by_name", "with_alternatives"],
        "methods": part.methods,
        "reopened": reopened,
        "annotation": part.annotation,
        "constant": constant,
        "fields": asdict,
        "generic": partial(_generic, part),
        "params_annotation": partial(params_annotation, part),
        "path": _path,
        "walk": partial(walk, part.protocol),
    }


def _path(capability: str) -> str:
    return repr(tuple(capability.split(".")))


def _generic(part: Part, method: Method) -> str:
    params = params_annotation(part, method) or "None"
    if method.result is None:
        return f"Notification[{params}]"
    known = [part.annotation(type) for type in (method.result, *method.alternatives)]
    more = f", {' | '.join(known)}" if method.alternatives else ""
    return f"Request[{params}, {known[0]}{more}]"


def _reopened(part: Part) -> Iterator[tuple[Method, tuple[Type, ...]]]:
    """Return the requests of the core that the extension may answer otherwise, and how."""
    alternatives = dict(part.extension.alternatives)
    for method in part.protocol.methods:
        if method.name in alternatives:
            found = (name for answer in alternatives[method.name] for name in classes(part.protocol, Ref(answer)))
            yield method, tuple(map(Ref, dict.fromkeys(found)))
