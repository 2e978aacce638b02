"""A local web server with scripted responses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Answer = Callable[[BaseHTTPRequestHandler], None]


class FileServer(ThreadingHTTPServer):
    """Server with a response for each path; it records requests."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []

    def url(self, path: str, user: str = "") -> str:
        return f"http://{f'{user}@' if user else ''}127.0.0.1:{self.server_port}{path}"

    def file(self, path: str, content: bytes, status: int = 200, **headers: str) -> str:
        """Serve a file; return its URL."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in {"Content_Length": str(len(content)), **headers}.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()
            handler.wfile.write(content)

        self.answers[path] = answer
        return self.url(path)

    def redirect(self, path: str, location: str, status: int = 302) -> str:
        """Serve a redirect; return its URL."""
        return self.file(path, b"", status, Location=location)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        assert isinstance(server, FileServer)
        server.asked.append((self.command, self.path, dict(self.headers)))
        answer = server.answers.get(self.path.partition("?")[0])
        if answer is None:
            self.send_error(404)
        else:
            answer(self)

    do_CONNECT = do_POST = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[FileServer]:
    """Run a server during the block."""
    with FileServer() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
