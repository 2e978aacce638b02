"""Models of the contract."""

from typing import Literal

from mcp_bindgen import app
from mcp_bindgen.runtime import Number
from mcp_bindgen.runtime.model.scalars import Integer, Nullable


class GetForecastInput(app.Model, extra="forbid"):
    city: str
    days: Integer = 3
    unit: Nullable[Literal["celsius", "kelvin"]] = None


class GetForecastOutput(app.Model):
    summary: str
    temperatures: list[Number]
    unit: str = "celsius"


class SayInput(app.Model):
    what: str


class WhoInput(app.Model):
    pass


class SlowInput(app.Model):
    pass


class GreetingArguments(app.Model):
    name: str
    style: Literal["formal", "friendly", "Frosty"] | None = None


class NoteVariables(app.Model):
    id: str


class DeepVariables(app.Model):
    path: str


class FindVariables(app.Model):
    kind: Literal["city", "country"]
    q: str | None = None
    limit: str | None = None
