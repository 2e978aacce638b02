"""Values of template variables that are absolute paths, leave a folder or contain control characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from pydantic import create_model

from mcp_bindgen import v2025_11_25
from mcp_bindgen.app import App, Catalog, Completion, Contract, proxy, template
from tests.app.serving import served
from tests.harness.checked_connections import STATEFUL, STATELESS, refused

UNSAFE = re.findall(
    r"\S+",
    r"""
files://..%2F..%2Fetc%2Fpasswd files://%2Fetc%2Fpasswd files://a%00b files://a%0Db files://a%7Fb files://..
files://%2e%2E%5Cx files://a%2F.. files://a%5C..%5C..%5Cb files://C%3A%5Cx files://c:x
files://%5C%5Chost%5Cshare files://%252e%252e%252fx files://%252Fetc files://a%C2%85b files://.%2e
raw:/etc/passwd raw:../x raw:a/%2e%2e/b raw:C:/x label://x.%2Fetc label://x... dots://x...%2Fa path://x/a/..%2Fb
path://x//etc/passwd path://x/%2Fetc pair://a,%2Fb pair://..,b list://a,..,b query://x?name=%2Fetc
query://x?name=..%5Cx query://x?other=1&name=%00 more://x?a=1&name=../x frag://x#/etc many://x?name=a&name=../b
many://x?k=..%2Fa many://x?..%2Fa=1 semi://x;name=.. semi://x;name=%2Fa
""",
)
SAFE = {
    "files://a%2Fb..c": "a/b..c", "files://100%25": "100%", "files://..a": "..a", "raw:a/b/c.txt": "a/b/c.txt",
    "path://x/a/b": ["a", "b"], "list://a,.b": ["a", ".b"], "label://x.a.b": ["a", "b"],
    "many://x?name=&name=a": ["", "a"], "query://x?name=ab:c/d": "ab:c/d",
    "open://..%2Fx%00": "../x\0", "open:///etc": "/etc",
}  # fmt: skip
LISTS = {"path", "list", "label", "many"}
TEMPLATES = {
    "files": "files://{name}", "raw": "raw:{+name}", "dots": "dots://x{.name}", "label": "label://x{.name*}",
    "path": "path://x{/name*}", "pair": "pair://{other,name}", "list": "list://{name*}", "query": "query://x{?other,name}",
    "more": "more://x?a=1{&name}", "frag": "frag://x{#name}", "many": "many://x{?name*}", "semi": "semi://x{;name}",
    "open": "open://{+name}",
}  # fmt: skip
"""Scheme -> a template for each operator; `open` allows all values."""


class Files:
    """Servers of all templates, which record the values that reach a handler."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def app(self) -> App:
        """Return an app."""
        app, seen = App("files", dynamic=["contents"]), self.seen

        def read(name: str = "", other: str = "") -> str:
            seen.append(name)
            return ""

        def read_many(name: list[str] | dict[str, str]) -> str:
            seen.append(name)
            return ""

        for scheme, text in TEMPLATES.items():
            function: Any = read_many if scheme in LISTS else read
            app.add_resource(text, function, name=scheme, allows_unsafe_values=scheme == "open")
            app.completion(text, "name")(self.complete)
        return app

    async def complete(self, asked: Completion) -> list[str]:
        self.seen.append(asked.value)
        return ["x"]

    def contract(self) -> Contract:
        """Return an object of a contract's class."""
        files = self
        entries = [{"uriTemplate": text, "name": scheme} for scheme, text in TEMPLATES.items()]
        members: dict[str, Any] = {"catalog": Catalog.of({"resourceTemplates": entries, "resources": []})}
        values = create_model("Values", name=(Any, None), other=(Any, None))

        async def read(values: Any, ctx: Any) -> str:
            files.seen.append(values.name)
            return ""

        for scheme, text in TEMPLATES.items():
            mark = template(text, values, allows_unsafe_values=scheme == "open")
            members[f"read_{scheme}"] = mark(staticmethod(partial(read)))

        async def complete(self: Contract, asked: Completion, ctx: Any) -> list[str]:
            return await files.complete(asked)

        members |= {"complete": complete, "revisions": (v2025_11_25,)}
        return type("Files", (Contract,), members)()  # type: ignore[no-any-return]


def mounted(app: App, prefix: str = "") -> App:
    """Return an app that has another mounted."""
    outer = App("outer", dynamic=["contents"])
    outer.mount(app, prefix)
    return outer


MAKERS: Mapping[str, Callable[[Files], Any]] = {
    "app": Files.app,
    "contract": Files.contract,
    "mount": lambda files: mounted(files.app()),
    "proxy": lambda files: proxy(files.app()),
}


@pytest.mark.parametrize("maker", MAKERS)
async def test_unsafe_values_of_any_operator_reach_no_handler(maker: str) -> None:
    files = Files()
    async with served(MAKERS[maker](files)) as client:
        for uri in UNSAFE:
            error = await refused(client.read_resource(uri))
            assert (uri, error.message, files.seen) == (uri, "Resource not found", [])
        for uri, value in SAFE.items():
            await client.read_resource(uri)
            assert (uri, files.seen.pop()) == (uri, value)


async def test_a_template_below_a_prefix_refuses_unsafe_values() -> None:
    files = Files()
    async with served(mounted(files.app(), "a")) as client:
        await refused(client.read_resource("files://a/..%2Fb"))
        await client.read_resource("open://a/..%2Fb")
    assert files.seen == ["../b"]


COMPLETED: list[tuple[str, Mapping[str, str]]] = [
    *(("../", {}), ("/etc", {}), ("a", {"other": "a/../b"}), ("C:\\", {}), ("%2e%2e/", {}), ("a\0", {})),
    ("a", {"other": "\n"}),
]


@pytest.mark.parametrize("revision", ["2025-11-25", STATELESS])
@pytest.mark.parametrize("maker", ["app", "contract", "mount"])
async def test_completion_refuses_unsafe_values(maker: str, revision: str) -> None:
    files = Files()
    async with served(MAKERS[maker](files), revision if maker != "contract" else "2025-11-25") as client:
        ref = {"type": "ref/resource", "uri": TEMPLATES["query"]}
        for value, known in COMPLETED:
            argument, context = {"name": "name", "value": value}, {"arguments": known}
            error = await refused(client.complete(ref, argument, context=context))
            assert (value, error.code, "control character" in error.message, files.seen) == (value, -32602, True, [])
            await client.complete({**ref, "uri": TEMPLATES["open"]}, argument, context=context)
            assert files.seen.pop() == value


@pytest.mark.parametrize("maker", ["app", "mount"])
async def test_a_resource_with_unsafe_values_cannot_be_subscribed_to(maker: str) -> None:
    async with served(MAKERS[maker](Files()), STATEFUL[-1]) as client:
        for uri in UNSAFE:
            await refused(client.subscribe(uri))
        for uri in SAFE:
            await client.subscribe(uri)


async def test_a_refused_value_reaches_no_less_specific_template() -> None:
    app, seen = App("two"), list[str]()
    for uri, allows in (("note://box/{name}", False), ("note://{+name}", True)):

        def read(name: str) -> str:
            seen.append(name)
            return ""

        app.add_resource(uri, read, name=uri, allows_unsafe_values=allows)
    async with served(app) as client:
        await refused(client.read_resource("note://box/..%2Fx"))
        await client.read_resource("note://..%2Fx")
    assert seen == ["../x"]
