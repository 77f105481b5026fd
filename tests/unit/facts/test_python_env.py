from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tritonsmith.facts import python_env
from tritonsmith.facts.python_env import PythonEnv


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment without pip."""
    folder = tmp_path_factory.mktemp("venv") / "a venv"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", folder), check=True)
    return folder


def site_packages(venv: Path) -> Path:
    return venv / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def install(venv: Path, name: str, version: str, files: tuple[str, ...] = (), top_level: str = "") -> None:
    """What pip leaves of a distribution."""
    info = site_packages(venv) / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    if top_level:
        (info / "top_level.txt").write_text(f"{top_level}\n")


def test_what_a_venv_says_of_itself(venv: Path) -> None:
    seen = python_env.read(venv / "bin" / "python")
    assert seen is not None
    assert seen.executable == venv / "bin" / "python"
    assert seen.version == ".".join(map(str, sys.version_info[:3]))
    assert seen.minor == ".".join(map(str, sys.version_info[:2]))
    assert seen.purelib == site_packages(venv)
    assert seen.headers is (seen.include / "Python.h").is_file()
    assert seen.platform.startswith(("linux-", "macosx-"))
    assert (seen.dists, seen.triton_owners) == ((), ())
    assert seen.soabi == sysconfig.get_config_var("SOABI")
    assert f".{seen.tag}" in sysconfig.get_config_var("EXT_SUFFIX")
    assert seen.free_threaded is bool(sysconfig.get_config_var("Py_GIL_DISABLED"))


def test_who_owns_triton(venv: Path) -> None:
    install(venv, "triton", "3.5.0", ("triton/__init__.py", "triton-3.5.0.dist-info/RECORD"))
    install(venv, "Triton_Nightly", "3.6.0", ("triton/_C/libtriton.so",))
    install(venv, "old_triton", "2.1.0", top_level="triton")
    install(venv, "torch", "2.9.0", ("torch/__init__.py", "torch/triton/x.py"))
    install(venv, "tritonclient", "2.0", ("tritonclient/__init__.py",))
    seen = python_env.read(venv / "bin" / "python")
    assert seen is not None
    assert seen.triton_owners == ("old-triton", "triton", "triton-nightly")
    assert dict(seen.dists)["triton-nightly"] == "3.6.0"
    assert len(seen.dists) == 5
    assert python_env.installed_version(site_packages(venv), "torch") == "2.9.0"
    assert python_env.installed_version(site_packages(venv), "lit") == ""
    assert python_env.installed_version(venv / "nowhere", "torch") == ""


def test_the_environment_does_not_change_what_is_seen(
    venv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert python_env.read(venv / "bin" / "python") is not None


def test_an_interpreter_that_prints_something_first(venv: Path) -> None:
    noise = site_packages(venv) / "noise.pth"
    noise.write_text("import sys; print('hello from a .pth file')\n")
    seen = python_env.read(venv / "bin" / "python")
    noise.unlink()
    assert seen is not None
    assert seen.purelib == site_packages(venv)


@pytest.mark.parametrize("program", ["/no/such/python", "false", "true", "echo"])
def test_what_is_no_python(program: str) -> None:
    assert python_env.read(Path(program)) is None


def test_what_kind_of_environment_it_is(venv: Path) -> None:
    seen = python_env.read(venv / "bin" / "python")
    assert seen is not None
    assert (seen.prefix, seen.base, seen.managed) == (venv, False, False)
    assert seen.sites == (site_packages(venv),)
    assert [found.site for found in seen.distributions] == [site_packages(venv)] * len(seen.dists)


def test_the_base_of_an_environment(home: Path) -> None:
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    user = home / ".local" / "lib" / site_packages(Path()).parent.name / "site-packages"
    user.mkdir(parents=True)
    seen = python_env.read(base)
    assert seen is not None
    assert seen.base is not (seen.prefix / "conda-meta").is_dir()
    assert seen.managed is Path(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED").is_file()
    if sys.platform != "darwin":
        assert seen.sites[0] == user


def test_the_users_own_site_folder(
    venv: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment has it on its path only where it sees its base's packages, and nobody forbids it."""
    monkeypatch.setenv("PYTHONUSERBASE", str(home / "user"))
    open_venv = tmp_path / "open"
    subprocess.run(
        (sys.executable, "-m", "venv", "--without-pip", "--system-site-packages", open_venv), check=True
    )
    user = site_packages(home / "user")
    user.mkdir(parents=True)
    shut, seen = (python_env.read(folder / "bin" / "python") for folder in (venv, open_venv))
    assert shut is not None
    assert seen is not None
    assert shut.sites == (site_packages(venv),)
    where = subprocess.run(
        (open_venv / "bin" / "python", "-c", "import sys; print(*sys.path, sep='\\n')"),
        capture_output=True,
        text=True,
        check=True,
    )
    entries = [Path(line) for line in where.stdout.splitlines()[1:]]
    assert [entry for entry in entries if entry in (user, site_packages(open_venv))] == list(seen.sites[:2])
    monkeypatch.setenv("PYTHONNOUSERSITE", "1")
    without = python_env.read(open_venv / "bin" / "python")
    assert without is not None
    assert user not in without.path


def test_a_site_folder_by_two_names_counts_once(tmp_path: Path) -> None:
    """Fedora's `lib64` is a link to `lib`."""
    site = site_packages(tmp_path)
    site.mkdir(parents=True)
    (tmp_path / "lib64").symlink_to("lib")
    other = tmp_path / "lib64" / site.relative_to(tmp_path / "lib")
    seen = PythonEnv(
        tmp_path, "3.11.0", tmp_path, headers=True, purelib=site, platform="x", path=(other, site)
    )
    assert seen.sites == (other,)


def test_the_first_of_two_versions_counts(venv: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "site-packages", tmp_path / "b" / "site-packages"
    for folder, version in ((first, "3.6.0"), (second, "3.5.0")):
        (folder / f"twice-{version}.dist-info").mkdir(parents=True)
    pth = site_packages(venv) / "more.pth"
    pth.write_text(f"{first}\n{second}\n")
    seen = python_env.read(venv / "bin" / "python")
    pth.unlink()
    assert seen is not None
    assert dict(seen.dists)["twice"] == "3.6.0"
    assert [found.version for found in seen.distributions if found.name == "twice"] == ["3.6.0", "3.5.0"]


def test_find_interpreter(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = Path(sys._base_executable)  # type: ignore[attr-defined]
    running = ".".join(map(str, sys.version_info[:2]))
    assert python_env.find_interpreter("") == python_env.find_interpreter(running) == base
    assert python_env.find_interpreter(str(base)) == base
    assert python_env.find_interpreter("/no/such/python") is None
    (home / "python").touch()
    assert python_env.find_interpreter("~/python") == home / "python"
    other = tmp_path / "python3.99"
    other.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert python_env.find_interpreter("3.99") == other
    assert python_env.find_interpreter("3.98") is None
