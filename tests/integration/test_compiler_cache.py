"""Compiles that are shared: by worktrees on one machine; by machines, through Redis, HTTP and a folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, Smith, capture, git, ready, wait_for
from tests.integration.team import ASKED, NINJA, PARTS, env_file, findings, people, wait_until
from tests.support import require

# --- a second worktree


@pytest.fixture(scope="module")
def worktree(built: Smith, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Smith]:
    """Another worktree of mini-Triton, with a longer name, built in an environment of its own."""
    path = built.root / "another worktree"
    git(built.cwd, "worktree", "add", "--quiet", "--detach", str(path))
    second = ready(replace(built, cwd=path), tmp_path_factory, "second")
    before = built.ccache()
    second("build-triton", "--env", env_file(built, "second", ""), "--debug", "--llvm-dir", LLVM)
    after = built.ccache()
    assert after["cache_miss"] == before["cache_miss"]
    assert after["direct_cache_hit"] >= before["direct_cache_hit"] + 6
    yield second
    git(built.cwd, "worktree", "remove", "--force", str(path))


def test_a_second_worktree_takes_every_compile_of_the_first(worktree: Smith) -> None:
    assert (worktree.build("second") / "bin" / "triton-opt").is_file()


def test_it_has_an_index_for_gdb(worktree: Smith) -> None:
    program = worktree.build("second") / "bin" / "triton-opt"
    assert ".gdb_index" in capture(LLVM / "bin" / "llvm-readelf", "--section-headers", program)
    (compiled,) = worktree.build("second").rglob("Dialect.cpp.o")
    assert ".debug_gnu_pubnames" in capture(LLVM / "bin" / "llvm-readelf", "--section-headers", compiled)


def test_its_debug_info_names_no_folder(worktree: Smith) -> None:
    (compiled,) = worktree.build("second").rglob("Dialect.cpp.o")
    told = capture(LLVM / "bin" / "llvm-dwarfdump", "--debug-info", compiled)
    assert 'DW_AT_comp_dir\t(".")' in told
    dwo = capture(LLVM / "bin" / "llvm-dwarfdump", "--debug-info", compiled.with_suffix(".dwo"))
    assert 'DW_AT_name\t("source/lib/Dialect/Triton/IR/Dialect.cpp")' in dwo
    assert str(worktree.root).encode() not in compiled.read_bytes()


def test_gdb_finds_the_worktrees_own_sources_from_anywhere(worktree: Smith, tmp_path: Path) -> None:
    require("gdb")
    build = worktree.build("second")
    stop = "break mlir::triton::TritonDialect::initialize"
    wanted = [word for line in (stop, "run", "info source", "print *this") for word in ("-ex", line)]
    program = ("--args", build / "bin" / "triton-opt", worktree.cwd / "test" / "twice.mlir")
    told = capture("gdb", "-nx", "-batch", "-ix", build / "gdbinit", *wanted, *program, cwd=tmp_path)
    assert f"Located in {worktree.cwd}/lib/Dialect/Triton/IR/Dialect.cpp" in told
    assert "No such file or directory" not in told
    assert "Could not find DWO" not in told


def test_lldb_finds_them_too(worktree: Smith, tmp_path: Path) -> None:
    require("lldb-19")
    build = worktree.build("second")
    stop = "breakpoint set --name mlir::triton::TritonDialect::initialize"
    wanted = [word for line in (stop, "run", "source info", "frame variable") for word in ("-o", line)]
    program = ("--", build / "bin" / "triton-opt", worktree.cwd / "test" / "twice.mlir")
    told = capture("lldb-19", "-x", "-b", "-S", build / "lldbinit", *wanted, *program, cwd=tmp_path)
    assert f"{build}/source/lib/Dialect/Triton/IR/Dialect.cpp:" in told
    assert "(mlir::triton::TritonDialect *) this = 0x" in told
    assert "unable to locate" not in told


def test_the_compilation_database_knows_nothing_of_it(worktree: Smith) -> None:
    database = json.loads((worktree.build("second") / "compile_commands.json").read_text(encoding="utf-8"))
    assert {Path(row["file"]).is_relative_to(worktree.cwd) for row in database} == {True}
    assert not any("CCACHE" in row["command"] or "through_link" in row["command"] for row in database)


def test_a_bare_ninja_has_the_same_settings(worktree: Smith) -> None:
    build = worktree.build("second")
    before = worktree.ccache()["cache_miss"]
    capture(NINJA, "-C", build, "-t", "clean", "mini_amd", env=worktree.environ)
    capture(NINJA, "-C", build, "mini_amd", env=worktree.environ)
    assert worktree.ccache()["cache_miss"] == before


@pytest.mark.slow
def test_a_header_that_changed_in_one_worktree_is_compiled_there(worktree: Smith, built: Smith) -> None:
    header = worktree.cwd / "include" / "triton" / "Dialect" / "Triton" / "IR" / "Dialect.h"
    whole = header.read_text(encoding="utf-8")
    header.write_text(f"{whole}\nstatic_assert(sizeof(int) == 5);\n", encoding="utf-8")
    try:
        argv = ("build-triton", "--env", worktree.root / "second.toml", "--debug", "--llvm-dir", LLVM)
        error = worktree(*argv, code=1).error
    finally:
        header.write_text(whole, encoding="utf-8")
    assert f"{header}:" in error
    worktree(*argv)
    built("build-triton", "--debug")


# --- storages


@dataclass(frozen=True)
class Storage:
    """A storage for compiles.

    Attributes:
        url: as the env file names it.
        process: what serves it, if it can be killed.
        keys: files or keys that it holds, counted.
    """

    url: str
    folder: Path | None = None
    process: subprocess.Popen[bytes] | None = None

    def keys(self) -> int:
        """How much it holds."""
        if self.folder:
            return sum(path.is_file() for path in self.folder.rglob("*"))
        return int(capture("redis-cli", "-u", self.url, "dbsize"))


@contextmanager
def redis(folder: Path) -> Iterator[Storage]:
    """A Redis with the settings of docs/scale-out.md."""
    require("redis-server", "redis-cli")
    port = free_port()
    settings = ("--bind", "127.0.0.1", "--port", str(port), "--save", "", "--maxmemory", "100mb")
    argv = ("redis-server", *settings, "--maxmemory-policy", "allkeys-lru", "--dir", folder)
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        url = f"redis://127.0.0.1:{port}"
        try:
            wait_until(lambda: answers("redis-cli", "-u", url, "ping"))
            yield Storage(url, process=process)
        finally:
            process.kill()


@contextmanager
def http(folder: Path) -> Iterator[Storage]:
    """The three methods that ccache uses."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = folder / self.path.lstrip("/")
            self._answer(200, path.read_bytes()) if path.is_file() else self._answer(404)

        do_HEAD = do_GET  # noqa: N815 - as http.server calls it

        def do_PUT(self) -> None:
            path = folder / self.path.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(201)

        def do_DELETE(self) -> None:
            (folder / self.path.lstrip("/")).unlink(missing_ok=True)
            self._answer(204)

        def _answer(self, status: int, content: bytes = b"") -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield Storage(f"http://127.0.0.1:{server.server_port}/ccache", folder=folder)
        server.shutdown()
        thread.join()


