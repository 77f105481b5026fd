"""`purge-wheels` on environments that real installers made from real wheels."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from tests.integration.harness import SMITH, Done, Smith, capture
from tests.support import slow

pytestmark = pytest.mark.skipif(sys.platform == "darwin", reason="Triton has no wheels for macOS")

NEIGHBOUR = "packaging"
_LARGE = 1 << 20  # bytes
ROCM = "pytorch-triton-rocm==2.0.2"
SETUP = """
from setuptools import setup
setup(
    name="triton",
    version="3.6.0",
    packages=["triton", "triton.backends.nvidia"],
    package_dir={"": "python", "triton.backends.nvidia": "third_party/nvidia/backend"},
    entry_points={"console_scripts": ["proton = triton:main"]},
)
"""
PROJECT = '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'


def python_of(venv: Path) -> Path:
    return venv / "bin" / "python"


def site_of(venv: Path) -> Path:
    return venv / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"


def copied(venv: Path, folder: Path) -> Path:
    """The same environment elsewhere, of hard links."""
    shutil.copytree(venv, folder, symlinks=True, copy_function=os.link)
    return folder


def pip(venv: Path, *argv: str | Path) -> str:
    """pip on an environment, which may download large wheels: this one's, whichever that one has."""
    quiet = ("--disable-pip-version-check", "--quiet")
    done = subprocess.run(
        (sys.executable, "-m", "pip", "--python", venv, *argv, *quiet),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def hashes(folder: Path) -> dict[str, str]:
    """Every file and link below a folder with its content; bytecode comes and goes.

    A large file is told by its number on disk, which renaming keeps.
    """
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file() and path.suffix != ".pyc":
            status = path.stat()
            large = status.st_size > _LARGE
            found[name] = f"inode {status.st_ino}" if large else sha256(path.read_bytes()).hexdigest()
    return found


def of_triton(venv: Path) -> list[str]:
    """What is left of Triton in an environment."""
    site = [path.name for path in site_of(venv).iterdir()]
    scripts = [path.name for path in (venv / "bin").iterdir()]
    return [name for name in (*site, *scripts) if "riton" in name or "proton" in name or name.startswith("~")]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pip and one small package."""
    venv = tmp_path_factory.mktemp("clean") / "an env"
    capture(sys.executable, "-m", "venv", "--without-pip", venv)
    pip(venv, "install", "--no-deps", "--no-compile", "pip", NEIGHBOUR)
    return venv


@pytest.fixture(scope="module")
def crowded(clean: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with two wheels that share files: AMD's of 2023, and the newest of the package index.

    Bytecode is in the lists of the first, and comes without a list where the second is imported.
    """
    venv = copied(clean, tmp_path_factory.mktemp("crowded") / "an env")
    _install_rocm(venv)
    pip(venv, "install", "--no-deps", "--no-compile", "triton")
    return venv


def _install_rocm(venv: Path) -> None:
    """There is none for Pythons after 3.11: there pip puts the files where it is told to."""
    wheel = ("--target", site_of(venv), "--python-version", "3.11", "--only-binary", ":all:")
    pip(venv, "install", "--no-deps", *(() if sysconfig.get_python_version() == "3.11" else wheel), ROCM)


@pytest.fixture
def busy(crowded: Path, tmp_path: Path) -> Path:
    """A copy of that environment for one test, its large files as hard links."""
    return copied(crowded, tmp_path / "an env")


@pytest.fixture
def smith(tmp_path: Path) -> Smith:
    return Smith(tmp_path, cwd=tmp_path)


def purge(smith: Smith, venv: Path, *flags: str, code: int = 0) -> Done:
    return smith("purge-wheels", "--python", python_of(venv), *flags, code=code)


@pytest.mark.slow
def test_two_wheels_that_share_files_leave_nothing(smith: Smith, busy: Path, clean: Path) -> None:
    """What is left is what an environment without them has, to the byte."""
    assert len([path for path in site_of(busy).iterdir() if "triton" in path.name]) == 3
    before, others = hashes(busy), set(hashes(clean))
    done = purge(smith, busy, "--yes")
    assert of_triton(busy) == []
    assert hashes(busy) == {name: text for name, text in before.items() if name in others}
    assert "pytorch-triton-rocm" in done.out
    assert pip(busy, "check") == ""
    assert purge(smith, busy).out.startswith("nothing to remove")


@pytest.mark.slow
def test_a_plan_is_shown_and_nobody_is_there_to_agree(smith: Smith, busy: Path) -> None:
    before = hashes(busy)
    done = purge(smith, busy, code=1)
    assert "there is no terminal to ask in" in done.error
    assert "triton" in done.out
    script = purge(smith, busy, "--dry-run").out
    assert hashes(busy) == before
    assert "/libtriton.so" in script
    subprocess.run(("/bin/sh",), input=script, text=True, check=True)
    assert of_triton(busy) == []
    assert pip(busy, "check") == ""


def doctor(smith: Smith, venv: Path, code: int | None) -> dict[str, dict[str, str]]:
    """Findings of the doctor about this Python, by id."""
    done = smith("doctor", "--only", "python", "--python", python_of(venv), "--json", code=code)
    return {found["id"]: found for found in json.loads(done.out)["findings"]}


@pytest.mark.slow
def test_the_doctor_sees_two_owners_and_then_none(smith: Smith, busy: Path) -> None:
    before = doctor(smith, busy, code=1)
    assert before["python.owners"]["status"] == "error"
    assert "pytorch-triton-rocm 2.0.2 (RECORD) and triton " in before["python.owners"]["seen"]
    assert before["python.spec"]["status"] == "ok"
    assert re.match(r"LLVM \d+\.0\.0git, [0-9a-f]{40}", before["python.llvm-revision"]["seen"])
    assert before["python.llvm-revision"]["status"] == "ok"  # that of the published wheel, where it is known
    purge(smith, busy, "--yes")
    after = doctor(smith, busy, code=None)  # Python's headers may be missing
    assert after["python.owners"]["status"] == after["python.spec"]["status"] == "not applicable"


@pytest.mark.slow
def test_pip_installs_again_afterwards(smith: Smith, busy: Path) -> None:
    purge(smith, busy, "--yes")
    pip(busy, "install", "--no-deps", "--no-compile", "triton")
    seen = capture(python_of(busy), "-c", "import triton; print(triton.__file__)")
    assert seen.strip() == str(site_of(busy) / "triton" / "__init__.py")
    assert json.loads(capture(python_of(busy), "-m", "pip", "list", "--format", "json"))


# Calls of the file system are counted, and at one of them the process is gone, as under `kill -9`.
DEADLY = """
import os, runpy, signal, sys
left = {after}
def deadly(real):
    def call(*args, **named):
        global left
        if any("~tritonsmith-purge" in str(arg) for arg in args):
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left -= 1
        return real(*args, **named)
    return call
for name in ("mkdir", "replace", "unlink", "rmdir"):
    setattr(os, name, deadly(getattr(os, name)))
sys.argv = {argv!r}
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def killed(smith: Smith, venv: Path, after: int) -> int:
    """The exit code of a purge that is killed before it has touched the stash so often."""
    argv = [str(SMITH), "purge-wheels", "--python", str(python_of(venv)), "--yes"]
    script = DEADLY.format(after=after, argv=argv)
    return subprocess.run(
        (sys.executable, "-c", script),
        cwd=smith.cwd,
        env=smith.environ,
        capture_output=True,
        timeout=60,
        check=False,
    ).returncode


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 400, 1400])
def test_killed_on_the_way_the_next_run_heals(smith: Smith, busy: Path, clean: Path, after: int) -> None:
    """Before the journal is there; among some 750 renames; among as many deletions."""
    whole = hashes(busy)
    assert killed(smith, busy, after) == -signal.SIGKILL
    (stash,) = site_of(busy).glob("~*")
    committed = (stash / "committed").exists()
    healed = purge(smith, busy, code=0 if committed else 1)  # there is no terminal to ask in
    assert "was interrupted" in healed.err
    assert not stash.exists()
    if committed:
        assert set(hashes(busy)) == set(hashes(clean))
    else:
        assert hashes(busy) == whole
        capture(python_of(busy), "-c", "import triton.language")
        purge(smith, busy, "--yes")
    assert of_triton(busy) == []
    assert pip(busy, "check") == ""


# --- editable installs


@pytest.fixture(scope="module")
def with_setuptools(clean: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment whose setuptools still has `develop`."""
    venv = copied(clean, tmp_path_factory.mktemp("setuptools") / "an env")
    pip(venv, "install", "--no-compile", "setuptools==75.8.0", "wheel")
    return venv


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A small Triton, a file of which is in no list."""
    root = tmp_path / "my checkout"
    for name, text in {
        "setup.py": SETUP,
        "pyproject.toml": PROJECT,
        "python/triton/__init__.py": "def main(): print('proton')\n",
        "python/triton/_C/libtriton.so": "not really",
        "third_party/nvidia/backend/__init__.py": "",
        "README.md": "mine",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def by_pip(*config: str) -> Callable[[Path, Path], None]:
    def install(venv: Path, source: Path) -> None:
        pip(venv, "install", "--no-build-isolation", "--no-deps", *config, "--editable", source)

    return install


def by_setup_py(venv: Path, source: Path) -> None:
    capture(python_of(venv), "setup.py", "--quiet", "develop", "--no-deps", cwd=source)


@pytest.mark.parametrize(
    "install",
    [
        by_pip(),
        *slow(
            by_pip("--config-settings", "editable_mode=compat"),
            by_pip("--config-settings", "editable_mode=strict"),
            by_setup_py,
        ),
    ],
    ids=["finder", "compat", "strict", "develop"],
)
def test_an_editable_install_goes_and_its_sources_stay(
    smith: Smith, with_setuptools: Path, source: Path, install: Callable[[Path, Path], None]
) -> None:
    before = hashes(with_setuptools)
    install(with_setuptools, source)
    mine = hashes(source)
    assert capture(python_of(with_setuptools), with_setuptools / "bin" / "proton") == "proton\n"
    done = purge(smith, with_setuptools, "--yes")
    assert "editable" in done.out
    assert "the source tree is not changed" in done.err
    after = hashes(with_setuptools)
    easy = f"{site_of(with_setuptools).relative_to(with_setuptools)}/easy-install.pth"
    assert {name: text for name, text in after.items() if name != easy} == before
    assert hashes(source) == mine
    assert pip(with_setuptools, "check") == ""
    if easy in after:
        assert str(source) not in (with_setuptools / easy).read_text()
        (with_setuptools / easy).unlink()


def test_the_systems_python_is_refused(smith: Smith) -> None:
    base = sys._base_executable  # type: ignore[attr-defined]
    error = smith("purge-wheels", "--python", base, "--yes", code=1).error
    assert "this is a system Python" in error
    assert "--system" in error


@pytest.mark.slow
def test_an_environment_that_is_active_is_meant(smith: Smith, busy: Path) -> None:
    """Where the environment `dev` has no interpreter yet."""
    active = replace(smith, more={"VIRTUAL_ENV": str(busy)})
    active("purge-wheels", "--yes")
    assert of_triton(busy) == []
