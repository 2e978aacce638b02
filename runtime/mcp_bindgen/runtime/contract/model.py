"""The base of the models of a contract."""

from __future__ import annotations

from typing import ClassVar

from ..core import model


class Model(model.Model):
    """A JSON object of a contract.

    It is like the objects of the protocol, but a default is what JSON Schema calls one: a field that is absent reads as
    it, and is not written, whether the object came from the wire or was made here. Only what is required and `Constant`
    is filled in by the constructor.
    """

    __defaults_are_required__: ClassVar[bool] = False
