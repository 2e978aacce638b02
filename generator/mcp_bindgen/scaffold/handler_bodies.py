"""Write handler bodies: the first answer of a handler in a new project, and the test that holds it to that.

For well-known methods there is a template of the method's name; it is not used if it does not fit the revision.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.annotations import annotation
from mcp_bindgen.emit.python.calls import call_arguments, call_name, handler_name, may_omit, positional
from mcp_bindgen.emit.python.environment import WIDTH, docstring
from mcp_bindgen.emit.python.expressions import expression
from mcp_bindgen.emit.python.lowered import PythonProtocol
from mcp_bindgen.emit.python.stubs import handler_summary
from mcp_bindgen.ir.examples import Code, Unfit, example
from mcp_bindgen.ir.model import Const, Field, Method, Ref, Sender, Type, Union

from .plan import RevisionPlan
from .rendering import macros

_IN = "    "
_WIDTH = WIDTH - 2 * len(_IN)


@dataclass(frozen=True)
class Handler:
    """A method of a project's class.

    Attributes:
        method: The method that it handles.
        stub: The name after which calls and handlers of the method are named.
        name: Its name in Python.
        params: Annotation of its params; empty if it takes none.
        returns: Annotation of its result.
        doc: Its docstring, as source.
        constants: Statements of the module that it needs.
        body: Its statements.
        ask: A call that reaches it, without its receiver.
        test: The statements of its test.
        kind: Class of its result, if it is one.
        decorator: Its decorator, as source; empty if it has none.
    """

    method: Method
    stub: str
    name: str
    params: str
    returns: str
    doc: str
    constants: str
    body: str
    ask: str
    test: str
    kind: str | None
    decorator: str = ""


def handlers(part: RevisionPlan, side: Sender) -> list[Handler]:
    """Return the handlers for all methods of the features of a class, with first answers."""
    methods = [method for feature in part.features for method in feature.methods]
    return [_Author(part, side, method, methods).handler() for method in methods]


def call(protocol: PythonProtocol, method: Method, params: Mapping[str, Any], prefix: str) -> str:
    """Return the call that sends a request, without its receiver: `call_tool("greet")`.

    Args:
        protocol: The revision.
        method: The request.
        params: Its params, as JSON; missing required members get examples.
        prefix: Text before the names of types.

    Raises:
        Unfit: They do not fit the method.
    """
    fields = call_arguments(protocol, method)
    if fields is None:
        assert method.params is not None
        kind = method.params if params else _needing_nothing(protocol, method)
        value = params or example(protocol, kind)
        return f"{call_name(protocol, method)}({expression(protocol, kind, value, prefix)})"
    words: list[str] = []
    by_position = list(positional(protocol, method, fields))
    for field in fields:
        if field.wire not in params and may_omit(field):
            by_position.clear()  # what comes behind a gap has to be named
            continue
        value = params[field.wire] if field.wire in params else example(protocol, field.type)
        text = expression(protocol, field.type, value, prefix)
        name = naming.argument(protocol.attribute(method.params, field.wire))
        words.append(text if field in by_position else f"{name}={text}")
    if {*params} - {field.wire for field in fields}:
        raise Unfit(f"{method.name} has other params")
    return f"{call_name(protocol, method)}({', '.join(words)})"


def _needing_nothing(protocol: PythonProtocol, method: Method) -> Type:
    """Return the params of a method, of a union the first member whose constants need no capability of their own."""
    assert method.params is not None
    whole = protocol.resolve(method.params)
    extra = {(need.member, value) for need in method.needs if not need.implied for value in need.values}
    for member in whole.members if isinstance(whole, Union) else ():
        constants = {
            (field.wire, value)
            for field in protocol.fields_of(member)
            for value in (field.type.values if isinstance(field.type, Const) else ())
        }
        if not constants & extra:
            return member
    return method.params


@dataclass(frozen=True)
class _Author:
    """Writes one handler.

    Attributes:
        part: The revision, and the features of the class.
        side: The side that answers.
        method: The method that is handled.
        methods: All methods that the class handles.
    """

    part: RevisionPlan
    side: Sender
    method: Method
    methods: list[Method]

    @property
    def protocol(self) -> PythonProtocol:
        """The revision."""
        return self.part.protocol

    def handler(self) -> Handler:
        """Return the handler, with the answer that its template gives, or with any that is valid."""
        try:
            return self._written(macros(f"project/answers/{self.protocol.stub(self.method)}.jinja", **self._words()))
        except Unfit:
            return self._written({})

    def _written(self, parts: Mapping[str, Callable[[], str]]) -> Handler:
        method = self.method
        assert method.result is not None
        body = parts["answer"]() if "answer" in parts else self._any_answer()
        return Handler(
            method=method,
            stub=self.protocol.stub(method),
            name=handler_name(self.protocol, method, self.side),
            params=annotation(method.params, prefix=self.part.prefix) if method.params is not None else "",
            returns=annotation(method.result, prefix=self.part.prefix),
            doc=docstring(self._doc(), indent=8),
            constants=parts["constants"]() if "constants" in parts else "",
            body=body.strip(),
            ask=call(self.protocol, method, {}, self.part.prefix),
            test=parts["test"]() if "test" in parts else self._any_test(),
            kind=self.protocol.class_of(self.method.result),
            decorator=parts["decorator"]().strip() if "decorator" in parts else "",
        )

    def _doc(self) -> str:
        """Describe the request and its result, with the documentation of the revision."""
        lines = [handler_summary(self.method)]
        found = self.protocol.definitions.get(self.method.result.name) if isinstance(self.method.result, Ref) else None
        if found is not None and found.doc:
            lines.append(
                "\n".join(["Returns:", *textwrap.wrap(found.doc, _WIDTH, initial_indent=_IN, subsequent_indent=_IN)])
            )
        return "\n\n".join(lines)

    def _words(self) -> dict[str, object]:
        """Return the functions and values that templates can use."""
        return {
            "method": self.method,
            "stub": self.protocol.stub(self.method),
            "code": Code,
            "new": self._new,
            "result": self._result,
            "param": self._param,
            "send": self._send,
            "needs": self._needs,
            "bindings": self.part.bindings,
            "features": [feature.name for feature in self.part.features],
            "extensions": self.part.extensions,
            "errors": [error.name for error in self.protocol.errors],
        }

    def _new(self, name: str, value: Any) -> str:
        if name not in self.protocol.definitions:
            raise Unfit(f"there is no {name}")
        return expression(self.protocol, Ref(name), value, self.part.prefix)

    def _result(self, value: Any) -> str:
        assert self.method.result is not None
        return expression(self.protocol, self.method.result, value, self.part.prefix)

    def _param(self, wire: str) -> str:
        if self.protocol.field_of(self.method.params, wire) is None:
            raise Unfit(f"{self.method.name} does not say its {wire}")
        return f"params.{self.protocol.attribute(self.method.params, wire)}"

    def _needs(self, stub: str) -> str:
        if not any(self.protocol.stub(method) == stub for method in self.methods):
            raise Unfit(f"{stub} is not answered")
        return ""

    def _send(self, params: Mapping[str, Any]) -> str:
        return f"client.{call(self.protocol, self.method, params, self.part.prefix)}"

    def _any_answer(self) -> str:
        """Return a result with all required members; members of the params that occur in it are repeated."""
        assert self.method.result is not None
        value = self._example(lambda field: Code(f"params.{self.protocol.attribute(self.method.params, field.wire)}"))
        return f"return {expression(self.protocol, self.method.result, value, self.part.prefix)}"

    def _any_test(self) -> str:
        """Send an example, and expect its result."""
        sent = self._send({})
        params: Any = example(self.protocol, self.method.params) if self.method.params is not None else {}
        value = self._example(lambda field: params[field.wire])
        if not value:
            return f"await {sent}"
        if self.protocol.class_of(self.method.result) is None:
            return f"assert await {sent} == {value!r}"
        lines = [
            f"answer = await {sent}",
            f"expected: dict[str, object] = {value!r}",
            "assert answer.model_dump().items() >= expected.items()",
        ]
        return "\n".join(lines)

    def _example(self, repeated: Callable[[Field], Any]) -> Any:
        assert self.method.result is not None
        value = example(self.protocol, self.method.result)
        for field in self.protocol.fields_of(self.method.params):
            other = self.protocol.field_of(self.method.result, field.wire)
            if field.required and other is not None and other.required and other.type == field.type:
                value[field.wire] = repeated(field)
        return value
