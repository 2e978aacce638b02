"""A project with a revision that its author imported contains the bindings, so a clone of the project is complete."""

from __future__ import annotations

import copy
import re
import shlex
import shutil
from pathlib import Path
from unittest import mock

import pytest

from mcp_bindgen.spec import Store
from mcp_bindgen.spec.keywords import DIALECT
from tests.harness.commands import Done, execute, inside, save, snapshot
from tests.harness.forks import PYTHON
from tests.harness.next_revision import BASIS, FACTS, NAME, next_revision
from tests.harness.shared import filled
from tests.harness.small_schemas import record, ref

pytestmark = pytest.mark.full


@pytest.fixture(scope="session")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of imported revisions with the next revision, which all processes of a run share."""
    return filled(tmp_path_factory, import_next_revision, "next-revision") / "home"


def import_next_revision(folder: Path) -> None:
    (folder / "facts.toml").write_text(FACTS, "utf-8")
    file = save(folder / "next.json", next_revision())
    words = ("schema", "import", NAME, file, "--status", "draft", "--semantics", folder / "facts.toml")
    with mock.patch("mcp_bindgen.emit.python.installation.is_checkout", return_value=False):
        inside(*words, code=0, MCP_BINDGEN_HOME=str(folder / "home"))


@pytest.fixture
def author(imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of an author who has imported the next revision, outside of a checkout."""
    shutil.copytree(imported, tmp_path / "home")
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("mcp_bindgen.emit.python.installation.is_checkout", lambda: False)
    return tmp_path


def elsewhere(monkeypatch: pytest.MonkeyPatch, project: Path) -> None:
    """Continue as another user without imported revisions, in a clone of the project."""
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(project.parent / "nobody"))
    monkeypatch.chdir(project)


def run(*words: object) -> Done:
    return execute(PYTHON, *words, PYTHONPATH="src", code=0)


