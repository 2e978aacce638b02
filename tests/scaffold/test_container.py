"""The container of a scaffolded server: the command of its Dockerfile, and the arguments of the Kubernetes example."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from ruamel.yaml import YAML

from tests.harness.checked_connections import INITIALIZED, initialize, request
from tests.harness.commands import ROOT, inside
from tests.harness.http_wires import BOTH
from tests.harness.processes import free_port, process
from tests.harness.redis_server import redis_server

EXAMPLE = ROOT / "examples" / "kubernetes" / "server.yaml"
SECRETS = r"rediss?://[^\s\"'/]*:[^\s\"'/]*@|--(store|password|token|secret)[ =\"',]+\$"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a scaffolded server with a tool that takes one second, and touches the file `BEGUN` before."""
    out = tmp_path_factory.mktemp("container")
    inside("scaffold", "server", "weather", "--transport", "http", "--out", out, code=0)
    module = out / "weather" / "src" / "weather" / "server.py"
    code = module.read_text("utf-8")
    begin = '    Path(os.environ["BEGUN"]).touch()\n    await asyncio.sleep(1)\n'
    slow = code.replace("    return f", f"{begin}    return f")
    assert slow != code
    module.write_text(
        slow.replace("\nfrom mcp", "\nimport asyncio\nimport os\nfrom pathlib import Path\n\nfrom mcp", 1), "utf-8"
    )
    return out / "weather"


class Image:
    """Process of a container, as a Dockerfile declares it.

    Attributes:
        command: Its entry point, which a manifest keeps.
        arguments: Its arguments, which a manifest replaces.
        variables: Its environment.
    """

    def __init__(self, project: Path) -> None:
        text = (project / "Dockerfile").read_text("utf-8")
        lines = [line.partition(" ") for line in text.splitlines()]
        (self.command,) = (json.loads(rest) for word, _, rest in lines if word == "ENTRYPOINT")
        (self.arguments,) = (json.loads(rest) for word, _, rest in lines if word == "CMD")
        pairs = [one.partition("=") for word, _, rest in lines if word == "ENV" for one in shlex.split(rest)]
        self.variables = {name: value for name, _, value in pairs}
        self.installs_redis = "mcp-bindgen[cluster]" in text


@contextmanager
def container(project: Path, arguments: list[str], log: Path, **variables: str) -> Iterator[tuple[Any, str]]:
    """Run the image with arguments on a free port; yield the process and the URL."""
    image = Image(project)
    assert image.command[0] == "python"
    port = free_port()
    words = [word.replace(":8000", f":{port}") for word in [*image.command[1:], *arguments]]
    search = os.pathsep.join([str(project / "src"), os.environ.get("PYTHONPATH", "")])
    settings = image.variables | variables | {"PYTHONPATH": search, "BEGUN": str(log.with_name("begun"))}
    with process([sys.executable, *words], port, log, **settings) as running:
        yield running, f"http://127.0.0.1:{port}/mcp"


def stopped_at_work(running: Any, url: str, host: str) -> Any:
    """Stop the process while it handles a request of a session; return the response message."""
    with httpx2.Client(headers={"accept": BOTH, "host": host}, timeout=20) as http, ThreadPoolExecutor() as threads:
        begun = http.post(url, json=initialize("2025-11-25"))
        assert begun.status_code == 200, begun.text
        http.headers["mcp-session-id"] = begun.headers["mcp-session-id"]
        assert http.post(url, json=INITIALIZED).status_code == 202
        call = request(2, "tools/call", {"name": "greet", "arguments": {"name": "Ada"}})
        with http.stream("POST", url, json=call) as response:  # the response becomes a stream shortly after
            assert response.status_code == 200
            running.terminate()
            code = threads.submit(running.wait, 10)
            events = [line[6:] for line in response.iter_lines() if line.startswith("data: ") and line[6:]]
        assert code.result() == 0
    return json.loads(events[-1]) if events else None


def stateless_at_work(running: Any, url: str, begun: Path) -> httpx2.Response:
    """Stop the process while it handles a request without a session; return the response.

    Args:
        running: The process.
        url: Its address.
        begun: The file that the tool touches.
    """
    meta = {"protocolVersion": "2026-07-28", "clientInfo": {"name": "x", "version": "1"}, "clientCapabilities": {}}
    params = {"name": "greet", "arguments": {"name": "Ada"}}
    message = request(1, "tools/call", params | {"_meta": {f"io.modelcontextprotocol/{k}": v for k, v in meta.items()}})
    headers = {"accept": BOTH, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "greet"}
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(httpx2.post, url, json=message, headers=headers, timeout=20)
        while not begun.exists() and not answer.done():
            time.sleep(0.02)
        running.terminate()
        assert running.wait(10) == 0
        return answer.result()


@pytest.mark.full
def test_the_dockerfile_command_shuts_down_gracefully(project: Path, tmp_path: Path) -> None:
    with container(project, Image(project).arguments, tmp_path / "log") as (running, url):
        assert (
            stateless_at_work(running, url, tmp_path / "begun").json()["result"]["content"][0]["text"] == "Hello, Ada!"
        )
    log = (tmp_path / "log").read_text("utf-8")
    assert "Traceback" not in log
    assert "exceeded" not in log


@pytest.mark.full
def test_the_manifest_starts_the_same_image_with_redis(
    project: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    deployment = next(iter(YAML(typ="safe", pure=True).load_all(EXAMPLE.read_text("utf-8"))))
    (pod,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "command" not in pod
    assert Image(project).installs_redis
    variables = {one["name"]: one.get("value") for one in pod["env"]}
    host = variables["ALLOWED_HOSTS"]
    with redis_server(tmp_path_factory.mktemp("redis")) as redis:
        settings = {name: value or redis.url for name, value in variables.items()}
        with container(project, pod["args"], tmp_path / "log", **settings) as (running, url):
            assert httpx2.get(url, timeout=20).status_code == 421
            assert stopped_at_work(running, url, host)["result"]["content"][0]["text"] == "Hello, Ada!"
        assert redis.client.dbsize() > 0
    records = [json.loads(line) for line in (tmp_path / "log").read_text("utf-8").splitlines()]
    assert any(one.get("tool") == "greet" for one in records)
    assert not any("exception" in one for one in records)


def test_no_page_or_example_puts_a_secret_on_a_command_line() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    examples = [path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".yaml", ".conf")]
    templates = [path for path in (ROOT / "generator/mcp_bindgen/scaffold/templates").rglob("*") if path.is_file()]
    for path in [*pages, *examples, *templates]:
        for line in path.read_text("utf-8").splitlines():
            assert not re.search(SECRETS, line, re.IGNORECASE), (path, line)
