"""Every command prints texts of files and servers as visible characters, never as control sequences of a terminal."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import pty
import re
import shlex
import struct
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from unittest import mock

import pytest

from mcp_bindgen.cli import terminal
from mcp_bindgen.cli.app import run
from mcp_bindgen.spec.errors import printable
from mcp_bindgen.vectors.format import Vector, VectorFile, as_text
from tests.harness.commands import ROOT, inside
from tests.harness.effort import cases
from tests.harness.forks import PYTHON

CONTROLS = [chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0))]
HIDDEN = list(
    "\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200c\u200d\u200e\u200f\u202a\u202d\u202e\u2028\u2029\u2060\u2066\u2067"
    "\u2069\u206f\u2800\u3164\ufe00\ufeff\uffa0\ufff9\ufffe\U0001d173\U000e0041\U000e0100"
)
SEQUENCES = ["\x1b[38;5;199m", "\x1b[2J", "\x1b[99D", "\x1b]0;title\x07", "\x1b]8;;http://evil\x1b\\", "\x9b38;5;199m"]
MARKUP = "[red]red[/red][link=http://evil]link[/link][/] :smile: "
INLINE = "x\nFORGED "
PAYLOAD = MARKUP + "".join(SEQUENCES) + "".join(CONTROLS) + "".join(HIDDEN) + "\u4f60\u597d caf\u00e9"
LINE = INLINE + PAYLOAD
"""Name that must not break the line that contains it."""
WORD = LINE.replace("\0", "")
"""Argument of a command line, which cannot contain NUL."""

OWN = re.compile(r"\x1b\[(?:(?:0|[12]|(?:[12];)?3[1-6])?m|\?25[hl]|2K|1A)")
"""Escape sequences of our own output: colours of reports and tables, and cursor movements of the status line."""


def problems(shown: str) -> list[str]:
    """Return characters that a terminal would obey or hide, and lines that a value has forged."""
    text = OWN.sub("", shown).replace("\r\n", "\n").replace("\r", "")  # terminals end lines with both
    acted = {char for char in text if char not in "\n\t" and printable(char) != char} | {"\U0001f604"} & {*text}
    forged = [line for line in text.split("\n") if line.startswith("FORGED")]
    return [*(sequence for sequence in SEQUENCES if sequence in shown), *sorted(acted), *forged]


def in_terminal(*words: object, folder: Path | None = None, typed: str = "") -> str:
    """Return the output of a command with a wide terminal as its three standard streams."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 400, 0, 0))
    received = bytearray()

    def read() -> None:
        try:
            while chunk := os.read(ours, 65536):
                received.extend(chunk)
        except OSError:  # the other end is closed
            return

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    settings = {"TERM": "xterm-256color", "COLUMNS": "400"}
    arguments = ["mcp-bindgen", *map(str, words)]
    with (
        os.fdopen(theirs, "w", encoding="utf-8", errors="backslashreplace") as stream,
        mock.patch.object(sys, "argv", arguments),
        os.fdopen(os.dup(theirs), encoding="utf-8") as keyboard,
        mock.patch.object(sys, "stdin", keyboard),
        mock.patch.dict(os.environ, settings),
        redirect_stdout(stream),
        redirect_stderr(stream),
        chdir(folder or Path.cwd()),
    ):
        os.environ.pop("NO_COLOR", None)
        with suppress(SystemExit):
            run()
    reader.join(10)
    os.close(ours)
    return received.decode("utf-8", "surrogateescape")


def hostile(value: object) -> object:
    """Return a schema with payloads as descriptions."""
    if isinstance(value, dict):
        found = {name: hostile(inner) for name, inner in value.items()}
        return {**found, "description": PAYLOAD} if found.get("type") == "object" else found
    return [hostile(inner) for inner in value] if isinstance(value, list) else value


SCHEMA = {"type": "object", "properties": {LINE: {"type": "string", "description": LINE, "default": LINE}}}
CONTRACT = {
    "serverInfo": {"name": LINE, "version": LINE, "title": LINE},
    "instructions": PAYLOAD,
    "revision": "2025-11-25",
    "tools": [
        {"name": LINE, "description": LINE, "title": LINE, "inputSchema": SCHEMA},
        {"name": "plain", "description": PAYLOAD, "inputSchema": SCHEMA, "annotations": {"title": LINE}},
        {"name": "broken" + LINE, "inputSchema": {"type": LINE}},
    ],
    "prompts": [{"name": "p" + LINE, "description": LINE, "arguments": [{"name": "a" + LINE, "description": LINE}]}],
    "resources": [{"name": "r" + LINE, "uri": "test://r" + LINE, "mimeType": LINE, "description": LINE}],
    "resourceTemplates": [{"name": "t" + LINE, "uriTemplate": "test://t/{x}" + LINE, "description": LINE}],
}

