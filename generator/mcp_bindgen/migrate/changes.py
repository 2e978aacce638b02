"""The fate of each name of the old bindings: explanations for the errors of a type checker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property

from mcp_bindgen.conversion.rules import Rules
from mcp_bindgen.diff.finding import RULES, Comparison, Finding
from mcp_bindgen.diff.match import match
from mcp_bindgen.emit.python import naming
from mcp_bindgen.emit.python.calls import RECEIVERS, SENDERS
from mcp_bindgen.ir.model import Field, Type
from mcp_bindgen.ir.text import describe

from .advice import Replacements, advice, member_access
from .bindings import ASKING, Bindings, Parameter, Stub, name_of, shortcuts
from .causes import Causes, new_names
from .recipes import Recipes
from .result import Change, Kind

SHAPE = "params-as-a-whole"
"""The rule of calls that take arguments in one revision and their params as a whole in the other."""

MAPPING = "a mapping with the names of the wire"
"""The type of metadata that a call completes."""


class Changes:
    """The changes between the bindings of two revisions.

    Attributes:
        old: The old bindings.
        new: The new bindings.
        names: Old name -> new name of the definitions that still exist.
        recipes: The rules of `bridges.toml`.
    """

    def __init__(self, comparison: Comparison, rules: Rules) -> None:
        matches = match(comparison.old, comparison.new)
        self.old, self.new = Bindings(comparison.old), Bindings(comparison.new)
        self.names = new_names(comparison.old, comparison.new, matches)
        self.recipes = Recipes(self.old, self.new, self.names, rules)
        self._causes = Causes(comparison, matches, self.names)
        self._replacements = Replacements(self.new)
        self._field_names = {one.subject: one.old for one in comparison.findings if one.rule == "field-renamed"}

    def before(self, name: str) -> list[str]:
        """Return the old names of a definition of the new bindings."""
        return [old for old, new in self.names.items() if new == name]

    @property
    def kept(self) -> set[tuple[str, str]]:
        """The members of new classes that keep their names although a rule moves their values inside of them."""
        moves = self.recipes.moves.items()
        return {(self.names[old], name) for (old, name), move in moves if move.put[0] == move.field.wire}

    # --- names --------------------------------------------------------------------------------------------------

    def definition(self, definition: str) -> Change | None:
        """Return the fate of a type; `None` if the old bindings do not have it."""
        if definition not in self.old.protocol.definitions:
            return None
        cause, heir = self._causes.of_name(definition), self.names.get(definition)
        if heir is None and definition not in self.new.protocol.definitions:
            return self._change("gone", cause, ("definition-removed", definition), (definition, ""))
        if heir is not None and heir != definition:
            words, hint = (definition, heir), f"Use `types.{heir}`."
            return self._change("renamed", cause, ("definition-renamed", definition), words, hint=hint)
        types = self.old.protocol.definitions[definition].type, self.new.protocol.definitions[definition].type
        cause = cause if heir is None else self._causes.of_type(definition)
        return self._change("changed", cause, ("definition-redefined", definition), self._words(*types))

    def error(self, name: str) -> Change | None:
        """Return the fate of a constant in `errors.py`."""
        error, heir = self.old.errors.get(name), self.new.errors.get(name)
        if error is None:
            return None
        default = "error-code-removed", f"{(heir or error).code} {error.name}"
        same = next((other for other, known in self.new.errors.items() if known.code == error.code), "")
        same = same or naming.constant(error.instead)
        return self._change("renamed" if same else "gone", self._causes.of(default[1]), default, (name, same))

    # --- fields -------------------------------------------------------------------------------------------------

    def field(self, definition: str, name: str, *, gives: bool) -> Change | None:
        """Return the fate of a field of a class that code reads, or gives to a constructor."""
        old = next((one for one in self.old.fields(definition) if one.name == name), None)
        if old is None:
            return None
        heir = self.names.get(definition)
        cause = None if heir is not None and self.new.class_of(heir) else self._causes.of_name(definition)
        new = self._successors(definition).get(old.field.wire)
        return self._member(definition, definition, old, new, gives=gives, cause=cause)

    def needed(self, definition: str, name: str) -> Change | None:
        """Return why a constructor needs a field that it did not need before."""
        heirs = self._successors(definition)
        wire, new = next(((wire, one) for wire, one in heirs.items() if one.name == name), (None, None))
        if new is None:
            return None
        was = next((one.field for one in self.old.fields(definition) if one.field.wire == wire), None)
        change = self._needed(definition, definition, was, new)
        if self._replacements.is_metadata(self.names[definition]):
            hint = "A call adds it: give `meta=` a mapping with the names of the wire instead."
            return replace(change, hint=hint)
        return change

    def _needed(self, definition: str, subject: str, was: Field | None, new: Parameter) -> Change:
        rule = "field-became-required" if was is not None else "field-added-required"
        cause = self._causes.of_member(definition, new.field.wire)
        words = self._field_words(was, new.field)
        return self._change(
            "needed", cause, (rule, f"{subject}.{new.field.wire}"), words, hint=advice(rule, gives=True)
        )

    def _member(
        self,
        definition: str,
        subject: str,
        old: Parameter,
        new: Parameter | None,
        *,
        gives: bool,
        cause: Finding | None = None,
    ) -> Change | None:
        wire, subject = (new or old).field.wire, f"{subject}.{old.field.wire}"
        cause = cause or self._causes.of_member(definition, wire, new.field.type if new is not None else None)
        move = self.recipes.moves.get((definition, old.name))
        if move is not None:
            words, hint = (old.name, str(move)), f"`bridges.toml` moves it to `{move}`."
            return self._change("renamed", cause, ("field-renamed", subject), words, hint=hint)
        if new is None:
            rule = f"field-removed-{'required' if old.field.required else 'optional'}"
            if cause is not None and cause.rule == "field-opened":
                words, kept = (f"a field, {old.name}", f"a member without a field, {old.field.wire!r}"), ""
                if not gives:
                    kept = f'Read it by `(x.model_extra or {{}}).get("{old.field.wire}")`: it is there as before, '
                    kept += f"and a constructor takes `{old.name}=` as before."
                return self._change("changed", cause, (rule, subject), words, hint=kept, gives=gives)
            heirs = " or ".join(self._heirs(definition, old))
            hint = "the other side does not know it." if gives else "the other side does not send it."
            hint = f"{'Leave it out' if gives else 'Do without it'}: {hint}"
            hint += f" `{heirs}` may take its place." if heirs else ""
            return self._change("gone", cause, (rule, subject), (old.name, heirs), hint=hint)
        if new.name != old.name:
            return self._change("renamed", cause, ("field-renamed", subject), (old.name, new.name), gives=gives)
        if new.is_metadata:
            words = describe(old.field.type), MAPPING
            hint = f"Give a mapping, `{new.name}={{...}}`: the call adds what every request needs."
            return self._change("changed", cause, ("type-changed", subject), words, hint=hint, gives=gives)
        words = self._field_words(old.field, new.field)
        return self._change("changed", cause, ("type-changed", subject), words, gives=gives)

    def _heirs(self, definition: str, gone: Parameter) -> Iterator[str]:
        """Yield the members of a new class that may take the place of one: new members, required or similar."""
        before = {one.field.wire: one.field.type for one in self.old.fields(definition)}
        for wire, new in self._successors(definition).items():
            one, other = self.old.protocol.resolve(gone.field.type), self.new.protocol.resolve(new.field.type)
            is_similar = one.kind == other.kind or get_close_matches(gone.name, [new.name])
            is_needed = new.field.required and new.field.default is None
            if wire not in before and (is_needed or is_similar):
                yield new.name
            place = new.field.type, gone.field.wire
            if self.new.protocol.field_of(*place) and not self.old.protocol.field_of(before.get(wire), place[1]):
                yield f"{new.name}.{self.new.protocol.attribute(*place)}"

    def _successors(self, definition: str) -> dict[str, Parameter]:
        """Return old wire name -> the field in the new class, for fields that still exist."""
        found: dict[str, Parameter] = {}
        for new in self.new.fields(self.names[definition]) if definition in self.names else ():
            subjects = self._causes.members(definition, new.field.wire)
            was = next((self._field_names[one] for one in subjects if one in self._field_names), new.field.wire)
            found[was] = new
        return found

    # --- calls and handlers -------------------------------------------------------------------------------------

    def member(self, name: str) -> Change | None:
        """Return the fate of a call, a handler or a constant, such as `Client.call_tool`."""
        stub = self.old.stubs.get(name)
        if stub is None:
            return None
        heir = self.new.by_key.get(stub.key)
        if heir is None:
            return self._gone(stub)
        if heir.short != stub.short:
            definition = stub.method.definition
            default = "definition-renamed", definition
            return self._change("renamed", self._causes.of_name(definition), default, (stub.short, heir.short))
        cause = self._causes.within(stub.message) or self._causes.of_name(name_of(stub.method.result))
        words = self._words(stub.method.result, heir.method.result)
        answers = f"answers {words[0]}", f"answers {words[1]}"
        return self._change("changed", cause, ("type-changed", stub.message), answers, gives=stub.role == "handler")

    def params(self, name: str) -> Change | None:
        """Return how the params of a handler changed."""
        stub = self.old.stubs.get(name)
        heir = self.new.by_key.get(stub.key) if stub is not None else None
        if stub is None or heir is None:
            return None
        old, new = stub.method, heir.method
        cause = self._causes.of_type(name_of(old.params)) or self._causes.of_type(old.definition)
        words, default = self._words(old.params, new.params), ("type-changed", f"{old.definition}.params")
        hint = f"Take {words[1]}." if new.params is not None else "Take no params."
        return self._change("changed", cause, default, words, hint=hint)

    def argument(self, name: str, argument: str | int, *, missing: bool = False) -> tuple[str, Change] | None:
        """Return the name and the fate of an argument of a call, by keyword or by position counted from 0.

        `missing` asks why an argument must be given.
        """
        stub = self.old.stubs.get(name)
        heir = self.new.by_key.get(stub.key) if stub is not None else None
        if stub is None or heir is None:
            return None
        olds, news = self.old.arguments(stub.method), self.new.arguments(heir.method)
        if olds is None or news is None:
            return ("params", self._shape(stub, olds, news)) if olds is not news else None
        old = next((one for index, one in enumerate(olds) if argument in (index, one.name)), None)
        definition = name_of(stub.method.params) or name_of(heir.method.params)
        subject = f"{stub.method.definition}.params"
        if old is None or missing or definition not in self.old.protocol.definitions:
            new = next((one for one in news if one.name == argument), None)
            was = old.field if old is not None else None
            return (new.name, self._needed(definition, subject, was, new)) if new is not None else None
        wire = next((new.field.wire for was, new in self._successors(definition).items() if was == old.field.wire), "")
        new = next((one for one in news if one.field.wire == (wire or old.field.wire)), None)
        if new is not None and isinstance(argument, int) and new.name == old.name:
            if new.is_positional and news.index(new) == argument:
                return None
            words = f"argument {argument + 1}", "a keyword"
            change = Change("changed", "type-changed", f"{subject}.{wire}", *words, f"Give it by name: `{new.name}=`.")
            return old.name, change
        found = self._member(definition, subject, old, new, gives=True)
        return (old.name, found) if found is not None else None

    def _shape(self, stub: Stub, old: list[Parameter] | None, new: list[Parameter] | None) -> Change:
        words = [
            f"({', '.join(one.name for one in taken)})" if taken is not None else "(params)" for taken in (old, new)
        ]
        cause = self._causes.of_type(name_of(stub.method.params))
        subject, fingerprint = (cause.subject, cause.fingerprint) if cause else (stub.method.definition, "")
        return Change("changed", SHAPE, subject, words[0], words[1], f"Give {words[1]}.", fingerprint)

    def _gone(self, stub: Stub) -> Change:
        rule = "request-method-removed" if stub.method.kind == "request" else "notification-removed"
        new = self.new.protocol.revision
        hint = f"Leave it out: {new} has no such message."
        if stub.role == "handler":
            hint = f"Leave the handler out: no {stub.sender} sends it in {new}."
        cause = self._causes.of(stub.message)
        return self._change("gone", cause, (rule, stub.message), (stub.short, ""), hint=hint, owner=stub.owner)

    # --- changes that a type checker does not see ----------------------------------------------------------------

    @cached_property
    def gone_handlers(self) -> dict[str, Change]:
        """Handler -> why no message reaches it any more."""
        gone = (one for one in self.old.stubs.values() if one.role == "handler" and one.key not in self.new.by_key)
        return {stub.name: self._gone(stub) for stub in gone}

    @cached_property
    def asking(self) -> dict[str, Change]:
        """Member of `Context` that asks the client -> its change, if handlers run again with the answer."""
        found: dict[str, Change] = {}
        short = shortcuts()
        for stub, heir in self._calls():
            if (stub.method.carrier, heir.method.carrier, stub.owner) == ("message", "embedded", "Context"):
                default = "message-carrier-changed", stub.message
                words = stub.method.carrier, heir.method.carrier
                shortcut = f"`{member_access(short[heir.method.name])}` or " if heir.method.name in short else ""
                hint = f"Ask with {shortcut}`ctx.ask_params(key, params)`: the question travels in the result."
                change = self._change("changed", self._causes.of(stub.message), default, words, hint=hint)
                found[stub.short] = change
                for other in filter(None, (short.get(heir.method.name, "").partition(".")[2], *ASKING)):
                    found.setdefault(other, change)
        return found

    @cached_property
    def guarded(self) -> dict[str, Change]:
        """Call -> the capability that it needs now, or for a shortcut of the runtime that its message is gone."""
        found: dict[str, Change] = {}
        for stub, heir in self._calls():
            old, new = stub.method.capability(stub.sender), heir.method.capability(heir.sender)
            if new is not None and new != old:
                owner, _, path = new.partition(".")
                cause = self._causes.at([f"{owner.capitalize()}Capabilities.{path}"])
                subject, fingerprint = (cause.subject, cause.fingerprint) if cause else (heir.message, "")
                hint = f"It needs the capability `{path}` of the {owner} now, and fails without it."
                words = f"needs {old}" if old else "needs no capability", f"needs {new}"
                found[stub.name] = Change("changed", "capability-added", subject, *words, hint, fingerprint)
        for one in self.old.stubs.values():
            api = shortcuts().get(one.method.name, "")
            if api.startswith(f"{one.owner}.") and one.key not in self.new.by_key:
                found[api] = self._gone(one)
        return found

    def _calls(self) -> Iterator[tuple[Stub, Stub]]:
        for stub in self.old.stubs.values():
            heir = self.new.by_key.get(stub.key)
            if stub.role == "call" and heir is not None:
                yield stub, heir

    # --- explanations -------------------------------------------------------------------------------------------

    def _change(
        self,
        kind: Kind,
        cause: Finding | None,
        default: tuple[str, str],
        words: tuple[str, str],
        *,
        hint: str = "",
        gives: bool | None = None,
        owner: str = "types",
    ) -> Change:
        """Return a change that `cause` explains; the rule and the subject of `default` stand in without a cause.

        `hint` is the advice for the side that has the code, in place of the advice of the rule for both sides. Without
        one, `gives` says whether the code gives a value or reads one.
        """
        if cause is None:
            change = Change(kind, *default, *words, RULES[default[0]].hint)
        else:
            cause_hint = RULES[cause.rule].hint if cause.gate else cause.hint  # the code uses it, so it matters
            change = Change(kind, cause.rule, cause.subject, *words, cause_hint, cause.fingerprint)
        specific = "" if change.hint == RULES[change.rule].hint else change.hint
        if gives is not None and not hint:
            hint, specific = advice(change.rule, gives=gives), ""
        if hint:
            replacement = self._replacements.told(specific, owner)
            change = replace(change, hint=f"{hint} {replacement}".rstrip())
        return change

    def _words(self, old: Type | None, new: Type | None) -> tuple[str, str]:
        """Describe two types; if both have the same name, describe the definitions behind it."""
        words = _words(old), _words(new)
        if old is None or new is None or words[0] != words[1]:
            return words
        behind = _words(self.old.protocol.resolve(old)), _words(self.new.protocol.resolve(new))
        if behind[0] != behind[1]:
            return behind
        return f"{words[0]} of {self.old.protocol.revision}", f"{words[1]} of {self.new.protocol.revision}"

    def _field_words(self, old: Field | None, new: Field) -> tuple[str, str]:
        words = self._words(old.type if old is not None else None, new.type)
        optional = ["" if one is None or one.required else ", optional" for one in (old, new)]
        return (words[0] + optional[0] if old is not None else "", words[1] + optional[1])


def owners() -> tuple[str, ...]:
    """Return the classes that code calls or subclasses."""
    return tuple(dict.fromkeys((*SENDERS, *RECEIVERS)))


def _words(type: Type | None) -> str:
    return describe(type) if type is not None else "nothing"
