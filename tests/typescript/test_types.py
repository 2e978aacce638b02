"""Types of packages and types of the official SDKs: which values fit in which direction, as the page says."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.harness.commands import ROOT, save
from tests.interop.processes import node
from tests.typescript.packages import project

pytestmark = pytest.mark.full
PAGE = ROOT / "docs" / "how-to" / "typescript.md"
MODULES = {"1.x": "@modelcontextprotocol/sdk/types.js", "2.x": "@modelcontextprotocol/server"}
ASSIGNABILITY = {"2322", "2719", "2739", "2740", "2741"}
"""Codes of errors about values that do not have the type."""

DIRECTIONS = {(True, True): "both", (True, False): "to the SDK", (False, True): "from the SDK", (False, False): "none"}


def test_types_fit_the_types_of_the_official_sdks_as_the_page_says() -> None:
    head, *rows = re.findall(r"^\| (type|`\w+`) \| (.*) \| (.*) \| (.*) \|$", PAGE.read_text("utf-8"), re.M)
    assert head[0] == "type"
    assert len(rows) > 10
    columns = [re.fullmatch(r"(\S+) with SDK (\S+)", cell) for cell in head[1:]]
    lines, places = list[str](), dict[int, tuple[str, int, bool]]()
    for at, column in enumerate(columns):
        assert column is not None
        lines.append(f'import type * as sdk{at} from "{MODULES[column[2]]}";')
        lines.append(f'import type * as ours{at} from "../mcp-{column[1]}/types.ts";')
        for name, *_ in rows:
            for source, target in (("ours", "sdk"), ("sdk", "ours")):
                types = [f"{side}{at}.{name[1:-1]}" for side in (source, target)]
                lines.append(f"export const x{len(lines)} = (x: {types[0]}): {types[1]} => x;")
                places[len(lines)] = name, at, source == "ours"
    folder = project() / "fit"
    folder.mkdir(exist_ok=True)
    (folder / "fit.ts").write_text("\n".join(lines), "utf-8")
    # Without this option, which `strict` does not include, an optional member may be undefined, as in types of zod.
    options = {"noEmit": True, "types": ["node"], "skipLibCheck": True, "exactOptionalPropertyTypes": False}
    extended = "../mcp-2025-11-25/tsconfig.json"
    save(folder / "tsconfig.json", {"extends": extended, "compilerOptions": options, "include": ["fit.ts"]})
    compiler = [node(), str(project() / "node_modules" / "typescript" / "bin" / "tsc"), "-p", str(folder)]
    done = subprocess.run(compiler, capture_output=True, text=True, check=False)
    failed = {int(line): code for line, code in re.findall(r"fit\.ts\((\d+),\d+\): error TS(\d+)", done.stdout)}
    assert {*failed.values()} <= ASSIGNABILITY, done.stdout
    wrong = {places[line] for line in failed}
    found = [
        (name, *(DIRECTIONS[(name, at, True) not in wrong, (name, at, False) not in wrong] for at in range(3)))
        for name, *_ in rows
    ]
    assert found == rows