SERVER = """
import json, sys
contract = json.loads(open(sys.argv[1], encoding="utf-8").read())
line = json.loads(open(sys.argv[2], encoding="utf-8").read())
print(line, file=sys.stderr, flush=True)
sys.stderr.buffer.write(b"\\xff\\x1b[2J\\n")
sys.stderr.flush()

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for text in sys.stdin:
    asked = json.loads(text)
    method, params = asked.get("method"), asked.get("params") or {}
    if "id" not in asked or method is None:
        continue
    if method == "initialize":
        result = {"protocolVersion": "2025-11-25", "serverInfo": contract["serverInfo"],
                  "instructions": contract["instructions"],
                  "capabilities": {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}}
    elif method.endswith("/list"):
        member = {"resources/templates/list": "resourceTemplates"}.get(method, method.split("/")[0])
        result = {member: contract[member], **({"nextCursor": line} if len(sys.argv) > 3 else {})}
    elif method == "tools/call" and params["name"] == "error":
        send({"id": asked["id"], "error": {"code": -32000, "message": line, "data": {line: line}}})
        continue
    elif method == "tools/call" and params["name"] == "die":
        sys.exit(line)
    elif method == "tools/call" and params["name"] == "ask":
        field = {"type": "string", "title": line, "description": line, "default": line}
        form = {"type": "object", "properties": {line: {**field, "enum": [line]}, "flag": {"type": "boolean"}}}
        send({"id": "q", "method": "elicitation/create", "params": {"message": line, "requestedSchema": form}})
        sys.stdin.readline()
        result = {"content": []}
    elif method == "tools/call":
        token = (params.get("_meta") or {}).get("progressToken")
        if token is not None:
            send({"method": "notifications/progress",
                  "params": {"progressToken": token, "progress": 1, "total": 2, "message": line}})
        send({"method": "notifications/message", "params": {"level": "info", "logger": line, "data": line}})
        content = [{"type": "text", "text": line[9:]}, {"type": "image", "mimeType": line, "data": "AAAA"},
                   {"type": "resource_link", "uri": "x:" + line, "name": line},
                   {"type": "resource", "resource": {"uri": "x:" + line, "mimeType": line, "blob": "AAAA"}}]
        result = {"content": content if params["name"] == "content" else [],
                  "structuredContent": {line: line}, "isError": params["name"] == "fails"}
    elif method == "prompts/get":
        result = {"description": line, "messages": [{"role": "user", "content": {"type": "text", "text": line[9:]}}]}
    elif method == "resources/read":
        result = {"contents": [{"uri": "x:" + line, "mimeType": line, "text": line[9:]}]}
    else:
        send({"id": asked["id"], "error": {"code": -32601, "message": line}})
        continue
    send({"id": asked["id"], "result": result})
"""

MODULE = f"""
{PAYLOAD.replace(chr(0), "").encode("unicode_escape", "surrogatepass")!r}
def tool(a: int) -> str:
    return ""
tool.__doc__ = {LINE!r} + "\\n\\nArgs:\\n    a: " + {LINE!r}

class Broken:
    pass
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with hostile files, a hostile server, and projects with hostile parts."""
    folder = tmp_path_factory.mktemp("hostile")
    schema = json.loads((ROOT / "schema" / "2025-11-25" / "schema.json").read_text("utf-8"))
    definitions = schema["$defs"]
    definitions["Tool"]["properties"][LINE] = {"type": "string", "description": LINE}
    definitions["Tool"]["properties"]["name"] = {"type": ["string", LINE]}
    definitions["CallToolRequest"]["properties"]["method"]["const"] = "tools/" + LINE
    (folder / "bad.json").write_text(json.dumps(hostile(schema)))
    definitions["Tool"]["properties"]["name"] = {"type": "string", "const": LINE}
    definitions["CallToolRequest"]["properties"]["method"]["const"] = "tools/call"
    (folder / "schema.json").write_text(json.dumps(hostile(schema)))
    valid = {**CONTRACT, "tools": CONTRACT["tools"][:2]}  # type: ignore[index]
    named = {**valid, "tools": [{"name": "plain", "description": PAYLOAD, "inputSchema": {"type": "object"}}]}
    (folder / "contract.json").write_text(json.dumps(valid))
    (folder / "invalid.json").write_text(json.dumps(CONTRACT))
    (folder / "named.json").write_text(json.dumps({name: named[name] for name in ("revision", "tools")}))
    (folder / "bad.yaml").write_text(f"tools: [{{ {json.dumps('x' + chr(0x202E))}: !!{chr(0x202E)} x")
    (folder / "line.json").write_text(json.dumps(LINE))
    (folder / "listing.json").write_text(json.dumps(CONTRACT))
    (folder / "server.py").write_text(SERVER)
    (folder / "hosts.json").write_text(
        json.dumps({"mcpServers": {"a" + LINE: {"command": "x"}, "b": {"command": LINE}}})
    )
    (folder / "bad_hosts.json").write_text(json.dumps({"mcpServers": {"b": LINE}}))
    (folder / "tools.py").write_text(MODULE, "utf-8")
    (folder / "raises.py").write_text(f"raise RuntimeError({LINE!r})")
    (folder / "code.py").write_text(f"from mcp_bindgen.v2025_11_25 import types\nx = types.Tool(name={LINE!r})\n")
    (folder / "docs.toml").write_text("")
    inside("scaffold", "server", "weather", "--contract", folder / "named.json", "--out", folder, code=0)
    source = next((folder / "weather" / "src").rglob("server.py"))
    with source.open("a", encoding="utf-8", errors="surrogatepass") as file:
        file.write(f"\n# {PAYLOAD.replace(chr(0), '')}\nraise RuntimeError({LINE!r})\n")
    return folder


