"""Tasks over HTTP: ownership, scopes of tokens, restarts of servers, unavailable stores."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, asynccontextmanager, closing, nullcontext, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_bindgen.app import App
from mcp_bindgen.auth import ResourceServer
from mcp_bindgen.cluster.session_registry import RedisStore
from mcp_bindgen.extensions.tasks import (
    MemoryTaskStore,
    RedisTaskStore,
    SqliteTaskStore,
    TaskLimits,
    Tasks,
    TaskStore,
    ToolTask,
)
from mcp_bindgen.http.server.app import HttpApp
from mcp_bindgen.runtime import Context, Identity, ProtocolError, connect
from mcp_bindgen.v2026_07_28.extensions import tasks
from tests.cluster.test_shared_store import workers
from tests.harness.checked_connections import refused, request
from tests.harness.http_wires import listening
from tests.harness.meta_keys import CLIENT_CAPABILITIES
from tests.harness.protected import BOTH, STATELESS, Protected, answer, running, stateless
from tests.harness.redis_server import ANSWER_SECONDS, redis_server

EXTENSION = "io.modelcontextprotocol/tasks"
LIMITS = TaskLimits(poll=0.05)
PEOPLE = {
    "ada": Identity(issuer="https://i", subject="ada", scopes=frozenset({"mcp:write"}), claims={"team": "x"}),
    "ada-reads": Identity(issuer="https://i", subject="ada", scopes=frozenset({"mcp:read"})),
    "ada-left": Identity(issuer="https://i", subject="ada", scopes=frozenset({"mcp:write"})),
    "eve": Identity(issuer="https://i", subject="eve", scopes=frozenset({"mcp:write"})),
}


class Verifier:
    issuers = ("https://i",)

    async def verify(self, token: str, resource: str) -> Identity | None:
        return PEOPLE.get(token)


def app(store: TaskStore, *scopes: str) -> App:
    made = App("jobs", tasks=Tasks(store, limits=LIMITS, lease=0.5))

    @made.tool(task="required", scopes=scopes)
    async def whoami(ctx: Context) -> str:
        assert ctx.identity is not None
        return f"{ctx.identity.subject} {sorted(ctx.identity.scopes)} {dict(ctx.identity.claims)}"

    @made.tool(task="required", scopes=scopes)
    async def wait() -> str:
        await anyio.sleep_forever()
        return ""

    @made.tool(task=ToolTask(reruns=1))
    async def sleep(seconds: float) -> str:
        await anyio.sleep(seconds)
        return "rested"

    return made


@pytest.fixture(scope="module")
def store() -> MemoryTaskStore:
    return MemoryTaskStore()


@pytest.fixture(scope="module")
def protected(store: MemoryTaskStore) -> Iterator[Protected]:
    with running(Verifier(), servers=[app(store, "mcp:write")]) as server:
        yield server


def declaring(**settings: Any) -> dict[str, Any]:
    """Return request metadata of a client that declares the tasks extension."""
    meta: dict[str, Any] = stateless("x")["params"]["_meta"]
    meta[CLIENT_CAPABILITIES]["extensions"] = {EXTENSION: settings}
    return meta


def ask(server: Protected, method: str, token: str, **params: Any) -> Any:
    """Return the response to a request of a client that declares the tasks extension."""
    return server.ask(method, token, **{"_meta": declaring(), **params})


def waiting(server: Protected) -> str:
    """Begin a task of the user `ada`; return its id."""
    id: str = answer(ask(server, "tools/call", "ada", name="wait"))["result"]["taskId"]
    return id


def are_unknown(theirs: Any, nobodys: Any) -> None:
    """Check that another user's task and a task that never existed cause the same error."""
    assert (theirs["error"], theirs["error"]["code"]) == (nobodys["error"], -32602)


