"""What becomes of the types of the old bindings and of their fields."""

from __future__ import annotations

from functools import cache

from mcp_bindgen.protocol.model import Field

from .effect import Effect, effect
from .pair import Pair
from .views import View, fits, suits

Effects = tuple[Effect, ...]


class TypeEffects:
    """What becomes of types.

    Args:
        pair: The bindings of both revisions.
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self.name = cache(self._name)
        self.read = cache(self._read)
        self.written = cache(self._written)
        self.needed = cache(self._needed)

    def _name(self, definition: str) -> Effects:
        """What becomes of a definition's name."""
        pair, cause = self.pair, self.pair.causes.of_name(definition)
        old, new = pair.old.protocol.definitions, pair.new.protocol.definitions
        heir = pair.names.get(definition)
        if heir is None and definition not in new:
            return (effect("gone", cause, "definition-removed", definition, definition, ""),)
        if heir is not None and heir != definition:
            return (effect("renamed", cause, "definition-renamed", definition, definition, heir),)
        words = pair.words(old[definition].type, new[definition].type)
        if heir is None:
            return (effect("changed", cause, "definition-redefined", definition, *words),)
        before, after = pair.old.object(definition), pair.new.object(definition)
        both = before is not None and after is not None
        neither = before is None and after is None
        if both or (neither and pair.before.of(old[definition].type) == pair.after.of(new[definition].type)):
            return ()
        return (effect("changed", pair.causes.of_type(definition), "type-changed", definition, *words),)

    def _read(self, definition: str, name: str) -> Effects:
        """What becomes of reading a field."""
        field = self.pair.old.fields(definition)[name]
        heir = self.pair.successors(definition).get(field.wire)
        same = heir is not None and fits(self.pair.after.read(heir), self.pair.before.read(field))
        return self._field(definition, field, heir, same=same)

    def _written(self, definition: str, name: str, given: View | None = None) -> Effects:
        """What becomes of giving a field to the constructor; nothing where the class itself is gone, which says it.

        `given` is what it is given, where that is known better than that it fits the field.
        """
        if self.pair.heir(definition) is None:
            return ()
        field = self.pair.old.fields(definition)[name]
        heir = self.pair.successors(definition).get(field.wire)
        same = heir is not None and suits(given, self.pair.before.of(field.type), self.pair.after.read(heir))
        return self._field(definition, field, heir, same=same)

    def _field(self, definition: str, field: Field, heir: Field | None, *, same: bool) -> Effects:
        causes, subject = self.pair.causes, f"{definition}.{field.wire}"
        wire = heir.wire if heir is not None else field.wire
        cause = causes.of_member(definition, wire, heir.type if heir is not None else None)
        if heir is None:
            if self.pair.heir(definition) is None:
                cause = causes.of_name(definition)
            rule = f"field-removed-{'required' if field.required else 'optional'}"
            return (effect("gone", cause, rule, subject, field.name, ""),)
        if heir.name != field.name:
            return (effect("renamed", cause, "field-renamed", subject, field.name, heir.name),)
        if same:
            return ()
        return (effect("changed", cause, "type-changed", subject, *self.pair.field_words(field, heir)),)

    def _needed(self, definition: str) -> dict[str, Effect]:
        """What a constructor needs now and did not need before, by its name in Python."""
        old = {field.wire: field for field in self.pair.old.fields(definition).values()}
        found: dict[str, Effect] = {}
        for wire, field in self.pair.successors(definition).items():
            was = old.get(wire)
            if not _needs(field) or (was is not None and _needs(was)):
                continue
            rule = "field-became-required" if was is not None else "field-added-required"
            cause = self.pair.causes.of_member(definition, field.wire)
            words = self.pair.field_words(was, field)
            found[field.name] = effect("needed", cause, rule, f"{definition}.{field.wire}", *words)
        return found


def _needs(field: Field) -> bool:
    return field.required and field.default is None
