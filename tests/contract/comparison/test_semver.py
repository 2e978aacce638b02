"""The version that a changed contract demands, and the call sites that it breaks."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_bindgen.contract.comparison.compare import compare_contracts
from mcp_bindgen.contract.comparison.semver import Part, Version, decisive
from mcp_bindgen.contract.document import contract_of
from mcp_bindgen.drift.callers import callers
from mcp_bindgen.spec import BadInput
from tests.harness.commands import complaint, inside, save

Document = dict[str, Any]

TEXT = {"type": "string"}


def record(*required: str, **properties: Any) -> Document:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


WEATHER: Document = {
    "revision": "2025-11-25",
    "serverInfo": {"name": "weather", "version": "1.2.3"},
    "tools": [
        {
            "name": "forecast",
            "description": "Forecast of a city.",
            "inputSchema": record("city", city=TEXT, unit={"enum": ["C", "F"]}, days={"type": "integer"}),
            "outputSchema": record("sky", sky=TEXT, wind={"type": "number"}),
        },
        {"name": "alarm", "inputSchema": record(city=TEXT)},
    ],
}


def changed(change: Callable[[Document], object]) -> Document:
    found = copy.deepcopy(WEATHER)
    change(found["tools"][0])
    return found


def retyped(**properties: Document) -> Callable[[Document], None]:
    """Return a change of the arguments."""
    return lambda tool: tool["inputSchema"]["properties"].update(properties)


CHANGES: list[tuple[str, Any, Part, str]] = [
    ("nothing", lambda tool: None, Part.NONE, ""),
    ("text", lambda tool: tool.update(description="Sky"), Part.PATCH, "text-changed"),
    ("annotation", lambda tool: tool.update(annotations={"readOnlyHint": True}), Part.PATCH, "text-changed"),
    ("notation", retyped(city={"type": ["string"]}), Part.PATCH, "arguments-notation"),
    ("new argument", retyped(hour={"type": "integer"}), Part.MINOR, "arguments-compatible"),
    ("wider argument", retyped(city={}), Part.MINOR, "arguments-compatible"),
    ("default", retyped(days={"type": "integer", "default": 1}), Part.MINOR, "arguments-compatible"),
    ("format", retyped(city={"type": "string", "format": "uri"}), Part.MINOR, "arguments-compatible"),
    ("limit", retyped(days={"type": "integer", "maximum": 9}), Part.MAJOR, "arguments-breaking"),
    ("needed", lambda tool: tool["inputSchema"].update(required=["city", "days"]), Part.MAJOR, "arguments-breaking"),
    ("scope", lambda tool: tool.update({"x-mcp-scopes": ["read"]}), Part.MAJOR, "scope-added"),
    ("no output", lambda tool: tool.pop("outputSchema"), Part.MAJOR, "output-schema-removed"),
    ("name", lambda tool: tool.update(name="sky"), Part.MAJOR, "tool-removed"),
]


@pytest.mark.parametrize(("change", "part", "rule"), [pytest.param(*rest, id=name) for name, *rest in CHANGES])
def test_a_change_determines_the_version_part_to_increment(
    change: Callable[[Document], object], part: Part, rule: str
) -> None:
    reason = decisive(compare_contracts(contract_of(WEATHER), contract_of(changed(change)), callers()))
    assert reason.part is part, reason
    assert not rule or reason.rule == rule


def test_bumped_versions_follow_semver() -> None:
    for version, patch, minor, major in [
        ("1.2.3", "1.2.4", "1.3.0", "2.0.0"),
        ("0.2.3", "0.2.4", "0.2.4", "0.3.0"),
        ("1.2.3-rc.1+build.5", "1.2.3", "1.3.0", "2.0.0"),
        ("1.2.0-rc.1", "1.2.0", "1.2.0", "2.0.0"),
        ("2.0.0-rc.1", "2.0.0", "2.0.0", "2.0.0"),
        ("2026.10.19", "2026.10.20", "2026.11.0", "2027.0.0"),
    ]:
        found = [str(Version.of(version).bumped(part)) for part in (Part.PATCH, Part.MINOR, Part.MAJOR)]
        assert found == [patch, minor, major]


def test_invalid_versions_are_refused() -> None:
    for version in ["1.0", "v1.0.0", "01.2.3", "1.2.3-", "", "1.2.3.4"]:
        with pytest.raises(BadInput, match="is no version of SemVer"):
            Version.of(version)


def test_contract_bump_enforces_the_demanded_version(tmp_path: Path) -> None:
    old = save(tmp_path / "old.json", WEATHER)
    after = changed(retyped(unit={"enum": ["C"]}))
    for version, code in (("1.2.4", 1), ("2.0.0", 0), ("2.0.0-rc.1", 1), ("3.1.0", 0)):
        after["serverInfo"]["version"] = version
        new = save(tmp_path / "new.json", after)
        done = inside("contract", "bump", old, new, "--enforce")
        assert (done.returncode, done.stdout) == (code, "2.0.0\n")
        assert done.stderr.startswith("major: tool forecast refuses arguments that were valid: argument unit ")
        assert inside("contract", "bump", old, new).returncode == 0
    found = json.loads(inside("contract", "bump", old, new, "--json", "--released", "0.9.1").stdout)
    demanded = {"old": "0.9.1", "new": "3.1.0", "demanded": "0.10.0", "part": "major", "enough": True}
    assert demanded.items() <= found.items()
    nameless = save(tmp_path / "nameless.json", {"tools": WEATHER["tools"]})
    for words in ((nameless, new), (old, nameless, "--enforce"), (old, new, "--released", "one")):
        complaint("contract", "bump", *words)


CODE = """from .weather import WeatherClient


