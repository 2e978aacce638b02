"""Progress, log messages and questions of a server on a terminal.

In a pipe, progress and messages are not shown, and `--answer` holds the answers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import typer

from mcp_bindgen.cli.terminal import StatusLine, say
from mcp_bindgen.runtime.logs import harmless
from mcp_bindgen.spec.errors import BadInput, printable
from mcp_bindgen.spec.json import is_object

Value: TypeAlias = str | int | float | bool | list[str]

_REFUSALS = ("decline", "cancel")
_YES = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}
_SCALARS: Mapping[str, tuple[Callable[[str], Value], str]] = {
    "integer": (int, "a whole number"),
    "number": (float, "a number"),
    "boolean": (lambda text: _YES[text.lower()], "yes or no"),
}
"""Type of a field -> function that parses a value, and the expected value in words."""


class Unanswered(Exception):
    """A question of a server has no answer; the message names the option that gives one."""


class Answering:
    """Maker of clients; subclasses answer the questions of servers, and show their progress."""

    def client(self, kind: type[Any]) -> Any:
        """Return a client of a class, with handlers for questions."""
        return kind()

    @property
    def on_progress(self) -> Callable[[Any], None] | None:
        """Handler of progress; `None` to ask for none."""
        return None


class Dialogue(Answering):
    """Show messages and questions of a server, and return the answers.

    Args:
        answers: Answers of the command line: `NAME=VALUE` for the fields of questions, `VALUE` for questions with one
            field, or `decline`, or `cancel`.

    Attributes:
        answers: True if questions can be answered.
        unanswered: The question without an answer, if there is one.

    Raises:
        BadInput: An answer is none of these.
    """

    def __init__(self, answers: Sequence[str] = ()) -> None:
        self._refusal = next((answer for answer in answers if answer in _REFUSALS), None)
        pairs = [answer.partition("=") for answer in answers if answer not in _REFUSALS]
        if any(not name for name, _, _ in pairs):
            raise BadInput("--answer needs VALUE or NAME=VALUE", fix="or say decline, or cancel")
        self._answers = {name: value for name, equals, value in pairs if equals}
        self._alone = next((name for name, equals, _ in pairs if not equals), None)
        self._is_seen = sys.stderr.isatty()
        self._is_asked = sys.stdin.isatty() and self._is_seen
        self.answers = bool(self._is_asked or answers)
        self._status: StatusLine | None = None
        self.unanswered: Unanswered | None = None

    def client(self, kind: type[Any]) -> Any:
        """Return a client whose handlers are this dialogue; it declares elicitation only with answers."""

        async def on_logging_message(client: Any, params: Any, ctx: Any) -> None:
            if self._is_seen:
                data = params.data if isinstance(params.data, str) else json.dumps(params.data, ensure_ascii=False)
                name = f"{params.logger}: " if params.logger else ""
                self._say(f"[{params.level}] {name}{data}")

        handlers: dict[str, Any] = {"on_logging_message": on_logging_message}
        if hasattr(kind, "on_elicit") and self.answers:

            def on_elicit(client: Any, params: Any, ctx: Any) -> Any:  # in a thread, which keeps no process alive
                return self._elicit(params.model_dump())

            handlers["on_elicit"] = on_elicit
        return type(kind.__name__, (kind,), handlers)()

    @contextmanager
    def waiting(self, words: str) -> Generator[None]:
        """Show a status line on a terminal during the block."""
        if not self._is_seen:
            yield
            return
        with StatusLine(words) as self._status:
            yield
        self._status = None

    @property
    def on_progress(self) -> Callable[[Any], None] | None:
        """Handler that shows progress; `None` in a pipe."""
        return self._progress if self._is_seen else None

    def _progress(self, params: Any) -> None:
        if self._status is not None:
            total = "" if params.total is None else f"/{params.total:g}"
            message = getattr(params, "message", None)
            self._status.update(harmless(f"{params.progress:g}{total}{f' {message}' if message else ''}"))

    def _say(self, words: str) -> None:
        say(harmless(words), err=True)

    # --- questions --------------------------------------------------------------------------------------------

    def _elicit(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to `elicitation/create`, in wire form."""
        if self._refusal is not None:
            return {"action": self._refusal}
        status, self._status = self._status, None
        if status is not None:
            status.stop()
        try:
            return self._answer(asked)
        except (EOFError, typer.Abort):
            return {"action": "cancel"}
        except Unanswered as error:
            self.unanswered = error
            return {"action": "cancel"}
        finally:
            if status is not None:
                self._status = status
                status.start()

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        if self._is_asked:
            self._say(f"The server asks: {asked['message']}")
        if "url" in asked:
            if not self._is_asked:
                raise Unanswered(f"the server asks to open {harmless(asked['url'])}; --answer decline refuses")
            self._say(f"It wants you to open: {asked['url']}")
            return {"action": "accept" if typer.confirm("Did you?", err=True) else "decline"}
        schema = asked["requestedSchema"]
        required = schema.get("required", ())
        fields: Mapping[str, Any] = schema["properties"]
        if self._alone is not None and len(fields) == 1:
            self._answers.setdefault(next(iter(fields)), self._alone)
        given = {name: self._field(name, one, name in required, asked["message"]) for name, one in fields.items()}
        content = {name: value for name, value in given.items() if value is not None}
        if self._is_asked and not content and not typer.confirm("Accept?", default=True, err=True):
            return {"action": "decline"}
        return {"action": "accept", "content": content}

    def _field(self, name: str, field: Mapping[str, Any], required: bool, message: str) -> Value | None:
        if name in self._answers:
            try:
                return _read(field, self._answers[name])
            except ValueError as error:
                raise Unanswered(f"--answer {name}: {error}") from None
        default: Value | None = field.get("default")
        if not self._is_asked:
            if required and default is None:
                kind = field.get("type", "text")
                raise Unanswered(f"the server asks: {harmless(message)}; answer with --answer {harmless(name)}={kind}")
            return default
        shown = "" if default is None else f" [{default}]"
        question = printable(harmless(f"{field.get('title', name)}{_hint(field)}{shown}"))
        while True:
            answer = typer.prompt(
                question, default="" if default is None and not required else default, show_default=False, err=True
            )
            if answer == "":
                return None
            try:
                return _read(field, str(answer))
            except ValueError as error:
                self._say(str(error))


