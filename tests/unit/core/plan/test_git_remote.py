from __future__ import annotations

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support import require
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import GitFetch, Plan, Run
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.plan.steps.fetch import GitRemote

CANARY = "c4nary-Pa55"
LOGIN = "Basic " + base64.b64encode(f"me:{CANARY}".encode()).decode()


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        (f"https://me:{CANARY}@h:8/r.git", "https://h:8/r.git"),
        (f"https://{CANARY}@h/r.git", "https://h/r.git"),
        (f"https://h/r.git?a=1&private_token={CANARY}", "https://h/r.git?a=1"),
        (f"https://h/r.git?access_token={CANARY}", "https://h/r.git"),
    ],
)
def test_what_git_is_told(url: str, bare: str) -> None:
    remote = GitRemote.of(url)
    assert remote.url == bare
    assert dict(remote.env)["GIT_CONFIG_KEY_0"] == f"url.{url}.insteadOf"


@pytest.mark.parametrize(
    "url", ["https://h/r.git", "ssh://git@h/r", "git@h:r", "/a/b", "file:///a?b=1", "https://h/r?a=1"]
)
def test_a_url_without_secrets_is_left_alone(url: str) -> None:
    assert GitRemote.of(url) == GitRemote(url)


class _Handler(BaseHTTPRequestHandler):
    """git's own HTTP backend, for those who know the password."""

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        if self.headers.get("Authorization") != LOGIN:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic realm=x")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        environ = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.root),  # type: ignore[attr-defined]
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        done = subprocess.run(
            ("git", "http-backend"), input=body, env=environ, capture_output=True, check=True
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """URL without its scheme, and the commit, of a repository behind a password."""
    require("git")
    from git import Actor, Repo

    folder = tmp_path / "served" / "r"
    me = Actor("A", "a@example.invalid")
    with Repo.init(folder) as repo:
        (folder / "file").write_text("one")
        repo.index.add(["file"])
        commit = repo.index.commit("one", author=me, committer=me).hexsha
        with repo.config_writer() as config:
            config.set_value("uploadpack", "allowAnySHA1InWant", "true")
            config.set_value("uploadpack", "allowFilter", "true")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.root = tmp_path / "served"  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}/r/.git", commit
    server.shutdown()
    server.server_close()
    thread.join()


def _written(folder: Path) -> list[Path]:
    """Files below a folder that hold the canary."""
    return [path for path in folder.rglob("*") if path.is_file() and CANARY.encode() in path.read_bytes()]


def test_the_password_of_a_remote_is_used_and_written_nowhere(
    runner: Runner, tmp_path: Path, served: tuple[str, str]
) -> None:
    where, commit = served
    url, clone = f"http://me:{CANARY}@{where}", tmp_path / "tool" / "clone"
    fetch = GitFetch(clone, (url,), commit, phase="p")
    argv = ("git", "-C", str(clone), "checkout", "-q", "--force", commit)
    look = Run(argv, cwd=tmp_path, env=GitRemote.of(url).env, phase="p")
    for _ in range(2):  # the second time from what the first one wrote down
        outcome = runner.run(Plan("x", (fetch, look)))
        assert (clone / "file").read_text() == "one"
        (clone / "file").unlink()
    assert f"http://{where}" in (clone / ".git" / "config").read_text()  # the promised contents' remote
    assert not _written(tmp_path / "tool")
    log = outcome.log.read_text()
    assert CANARY not in log
    assert where in log
    assert outcome.log.stat().st_mode & 0o777 == 0o600


def test_a_wrong_password_is_not_repeated(runner: Runner, tmp_path: Path, served: tuple[str, str]) -> None:
    where, commit = served
    fetch = GitFetch(tmp_path / "clone", (f"http://me:wrong-{CANARY}@{where}",), commit, phase="p")
    with pytest.raises(StepError, match="no remote provides") as caught:
        runner.run(Plan("x", (fetch,)))
    assert where in str(caught.value)
    assert CANARY not in str(caught.value)


def test_the_script_of_a_fetch_keeps_it_out_of_the_argument_list(tmp_path: Path) -> None:
    url = f"https://me:{CANARY}@h/r.git"
    _, script = GitFetch(tmp_path / "clone", (url,), "0" * 40, phase="p").shell()
    env, _, argv = script.partition(" git -C ")
    assert env.startswith("env GIT_CONFIG_COUNT=1 ")
    assert CANARY in env
    assert CANARY not in argv
