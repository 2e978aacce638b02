"""Project configuration: found from any folder below it, checked key by key, and used without arguments."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from mcp_bindgen.emit.header import command_of
from mcp_bindgen.emit.project import requests
from mcp_bindgen.emit.python.settings import PythonSettings
from mcp_bindgen.spec import Store
from mcp_bindgen.spec.project import Configuration, PackageTable, SchemaTable, Table, find, read
from tests.harness.commands import ROOT, inside, save, snapshot
from tests.harness.small_schemas import small

CONFIGURATION = """
revisions = ["2024-11-05"]
ignore = ["field-added-optional"]

[schemas.draft]
source = "schemas/draft.json"

[[packages]]
name = "acme.{revision}"
out = "src"
revisions = ["2024-11-05", "draft"]

[[packages]]
name = "tools"
only = ["tools"]
"""


PACKAGE = "[[packages]]\nname = 'a'\nrevisions = ['2024-11-05']\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a project with a configuration; the working folder is below it."""
    (tmp_path / "schemas").mkdir()
    save(tmp_path / "schemas" / "draft.json", small())
    (tmp_path / "mcp-bindgen.toml").write_text(CONFIGURATION, "utf-8")
    (tmp_path / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "src" / "deep")
    return tmp_path


def configure(project: Path, text: str) -> None:
    (project / "mcp-bindgen.toml").write_text(text, "utf-8")


@pytest.mark.full
def test_generate_and_check_need_no_arguments(project: Path) -> None:
    done = inside("generate", code=0)
    packages = [project / "src" / "acme" / "v2024_11_05", project / "src" / "acme" / "vdraft", project / "tools"]
    assert all((package / "types.py").exists() for package in packages)
    assert not (packages[2] / "types.py").read_text("utf-8").count("class Prompt(")
    first, last = (str(package) for package in (packages[0], packages[2]))
    assert inside("check").stdout == f"2024-11-05  in sync  {first}\ndraft  in sync\n2024-11-05  in sync  {last}\n"
    (packages[1] / "errors.py").unlink()
    done = inside("check")
    assert (done.returncode, "draft  differs" in done.stdout) == (1, True)


@pytest.mark.full
def test_a_header_names_a_command_that_makes_the_same_files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert inside("generate").returncode == 0
    before = snapshot(project)
    monkeypatch.chdir(project)
    for path in project.rglob("methods.py"):
        program, *arguments = shlex.split(command_of(path.read_text("utf-8")))
        path.unlink()
        assert program == "mcp-bindgen"
        assert inside(*arguments).returncode == 0
    assert snapshot(project) == before


@pytest.mark.full
def test_a_pyproject_table_can_replace_the_configuration_file(project: Path) -> None:
    (project / "mcp-bindgen.toml").unlink()
    text = CONFIGURATION.replace("[schemas", "[tool.mcp-bindgen.schemas").replace("[[pack", "[[tool.mcp-bindgen.pack")
    (project / "pyproject.toml").write_text(f"[tool.mcp-bindgen]{text}", "utf-8")
    (project / "src" / "pyproject.toml").write_text("[project]\n", "utf-8")
    assert find() == project / "pyproject.toml"
    assert inside("generate").returncode == 0
    assert inside("check").returncode == 0


def test_two_configurations_in_one_folder_are_refused(project: Path) -> None:
    (project / "pyproject.toml").write_text("[tool.mcp-bindgen]\n", "utf-8")
    assert "keep one of them" in inside("check", code=2).stderr


def test_the_table_of_a_scaffolded_project_is_no_configuration(project: Path) -> None:
    inside("scaffold", "server", "books", code=0)
    assert find(Path("books")) == project / "mcp-bindgen.toml"
    (project / "mcp-bindgen.toml").unlink()
    assert inside("diff", "2025-06-18", "2025-11-25", cwd=Path("books"), code=0).stdout


def test_a_tool_that_is_no_table_is_no_configuration(project: Path) -> None:
    for text in ("tool = 1\n", 'tool = "mcp-bindgen"\n', "tool = []\n"):
        (project / "pyproject.toml").write_text(text, "utf-8")
        assert find() == project / "mcp-bindgen.toml"


