"""The conformance runner: it notices all problems that the suite reports, and the page is about the pinned suite.

A small program stands in for the suite, which runs in `make conformance`. The tests take about 10 seconds.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen import v2025_03_26, v2025_11_25, v2026_07_28
from mcp_bindgen.runtime import Context
from mcp_bindgen.v2025_03_26 import types as mcp0326
from mcp_bindgen.v2025_11_25 import types as mcp1125
from mcp_bindgen.v2026_07_28 import types as mcp
from tests.conformance import run, suite
from tests.conformance.run import PAGE, page, play, summary, wanted
from tests.conformance.suite import HERE, Outcome, Scenario, Suite, judged, last_words, listed, pinned
from tests.harness.checked_connections import bindings
from tests.harness.commands import ROOT
from tests.interop.processes import needed

LISTING = """\
Server scenarios (test against a server):
  - ping [2025-06-18,2025-11-25]
  - caching [2026-07-28]
  - tasks-lifecycle [extension]

Client scenarios (test against a client):
  - auth/iss-supported [2026-07-28]
  - auth/dpop [extension]
"""
STAND_IN = """\
import json, sys, time
from pathlib import Path

def play(what, *options):
    if what == "list":
        return 0, {listing!r}
    given = dict(zip(options[::2], options[1::2]))
    name, tried = given["--scenario"], Path({folder!r}, "tried")
    if name == "endless":
        time.sleep(60)
    if name == "crash":
        return 1, "no such server"
    status = {{"warns": "WARNING", "fails": "FAILURE", "skips": "SKIPPED"}}.get(name, "SUCCESS")
    if name == "flaky" and not tried.exists():
        tried.touch()
        status = "FAILURE"
    words = given.get("--url", "of\\nthe client")
    folder = Path(given["--output-dir"], f"{{what}}-{{name}}-now")
    folder.mkdir(parents=True)
    checks = [{{"id": "check", "name": "Check", "status": status, "errorMessage": words}}]
    (folder / "checks.json").write_text(json.dumps(checks))
    return 3 if name == "dies" else 0, ""

for line in sys.stdin:
    code, output = play(*json.loads(line))
    print(json.dumps({{"code": code, "output": output}}), flush=True)
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Iterator[Suite]:
    """Yield a suite whose command is a small program that takes the same arguments."""
    with Suite([sys.executable, "-c", STAND_IN.format(folder=str(tmp_path), listing=LISTING)]) as found:
        yield found


def check(status: str, **more: Any) -> dict[str, Any]:
    """Return a check as the suite reports it."""
    return {"id": "rule", "name": "Rule", "status": status, "description": "what is checked", **more}


def server(name: str, *revisions: str) -> Scenario:
    """Return a scenario for servers."""
    return Scenario("server", name, revisions)


def test_scenarios_are_read_with_their_revisions() -> None:
    found = listed("client", LISTING)
    assert [(each.name, each.revisions, each.is_extension) for each in found] == [
        ("ping", ("2025-06-18", "2025-11-25"), False),
        ("caching", ("2026-07-28",), False),
        ("tasks-lifecycle", (), True),
        ("auth/iss-supported", ("2026-07-28",), False),
        ("auth/dpop", (), True),
    ]
    played = wanted(found)
    assert [each.name for each in played] == ["ping", "caching", "auth/iss-supported", "auth/dpop"]
    assert played[-1].revisions == ("2025-11-25", "2026-07-28")
    served = [each.name for each in wanted(listed("server", LISTING))]
    assert served == ["ping", "caching", "tasks-lifecycle", "auth/iss-supported"]


@pytest.mark.parametrize(
    ("checks", "code", "expected"),
    [
        ([check("SUCCESS"), check("SUCCESS"), check("INFO")], 0, Outcome(2)),
        ([check("SUCCESS"), check("SKIPPED", errorMessage="not\n asked")], 0, Outcome(1, ("rule: not asked",))),
        ([check("SUCCESS"), check("WARNING")], 0, Outcome(1, (), ("rule: what is checked",))),
        ([check("FAILURE", errorMessage="wrong"), check("SUCCESS")], 1, Outcome(1, (), ("rule: wrong",))),
        ([check("SUCCESS")], 1, Outcome(1, (), ("exit code 1: it broke",))),
        ([], 0, Outcome(0, (), ("nothing was checked",))),
        ([], 1, Outcome(0, (), ("exit code 1: it broke",))),
    ],
)
def test_an_outcome_follows_from_the_checks_and_the_exit_code(
    checks: list[dict[str, Any]], code: int, expected: Outcome
) -> None:
    outcome = judged(checks, code, "begin\nit broke\n\n")
    assert outcome == expected
    assert outcome.good == (code == 0 and bool(checks) and not expected.problems)


def test_an_outcome_with_only_skipped_checks_is_not_good() -> None:
    assert not judged([check("SKIPPED")], 0, "").good


