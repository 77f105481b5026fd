"""Which Tritons are installed, read from files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.facts.installs import checkout, editable, put, site_of, triton
from tests.unit.facts.installs import install as installs_install
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.facts import installed_tritons, package_owners, python_env
from tritonsmith.facts.installed_tritons import Orphans, ResolvedImport
from tritonsmith.facts.package_owners import Distribution
from tritonsmith.facts.python_env import PythonEnv


def install(prefix: Path, version: str, *, editable: bool = False) -> Path:
    """A Triton in a virtual environment's folder."""
    site = prefix / "lib" / "python3.11" / "site-packages"
    if editable:
        info = site / f"triton-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n")
    else:
        (site / "triton").mkdir(parents=True)
        (site / "triton" / "__init__.py").write_text(f'"""Doc."""\n__version__ = "{version}"\n')
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python3").touch()
    return site


def test_one_from_a_checkout_is_told_apart(tmp_path: Path) -> None:
    install(tmp_path / "envs" / "a" / "venv", "3.8.0", editable=True)
    install(tmp_path / "envs" / "b" / "venv", "3.7.1")
    found = installed_tritons.find({}, Workspace(tmp_path))
    assert [(one.version, one.checkout) for one in found] == [("3.8.0", True), ("3.7.1", False)]


def test_a_nightly_is_older_than_its_release(tmp_path: Path) -> None:
    for name, version in (("a", "3.9.0.dev20260301"), ("b", "3.9.0"), ("c", "no version")):
        install(tmp_path / "envs" / name / "venv", version)
    newest = installed_tritons.newest(Workspace(tmp_path))
    assert newest
    assert newest.version == "3.9.0"


def find(environ: dict[str, str], space: Path) -> list[str]:
    return [found.version for found in installed_tritons.find(environ, Workspace(space))]


@pytest.mark.parametrize("editable", [True, False])
def test_environments_of_the_tool(tmp_path: Path, editable: bool) -> None:
    install(tmp_path / "envs" / "dev" / "venv", "3.8.0+git1234567", editable=editable)
    assert find({}, tmp_path) == ["3.8.0"]


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "CONDA_PREFIX"])
def test_the_active_environment(tmp_path: Path, variable: str) -> None:
    install(tmp_path / "mine", "3.2.0")
    assert find({variable: str(tmp_path / "mine")}, tmp_path) == ["3.2.0"]


def test_python_on_path_and_its_base(tmp_path: Path) -> None:
    install(tmp_path / "base", "3.1.0")
    install(tmp_path / "mine", "3.3.1")
    (tmp_path / "mine" / "bin" / "python").symlink_to(tmp_path / "base" / "bin" / "python3")
    assert sorted(find({"PATH": f"{tmp_path / 'mine' / 'bin'}:/nowhere:"}, tmp_path)) == ["3.1.0", "3.3.1"]


def test_packages_of_the_user(tmp_path: Path) -> None:
    install(tmp_path / ".local", "2.1.0")
    assert find({"HOME": str(tmp_path)}, tmp_path) == ["2.1.0"]


def test_an_interpreter_that_was_asked(tmp_path: Path) -> None:
    asked = PythonEnv(
        executable=tmp_path / "python",
        version="3.11.7",
        include=tmp_path,
        headers=True,
        purelib=tmp_path,
        platform="linux-x86_64",
        distributions=(
            Distribution("pytorch-triton", "3.4.0+gitf7888497", tmp_path, tmp_path / "x", owns="RECORD"),
            Distribution("torch", "2.8.0", tmp_path, tmp_path / "y"),
        ),
    )
    (found,) = installed_tritons.find({}, Workspace(tmp_path), asked)
    assert (found.version, found.checkout) == ("3.4.0", False)


def test_none(tmp_path: Path) -> None:
    site = tmp_path / "mine" / "lib" / "python3.11" / "site-packages" / "triton"
    site.mkdir(parents=True)
    (site / "__init__.py").write_text("somebody else's\n")
    assert find({"VIRTUAL_ENV": str(tmp_path / "mine"), "PATH": ""}, tmp_path) == []


# What is worked out is held against what the interpreter itself finds.

