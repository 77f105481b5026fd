"""What the integration tests share: the tool as a person runs it, repositories to work in, a file server."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.integration.preloaded import Preloaded
from tests.support import made_once, require
from tritonsmith.build.triton import recipe
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.plan import Copy, Plan, Step, digest
from tritonsmith.core.plan.runner import Runner
from tritonsmith.core.text import version_key
from tritonsmith.core.ui.progress import PhaseProgress
from tritonsmith.facts import checkout, machine
from tritonsmith.wheels import venv

HERE = Path(__file__).parent
SMITH = Path(sys.executable).with_name("tritonsmith")
CMAKE = SMITH.with_name("cmake")  # the tool's own
LLVM = Path("/usr/lib/llvm-19")  # Debian's; its packages are listed in configs/system-packages.toml
LLVM_PROGRAMS = tuple(str(LLVM / "bin" / name) for name in ("clang++", "ld.lld", "mlir-tblgen", "FileCheck"))
DEAD = "http://127.0.0.1:9"  # the discard port, where nothing listens

# Seconds until a hanging child is a failure. Tests of real kernels take up to a minute on two idle cores, and
# have failed at five where ten processes share these.
_PATIENCE = 900.0
_COMPILING = ("CC", "CFLAGS", "CXX", "CXXFLAGS", "DEBUG", "LDFLAGS", "LLVM_SYSPATH", "MAX_JOBS")
_FOREIGN = (*_COMPILING, "COLUMNS", "PYTHONPATH")  # pytest-xdist's workers have COLUMNS
_FOREIGN_PREFIXES = ("CCACHE_", "CMAKE_", "GIT_", "JSON_", "NINJA", "TRITON")


@cache
def preloaded() -> Preloaded:
    """The tool, imported once in each of pytest's workers."""
    made = Preloaded()
    atexit.register(made.end)
    return made


def oldest_triton(since: str) -> str:
    """The oldest Triton from `since` on that has a wheel for this Python."""
    here = sys.version_info[:2]
    for row in configs.load("triton-eras")["release"]:
        if version_key(row["version"]) >= version_key(since) and version_key(row["python"][1]) >= here:
            return str(row["wheels"][0])
    raise AssertionError(f"configs/triton-eras.toml has no Triton for Python {here}")


def require_llvm() -> None:
    """Skip or fail, as `require` does, where mini-Triton cannot be built."""
    require("git", "ccache", *LLVM_PROGRAMS)
    for part, package in (("mlir", "libmlir-19-dev"), ("lld", "liblld-19-dev")):
        if not (LLVM / "lib" / "cmake" / part).is_dir():
            require(package)  # no program, but the package to name


@dataclass(frozen=True)
class Done:
    """A finished run.

    Attributes:
        code: exit code.
        out: standard output.
        err: standard error.
    """

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """Standard error from the line on which the error begins."""
        assert "error: " in self.err, self.err
        return self.err[self.err.index("error: ") :]


