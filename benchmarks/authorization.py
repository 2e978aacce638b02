"""Cost of authorization: protected calls next to open ones, verifying next to the bare library, a ping beside both.

Three parts, each as ratios in one run:
`calls`: `tools/call` over HTTP, 32 connections, without tokens and with one that is known already;
`tokens`: verifying tokens that all differ, next to joserfc alone, which checks only the signature;
`ping`: how long a ping takes beside calls whose tokens all differ, and beside the same calls with a known token.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from costs import processor_time
from http_driver import HERE, ask, connect, drive, is_whole, post
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey
from ports import free_port, wait_for
from protected_http_server import ISSUER, RESOURCE, gate
from rounds import in_turn, report

from mcp_bindgen.auth import JwtVerifier

CONNECTIONS = 32
FLOOD = 4  # connections beside a ping
PARTS = ("calls", "tokens", "ping")
KEYS: dict[str, Any] = {
    "RS256": RSAKey.generate_key(2048, {"kid": "RS256"}),
    "ES256": ECKey.generate_key("P-256", {"kid": "ES256"}),
    "Ed25519": OKPKey.generate_key("Ed25519", {"kid": "Ed25519"}),
}
JWKS = {"keys": [key.as_dict(private=False) for key in KEYS.values()]}


def token(number: int, algorithm: str = "RS256") -> str:
    """Return an access token that differs from all others."""
    now = int(time.time())
    claims = {
        "iss": ISSUER,
        "sub": f"user {number}",
        "client_id": "bench",
        "aud": RESOURCE,
        "iat": now,
        "exp": now + 3600,
        "jti": str(number),
        "scope": "mcp:all other",
    }
    header = {"typ": "at+jwt", "alg": algorithm, "kid": algorithm}
    return jwt.encode(header, claims, KEYS[algorithm], algorithms=[algorithm])


@contextmanager
def serving(protected: bool) -> Generator[tuple[int, int]]:
    """Run a server; give its process id and its port."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "jwks.json"
        keys.write_text(json.dumps(JWKS))
        script = [HERE / "protected_http_server.py", port, keys] if protected else [HERE / "http_server.py", port]
        with subprocess.Popen([sys.executable, *map(str, script)], stderr=subprocess.DEVNULL) as process:
            try:
                wait_for(port)
                yield process.pid, port
            finally:
                process.kill()


def with_token(request: bytes, text: str) -> bytes:
    """Return a request as it is written to a socket, with a token."""
    return request.replace(b"\r\n\r\n", b"\r\nAuthorization: Bearer " + text.encode() + b"\r\n\r\n", 1)


def calls(protected: bool, count: int) -> list[float]:
    """Measure calls a second, and the processor time of one."""
    with serving(protected) as (pid, port):
        requests = [post(port, i, "tools/call", "echo", arguments={"text": f"hello {i}"}) for i in range(CONNECTIONS)]
        if protected:
            requests = [with_token(request, token(i)) for i, request in enumerate(requests)]
        assert '"text":"hello 7"' in ask(port, requests[7])
        drive(port, requests, 10 * CONNECTIONS)  # warm, and all tokens are known
        before = processor_time(pid)
        seconds = drive(port, requests, count)
        return [count / seconds, (processor_time(pid) - before) / count * 1e6]


def ours(tokens: list[str]) -> list[float]:
    """Measure how many tokens a `JwtVerifier` verifies a second, whole gate included."""
    auth = gate(json.dumps(JWKS))

    async def verify() -> float:
        request: Any = type("Request", (), {"scope": {"method": "POST", "path": "/mcp"}, "headers": {}})()
        request.headers = {b"authorization": b"Bearer " + token(0).encode()}
        await auth.authenticate(request)  # keys are there
        begin = time.perf_counter()
        for one in tokens:
            request.headers = {b"authorization": b"Bearer " + one.encode()}
            identity = await auth.authenticate(request)
            assert identity.has("mcp:call")
        return len(tokens) / (time.perf_counter() - begin)

    return [asyncio.run(verify())]