ASK = """
import importlib.util, json
spec = importlib.util.find_spec("triton")
print(json.dumps(spec and [spec.origin, list(spec.submodule_search_locations or [])]))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("venv") / "a venv"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", folder), check=True)
    return folder


@pytest.fixture
def venv(bare: Path) -> Path:
    """A virtual environment with nothing in it."""
    for path in site_of(bare).iterdir():
        path.rename(bare / f"{len(list(bare.iterdir()))}-{path.name}")
    return bare


def asked(venv: Path, cwd: Path, pythonpath: str = "") -> Path | None:
    """The folder that the interpreter finds, when it is started with `-c` in a folder."""
    env = {**os.environ, "PYTHONPATH": pythonpath}
    done = subprocess.run(
        (venv / "bin" / "python", "-c", ASK), cwd=cwd, env=env, capture_output=True, text=True, check=True
    )
    answer = json.loads(done.stdout)
    if answer is None:
        return None
    origin, places = answer
    return Path(places[0]) if places else Path(origin)


def worked_out(venv: Path, *before: Path) -> ResolvedImport | None:
    seen = python_env.read(venv / "bin" / "python")
    assert seen is not None
    return installed_tritons.resolve_import(
        (*before, *seen.path), installed_tritons.import_finders(seen.sites, seen.distributions)
    )


def nothing(_venv: Path, _: Path) -> None:
    """Install nothing."""


def wheel(venv: Path, _: Path) -> None:
    triton(site_of(venv))


def by_finder(venv: Path, tmp: Path) -> None:
    editable(site_of(venv), checkout(tmp / "src"), finder=True)


def by_pth(venv: Path, tmp: Path) -> None:
    editable(site_of(venv), checkout(tmp / "src"), finder=False)


def by_hand(venv: Path, tmp: Path) -> None:
    put(site_of(venv), {"mine.pth": f"{checkout(tmp / 'src') / 'python'}\n"})


def wheel_and_finder(venv: Path, tmp: Path) -> None:
    triton(site_of(venv))
    by_finder(venv, tmp)


def wheel_and_pth(venv: Path, tmp: Path) -> None:
    triton(site_of(venv))
    by_pth(venv, tmp)


def remains_and_finder(venv: Path, tmp: Path) -> None:
    put(site_of(venv), {"triton/stale.txt": ""})
    by_finder(venv, tmp)


def remains_and_pth(venv: Path, tmp: Path) -> None:
    put(site_of(venv), {"triton/stale.txt": ""})
    by_pth(venv, tmp)


def forsaken_finder(venv: Path, tmp: Path) -> None:
    by_finder(venv, tmp)
    for path in (site_of(venv) / "triton-3.6.0.dist-info").iterdir():
        path.unlink()
    (site_of(venv) / "triton-3.6.0.dist-info").rmdir()


def finder_to_nowhere(venv: Path, tmp: Path) -> None:
    by_finder(venv, tmp)
    (tmp / "src").rename(tmp / "moved")


def module(venv: Path, _: Path) -> None:
    put(site_of(venv), {"triton.py": ""})


INSTALLS = (
    nothing, wheel, by_finder, by_pth, by_hand, wheel_and_finder, wheel_and_pth, remains_and_finder,
    remains_and_pth, forsaken_finder, finder_to_nowhere, module,
)  # fmt: skip
CLONE = {"triton/README.md": ""}
PACKAGE = {"triton/__init__.py": ""}


@pytest.mark.parametrize("put_here", [{}, CLONE, PACKAGE], ids=["empty", "clone", "package"])
@pytest.mark.parametrize("installed", INSTALLS, ids=lambda function: function.__name__)
def test_what_an_import_finds(
    venv: Path, tmp_path: Path, installed: Callable[[Path, Path], None], put_here: dict[str, str]
) -> None:
    installed(venv, tmp_path)
    cwd = tmp_path / "cwd"
    cwd.mkdir()
    put(cwd, put_here)
    found = worked_out(venv, cwd)
    assert (found.folder if found else None) == asked(venv, cwd)


def test_a_clone_in_the_current_folder_hides_an_editable_install(venv: Path, tmp_path: Path) -> None:
    """triton#1693: finders of setuptools come after the path."""
    by_finder(venv, tmp_path)
    put(tmp_path, CLONE)
    found = worked_out(venv, tmp_path)
    assert found == ResolvedImport(tmp_path / "triton", tmp_path, namespace=True)
    without = worked_out(venv)
    assert without is not None
    assert without.folder == tmp_path / "src" / "python" / "triton"
    assert without.by.name == "__editable___triton_3_6_0_finder.py"


def test_pythonpath_comes_first(venv: Path, tmp_path: Path) -> None:
    wheel(venv, tmp_path)
    put(tmp_path / "more", PACKAGE)
    found = worked_out(venv, tmp_path / "more")
    assert found is not None
    assert found.folder == asked(venv, tmp_path, str(tmp_path / "more"))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return site_of(tmp_path / "env")