@dataclass(frozen=True)
class Smith:
    """`tritonsmith`, as a person runs it, but in a home, a workspace and a compiler cache of its own.

    Attributes:
        root: the folder that all of these lie in.
        cwd: where it is run.
        more: variables.
        shared: somebody else's workspace that it uses.
        patience: seconds until a run that hangs is a failure.
    """

    root: Path
    cwd: Path
    more: dict[str, str] = field(default_factory=dict)
    shared: Path | None = None
    patience: float = _PATIENCE

    @property
    def home(self) -> Path:
        """The workspace."""
        return self.shared or self.root / "work space"

    def beside(self, root: Path) -> Smith:
        """The same workspace, from another folder: for tests that only use what is in it."""
        return Smith(root, cwd=root, more=self.more, shared=self.home)

    @property
    def environ(self) -> dict[str, str]:
        """The process's environment, less what means another build, plus places of its own."""
        foreign = {name for name in os.environ if name in _FOREIGN or name.startswith(_FOREIGN_PREFIXES)}
        pip_cache = os.environ.get("PIP_CACHE_DIR", str(Path.home() / ".cache" / "pip"))
        return {
            **{name: value for name, value in os.environ.items() if name not in foreign},
            "HOME": str(self.root),
            "XDG_CONFIG_HOME": str(self.root / "config"),
            "PIP_CACHE_DIR": pip_cache,
            "PIP_NO_COMPILE": "1",  # what is imported is compiled then, and most of it never is
            "CCACHE_DIR": str(self.root / "ccache"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "LC_ALL": "C.UTF-8",
            "TRITONSMITH_HOME": str(self.home),
            **self.more,
        }

    def __call__(self, *argv: str | Path, code: int | None = 0) -> Done:
        """Run it to its end, which must be this exit code; None for what the doctor says of any machine."""
        done = self._run(*argv)
        said = f"{done.stdout}\n{done.stderr}"
        expected = (0, 1) if code is None else (code,)
        assert done.returncode in expected, f"exit code {done.returncode}, not {code}\n{said}"
        assert "Traceback" not in said, said
        return Done(done.returncode, done.stdout, done.stderr)

    def _run(self, *argv: str | Path) -> subprocess.CompletedProcess[str]:
        words = (SMITH, *argv)
        if not any(name.startswith("PYTHON") for name in self.more):
            return preloaded().run(words, cwd=self.cwd, env=self.environ, timeout=self.patience)
        return subprocess.run(  # Python reads these when it starts
            words,
            cwd=self.cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=self.patience,
            check=False,
        )

    @contextmanager
    def running(self, *argv: str | Path) -> Iterator[subprocess.Popen[str]]:
        """Start it; whatever is left of it at the end of the `with` is killed."""
        process = subprocess.Popen(
            (SMITH, *argv),
            cwd=self.cwd,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        family: list[psutil.Process] = []
        try:
            with process:
                try:
                    yield process
                finally:
                    family += _family(process.pid)
                    if process.poll() is None:
                        process.kill()
        finally:
            for child in family:
                if child.is_running():
                    child.kill()

    def env(self, name: str) -> Path:
        """The folder of one environment."""
        return self.home / "envs" / name

    def build(self, name: str = "dev") -> Path:
        """Triton's build folder of one environment."""
        return self.env(name) / "triton"

    def receipt(self, task: str, name: str = "dev") -> dict[str, Any]:
        """What a task left behind."""
        path = self.env(name) / "receipts" / f"{task}.json"
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return content

    def log(self, task: str) -> str:
        """The newest log of a task."""
        logs = sorted((self.home / "logs").glob(f"*-{task}-*.log"), key=lambda path: path.stat().st_mtime_ns)
        return logs[-1].read_text(encoding="utf-8")

    def ccache(self) -> dict[str, int]:
        """The counters of the compiler cache."""
        lines = capture("ccache", "--print-stats", env=self.environ).splitlines()
        return {name: int(value) for name, value in (line.split("\t") for line in lines)}


def ready(smith: Smith, factory: pytest.TempPathFactory, *names: str) -> Smith:
    """Put what builds need from the package index where they look for it, as an earlier run would have done.

    `python -m venv` and pip take longer than most builds of mini-Triton. Here they run once for all tests,
    and each workspace gets hard links. Not for tests of what makes it.

    Args:
        smith: in a checkout of mini-Triton, before its first run.
        factory: of the session.
        names: of the environments that get a virtual environment; `dev` if there are none.
    """
    base, host, source = venv.base_interpreter(""), machine.read(), checkout.read(smith.cwd)
    wanted = recipe.requirements(source)

    def steps(env: EnvDir) -> tuple[Step, ...]:
        tools = recipe.components_plan(source, Workspace(env.root), host, env.python, proton=False)
        plan = venv.plan(env, base, wanted) + tools
        return tuple(step for step in plan.steps if not isinstance(step, Copy))  # into the checkout

    def make(folder: Path) -> None:
        Workspace(folder).claim()
        runner = Runner(folder / "log", PhaseProgress(live=False, silent=True))
        runner.run(Plan("template", steps(Workspace(folder).env("template"))))

    key = digest(wanted, source.nvidia, source.json_version)[:8]
    template = Workspace(made_once(factory, f"build tools {key}", make)).env("template")
    space = Workspace(smith.home)
    space.claim()
    if not space.toolchain.exists():
        shutil.copytree(Workspace(template.root).toolchain, space.toolchain, copy_function=os.link)
    for env in map(space.env, names or ("dev",)):
        shutil.copytree(template.path, env.path, symlinks=True, copy_function=os.link)
        for script in (env.venv / "bin").iterdir():
            if not script.is_symlink():
                text = script.read_bytes().replace(os.fsencode(template.venv), os.fsencode(env.venv))
                script.unlink()
                script.write_bytes(text)
                script.chmod(0o755)
        for stamp in [step.stamp for step in steps(env) if step.stamp]:
            stamp.path.unlink(missing_ok=True)
            stamp.path.write_text(stamp.key, encoding="utf-8")
    return smith


def _family(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def capture(*argv: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(
        argv, cwd=cwd, env=env, capture_output=True, text=True, timeout=_PATIENCE, check=False
    )
    assert done.returncode == 0, f"{argv} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def wait_for(
    condition: Callable[[], bool], process: subprocess.Popen[str], patience: float = _PATIENCE
) -> None:
    """Wait until something can be seen, while the process that brings it about runs."""
    until = time.monotonic() + patience
    while not condition():
        assert process.poll() is None, f"it ended with {process.returncode} before that was seen"
        assert time.monotonic() < until, "that was never seen"
        time.sleep(0.005)


def interrupt(process: subprocess.Popen[str], patience: float = _PATIENCE) -> Done:
    """What ^C does."""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=patience)
    return Done(process.returncode, out, err)


def git(repository: Path, *argv: str) -> str:
    """Git in a repository, as a person whose name is not asked for."""
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env = {**clean, "GIT_CONFIG_GLOBAL": os.devnull}
    return capture("git", "-C", repository, *who, *argv, env=env).strip()


def plant(name: str, target: Path, changes: Mapping[str, str] | None = None) -> Path:
    """Copy one of the projects beside this file and put it under git.

    Args:
        name: `mini_triton` or `mini_llvm`.
        target: the new folder. `NAME.in` gets the name `NAME` there: a `setup.py` here would be
            taken for one of the tests' own modules.
        changes: path to a text that becomes its content; an empty text removes the file.
    """
    shutil.copytree(HERE / name, target)
    for path in sorted(target.rglob("*.in")):
        path.rename(path.with_suffix(""))
    for key, text in (changes or {}).items():
        if text:
            (target / key).parent.mkdir(parents=True, exist_ok=True)
            (target / key).write_text(text, encoding="utf-8")
        else:
            (target / key).unlink()
    git(target, "init", "--quiet", "--initial-branch=main")
    commit(target, "All of it")
    return target


def commit(repository: Path, message: str) -> str:
    """Commit everything; the commit's hash."""
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--allow-empty", "--message", message)
    return git(repository, "rev-parse", "HEAD")


@dataclass
class Served:
    """A folder over HTTP.

    Attributes:
        url: of the folder.
        asked: method, path and `Range` of each request.
        break_after: bytes after which the next download breaks off, once; None for never.
    """

    url: str = ""
    asked: list[tuple[str, str, str]] = field(default_factory=list)
    break_after: int | None = None

    @property
    def downloads(self) -> list[tuple[str, str]]:
        """Path and `Range` of each download."""
        return [(path, extent) for method, path, extent in self.asked if method == "GET"]


@contextmanager
def serving(folder: Path) -> Iterator[Served]:
    """Serve a folder on a free port of this machine, with ranges, as long as the `with` lasts."""
    served = Served()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            extent = self.headers.get("Range", "")
            served.asked.append((self.command, self.path, extent))
            path = folder / self.path.lstrip("/")
            if not path.is_file():
                self.send_error(404)
                return
            content = path.read_bytes()
            first = int(extent.removeprefix("bytes=").rstrip("-") or 0)
            if first >= len(content):
                self.send_error(416)
                return
            self.send_response(206 if extent else 200)
            self.send_header("Content-Length", str(len(content) - first))
            self.end_headers()
            if not body:
                return
            until = served.break_after
            served.break_after = None
            self.wfile.write(content[first:until])
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        served.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield served
        finally:
            server.shutdown()
            thread.join()
