"""What is made once for all tests that look at it: an environment with the newest Triton; one small Triton,
built in Debug, interrupted on its way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.integration import farm_clone
from tests.integration.farm_clone import Farm
from tests.integration.harness import LLVM, Done, Smith, interrupt, plant, require_llvm, wait_for
from tests.integration.mini_site import Site
from tests.integration.mini_site import make as make_site
from tests.support import made_once

FIRST_UP = "up.txt"  # what that printed


@pytest.fixture(scope="session")
def with_wheel(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool after a first `up`. It takes half a GiB: whoever only reads it works `beside` it."""

    def up(root: Path) -> None:
        (root / FIRST_UP).write_text(Smith(root, cwd=root)("up").out, encoding="utf-8")

    root = made_once(tmp_path_factory, "with wheel", up)
    return Smith(root, cwd=root)


@pytest.fixture(scope="session")
def smith(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool in a checkout of mini-Triton, before anything was done. Spaces in every path."""
    require_llvm()
    root = tmp_path_factory.mktemp("mini triton")
    return Smith(root, cwd=plant("mini_triton", root / "my checkout"))


@pytest.fixture(scope="session")
def with_llvm(smith: Smith) -> Done:
    """`setup-mlir` with the distribution's LLVM."""
    return smith("setup-mlir", "--provider", "system", "--llvm-dir", LLVM)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Mini-Triton with libraries to debug, built. Whoever has some in debug undoes it."""
    return make_site(tmp_path_factory)


@pytest.fixture(scope="session")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Farm:
    """A clone with commits of every kind. Its tests are one group, so that they are built once."""
    return farm_clone.make(tmp_path_factory)


@dataclass(frozen=True)
class Interrupted:
    """A build that was stopped by ^C.

    Attributes:
        pid: of the run that was stopped.
        run: its end.
        second: another run, begun while the first one was busy.
        left: command lines of processes that outlived it.
        objects: what had been compiled by then.
    """

    pid: int
    run: Done
    second: Done
    left: list[list[str]]
    objects: frozenset[str]


@pytest.fixture(scope="session")
def interrupted(smith: Smith, with_llvm: Done) -> Interrupted:
    """The first `build-triton --debug`, with a second one beside it, and ^C while it compiles."""
    assert with_llvm.code == 0
    build = smith.build()
    with smith.running("build-triton", "--debug") as process:
        wait_for(lambda: len(_finished(build)) > 0, process)
        second = smith("build-triton", "--debug", code=1)
        assert process.poll() is None, "the first run was over too soon to be interrupted"
        run = interrupt(process)
    left = [found for found in _command_lines() if any(str(build) in word for word in found)]
    return Interrupted(process.pid, run, second, left, _finished(build))


@pytest.fixture(scope="session")
def resumed(smith: Smith, interrupted: Interrupted) -> str:
    """The log of the run after the interruption."""
    assert interrupted.run.code != 0
    smith("build-triton", "--debug")
    return smith.log("build-triton")


@pytest.fixture(scope="session")
def built(smith: Smith, resumed: str) -> Smith:
    """Mini-Triton, built in Debug with its Python module. Whoever changes it puts it back."""
    assert resumed
    return smith


def _finished(build: Path) -> frozenset[str]:
    """Objects that are compiled, as Ninja's log says."""
    log = build / ".ninja_log"
    lines = log.read_text(encoding="utf-8").splitlines()[1:] if log.is_file() else []
    outputs = (line.split("\t")[3] for line in lines if line.count("\t") == 4)
    return frozenset(name for name in outputs if name.endswith(".o"))


def _command_lines() -> list[list[str]]:
    found = []
    for process in psutil.process_iter():
        try:
            found.append(process.cmdline())
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found
