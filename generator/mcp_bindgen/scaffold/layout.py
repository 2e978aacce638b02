"""Lay out all files of a new project as text, put them in place, and show them as a tree."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.environment import quoted
from mcp_bindgen.emit.python.imports import use
from mcp_bindgen.emit.python.installation import NAMESPACE
from mcp_bindgen.spec import BadInput, Store
from mcp_bindgen.spec.json import is_object
from mcp_bindgen.spec.revisions import has_reached
from mcp_bindgen.spec.transaction import Change, put

from .classes import client_project, first_calls, server_files, shown, start, typed
from .plan import Plan, Style
from .project import Project
from .rendering import module, render

_DISTRIBUTION = "mcp-bindgen"
_TRANSPORTS = {"stdio": "stdio", "http": "Streamable HTTP", "sse": "HTTP+SSE"}


def project_of(plan: Plan, folder: Path) -> Project:
    """Return the project as `pyproject.toml` describes it in `folder`."""
    contract = folder / plan.file if plan.file is not None else None
    return Project(folder, plan.kind, plan.names.package, plan.revisions, contract, plan.transports)


def layout(plan: Plan) -> dict[str, str]:
    """Return path -> text for all files of a project, generated files included."""
    values, project = _values(plan), project_of(plan, Path())
    source = f"src/{plan.names.package}"
    files = {
        "pyproject.toml": project.written(render("project/pyproject.toml.jinja", **values)),
        ".gitignore": render("project/gitignore.jinja", **values),
        f"{source}/__init__.py": f'"""{values["summary"]}"""\n',
        f"{source}/py.typed": "",
        "tests/conftest.py": module("project/tests/conftest.py.jinja", **values),
    }
    for revision_plan in plan.revision_plans:
        files |= revision_plan.own.files if revision_plan.own is not None else {}
    more = _server(plan, values) if plan.kind == "server" else _client(plan, values)
    if plan.file is not None and plan.contract is not None:
        generated = plan.contract.generated_files(project)
        more |= {(project.generated / name).as_posix(): text for name, text in generated.items()}
        more[plan.file] = plan.contract.text
    return dict(sorted({**files, **more}.items()))


def calls(plan: Plan) -> list[str]:
    """Return arguments of `mcp-bindgen call` that show first answers."""
    return first_calls(plan) if plan.contract is None else plan.contract.calls()


def _values(plan: Plan) -> dict[str, object]:
    """Return the values that the templates use."""
    served = plan.narrowed or plan.revisions
    needed = plan.contract.requirement if plan.contract is not None else None
    owned = {revision_plan.package for revision_plan in plan.revision_plans if revision_plan.own is not None}
    return {
        "names": plan.names,
        "summary": f"An MCP {plan.kind}.",
        "requirements": [plan.requirement, *([needed] if needed else [])],
        "source": shlex.quote(source) if (source := _installed_from()) else None,
        "revisions": [f"MCP {revision}" for revision in served],
        "narrowed": f", revisions={list(plan.narrowed)}".replace("'", '"') if plan.narrowed else "",
        "is_app": plan.style is Style.APP,
        "is_open": plan.kind == "server" and not plan.narrowed,
        "transports": [_TRANSPORTS[name] for name in plan.transports],
        "stdio": "stdio" in plan.transports,
        "http": plan.http,
        "auth": plan.auth,
        "scopes": plan.contract.scopes if plan.contract is not None else (),
        "contract": plan.file,
        "packages": [
            use(plan.names.package if name in owned else NAMESPACE, name) for name in map(naming.package, served)
        ],
        "owned": [revision_plan.own for revision_plan in plan.revision_plans if revision_plan.own is not None],
        "path": plan.path,
        "sse": "sse" in plan.transports
        or not has_reached(served[0], Store().semantics["transports"]["streamable-http"]),
        "introduced": quoted(plan.introduced),
        **start(plan),
    }


def _server(plan: Plan, values: dict[str, object]) -> dict[str, str]:
    """Return the files that only servers have."""
    source = f"src/{plan.names.package}"
    files = {
        "Dockerfile": render("project/Dockerfile.jinja", **values),
        ".dockerignore": render("project/dockerignore.jinja", **values),
        "README.md": render("project/README.server.md.jinja", calls=calls(plan), **values),
        f"{source}/__main__.py": module("project/main.py.jinja", **values),
    }
    if plan.http:
        files[f"{source}/app.py"] = module("project/app.py.jinja", **values)
        test = "protection" if plan.auth else "app"
        files[f"tests/test_{test}.py"] = module(f"project/tests/test_{test}.py.jinja", **values)
    if plan.auth:
        files[f"{source}/protection.py"] = module("project/protection.py.jinja", **values)
    return files | (server_files(plan) if plan.contract is None else plan.contract.server_files(plan))


def _client(plan: Plan, values: dict[str, object]) -> dict[str, str]:
    """Return the files that only clients have."""
    main = module("project/main_client.py.jinja", shown=shown(plan), **values)
    readme = render("project/README.client.md.jinja", typed=typed(plan), **values)
    return {"README.md": readme, f"src/{plan.names.package}/__main__.py": main, **client_project(plan)}


def _installed_from() -> str | None:
    """Return the requirement that names the origin of this installation; `None` if it is a package index.

    PyPA, "Recording the Direct URL Origin of installed distributions" (PEP 610).
    """
    text = distribution(_DISTRIBUTION).read_text("direct_url.json")
    found: Any = json.loads(text) if text else None
    if not is_object(found) or not isinstance(url := found.get("url"), str):
        return None
    vcs = found.get("vcs_info")
    if is_object(vcs):
        url = f"{vcs.get('vcs', 'git')}+{url}@{vcs.get('commit_id', 'HEAD')}"
    elif isinstance(folder := found.get("subdirectory"), str):
        url = f"{url}#subdirectory={folder}"
    return f"{_DISTRIBUTION} @ {url}"


# --- files ------------------------------------------------------------------------------------------------------------


def write_new(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files of a new project: all of them or none; raise `BadInput` if the folder is occupied."""
    refuse_occupied(folder)
    put(folder, {name: Change(None, text.encode()) for name, text in files.items()})


def refuse_occupied(folder: Path) -> None:
    """Raise `BadInput` if a folder has no room for a new project."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise BadInput("is no folder", file=folder, fix="choose another name, or another --out")
    if folder.is_dir() and any(folder.iterdir()):
        raise BadInput("is not empty", file=folder, fix="choose another name, or another --out")


def tree(root: str, paths: Iterable[str]) -> Iterator[str]:
    """Return `paths` below `root` as a tree, line by line."""
    yield f"{root}/"
    yield from _branches([tuple(path.split("/")) for path in paths], "")


def _branches(paths: list[tuple[str, ...]], margin: str) -> Iterator[str]:
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *rest in paths:
        below.setdefault(first, []).extend([tuple(rest)] if rest else [])
    names = sorted(below, key=lambda name: (not below[name], name))
    for name in names:
        last = name == names[-1]
        yield f"{margin}{'└── ' if last else '├── '}{name}{'/' if below[name] else ''}"
        yield from _branches(below[name], margin + ("    " if last else "│   "))
