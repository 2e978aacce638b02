"""Settings of the whole suite: number of examples and workers, coroutines, garbage, signals, isolation from user files.

`make test` runs the Hypothesis profile `quick`, `make test-all` the profile `full`; `deep` looks for more.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest
from hypothesis import settings

from tests.harness import forks
from tests.harness.commands import ROOT
from tests.harness.effort import HANG_SECONDS
from tests.harness.installation import wheel
from tests.harness.shared import filled

if TYPE_CHECKING:
    from tests.harness.redis_server import RedisServer

for name, tried in (("quick", 40), ("full", 100), ("deep", 100)):
    settings.register_profile(name, deadline=None, max_examples=tried)  # a busy machine must not fail a test
settings.load_profile("quick")
os.environ.setdefault("PIP_RETRIES", "10")  # a slow package index must not fail a test
os.environ.setdefault("PIP_DEFAULT_TIMEOUT", "60")
os.environ.setdefault("UV_HTTP_RETRIES", "10")
os.environ["MCP_BINDGEN_HOME"] = str(Path(__file__).parent / "no-home")  # ignore the bindings that the user imported
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"  # leave the keyring of the user alone
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
"""Write compiled modules even if the environment disables this, as in containers. Otherwise each worker and each of the
hundreds of processes that tests start would compile all its imports, which takes longer than the tests.
"""
gc.disable()  # until the end of the collection, because collected tests stay in memory


def pytest_configure() -> None:
    """Restore SIGINT: a shell starts background jobs with SIGINT ignored, and child processes of tests inherit this."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the fork server while workers collect tests; otherwise it would start with the first program."""
    if session.config.getoption("numprocesses", None):
        forks.prepare()


@pytest.fixture(scope="session")
def own_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel of this checkout, built once for all processes of a run."""
    return next(filled(tmp_path_factory, lambda folder: wheel(folder, ROOT), "wheel").glob("*.whl"))


@pytest.fixture(scope="session")
def running_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    from tests.harness.redis_server import redis_server  # few tests need it

    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def redis(running_redis: RedisServer) -> RedisServer:
    """Return the Redis of this process, emptied."""
    running_redis.client.flushall()
    return running_redis


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an `async def` test inside the asynchronous contexts among its fixtures.

    The test must end in three minutes and leave no task behind. Tests with the marker `anyio` are left to its plugin,
    which supports asynchronous fixtures.
    """
    test, fixtures = pyfuncitem.obj, pyfuncitem.funcargs
    if not iscoroutinefunction(test) or "anyio_backend" in fixtures:
        return None

    async def run() -> None:
        with anyio.fail_after(HANG_SECONDS):
            async with AsyncExitStack() as stack:
                values = [fixtures[name] for name in signature(test).parameters]
                for index, value in enumerate(values):
                    if isinstance(value, AbstractAsyncContextManager):
                        values[index] = await stack.enter_async_context(value)
                await test(*values)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left:  # httpx2 leaves inner generators to the event loop when a response is not read to its end
            await asyncio.wait(left, timeout=1)
        assert all(task.done() for task in left), left

    anyio.run(run)
    return True


def pytest_collection_finish() -> None:
    """Enable garbage collection, except for the collected tests and modules: that would take a tenth of the whole run.

    Collections are rarer than by default, but frequent enough to free the objects of a type checker (100 MB a run)
    before the next few runs.
    """
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


_BLOCKS = pytest.StashKey[int]()
"""Number of memory blocks after the last look at the garbage."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None]:
    """Collect the garbage of mypy, which grows to gigabytes in a process of `make test-all`.

    mypy moves all objects to the oldest generation, frozen ones too, and Python rarely collects that. Counting objects
    takes ten times as long as counting memory blocks, so it waits until the blocks have become more.
    """
    yield
    stash, blocks = item.config.stash, sys.getallocatedblocks()
    if blocks < stash.setdefault(_BLOCKS, blocks) + 500_000:
        stash[_BLOCKS] = min(stash[_BLOCKS], blocks)
        return
    count = len(gc.get_objects(generation=2))
    if count > 4_000_000:
        gc.collect()
    if count > 500_000:
        gc.freeze()
    stash[_BLOCKS] = sys.getallocatedblocks()


_LEFT_OUT = re.compile(r"^pytestmark = \[?\s*pytest\.mark\.(full|slow)\b", re.MULTILINE)


def _is_left_out(marks: Iterable[pytest.Mark | pytest.MarkDecorator], config: pytest.Config) -> bool:
    return any(mark.name in ("full", "slow") and f"not {mark.name}" in config.option.markexpr for mark in marks)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of modules whose tests are all deselected: the imports take seconds in each worker."""
    if collection_path.suffix != ".py" or not collection_path.is_file():
        return None
    found = _LEFT_OUT.search(collection_path.read_text("utf-8"))
    return True if found is not None and f"not {found[1]}" in config.option.markexpr else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, obj: object) -> list[pytest.Item] | None:
    """Make no items of deselected tests, which are most tests in `make test`."""
    return [] if _is_left_out(getattr(obj, "pytestmark", ()), collector.config) else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make no items of deselected parameters."""
    for mark in metafunc.definition.iter_markers("parametrize"):
        cases = mark.args[1]
        if isinstance(cases, list) and "ids" not in mark.kwargs:
            kept = [case for case in cases if not _is_left_out(getattr(case, "marks", ()), metafunc.config)]
            cases[:] = kept or cases


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measure coverage (`--cov`) only in the tests of `make test`: tracing doubles the time of a test."""
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(pytest.mark.no_cover)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for `-n auto`: two per processor, because tests wait a third of their time."""
    affinity = getattr(os, "sched_getaffinity", None)  # not available on every system
    return 2 * (len(affinity(0)) if affinity else os.cpu_count() or 1)
