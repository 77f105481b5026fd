"""`debug-library` under SIGKILL: the next run goes on, and nothing half-made is ever linked."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, SMITH, capture, preloaded
from tests.integration.mini_site import ANSWER, Site

pytestmark = pytest.mark.slow

KILLED = -9
_FIRST, _UNDO = ("MLIRMini", "--llvm-source"), ("--undo",)


@pytest.fixture(scope="module", autouse=True)
def nothing_in_debug(site: Site) -> None:
    """Other tests had their libraries in debug, and left their folders."""
    shutil.rmtree(site.folder, ignore_errors=True)


def every_death(site: Site, *argv: str | Path, step: int = 1) -> Iterator[int]:
    """Kill `debug-library` before each of its changes to the environment, a run for each; the last lives."""
    for at in range(0, 200, step):
        smith = site.smith
        done = preloaded().run(
            (SMITH, "debug-library", *argv),
            cwd=smith.cwd,
            env=smith.environ,
            timeout=300,
            death=(at, smith.env("dev")),
        )
        if done.returncode == 0:
            assert at > 5
            return
        assert done.returncode == KILLED, done.stdout + done.stderr
        yield at
    raise AssertionError("it never came to its end")


def check(site: Site) -> None:
    """What must hold whenever one looks: what Triton is told to link is whole, and Triton builds."""
    for archive in site.folder.glob("*/*.a"):
        own = site.llvm / "lib" / archive.name
        assert capture(LLVM / "bin" / "llvm-ar", "t", archive) == capture(LLVM / "bin" / "llvm-ar", "t", own)
    site.smith("build-triton")
    assert capture(site.answer) == ANSWER


def test_every_death_on_the_way_and_each_next_run_goes_on(site: Site) -> None:
    for _ in every_death(site, *_FIRST, site.sources):
        check(site)
    assert site.has_lines("Twice.cpp")
    for _ in every_death(site, *_UNDO):
        check(site)
    assert not site.has_lines("Twice.cpp")
    assert not (site.folder / "MLIRMini").exists()


def test_every_death_of_the_first_run_and_then_undo(site: Site) -> None:
    before = site.answer.read_bytes()
    for _ in every_death(site, *_FIRST, site.sources, step=3):
        site.run(*_UNDO)
        assert site.answer.read_bytes() == before
        assert not (site.folder / "MLIRMini").exists()
    site.forget()


def test_the_name_of_what_a_killed_run_began_can_be_undone(site: Site) -> None:
    for _ in every_death(site, *_FIRST, site.sources):
        if (site.folder / "MLIRMini" / "build.ninja").exists():
            break
    assert (site.folder / "MLIRMini").exists()
    site.run("MLIRMini", "--undo")
    assert not (site.folder / "MLIRMini").exists()
    site.forget()


def test_death_at_random_while_its_programs_live_on(site: Site) -> None:
    """Ninja and compilers outlive the tool for a while, and meet the next run."""
    chance = random.Random(7)  # noqa: S311 - the same each time
    source = site.sources / "mlir" / "lib" / "Mini" / "Twice.cpp"
    text = source.read_text(encoding="utf-8")
    try:
        for number in range(12):
            source.write_text(f"{text}// {number}\n", encoding="utf-8")  # something to compile
            process = subprocess.Popen(
                (SMITH, "debug-library", *_FIRST, site.sources),
                cwd=site.smith.cwd,
                env=site.smith.environ,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            time.sleep(chance.uniform(0.3, 4.0))
            process.kill()
            assert process.wait() in (KILLED, 0)
            for archive in site.folder.glob("*/*.a"):
                argv = (LLVM / "bin" / "llvm-ar", "t", archive)
                listed = subprocess.run(argv, capture_output=True, text=True, check=False)
                # A Ninja that is stopped removes the output of a command that it has not seen end.
                gone = "No such file" in listed.stderr
                assert gone or listed.stdout == "Quotient.cpp.o\nTwice.cpp.o\n", listed.stderr
        site.run(*_FIRST, site.sources)
        check(site)
        assert site.has_lines("Twice.cpp")
    finally:
        source.write_text(text, encoding="utf-8")
        site.forget()
