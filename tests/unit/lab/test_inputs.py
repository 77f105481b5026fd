"""What a test depends on: a change of any of it is seen, and what does not matter is not."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tritonsmith.core.plan import digest
from tritonsmith.facts import python_env
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.lab import journal
from tritonsmith.lab.triage.program import CommandSubject


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's: a script, a package of kernels, and what the script writes."""
    for name in ("script.py", "kernels/add.py", "kernels/config.json", "tests/test_add.py", "out/log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("1")
    return tmp_path


def key(folder: Path, *argv: str) -> str:
    """The key of a command there."""
    words = argv or (sys.executable, "script.py")
    return digest(CommandSubject(words, Path(sys.executable), folder, folder / "out").key)


def write(name: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text("22")


@pytest.mark.parametrize(
    "change",
    [
        write("script.py"),
        write("kernels/add.py"),
        write("kernels/config.json"),
        write("new.py"),
        lambda folder: (folder / "kernels" / "add.py").unlink(),
    ],
)
def test_a_change_of_what_a_command_reads(folder: Path, change: Callable[[Path], object]) -> None:
    before = key(folder)
    assert key(folder) == before
    change(folder)
    assert key(folder) != before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out/log", "out/copy.py", "result.txt", "kernels/.hidden.py.swp"])
def test_what_it_writes_is_no_input(folder: Path, name: str) -> None:
    before = key(folder)
    (folder / name).write_text("22")
    assert key(folder) == before


@pytest.mark.slow
def test_a_file_before_colons_is_read(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("elsewhere") / "test_k.py"
    file.write_text("1")
    argv = (sys.executable, "-m", "pytest", f"{file}::test_add")
    before = key(folder, *argv)
    file.write_text("22")
    assert key(folder, *argv) != before


@pytest.mark.slow
def test_where_it_runs_and_its_variables(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(folder)
    assert key(folder / "kernels") != before
    monkeypatch.setenv("SHLVL", "7")
    monkeypatch.setenv("SSH_CONNECTION", "another")
    assert key(folder) == before
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    assert key(folder) != before


def test_a_program_that_a_variable_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "ptxas"
    program.write_text("1")
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(program))
    before = journal.environment()
    assert journal.environment() == before
    program.write_text("22")
    assert journal.environment() != before


def test_modules_that_pythonpath_leads_to(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setenv("PYTHONPATH", str(elsewhere))
    before = key(folder)
    (elsewhere / "helper.py").write_text("1")
    assert key(folder) != before


def test_a_tree_that_is_too_large_is_never_the_same(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert key(folder) == key(folder)
    monkeypatch.setattr(journal, "_MOST", 3)
    assert key(folder) != key(folder)


def test_environments_and_caches_below_are_passed_over(folder: Path) -> None:
    before = key(folder)
    for mark in ("CACHEDIR.TAG", "pyvenv.cfg"):
        (folder / mark[:5] / "lib").mkdir(parents=True)
        (folder / mark[:5] / mark).touch()
        (folder / mark[:5] / "lib" / "a.py").touch()
    assert key(folder) == before


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose Triton is installed from a checkout: one of its folders is a link."""
    site, package = tmp_path / "env/lib/python3.11/site-packages", tmp_path / "clone/python/triton"
    for place in (site / "triton-3.7.0.dist-info", site / "torch-2.9.0.dist-info", package / "_C"):
        place.mkdir(parents=True)
    backend = tmp_path / "clone/third_party/nvidia/backend"
    backend.mkdir(parents=True)
    (package / "backends").mkdir()
    (package / "backends" / "nvidia").symlink_to(backend)
    for file in (
        package / "__init__.py",
        package / "_C/libtriton.so",
        backend / "compiler.py",
        backend / "ptxas",
    ):
        file.write_text("1")
    (site / "__editable___triton_3_7_0_finder.py").write_text(f"MAPPING = {{'triton': {str(package)!r}}}\n")
    found = PythonEnv(
        tmp_path / "env/bin/python", "3.11.0", Path(), False, site, "linux-x86_64", path=(site,)
    )
    monkeypatch.setattr(python_env, "with_path", lambda _python: found)
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        "clone/python/triton/_C/libtriton.so",
        "clone/third_party/nvidia/backend/compiler.py",
        "clone/third_party/nvidia/backend/ptxas",
        "clone/python/triton/language.py",
    ],
)
def test_a_triton_that_is_installed_from_a_checkout(prefix: Path, name: str) -> None:
    python = prefix / "env/bin/python"
    before = journal.python(python)
    assert journal.python(python) == before
    (prefix / name).write_text("22")
    assert journal.python(python) != before


def test_another_release_of_what_is_installed(prefix: Path) -> None:
    python, site = prefix / "env/bin/python", prefix / "env/lib/python3.11/site-packages"
    before = journal.python(python)
    (site / "torch-2.9.0.dist-info").rename(site / "torch-2.9.1.dist-info")
    assert journal.python(python) != before


def test_an_editable_triton_by_a_line_of_a_pth_file(prefix: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = prefix / "env/bin/python"
    found = PythonEnv(
        python, "3.11.0", Path(), False, prefix, "linux-x86_64", path=(prefix / "clone/python",)
    )
    monkeypatch.setattr(python_env, "with_path", lambda _python: found)
    before = journal.python(python)
    (prefix / "clone/third_party/nvidia/backend/ptxas").write_text("22")
    assert journal.python(python) != before


def test_the_python_of_a_script(tmp_path: Path) -> None:
    script, spaced = tmp_path / "pytest", tmp_path / "a path" / "python3"
    spaced.parent.mkdir()
    for link in (tmp_path / "python3", spaced):
        link.symlink_to(sys.executable)
        # As installers write it: the kernel takes no `#!` with a space in the path.
        shell = f"#!/bin/sh\n'''exec' \"{link}\" \"$0\" \"$@\"\n' '''\n"
        script.write_text(shell if " " in str(link) else f"#!{link}\n")
        known = journal.program(script)
        assert isinstance(known, tuple)
        assert known[2] == [journal.python(link)]
    script.write_text("#!/bin/sh\n'''exec' \"a quote that never ends\n")
    assert journal.program(script)[2] == []  # type: ignore[index]
    assert journal.program(Path(os.devnull)) == (os.devnull, None, [])


def test_what_is_no_python_is_never_the_same(tmp_path: Path) -> None:
    assert journal.python(tmp_path / "python") != journal.python(tmp_path / "python")


def test_what_is_gone_or_no_file_has_no_state(tmp_path: Path) -> None:
    """A build that runs beside removes files while others are looked at."""
    (tmp_path / "link").symlink_to(tmp_path / "gone.py")
    os.mkfifo(tmp_path / "pipe.py")
    names = ("gone.py", "link", "pipe.py", "x" * 5000, "a\0b")
    assert [journal.file(tmp_path / name) for name in (*names, ".")] == [None] * 6
    assert journal.tree(tmp_path) == {}


def test_packages_that_are_being_installed_are_never_the_same(
    prefix: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(_path: Path) -> os.stat_result:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "lstat", gone)
    python = prefix / "env/bin/python"
    assert journal.python(python) != journal.python(python)


def test_one_more_link_of_a_file_is_no_change(prefix: Path) -> None:
    """As where uv, whose cache has the files of each environment, makes one more environment."""
    python, library = prefix / "env/bin/python", prefix / "clone/python/triton/_C/libtriton.so"
    (prefix / "cache").hardlink_to(library)
    before = journal.python(python)
    (prefix / "another environment").hardlink_to(library)
    assert journal.python(python) == before


@pytest.mark.parametrize("links", [1, 2])
def test_another_file_of_the_same_size_and_time_is_a_change(prefix: Path, links: int) -> None:
    python, library = prefix / "env/bin/python", prefix / "clone/python/triton/_C/libtriton.so"
    if links == 2:
        (prefix / "cache").hardlink_to(library)
    before = journal.python(python)
    other = prefix / "other"
    other.write_text("2")
    os.utime(other, ns=(library.stat().st_atime_ns, library.stat().st_mtime_ns))
    other.replace(library)
    assert journal.python(python) != before
