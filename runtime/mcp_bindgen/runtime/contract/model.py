"""The base of the models of a contract."""

from __future__ import annotations

from typing import ClassVar

from ..core import model


class Model(model.Model):
    """A JSON object of a contract.

    It is like the objects of the protocol, but a default is a default: a field that is absent on the wire reads as it,
    and stays absent when the object is written again. What a constructor fills in is written.
    """

    __defaults_are_required__: ClassVar[bool] = False
