"""Link each request to its results."""

from __future__ import annotations

from dataclasses import replace

from mcp_bindgen.spec.toml import quoted

from ..model import Definition, Method, Object, Ref, Type, flattened
from .build_state import BuildState
from .collect_methods import method_of

_EMPTY = "EmptyResult"


def link_results(state: BuildState) -> BuildState:
    """Fill in the results: from `XResultResponse`, else by the name rule `XRequest` -> `XResult`, else from semantics.

    Raises:
        BadInput: In strict mode: a request has no known result; the error states the fix.
    """
    methods = {name: _linked(method, state) for name, method in state.methods.items()}
    definitions = state.definitions
    if any(Ref(_EMPTY) == method.result for method in methods.values()) and _EMPTY not in definitions:
        definitions = dict(sorted({**definitions, _EMPTY: Definition(_EMPTY, Object(()), inline=True)}.items()))
    return replace(state, methods=methods, definitions=definitions)


def _linked(method: Method, state: BuildState) -> Method:
    if method.kind != "request":
        return method
    stem = method.definition.removesuffix("Request")
    facts = state.facts_about(method)
    known = state.definitions if method.origin else state.of_core()
    stated = facts["results"].get(method.name)
    named = stated or f"{stem}Result"
    answers = _response(known.get(f"{stem}ResultResponse"))
    if not answers and named in known:
        answers = [Ref(named)]
    if not answers:
        answers = [Ref(_assumed(method, stem, named, state))]
    primary = Ref(named) if Ref(named) in answers else answers[-1]
    others = [answer for answer in answers if answer != primary]
    others += [Ref(name) for name in facts["alternatives"].get(method.name, ()) if name in known]
    return replace(method, result=primary, alternatives=tuple(others))


def _response(definition: Definition | None) -> list[Type]:
    field = definition.type.field("result") if definition and isinstance(definition.type, Object) else None
    return flattened([field.type]) if field is not None else []


def _assumed(method: Method, stem: str, named: str, state: BuildState) -> str:
    """Return the definition that answers a request of which nothing says so.

    It may be named after the request without a second `Result`, after another message of the same method or after the
    params; else it is empty.
    """
    stems = [name for name, other in state.definitions.items() if method_of(other) == method.name]
    stems += [method.params.name.removesuffix("Params")] if isinstance(method.params, Ref) else []
    results = [stem, *(f"{name.removesuffix('Request')}Result" for name in stems)]
    known = [name for name in results if name in state.definitions and name.endswith("Result")]
    empty = next((name for name in (_EMPTY, "Result") if name in state.definitions), _EMPTY)
    found = next(iter(known), empty)
    fact = f"write results.{quoted(method.name)} = {quoted(found)} in a file for --semantics"
    words = {"found": found, "empty": "" if known else ", an empty result"}
    words["fact"] = f", or {fact}" if found in state.definitions else ""
    state.context.report("result-assumed", f"/$defs/{method.definition}", method=method.name, named=named, **words)
    return found