def test_the_error_line_of_the_client_is_extracted_from_the_output() -> None:
    output = (
        "Client exited with code 1\n\nStderr:\nTraceback:\n  deep\nKeyError: 'x'\n\nResults saved to here\nFAILED\n"
    )
    assert last_words(output) == "KeyError: 'x'"
    assert last_words("") == ""


def test_a_scenario_is_run_and_its_problems_are_reported(stand_in: Suite) -> None:
    outcome = stand_in.run(server("fine", "2026-07-28"), "2026-07-28", "http://there/mcp")
    assert outcome == Outcome(1)
    outcome = stand_in.run(server("fails", "2026-07-28"), "2026-07-28", "http://there/mcp")
    assert outcome.problems == ("check: http://there/mcp",)
    outcome = stand_in.run(Scenario("client", "warns", ()), "2026-07-28", "python client.py")
    assert outcome.problems == ("check: of the client",)


@pytest.mark.parametrize(
    ("name", "problems"), [("skips", ()), ("fine", ("it checks something now",)), ("fails", ("check: url",))]
)
def test_an_unwritten_scenario_is_good_until_it_checks_something(
    stand_in: Suite, monkeypatch: pytest.MonkeyPatch, name: str, problems: tuple[str, ...]
) -> None:
    monkeypatch.setattr(run, "CHECK_NOTHING", {name})
    [scenario] = wanted([server(name, "2026-07-28")])
    outcome = stand_in.run(scenario, "2026-07-28", "url")
    assert outcome.problems == problems
    assert outcome.good == (not problems)
    text = page({(scenario, "2026-07-28"): outcome}, [], "1")
    assert f"| `{name}` | {'FAILED' if problems else '0'} |" in text
    assert f"- `{name}`, 2026-07-28: it is listed and not written yet" in text


@pytest.mark.parametrize(
    ("name", "problem"),
    [("crash", "exit code 1: no such server"), ("dies", "exit code 3: "), ("skips", None), ("fails", "check: url")],
)
def test_crashed_skipped_and_failed_scenarios_are_not_good(stand_in: Suite, name: str, problem: str | None) -> None:
    outcome = stand_in.run(server(name), "2026-07-28", "url")
    assert not outcome.good
    assert outcome.problems == (() if problem is None else (problem,))


def test_an_endless_scenario_times_out(stand_in: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "PATIENCE", 0.5)
    assert stand_in.run(server("endless"), "2026-07-28", "url").problems == ("no end after 0 seconds",)