def verifier(tokens: list[str]) -> list[float]:
    """Measure how many tokens a `JwtVerifier` alone verifies a second."""
    one = JwtVerifier(ISSUER, keys=JWKS)

    async def verify() -> float:
        await one.verify(token(0), RESOURCE)
        begin = time.perf_counter()
        for text in tokens:
            assert await one.verify(text, RESOURCE)
        return len(tokens) / (time.perf_counter() - begin)

    return [asyncio.run(verify())]


def bare(tokens: list[str], algorithm: str) -> list[float]:
    """Measure how many signatures joserfc verifies a second; it checks no claims here."""
    keys = KeySet.import_key_set(JWKS)  # type: ignore[arg-type]
    begin = time.perf_counter()
    for text in tokens:
        assert jwt.decode(text, keys, algorithms=[algorithm]).claims["iss"] == ISSUER
    return [len(tokens) / (time.perf_counter() - begin)]


def flood(port: int, fresh: bool, begun: Any, ended: Any, tokens: list[str]) -> None:
    """Call over a few connections without a pause, with tokens that all differ or with one."""
    plain = post(port, 1, "tools/call", "echo", arguments={"text": "hello"})
    texts: Iterator[str] = iter(tokens) if fresh else cycle(tokens[:1])
    connections = [connect(port) for _ in range(FLOOD)]
    done = 0
    while not ended.is_set():
        for connection in connections:
            connection.sendall(with_token(plain, next(texts)))
        for connection in connections:
            seen = b""
            while not is_whole(seen):
                seen += connection.recv(1 << 16)
            assert seen.startswith(b"HTTP/1.1 200 "), seen
            done += 1
        begun.set()


def ping(beside: str, tokens: list[str], count: int) -> list[float]:
    """Measure the median and the 99th percentile of a small request, in milliseconds, beside a flood or none."""
    with serving(protected=True) as (_, port):
        begun, ended = multiprocessing.Event(), multiprocessing.Event()
        process = multiprocessing.Process(target=flood, args=(port, beside == "fresh", begun, ended, tokens))
        if beside != "nothing":
            process.start()
            begun.wait()
        request = with_token(post(port, 1, "server/discover"), token(0))
        took: list[float] = []
        with connect(port) as connection:
            for _ in range(count):
                time.sleep(0.001)
                begin = time.perf_counter()
                connection.sendall(request)
                seen = b""
                while not is_whole(seen):
                    seen += connection.recv(1 << 16)
                took.append(time.perf_counter() - begin)
        ended.set()
        if beside != "nothing":
            process.join()
            assert process.exitcode == 0, "the flood ended early"
    took.sort()
    return [took[len(took) // 2] * 1e3, took[int(len(took) * 0.99)] * 1e3]


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", nargs="*", choices=(*PARTS, []), help="which parts; by default all")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=3000)
    arguments = parser.parse_args()
    parts = arguments.part or PARTS
    if "calls" in parts:
        print(f"tools/call, {CONNECTIONS} connections")
        peers = {"protected": partial(calls, True, arguments.calls), "open": partial(calls, False, arguments.calls)}
        report(in_turn(arguments.rounds, peers), {"calls/s": 0, "processor us/call": 0})
    if "tokens" in parts:
        for algorithm in KEYS:
            print(f"tokens that all differ, {algorithm}")
            tokens = [token(number, algorithm) for number in range(1, arguments.calls + 1)]
            tried = {
                "gate": partial(ours, tokens),
                "verifier": partial(verifier, tokens),
                "joserfc": partial(bare, tokens, algorithm),
            }
            report(in_turn(arguments.rounds, tried), {"tokens/s": 0})
    if "ping" in parts:
        print(f"a request each millisecond, beside calls over {FLOOD} connections")
        tokens = [token(number) for number in range(20 * arguments.calls)]
        beside = {
            name: partial(ping, kind, tokens, arguments.calls)
            for name, kind in {"fresh tokens": "fresh", "a known token": "known", "nothing": "nothing"}.items()
        }
        report(in_turn(arguments.rounds, beside), {"median ms": 2, "p99 ms": 2})


if __name__ == "__main__":
    main()
