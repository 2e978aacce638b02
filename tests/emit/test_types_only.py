"""Types without the runtime: they import pydantic only, keep every document, and take the form that settings state."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pydantic
import pytest

from mcp_bindgen.emit.header import is_generated
from mcp_bindgen.spec import Store
from tests.generated.test_faithful import accepts, definitions, instances, same
from tests.harness.commands import complaint, execute, inside, save
from tests.harness.effort import cases
from tests.harness.shared import filled
from tests.harness.type_checkers import strict_cache

REVISIONS = list(Store().pins)
NEWEST = REVISIONS[-2:]
FORMS = {
    "plain": "",
    "exact": 'absent = "MISSING"\naliases = "explicit"',
    "sieve": 'extra = "ignore"\nbase_class = "acme:Base"',
    "closed": 'extra = "forbid"',
}
"""Package -> its settings."""
ALL = ("plain", "exact")
"""Packages of all revisions; the others are of the newest two."""

BASE = """
import pydantic

class Base(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", title="Acme")

    def shout(self) -> str:
        return type(self).__name__.upper()

    @pydantic.model_validator(mode="after")
    def check(self) -> "Base":
        return self

    @pydantic.model_validator(mode="before")
    @classmethod
    def see(cls, value: object) -> object:
        return value
"""
READER = """
import json, sys
sys.path[:0] = sys.argv[1:]
from functools import cache
from importlib import import_module
from pydantic import TypeAdapter, ValidationError

@cache
def adapter(module, name):
    return TypeAdapter(getattr(import_module(module), name))

for line in sys.stdin:
    module, name, text = json.loads(line)
    try:
        print(json.dumps(adapter(module, name).dump_json(adapter(module, name).validate_json(text)).decode()))
    except ValidationError:
        print("null")
loaded = {name.partition(".")[0] for name in sys.modules}
assert "mcp_bindgen" not in loaded and "pydantic" in loaded
"""
"""Program that reads and writes documents; its arguments are the folders of all that it may import."""

PYDANTIC = ("pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions.py")


def write_packages(folder: Path) -> None:
    """Write the types of every revision in each form, with nothing but pydantic beside them."""
    site = Path(pydantic.__file__).parents[1]
    for name in PYDANTIC:
        (folder / "site").mkdir(exist_ok=True)
        (folder / "site" / name).symlink_to(site / name)
    (folder / "acme.py").write_text(BASE, "utf-8")
    tables = [
        f'[[packages]]\nname = "{form}.{{revision}}"\nonly = ["types"]\n'
        f"revisions = {json.dumps(REVISIONS if form in ALL else NEWEST)}\n[packages.settings.python]\n{settings}\n"
        for form, settings in FORMS.items()
    ]
    (folder / "mcp-bindgen.toml").write_text("\n".join(tables), "utf-8")
    inside("generate", cwd=folder, code=0)


@pytest.fixture
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory, write_packages)


def read(folder: Path, documents: list[tuple[str, str, Any]]) -> list[Any]:
    """Return the document that types write for each of `documents`: module, definition, document; None if refused."""
    lines = "".join(json.dumps([module, name, json.dumps(document)]) + "\n" for module, name, document in documents)
    command = [sys.executable, "-I", "-S", "-c", READER, folder / "site", folder]
    answers = execute(*command, stdin=lines, code=0).stdout.splitlines()
    return [None if answer == "null" else json.loads(json.loads(answer)) for answer in answers]


def module(form: str, revision: str) -> str:
    return f"{form}.v{revision.replace('-', '_')}.types"


def drawn(revision: str) -> Iterator[tuple[str, Any]]:
    """Yield documents for all definitions, valid and damaged."""
    source = instances(revision)
    for name in definitions(revision):
        source.reseed(name)
        yield name, (document := source.of(name))
        yield name, source.mutant(document)


@pytest.mark.full
@pytest.mark.parametrize("revision", cases(REVISIONS, quick=REVISIONS[-1:]))
def test_types_accept_and_return_the_documents_of_the_schema(packages: Path, revision: str) -> None:
    """With `MISSING` they refuse exactly the others; else a null for an optional member is also accepted."""
    known = list(drawn(revision))
    answers = {
        form: read(packages, [(module(form, revision), name, document) for name, document in known]) for form in ALL
    }
    for index, (name, document) in enumerate(known):
        is_valid = accepts(revision, name, document)
        assert (answers["exact"][index] is not None) is (is_valid and document is not None), (name, document)
        for form in answers if is_valid else ():
            assert same(answers[form][index], document), (form, name)


TOOL = {"name": "a", "inputSchema": {"type": "object", "minProperties": 1}, "_meta": {"acme/x": None}, "more": 1}


@pytest.mark.full
@pytest.mark.parametrize("revision", NEWEST)
def test_other_members_are_kept_dropped_or_refused_except_in_schemas_and_metadata(
    packages: Path, revision: str
) -> None:
    plain, sieve, closed = read(
        packages, [(module(form, revision), "Tool", TOOL) for form in ("plain", "sieve", "closed")]
    )
    known = {name: value for name, value in TOOL.items() if name != "more"}
    assert plain == TOOL
    assert {"_meta": TOOL["_meta"], **sieve} == known
    assert closed is None
    assert read(packages, [(module("closed", revision), "Tool", {**sieve})]) == [sieve]


@pytest.mark.full
def test_a_base_class_gives_methods_and_leaves_the_rules_of_the_wire(packages: Path) -> None:
    code = (
        "from sieve.v2025_11_25 import types; from exact.v2025_11_25 import types as exact\n"
        "page = types.ListToolsResult(tools=[])\n"
        "print(page.shout(), page.model_dump_json(), page.next_cursor, page.model_config['title'])\n"
        "print(exact.ListToolsResult.model_fields['next_cursor'].alias, exact.ListToolsResult(tools=[]).next_cursor)\n"
        "import inspect, pydantic\n"
        "before = str(inspect.signature(types.TextContent))\n"
        'try: types.TextContent.model_validate_json(\'{"text":"a"}\')\n'
        "except pydantic.ValidationError as error: print(error.errors()[0]['loc'])\n"
        "print(before[:13], str(inspect.signature(types.TextContent)) == before)"
    )
    path = f"import sys; sys.path[:0] = {[str(packages / 'site'), str(packages)]!r}\n"
    done = execute(sys.executable, "-I", "-S", "-c", path + code, code=0)
    assert (
        done.stdout == "LISTTOOLSRESULT {\"tools\":[]} None Acme\nnextCursor MISSING\n('type',)\n(*, text: str True\n"
    )


@pytest.mark.full
def test_types_pass_strict_type_checkers_on_the_oldest_python_of_pydantic(packages: Path, tmp_path: Path) -> None:
    found = [module(form, revision).rpartition(".")[0] for form in FORMS for revision in NEWEST]
    uses = [f"import {name}.types\n{name}.types.Tool(name='a', input_schema={{'type': 'object'}})" for name in found]
    (packages / "uses.py").write_text("\n".join(uses), "utf-8")
    names = [*(word for package in found for word in ("-p", package)), "-m", "uses"]
    plain = ["--config-file=", "--strict", strict_cache(tmp_path / "cache")]
    done = execute(sys.executable, "-m", "mypy", *plain, *names, cwd=packages)
    assert done.returncode == 0, done.stdout
    settings = {
        "include": ["uses.py", *(package.replace(".", "/") for package in found)],
        "typeCheckingMode": "strict",
        "pythonVersion": "3.10",
    }
    config = save(packages / "pyrightconfig.json", settings)
    done = execute(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "-p", config)
    assert done.returncode == 0, done.stdout


def test_every_file_has_the_header_with_the_licence_of_the_user(tmp_path: Path) -> None:
    text = """
    [[packages]]
    name = "acme"
    revisions = ["2024-11-05"]
    only = ["types", "tools"]
    settings.python = { license = "Copyright Acme\\nSPDX-License-Identifier: Apache-2.0" }
    """
    (tmp_path / "mcp-bindgen.toml").write_text(text, "utf-8")
    inside("generate", cwd=tmp_path, code=0)
    files = sorted(path for path in (tmp_path / "acme").iterdir() if path.is_file())
    assert [path.name for path in files] == [
        "__init__.py",
        "base.py",
        "introspection.py",
        "model.py",
        "py.typed",
        "scalars.py",
        "types.py",
    ]
    for path in files:
        assert is_generated(path.read_bytes())
        lines = path.read_text("utf-8").splitlines()
        assert lines[2:6] == [
            "# Regenerate with: mcp-bindgen generate",
            "#",
            "# Copyright Acme",
            "# SPDX-License-Identifier: Apache-2.0",
        ]
        assert "mcp_bindgen" not in "".join(lines[6:])
    types = (tmp_path / "acme" / "types.py").read_text("utf-8")
    assert "class Tool(Model)" in types
    assert "class Prompt(Model)" not in types


def test_a_schema_without_methods_gives_types_only(tmp_path: Path) -> None:
    """A definition may have the name of the builtin that modules of types call."""
    definitions = {
        "Book": {"type": "object", "properties": {"title": {"type": "string"}}},
        "globals": {"type": "object"},
    }
    save(tmp_path / "shelf.json", {"$defs": definitions})
    words = ("generate", "--schema", "shelf.json", "--revision", "draft", "--only", "types", "--out", ".")
    inside(*words, "--package", "shelf", cwd=tmp_path, code=0)
    program = "from shelf import types; print(types.Book(title='a'), types.Globals)"
    done = execute(sys.executable, "-c", program, cwd=tmp_path, code=0, PYTHONPATH=str(tmp_path))
    assert done.stdout == "title='a' Globals\n"


@pytest.mark.parametrize(
    ("language", "settings", "said"),
    [
        ("python", 'extra = "drop"', "/settings/python/extra: Input should be 'allow', 'ignore' or 'forbid'"),
        ("python", 'base_class = "acme"', "/settings/python/base_class: String should match pattern"),
        ("python", 'base_class = "acme:Base"', "'base_class' is for types without the runtime; add only = [\"types\"]"),
        ("typescript", "", "MCP 2024-11-05 has no capability 'types'"),
    ],
)
def test_a_setting_or_language_without_meaning_is_refused(
    language: str, settings: str, said: str, tmp_path: Path
) -> None:
    only = "[]" if "is for types" in said else '["types"]'
    text = (
        f'[[packages]]\nname = "acme"\nrevisions = ["2024-11-05"]\nlanguages = ["{language}"]\nonly = {only}\n'
        f"[packages.settings.{language}]\n{settings}\n"
    )
    (tmp_path / "mcp-bindgen.toml").write_text(text, "utf-8")
    assert said in complaint("generate", cwd=tmp_path)