def test_arguments_replace_the_configuration(project: Path) -> None:
    assert inside("generate", "2024-11-05", "--out", "own", "--package", "one").returncode == 0
    assert [path.name for path in (project / "src").iterdir()] == ["deep"]
    assert Path("own", "one", "types.py").exists()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("revision = ['x']", "/revision: unknown key 'revision'; did you mean revisions?"),
        ("[[packages]]\nnmae = 'a'", "/packages/0/nmae: unknown key 'nmae'; did you mean name?"),
        ("[schemas.a]\nsorce = 'a'", "/schemas/a/sorce: unknown key 'sorce'; did you mean source?"),
        ("[[packages]]\nout = 'a'", "/packages/0: the key 'name' is missing"),
        ("[[packages]]\nname = 1", "/packages/0/name: Input should be a valid string"),
        ("packages = 1", "/packages: Input should be a valid array"),
        ("packages = [1]", "/packages/0: Input should be an object"),
        ("schemas = []", "/schemas: Input should be an object"),
        ("languages = ['python', 1]", "/languages/1: Input should be a valid string"),
        ("[[packages]]\nname = 'a'", "/packages/0: the package has no revision"),
        ("ignore = []", "there are no packages to generate"),
        ("revisions = ['2024-11-05', '2025-03-26']\n[[packages]]\nname = 'a'", "another package is in a already"),
        ("revisions = ['2024-11-05']\n[[packages]]\nname = 'a b'", "'a b' is not the name of a package"),
        ("revisions = ['2024-11-05']\nlanguages = ['pyton']\n[[packages]]\nname = 'a'", "did you mean python?"),
        (f"{PACKAGE}settings.pythn = {{}}", "/packages/0/settings/pythn: the package is not generated in 'pythn'; did"),
        (f"{PACKAGE}settings.python = 1", "/packages/0/settings/python: Input should be an object"),
        (f"{PACKAGE}settings.python.fromatter = []", "/python/fromatter: unknown key 'fromatter'; did you mean form"),
        (f"{PACKAGE}settings.python.formatter = 'black'", "/settings/python/formatter: Input should be a valid array"),
        (
            f"{PACKAGE}settings.python.names = {{Tol = 'A'}}",
            "/names/Tol: there is no definition 'Tol'; did you mean Tool",
        ),
        (f"{PACKAGE}settings.python.names = {{Tool = 'Root'}}", "/names/Tool: another definition is 'Root'; choose"),
        (f"{PACKAGE}settings.python.names = {{Tool = 'A', Root = 'A'}}", "/names/Root: another definition is 'A'"),
        (f"{PACKAGE}settings.python.names = {{Tool = 'tool'}}", "/names/Tool: no class can be named 'tool'; choose"),
        (f"{PACKAGE}settings.python.names = {{Tool = 'None'}}", "/names/Tool: no class can be named 'None'"),
        (
            "[[packages]]\nname = 'a'\nrevisions = ['2026-07-28']\nextension = 'tasks'\n"
            "settings.python.names = {Tool = 'A'}",
            "/names/Tool: the package imports this definition from that of the revision",
        ),
        (f"{PACKAGE}only = ['types']\nsettings.python.base_class = 'a.class:B'", "'a.class:B' has a keyword"),
        (f"{PACKAGE}settings.python.formatter = ['nothing-of-this-name']", "'nothing-of-this-name' fails for"),
        (f"{PACKAGE}settings.python.formatter = ['true']", "'true' fails for __init__.py: it removes our header"),
        (
            f"{PACKAGE}settings.python.formatter = ['sh', '-c', 'echo no >&2; exit 3']",
            "'sh' fails for __init__.py: no;",
        ),
    ],
)
def test_an_invalid_configuration_gives_a_one_line_error(project: Path, text: str, said: str) -> None:
    configure(project, text)
    done = inside("generate")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.full
def test_a_name_of_one_revision_serves_a_package_of_several(project: Path) -> None:
    """2026-07-28 has no `InitializeRequest`."""
    revisions = "revisions = ['2025-11-25', '2026-07-28']"
    names = "settings.python.names = {InitializeRequest = 'Hello'}"
    configure(project, f"[[packages]]\nname = 'a.{{revision}}'\n{revisions}\nonly = ['types', 'tools']\n{names}")
    inside("generate", code=0)
    found = {name: (project / "a" / name / "types.py").read_text("utf-8") for name in ("v2025_11_25", "v2026_07_28")}
    assert ["class Hello(" in text for text in found.values()] == [True, False]


