"""Say what answers each request."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.spec import BadInput

from ..model import Method, Object, Ref, Type, Union
from .draft import Draft


def link_results(draft: Draft) -> Draft:
    """Fill in the results: from `XResultResponse`, else by the name rule `XRequest` -> `XResult`, else from semantics.

    Raises:
        BadInput: Nothing says what answers a request; the error says what to add.
    """
    return replace(draft, methods={name: _linked(method, draft) for name, method in draft.methods.items()})


def _linked(method: Method, draft: Draft) -> Method:
    if method.kind != "request":
        return method
    stem = method.definition.removesuffix("Request")
    stated = draft.semantics["results"].get(method.name)
    named = stated or f"{stem}Result"
    answers = _response(f"{stem}ResultResponse", draft)
    if not answers and named in draft.definitions:
        answers = [Ref(named)]
    if not answers:
        raise BadInput(
            f"nothing says what answers {method.name!r}: there is no {stem}Result",
            pointer=f"/$defs/{method.definition}",
            fix=f'add "{method.name}" = "NAME" under [results] in semantics.toml, NAME being its result\'s definition',
        )
    primary = Ref(named) if Ref(named) in answers else answers[-1]
    others = [answer for answer in answers if answer != primary]
    others += [Ref(name) for name in draft.semantics["alternatives"].get(method.name, ()) if name in draft.definitions]
    return replace(method, result=primary, alternatives=tuple(others))


def _response(name: str, draft: Draft) -> list[Type]:
    definition = draft.definitions.get(name)
    field = definition.type.field("result") if definition and isinstance(definition.type, Object) else None
    if field is None:
        return []
    return list(field.type.members) if isinstance(field.type, Union) else [field.type]
