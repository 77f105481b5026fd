from __future__ import annotations

import os
import shutil
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from tests import conftest
from tests.support import REAL_HOME, REAL_SOURCE, not_run, require

ArgsSource = pytest.Config.ArgsSource
VICTIM = REAL_HOME / ".tritonsmith-guard-test"


def test_home_is_the_tests_own(home: Path) -> None:
    assert Path.home() == home != REAL_HOME
    assert Path("~/x").expanduser() == home / "x"
    assert platformdirs.user_config_path("tritonsmith").is_relative_to(home)
    assert platformdirs.user_data_path("tritonsmith").is_relative_to(home)
    assert Path(os.environ["TRITONSMITH_HOME"]).is_relative_to(home)
    assert Path(os.environ["TRITONSMITH_CONFIG"]).is_relative_to(home)


@pytest.mark.parametrize(
    "touch",
    [
        lambda: VICTIM.write_text("x"),
        lambda: VICTIM.open("a"),
        lambda: os.close(os.open(VICTIM, os.O_CREAT)),
        VICTIM.mkdir,
        VICTIM.unlink,
        VICTIM.rmdir,
        lambda: VICTIM.symlink_to("x"),
        lambda: VICTIM.rename(VICTIM.with_name("other")),
        lambda: shutil.rmtree(VICTIM),
    ],
)
def test_real_home_cannot_be_changed(touch: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match="a unit test changes"):
        touch()
    assert not os.path.lexists(VICTIM)


def connect(address: tuple[str, int], kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(socket.AF_INET, kind) as sock:
        sock.settimeout(1)
        sock.connect(address)


@pytest.mark.parametrize(
    "reach",
    [
        lambda: connect(("192.0.2.1", 80)),
        lambda: connect(("192.0.2.1", 53), socket.SOCK_DGRAM),
        lambda: socket.create_connection(("example.invalid", 80), timeout=1),
        lambda: urllib.request.urlopen("https://example.invalid/", timeout=1),
    ],
)
def test_network_cannot_be_reached(reach: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"a unit test (connects|looks up)"):
        reach()


def test_this_machine_can_be_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect(server.getsockname())
        accepted, _ = server.accept()
        accepted.close()
    one, other = socket.socketpair(socket.AF_UNIX)
    one.close()
    other.close()


def test_require_skips_and_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    require("sh")
    with pytest.raises(pytest.skip.Exception, match=r"missing: no-such-tool, nor-this$"):
        require("sh", "no-such-tool", "nor-this")


@pytest.mark.parametrize("value", ["true", "1"])
def test_require_fails_under_ci(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CI", value)
    require("sh")
    with pytest.raises(pytest.fail.Exception, match="missing: no-such-tool"):
        require("no-such-tool")


def test_the_summary_counts_each_reason() -> None:
    skipped = [
        ("tests/integration/test_a.py::a", "Skipped: missing: ninja, clang++"),
        ("tests/real/test_b.py::d", f"Skipped: {REAL_SOURCE} names no checkout"),
        ("tests/integration/test_a.py::b", "Skipped: missing: ninja"),
        ("tests/integration/test_c.py::c@mini-triton", "Skipped: missing: ninja"),
        ("tests/unit/test_d.py::e", "Skipped: not on a Mac"),
    ]
    assert not_run(skipped) == [
        "integration: 2 not run, missing: ninja",
        "integration: 1 not run, missing: ninja, clang++",
        f"real: 1 not run, {REAL_SOURCE} names no checkout",
        "unit: 1 not run, not on a Mac",
    ]
    assert not_run([]) == []


def test_marked_by_folder(request: pytest.FixtureRequest) -> None:
    assert request.node.get_closest_marker("unit") is not None
    assert request.node.get_closest_marker("real") is None


@pytest.mark.xdist_group("guard")
def test_workers_know_what_belongs_together(request: pytest.FixtureRequest) -> None:
    """By a suffix of the name, which a version of pytest once dropped: fixtures were made on each worker."""
    grouped = request.node.nodeid.endswith("@guard")
    assert grouped == getattr(request.config.option, "loadgroup", False)


@pytest.mark.parametrize(
    ("ci", "source", "asked", "run"),
    [
        ("", ArgsSource.TESTPATHS, False, False),
        ("0", ArgsSource.INVOCATION_DIR, False, False),
        ("true", ArgsSource.TESTPATHS, False, True),
        ("", ArgsSource.TESTPATHS, True, True),
        ("", ArgsSource.ARGS, False, True),
    ],
)
def test_slow_tests_run_in_ci_and_where_somebody_asks_for_them(
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
    ci: str,
    source: ArgsSource,
    asked: bool,
    run: bool,
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(pytestconfig, "args_source", source)
    monkeypatch.setattr(pytestconfig.option, "slow", asked)
    conftest.pytest_configure(pytestconfig)
    assert pytestconfig.option.slow is run