def _choices(field: Mapping[str, Any]) -> list[str]:
    """Return the values that a field may have; none where it may have any."""
    options = field.get("enum") or [
        option.get("const") for option in field.get("oneOf", field.get("anyOf", ())) if is_object(option)
    ]
    return [option for option in options if isinstance(option, str)]


def _hint(field: Mapping[str, Any]) -> str:
    described = f" ({field['description']})" if isinstance(field.get("description"), str) else ""
    items = field.get("items")
    choices = _choices(items if is_object(items) else field)
    kind = " [y/n]" if field.get("type") == "boolean" else ""
    more = ", several with commas" if is_object(items) else ""
    shown = " | ".join(choices)
    return f"{described}{kind}" + (f" [{shown}{more}]" if choices else "")


def _read(field: Mapping[str, Any], text: str) -> Value:
    """Return the value of a field; raise `ValueError` with a message of one line."""
    kind = str(field.get("type"))
    if kind == "array":
        return [str(_read(field.get("items", {}), part.strip())) for part in text.split(",") if part.strip()]
    if kind in _SCALARS:
        parse, expected = _SCALARS[kind]
        try:
            return parse(text)
        except (ValueError, KeyError):
            raise ValueError(f"{text!r} is not {expected}") from None
    choices = _choices(field)
    if choices and text not in choices:
        raise ValueError(f"{text!r} is none of {', '.join(choices)}")
    return text
