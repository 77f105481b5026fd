"""Compiles that are sent away: a real icecream, with a scheduler and three daemons."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

from tests.integration.harness import Smith
from tests.integration.team import ASKED, NINJA, PARTS, env_file, findings, people, wait_until
from tests.support import require, require_root

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Icecream:
    """A scheduler, a daemon that sends, and two that compile, in a network of their own.

    Attributes:
        inside: words before a command that is to run in that network.
        sender: socket of the daemon that sends.
        logs: of the daemons that compile.
        farm: scheduler and the daemons that compile.
    """

    inside: tuple[str, ...]
    sender: Path
    logs: tuple[Path, ...]
    farm: tuple[psutil.Process, ...]

    def compiled(self) -> int:
        """Compiles that the two daemons have finished."""
        return sum(log.read_text(encoding="utf-8").count("completed with exit code 0") for log in self.logs)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> tuple[Smith, Smith]:
    """Two people, each with a machine's worth of folders of their own."""
    return people(tmp_path_factory)


@pytest.fixture
def icecream() -> Iterator[Icecream]:
    """Needs root: daemons compile in a chroot, and the network is a namespace."""
    require("icecc", "iceccd", "icecc-scheduler", "unshare", "nsenter", "ip")
    require_root("for icecream's chroot and a network namespace")
    folder = Path("/tmp") / f"tritonsmith-icecream-{os.getpid()}"  # noqa: S108 - a socket's path must be short
    folder.mkdir(mode=0o755)
    shutil.chown(folder, "icecc")  # whom the daemons become
    # An idle machine: icecream sends nothing to a busy one, and this one may be busy with other tests.
    (folder / "stat").write_text("cpu  0 0 0 100000000 0 0 0 0 0 0\n", encoding="utf-8")
    script = f"ip link set lo up && mount --bind {folder}/stat /proc/stat && exec sleep 1000"
    space = subprocess.Popen(("unshare", "--net", "--mount", "sh", "-c", script))
    inside = ("nsenter", "--target", str(space.pid), "--net")
    wait_until(
        lambda: space.poll() is not None or "LOOPBACK,UP" in output((*inside, "ip", "link", "show", "lo"))
    )
    if space.poll() is not None:
        shutil.rmtree(folder)
        require("a kernel that lets root make network namespaces")
    environ = {
        **os.environ,
        "ICECC_TESTS": "1",  # daemons on one machine count as several
        "ICECC_TEST_SCHEDULER_PORTS": "8767:8769",
        "ICECC_ENV_COMPRESSION": "none",
    }
    started = []

    def start(name: str, *argv: str) -> psutil.Process:
        words = (*inside, "--mount", *argv, "-n", "tritonsmith", "-l", str(folder / f"{name}.log"), "-vvv")
        env = {**environ, "ICECC_TEST_SOCKET": str(folder / name)}
        started.append(subprocess.Popen(words, env=env))
        return psutil.Process(started[-1].pid)

    def daemon(name: str, *argv: str) -> psutil.Process:
        where = ("-s", "127.0.0.1:8767", "-b", str(folder / f"envs-{name}"), "-N", name)
        return start(name, "iceccd", *where, "-m", "2", *argv)

    try:
        farm = [start("scheduler", "icecc-scheduler", "-p", "8767")]
        daemon("sender", "--no-remote")
        farm += [daemon(name, "-p", port) for name, port in (("one", "10246"), ("two", "10247"))]
        logs = tuple(folder / f"{name}.log" for name in ("one", "two", "sender"))
        wait_until(lambda: all("Connected to scheduler" in text(log) for log in logs))
        yield Icecream(inside, folder / "sender", logs[:2], tuple(farm))
    finally:
        for process in (*reversed(started), space):
            process.kill()
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def test_compiles_are_sent_away_and_other_folders_can_have_them(
    team: tuple[Smith, Smith], icecream: Icecream
) -> None:
    first, second = (sending(person, icecream) for person in team)
    ninja(first, icecream)
    assert icecream.compiled() > 0
    assert first.ccache()["cache_miss"] == PARTS + 1
    for compiled in first.build("team").rglob("part*.o"):
        assert str(first.root).encode() not in compiled.read_bytes()

    second = replace(second, more={**second.more, "CCACHE_DIR": str(team[0].root / "sent")})
    before = icecream.compiled()
    ninja(second, icecream)
    assert second.ccache()["cache_miss"] == PARTS + 1
    assert icecream.compiled() == before
    assert findings(second)["tools.icecc"]["status"] == "ok"


def test_other_machines_that_die_in_the_middle_cost_time_only(
    team: tuple[Smith, Smith], icecream: Icecream
) -> None:
    smith = sending(team[0], icecream)
    folder = smith.build("team")
    with subprocess.Popen(
        (*icecream.inside, NINJA, "-C", folder, "-j2", "mini_amd"), env=smith.environ
    ) as process:
        until = time.monotonic() + 300
        while not icecream.compiled():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        for member in icecream.farm:
            member.kill()
        assert process.wait(timeout=300) == 0
    assert (folder / "third_party" / "amd" / "libmini_amd.a").is_file()


def sending(person: Smith, icecream: Icecream) -> Smith:
    """Configured to send, with nothing compiled and an empty cache."""
    more = {
        "CCACHE_DIR": str(person.root / "sent"),
        "ICECC_TEST_SOCKET": str(icecream.sender),
        "ICECC_TEST_REMOTEBUILD": "1",
    }
    smith = replace(person, more=more)
    shutil.rmtree(person.root / "sent", ignore_errors=True)
    shutil.rmtree(smith.build("team"), ignore_errors=True)
    # `help` is a target of every Ninja file of CMake's that builds nothing.
    argv = [word if word != "mini_amd" else "help" for word in ASKED]
    smith(*argv, "--env", env_file(smith, "team", 'distribute = "icecc"'))
    return smith


def ninja(smith: Smith, icecream: Icecream) -> None:
    """A bare Ninja, in icecream's network."""
    argv = (*icecream.inside, str(NINJA), "-C", str(smith.build("team")), "-j2", "mini_amd")
    done = subprocess.run(argv, env=smith.environ, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def output(argv: tuple[str | Path, ...]) -> str:
    """What a command says; empty if it fails."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout if done.returncode == 0 else ""


def text(path: Path) -> str:
    """What a file says by now."""
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
