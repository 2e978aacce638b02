"""Subclasses of generated models, with all that pydantic offers, keep the rules of the wire, signatures and errors."""

from __future__ import annotations

import json
import pydoc
import sys
import warnings
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest
from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from mcp_bindgen.v2025_11_25 import types as mcp
from mcp_bindgen.v2026_07_28 import types as stateless

X = TypeVar("X")
SCHEMA: dict[str, Any] = {"type": "object"}


class After(mcp.TextContent):
    @model_validator(mode="after")
    def check(self) -> After:
        return self


class Before(mcp.TextContent):
    @model_validator(mode="before")
    @classmethod
    def check(cls, value: Any) -> Any:
        return value


class Wrap(mcp.TextContent):
    @model_validator(mode="wrap")
    @classmethod
    def check(cls, value: Any, handler: ModelWrapValidatorHandler[Wrap]) -> Wrap:
        return handler(value)


class All(Before, After):
    """Text with two validators, one outside of the model's schema and one inside."""


class Mixin(BaseModel):
    """A base class that is no model of the protocol, and has a signature of its own."""


class Mixed(Mixin, mcp.TextContent):
    pass


class Built(mcp.TextContent, defer_build=False):
    pass


class GenericText(mcp.TextContent, Generic[X]):
    pay_load: X | None = None


@pytest.mark.parametrize("kind", [After, Before, Wrap, All, Mixed, Built, GenericText, GenericText[int]])
def test_a_subclass_keeps_the_rules_of_the_wire(kind: Any) -> None:
    assert kind(text="a").model_dump_json() == '{"text":"a","type":"text"}'
    assert kind.model_validate_json('{"text":"a","type":"text"}') == kind(text="a")
    with pytest.raises(ValidationError, match="type"):
        kind.model_validate_json('{"text": "a"}')


@pytest.mark.parametrize(
    ("base", "fields"),
    [
        (mcp.Tool, {"name": "a", "input_schema": SCHEMA}),
        (mcp.CallToolResult, {"content": []}),
        (mcp.ListToolsResult, {"tools": [{"name": "a", "inputSchema": SCHEMA}]}),
        (stateless.ListToolsResult, {"tools": []}),
    ],
)
def test_a_generic_subclass_has_the_fields_of_its_base(base: Any, fields: dict[str, Any]) -> None:
    class Loaded(base, Generic[X]):  # type: ignore[misc]  # the base is one of several
        pay_load: X

    wire = {**base(**fields).model_dump(), "payLoad": 1}
    made = Loaded[int](**fields, pay_load=1)
    assert made.model_dump() == wire
    assert Loaded[int].model_validate_json(json.dumps(wire)) == made
    with pytest.raises(ValidationError, match="pay_load"):
        Loaded[int](**fields, pay_load="1")


class Own(mcp.TextContent):
    def __init__(self, words: list[str], /, *, end: str = ".") -> None:
        super().__init__(text=" ".join(words) + end)


class OwnAndFields(mcp.TextContent):
    def __init__(self, text: str, **members: Any) -> None:
        super().__init__(text=text.upper(), **members)


@pytest.mark.parametrize(
    ("kind", "begin", "end"),
    [
        (mcp.Tool, "(*, input_schema: mcp_bindgen", ", **members: Any) -> None"),
        (Mixed, "(*, text: str, type: Literal['text'] = 'text', ", ", **members: Any) -> None"),
        (Built, "(*, text: str, type: Literal['text'] = 'text', ", ", **members: Any) -> None"),
        (
            GenericText[int],
            "(*, text: str, type: Literal['text'] = 'text', ",
            ", pay_load: int | None = None, **members: Any) -> None",
        ),
        (Own, "(words: list[str], /, *, end: str = '.') -> None", ""),
        (OwnAndFields, "(text: str, *, type: Literal['text'] = 'text', ", ", **members: Any) -> None"),
    ],
)
def test_a_signature_is_that_of_the_constructor_however_often_pydantic_builds_the_class(
    kind: type[BaseModel], begin: str, end: str
) -> None:
    before = str(signature(kind))
    shown = before.replace("typing.", "").replace("Optional[int]", "int | None")
    assert shown.startswith(begin)
    assert shown.endswith(end)
    for force in (False, True, True):
        kind.model_rebuild(force=force)
        assert str(signature(kind)) == before


