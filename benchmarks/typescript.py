"""Compare generated TypeScript with the official SDKs and ajv: exactness, speed and size, in one run.

`make peers` installs the npm packages. `python benchmarks/typescript.py 3000` tries more documents.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.interop.processes import node
from tests.typescript.packages import REVISIONS, definitions, project
from tests.typescript.test_validators import is_valid, random_documents

from mcp_bindgen.emit import Model, Options
from mcp_bindgen.emit.typescript.plugin import EMITTER
from mcp_bindgen.ir import build
from mcp_bindgen.spec import Store

DOCUMENTS = 60
"""Number of odd documents of each revision, beside the regular documents of each definition."""


def main() -> None:
    """Print the figures."""
    schemas = project() / "schemas.json"
    begin = time.process_time()
    store = Store()
    for revision in REVISIONS:
        EMITTER.emit(Model(build(store.effective(revision))), Options("benchmark", "benchmark"))
    print(f"generation: {len(REVISIONS)} revisions in {time.process_time() - begin:.2f} s of processor time")
    count = int(sys.argv[1]) if len(sys.argv) > 1 else DOCUMENTS
    lines: list[str] = []
    for revision in REVISIONS:
        lines += [json.dumps([*one, is_valid(one)]) for one in random_documents(revision, count)]
    schemas.write_text(json.dumps({revision: definitions(revision) for revision in REVISIONS}), "utf-8")
    program = schemas.with_name("typescript.mjs")
    program.write_text(Path(__file__).with_suffix(".mjs").read_text("utf-8"), "utf-8")
    subprocess.run([node(), str(program)], input="\n".join(lines), text=True, check=True)


if __name__ == "__main__":
    main()