@contextmanager
def shared_folder(folder: Path) -> Iterator[Storage]:
    """A folder, as on a file server."""
    yield Storage(f"file://{folder}", folder=folder)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> tuple[Smith, Smith]:
    """Two people, each with a machine's worth of folders of their own."""
    return people(tmp_path_factory)


def build(smith: Smith, cache: str, *, ccache: str) -> Smith:
    """Build from nothing, with an empty local cache of that name."""
    fresh = replace(smith, more={"CCACHE_DIR": str(smith.root / ccache)})
    shutil.rmtree(fresh.build("team"), ignore_errors=True)
    fresh(*ASKED, "--env", env_file(smith, "team", cache))
    assert (fresh.build("team") / "third_party" / "amd" / "libmini_amd.a").is_file()
    return fresh


@pytest.mark.parametrize("kind", [redis, http, shared_folder])
def test_the_second_machine_gets_what_the_first_compiled(
    team: tuple[Smith, Smith], tmp_path: Path, kind: Callable[[Path], AbstractContextManager[Storage]]
) -> None:
    name = kind.__name__
    with kind(tmp_path) as storage:
        writer = build(team[0], f'remote = "{storage.url}"\nremote-write = true', ccache=f"{name} 1")
        assert writer.ccache()["cache_miss"] == PARTS + 1
        held = storage.keys()
        assert held > PARTS

        reader = build(team[1], f'remote = "{storage.url}"', ccache=f"{name} 1")
        assert reader.ccache()["cache_miss"] == 0
        assert reader.ccache()["remote_storage_hit"] == PARTS + 1
        found = findings(reader)
        assert found["tools.ccache-remote"]["status"] == "ok"
        assert "100 % of 9 requests were hits" in found["tools.ccache-remote"]["seen"]
        assert found["tools.ccache-folders"]["status"] == "ok"

        part = reader.cwd / "third_party" / "amd" / "part0.cpp"
        part.write_text(f"{part.read_text(encoding='utf-8')}int only_here;\n", encoding="utf-8")
        try:
            reader(*ASKED, "--env", reader.root / "team.toml")
        finally:
            git(reader.cwd, "checkout", "--quiet", str(part))
        assert reader.ccache()["cache_miss"] == 1
        assert storage.keys() == held, "who may only read has written"