@pytest.mark.full
def test_settings_rename_definitions_and_format_files(project: Path) -> None:
    """The formatter adds a line with the path of the file."""
    command = r"""["sh", "-c", "cat; echo \"# $1\"", "sh", "{file}"]"""
    names = "{Tool = 'Gadget', CallToolRequest = 'UseRequest'}"
    configure(project, f"{PACKAGE}settings.python.formatter = {command}\nsettings.python.names = {names}\n")
    inside("generate", code=0)
    assert "(unchanged)" in inside("generate", code=0).stdout
    assert inside("check", code=0).stdout == "2024-11-05  in sync\n"
    types, methods = ((project / "a" / name).read_text("utf-8") for name in ("types.py", "methods.py"))
    assert command_of(types) == "mcp-bindgen generate"
    assert types.endswith(f"\n# {project / 'a' / 'types.py'}\n")
    assert "class Gadget(" in types
    assert "class Tool(" not in types
    assert "list[Gadget]" in types
    assert "\nUSE: " in methods
    assert '"tools/call"' in methods
    configure(project, f"{PACKAGE}settings.python.names = {names}\n")
    assert "-# " in inside("check", code=1).stdout


def test_a_configuration_may_begin_with_a_byte_order_mark(project: Path) -> None:
    (project / "mcp-bindgen.toml").write_text("ignore = ['nothing']", "utf-8-sig")
    assert "'nothing', which is no rule" in inside("diff", "2024-11-05", "2025-03-26", code=2).stderr


@pytest.mark.full
def test_diff_leaves_out_ignored_rules(project: Path) -> None:
    def rules() -> set[str]:
        done = inside("diff", "2024-11-05", "2025-03-26", "--format", "json", code=0)
        return {line.split('"')[3] for line in done.stdout.splitlines() if line.strip().startswith('"rule": ')}

    ignoring = rules()
    configure(project, "")
    assert rules() - ignoring == {"field-added-optional"}
    configure(project, "ignore = ['field-added-optionl']")
    done = inside("diff", "2024-11-05", "2025-03-26", code=2)
    assert "'field-added-optionl', which is no rule; did you mean field-added-optional?" in done.stderr


def test_the_page_documents_every_key_and_its_example_is_read(project: Path) -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    file, _, _ = page.partition("\n## GitHub Actions")
    keys = set(re.findall(r"^\| `([\w.]+)` \|", file, re.MULTILINE))
    tables: dict[str, type[Table]] = {"": Configuration, "schemas.NAME.": SchemaTable, "packages.": PackageTable}
    settings = PythonSettings.model_fields.keys()
    known = {f"{prefix}{key}" for prefix, table in tables.items() for key in table.model_fields}
    assert keys == (known | settings) - {"schemas", "packages"}
    example, more = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    configure(project, example)
    found = read(project / "mcp-bindgen.toml")
    packages = [request.package for request in requests(found, project)]
    assert packages == ["acme.mcp.v2025_11_25", "acme.mcp.v2026_07_28", "acme.draft"]
    configure(project, f'revisions = ["2025-11-25"]\n{more}')
    (request,) = requests(read(project / "mcp-bindgen.toml"), project)
    assert request.settings.names["Tool"] == "ToolSpec"


# --- the pre-commit hook and the GitHub Action ----------------------------------------------------------------


def yaml(name: str) -> Any:
    return YAML(typ="safe", pure=True).load((ROOT / name).read_text("utf-8"))


def shell(command: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{variables.pop('PATH', os.environ['PATH'])}"
    environment = {**os.environ, **variables, "PATH": path}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, encoding="utf-8")


@pytest.mark.full
def test_the_pre_commit_hooks_check_and_generate(project: Path) -> None:
    check, generate = yaml(".pre-commit-hooks.yaml")
    assert (check["id"], generate["id"]) == ("mcp-bindgen-check", "mcp-bindgen-generate")
    assert not check["pass_filenames"]
    assert not generate["pass_filenames"]
    assert shell(check["entry"], project).returncode == 1
    assert shell(generate["entry"], project).returncode == 0
    assert shell(check["entry"], project).returncode == 0


