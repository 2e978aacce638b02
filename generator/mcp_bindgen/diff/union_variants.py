"""Compare what a value may be: pairs the forms of two types that correspond, and says what is left."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mcp_bindgen.protocol.model import Array, Const, Free, Map, Object, Ref, Scalar, Type

from .location import Change, Location
from .normalize import category, is_value
from .scalars import limit_differences, scalar_differences
from .sides import Sides

_SIMILAR = 0.5

Pair = tuple[Type, Type, Location]
"""What the old and the new revision have in a place."""


class UnionVariants:
    """The forms of two types in one place.

    Args:
        sides: Both revisions.
        location: The place.
        old: The old type as a whole.
        new: The new type as a whole.
        olds: The forms that only the old type has.
        news: The forms that only the new type has.
        common: The forms that both have.

    Attributes:
        objects: The pairs of objects that are left to compare, member by member.
        places: The places inside that are left to compare.
    """

    def __init__(
        self,
        sides: Sides,
        location: Location,
        old: Type,
        new: Type,
        olds: Sequence[Type],
        news: Sequence[Type],
        common: Sequence[Type],
    ) -> None:
        self.sides, self.location = sides, location
        self.objects = list[Pair]()
        self.places = list[Pair]()
        self.old, self.new = old, new
        self.olds, self.news, self.common = list(olds), list(news), list(common)
        self.shared = bool(common)

    def compare(self) -> None:
        """Note every difference."""
        if any(isinstance(form, Free) for form in self.common):
            return
        if any(isinstance(form, Free) for form in (*self.olds, *self.news)):
            self.whole("type-narrowed" if any(isinstance(form, Free) for form in self.olds) else "type-widened")
            return
        self.null()
        self.constants()
        self.scalars()
        self.arrays()
        self.pair_objects()
        self.rest()

    def whole(self, rule: str) -> None:
        """Note a change of the type as a whole."""
        words = self.sides.olds.words(self.old), self.sides.news.words(self.new)
        self.sides.note(rule, self.location, *words, self.old, self.new)

    # --- null and constants ---------------------------------------------------------------------------------------

    def null(self) -> None:
        """Compare nullability: null is a property of a type rather than a variant of its own."""
        for forms, others, rule in (
            (self.olds, [*self.news, *self.common], "became-non-nullable"),
            (self.news, [*self.olds, *self.common], "became-nullable"),
        ):
            nulls = [form for form in forms if _is_null(form)]
            if nulls and len(forms) + len(self.common) > len(nulls) and others:
                forms[:] = _without(forms, nulls)
                self.whole(rule)
                self.shared = True

    def constants(self) -> None:
        """Compare constants: with each other, or with the scalar that takes their place."""
        olds = [form for form in self.olds if isinstance(form, Const)]
        news = [form for form in self.news if isinstance(form, Const)]
        common = [form for form in self.common if isinstance(form, Const)]
        if olds and not news and not common:
            self.scalar_for(olds, self.olds, self.news, "const-removed", "type-widened")
        elif news and not olds and not common:
            self.scalar_for(news, self.news, self.olds, "const-added", "type-narrowed")
        elif len(olds) == len(news) == 1 and not common:
            self.take(olds, news)
            words = _text(olds[0]), _text(news[0])
            self.sides.note("const-changed", self.location, *words, olds[0], news[0])
        else:
            self.take(olds, news)
            for form in olds:
                self.sides.note("enum-value-removed", self.location, _text(form), "", form, None)
            for form in news:
                self.sides.note("enum-value-added", self.location, "", _text(form), None, form)

    def scalar_for(self, constants: list[Const], mine: list[Type], others: list[Type], one: str, several: str) -> None:
        """Note that a scalar and some of its values take each other's place."""
        for form in others:
            if isinstance(form, Scalar) and not form.constraints and all(is_value(form, *c.values) for c in constants):
                others.remove(form)
                mine[:] = _without(mine, constants)
                self.whole(one if len(constants) == 1 else several)
                self.shared = True
                return

    # --- scalars, arrays, objects -----------------------------------------------------------------------------------

    def scalars(self) -> None:
        """Compare scalars of the same JSON type."""
        for old in [form for form in self.olds if isinstance(form, Scalar)]:
            for new in [form for form in self.news if isinstance(form, Scalar)]:
                if category(old) == category(new) and old in self.olds:
                    self.take([old], [new])
                    for rule, before, after in scalar_differences(old, new):
                        self.sides.note(rule, self.location, before, after, old, new)

    def arrays(self) -> None:
        """Compare arrays, in their order."""
        olds = [form for form in self.olds if isinstance(form, Array)]
        news = [form for form in self.news if isinstance(form, Array)]
        for old, new in zip(olds, news, strict=False):
            self.take([old], [new])
            for rule, before, after in limit_differences(old, new):
                self.sides.note(rule, self.location, before, after, old, new)
            location = self.location.below("form", "", old, new)
            self.places.append((old.items, new.items, location.below("items", "", old.items, new.items)))

    def pair_objects(self) -> None:
        """Compare objects: the only ones on both sides, or those that look alike."""
        olds = [form for form in self.olds if self.is_object(form, old=True)]
        news = [form for form in self.news if self.is_object(form, old=False)]
        if len(olds) == len(news) == 1 and not self.common:
            self.take(olds, news)
            one, other = self.sides.old.resolve(olds[0]), self.sides.new.resolve(news[0])
            self.objects.append((one, other, self.location))
            return
        scores: dict[tuple[int, int], float] = {
            (i, j): score
            for i, old in enumerate(olds)
            for j, new in enumerate(news)
            if (score := self.similarity(old, new)) >= _SIMILAR
        }
        while scores:
            i, j = max(scores, key=lambda pair: (scores[pair], -pair[0], -pair[1]))
            self.take([olds[i]], [news[j]])
            inside = self.location.below("form", self.form_name(news[j], old=False), olds[i], news[j])
            self.places.append((olds[i], news[j], inside))
            scores = {pair: score for pair, score in scores.items() if pair[0] != i and pair[1] != j}

    def rest(self) -> None:
        """Note the forms that have no counterpart."""
        if self.olds and self.news and not self.shared:
            self.whole("type-changed")
            return
        for forms, old in ((self.olds, True), (self.news, False)):
            for form in list(forms):
                if name := self.form_name(form, old=old):
                    forms.remove(form)
                    self.member(form, name, old=old)
        if self.olds and self.news:
            self.whole("type-changed")
        elif self.olds or self.news:
            self.whole("type-narrowed" if self.olds else "type-widened")

    def member(self, form: Type, name: str, *, old: bool) -> None:
        """Note a form of a union that is gone or has come; it breaks nothing where another form takes its values."""
        sides = self.sides
        rule = "union-member-removed" if old else "union-member-added"
        location = self.location.below("form", name, form, form)
        other, cover = (self.new, sides.into_new) if old else (self.old, sides.into_old)
        confused = cover.covers(other, form)
        words = (name, "") if old else ("", name)
        types = (form, None) if old else (None, form)
        sides.changes.append(
            Change(rule, location.subject, words[0], words[1], location, types[0], types[1], confused=confused)
        )

    # --- helpers ----------------------------------------------------------------------------------------------------

    def take(self, olds: Sequence[Type], news: Sequence[Type]) -> None:
        """Remove paired forms from those that are left."""
        self.olds = _without(self.olds, olds)
        self.news = _without(self.news, news)
        self.shared = self.shared or bool(olds and news)

    def is_object(self, form: Type, *, old: bool) -> bool:
        """Return whether a form is an object of any kind."""
        return isinstance((self.sides.old if old else self.sides.new).resolve(form), Object | Map)

    def form_name(self, form: Type, *, old: bool) -> str:
        """Name a variant: by its definition, or by that of its items; empty for plain types."""
        normalizer = self.sides.olds if old else self.sides.news
        if isinstance(form, Ref):
            return form.name
        if isinstance(form, Array):
            item = normalizer.named(form.items)
            return normalizer.alias(form) or (f"{item}[]" if item else "")
        return "object" if isinstance(form, Object) else ""

    def similarity(self, old: Type, new: Type) -> float:
        """Return how much two objects have in common, from 0 to 1; nothing where a constant tells them apart.

        Two definitions that were not matched are the same here only if a constant says so.
        """
        one, other = self.sides.old.resolve(old), self.sides.new.resolve(new)
        if isinstance(one, Map) or isinstance(other, Map):
            return float(isinstance(one, Map) and isinstance(other, Map))
        assert isinstance(one, Object)
        assert isinstance(other, Object)
        mine, theirs = ({field.wire: field.type for field in type.fields} for type in (one, other))
        shared = mine.keys() & theirs.keys()
        tags = {mine[wire] == theirs[wire] for wire in shared if _is_tag(mine[wire]) and _is_tag(theirs[wire])}
        if False in tags:
            return 0.0
        if not tags and self.sides.olds.named(old) and self.sides.news.named(new):
            return 0.0
        return 2 * len(shared) / max(len(mine) + len(theirs), 1)


def _is_tag(type: Type) -> bool:
    return isinstance(type, Const) and len(type.values) == 1


def _without(forms: Sequence[Type], taken: Sequence[Type]) -> list[Type]:
    """Return `forms` without some of them; by identity, as to Python the constants 1 and true are equal."""
    return [form for form in forms if not any(form is other for other in taken)]


def _is_null(form: Type) -> bool:
    return (isinstance(form, Scalar) and form.kind == "null") or (isinstance(form, Const) and form.values == (None,))


def _text(constant: Const) -> str:
    (value,) = constant.values
    return json.dumps(value, ensure_ascii=False)