def test_a_task_runs_as_its_creator_and_stores_no_token(protected: Protected, store: MemoryTaskStore) -> None:
    id = answer(ask(protected, "tools/call", "ada", name="whoami"))["result"]["taskId"]
    while (found := answer(ask(protected, "tasks/get", "ada", taskId=id))["result"])["status"] == "working":
        pass
    assert found["result"]["content"][0]["text"] == "ada ['mcp:read', 'mcp:write'] {'team': 'x'}"
    assert found["resultType"] == "complete"
    held = anyio.run(store.read, id)
    assert held is not None
    assert "Bearer" not in str(held)


def test_clients_of_the_revision_with_core_tasks_see_only_their_own_tasks(protected: Protected) -> None:
    sessions = {name: protected.session(name) for name in ("ada", "eve")}
    sessions["ada again"] = protected.session("ada")

    def asked(who: str, method: str, **params: Any) -> Any:
        return answer(protected.ask(method, who.split()[0], sessions[who], **params))

    id = asked("ada", "tools/call", name="wait", arguments={}, task={})["result"]["task"]["taskId"]
    assert id in [one["taskId"] for one in asked("ada again", "tasks/list")["result"]["tasks"]]
    assert asked("eve", "tasks/list")["result"]["tasks"] == []
    for method in ("tasks/get", "tasks/cancel", "tasks/result"):
        are_unknown(asked("eve", method, taskId=id), asked("eve", method, taskId="x" * 43))
    assert asked("ada again", "tasks/cancel", taskId=id)["result"]["status"] == "cancelled"


def test_lists_and_notifications_contain_only_tasks_that_the_token_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages stay full although tasks are filtered out, and cursors do not name filtered tasks.

    Another endpoint of the servers, where calls need no scopes, changes nothing.
    """
    monkeypatch.setattr("mcp_bindgen.extensions.tasks.engine.PAGE_SIZE", 3)
    monkeypatch.setattr("mcp_bindgen.extensions.tasks.sqlite_store.PAGE_SIZE", 3)
    servers, rules = [app(MemoryTaskStore()).served()], {("tools/call", "wait"): ["mcp:write"]}
    with running(Verifier(), servers=servers, scopes=rules) as server:
        assert HttpApp(*servers, auth=ResourceServer(server.url, Verifier()))
        session = server.session("ada")

        def asked(token: str, method: str, **params: Any) -> Any:
            return answer(server.ask(method, token, session, **params))

        def called(name: str) -> str:
            arguments = {"seconds": 60} if name == "sleep" else {}
            found: str = asked("ada", "tools/call", name=name, arguments=arguments, task={})["result"]["task"]["taskId"]
            return found

        def listed(token: str) -> list[list[str]]:
            pages, more = list[list[str]](), dict[str, str]()
            while not pages or more:
                found = asked(token, "tasks/list", **more)["result"]
                pages.append([one["taskId"] for one in found["tasks"]])
                more = {"cursor": found["nextCursor"]} if "nextCursor" in found else {}
                assert set(more.values()) <= set(pages[-1])
            return pages

        made = [called(name) for name in ("wait", "sleep") * 5]
        mine = made[1::2]
        assert listed("ada") == [made[:3], made[3:6], made[6:9], made[9:]]
        assert listed("ada-reads") == [mine[:3], mine[3:]]
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            refused = asked("ada-reads", method, taskId=made[0])
            assert refused["error"]["data"] == {"error": "insufficient_scope", "scope": "mcp:write"}, method
        headers = {**session, "authorization": "Bearer ada-reads", "accept": "text/event-stream"}
        with server.client.stream("GET", server.url, headers=headers) as response:
            lines = response.iter_lines()
            asked("ada-reads", "tasks/list")  # makes this token the newest token of the session
            for id in (made[0], mine[0]):
                ask(server, "tasks/cancel", "ada", taskId=id)
            while '"cancelled"' not in (line := _data(lines)):
                pass  # skip earlier notifications
            assert mine[0] in line


def test_an_unreadable_task_record_hides_no_other_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("engine", "sqlite_store"):
        monkeypatch.setattr(f"mcp_bindgen.extensions.tasks.{module}.PAGE_SIZE", 3)
    file = tmp_path / "tasks.db"
    with running(Verifier(), servers=[app(SqliteTaskStore(file), "mcp:write")]) as server:
        session = server.session("ada")

        def asked(method: str, **params: Any) -> Any:
            return answer(server.ask(method, "ada", session, **params))["result"]

        made = [asked("tools/call", name="wait", arguments={}, task={})["task"]["taskId"] for _ in range(6)]
        with closing(sqlite3.connect(file, timeout=ANSWER_SECONDS)) as db, db:
            while db.execute("select min(version) from tasks").fetchone() == (1,):
                pass  # wait for the run to begin, because its write would replace the damaged record
            db.execute("update tasks set record = x'ff' where id = ?", (made[1],))
        first = asked("tasks/list")
        rest = asked("tasks/list", cursor=first["nextCursor"])
        assert [one["taskId"] for one in first["tasks"] + rest["tasks"]] == [made[0], *made[2:]]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
def test_a_task_of_another_user_is_unknown(protected: Protected, method: str) -> None:
    """A token without the scope of the tool learns nothing about the tool's tasks."""
    id = waiting(protected)
    more: dict[str, Any] = {"inputResponses": {}} if method == "tasks/update" else {}
    theirs, nobodys = (answer(ask(protected, method, "eve", taskId=one, **more)) for one in (id, "x" * 43))
    are_unknown(theirs, nobodys)
    assert answer(ask(protected, "tasks/get", "ada", taskId=id))["result"]["status"] == "working"
    refused = ask(protected, method, "ada-reads", taskId=id, **more)
    assert refused.status_code == 403, refused.text
    assert "mcp:write" in refused.headers["www-authenticate"]


