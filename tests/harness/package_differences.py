"""Code that uses the whole API of a generated package, and the expected differences from another package."""

from __future__ import annotations

import ast
from typing import Any

from tests.harness.package_api import NONE, Offer, Parameter, Stub, View, fits, offer


def uses_of_everything(revision: str) -> str:
    """Return a module that uses every name, field, handler and call of a revision."""
    old = offer(revision)
    lines = [f"from mcp_bindgen.v{revision.replace('-', '_')} import Client, Context, Server, errors, methods, types"]
    lines += [f"types.{name}" for name in (*old.classes, *old.aliases)]
    lines += [f"errors.{name}" for name in old.errors]
    lines += [f"methods.{name}" for name in old.methods]
    for name, fields in old.classes.items():
        lines += [f"def read(value: types.{name}, anything):"]
        lines += [f"    value.{field}" for field in fields]
        lines += [f"    types.{name}({', '.join(f'{field}=anything' for field in fields)})", f"    types.{name}()"]
    lines += ["async def call(client: Client, context: Context, anything):", "    pass"]
    for key, stub in old.calls.items():
        called = key.replace("Client", "client").replace("Context", "context")
        places = [name for name, parameter in stub.parameters.items() if parameter.position is not None]
        lines += [f"    await {called}({', '.join(f'{name}=anything' for name in stub.parameters)})"]
        lines += [f"    await {called}({', '.join('anything' for _ in places)})", f"    await {called}()"]
    lines += [f"    {key.replace('Client', 'client').replace('Context', 'context')}()" for key in old.walks]
    for name in old.asked():
        lines += [f"    await context.ask_params('key', types.{name}.model_validate(anything))"]
    for owner in ("Client", "Server"):
        lines += [f"class Own{owner}({owner}):", "    pass"]
        for key, stub in old.handlers.items():
            if key.startswith(owner):
                lines.append(f"    def {key.partition('.')[2]}(self, {', '.join(stub.parameters)}): ...")
    return "\n".join(lines) + "\n"


