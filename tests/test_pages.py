"""Documentation pages: commands print the shown output, Python code passes type checks, and names exist."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shlex
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from ruamel.yaml import YAML

from mcp_bindgen.cli.app import app
from tests import generated_sdk
from tests.harness.commands import ROOT, SOURCE_ROOTS, execute
from tests.harness.distribution import modules_of, public_packages, user_extras
from tests.harness.pages import LANGUAGES, Block, Command, blocks, commands, follow, modules
from tests.interop.processes import needed

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = {page.relative_to(ROOT).as_posix().removeprefix("docs/"): page for page in PAGES}
RUN = {name: [block for block in blocks(page) if block.reason is None] for name, page in NAMES.items()}
FOLLOWED = [name for name, found in RUN.items() if any(map(any, map(commands, found)))]

READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "toml": tomllib.loads,
    "yaml": lambda text: list(YAML(typ="safe", pure=True).load_all(text)),
}
"""Data language -> parser that rejects invalid data."""
NOT_RUN = {
    ("README.md", "regenerates the checkout and runs all quick tests"): 1,
    ("CONTRIBUTING.md", "runs the tests"): 2,
    ("CONTRIBUTING.md", "changes the checkout; tests/test_next_revision.py takes these steps"): 1,
    ("how-to/authorization.md", "example.com is no server"): 2,
    ("how-to/contract-drift.md", "downloads the package"): 1,
    ("how-to/develop-a-server.md", "opens a browser, and serves until it is interrupted"): 1,
    ("how-to/deployment.md", "needs a Kubernetes cluster"): 1,
    ("how-to/drafts.md", "example.org has no schema"): 1,
    ("how-to/drafts.md", "downloads the draft"): 1,
    ("how-to/from-fastmcp.md", "fastmcp cannot be installed beside the official SDK of the tests"): 1,
    ("how-to/gateway.md", "example.com is no server"): 1,
    ("how-to/go.md", "tests/go runs the program in the module example.com/acme"): 1,
    ("how-to/go.md", "the output of the program"): 1,
    ("how-to/skeletons.md", "a method of a generated class, indented as there"): 1,
    ("how-to/tap.md", "the order of concurrent exchanges varies"): 1,
    ("how-to/typed-clients.md", "downloads the packages"): 1,
    ("how-to/typescript.md", "downloads the compiler"): 1,
    ("how-to/vectors.md", "a part of a conversation, which tests/vectors/test_run.py has"): 1,
    ("versioning.md", "downloads all dependencies"): 1,
    ("testing.md", "runs the tests"): 2,
    ("testing.md", "shows a comment of a page"): 1,
}
"""Page and reason -> number of blocks that are not run."""


@pytest.mark.full
@pytest.mark.parametrize("name", FOLLOWED)
def test_the_commands_of_a_page_print_the_shown_output(name: str, tmp_path: Path) -> None:
    if any(command.starts_npm_package for block in RUN[name] for command in commands(block)):
        needed()
    follow(NAMES[name], tmp_path)


def test_pages_install_from_a_checkout_while_there_is_no_release() -> None:
    """The package index does not have the name; `docs/index.md` says what takes its place after a release."""
    wanted = re.compile(r"""pip install[^\n`]*?(["']?[\w.-]+\[[^"'`\n]*)""")
    found = [(name, one) for name, page in NAMES.items() for one in wanted.findall(page.read_text("utf-8"))]
    assert len(found) > 8
    assert [one for one in found if not one[1].startswith("'.[") and "] @ git+https://" not in one[1]] == []


def needed_extras(block: Block) -> set[str]:
    """Return the extras that the commands and imports of a block need."""
    python = block.text if block.language == "python" else ""
    imported = re.findall(r"^ *(?:from|import) (mcp_bindgen[.\w]*)", python, re.M)
    packages = {name: extra for name, extra in public_packages().items() if extra}
    found = {extra for name, extra in packages.items() for one in imported if f"{one}.".startswith(f"{name}.")}
    for command in commands(block):
        found |= {OF_COMMANDS.get(name, "generate") for name in re.findall(r"\bmcp-bindgen (\w+)", command.line)}
        found |= {"http"} if re.search(r"https?://127|--http\b", command.line) else set()
    return found - {"auth"} if re.search(r"import ResourceServer, StaticTokens$", python, re.M) else found


OF_COMMANDS = {"call": "cli", "dev": "inspector"}
"""Command -> the extra that brings it, for commands that do not need all of `generate`."""
STATED_EXTRAS = re.compile(r"pip install[^'\n]*'(?:\.|mcp-bindgen)\[([\w,]+)\]|extras?((?:,?(?: and)?\s`\w+`)+)")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "CONTRIBUTING.md"])
def test_a_page_names_the_extras_of_its_commands_and_imports_before_the_first_command(name: str) -> None:
    text = NAMES[name].read_text("utf-8")
    stated = {extra for found in STATED_EXTRAS.findall(text) for one in found for extra in re.findall(r"\w+", one)}
    brought = set().union(*(modules_of(extra) for extra in stated & set(user_extras())))
    needed = set().union(*map(needed_extras, blocks(NAMES[name])))
    assert {extra for extra in needed if not modules_of(extra) <= brought} == set()
    first = next((block.line for block in blocks(NAMES[name]) if any(map(needed_extras, [block]))), 0)
    assert not needed or STATED_EXTRAS.search("\n".join(text.splitlines()[:first])), "name the extras at the top"


@pytest.mark.full
def test_the_python_code_of_all_pages_type_checks(tmp_path: Path) -> None:
    written = []
    for name, page in NAMES.items():
        stem = re.sub(r"\W", "_", name.removesuffix(".md"))
        for number, text in enumerate(modules(page)):
            written.append(tmp_path / f"{stem}_{number}.py")
            written[-1].write_text(text, "utf-8")
    allowed = "no-redef", "empty-body", "import-not-found", "import-untyped", "assignment"
    options = [word for code in allowed for word in ("--disable-error-code", code)]
    options += ["--check-untyped-defs", "--allow-redefinition", f"--config-file={os.devnull}", "--no-error-summary"]
    folders = [str(ROOT / name) for name in SOURCE_ROOTS]
    done = execute(
        *(sys.executable, "-m", "mypy", *options, "--namespace-packages", "--explicit-package-bases"),
        *(f"--cache-dir={ROOT / '.mypy_cache' / 'pages'}", *written),
        MYPYPATH=os.pathsep.join(folders),
        cwd=tmp_path,
    )
    assert done.stdout == ""


def test_blocks_that_are_not_run_are_listed() -> None:
    found = [(name, block.reason) for name, page in NAMES.items() for block in blocks(page) if block.reason]
    assert Counter(found) == NOT_RUN


@pytest.mark.parametrize("name", NAMES)
def test_each_block_of_a_page_is_found_and_valid(name: str) -> None:
    text = NAMES[name].read_text("utf-8")
    found = list(blocks(NAMES[name]))
    assert {block.language for block in found} <= LANGUAGES
    assert len(re.findall(r"^ *```|^<!-- \w+( [^\s>]+)?$|^-->$", text, re.M)) == 2 * len(found)
    unfenced = re.sub(r"^( *)```.*?^\1```$", "", text, flags=re.M | re.S)
    assert not re.search(r"^[^\s\d|-].*\n\n {4}", unfenced, re.M), "an indented block of code is read by no test"
    for block in found:
        if block.language in READERS:
            READERS[block.language](block.text)
        elif block.language == "text" and block.name is None and block.reason is None:
            assert re.search(r"-+>|^ *[|v]( +[|v])*$", block.text, re.M), "an output belongs to a command in `console`"


def test_the_blocks_and_commands_of_a_page_are_parsed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Save as `a.py`:\n\n```python\nx = 1\n```\n\n```python\ny\n```\n```console\n$ one\n1\n...\n$ two\n```\n"
        "<!-- not run: no network -->\n\n```bash\nfetch   # it\n\nsend\n```\n<!-- json b.json\n{}\n-->\n"
    )
    found = list(blocks(page))
    assert found == [
        Block("python", "x = 1\n", name="a.py"),
        Block("python", "y\n"),
        Block("console", "$ one\n1\n...\n$ two\n"),
        Block("bash", "fetch   # it\n\nsend\n", reason="no network"),
        Block("json", "{}\n", name="b.json"),
    ]
    assert list(commands(found[2])) == [Command("one", "1\n..."), Command("two", "")]
    assert list(commands(found[3])) == [Command("fetch"), Command("send")]
    assert list(modules(page)) == ["\n\n\nx = 1\n", "\n" * 7 + "y\n"]


def test_commands_that_start_npm_packages_are_found() -> None:
    assert Command("mcp-bindgen lock 'npx -y @example/server@1'").starts_npm_package
    assert Command("cd x && npx -y server | cat").starts_npm_package
    assert not Command("mcp-bindgen install 'npx -y server' --dry-run").starts_npm_package
    assert not Command("mcp-bindgen lock server.py").starts_npm_package


def test_ports_times_and_ids_may_differ() -> None:
    shown = Command("x", "at 127.0.0.1:8000 in 0.2 s, 00112233445566778899")
    assert shown.prints("at 127.0.0.1:41 in 12 s, aabbccddeeff00112233")
    assert not Command("x", "2 passed in 0.2 s").prints("3 passed in 0.2 s")
    assert Command("x", "a...c").prints("abc")
    assert not Command("x", "a").prints("ab")


def test_a_command_that_prints_something_else_fails(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    wrong = {
        "$ echo one; echo two\none\n...\n$ echo one\ntwo\n": "echo one\none",
        "$ false\n": "exit code 1",
        "$ mcp-bindgen show 2025-11-25 Nothing\n...\n": "exit code 2",
        "$ mcp-bindgen --version\nmcp-bindgen 0\n": "mcp-bindgen 0.1.0",
        "$ false\n$ echo $?\n0\n": "echo",
    }
    for number, (text, message) in enumerate(wrong.items()):
        page.write_text(f"```console\n{text}```\n")
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(AssertionError, match=message):
            follow(page, folder)


IMPORT = re.compile(r"^ *(from mcp_bindgen(?:\.\w+)* import (?:\([^)]*\)|[\w, ]+))", re.M)
FENCED = re.compile(r"^( *)```python\n(.*?)^ *```$", re.M | re.S)
OF_THE_READER = {"mcp_bindgen.vdraft", "mcp_bindgen.v2026_12_01"}
"""Modules that a reader creates by following the page."""


def command_lines(text: str) -> Iterator[list[str]]:
    """Yield the words of each `mcp-bindgen` command line of a page, without pipes and comments."""
    for line in re.findall(r"^(?: {4,}|\$ | +\$ )(mcp-bindgen .*?)(?:\s[|>&].*| #.*)?$", text, re.M):
        yield shlex.split(line.rstrip("\\"), comments=True)[1:]


@pytest.mark.full
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_names_modules_and_options_that_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for _, block in FENCED.findall(text):
        ast.parse(textwrap.dedent(block))
    for found in IMPORT.findall(text):
        (statement,) = ast.parse(found).body
        assert isinstance(statement, ast.ImportFrom)
        if statement.module not in OF_THE_READER:
            module = importlib.import_module(str(statement.module))
            for name in statement.names:
                assert hasattr(module, name.name) or importlib.import_module(f"{statement.module}.{name.name}"), found
    for words in command_lines(text):
        command: Any = typer.main.get_command(app)
        while words and words[0] in getattr(command, "commands", ()):
            command = command.get_command(None, words.pop(0))
        taken = [command, *getattr(command, "commands", {}).values()]  # a group may have a command without a name
        if any(one.context_settings.get("ignore_unknown_options") for one in taken):
            continue  # a server's options follow the options of the command
        params = [param for one in taken for param in one.params]
        known = {option for param in params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
        own = words[: words.index("--")] if "--" in words else words
        unknown = {word.partition("=")[0] for word in own if word.startswith("--")} - known
        assert not unknown, f"{command.name}: {', '.join(sorted(unknown))}"


def test_the_page_about_the_generated_sdk_is_current() -> None:
    """`make report` writes the page; each change of the code changes numbers of lines, so these may differ a little."""
    wanted, found = generated_sdk.page(), generated_sdk.PAGE.read_text("utf-8")
    figure = re.compile(r"\b\d+\b")
    lines = [(one, other) for one, other in zip(wanted.splitlines(), found.splitlines(), strict=True) if one != other]
    for one, other in lines:
        assert figure.sub("", one) == figure.sub("", other)
        pairs = zip(figure.findall(one), figure.findall(other), strict=True)
        assert all(int(a) == pytest.approx(int(b), rel=0.05, abs=25) for a, b in pairs), one
