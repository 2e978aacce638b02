"""The main job on real input: regenerate all bindings, prove them in sync, read and write traffic, and converse.

Run it with `make demo`. Each line of `examples/traffic/REVISION.jsonl` is one message and its sender.
"""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

HERE = Path(__file__).parent
TOOL = Path(sys.executable).with_name("mcp-bindgen")


def main() -> None:
    """Run the four steps and show the output of each step."""
    print("1. Regenerate the bindings of every revision from schema/\n", flush=True)
    subprocess.run([TOOL, "generate"], check=True)
    print("\n2. Prove that they are in sync with it\n", flush=True)
    subprocess.run([TOOL, "check"], check=True)
    print("\n3. Read real-looking traffic as typed objects and write it back\n")
    for path in sorted((HERE / "traffic").glob("*.jsonl")):
        count = sum(read_and_write(path.stem, json.loads(line)) for line in path.read_text("utf-8").splitlines())
        print(f"{path.stem}  {count:2} messages, each written back exactly as it came")
    show("2025-11-25")
    print("\n4. Let a generated client and a generated server talk over stdio, message by message\n", flush=True)
    subprocess.run([sys.executable, HERE / "conversation.py"], check=True)


def read_and_write(revision: str, entry: dict[str, Any]) -> bool:
    """Read the params, result or error of one message with its own type, and check that nothing is lost."""
    payload, kind = typed(revision, entry)
    value = TypeAdapter(kind).validate_json(json.dumps(payload))
    written = json.loads(TypeAdapter(kind).dump_json(value))
    if json.dumps(written, sort_keys=True) != json.dumps(payload, sort_keys=True):
        sys.exit(f"{revision}: {payload} came back as {written}")
    return True


asked: dict[tuple[str, str, str | int], str] = {}
"""(revision, sender, request id) -> method: only the pending request knows the type of a result."""


def typed(revision: str, entry: dict[str, Any]) -> tuple[Any, Any]:
    """Return the part of a message that has a type of its own, and that type."""
    bindings = import_module(f"mcp_bindgen.v{revision.replace('-', '_')}")
    sender, message = entry["from"], entry["message"]
    if "method" in message:
        if "id" in message:
            asked[revision, sender, message["id"]] = message["method"]
        method = bindings.methods.METHODS[message["method"]]
        return message.get("params", {}), method.params
    if "error" in message:
        return message["error"], getattr(bindings.types, "Error", None) or bindings.types.JSONRPCErrorObject
    other = "server" if sender == "client" else "client"
    method = bindings.methods.METHODS[asked[revision, other, message["id"]]]
    kinds = (method.result, *method.alternatives)
    wanted = message["result"].get("resultType", "complete")
    return message["result"], kinds[-1] if wanted == "input_required" else kinds[0]


def show(revision: str) -> None:
    """Show one message as text, as an object, and as text again."""
    from mcp_bindgen.v2025_11_25 import types

    lines = (HERE / "traffic" / f"{revision}.jsonl").read_text("utf-8").splitlines()
    results = (json.loads(line)["message"].get("result", {}) for line in lines)
    text = json.dumps(next(result for result in results if "structuredContent" in result), ensure_ascii=False)
    result = types.CallToolResult.model_validate_json(text)
    print(f"\nOne of them, a tools/call result of {revision}, as it came:\n  {text}")
    print(f"as a typed object:\n  {result!r}")
    match result.content[0]:
        case types.TextContent(text=said):
            print(f"its first block, narrowed by `match`:\n  {said}")
        case other:
            print(f"its first block: {other}")
    print(f"and as it goes back on the wire:\n  {result.model_dump_json()}")


if __name__ == "__main__":
    main()