class Truth:
    """Differences between two generated packages for code that uses the old one."""

    def __init__(self, old: Offer, new: Offer, renames: dict[str, str]) -> None:
        self.old, self.new = old, new
        kept = {name: name for name in (*new.classes, *new.aliases)}
        self.after = kept
        self.before = {**kept, **renames}

    def was(self, node: ast.expr | None) -> View:
        return self.old.view(node, self.before)

    def now(self, node: ast.expr | None) -> View:
        return self.new.view(node, self.after)

    def names(self) -> set[str]:
        names = {name for name in self.old.classes if self.before.get(name) != name or name not in self.new.classes}
        for name, type in self.old.aliases.items():
            if self.before.get(name) != name or name not in self.new.aliases:
                names.add(name)
            else:
                old, new = self.was(type), self.now(self.new.aliases[name])
                classes = all(len(view) == 1 and next(iter(view))[0] == "class" for view in (old, new))
                if old != new and not classes:
                    names.add(name)
        return {f"types.{name}" for name in names}

    def fields(self) -> set[str]:
        differs: set[str] = set()
        for name, fields in self.old.classes.items():
            others = self.new.classes.get(self.before.get(name, ""))
            for field, was in fields.items():
                now = others.get(field) if others is not None else None
                if now is None or not fits(self.now(now.annotation), self.was(was.annotation)):
                    differs.add(f"types.{name}.{field}")
                given = now is None and self.before.get(name) in self.new.open
                if others is not None and not given and (now is None or not self.accepts(was, now)):
                    differs.add(f"types.{name}({field}=)")
            differs |= {f"types.{name}({field}=)" for field in missing(fields, others or {})}
        return differs

    def accepts(self, was: Parameter, now: Parameter) -> bool:
        """Return True if old arguments are still accepted; a default of None, which means absence, is never passed."""
        given = self.was(was.annotation)
        return fits(given - NONE if was.default == "None" else given, self.now(now.annotation))

    def calls(self) -> set[str]:
        differs: set[str] = set()
        for key, was in self.old.calls.items():
            now = self.new.calls.get(key)
            if now is None:
                differs.add(key)
                continue
            if not fits(self.now(now.returns), self.was(was.returns)) or self.needs_more(key, was, now):
                differs.add(key)
            if was.whole != now.whole:
                differs.add(key)
                continue
            for name, old in was.parameters.items():
                new = now.parameters.get(name)
                if (
                    new is None
                    or not self.accepts(old, new)
                    or (old.position is not None and old.position != new.position)
                ):
                    differs.add(f"{key}({name}=)")
            differs |= {f"{key}({name}=)" for name in missing(was.parameters, now.parameters)}
        for key, was in self.old.walks.items():
            now = self.new.walks.get(key)
            if now is None or not fits(self.now(now.returns), self.was(was.returns)):
                differs.add(key)
        return differs

    def needs_more(self, key: str, was: Stub, now: Stub) -> bool:
        """Return True if a call changes its carrier, or needs a new capability."""
        side = "client" if key.startswith("Client") else "server"
        before, after = self.old.methods[was.method], self.new.methods[now.method]
        old, new = (_literal(one.get("capabilities")).get(side) for one in (before, after))
        carriers = [ast.dump(one["carrier"]) if "carrier" in one else "" for one in (before, after)]
        return (new is not None and new != old) or carriers[0] != carriers[1]

    def handlers(self) -> set[str]:
        differs: set[str] = set()
        for key, was in self.old.handlers.items():
            now = self.new.handlers.get(key)
            if now is None:
                differs.add(key)
                continue
            taken = [stub.parameters.get("params") for stub in (was, now)]
            views = [
                self.was(taken[0].annotation if taken[0] else None),
                self.now(taken[1].annotation if taken[1] else None),
            ]
            if not fits(views[1], views[0]) or not fits(self.was(was.returns), self.now(now.returns)):
                differs.add(key)
        return differs

    def questions(self) -> set[str]:
        differs = {"Context.ask_params"} if self.old.questions and not self.new.questions else set[str]()
        for name, was in self.old.asked().items():
            now = self.new.asked().get(self.before.get(name, ""))
            if now is None or not fits(self.now(now), self.was(was)):
                differs.add(f"Context.ask_params({name})")
        return differs

    def errors(self) -> set[str]:
        return {f"errors.{name}" for name, code in self.old.errors.items() if self.new.errors.get(name) != code}

    def methods(self) -> set[str]:
        differs: set[str] = set()
        for name, was in self.old.methods.items():
            now = self.new.methods.get(name)
            if now is None or self.contract(was, self.was) != self.contract(now, self.now):
                differs.add(f"methods.{name}")
        return differs

    def contract(self, descriptor: dict[str, ast.expr], view: Any) -> object:
        more = descriptor.get("alternatives")
        alternatives = more.elts if isinstance(more, ast.Tuple) else []
        plain = [ast.dump(descriptor[name]) if name in descriptor else "" for name in ("sender", "carrier")]
        return plain, view(descriptor["params"]), view(descriptor.get("result")), frozenset(map(view, alternatives))

    def gone(self) -> set[str]:
        """Return the missing names, members and arguments, which a type checker reports without the type of a value."""
        names = {name for name in (*self.old.classes, *self.old.aliases) if name not in self.after}
        found = {f"types.{name}" for name in names}
        for name, fields in self.old.classes.items():
            others = self.new.classes.get(name, {}) if name in self.before and self.before[name] == name else None
            if others:
                found |= {f"types.{name}.{field}" for field in fields if field not in others}
                given = set() if name in self.new.open else {field for field in fields if field not in others}
                found |= {f"types.{name}({field}=)" for field in given | missing(fields, others)}
        for olds, news in ((self.old.calls, self.new.calls), (self.old.walks, self.new.walks)):
            for key, was in olds.items():
                now = news.get(key)
                if now is None:
                    found.add(key)
                elif was.whole == now.whole:
                    lacking = {name for name in was.parameters if name not in now.parameters}
                    found |= {f"{key}({name}=)" for name in lacking | missing(was.parameters, now.parameters)}
        for part in ("handlers", "errors"):
            prefix = "errors." if part == "errors" else ""
            found |= {prefix + key for key in getattr(self.old, part) if key not in getattr(self.new, part)}
        return found | {f"methods.{name}" for name in self.old.methods if name not in self.new.methods}

    def all(self) -> set[str]:
        """Return all differences."""
        return (
            self.names()
            | self.fields()
            | self.calls()
            | self.handlers()
            | self.questions()
            | self.errors()
            | self.methods()
        )


def missing(old: dict[str, Parameter], new: dict[str, Parameter]) -> set[str]:
    """Return the parameters that have become required."""
    return {name for name, parameter in new.items() if parameter.needed and not (name in old and old[name].needed)}


def _literal(node: ast.expr | None) -> dict[str, str]:
    value: dict[str, str] = ast.literal_eval(node) if node is not None else {}
    return value
