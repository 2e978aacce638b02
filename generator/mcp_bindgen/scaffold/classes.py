"""Write the modules of a project's classes, one for each revision, and their tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from mcp_bindgen.emit.python.environment import docstring
from mcp_bindgen.emit.python.expressions import sample

from .handler_bodies import Handler, handlers
from .plan import Plan, RevisionPlan
from .rendering import module


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
        written = handlers(part, plan.kind)
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
            "info": sample(part.protocol, "Implementation", info, part.prefix),
        }
        text = module(f"project/{plan.kind}.py.jinja", **about, **values)
        test = module(f"project/tests/test_{plan.kind}.py.jinja", **tested(part), **values)
        found |= {f"src/{plan.names.package}/{part.module}.py": text, f"tests/test_{part.module}.py": test}
    return found
