"""Storages that answer, that answer something else, and that do not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import as_plain_user
from tritonsmith.facts import remote_storage


@contextmanager
def answering(text: bytes) -> Iterator[int]:
    """A server that says one thing to whoever connects; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(text)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("scheme", "text", "trouble"),
    [
        ("redis", b"+PONG\r\n", ""),
        ("redis", b"-NOAUTH Authentication required.\r\n", "it answers NOAUTH Authentication required."),
        ("redis", b"", "it answers nothing"),
        ("http", b"HTTP/1.1 404 Not Found\r\n\r\n", ""),
        ("http", b"HTTP/1.1 200 OK\r\n\r\n", ""),
        ("http", b"HTTP/1.1 401 Unauthorized\r\n\r\n", "it requires a login (HTTP 401)"),
        ("http", b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "it answers HTTP 502"),
        ("http", b"220 mail.example.org\r\n", "220 mail.example.org\r\n"),
    ],
)
def test_what_a_server_says(scheme: str, text: bytes, trouble: str) -> None:
    with answering(text) as port:
        answer = remote_storage.ask(f"{scheme}://127.0.0.1:{port}/cache", timeout=10)
    assert answer.trouble == trouble
    assert answer.seconds > 0


def test_nobody_there() -> None:
    assert "refused" in remote_storage.ask("redis://127.0.0.1:9", timeout=10).trouble


def test_somebody_who_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert "timed out" in remote_storage.ask(f"redis://127.0.0.1:{port}", timeout=0.05).trouble


def test_folders(tmp_path: Path) -> None:
    assert remote_storage.ask(f"file://{tmp_path}", write=True, timeout=1).trouble == ""
    assert remote_storage.ask(f"file://{tmp_path}/no", timeout=1).trouble == "no such folder"
    tmp_path.chmod(0o500)
    closed = as_plain_user(lambda: remote_storage.ask(f"file://{tmp_path}", write=True, timeout=1))
    assert closed.trouble == "it may not be written to"
    assert remote_storage.ask(f"file://{tmp_path}", timeout=1).trouble == ""
    tmp_path.chmod(0o700)


def test_a_daemon_on_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    assert not remote_storage.listens(path, timeout=1)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        assert not remote_storage.listens(path, timeout=1)
        server.listen()
        assert remote_storage.listens(path, timeout=1)