def test_a_clone_of_a_project_has_the_bindings_and_can_regenerate_them(
    author: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside("scaffold", "server", "books", "--revision", NAME, "--with", "tools", "--out", author, code=0)
    project = author / "books"
    elsewhere(monkeypatch, project)
    shown = run("-c", "from books.server import Books; print(Books.revision, Books.__mro__[1].__module__)").stdout
    assert shown == f"{NAME} books.v2027_01_15.server\n"

    (line,) = re.findall("`(mcp-bindgen generate --schema .*)`", (project / "README.md").read_text("utf-8"))
    before = snapshot(project)
    (project / "src" / "books" / "v2027_01_15" / "errors.py").unlink()
    assert inside(*shlex.split(line)[1:]).returncode == 0
    assert snapshot(project) == before
    assert inside(*shlex.split(line.replace("generate", "check", 1))[1:]).stdout == f"{NAME}  in sync\n"

    refused = inside("upgrade", ".", "--to", BASIS, code=2)
    assert f"migrate schema/{NAME}.json {BASIS} . --package books.v2027_01_15" in refused.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("server", "books", "--revision", NAME, "--revision", BASIS, "--with", "tools,resources"),
        ("server", "books", "--revision", NAME, "--with", "tools", "--transport", "stdio,http"),
        ("client", "books", "--revision", NAME, "--with", "elicitation"),
    ],
    ids=lambda words: " ".join(words),
)
def test_a_cloned_project_passes_its_tests(
    words: tuple[str, ...], author: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert inside("scaffold", *words, "--out", author).returncode == 0
    elsewhere(monkeypatch, author / "books")
    run("-m", "pytest", "-q", "-p", "no:cacheprovider")
    run("-m", "ruff", "check", "--no-cache", ".")
    run("-m", "ruff", "format", "--no-cache", "--check", ".")


def test_the_tests_of_a_client_fill_required_members_of_a_draft(author: Path) -> None:
    definitions = copy.deepcopy(dict(Store().effective(BASIS).definitions))
    for name, old, new in [("Tool", "inputSchema", "variants"), ("CallToolResult", "content", "outputs")]:
        definitions[name]["properties"][new] = {"type": "array"}
        definitions[name]["required"].append(new)
        definitions[name]["properties"].pop(old if new == "outputs" else "", None)
    definitions["CallToolResult"]["required"].remove("content")
    file = save(author / "draft.json", {"$schema": DIALECT, "$defs": definitions})
    inside("schema", "import", "draft", file, "--status", "draft", code=0)
    inside("scaffold", "client", "books", "--revision", "draft", "--out", author, code=0)
    execute(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=author / "books", PYTHONPATH="src", code=0)


def test_the_server_of_a_project_serves_other_revisions_with_the_conversions_of_its_author(author: Path) -> None:
    inside("scaffold", "server", "books", "--revision", NAME, "--with", "tools", "--out", author, code=0)
    server = shlex.join([PYTHON, "-m", "books"])
    called = inside(
        *("call", server, "tools/list", "--revision", BASIS, "--env", f"PYTHONPATH={author / 'books' / 'src'}"), code=0
    )
    assert "greet" in called.stdout


def test_a_contract_with_an_imported_revision_is_refused(author: Path) -> None:
    file = save(author / "contract.json", {"tools": []})
    done = inside("scaffold", "server", "books", "--revision", NAME, "--contract", file, "--out", author, code=2)
    assert f"MCP {NAME} is not part of mcp-bindgen" in done.stderr
    assert not (author / "books").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("server", "books"),
        ("server", "books", "--auth"),
        ("server", "books", "--style", "class", "--revision", BASIS),
        ("client", "books", "--revision", BASIS),
    ],
    ids=lambda words: " ".join(words),
)
def test_an_upgraded_project_has_the_bindings_and_passes_its_tests(
    words: tuple[str, ...], author: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside("scaffold", *words, "--out", author, code=0)
    done = inside("upgrade", author / "books", "--to", NAME, code=0)
    assert f"added      {author}/books/src/books/v2027_01_15, " in done.stdout
    assert "mentions" not in done.stdout
    elsewhere(monkeypatch, author / "books")
    run("-m", "pytest", "-q", "-p", "no:cacheprovider")
    readme, metadata = Path("README.md").read_text("utf-8"), Path("pyproject.toml").read_text("utf-8")
    assert ("speaks every revision of MCP over" in readme) == (len(words) < 4)
    assert (f"MCP {NAME}, which is not part" in readme, f"MCP {BASIS}" in readme) == (True, False)
    assert (f'revisions = ["{NAME}"]' in metadata, '"src/books/v2027_01_15"' in metadata) == (True, True)
    (line,) = re.findall("`(mcp-bindgen generate --schema .*)`", readme)
    assert inside(*shlex.split(line.replace("generate", "check", 1))[1:]).stdout == f"{NAME}  in sync\n"


RULES = """["2026-07-28 -> draft"]
Tool.outputVariants = { give = [], because = "." }
CallToolResult.content = { merge = "outputs", item = { format = "content", audience = "user" }, \
member = "content", because = "." }
CallToolResult.structuredContent = { merge = "outputs", item = { format = "structured", audience = "user" }, \
member = "structuredContent", because = "." }
"""


@pytest.mark.parametrize("words", [("server", "--revision", BASIS), ("client", "--revision", BASIS), ("server",)])
def test_an_upgraded_project_follows_rules_of_the_author_and_passes_its_tests(
    words: tuple[str, ...], author: Path
) -> None:
    """In SEP-3279, content and structured content become outputs."""
    definitions = copy.deepcopy(dict(Store().effective(BASIS).definitions))
    result, tool = definitions["CallToolResult"], definitions["Tool"]
    for name in ("content", "structuredContent"):
        format = {"type": "string", "const": name.removesuffix("Content")}
        more = {"audience": {"type": "string"}, name: result["properties"].pop(name)}
        definitions[f"{name[0].upper()}{name[1:]}Output"] = record(f"audience format {name}", format=format, **more)
    outputs = [ref("ContentOutput"), ref("StructuredContentOutput")]
    result["properties"]["outputs"] = {"type": "array", "items": {"anyOf": outputs}}
    result["required"] = ["outputs", "resultType"]
    tool["properties"] |= {"outputVariants": {"type": "array", "items": {"type": "string"}}}
    tool["required"].append("outputVariants")
    file = save(author / "draft.json", {"$schema": DIALECT, "$defs": definitions})
    inside("schema", "import", "draft", file, "--status", "draft", code=0)
    (author / "home" / "schema" / "bridges.toml").write_text(RULES, "utf-8")
    inside("generate", "draft", code=0)
    kind, *options = words
    inside("scaffold", kind, "books", *options, "--out", author, code=0)
    inside("upgrade", author / "books", "--to", "draft", code=0)
    execute(PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=author / "books", PYTHONPATH="src", code=0)
    before = snapshot(author / "books")
    inside("upgrade", author / "books", "--to", "draft", code=0)
    assert snapshot(author / "books") == before


def test_an_upgrade_lists_imports_and_apps_that_it_cannot_edit(author: Path) -> None:
    inside("scaffold", "server", "books", "--out", author, code=0)
    server = author / "books" / "src" / "books" / "server.py"
    text = server.read_text("utf-8").replace("import App", "import (App)")
    server.write_text(text, "utf-8")
    names = server.with_name("names.py")
    names.write_text("from mcp_bindgen import testing, v2025_11_25\n", "utf-8")
    done = inside("upgrade", author / "books", "--to", NAME, code=1)
    assert f"{server} has an App that needs `revisions=[*installed(), v2027_01_15]`" in done.stdout
    assert f"{names} v2025_11_25 is imported beside other names; import it on a line of its own" in done.stdout
    assert (server.read_text("utf-8"), names.read_text("utf-8")[-12:]) == (text, "v2025_11_25\n")


def test_an_upgrade_refuses_a_contract_and_a_file_in_the_way(author: Path) -> None:
    contract = save(author / "contract.json", {"tools": []})
    inside("scaffold", "server", "books", "--contract", contract, "--out", author, code=0)
    assert f"MCP {NAME} is not part of mcp-bindgen" in inside("upgrade", author / "books", "--to", NAME, code=2).stderr
    inside("scaffold", "server", "notes", "--out", author, code=0)
    (author / "notes" / "schema").mkdir()
    mine = save(author / "notes" / "schema" / f"{NAME}.json", [])
    before = snapshot(author / "notes")
    assert f"{mine}: is in the way" in inside("upgrade", author / "notes", "--to", NAME, code=2).stderr
    assert snapshot(author / "notes") == before
