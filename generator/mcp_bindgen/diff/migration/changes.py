"""What became of everything that the old bindings offer, by the names that code uses."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from mcp_bindgen.protocol import calls
from mcp_bindgen.protocol.model import Field, Method, Ref, Type, Union
from mcp_bindgen.protocol.text import describe

from ..finding import Comparison, Finding
from ..match import match
from ..reach import answers
from ..rules import RULES
from .advice import Replacements, advice
from .assignable import MAPPING, Assignable
from .bindings import RECEIVERS, SENDERS, SHORTCUTS, Bindings, Parameter, Stub
from .causes import Causes
from .names import new_names

Kind = Literal["gone", "renamed", "changed", "needed", "repeated"]


def _never(type: Type) -> bool:
    return False


@dataclass(frozen=True)
class Change:
    """The fate of a name, a field, a handler or a call.

    Attributes:
        kind: What, in a word; `needed` is something that must be given now, `repeated` a function that runs again.
        rule: The rule of the finding behind it.
        subject: What that finding is about.
        old: What it was in Python, in a few words.
        new: What it is; empty for what is gone.
        hint: What to do about it.
        fingerprint: The fingerprint of the finding; empty where the comparison has none of its own for it.
        tolerates: Whether code whose value is of a type has nothing to change.
    """

    kind: Kind
    rule: str
    subject: str
    old: str
    new: str
    hint: str
    fingerprint: str = ""
    tolerates: Callable[[Type], bool] = field(default=_never, compare=False)


class Changes:
    """The changes between the bindings of two revisions.

    Attributes:
        old: The old bindings.
        of: Name -> what became of it: `types.Tool`, `types.Tool.title` where it is read, `types.Tool(title=)` where it
            is given, `Client.call_tool`, `Client.call_tool(name=)`, `Client.call_tool(0)` by its position.
        needed: Class or call -> the arguments that it needs now and did not need before.
        asking: Call that asks the client -> what became of it, where handlers run again with the answer.
        positional: Call -> its arguments that may be given by position.
    """

    def __init__(self, comparison: Comparison) -> None:
        matches = match(comparison.old, comparison.new)
        self.old, self._new = Bindings(comparison.old), Bindings(comparison.new)
        self._names = new_names(comparison.old, comparison.new, matches)
        self._causes = Causes(comparison, matches, self._names)
        self._replacements = Replacements(self._new)
        self._field_names = {one.subject: one.old for one in comparison.findings if one.rule == "field-renamed"}
        classes = {old: self._new.class_of(new) for old, new in self._names.items()}
        self._accepts = Assignable(comparison.new, comparison.old, lambda new, old: classes.get(old) == new).covers
        self._returns = Assignable(comparison.old, comparison.new, lambda old, new: classes.get(old) == new).covers
        self.of: defaultdict[str, list[Change]] = defaultdict(list)
        self.needed: defaultdict[str, dict[str, Change]] = defaultdict(dict)
        self.asking: dict[str, Change] = {}
        self.positional = {
            stub.name: _positional(stub.method, self.old.arguments(stub.method)) for stub in self.old.calls.values()
        }
        for definition in comparison.old.definitions:
            self._definition(definition)
            self._fields(definition)
        for olds, news, compare in (
            (self.old.calls, self._new.calls, self._call),
            (self.old.walks, self._new.walks, self._walk),
            (self.old.handlers, self._new.handlers, self._handler),
            (self.old.constants, self._new.constants, self._constant),
        ):
            for key, stub in olds.items():
                if (heir := news.get(key)) is None:
                    self._gone(stub)
                    continue
                if heir.short != stub.short:
                    definition = stub.method.definition
                    cause, default = self._causes.of_name(definition), ("definition-renamed", definition)
                    self._add(stub.name, "renamed", cause, default, (stub.short, heir.short))
                compare(stub, heir)
        for params, stub in self.old.questions.items():
            self._question(params, stub)
        for name in self.old.errors:
            self._error(name)

    def _add(
        self,
        name: str,
        kind: Kind,
        cause: Finding | None,
        default: tuple[str, str],
        words: tuple[str, str],
        tolerates: Callable[[Type], bool] = _never,
        hint: str = "",
        gives: bool | None = None,
    ) -> None:
        """Add what `cause` did to `name`; the rule and the subject of `default` stand in where no cause is known.

        `hint` says what to do on the side that has the code, in place of what the rule says to both sides. Without
        one, `gives` says whether the code gives a value or reads one.
        """
        change = _change(kind, cause, default, words, tolerates)
        specific = "" if change.hint == RULES[change.rule].hint else change.hint
        if gives is not None and not hint:
            hint, specific = advice(change.rule, gives=gives), ""
        if hint:
            told = self._replacements.told(specific, name.partition(".")[0])
            change = replace(change, hint=f"{hint} {told}".rstrip())
        self.of[name].append(change)

    # --- types --------------------------------------------------------------------------------------------------

    def _definition(self, definition: str) -> None:
        name, cause, heir = f"types.{definition}", self._causes.of_name(definition), self._names.get(definition)
        old, new = self.old.protocol.definitions[definition], self._new.protocol.definitions.get(definition)
        if heir is None and new is None:
            self._add(name, "gone", cause, ("definition-removed", definition), (definition, ""))
        elif heir is not None and heir != definition:
            hint = f"Use `types.{heir}`."
            self._add(name, "renamed", cause, ("definition-renamed", definition), (definition, heir), hint=hint)
        elif new is not None:
            words = self._words(old.type, new.type)
            classes = self.old.class_of(definition), self._new.class_of(definition)
            if heir is None:
                self._add(name, "changed", cause, ("definition-redefined", definition), words)
            elif (classes[0] is None) != (classes[1] is None) or (
                classes == (None, None) and not self._equal(old.type, new.type)
            ):
                self._add(name, "changed", self._causes.of_type(definition), ("type-changed", definition), words)

    def _fields(self, definition: str) -> None:
        heir = self._names.get(definition)
        is_class = heir is not None and self._new.class_of(heir) is not None
        olds, heirs = self.old.fields(definition), self._successors(definition)
        for old in olds:
            new = heirs.get(old.field.wire)
            cause = None if is_class else self._causes.of_name(definition)
            fits = new is not None and self._returns(old.whole, new.whole)
            self._member(f"types.{definition}.{old.name}", definition, definition, old, new, fits, cause=cause)
        if is_class:
            self._parameters(f"types.{definition}", definition, definition, olds, list(heirs.values()))

    def _parameters(
        self, name: str, definition: str, subject: str, olds: list[Parameter], news: list[Parameter]
    ) -> list[tuple[Parameter, Parameter | None]]:
        """Add what became of the arguments of a constructor or of a call; give each old one with the new one."""
        wires = {wire: new.field.wire for wire, new in self._successors(definition).items()}
        by_wire = {new.field.wire: new for new in news}
        pairs = [(old, by_wire.get(wires.get(old.field.wire, old.field.wire))) for old in olds]
        for old, new in pairs:
            accepts = partial(self._accepts, new.whole) if new is not None else _never
            self._member(f"{name}({old.name}=)", definition, subject, old, new, accepts(old.type), accepts)
        optional = {new.field.wire: old.may_omit for old, new in pairs if new is not None}
        for new in news:
            if new.may_omit or not optional.get(new.field.wire, True):
                continue
            was = next((old.field for old, other in pairs if other is new), None)
            rule = "field-became-required" if was is not None else "field-added-required"
            cause = self._causes.of_member(definition, new.field.wire)
            default = rule, f"{subject}.{new.field.wire}"
            change = _change("needed", cause, default, self._field_words(was, new.field))
            hint = advice(rule, gives=True)
            if name.startswith("types.") and self._replacements.is_metadata(self._names[definition]):
                hint = "A call adds it: give `meta=` a mapping with the names of the wire instead."
            self.needed[name][new.name] = replace(change, hint=hint)
        return pairs

    def _member(
        self,
        name: str,
        definition: str,
        subject: str,
        old: Parameter,
        new: Parameter | None,
        fits: bool,
        tolerates: Callable[[Type], bool] = _never,
        cause: Finding | None = None,
    ) -> None:
        if new is not None and new.name == old.name and fits:
            return  # most do not change, and looking for causes takes long
        wire, subject = (new or old).field.wire, f"{subject}.{old.field.wire}"
        cause = cause or self._causes.of_member(definition, wire, new.field.type if new is not None else None)
        gives = name.endswith("=)")
        if new is None:
            rule = f"field-removed-{'required' if old.field.required else 'optional'}"
            if cause is not None and cause.rule == "field-opened":
                if not (gives and self._takes_any(definition)):  # a constructor takes it as before
                    words, kept = (f"a field, {old.name}", f"a member without a field, {old.field.wire!r}"), ""
                    if not gives:
                        kept = f'Read it by `(x.model_extra or {{}}).get("{old.field.wire}")`: it is there as before, '
                        kept += f"and a constructor takes `{old.name}=` as before."
                    self._add(name, "changed", cause, (rule, subject), words, hint=kept, gives=gives)
                return
            hint = "the other side does not know it." if gives else "the other side does not send it."
            hint = f"{'Leave it out' if gives else 'Do without it'}: {hint}"
            self._add(name, "gone", cause, (rule, subject), (old.name, ""), hint=hint)
        elif new.name != old.name:
            self._add(name, "renamed", cause, ("field-renamed", subject), (old.name, new.name), gives=gives)
        elif new.type is MAPPING:
            words = describe(old.field.type), "a mapping with the names of the wire"
            hint = f"Give a mapping, `{new.name}={{...}}`: the call adds what every request needs."
            self._add(name, "changed", cause, ("type-changed", subject), words, tolerates, hint, gives=gives)
        else:
            words = self._field_words(old.field, new.field)
            self._add(name, "changed", cause, ("type-changed", subject), words, tolerates, gives=gives)

    def _takes_any(self, definition: str) -> bool:
        heir = self._new.class_of(self._names[definition]) if definition in self._names else None
        return heir is not None and self._new.takes_any(heir)

    def _successors(self, definition: str) -> dict[str, Parameter]:
        """Old wire name -> what a member is now, for those that still exist."""
        found: dict[str, Parameter] = {}
        for new in self._new.fields(self._names[definition]) if definition in self._names else ():
            subjects = self._causes.members(definition, new.field.wire)
            was = next((self._field_names[one] for one in subjects if one in self._field_names), new.field.wire)
            found[was] = new
        return found

    # --- calls --------------------------------------------------------------------------------------------------

    def _call(self, stub: Stub, heir: Stub) -> None:
        name, old, new = stub.name, stub.method, heir.method
        olds, news = self.old.arguments(old), self._new.arguments(new)
        if old.carrier != new.carrier:
            default = "message-carrier-changed", stub.message
            words: tuple[str, str] = old.carrier, new.carrier
            shortcut = f"`ctx.{SHORTCUTS[new.name]}` or " if new.name in SHORTCUTS else ""
            hint = f"Ask with {shortcut}`ctx.ask_params(key, params)`: the question travels in the result."
            asked = hint if new.carrier == "embedded" and stub.owner == "Context" else ""
            self._add(name, "changed", self._causes.of(stub.message), default, words, hint=asked)
            if asked:
                others = (f"Context.{one}" for one in (SHORTCUTS.get(new.name, "ask_by"), "ask_by", "ask_params"))
                self.asking[name] = self.of[name][-1]
                self.asking |= {other: self.asking[name] for other in others if other not in self.asking}
        self._guarded(stub, heir)
        if not self._returns(old.result, new.result):
            self._answers(stub, self._words(old.result, new.result))
        params, subject = _name_of(old.params), f"{old.definition}.params"
        if olds is not None and news is not None:
            pairs = self._parameters(name, params or _name_of(new.params), subject, olds, news)
            for index, (_, parameter) in enumerate(pairs):
                self._position(f"{name}({index})", subject, index, parameter, _positional(new, news))
            return
        cause = self._causes.of_type(params)
        if olds is not None or news is not None:
            words = f"({', '.join(_names(olds))})", f"({', '.join(_names(news))})"
            self._add(name, "changed", cause, ("type-changed", old.definition), words)
        elif not self._accepts(new.params, old.params):
            words, accepts = self._words(old.params, new.params), partial(self._accepts, new.params)
            self._add(f"{name}(params=)", "changed", cause, ("type-changed", subject), words, accepts, gives=True)

    def _position(self, name: str, subject: str, index: int, new: Parameter | None, places: list[str]) -> None:
        """Add that an argument is not at its place any more."""
        if new is not None and (new.name not in places or places.index(new.name) != index):
            place = f"argument {places.index(new.name) + 1}" if new.name in places else "a keyword"
            hint, subject = f"Give it by name: `{new.name}=`.", f"{subject}.{new.field.wire}"
            self.of[name].append(Change("changed", "type-changed", subject, f"argument {index + 1}", place, hint))

    def _guarded(self, stub: Stub, heir: Stub) -> None:
        """Add that the other side, or this one, must declare more than before."""
        old, new = stub.method.capability(stub.sender), heir.method.capability(heir.sender)
        if new is not None and new != old:
            owner, _, path = new.partition(".")
            cause = self._causes.at([f"{owner.capitalize()}Capabilities.{path}"])
            subject, fingerprint = (cause.subject, cause.fingerprint) if cause else (heir.message, "")
            hint = f"It needs the capability `{path}` of the {owner} now, and fails without it."
            words = f"needs {old}" if old else "needs no capability", f"needs {new}"
            self.of[stub.name].append(Change("changed", "capability-added", subject, *words, hint, fingerprint))

    def _walk(self, stub: Stub, heir: Stub) -> None:
        if stub.short == heir.short and not self._returns(stub.item, heir.item):
            self._answers(stub, self._words(stub.item, heir.item))

    # --- handlers and constants ---------------------------------------------------------------------------------

    def _handler(self, stub: Stub, heir: Stub) -> None:
        """Add what became of a handler; an override may say what it takes, `(params)`, and what it answers, `->`."""
        old, new = stub.method, heir.method
        appears = (old.params is None) != (new.params is None)
        takes = _never if appears else partial(self._returns, narrow=new.params)
        if appears or not self._returns(old.params, new.params):
            cause = self._causes.of_type(_name_of(old.params)) or self._causes.of_type(old.definition)
            words, default = self._words(old.params, new.params), ("type-changed", f"{old.definition}.params")
            hint = f"Take {words[1]}." if new.params is not None else "Take no params."
            self._add(f"{stub.name}(params)", "changed", cause, default, words, takes, hint)
        if not self._accepts(_answer(new), _answer(old)):
            words = _words(_answer(old)), _words(_answer(new))
            self._answers(stub, words, "->", partial(self._accepts, _answer(new)))

    def _question(self, params: str, stub: Stub) -> None:
        heir = self._new.questions.get(self._names.get(params, ""))
        if heir is None:
            self._gone(stub)
        elif not self._returns(stub.method.result, heir.method.result):
            self._answers(stub, self._words(stub.method.result, heir.method.result))
        if not self._new.questions:
            self.of.setdefault("Context.ask_params", self.of[stub.name][:1])

    def _constant(self, stub: Stub, heir: Stub) -> None:
        """Add what became of a constant in `methods.py`."""
        old, new = stub.method, heir.method
        plain = (old.senders, old.carrier) == (new.senders, new.carrier)
        pairs = [(old.params, new.params), (old.result, new.result), (_answer(old), _answer(new))]
        if stub.short == heir.short and not (plain and all(self._equal(*pair) for pair in pairs)):
            cause = self._causes.at([stub.message]) or self._causes.of_type(old.definition)
            self._add(stub.name, "changed", cause, ("type-changed", stub.message), (_contract(old), _contract(new)))

    def _error(self, name: str) -> None:
        """Add what became of a constant in `errors.py`."""
        error, heir = self.old.errors[name], self._new.errors.get(name)
        rule, subject = "error-code-removed", f"{(heir or error).code} {error.name}"
        cause = self._causes.of(subject)
        if heir is not None:
            if heir.code != error.code:
                words = str(error.code), str(heir.code)
                self._add(f"errors.{name}", "changed", cause, ("error-code-renumbered", subject), words)
            return
        same = next((other for other, known in self._new.errors.items() if known.code == error.code), "")
        self._add(f"errors.{name}", "renamed" if same else "gone", cause, (rule, subject), (name, same))

    # --- messages -----------------------------------------------------------------------------------------------

    def _gone(self, stub: Stub) -> None:
        rule = "request-method-removed" if stub.method.kind == "request" else "notification-removed"
        words, new = (stub.short.partition("(")[0], ""), self._new.protocol.revision
        is_handler = SENDERS.get(stub.owner) != stub.sender and stub.owner in RECEIVERS
        hint = f"Leave the handler out: no {stub.sender} sends it in {new}." if is_handler else ""
        hint = hint or f"Leave it out: {new} has no such message."
        self._add(stub.name, "gone", self._causes.of(stub.message), (rule, stub.message), words, hint=hint)

    def _answers(
        self, stub: Stub, words: tuple[str, str], suffix: str = "", tolerates: Callable[[Type], bool] = _never
    ) -> None:
        cause = self._causes.within(stub.message) or self._causes.of_name(_name_of(stub.method.result))
        said = f"answers {words[0]}", f"answers {words[1]}"
        default = "type-changed", stub.message
        self._add(stub.name + suffix, "changed", cause, default, said, tolerates, gives=bool(suffix))

    # --- types in words -----------------------------------------------------------------------------------------

    def _equal(self, old: Type | None, new: Type | None) -> bool:
        return self._accepts(new, old) and self._returns(old, new)

    def _words(self, old: Type | None, new: Type | None) -> tuple[str, str]:
        """Describe two types; what stands behind a name, where both have the same."""
        words = _words(old), _words(new)
        if old is None or new is None or words[0] != words[1]:
            return words
        behind = _words(self.old.protocol.resolve(old)), _words(self._new.protocol.resolve(new))
        if behind[0] != behind[1]:
            return behind
        return f"{words[0]} of {self.old.protocol.revision}", f"{words[1]} of {self._new.protocol.revision}"

    def _field_words(self, old: Field | None, new: Field) -> tuple[str, str]:
        words = self._words(old.type if old is not None else None, new.type)
        optional = ["" if one is None or one.required else ", optional" for one in (old, new)]
        return (words[0] + optional[0] if old is not None else "", words[1] + optional[1])


def _change(
    kind: Kind,
    cause: Finding | None,
    default: tuple[str, str],
    words: tuple[str, str],
    tolerates: Callable[[Type], bool] = _never,
) -> Change:
    if cause is None:
        return Change(kind, *default, *words, RULES[default[0]].hint, tolerates=tolerates)
    hint = RULES[cause.rule].hint if cause.gate else cause.hint  # code uses it, so it does matter
    return Change(kind, cause.rule, cause.subject, *words, hint, cause.fingerprint, tolerates)


def _names(parameters: list[Parameter] | None) -> list[str]:
    return [one.name for one in parameters] if parameters is not None else ["params"]


def _positional(method: Method, parameters: list[Parameter] | None) -> list[str]:
    """The names of the arguments that may be given by position."""
    if parameters is None:
        return _names(None)
    known = calls.positional(method, tuple(one.field for one in parameters))
    return [one.name for one in parameters if one.field in known]


def _name_of(type: Type | None) -> str:
    """The name of a definition that params or a result are; empty where they have none."""
    return type.name if isinstance(type, Ref) else ""


def _answer(method: Method) -> Type | None:
    """Everything that may answer a request; nothing answers a notification."""
    return Union(tuple(answers(method))) if answers(method) else None


def _words(type: Type | None) -> str:
    return describe(type) if type is not None else "nothing"


def _contract(method: Method) -> str:
    carrier = "" if method.carrier == "message" else f", {method.carrier}"
    return f"{method.sender}: {_words(method.params)} -> {_words(_answer(method))}{carrier}"