def commands(folder: Path) -> Iterator[list[object]]:
    """Yield command lines, at least one for each command."""
    server = f"'{PYTHON}' '{folder / 'server.py'}' '{folder / 'listing.json'}' '{folder / 'line.json'}'"
    schema, contract, named = (folder / name for name in ("schema.json", "contract.json", "named.json"))
    yield ["call", server]
    yield ["call", server, "--json"]
    yield ["call", server + " more", "tools/list"]
    for name in ("content", "structured", "fails", "error", "die"):
        yield ["call", server, "tools/call", name]
    yield ["call", server, "tools/call", "content", "--verbose"]
    yield ["call", server, "prompts/get", "p"]
    yield ["call", server, "resources/read", "test://x"]
    yield [
        "call",
        server,
        "completion/complete",
        '{"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}}',
    ]
    yield ["call", f"{folder}/hosts.json#c"]
    yield ["call", f"{folder}/bad_hosts.json#b"]
    yield ["call", f"{folder}/hosts.json#b"]
    yield ["tap", "nothing" + WORD]
    yield ["gateway", f"{folder}/hosts.json#b"]
    yield ["gateway", server, "--serve", WORD]
    yield ["mock", folder / "bad.yaml"]
    yield ["mock", named, "--answers", folder / "bad.yaml"]
    yield ["lock", "update", server, "--out", folder / "mcp.lock"]
    yield ["lock", "check", server, "--lock", folder / "mcp.lock"]
    yield ["lock", "check", server, "--lock", folder / "line.json"]
    yield ["lock", "check", f"{folder}/bad_hosts.json"]
    yield ["contract", "export", server]
    yield ["contract", "export", server, "--strict"]
    yield ["contract", "export", server, "--out", named, "--check"]
    yield ["contract", "diff", named, contract, "--witness"]
    yield ["contract", "diff", contract, named, "--format", "markdown"]
    yield ["contract", "diff", contract, named, "--format", "json"]
    yield ["contract", "diff", folder / "invalid.json", named]
    yield ["contract", "diff", folder / "bad.yaml", named]
    yield ["contract", "from-module", "tools", "--path", folder]
    yield ["contract", "from-module", "raises", "--path", folder]
    yield ["contract", "check", folder / "weather"]
    yield ["contract", "generate", folder / "weather"]
    yield ["client", "--from", contract, "--out", folder / "typed.py"]
    yield ["client", "--from", named, "--out", folder / "typed.py", "--check"]
    yield ["scaffold", "server", "other", "--contract", contract, "--out", folder, "--dry-run"]
    yield ["scaffold", "client", "third", "--from", server, "--out", folder]
    yield ["install", folder / "weather", "--file", folder / "hosts.json", "--dry-run"]
    yield ["uninstall", "b", "--file", folder / "hosts.json", "--dry-run"]
    yield ["uninstall", "c" + WORD, "--file", folder / "hosts.json"]
    yield from schema_commands(schema, folder)
    yield ["schema", "import", "draft" + WORD, schema, "--folder", folder]
    yield ["schema", "remove", "draft" + WORD, "--folder", folder]
    yield ["schema", "list", "--folder", folder]
    yield ["bridges", "raises:X"]
    yield ["bridges", "tools:Broken"]
    yield ["login", f"{folder}/bad_hosts.json#b"]
    yield ["logout", "http://" + WORD]
    yield ["auth", "list" + WORD]
    yield ["vectors", "run", "--testee", "no such" + WORD]
    yield ["vectors", "run", "--testee", hostile_testee(folder), "--vectors", folder / "vectors"]
    yield ["dev", "no such" + WORD, "--watch", folder / WORD.replace("/", "")[:120]]
    yield ["--" + WORD]
    yield [WORD]
    yield ["call", server, "--timeout", WORD]


