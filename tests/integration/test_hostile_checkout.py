"""A checkout that somebody sent: all that could run in it leaves a canary, and a look runs none of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.integration.harness import CMAKE, LLVM, Smith, require_llvm
from tests.unit.facts import fakes

MODULES = (
    "sitecustomize",
    "usercustomize",
    "conftest",
    "platform",
    "json",
    "site",
    "triton",
    "setuptools",
    "invoke",
)


@pytest.fixture(scope="module")
def smith(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    require_llvm()
    root = tmp_path_factory.mktemp("hostile")
    checkout = fakes.checkout(root / "checkout", "3.5")
    canary = root / "canaries"
    canary.mkdir()
    python = f"open({str(canary)!r} + '/' + __name__, 'w')\n"
    for name in MODULES:
        (checkout / f"{name}.py").write_text(python)
    (checkout / "test" / "lit.cfg.py").parent.mkdir(exist_ok=True)
    (checkout / "test" / "lit.cfg.py").write_text(python)
    with (checkout / "setup.py").open("a") as file:
        file.write(f"\n{python}")
    (checkout / "CMakeLists.txt").write_text(f'file(TOUCH "{canary}/cmake")\n')
    (checkout / "CMakePresets.json").write_text('{"version": 3, "include": ["/dev/zero"]}')
    (checkout / ".gdbinit").write_text(f"shell touch {canary}/gdb\n")
    for name in ("git", "ninja", "clang++", "python3", "hook"):
        program = checkout / name
        program.write_text(f"#!/bin/sh\ntouch '{canary}/{name}'\n")
        program.chmod(0o755)
    fakes.commit(checkout)
    hooks = checkout / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "reference-transaction", "post-checkout", "pre-auto-gc"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch '{canary}/{name}'\n")
        (hooks / name).chmod(0o755)
    for key in (
        "core.fsmonitor",
        "filter.x.clean",
        "core.sshCommand",
        "gpg.program",
        "diff.external",
        "core.pager",
    ):
        subprocess.run(("git", "-C", checkout, "config", key, str(checkout / "hook")), check=True)
    (checkout / ".git" / "info" / "attributes").write_text("* filter=x\n")
    (checkout / "CMakeLists.txt").touch()  # another time stamp: git compares its content
    return Smith(root, cwd=checkout)


LOOKS = {
    "doctor": 0,
    "doctor --deep --python {python}": 0,
    "doctor --deep --report --python {python}": 0,
    "build-triton --dry-run --force --llvm-dir {llvm}": 0,
    "install-triton --dry-run --force --llvm-dir {llvm}": 0,
    "setup-mlir --dry-run --force --llvm-dir {llvm} --any-commit": 0,
    "setup-mlir --dry-run --force --provider source": 0,
    "link-compile-commands --dry-run": 1,
    "build.explain": 1,
    "pins --triton HEAD --source .": 0,
}


@pytest.mark.parametrize(("command", "code"), LOOKS.items())
def test_a_look_runs_nothing_of_it(smith: Smith, command: str, code: int) -> None:
    smith(*(word.format(llvm=LLVM, python=sys.executable) for word in command.split()), code=code)
    assert list((smith.root / "canaries").iterdir()) == []


def test_the_canaries_sing(smith: Smith) -> None:
    """Git as it is runs them, and so do the interpreter and CMake."""
    subprocess.run(("git", "status"), cwd=smith.cwd, env=smith.environ, capture_output=True, check=False)
    subprocess.run((sys.executable, "-c", "import platform"), cwd=smith.cwd, env=smith.environ, check=True)
    subprocess.run((CMAKE, "-P", "CMakeLists.txt"), cwd=smith.cwd, env=smith.environ, check=True)
    assert {path.name for path in (smith.root / "canaries").iterdir()} >= {"hook", "platform", "cmake"}
