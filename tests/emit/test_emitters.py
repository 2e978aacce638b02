"""Emitters as plugins: the example works after installation, broken emitters are refused, templates are replaceable."""

from __future__ import annotations

import re
import shutil
import tomllib
import zipfile
from pathlib import Path

import pytest

from mcp_bindgen.emit.header import command_of
from mcp_bindgen.emit.python.package_scope import engine_of
from mcp_bindgen.emit.registry import emitter
from mcp_bindgen.ir import build
from mcp_bindgen.ir.model import Extension
from mcp_bindgen.spec import BadInput, Store
from tests.harness.commands import ROOT, Done, bindgen, complaint, inside, snapshot
from tests.harness.installation import wheel

EXAMPLE = ROOT / "examples" / "emitter"
PLAIN = """
def emit(model, options):
    return {NAME: "HEADER\\n"}
"""


def install(site: Path, name: str, modules: dict[str, str], entry: str) -> None:
    """Install a distribution as pip does: its modules beside the metadata that names its entry points."""
    metadata = site / f"{name.replace('-', '_')}-1.0.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n", "utf-8")
    (metadata / "entry_points.txt").write_text(f"[mcp_bindgen.emitters]\n{entry}\n", "utf-8")
    for module, text in modules.items():
        (site / module).write_text(text, "utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of installed packages."""
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "site"


@pytest.fixture
def example(site: Path) -> Path:
    """Return a folder of installed packages with the example emitter."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text("utf-8"))["project"]
    ((name, value),) = project["entry-points"]["mcp_bindgen.emitters"].items()
    install(site, project["name"], {}, f"{name} = {value}")
    shutil.copy(EXAMPLE / "mcp_markdown.py", site)
    return site


def generate(*arguments: object, language: str = "markdown", command: str = "generate") -> Done:
    return inside(command, *arguments, "--out", "out", "--package", "pages", "--language", language)


def test_the_emitter_of_another_distribution_is_used(example: Path, tmp_path: Path) -> None:
    done = generate("2026-07-28")
    assert (done.returncode, done.stderr) == (0, "")
    (page,) = (tmp_path / "out" / "pages").iterdir()
    text = page.read_text("utf-8")
    rows = [line.split("`")[1] for line in text.splitlines() if line.startswith("| `")]
    assert rows == [method.name for method in build(Store().effective("2026-07-28")).methods]
    assert "client->>server: tools/call" in text
    assert command_of(text).split() == ["mcp-bindgen", *done.args]
    assert generate("2026-07-28", command="check").returncode == 0
    page.write_text(text.replace("tools/call", "tools/burn"), "utf-8")
    assert "-| `tools/burn`" in generate("2026-07-28", command="check").stdout
    assert generate("2026-07-28").returncode == 0
    assert page.read_text("utf-8") == text


@pytest.mark.full
def test_the_example_emitter_works_from_its_wheel(tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel(tmp_path / "dist", EXAMPLE)) as built:
        built.extractall(tmp_path / "site")
    options = ("--out", "out", "--package", "pages", "--language", "markdown")
    done = bindgen("generate", "2026-07-28", *options, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "| `tools/call` | request | client |" in (tmp_path / "out" / "pages" / "methods.md").read_text("utf-8")


def test_an_external_emitter_supports_extensions(example: Path, tmp_path: Path) -> None:
    assert generate("2026-07-28", "--extension", "tasks").returncode == 0
    text = (tmp_path / "out" / "pages" / "methods.md").read_text("utf-8")
    assert "| `tasks/get` | request | client |" in text
    assert "tools/call" not in text


def test_files_of_an_emitter_with_line_ends_of_windows_stay_in_sync(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(__import__("sys").modules, "plain", raising=False)
    code = PLAIN.replace("NAME", "'a.bat'").replace('"HEADER\\n"', "options.header(model) + '\\r\\n'")
    install(site, "plain-pages", {"plain.py": code}, "plain = plain:emit")
    assert generate("2024-11-05", language="plain").returncode == 0
    assert generate("2024-11-05", language="plain", command="check").returncode == 0


def test_a_language_without_installed_bindings_needs_a_folder(example: Path) -> None:
    done = inside("generate", "2026-07-28", "--language", "markdown")
    assert (done.returncode, done.stdout) == (2, "")
    assert "give --out DIR and --package NAME" in done.stderr


def test_an_error_about_an_unknown_language_lists_the_known_languages(example: Path) -> None:
    done = generate("2026-07-28", language="pyton")
    assert done.returncode == 2
    says = "there is no emitter 'pyton'; did you mean python? known: go, markdown, python, typescript"
    assert done.stderr == f"error: {says}\n"


def test_two_distributions_for_the_same_language_are_refused(example: Path) -> None:
    install(example, "other-pages", {}, "markdown = mcp_markdown:emit")
    done = generate("2026-07-28")
    assert done.returncode == 2
    assert "mcp-markdown, other-pages; uninstall all but one" in done.stderr


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "entry", "said"),
    [
        ("", "plain:emit", "has no attribute 'emit'"),
        ("import nothing_of_this_name", "plain:emit", "No module named 'nothing_of_this_name'"),
        ("emit = 1", "plain:emit", "plain:emit is not callable"),
        (PLAIN.replace("NAME", "'a/b.txt'").replace("HEADER", ""), "plain:emit", "file name 'a/b.txt'"),
        (PLAIN.replace("NAME", "'..'").replace("HEADER", ""), "plain:emit", "file name '..'"),
        (PLAIN.replace("NAME", "'a.txt'").replace("HEADER", "words"), "plain:emit", "a.txt without our header"),
        ("raise SystemExit", "plain:emit", "cannot be loaded"),
        (
            "def emit(model, options): 1 / 0",
            "plain:emit",
            "the emitter plain raised ZeroDivisionError: division by zero",
        ),
        ("def emit(model, options): import acme", "plain:emit", "raised ModuleNotFoundError: No module named 'acme'"),
        (
            "def emit(model, options): raise SystemExit('a\\nb')",
            "plain:emit",
            "the emitter plain raised SystemExit: a b",
        ),
        (
            "def emit(model, options): pass",
            "plain:emit",
            "the emitter plain returned no mapping of texts; return a dict of",
        ),
        (
            "def emit(model, options): return {'a.txt': b''}",
            "plain:emit",
            "the emitter plain returned no mapping of texts",
        ),
    ],
)
def test_a_broken_emitter_gives_a_one_line_error(
    site: Path, tmp_path: Path, code: str, entry: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(__import__("sys").modules, "plain", raising=False)
    install(site, "plain-pages", {"plain.py": code}, f"plain = {entry}")
    done = generate("2026-07-28", language="plain")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_an_extension_engine_that_is_no_module_name_is_refused() -> None:
    for bad in ["", "a b", "../x", "class", ".x", "a..b", "x:", "x:Other", "os import x\nimport os"]:
        extension = Extension("a.b/jobs", "1", "jobs", "", options=(("python_engine", bad),))
        with pytest.raises(BadInput, match="which names no module"):
            engine_of(extension)


# --- templates ------------------------------------------------------------------------------------------------


def with_template(name: str, text: str, *more: object) -> Done:
    path = Path("templates", name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return inside("generate", "2024-11-05", "--out", "out", "--package", "acme", "--templates", "templates", *more)


@pytest.mark.full
def test_a_custom_template_replaces_the_default_template(site: Path, tmp_path: Path) -> None:
    codes = "{% for error in protocol.errors %}\n{{ constants[error.code] }} = {{ error.code }}\n{% endfor %}\n"
    text = '{{ header }}\n"""{{ title }} has {{ protocol.errors | length }} errors."""\n' + codes
    done = with_template("errors.py.jinja", text)
    assert (done.returncode, done.stderr) == (0, "")
    made = snapshot(tmp_path / "out" / "acme")
    assert b'"""MCP 2024-11-05 has ' in made["errors.py"]
    assert command_of(made["types.py"].decode()).endswith("--templates templates")
    assert with_template("errors.py.jinja", text).stdout.endswith("(unchanged)\n")
    assert not with_template("errors.py.jinja", text + "# more\n").stdout.endswith("(unchanged)\n")


@pytest.mark.full
@pytest.mark.parametrize(
    ("module", "says"),
    [("", "ModuleNotFoundError: No module named 'acme_texts'"), ("raise SystemExit('a')", "SystemExit: a")],
)
def test_a_template_that_imports_an_unusable_package_is_named(module: str, says: str, site: Path) -> None:
    site.mkdir()
    if module:
        (site / "acme_texts.py").write_text(module, "utf-8")
    done = with_template("errors.py.jinja", "{{ header }}\nimport acme_texts\n\nTEXTS = acme_texts.x\n")
    assert (done.returncode, done.stderr.count("\n"), Path("out").exists()) == (2, 1, False)
    assert f"error: templates: the bindings cannot be used: {says}; " in done.stderr
    assert "correct the templates, or put the packages that they import into PYTHONPATH" in done.stderr


def test_a_template_in_another_encoding_is_refused(site: Path, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "errors.py.jinja").write_bytes(b"# Bj\xf6rn")
    shown = complaint("generate", "2024-11-05", "--out", "out", "--package", "acme", "--templates", "templates")
    assert "templates/errors.py.jinja: is not UTF-8 (byte 4); save it as UTF-8" in shown


def test_a_template_that_cannot_be_read_is_named(site: Path, tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    (tmp_path / "templates" / "errors.py.jinja").symlink_to("nowhere")
    shown = complaint("generate", "2024-11-05", "--out", "out", "--package", "acme", "--templates", "templates")
    assert "templates/errors.py.jinja: cannot be read (No such file or directory)" in shown


def test_the_templates_are_documented() -> None:
    page = (ROOT / "docs" / "how-to" / "emitters.md").read_text("utf-8")
    templates = ROOT / "generator" / "mcp_bindgen" / "emit" / "python" / "templates"
    kinds = {path.relative_to(templates).as_posix() for path in templates.rglob("*.jinja")}
    assert {name for name in kinds if not name.startswith("bridges/")} == set(emitter().templates)
    rows = set(re.findall(r"^\| `([\w./]+jinja)` \|", page, re.MULTILINE))
    assert rows == set(emitter().templates), "each template has a row in docs/how-to/emitters.md"


@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("error.py.jinja", "", "'error.py.jinja' is not the name of a template; did you mean errors.py.jinja?"),
        ("errors.py.jinja", "{% if %}", "errors.py.jinja line 1: Expected an expression"),
        ("errors.py.jinja", "{{ header }}\n{{ mistyped }}", "errors.py.jinja line 2: 'mistyped' is undefined"),
        ("errors.py.jinja", "{{ header }}\n{{ 1 + 'a' }}", "errors.py.jinja line 2: unsupported operand"),
        ("errors.py.jinja", "{{ header }}\ndef\n", "errors.py is not Python"),
        ("errors.py.jinja", "VALUE = 1\n", "errors.py without our header"),
    ],
)
def test_an_invalid_template_gives_a_one_line_error(
    site: Path, tmp_path: Path, name: str, text: str, said: str
) -> None:
    done = with_template(name, text)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_templates_require_an_output_folder_and_a_package(site: Path) -> None:
    done = inside("generate", "2024-11-05", "--templates", "templates")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "give --out DIR and --package NAME" in done.stderr