def test_a_task_of_a_tool_that_is_hidden_from_a_token_is_unknown() -> None:
    made = app(MemoryTaskStore())
    made.visible(lambda identity: "team" in identity.claims, "wait")
    with running(Verifier(), servers=[made]) as server:
        id = waiting(server)
        for method in ("tasks/get", "tasks/cancel"):
            are_unknown(*(answer(ask(server, method, "ada-left", taskId=one)) for one in (id, "x" * 43)))
        assert answer(ask(server, "tasks/get", "ada", taskId=id))["result"]["status"] == "working"
        assert answer(ask(server, "tasks/cancel", "ada", taskId=id))["result"] is not None


def test_a_subscription_reports_only_tasks_of_its_own_user(protected: Protected) -> None:
    id = waiting(protected)

    def listen(token: str) -> Any:
        body = stateless("subscriptions/listen", notifications={"taskIds": [id]}, _meta=declaring())
        headers = {"mcp-protocol-version": STATELESS, "mcp-method": "subscriptions/listen"}
        headers |= {"authorization": f"Bearer {token}", "accept": BOTH}
        return protected.client.stream("POST", protected.url, json=body, headers=headers)

    with listen("ada") as mine, listen("eve") as theirs:
        lines, others = mine.iter_lines(), theirs.iter_lines()
        assert id in _data(lines)  # the acknowledgement
        assert '"working"' in _data(lines)
        assert id not in _data(others)
        ask(protected, "tasks/cancel", "ada", taskId=id)
        while '"cancelled"' not in (line := _data(lines)):
            assert '"working"' in line


def _data(lines: Iterator[str]) -> str:
    return next(line for line in lines if line.startswith("data: {"))