def hostile_testee(folder: Path) -> str:
    """Return the command of a testee with hostile names and answers; write a vector for it."""
    vector = Vector("type#/a", "valid", True, "/" + WORD, WORD, LINE, document={LINE: LINE})
    file = VectorFile(1, "1", "2025-11-25", WORD, LINE, vectors=(vector,))
    (folder / "vectors" / "x").mkdir(parents=True, exist_ok=True)
    (folder / "vectors" / "x" / "x.json").write_text(as_text(file))
    reply = {"protocol": 1, "name": LINE, "version": LINE, "seq": 1, "rejected": LINE}
    return shlex.join([PYTHON, "-c", f"import sys\nfor _ in sys.stdin: print({json.dumps(reply)!r}, flush=True)"])


def schema_commands(file: Path, folder: Path) -> Iterator[list[object]]:
    """Yield the command lines that read a schema file."""
    yield ["show", file, "Tool"]
    yield ["show", file, "Toool"]
    yield ["show", file, "Tool", "--json"]
    yield ["methods", file]
    yield ["model", file]
    yield ["diff", "2025-11-25", file, "--witness"]
    yield ["diff", file, "2026-07-28", "--format", "markdown"]
    yield ["diff", file, "2026-07-28", "--format", "github"]
    yield ["history", "Tool.name", "--schema", file]
    yield ["migrate", "2025-11-25", file, folder / "code.py"]
    yield ["schema", "verify", "2025-11-25", file]
    yield ["schema", "status", "--against", file, "--revision", "2025-11-25"]


def costly_commands(folder: Path) -> Iterator[list[object]]:
    """Yield command lines that take seconds."""
    bad = folder / "bad.json"
    yield from schema_commands(bad, folder)
    yield ["upgrade", folder / "weather", "--to", "2026-07-28", "--dry-run"]
    yield ["generate", "--schema", bad, "--revision", "draft", "--out", folder / "out", "--package", "acme"]
    yield ["check", "--schema", bad, "--revision", "draft", "--out", folder / "out", "--package", "acme"]


@pytest.mark.full
@pytest.mark.parametrize("kind", cases(["usual", "costly"], quick=["usual"]))
def test_commands_escape_control_characters_in_untrusted_text(
    place: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(place))
    monkeypatch.setenv("MCP_BINDGEN_HOME", str(place / "home"))
    reached: set[str] = set()
    found: dict[str, object] = {}
    for words in (commands if kind == "usual" else costly_commands)(place):
        shown = in_terminal(*words, folder=place)
        if (wrong := problems(shown)) or not shown or "Traceback" in shown:
            found[" ".join(map(str, words))] = wrong or shown
        reached.add(str(words[0]))
    assert found == {}
    names = set(re.findall(r"^  ([a-z]+)  ", inside("--help").stdout.partition("\nGenerate:")[2], re.MULTILINE))
    assert {"generate", "diff", "uninstall"} <= names
    assert kind == "costly" or names - reached == {"generate", "check", "upgrade"}


def test_elicitation_prompts_escape_control_characters(place: Path) -> None:
    server = f"'{PYTHON}' '{place / 'server.py'}' '{place / 'listing.json'}' '{place / 'line.json'}'"
    shown = in_terminal("call", server, "tools/call", "ask", typed="wrong\n\n\ny\n")
    assert "The server asks" in shown
    assert "is none of" in shown
    assert problems(shown) == []


def test_logging_and_other_writes_to_stderr_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.guard_streams()
    terminal.guard_streams()  # a second call has no effect
    assert isinstance(sys.stderr, terminal.PrintableStream)
    print(LINE, file=sys.stderr)
    sys.stderr.writelines([LINE, LINE])
    logging.StreamHandler().emit(logging.makeLogRecord({"msg": LINE}))
    shown = capsys.readouterr().err
    assert shown.count("\\u001b[38;5;199m") == 4
    assert {char for char in shown if char != "\n" and printable(char) != char} == set()


def test_control_and_hidden_characters_become_json_escapes() -> None:
    for char in [*CONTROLS, *HIDDEN, "\ud800", "\n", "\t"]:
        shown = printable(f"a{char}b")
        assert shown.isascii()
        assert json.loads(f'"{shown}"') == f"a{char}b"
        if char not in "\n\t":
            assert printable(char, keep="\n\t") == shown[1:-1]


def test_visible_text_is_unchanged() -> None:
    for text in ["caf\u00e9", "\u4f60\u597d\u3000", "\u2764\ufe0f", "\U0001f604", "a\u00a0b", "\\ \" '"]:
        assert printable(text) == text


def test_json_in_a_pipe_keeps_its_value(place: Path) -> None:
    done = inside("show", place / "schema.json", "Tool", "--json", code=0)
    assert json.loads(done.stdout)["doc"].startswith(MARKUP.split()[0])
    assert LINE in {field["wire"] for field in json.loads(done.stdout)["fields"]}
