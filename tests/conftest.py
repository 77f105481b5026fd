"""Fixtures and hooks for all tests."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import Guard, not_run
from tritonsmith import configs
from tritonsmith.ui import console

_TESTS = Path(__file__).parent
_KINDS = ("unit", "integration", "real")
_PROXIES = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy")

_guard = Guard()
sys.addaudithook(_guard)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test by the folder that it lies in."""
    for item in items:
        kind = item.path.relative_to(_TESTS).parts[0]
        if kind in _KINDS:
            item.add_marker(kind)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    """Say plainly what did not run, as the last thing."""
    yield
    reports = terminalreporter.stats.get("skipped", [])
    for line in not_run((report.nodeid, str(report.longrepr)) for report in reports):
        terminalreporter.write_line(line, yellow=True, bold=True)


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder of the test's own; every variable that leads elsewhere is changed or removed."""
    folder = tmp_path_factory.mktemp("home")
    changes = {
        "HOME": folder,
        "XDG_CACHE_HOME": folder / "cache",
        "XDG_CONFIG_HOME": folder / "config",
        "XDG_DATA_HOME": folder / "data",
        "XDG_STATE_HOME": folder / "state",
        "TRITONSMITH_HOME": folder / "workspace",
        "TRITONSMITH_CONFIG": folder / "settings.toml",
        "GIT_CONFIG_NOSYSTEM": 1,
    }
    for name, value in changes.items():
        monkeypatch.setenv(name, str(value))
    for name in (*_PROXIES, *map(str.upper, _PROXIES), "LLVM_SYSPATH", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return folder


@pytest.fixture(autouse=True)
def isolated(request: pytest.FixtureRequest) -> Iterator[None]:
    """Unit tests touch neither the home folder nor the network, and share no cache."""
    if request.node.get_closest_marker("unit") is None:
        yield
        return
    request.getfixturevalue("home")
    for cached in (configs.load, console.out, console.err):
        cached.cache_clear()
    temporary = request.getfixturevalue("tmp_path_factory").getbasetemp()
    _guard.allowed = (temporary, _TESTS.parent, Path(sys.prefix), Path(sys.base_prefix))
    _guard.armed = True
    yield
    _guard.armed = False