def read(site: Path) -> Orphans:
    return installed_tritons.orphans(site, package_owners.read([site]))


def test_a_wheel_leaves_none(site: Path) -> None:
    triton(site)
    put(
        site,
        {
            "triton/__pycache__/__init__.cpython-311.pyc": "",
            "triton/__pycache__/__init__.cpython-312.opt-1.pyc": "",
        },
    )
    assert not read(site).any
    assert not installed_tritons.orphans(site, ()).leftovers
    assert read(site).words == ""


def test_what_nobody_owns(site: Path) -> None:
    triton(site)
    put(
        site,
        {
            "triton/_C/libtriton.cpython-311.so": "12345",
            "triton/stale.py": "1",
            "triton/__pycache__/gone.cpython-311.pyc": "1",
            "triton/gone.pyc": "1",
            "~riton/x": "22",
            "__editable__.triton-3.4.0.pth": "/gone",
            "__editable___triton_3_4_0_finder.py": "",
            "__editable__.other-1.0.pth": "/src",
            "__editable__.triton_kernels-1.0.pth": "/src",
            "__editable___triton_kernels_1_0_finder.py": "",
        },
    )
    found = read(site)
    assert [path.name for path in found.files] == [
        "libtriton.cpython-311.so", "gone.cpython-311.pyc", "gone.pyc", "stale.py",
    ]  # fmt: skip
    assert found.leftovers == (site / "~riton",)
    assert [path.name for path in found.hooks] == [
        "__editable__.triton-3.4.0.pth",
        "__editable___triton_3_4_0_finder.py",
    ]
    assert found.size == 5 + 1 + 1 + 1 + 2 + 5
    hooks = "__editable__.triton-3.4.0.pth, __editable___triton_3_4_0_finder.py"
    assert found.words.split("; ") == [
        "4 below triton/",
        "copied in: libtriton.cpython-311.so",
        "left by an interrupted pip: ~riton",
        f"of a removed editable install: {hooks}",
    ]


def test_all_of_triton_without_any_owner(site: Path) -> None:
    put(site, {"triton/__init__.py": "", "triton/_C/libtriton.so": ""})
    assert len(read(site).files) == 2


def test_a_folder_without_a_file(site: Path) -> None:
    (site / "triton" / "__pycache__").mkdir(parents=True)
    found = read(site)
    assert found.hollow
    assert (found.any, found.words, found.size) == (True, "triton/ without a file in it", 0)


def test_hooks_of_an_editable_install_that_is_there_are_owned(site: Path, tmp_path: Path) -> None:
    editable(site, checkout(tmp_path / "src"), finder=True)
    assert not read(site).any


def test_a_link_to_a_source_tree_is_one_file(site: Path, tmp_path: Path) -> None:
    source = checkout(tmp_path / "src")
    (site / "triton").symlink_to(source / "python" / "triton")
    assert read(site).files == (site / "triton",)


def test_another_site_folder_is_another_matter(site: Path, tmp_path: Path) -> None:
    other = site_of(tmp_path / "other")
    triton(other)
    put(site, {"triton/__init__.py": ""})
    found = package_owners.read([site, other])
    assert len(installed_tritons.orphans(site, found).files) == 1
    assert not installed_tritons.orphans(other, found).any


def test_a_distribution_that_owns_no_triton_owns_none_of_its_files(site: Path) -> None:
    installs_install(site, "torch", "2.9.0", {"torch/x.py": ""})
    assert not read(site).any


# Processes that have Triton loaded.

MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    loaded = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_process_that_has_the_library_mapped(tmp_path: Path) -> None:
    library = tmp_path / "triton" / "_C" / "libtriton.so"
    library.parent.mkdir(parents=True)
    (tmp_path / "triton" / "__init__.py").write_text("__version__ = '3.8.0+git1234567'\n")
    library.write_bytes(b"\x7fELF" * 1000)
    argv = (sys.executable, "-c", MAPS, str(library))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        during = installed_tritons.living_processes()
        process.stdin.close()
        process.wait()
    after = installed_tritons.living_processes()
    assert during is not None
    assert after is not None
    (found,) = [found for found in during if found.pid == process.pid]
    assert found.command.endswith(str(library))
    assert found.version == "3.8.0"
    assert process.pid not in {one.pid for one in after}
    assert os.getpid() not in {one.pid for one in during}


def test_a_system_that_does_not_tell(tmp_path: Path) -> None:
    assert installed_tritons.living_processes(tmp_path) is None
