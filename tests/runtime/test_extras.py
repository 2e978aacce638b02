"""Errors for packages that are not installed: one line with the feature, the package and the extra to install."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from mcp_bindgen.app import App, OutputSchemas, UriTemplate
from mcp_bindgen.auth import ResourceServer, StaticTokens
from mcp_bindgen.cluster.entry_point import REDIS
from mcp_bindgen.commands.servers import named
from mcp_bindgen.extensions.tasks import DocketRunner, ProcrastinateRunner
from mcp_bindgen.http.transport import TRANSPORT
from mcp_bindgen.lowering import lower
from mcp_bindgen.runtime.extras import NotInstalled, extra_with
from tests.harness.commands import execute
from tests.harness.distribution import modules_of, public_packages, user_extras

BROUGHT = {extra: modules_of(extra) for extra in user_extras()}
LIBRARIES = tuple(sorted(set().union(*BROUGHT.values())))
RESOLVE = """
import importlib, sys
sys.modules.update(dict.fromkeys({hidden}))
for package in {packages}:
    module = importlib.import_module(package)
    for name in module.__all__:
        try:
            getattr(module, name)
        except Exception as error:
            print(f"{{package}}.{{name}}", type(error).__name__, error, sep="|")
"""
"""Program that uses each public name without some modules, and prints each failure."""


@cache
def failures(hidden: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    """Return public name -> the missing module and the proposed extra, in a process without some modules."""
    found: dict[str, tuple[str, str]] = {}
    program = RESOLVE.format(hidden=list(hidden), packages=list(public_packages()))
    for line in execute(sys.executable, "-c", program, code=0).stdout.splitlines():
        name, kind, text = line.split("|")
        command = r"pip install 'mcp-bindgen\[(\w+)\]'"
        stated = re.fullmatch(rf"{re.escape(name)} needs (\w+), which is not installed; run: {command}", text)
        assert stated, line
        assert kind == "NotInstalled"
        found[name] = stated[1], stated[2]
    return found


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param(LIBRARIES, id="all"),
        *(pytest.param((name,), id=name, marks=pytest.mark.full) for name in LIBRARIES),
    ],
)
def test_public_names_work_or_name_the_extra_of_their_package(hidden: tuple[str, ...]) -> None:
    for name, (module, extra) in failures(hidden).items():
        assert module in hidden, name
        own = public_packages()[name.rpartition(".")[0]]
        assert module in BROUGHT[extra], name
        assert extra == own or module not in BROUGHT[own], name


def test_a_base_installation_lacks_only_names_of_packages_with_an_extra() -> None:
    packages = public_packages()
    lacking = {name.rpartition(".")[0] for name in failures(LIBRARIES)}
    at_use = {"app", "drift", "gateway", "host", "lock", "lowering"}  # their calls name the extra
    assert lacking == {name for name, extra in packages.items() if extra} - {f"mcp_bindgen.{name}" for name in at_use}


def greet(name: str) -> str:
    """Greet."""
    return name


RESOURCE, TOKENS = "http://127.0.0.1:8000/mcp", StaticTokens({"a-long-static-token": "ada"})


@pytest.mark.parametrize(
    ("module", "use", "purpose", "extra"),
    [
        ("docstring_parser", lambda: App("notes").tool(greet), "describing functions", "app"),
        ("jsonschema_rs", lambda: App("notes").tool(greet), "serving the tools of a contract", "app"),
        ("jsonschema_rs", OutputSchemas, "validating the results of tools", "app"),
        ("jsonschema_rs", lambda: lower({"name": "greet"}, "openai"), "lowering a tool", "app"),
        ("uritemplate", lambda: UriTemplate("note://{id}"), "a URI template", "app"),
        ("joserfc", lambda: ResourceServer(RESOURCE, TOKENS, dpop="optional"), "ResourceServer(dpop=...)", "auth"),
        ("httpx2", lambda: TRANSPORT.open(RESOURCE, {}, None), "Streamable HTTP", "http"),
        ("httpx2", lambda: named(RESOURCE), "a server at a URL", "http"),
        ("redis", lambda: REDIS.open("redis://localhost"), "a store in Redis", "cluster"),
        ("docket", lambda: DocketRunner("redis://localhost"), "DocketRunner", "docket"),
        ("procrastinate", lambda: ProcrastinateRunner("postgresql:///"), "ProcrastinateRunner", "procrastinate"),
    ],
)
def test_a_use_without_a_package_names_the_extra(
    module: str, use: Callable[[], Any], purpose: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises((NotInstalled, ValueError)) as raised:
        use()
    fix = f"run: pip install 'mcp-bindgen[{extra}]'"
    assert str(raised.value) == f"{purpose} needs {module}, which is not installed; {fix}"


def test_a_server_over_http_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['starlette'] = None\n"
        "from mcp_bindgen.app import App, run\nrun(App('notes'), allowed_hosts=['localhost'])"
    )
    done = execute(sys.executable, "-c", code, "--http", "127.0.0.1:0", code=2)
    fix = "run: pip install 'mcp-bindgen[http]'"
    assert done.stderr.endswith(f"error: Streamable HTTP needs starlette, which is not installed; {fix}\n")


def test_static_tokens_need_no_joserfc() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['joserfc', 'keyring']))\n"
        "from mcp_bindgen.auth import ResourceServer, StaticTokens\nfrom mcp_bindgen.http import HttpApp\n"
        "from mcp_bindgen.app import App\n"
        f"HttpApp(App('notes'), auth=ResourceServer({RESOURCE!r}, StaticTokens({{'a-long-static-token': 'ada'}})))"
    )
    execute(sys.executable, "-c", code, code=0)


def test_modules_are_mapped_to_extras() -> None:
    found = {name: extra_with(name, "generate") for name in ("jinja2", "jsonschema_rs", "joserfc", "httpx2", "pytest")}
    assert found == {"jinja2": "generate", "jsonschema_rs": "generate", "joserfc": "auth", "httpx2": "http"} | {
        "pytest": None
    }
    assert extra_with("starlette", "auth") == "auth"
    assert str(NotInstalled("the fixtures", "pytest", "mock")).endswith("run: pip install pytest")


def test_a_failure_inside_of_this_program_stays_as_it_is() -> None:
    error = ModuleNotFoundError("No module named 'mcp_bindgen.gone'", name="mcp_bindgen.gone")
    assert NotInstalled.of(error, "a feature", "app") is error
    own = ModuleNotFoundError("No module named 'acme.types'", name="acme.types")
    assert NotInstalled.of(own, "acme.mcp.Server", "mcp") is own
