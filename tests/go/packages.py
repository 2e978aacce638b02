"""Generated Go packages of all revisions and extensions and of a draft, with a program that reads documents."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.harness.commands import ROOT, inside, save
from tests.harness.forks import PYTHON
from tests.harness.shared import alone
from tests.harness.small_schemas import small

TESTEE = ROOT / "examples" / "testees" / "go" / "testee.go"
LIMITS = {
    "type": "object",
    "additionalProperties": {"type": "integer"},
    "required": ["nullable", "open"],
    "properties": {
        "nullable": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "optional": {"type": ["string", "null"]},
        "open": {},
        "length": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[a-z]*$"},
        "share": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "even": {"type": "integer", "multipleOf": 2, "minimum": -4, "maximum": 4},
        "some": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer", "maximum": 9}},
        "rows": {
            "type": "array",
            "items": {"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 1}},
        },
        "texts": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1}},
        "kinds": {"type": "array", "items": {"const": 'a\\`"'}},
        "a,": {"const": "`"},
        "-": {"enum": ["", "-", "+", "😀", "\ufeff"]},
        "`😀\ufeff": {"type": "string", "pattern": "^😀$"},
        "flag": {"const": True},
        "Extra": {"$ref": "#/$defs/Closed"},
        "extra": {"type": "array", "items": {"type": ["boolean", "null"]}},
        "face": {"type": "string", "pattern": "^😀$"},
        "trees": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Tree"}},
    },
}
"""Members with all limits, and names that Go would write alike."""

DRAFT = small(
    Limits=LIMITS | {"description": "\t- one ``item'' ''\n\n\u200b Next ```text```.\n\nWord\n\n#   A ''''\n\n\ufeff\n"},
    Closed={"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string"}}},
    Tree={"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/Tree"}},
    Forest={"type": "object", "additionalProperties": {"$ref": "#/$defs/Forest"}},
    **{"Face 😀\ufeff": {"const": "😀"}},
)


def needed() -> None:
    """Skip the test if Go is not installed; in CI, fail."""
    if shutil.which("go") is None:
        missing = "Go is not installed; on Debian: apt-get install golang-go"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)


def run(*command: object, folder: Path, given: str = "") -> str:
    """Return the output of a command that must succeed."""
    needed()
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, input=given, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@cache
def packages() -> Path:
    """Return the folder of the packages; one process of a test run generates them for all processes."""
    needed()
    folder = Path(PYTHON).with_name("go")
    with alone(folder.with_name("go-is-generated")) as is_new:
        if is_new:
            _generate(folder)
            folder.with_name("go-is-generated").touch()
    return folder


def _generate(folder: Path) -> None:
    (folder / "testee").mkdir(parents=True)
    for words in (
        (),
        *(("2026-07-28", "--extension", name) for name in ("tasks", "skills", "apps")),
        ("--schema", save(folder / "draft.json", DRAFT), "--revision", "draft"),
    ):
        inside("generate", *words, "--language", "go", "--out", folder, code=0)
    (folder / "go.mod").write_text("module testee\n\ngo 1.19\n", "utf-8")
    text = TESTEE.read_text("utf-8").replace("import (", 'import (\n"testee/mcpdraft"', 1)
    text = text.replace('"2024-11-05": ', '"draft": mcpdraft.New,\n"2024-11-05": ', 1)
    (folder / "testee" / "testee.go").write_text(text.replace("[]string{", '[]string{"draft", '), "utf-8")
    run("go", "build", "-o", "testee.bin", "./testee", folder=folder)


def program() -> Path:
    """Return the program of examples/testees."""
    return packages() / "testee.bin"
