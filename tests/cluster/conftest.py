"""Redis fixture: one Redis for each test worker, emptied before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.redis_server import RedisServer, redis_server


@pytest.fixture(scope="package")
def running_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def redis(running_redis: RedisServer) -> RedisServer:
    running_redis.client.flushall()
    return running_redis
