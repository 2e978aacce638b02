"""Write docs/explanation/generated-sdk.md from measurements: `python -m tests.generated_sdk`, or `make report`.

The figures of conformance and vectors come from the pages of `tests.conformance.run` and `tests.vectors.matrix`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.harness.commands import ROOT
from tests.harness.lines import code_lines

PAGE = ROOT / "docs" / "explanation" / "generated-sdk.md"
EMITTED, HANDWRITTEN = ROOT / "generated" / "mcp_bindgen", (ROOT / "runtime/mcp_bindgen", ROOT / "features/mcp_bindgen")
REVISION = "2026-07-28"


@dataclass(frozen=True)
class Layer:
    """A layer of an SDK.

    Attributes:
        name: Its name.
        emitted: Names of emitted files, in each revision, or of folders with emitted files.
        data: Sections of `schema/semantics.toml`, or names of other files in `schema/`.
        handwritten: Files and folders of the runtime and the features.
    """

    name: str
    emitted: Sequence[str] = ()
    data: Sequence[str] = ()
    handwritten: Sequence[str] = ()


LAYERS = [
    Layer(
        "types",
        ["types.py", "envelopes.py"],
        ["patches.toml", "docs.toml", "shared", "orders", "deprecations"],
        ["runtime/model"],
    ),
    Layer(
        "validation",
        handwritten=[
            "json_schema",
            "runtime/protocol/envelope.py",
            "runtime/protocol/invalid_items.py",
            "app/validation.py",
        ],
    ),
    Layer(
        "methods",
        ["methods.py", "client.py", "server.py", "__init__.py"],
        ["unions", "results", "alternatives", "opt_in", "truncated", "arguments", "shortcuts", "defaults"],
        [
            "runtime/session/client.py",
            "runtime/session/server.py",
            "runtime/session/context.py",
            "runtime/session/questions.py",
        ],
    ),
    Layer(
        "routing",
        ["dispatcher.py", "revision.py"],
        ["utilities", "names", "filters", "cache_invalidations", "behaviour", "revisions.toml"],
        [
            "runtime/protocol",
            "runtime/session/execution.py",
            "runtime/session/endpoint.py",
            "runtime/abi.py",
            "runtime/bindings.py",
        ],
    ),
    Layer("capabilities", (), ["capabilities", "needs", "implied"], ["runtime/protocol/capabilities.py"]),
    Layer("errors", ["errors.py"], ["errors"], ["runtime/protocol/errors.py", "http/server/errors.py"]),
    Layer(
        "transports",
        (),
        ["transports", "header_params", "batches"],
        ["http", "runtime/transports", "runtime/connecting.py", "runtime/serving.py"],
    ),
    Layer(
        "sessions",
        (),
        ["handshake", "introductions", "lifecycle"],
        [
            "runtime",
            "http/server/sessions.py",
            "http/server/open_session.py",
            "http/server/event_store.py",
            "cluster",
            "sqlite",
        ],
    ),
    Layer("authorization", (), (), ["auth", "http/client/authorization.py", "http/server/access.py"]),
    Layer("extensions", ["extensions"], ["extensions.toml"], ["extensions", "extension_abi"]),
    Layer("bridges between revisions", ["bridges"], ["bridges.toml"], ["bridging", "user_bindings"]),
    Layer("telemetry", (), ["trace_context"], ["telemetry"]),
    Layer("helpers", (), ["callers", "providers"], ["app", "host", "gateway", "lock", "drift", "lowering"]),
]
"""Layers; a file belongs to the layer with the longest matching path."""


PROPOSALS = {
    "Annotate each message with its sender, and each request with its results": [
        "unions",
        "results",
        "alternatives",
        "opt_in",
        "utilities",
        "batches",
    ],
    "Annotate each message and member with the capability that it needs": ["capabilities", "needs", "implied"],
    "Annotate the messages of the handshake, and the first revision of a rule of behaviour": [
        "handshake",
        "introductions",
        "lifecycle",
        "transports",
        "behaviour",
    ],
    "Annotate the members that HTTP headers repeat": ["names", "header_params"],
    "Annotate notifications with the results that they make stale and the filters that request them": [
        "cache_invalidations",
        "filters",
    ],
    "State limits, defaults, error codes and the order of enumerations as keywords of JSON Schema": [
        "truncated",
        "defaults",
        "errors",
        "orders",
    ],
    "Give repeated inline objects a definition": ["shared"],
    "Use `deprecated`": ["deprecations"],
    "State the standards of the keys of `_meta`": ["trace_context"],
    "None: the order of arguments and the shortcuts are choices of the bindings": ["arguments", "shortcuts"],
}
"""Proposal to the specification -> the sections of `schema/semantics.toml` that it would replace."""


def owner(path: str, attribute: str) -> Layer:
    """Return the layer that a file belongs to; raises `ValueError` if no layer names it."""
    found = [
        (len(place), layer)
        for layer in LAYERS
        for place in getattr(layer, attribute)
        if path == place or path.startswith(f"{place}/")
    ]
    if not found:
        raise ValueError(f"{path} belongs to no layer; name it in LAYERS")
    return max(found, key=lambda one: one[0])[1]


def emitted(revision: str | None = None) -> dict[str, int]:
    """Return layer -> lines of emitted code, in one revision with its extensions, or in all and the bridges."""
    found = dict.fromkeys((layer.name for layer in LAYERS), 0)
    for path in EMITTED.rglob("*.py"):
        package, *rest = path.relative_to(EMITTED).parts
        if package == "bridges":
            place = package if revision is None else ""
        else:
            place = "/".join(rest) if revision in (None, package.removeprefix("v").replace("_", "-")) else ""
        if place:
            found[owner(place, "emitted").name] += code_lines(path.read_text("utf-8"))
    return found


def handwritten() -> dict[str, int]:
    """Return layer -> lines of handwritten code."""
    found = dict.fromkeys((layer.name for layer in LAYERS), 0)
    for root in HANDWRITTEN:
        for path in root.rglob("*.py"):
            found[owner(path.relative_to(root).as_posix(), "handwritten").name] += code_lines(path.read_text("utf-8"))
    return found


def sections() -> Iterator[tuple[str, int]]:
    """Yield name and lines of each section of `semantics.toml`; sections of one name are separate."""
    for text in re.split(r"^(?=\[)", (ROOT / "schema/semantics.toml").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        yield text.strip("[").partition("]")[0], lines_of_data(text)


def lines_of_data(text: str) -> int:
    """Return the number of lines of a TOML document without blank lines and comments."""
    return sum(bool(line.strip()) and not line.startswith("#") for line in text.splitlines())


def data() -> dict[str, int]:
    """Return layer -> lines of data in `schema/` that are no copies of upstream schemas."""
    found = dict.fromkeys((layer.name for layer in LAYERS), 0)
    for name, lines in sections():
        found[owner(name, "data").name] += lines
    for path in (ROOT / "schema").rglob("*.toml"):
        place = path.relative_to(ROOT / "schema").parts[0]
        if place not in ("semantics.toml", "vectors.toml"):
            owned = owner("extensions.toml" if place == "extensions" else place, "data")
            found[owned.name] += lines_of_data(path.read_text("utf-8"))
    return found


def layers() -> Iterator[Sequence[object]]:
    """Yield the rows of the table of layers."""
    columns = [emitted(REVISION), emitted(), data(), handwritten()]
    for layer in LAYERS:
        yield [layer.name, *(column[layer.name] for column in columns)]
    yield ["**all**", *(f"**{sum(column.values())}**" for column in columns)]


def unstated() -> Iterator[Sequence[object]]:
    """Yield proposal, entries and sections of the facts in `semantics.toml`."""
    entries = {
        name: len(one) for name, one in tomllib.loads((ROOT / "schema/semantics.toml").read_text("utf-8")).items()
    }
    named = [name for names in PROPOSALS.values() for name in names]
    if sorted(named) != sorted(entries):
        raise ValueError(f"PROPOSALS and schema/semantics.toml differ in {sorted(set(named) ^ set(entries))}")
    for proposal, names in PROPOSALS.items():
        yield [proposal, sum(entries[name] for name in names), ", ".join(f"`{name}` {entries[name]}" for name in names)]


def kind(rule: Mapping[str, object]) -> str:
    """Return the kind of a rule of `bridges.toml`."""
    first = next(key for key in rule if key not in ("because", "lossless", "at", "for"))
    return {"do": str(rule.get("do")), "by": "function"}.get(first, first)


def rules(entry: object) -> Iterator[Mapping[str, object]]:
    """Yield the rules in a table of `bridges.toml`; places with dots are nested tables."""
    if isinstance(entry, dict):
        if isinstance(entry.get("because"), str):
            yield entry
        else:
            for inner in entry.values():
                yield from rules(inner)


def bridges() -> Iterator[Sequence[object]]:
    """Yield step, number of rules and number by kind."""
    for step, places in tomllib.loads((ROOT / "schema/bridges.toml").read_text("utf-8")).items():
        kinds = [kind(rule) for rule in rules(places)]
        counted = ", ".join(f"{kinds.count(one)} {one}" for one in sorted(set(kinds)))
        yield [step, len(kinds), counted]


def taken(page: str, heading: str) -> str:
    """Return the table below a heading of a reference page."""
    text = (ROOT / "docs/reference" / page).read_text("utf-8").partition(f"## {heading}\n")[2]
    table = re.search(r"^\|.+?(?=^$|\Z)", text, re.MULTILINE | re.DOTALL)
    if table is None:
        raise ValueError(f"docs/reference/{page} has no table below {heading!r}")
    return table[0].strip()


def wrong() -> Iterator[Sequence[object]]:
    """Yield a header, and for each implementation the documents that it gets wrong, of all vectors that it supports."""
    lines = taken("vectors-matrix.md", "By revision").splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]
    revisions = sorted({row[1] for row in rows})
    yield ["implementation", *revisions]
    for name in dict.fromkeys(row[0] for row in rows):
        found = {row[1]: f"{sum(map(int, row[4:7]))} of {row[2]}" for row in rows if row[0] == name}
        yield [name, *(found.get(one, "-") for one in revisions)]


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def page() -> str:
    """Return the text of the page."""
    text = (ROOT / "tests/harness/generated_sdk.md").read_text("utf-8")
    header, *rows = wrong()
    made = {
        "layers": table(["layer", f"emitted, {REVISION}", "emitted, all revisions", "data", "handwritten"], layers()),
        "required": taken("conformance.md", "Required by a revision"),
        "unstated": table(["proposal", "entries", "sections"], unstated()),
        "bridges": table(["step", "rules", "by kind"], bridges()),
        "wrong": table([str(one) for one in header], rows),
    }
    for name, lines in made.items():
        text = text.replace(f"{{{name}}}", lines)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
