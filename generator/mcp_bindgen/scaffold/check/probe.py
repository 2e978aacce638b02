"""Look at the classes of a project, in a Python of its own: what they miss of their contract, and what they mistype.

    python -P -m mcp_bindgen.scaffold.check.probe PACKAGE RESULT

imports the package from the path and writes a JSON array of findings: file, line and message.
"""

from __future__ import annotations

import difflib
import inspect
import json
import os
import pkgutil
import sys
import traceback
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from .covering import awaited, covers, spelled

GENERATED = "contract"
"""The generated package inside of a project's package."""

_MAIN = "__main__"


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        file: The file that it is in.
        line: The line there, or 0 for the file as a whole.
        message: What is wrong.
    """

    file: str
    line: int
    message: str


def look(package: str) -> Iterator[Finding]:
    """Find what is wrong with the subclasses of the contract's class that a package has."""
    failures = list(_imported(package))
    yield from failures
    base = _base(sys.modules.get(f"{package}.{GENERATED}.base"))
    if failures or base is None:
        return
    found = [kind for kind in _below(base) if not kind.__subclasses__()]
    if not found:
        home = sys.modules[package].__file__ or package
        yield Finding(home, 0, f"no module of the package has a subclass of {base.__name__}")
    for kind in found:
        yield from _check(kind, base)


def _imported(package: str) -> Iterator[Finding]:
    """Import the modules of a package; gives what failed."""
    pending = [package, f"{package}.{GENERATED}.base"]
    while pending:
        name = pending.pop(0)
        try:
            module = import_module(name)
        except BaseException as error:
            yield _failure(name, error)
            continue
        places: Iterable[str] = getattr(module, "__path__", ())
        inner = [found.name for found in pkgutil.iter_modules(places, f"{name}.")]
        pending += [other for other in inner if _is_owned(other, package)]


def _is_owned(name: str, package: str) -> bool:
    return name != f"{package}.{GENERATED}" and not name.endswith(f".{_MAIN}")


def _failure(name: str, error: BaseException) -> Finding:
    """Return an import that failed, at the last line of it that is in the project."""
    reason = f"{type(error).__name__}: {error}".strip(": ")
    if isinstance(error, SyntaxError) and error.filename:
        return Finding(error.filename, error.lineno or 0, f"{name} cannot be imported: {reason}")
    top = name.partition(".")[0]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if top in Path(frame.filename).parts]
    file, line = (frames[-1].filename, frames[-1].lineno or 0) if frames else (name, 0)
    return Finding(file, line, f"{name} cannot be imported: {reason}")


def _base(module: ModuleType | None) -> type | None:
    """Return the generated class."""
    kinds = [value for value in vars(module or ModuleType("")).values() if isinstance(value, type)]
    return next((kind for kind in kinds if module is not None and kind.__module__ == module.__name__), None)


def _below(kind: type) -> Iterator[type]:
    below: list[type] = kind.__subclasses__()
    for inner in below:
        yield inner
        yield from _below(inner)


def _check(kind: type, base: type) -> Iterator[Finding]:
    promised = [name for name, value in vars(base).items() if getattr(value, "__isabstractmethod__", False)]
    missing = [name for name in promised if getattr(inspect.getattr_static(kind, name), "__isabstractmethod__", False)]
    meant = _meant(missing, list(_strays(kind, base)))
    for name in promised:
        given = inspect.getattr_static(kind, name)
        if name in missing:
            hint = f"; did you mean it by {meant[name]}?" if name in meant else ""
            yield Finding(*_place(kind), f"{kind.__name__} misses {name}{_offer(given)}{hint}")
        elif not callable(getattr(kind, name)):
            yield Finding(*_place(kind), f"{kind.__name__}.{name} is no method")
        elif isinstance(given, FunctionType):
            function = inspect.unwrap(given)
            for message in _mistyped(given, vars(base)[name]):
                yield Finding(*_place(function), f"{kind.__name__}.{name} {message}")


def _offer(method: Any) -> str:
    """Describe what an abstract method is for."""
    spec = getattr(method, "__mcp_handler__", None)
    return f", for the {spec.kind} {spec.name!r}" if spec is not None else ""


def _strays(kind: type, base: type) -> Iterator[str]:
    """Return the methods that look as if they answered for an entry of the contract, and answer for none."""
    for name in dir(kind):
        given = inspect.getattr_static(kind, name)
        if name.startswith("_") or hasattr(base, name) or not isinstance(given, FunctionType):
            continue
        if "ctx" in inspect.signature(given).parameters:
            yield name


def _meant(missing: Sequence[str], strays: Sequence[str]) -> dict[str, str]:
    """Return for missing methods those that may have been meant: of a like name, or the only one on both sides."""
    found: dict[str, str] = {}
    left = list(strays)
    for name in missing:
        near = difflib.get_close_matches(name, left, n=1)
        if near:
            found[name] = near[0]
            left.remove(near[0])
    rest = [name for name in missing if name not in found]
    return {**found, rest[0]: left[0]} if len(rest) == len(left) == 1 else found


def _place(thing: type | Callable[..., Any]) -> tuple[str, int]:
    try:
        return inspect.getsourcefile(thing) or "", inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return str(getattr(sys.modules.get(thing.__module__), "__file__", thing.__module__)), 0


def _mistyped(given: FunctionType, promised: FunctionType) -> Iterator[str]:
    """Find how a method differs from its declaration in the contract."""
    wanted = list(inspect.signature(promised).parameters.values())
    try:
        signature = inspect.signature(given)
        bound = signature.bind(*wanted).arguments
    except TypeError:
        names = ", ".join(parameter.name for parameter in wanted)
        yield f"cannot be called with ({names})"
        return
    except ValueError:  # there are callables without a signature
        return
    function = inspect.unwrap(given)
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
        yield "yields; the contract wants it to return one answer"
        return
    ours, theirs = _hints(promised), _hints(function)
    for name, parameter in bound.items():
        given_type, promised_type = theirs.get(name, Any), ours.get(getattr(parameter, "name", ""), Any)
        if not _covers(given_type, promised_type):
            yield f"takes {name}: {spelled(given_type)}; the contract gives it {spelled(promised_type)}"
    answer = awaited(theirs["return"]) if "return" in theirs else Any
    if not _covers(ours["return"], answer):
        yield f"returns {spelled(answer)}; the contract promises {spelled(ours['return'])}"


def _covers(wide: Any, narrow: Any) -> bool:
    try:
        return covers(wide, narrow)
    except RecursionError:  # two types that contain themselves
        return True


def _hints(function: FunctionType) -> dict[str, Any]:
    """Return the annotations that can be understood; those of names that only type checkers import cannot."""
    try:
        return typing.get_type_hints(function)
    except Exception:
        return {name: _hint(value, function) for name, value in inspect.get_annotations(function).items()}


def _hint(annotation: Any, function: FunctionType) -> Any:
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)  # noqa: S307 - it is the project's code, which was imported
    except Exception:
        return Any


def main(package: str, result: str) -> None:
    """Write what is wrong with a package to a file."""
    found = [asdict(finding) for finding in look(package)]
    Path(result).write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # threads that the project started do not keep us