GH = """#!/bin/sh
case "$1 $2" in
  "issue list") [ ! -e issue ] || echo 7 ;;
  "issue view") cat issue ;;
  "issue edit") cp "$5" issue; echo edited >> log ;;
  "issue create") cp "$6" issue; echo created >> log ;;
esac
"""
"""Stand-in for the command line of GitHub: one issue, number 7, in a file."""


def outputs(steps: list[Any], folder: Path, values: dict[str, str], **shared: str) -> dict[str, str]:
    """Run steps of a workflow or of our action as GitHub does, and return their outputs as `steps.ID.outputs.NAME`."""
    known = dict(values)

    def filled(text: str) -> str:
        return re.sub(r"\$\{\{ ([\w.-]+) \}\}", lambda found: known.get(found[1], ""), text)

    for step in steps:
        ((name, operator, word),) = re.findall(r"^([\w.-]+) ([!=]=) '(.*)'$", step.get("if", "env.none == ''"))
        if (known.get(name, "") == word) is (operator == "!="):
            continue
        if "mcp-bindgen@" in step.get("uses", ""):
            action = yaml("action.yml")
            given = {name: one["default"] for name, one in action["inputs"].items()} | step["with"]
            inputs = {f"inputs.{name}": json.dumps(one).strip('"') for name, one in given.items()}
            found = outputs(action["runs"]["steps"][1:], folder, known | inputs, **shared)  # the first step installs us
            made = {name: found.get(one["value"][4:-3], "") for name, one in action["outputs"].items()}
        elif "run" in step:
            file = folder / "output"
            file.write_text("")
            variables = {name: filled(value) for name, value in {**shared, **step.get("env", {})}.items()}
            done = shell(f"set -e\n{step['run']}", folder, GITHUB_OUTPUT=str(file), **variables)
            assert done.returncode == 0, done.stderr
            made = dict(line.split("=", 1) for line in file.read_text().splitlines())
        else:
            continue
        known |= {f"steps.{step.get('id')}.outputs.{name}": value for name, value in made.items()}
    return known


@pytest.mark.full
def test_the_workflow_of_the_page_keeps_an_issue_about_a_draft(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "drafts.md").read_text("utf-8")
    (text,) = re.findall(r"^```yaml\n(name: Keep an issue.*?)^```", page, re.M | re.S)
    job = YAML(typ="safe", pure=True).load(text)["jobs"]["issue"]
    draft = Store().structure("2026-07-28")
    (tmp_path / "schema").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "gh").write_text(GH)
    (tmp_path / "bin" / "gh").chmod(0o755)
    changes: list[str] = []
    for member, kind in (("name", "string"), ("colour", "string"), ("colour", "string"), ("@a <b>c</b>", "integer")):
        draft["$defs"]["Tool"]["properties"][member] = {"type": kind}
        save(tmp_path / "schema" / "draft.json", draft)
        path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
        found = outputs(job["steps"], tmp_path, {}, **job["env"], PATH=path)
        changes.append(found["steps.draft.outputs.changed"])
        (tmp_path / "body.md").unlink(missing_ok=True)
    assert changes == ["false", "true", "false", "true"]
    assert (tmp_path / "log").read_text().split() == ["created", "edited"]
    body = (tmp_path / "issue").read_text("utf-8")
    assert "@a <b>c</b>" in body
    assert not re.search("@a|<b>|colour", re.sub("`[^`]*`", "", body))  # code is no mention and no HTML


@pytest.mark.full
def test_the_github_action_checks_and_compares(project: Path) -> None:
    action = yaml("action.yml")
    install, check, compare = action["runs"]["steps"][:3]
    assert install["run"].startswith("python -m pip install ")
    assert inside("generate").returncode == 0
    assert shell(check["run"], project).returncode == 0
    given = {"OLD": "2024-11-05", "NEW": "2025-03-26", "BODY": "", "FAIL_ON": action["inputs"]["fail-on"]["default"]}
    assert compare["env"].keys() == given.keys()
    done = shell(compare["run"], project, **given)
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::")
