"""Compare the variants of two types: pair corresponding variants, and note unpaired ones."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mcp_bindgen.ir.model import AnyValue, Array, Const, Map, Object, Ref, Scalar, Type
from mcp_bindgen.spec.json import is_json_type

from .location import HOW, NEW, OLD, SIDES, Change, Location, only
from .normalize import category
from .scalars import limit_differences, scalar_differences
from .sides import Sides

_MIN_SIMILARITY = 0.5


class UnionVariants:
    """Variants of two types in one place.

    Args:
        sides: Both revisions.
        location: The place.
        olds: Variants of the old type only.
        news: Variants of the new type only.
        common: Variants of both types.

    Attributes:
        objects: Pairs of objects to compare by member.
        places: Places inside to compare.
    """

    def __init__(
        self, sides: Sides, location: Location, olds: Sequence[Type], news: Sequence[Type], common: Sequence[Type]
    ) -> None:
        self.sides, self.location = sides, location
        self.objects: list[tuple[Type, Type]] = []
        self.places: list[Location] = []
        self.left, self.common = [list(olds), list(news)], list(common)
        self.shared = bool(common)

    def compare(self) -> None:
        """Note all differences."""
        if any(isinstance(form, AnyValue) for form in self.common):
            return
        free = [any(isinstance(form, AnyValue) for form in forms) for forms in self.left]
        if any(free):
            self.whole("type-narrowed" if free[OLD] else "type-widened")
            return
        self.null()
        self.constants()
        self.scalars()
        self.arrays()
        self.pair_objects()
        self.rest()

    def whole(self, rule: str, *, confused: bool = False) -> None:
        """Note a change of the type as a whole."""
        descriptions = self.sides.describe(self.location)
        self.sides.changes.append(Change(rule, self.location, descriptions, self.location.types, confused=confused))

    # --- null and constants ---------------------------------------------------------------------------------------

    def null(self) -> None:
        """Compare nullability: null counts as a property of a type, not as a variant."""
        for side, rule in enumerate(("became-non-nullable", "became-nullable")):
            forms, others = self.left[side], [*self.left[1 - side], *self.common]
            nulls = [form for form in forms if isinstance(form, Scalar) and form.kind == "null"]
            if nulls and len(forms) + len(self.common) > len(nulls) and others:
                self.left[side] = _without(forms, nulls)
                self.whole(rule)
                self.shared = True

    def constants(self) -> None:
        """Compare constants with constants, or with a scalar that replaces them."""
        olds, news, common = (
            [form for form in forms if isinstance(form, Const)] for forms in (*self.left, self.common)
        )
        if bool(olds) != bool(news) and not common:
            self.scalar_for(OLD if olds else NEW, olds or news)
            return
        self.take(olds, news)
        if len(olds) == len(news) == 1 and not common:
            self.sides.changes.append(
                Change("const-changed", self.location, (_text(olds[0]), _text(news[0])), (olds[0], news[0]))
            )
            return
        for side, forms in enumerate((olds, news)):
            for form in forms:
                self.single(f"enum-value-{HOW[side]}", side, form, _text(form), self.location)

    def scalar_for(self, side: int, constants: list[Const]) -> None:
        """Note a scalar that replaces constants, or the inverse."""
        mine, others = self.left[side], self.left[1 - side]
        values = [value for constant in constants for value in constant.values]
        for form in [form for form in others if isinstance(form, Scalar) and not form.constraints]:
            if all(is_json_type(value, form.kind) for value in values):
                others.remove(form)
                self.left[side] = _without(mine, constants)
                one, several = (("const-removed", "type-widened"), ("const-added", "type-narrowed"))[side]
                self.whole(one if len(constants) == 1 else several)
                self.shared = True
                return

    # --- scalars, arrays, objects -----------------------------------------------------------------------------------

    def scalars(self) -> None:
        """Compare scalars of the same JSON type."""
        olds, news = ([form for form in forms if isinstance(form, Scalar)] for forms in self.left)
        for old in olds:
            for new in news:
                if category(old) == category(new) and old in self.left[OLD]:
                    self.take([old], [new])
                    for rule, descriptions in scalar_differences(old, new):
                        self.sides.changes.append(Change(rule, self.location, descriptions, (old, new)))

    def arrays(self) -> None:
        """Compare arrays, in their order."""
        olds, news = ([form for form in forms if isinstance(form, Array)] for forms in self.left)
        for old, new in zip(olds, news, strict=False):
            self.take([old], [new])
            for rule, descriptions in limit_differences(old, new):
                self.sides.changes.append(Change(rule, self.location, descriptions, (old, new)))
            self.places.append(self.location.below("form", "", old, new).below("items", "", old.items, new.items))

    def pair_objects(self) -> None:
        """Pair objects: the only object of each side, or similar objects."""
        resolve = [protocol.resolve for protocol in self.sides.protocols]
        olds, news = (
            [form for form in self.left[side] if isinstance(resolve[side](form), Object | Map)] for side in SIDES
        )
        if len(olds) == len(news) == 1 and not self.common:
            self.take(olds, news)
            self.objects.append((resolve[OLD](olds[0]), resolve[NEW](news[0])))
            return
        scores: dict[tuple[int, int], float] = {
            (i, j): score
            for i, old in enumerate(olds)
            for j, new in enumerate(news)
            if (score := self.similarity(old, new)) >= _MIN_SIMILARITY
        }
        while scores:
            i, j = max(scores, key=lambda pair: (scores[pair], -pair[0], -pair[1]))
            self.take([olds[i]], [news[j]])
            self.places.append(self.location.below("form", self.form_name(NEW, news[j]), olds[i], news[j]))
            scores = {pair: score for pair, score in scores.items() if pair[0] != i and pair[1] != j}

    def rest(self) -> None:
        """Note variants without a counterpart; another variant of the other side may accept their values."""
        if all(self.left) and not self.shared:
            self.whole("type-changed")
            return
        for side, forms in enumerate(self.left):
            for form in list(forms):
                if name := self.form_name(side, form):
                    forms.remove(form)
                    below = self.location.below("form", name, form, form)
                    self.single(f"union-member-{HOW[side]}", side, form, name, below)
        if all(self.left):
            self.whole("type-changed")
        elif any(self.left):
            side = OLD if self.left[OLD] else NEW
            confused = all(self.is_accepted(side, form) for form in self.left[side])
            self.whole(("type-narrowed", "type-widened")[side], confused=confused)

    def single(self, rule: str, side: int, form: Type, name: str, location: Location) -> None:
        """Note a variant without a counterpart."""
        descriptions, types = only(side, name, ""), only(side, form, None)
        self.sides.changes.append(Change(rule, location, descriptions, types, confused=self.is_accepted(side, form)))

    def is_accepted(self, side: int, form: Type) -> bool:
        """Return whether the type of the other side accepts the values of a variant without a counterpart."""
        return self.sides.accepting[1 - side].accepts(self.location.types[1 - side], form)

    # --- helpers ----------------------------------------------------------------------------------------------------

    def take(self, olds: Sequence[Type], news: Sequence[Type]) -> None:
        """Remove paired variants from the remaining ones."""
        self.left = [_without(self.left[OLD], olds), _without(self.left[NEW], news)]
        self.shared = self.shared or bool(olds and news)

    def form_name(self, side: int, form: Type) -> str:
        """Return the name of a variant: its definition or the definition of its items; empty for plain types."""
        if isinstance(form, Ref):
            return form.name
        if isinstance(form, Array):
            item = self.sides.forms[side].named(form.items)
            return self.sides.forms[side].alias(form) or (f"{item}[]" if item else "")
        return "object" if isinstance(form, Object) else ""

    def similarity(self, old: Type, new: Type) -> float:
        """Return the similarity of two objects, from 0 to 1; 0 if different constants tag them.

        Unmatched definitions are similar only with a common tag.
        """
        protocols, forms = self.sides.protocols, self.sides.forms
        one, other = protocols[OLD].resolve(old), protocols[NEW].resolve(new)
        if isinstance(one, Map) or isinstance(other, Map):
            return float(isinstance(one, Map) and isinstance(other, Map))
        assert isinstance(one, Object)
        assert isinstance(other, Object)
        mine, theirs = ({field.wire: field.type for field in type.fields} for type in (one, other))
        shared = mine.keys() & theirs.keys()
        tags = {mine[wire] == theirs[wire] for wire in shared if _is_tag(mine[wire]) and _is_tag(theirs[wire])}
        if False in tags:
            return 0.0
        if not tags and forms[OLD].named(old) and forms[NEW].named(new):
            return 0.0
        return 2 * len(shared) / max(len(mine) + len(theirs), 1)


def _is_tag(type: Type) -> bool:
    return isinstance(type, Const) and len(type.values) == 1


def _without(forms: Sequence[Type], taken: Sequence[Type]) -> list[Type]:
    """Return `forms` without the `taken` ones, compared by identity: in Python, the constants 1 and true are equal."""
    return [form for form in forms if not any(form is other for other in taken)]


def _text(constant: Const) -> str:
    (value,) = constant.values
    return json.dumps(value, ensure_ascii=False)
