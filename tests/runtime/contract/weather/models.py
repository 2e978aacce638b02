"""The models of the contract."""

from typing import Literal

from mcp_bindgen import app as contract
from mcp_bindgen.runtime import Number
from mcp_bindgen.runtime.model.scalars import Integer, Nullable


class GetForecastInput(contract.Model, extra="forbid"):
    city: str
    days: Integer = 3
    unit: Nullable[Literal["celsius", "kelvin"]] = None


class GetForecastOutput(contract.Model):
    summary: str
    temperatures: list[Number]
    unit: str = "celsius"


class SayInput(contract.Model):
    what: str


class WhoInput(contract.Model):
    pass


class SlowInput(contract.Model):
    pass


class GreetingArguments(contract.Model):
    name: str
    style: Literal["formal", "friendly", "Frosty"] | None = None


class NoteVariables(contract.Model):
    id: str


class DeepVariables(contract.Model):
    path: str


class FindVariables(contract.Model):
    kind: Literal["city", "country"]
    q: str | None = None
    limit: str | None = None