@pytest.mark.full
def test_failed_scenarios_are_retried_once_at_the_end(stand_in: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[str] = []
    once = stand_in.run

    def run(scenario: Scenario, revision: str, target: str) -> Outcome:
        played.append(f"{scenario.name} {revision}")
        return once(scenario, revision, target)

    monkeypatch.setattr(stand_in, "run", run)
    flaky, fails, fine = server("flaky", "2026-07-28"), server("fails", "2025-11-25", "2026-07-28"), server("fine", "x")
    results = play(stand_in, [flaky, fails, fine], {"server": "url"})
    assert [outcome.good for outcome in results.values()] == [True, False, False, True]
    again = ["flaky 2026-07-28", "fails 2025-11-25", "fails 2026-07-28"]
    assert sorted(played[:4]) == sorted([*again, "fine x"])
    assert played[4:] == again


def test_the_summary_counts_scenarios_and_lists_problems() -> None:
    results = {
        (server("a", "2025-11-25"), "2025-11-25"): Outcome(3),
        (server("b", "2025-11-25"), "2025-11-25"): Outcome(1, (), ("rule: broken",)),
        (server("a", "2026-07-28"), "2026-07-28"): Outcome(4),
    }
    assert summary(results).splitlines() == [
        "server  2025-11-25   1 of  2 scenarios    4 checks",
        "    b: rule: broken",
        "server  2026-07-28   1 of  1 scenarios    4 checks",
    ]


def test_the_page_has_a_cell_for_each_scenario_and_revision() -> None:
    both, new = server("both", "2025-11-25", "2026-07-28"), server("new", "2026-07-28")
    results = {
        (both, "2025-11-25"): Outcome(3),
        (both, "2026-07-28"): Outcome(2, (), ("rule: broken",)),
        (new, "2026-07-28"): Outcome(5, ("rule: not asked",)),
    }
    text = page(results, [server("extra")], "1.2.3")
    for line in (
        "| scenario | 2025-11-25 | 2026-07-28 |",
        "| `both` | 3 | FAILED |",
        "| `new` | - | 5 |",
        "- `new`, 2026-07-28: rule: not asked",
        "- Extensions, of which none is offered: `extra`.",
    ):
        assert line in text.splitlines(), line


@pytest.mark.full
@pytest.mark.parametrize("trouble", ["stale", "failing", None])
def test_the_run_fails_for_a_stale_page_and_for_failing_scenarios(
    trouble: str | None, stand_in: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def there() -> Generator[str]:
        yield "http://there/mcp"

    monkeypatch.setattr(run, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(run, "serving", there)
    monkeypatch.setattr(run, "installed", pinned)
    monkeypatch.setattr(run, "Suite", lambda: stand_in)
    if trouble == "failing":
        monkeypatch.setattr(stand_in, "run", lambda *_: Outcome(0, (), ("rule: broken",)))
    monkeypatch.setattr(sys, "argv", ["run", "--write"])
    assert run.main() == int(trouble == "failing")
    if trouble == "stale":
        (tmp_path / "page.md").write_text("old", "utf-8")
    monkeypatch.setattr(sys, "argv", ["run"])
    assert run.main() == int(trouble is not None)


def test_a_suite_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "installed", lambda: "0.1.0")
    monkeypatch.setattr(sys, "argv", ["run"])
    with pytest.raises(SystemExit, match="npm ci"):
        run.main()


def test_the_page_names_the_pinned_suite_and_has_no_failures() -> None:
    locked = json.loads((HERE / "package-lock.json").read_text("utf-8"))["packages"]
    assert locked["node_modules/@modelcontextprotocol/conformance"]["version"] == pinned()
    text = PAGE.read_text("utf-8")
    assert f"`@modelcontextprotocol/conformance` {pinned()}" in text
    assert "FAILED" not in text
    assert re.search(r"\| `server-stateless` \| - \| - \| - \| \d+ \|", text)


# --- behaviour that the suite does not check ----------------------------------------------------------------------


class Heard:
    """Notifications that clients received."""

    def __init__(self) -> None:
        self.told: list[str] = []

    async def has(self, *expected: str) -> None:
        """Wait for exactly these notifications, in any order."""
        while len(self.told) < len(expected):
            await anyio.sleep(0.01)
        assert sorted(self.told) == sorted(expected)
        self.told.clear()


@pytest.mark.full
async def test_stateful_and_stateless_clients_are_notified_of_changes() -> None:
    heard = Heard()

    class Older(v2025_03_26.Client):
        def on_tool_list_changed(self, params: mcp0326.ToolListChangedNotificationParams, ctx: Context) -> None:
            heard.told.append("2025-03-26 tools")

    class Old(v2025_11_25.Client):
        def on_resource_updated(self, params: mcp1125.ResourceUpdatedNotificationParams, ctx: Context) -> None:
            heard.told.append(f"2025-11-25 {params.uri}")

        def on_tool_list_changed(self, params: mcp1125.NotificationParams, ctx: Context) -> None:
            heard.told.append("2025-11-25 tools")

    class New(v2026_07_28.Client):
        def on_resource_updated(self, params: mcp.ResourceUpdatedNotificationParams, ctx: Context) -> None:
            heard.told.append(f"2026-07-28 {params.uri}")

        def on_tool_list_changed(self, params: mcp.NotificationParams, ctx: Context) -> None:
            heard.told.append("2026-07-28 tools")

    watched = "test://watched-resource"
    with run.serving() as url:
        async with Older.connect(url) as older, Old.connect(url) as old, New.connect(url) as new:
            await old.subscribe(watched)
            wanted = mcp.SubscriptionFilter(tools_list_changed=True, resource_subscriptions=[watched])
            async with new.subscribed(wanted):
                await new.call_tool("test_trigger_tool_change")
                await heard.has("2025-03-26 tools", "2025-11-25 tools", "2026-07-28 tools")
                assert "test_dynamic_tool" in [tool.name async for tool in older.iter_tools()]
                await older.call_tool("test_write_watched_resource", {"text": "news"})
                await heard.has(f"2025-11-25 {watched}", f"2026-07-28 {watched}")
                await old.unsubscribe(watched)
            await old.call_tool("test_trigger_tool_change")
            await heard.has("2025-03-26 tools", "2025-11-25 tools")
            assert (await old.read_resource(watched)).contents[0].model_dump()["text"] == "news"


@pytest.mark.full
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
async def test_the_server_supports_each_revision(revision: str) -> None:
    with run.serving() as url:
        async with bindings(revision).Client.connect(url) as client:
            for name in ("test_simple_text", "test_image_content", "test_audio_content", "test_multiple_content_types"):
                assert (await client.call_tool(name)).content[0].type in ("text", "image", "audio")
            assert (await client.call_tool("test_error_handling")).is_error
            assert (await client.call_tool("test_sampling")).content[0].text == "'prompt' is missing"


def test_the_page_about_tiers_names_the_files_that_the_checker_looks_for() -> None:
    needed(modules=HERE / "node_modules")
    script = suite.PACKAGE / "dist" / "index.js"
    (listed_files,) = re.findall(r"\[([^][]*`DEPENDENCY_POLICY\.md`[^][]*)\]", script.read_text("utf-8"))
    tier = (ROOT / "docs/reference/sdk-tier.md").read_text("utf-8")
    rows = re.findall(r"^\| (`.*\.(?:md|yml|json)`) \| (.*) \|$", tier, re.MULTILINE)
    name = re.compile(r"`([^`]+)`")
    assert sorted(one for looked_for, _ in rows for one in name.findall(looked_for)) == sorted(
        name.findall(listed_files)
    )
    assert all((ROOT / one).is_file() for _, here in rows for one in name.findall(here))
