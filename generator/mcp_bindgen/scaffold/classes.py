"""Write the modules of a project's classes, one for each revision, and their tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mcp_bindgen.emit.python.environment import docstring
from mcp_bindgen.emit.python.expressions import sample

from .handler_bodies import PREFIX, Handler, handlers
from .plan import Plan, RevisionPlan
from .rendering import module, render


def class_files(
    plan: Plan, doc: Callable[[Sequence[Handler]], str], tested: Callable[[RevisionPlan], Mapping[str, object]]
) -> dict[str, str]:
    """Return name -> text of the modules with a class, and of their tests.

    Args:
        plan: The project.
        doc: Function from the handlers of a class to its docstring.
        tested: Function from a revision to further values for the template of the tests.
    """
    found: dict[str, str] = {}
    for part in plan.revision_plans:
        written = handlers(part.protocol, plan.kind, part.features, part.extensions)
        values = {
            "names": plan.names,
            "handlers": written,
            "bindings": part.bindings,
            "bases": part.bases(plan.kind),
            "extensions": part.extensions,
            "own": part.own,
            "module": part.module,
        }
        info = {"name": plan.names.project, "version": "0.1.0"}
        about = {
            "doc": docstring(doc(written)),
            "info": sample(part.protocol, "Implementation", info, PREFIX),
        }
        text = render(f"project/{plan.kind}.py.jinja", **about, **values)
        test = render(f"project/tests/test_{plan.kind}.py.jinja", **tested(part), **values)
        found[f"src/{plan.names.package}/{part.module}.py"] = module(text)
        found[f"tests/test_{part.module}.py"] = module(test)
    return found
