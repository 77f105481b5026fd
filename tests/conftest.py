"""Fixtures and hooks for all tests."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.support import Guard, group_of, not_run, nothing_may_be_skipped
from tritonsmith.core.ui import console

_TESTS = Path(__file__).parent
_LONGEST_ID = 80  # characters
_KINDS = ("unit", "integration", "real")
# All that a unit test finds on PATH: what every POSIX machine has, and git; no compiler of this host.
_PROGRAMS = """
    basename bash cat chmod cmp cp curl cut dirname echo env expr false find git grep gzip head kill ln ls
    mkdir mktemp mount mv printf ps pwd python3 readlink rm rmdir sed sh sha256sum sleep sort stat
    tail tar tee test touch tr true umount uname wc xargs xz
"""
_HOST_PATH = os.environ.get("PATH", os.defpath)
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")

# A script's `&` and `nohup` begin with these ignored, which every child would inherit: none could be stopped.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# What a command does to signals as it starts, in a test that calls it here, would outlive the test: with
# SIGPIPE at its default, a server of the next one whose client hangs up ends the whole worker.
_HANDLERS = {
    number: signal.getsignal(number)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
}

_guard = Guard()
sys.addaudithook(_guard)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--slow`."""
    parser.addoption("--slow", action="store_true", help="run the tests that are marked as slow, too")


@pytest.hookimpl(tryfirst=True)  # xdist hands the options to its workers in the same hook
def pytest_configure(config: pytest.Config) -> None:
    """Let slow tests run in CI, and where the command line names tests."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    config.option.slow = config.option.slow or named or nothing_may_be_skipped()


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark each test by its folder, and those that share what a fixture made; let long ones begin early."""
    if not config.option.slow:
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip("slow: ./bootstrap test --slow runs them, as CI does"))
    for item in items:
        kind = item.path.relative_to(_TESTS).parts[0]
        if kind in _KINDS:
            item.add_marker(kind)
        group = group_of(item)
        if group:
            item.add_marker(pytest.mark.xdist_group(group))
    if "PYTEST_XDIST_WORKER" in os.environ:
        # A build of a large group that begins late is what all others wait for in the end. Unit tests are
        # short, and fill the gaps.
        sizes = Counter(map(_group, items))
        items.sort(key=lambda item: (item.get_closest_marker("unit") is not None, -sizes[_group(item)]))


def _group(item: pytest.Item) -> str:
    """Name the tests that pytest-xdist sends to one worker together."""
    names = {str(mark.args[0]) for mark in item.iter_markers("xdist_group")}
    return "_".join(sorted(names)) or item.nodeid


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Long contents name no test: they may hold the time, and each worker must find the same names."""
    return argname if isinstance(val, (bytes, str)) and len(val) > _LONGEST_ID else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say plainly what did not run, as the last thing."""
    yield
    reports = terminalreporter.stats.get("skipped", [])
    for line in not_run((report.nodeid, report.longrepr[-1]) for report in reports):
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.fixture(scope="session")
def programs_on_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PATH with links to the few programs that a unit test may start by name."""
    folder = tmp_path_factory.mktemp("programs")
    for name in _PROGRAMS.split():
        if found := shutil.which(name):
            (folder / name).symlink_to(found)
    return folder


@pytest.fixture
def host_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a unit test that drives a program of this host, and names it by `require`."""
    monkeypatch.setenv("PATH", _HOST_PATH)


@pytest.fixture
def home(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home folder of the test's own; every variable that leads elsewhere is changed or removed."""
    base = _programs[0].parent if _programs else request.getfixturevalue("tmp_path_factory").getbasetemp()
    folder = Path(mkdtemp(prefix="home-", dir=base))  # pytest's `mktemp` would look at all others first
    changes = {
        "HOME": folder,
        "XDG_CACHE_HOME": folder / "cache",
        "XDG_CONFIG_HOME": folder / "config",
        "XDG_DATA_HOME": folder / "data",
        "XDG_STATE_HOME": folder / "state",
        "MPLCONFIGDIR": base / "matplotlib",  # it looks at all fonts for each new home
        "TRITONSMITH_HOME": folder / "workspace",
        "TRITONSMITH_CONFIG": folder / "settings.toml",
        "GIT_CONFIG_NOSYSTEM": 1,
    }
    for name, value in changes.items():
        monkeypatch.setenv(name, str(value))
    for name in (*_PROXIES, *map(str.upper, _PROXIES), "LLVM_SYSPATH", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def isolated(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Unit tests touch neither the home folder nor the network, and share no cache.

    Each test has the handlers of signals that the run of all tests began with.
    """
    if request.node.get_closest_marker("unit"):
        # Once, and not as an argument: for each of ten thousand tests, pytest would go through all fixtures
        # that one of the session depends on, which takes longer than most of the tests. By a unit test, as
        # these have a folder of their own for temporary files: see tests/unit/conftest.py.
        if not _programs:
            _programs.append(request.getfixturevalue("programs_on_path"))
        request.getfixturevalue("home")
        monkeypatch.setenv("PATH", str(_programs[0]))
        for cached in (console.out, console.err):
            cached.cache_clear()
        _guard.allowed = (_programs[0].parent, _TESTS.parent, Path(sys.prefix), Path(sys.base_prefix))
        _guard.armed = True
    yield
    _guard.armed = False
    for number, handler in _HANDLERS.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


_programs: list[Path] = []  # the folder of `programs_on_path`, as soon as there is one