def compiled(build: Path) -> int:
    """How many objects Ninja has finished; CMake's own come and go."""
    log = build / ".ninja_log"
    return log.read_text(encoding="utf-8").count(".o\t") if log.is_file() else 0


@pytest.mark.slow
def test_a_storage_that_is_killed_in_the_middle_costs_time_only(
    team: tuple[Smith, Smith], tmp_path: Path
) -> None:
    with redis(tmp_path) as storage:
        build(team[0], f'remote = "{storage.url}"\nremote-write = true', ccache="killed 1")
        reader = replace(team[1], more={"CCACHE_DIR": str(team[1].root / "killed 1")})
        folder = reader.build("team")
        shutil.rmtree(folder, ignore_errors=True)
        env = env_file(reader, "team", f'remote = "{storage.url}"')
        with reader.running(*ASKED, "--env", env) as process:
            wait_for(lambda: compiled(folder) > 1, process)
            assert storage.process is not None
            storage.process.kill()
            out, err = process.communicate(timeout=300)
        assert process.returncode == 0, f"{out}\n{err}"
        assert (folder / "third_party" / "amd" / "libmini_amd.a").is_file()
        found = findings(reader)
        assert found["tools.ccache-remote"]["status"] == "warning"


def test_a_password_in_an_env_file_is_refused_and_not_repeated(team: tuple[Smith, Smith]) -> None:
    env = env_file(team[0], "team", 'remote = "redis://s3cret@127.0.0.1"')
    done = team[0](*ASKED, "--env", env, code=1)
    assert "[cache] remote contains a user name or a password" in done.err
    assert "CCACHE_REMOTE_STORAGE" in done.err
    assert "s3cret" not in done.out + done.err
    assert not any("s3cret" in path.read_text(encoding="utf-8") for path in team[0].home.rglob("*.log"))


def free_port() -> int:
    """A port that nobody listens on."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return server.server_port


def answers(*argv: str) -> bool:
    """Whether a command succeeds."""
    return subprocess.run(argv, capture_output=True, timeout=60, check=False).returncode == 0