@pytest.mark.parametrize("options", [{}, {"defer_build": False}])
def test_deprecated_fields_give_no_warning_after_a_forced_rebuild(options: Any) -> None:
    class Mine(stateless.ClientCapabilities, **options):
        more: int = 1

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            assert Mine().sampling is None
            Mine.model_rebuild(force=True)


@pytest.mark.parametrize("is_explicit", [True, False])
def test_a_class_finds_the_names_of_the_function_that_builds_it(is_explicit: bool) -> None:
    class Mine(mcp.TextContent):
        later: Later

    class Later(BaseModel):
        size: int

    if is_explicit:
        Mine.model_rebuild()
    assert Mine(text="a", later=Later(size=1)).later.size == 1


@pytest.mark.parametrize("is_hidden", [True, False])
def test_errors_of_constructors_hide_inputs_if_the_class_says_so(is_hidden: bool) -> None:
    class Secret(mcp.Tool):
        model_config = ConfigDict(hide_input_in_errors=is_hidden)
        token: int

    with pytest.raises(ValidationError) as caught:
        Secret(name="a", input_schema=SCHEMA, token="s3cret")  # type: ignore[arg-type]  # pyright: ignore
    assert ("s3cret" in str(caught.value)) is not is_hidden


SOURCE = '''
from pydantic import BaseModel
from mcp_bindgen.v2025_11_25 import types as mcp

class Tool(mcp.Tool):
    later: "Later | None" = None
    """Outer."""

class Lost(mcp.Tool):
    lost: "Nowhere | None" = None
    """Lost."""

class Later(BaseModel):
    pass

class Holder:
    class Tool(mcp.Tool):
        later: int
        """Nested."""

def local():
    class Tool(mcp.Tool):
        later: int
        """Local."""
    return Tool
'''


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return a module with classes of a user."""
    path = tmp_path / f"acme_{tmp_path.name}.py"  # another name in each test, as sources are read once
    path.write_text(SOURCE, "utf-8")
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    monkeypatch.setitem(sys.modules, path.stem, module)
    exec(compile(SOURCE, path, "exec", dont_inherit=True), vars(module))
    return module


def test_a_signature_has_types_that_come_later_and_keeps_unknown_names(user: ModuleType) -> None:
    assert f", later: {user.__name__}.Later | None = None, " in str(signature(user.Tool))
    assert "lost: ForwardRef('Nowhere | None'" in str(signature(user.Lost))
    assert "Nowhere" in pydoc.render_doc(user.Lost)


def later(kind: type[BaseModel]) -> Any:
    return kind.model_json_schema()["properties"]["later"].get("description")


def test_a_json_schema_has_the_docstrings_of_the_class_among_those_with_its_name(user: ModuleType) -> None:
    assert [later(kind) for kind in (user.Tool, user.Holder.Tool, user.local())] == ["Outer.", "Nested.", "Local."]


def unregister(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, path.stem)


def break_source(path: Path, _: pytest.MonkeyPatch) -> None:
    path.write_text("class Tool(:", "utf-8")


def encode(path: Path, _: pytest.MonkeyPatch) -> None:
    path.write_bytes(b"\xff\0")


def remove(path: Path, _: pytest.MonkeyPatch) -> None:
    path.unlink()


@pytest.mark.parametrize("lose", [unregister, break_source, encode, remove])
def test_a_json_schema_needs_no_source(
    user: ModuleType, monkeypatch: pytest.MonkeyPatch, lose: Callable[[Path, pytest.MonkeyPatch], None]
) -> None:
    lose(Path(str(user.__file__)), monkeypatch)
    assert later(user.Holder.Tool) is None
    assert "later: int" in str(signature(user.Holder.Tool))