async def main(unit: str) -> None:
    async with WeatherClient.connect("weather") as weather:
        print(await weather.forecast(city="Oslo"))
        print(await weather.forecast(city="Oslo", unit="F"))
        print(await weather.forecast(
            city="Oslo", unit="C"))
        print(await weather.forecast(city="Oslo", days=5))
        await weather.alarm(city="Oslo")
        found = await weather.forecast(city="Bergen")
        print(found.wind)


def other(forecast: object) -> None:
    print(forecast)
"""


@pytest.mark.full
def test_contract_diff_reports_the_call_sites_that_break(tmp_path: Path) -> None:
    def change(tool: Document) -> None:
        retyped(unit={"enum": ["C", "K"]}, days={"type": "integer", "maximum": 3})(tool)
        del tool["outputSchema"]["properties"]["wind"]

    after = changed(change)
    del after["tools"][1]
    old, new = save(tmp_path / "old.json", WEATHER), save(tmp_path / "new.json", after)
    package = tmp_path / "src" / "app"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "main.py").write_text(CODE, "utf-8")
    source = tmp_path / "src"
    assert "there is no typed client of this server" in complaint("contract", "diff", old, new, "--uses", source)
    assert inside("client", "--from", old, "--out", package / "weather.py").returncode == 0
    before = {path: path.read_bytes() for path in package.iterdir() if path.is_file()}
    report = json.loads(inside("contract", "diff", old, new, "--uses", source, "--format", "json").stdout)
    found = [(one["line"], one["call"], one["certain"]) for one in report["uses"]]
    assert found == [
        (7, "WeatherClient.forecast", True),
        (8, "WeatherClient.forecast", False),
        (10, "WeatherClient.forecast", False),
        (11, "WeatherClient.alarm", True),
        (13, None, True),
    ]
    assert all(one["file"] == str(package / "main.py") for one in report["uses"])
    done = inside("contract", "diff", old, new, "--uses", source, "--format", "github", code=1)
    assert f"::error file={package / 'main.py'},line=11," in done.stdout
    assert {path: path.read_bytes() for path in package.iterdir() if path.is_file()} == before
    same = inside("contract", "diff", old, old, "--uses", source)
    assert (same.returncode, same.stdout.split()[-3:]) == (0, ["that", "break:", "none"])