def test_a_header_that_names_another_task_is_refused(protected: Protected) -> None:
    refused = ask(protected, "tasks/get", "ada", taskId=waiting(protected), headers={"mcp-name": "another"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, -32020)


def test_unknown_settings_of_the_tasks_extension_are_accepted(protected: Protected) -> None:
    later = declaring(later=1)
    id = answer(ask(protected, "tools/call", "ada", name="wait", _meta=later))["result"]["taskId"]
    assert answer(ask(protected, "tasks/cancel", "ada", taskId=id, _meta=later))["result"]


def test_a_client_that_did_not_declare_tasks_gets_a_capability_error(protected: Protected) -> None:
    tried = [protected.ask(method, "ada", taskId="x") for method in ("tasks/get", "tasks/cancel")]
    for response in (*tried, protected.call("wait", token="ada")):
        error = answer(response)["error"]
        assert (error["code"], error["data"]) == (-32021, {"requiredCapabilities": {"extensions": {EXTENSION: {}}}})


@asynccontextmanager
async def serving(store: TaskStore) -> AsyncGenerator[Any]:
    http = HttpApp(app(store))
    async with listening(http) as port, connect(f"http://127.0.0.1:{port}/mcp", tasks.Client) as client:
        yield client


async def test_a_client_finds_its_task_after_server_and_client_were_restarted(tmp_path: Path) -> None:
    async with aclosing(SqliteTaskStore(tmp_path / "tasks.db")) as store, serving(store) as client:
        id = (await client.start_tool("sleep", {"seconds": 0.3})).id
    async with aclosing(SqliteTaskStore(tmp_path / "tasks.db")) as store, serving(store) as client:
        assert (await client.task(id).result()).content[0].text == "rested"


async def test_a_task_completes_after_an_outage_of_the_store(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "mcp_bindgen")
    with redis_server(tmp_path) as redis:
        async with aclosing(RedisTaskStore(redis.url, timeout=0.3)) as store, serving(store) as client:
            handle = await client.start_tool("sleep", {"seconds": 0.3})
            redis.stop()
            for attempt in (handle.status(), client.start_tool("sleep", {"seconds": 0})):
                assert (await refused(attempt, match="try again later")).code == -32603
            await anyio.sleep(0.4)
            redis.start()
            result = None
            while result is None:
                with suppress(ProtocolError):
                    result = await handle.result()
                await anyio.sleep(0.1)
            assert result.content[0].text == "rested"


async def test_a_session_without_a_token_lists_its_tasks_of_all_workers(tmp_path: Path) -> None:
    store, made = MemoryTaskStore(), list[str]()

    async def asked(worker: int, session: str, method: str, **params: Any) -> Any:
        return answer(await two.post(worker, session, request(1, method, params)))["result"]

    with redis_server(tmp_path) as redis:
        async with workers(redis, make=lambda: app(store)) as two:
            mine, other = await two.begin(), await two.begin()
            for worker in (0, 1):
                created = await asked(worker, mine, "tools/call", name="wait", arguments={}, task={})
                made.append(created["task"]["taskId"])
            for worker in (0, 1):
                assert [one["taskId"] for one in (await asked(worker, mine, "tasks/list"))["tasks"]] == made
                assert (await asked(worker, other, "tasks/list"))["tasks"] == []
    assert not any(mine.encode() in record.data for record in await store.page(""))


@pytest.mark.parametrize("is_shared", [False, True])
async def test_a_client_identified_without_a_token_is_notified_of_its_tasks(tmp_path: Path, is_shared: bool) -> None:
    class Listens(tasks.Client):
        def on_task_status(self, params: Any, ctx: Any) -> None:
            heard.set()

    heard = anyio.Event()
    with redis_server(tmp_path) if is_shared else nullcontext() as redis:
        store = None if redis is None else RedisStore(redis.url, timeout=ANSWER_SECONDS)
        http = HttpApp(app(MemoryTaskStore()), principal=lambda scope: "ada", store=store)
        async with listening(http) as port, connect(f"http://127.0.0.1:{port}/mcp", Listens()) as client:
            task = await client.start_tool("sleep", {"seconds": 0})
            await anyio.sleep(0.2)  # the task ends before its client subscribes
            async with client.subscribed(tasks.types.TaskSubscriptionNotifications(task_ids=[task.id])):
                with anyio.fail_after(30):
                    await heard.wait()
