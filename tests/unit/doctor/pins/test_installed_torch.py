"""Environments whose site-packages hold what an installed torch and Triton leave there."""

from __future__ import annotations

import json
import sys
import venv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tritonsmith.core.errors import FactError
from tritonsmith.doctor.pins import install, report
from tritonsmith.doctor.pins.install import Owner, Torch, judge
from tritonsmith.facts import package_owners, pytorch_pins

GIT = "cf30153c4c131c8164ee7798e5022d810682e2cb"
RELEASE = pytorch_pins.find("2.13.0").release
REQUIRES = 'triton==3.7.1; platform_system == "Linux" and python_version < "3.15"'


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Site-packages of an environment with nothing in it."""
    folder = tmp_path_factory.mktemp("an env")
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    return site


@pytest.fixture
def site(bare: Path) -> Iterator[Path]:
    yield bare
    for path in sorted(bare.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()


def python_of(site: Path) -> Path:
    return site.parents[2] / "bin" / "python"


def put(site: Path, name: str, version: str, *requires: str, files: dict[str, str] | None = None) -> None:
    """Leave what pip leaves of a wheel."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    (info / "METADATA").write_text(head + "".join(f"Requires-Dist: {line}\n" for line in requires))
    for path, text in (files or {}).items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    record = [*(files or {}), f"{info.name}/METADATA", f"{info.name}/RECORD"]
    (info / "RECORD").write_text("".join(f"{path},,\n" for path in record))


def put_torch(site: Path, version: str, *requires: str, git: str = GIT) -> None:
    told = f"__version__ = '{version}'\ndebug = False\ngit_version = '{git}'\n"
    bomb = "raise SystemExit('imported')"
    put(site, "torch", version, *requires, files={"torch/__init__.py": bomb, "torch/version.py": told})


def put_triton(site: Path, version: str, name: str = "triton") -> None:
    put(site, name, version, files={"triton/__init__.py": "raise SystemExit('imported')"})


def test_a_release_and_its_wheel(site: Path) -> None:
    put_torch(site, "2.13.0", "filelock", REQUIRES)
    put_triton(site, "3.7.1")
    found = install.read_installed(python_of(site))
    assert found.torch == Torch("2.13.0", GIT, REQUIRES, debug="False")
    assert found.owners == (Owner("triton", "3.7.1", ""),)
    assert found.release == RELEASE
    assert found.agrees is True
    assert found.reasons == ("torch requires triton==3.7.1; installed is 3.7.1",)


def test_an_annotated_version_file(site: Path) -> None:
    """Newer PyTorch writes annotations into version.py."""
    put_torch(site, "2.13.0+cpu", REQUIRES)
    text = f"from typing import Optional\n\n__version__ = '2.13.0+cpu'\ngit_version: str = '{GIT}'\n"
    (site / "torch" / "version.py").write_text(text)
    torch = install.read_installed(python_of(site)).torch
    assert torch is not None
    assert torch.git_version == GIT


def test_a_torch_without_metadata(site: Path) -> None:
    """`PYTHONPATH` builds and some vendors' images have the package alone."""
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").touch()
    (site / "torch" / "version.py").write_text(
        f'__version__ = "2.10.0a0+git449b176"\ngit_version = "{GIT}"\n'
    )
    found = install.read_installed(python_of(site))
    assert found.torch == Torch("2.10.0a0+git449b176", GIT, "")
    assert found.release is None
    assert found.agrees is None
    assert "not a release in the table" in found.reasons[-1]


def test_a_torch_that_is_installed_as_editable(site: Path, tmp_path: Path) -> None:
    source = tmp_path / "pytorch"
    (source / "torch").mkdir(parents=True)
    (source / "torch" / "__init__.py").write_text("raise SystemExit('imported')")
    (source / "torch" / "version.py").write_text(f"git_version = '{GIT}'\n")
    put(site, "torch", "2.16.0a0+gitcf30153", REQUIRES, files={"torch.pth": f"{source}\n"})
    found = install.read_installed(python_of(site))
    assert found.torch == Torch("2.16.0a0+gitcf30153", GIT, REQUIRES)
    assert found.release is None


def test_neither_torch_nor_triton(site: Path) -> None:
    with pytest.raises(FactError, match="no torch in this Python, and no Triton") as caught:
        install.read_installed(python_of(site))
    assert caught.value.where == str(python_of(site))


@pytest.mark.parametrize("program", ["/no/such/python", "/bin/false", "/bin/echo"])
def test_what_is_no_python(program: str) -> None:
    with pytest.raises(FactError, match="this Python does not run"):
        install.read_installed(Path(program))


def test_two_owners_and_the_placeholder_that_is_none(site: Path) -> None:
    put_torch(site, "2.9.1+rocm6.4", "pytorch-triton-rocm==3.5.1")
    put_triton(site, "3.5.1", "pytorch-triton-rocm")
    put(site, "pytorch-triton", "0.0.1")
    found = install.read_installed(python_of(site))
    assert [owner.name for owner in found.owners] == ["pytorch-triton-rocm"]
    assert found.agrees is True
    put_triton(site, "3.5.1")
    both = install.read_installed(python_of(site))
    assert both.agrees is False
    assert "overwrite each other's files: pytorch-triton-rocm 3.5.1, triton 3.5.1" in both.reasons[0]


def test_a_requirement_for_another_python_is_none(site: Path) -> None:
    put_torch(site, "2.3.0", 'triton (==2.3.0) ; python_version < "3.8"', "not a requirement !")
    found = install.read_installed(python_of(site))
    assert found.torch is not None
    assert found.torch.requires == ""
    assert found.agrees is None


def verdict(torch: Torch, *owners: Owner) -> bool | None:
    agrees, reasons = judge(torch, owners, RELEASE)
    assert reasons
    assert all(reason[0].islower() for reason in reasons)
    return agrees


TORCH = Torch("2.13.0", GIT, REQUIRES)


def test_verdicts() -> None:
    pin, wheel = RELEASE.cuda.commit, RELEASE.wheel.commit
    assert verdict(TORCH) is False
    assert verdict(TORCH, Owner("triton", "3.6.0", "")) is False
    assert verdict(TORCH, Owner("pytorch-triton", "3.7.1", "")) is False
    assert verdict(TORCH, Owner("triton", "3.7.1+gitdeadbeef", "deadbeef")) is False
    for commit in (pin[:8], wheel[:10]):
        assert verdict(TORCH, Owner("triton", f"3.7.1+git{commit}", commit)) is True
    without = replace(TORCH, requires="")
    assert verdict(without) is None
    assert verdict(without, Owner("triton", "3.7.1", "")) is True
    assert verdict(without, Owner("triton", "3.6.0", "")) is False
    assert verdict(TORCH, Owner("triton", "not-a-version", "")) is None


def test_a_candidate_is_no_proof() -> None:
    release = pytorch_pins.find("2.9.0").release
    torch = Torch("2.9.0", "", "triton==3.5.0")
    likely, strange = release.cuda.candidates[0][:8], "deadbeef"
    own = judge(torch, (Owner("triton", f"3.5.0+git{likely}", likely),), release)
    assert "an unconfirmed candidate" in own[1][1]
    other = judge(torch, (Owner("triton", f"3.5.0+git{strange}", strange),), release)
    assert "the pin of PyTorch 2.9.0 is unknown" in other[1][1]
    assert own[0] is other[0] is None


@pytest.mark.parametrize(
    ("version", "commit"),
    [
        ("3.5.1+gitbfeb0668", "bfeb0668"),
        ("3.1.0+cf34004b8a", "cf34004b8a"),
        ("3.5.1", ""),
        ("3.3.1+rocm7.0.0.gitc8757738", ""),
        ("3.5.1+cu128", ""),
    ],
)
def test_the_commit_in_a_version(version: str, commit: str) -> None:
    assert package_owners.commit_in(version) == commit


def test_this_very_interpreter_runs() -> None:
    with pytest.raises(FactError, match="no torch"):
        install.read_installed(Path(sys.executable))


# --- a Triton without a torch


@pytest.mark.parametrize(
    ("version", "commit", "known_by"),
    [
        ("3.5.1+gitbfeb0668", "bfeb0668", ""),
        ("0.0.1", "", ""),
        (RELEASE.cuda.version, RELEASE.wheel.commit, "the wheel that PyTorch 2.12.1 requires"),
    ],
)
def test_a_triton_without_torch(site: Path, version: str, commit: str, known_by: str) -> None:
    put_triton(site, version)
    found = install.read_installed(python_of(site))
    assert found.torch is None
    assert found.agrees is None
    assert found.owners == (Owner("triton", version, commit, known_by),)
    text = "\n".join(report.installed(found))
    assert "  torch   none\n" in text
    assert f"  commit  {commit or 'unknown'}" in text
    assert f"pins --triton {commit or version}" in text
    assert report.installed_json(found)["torch"] is None


def test_a_triton_that_pip_installed_from_a_repository(site: Path) -> None:
    put_triton(site, "3.8.0")
    told = {"url": "https://github.com/triton-lang/triton", "vcs_info": {"vcs": "git", "commit_id": GIT}}
    (site / "triton-3.8.0.dist-info" / "direct_url.json").write_text(json.dumps(told))
    assert install.read_installed(python_of(site)).owners == (
        Owner("triton", "3.8.0", GIT, "direct_url.json"),
    )


@pytest.mark.parametrize(
    "told", ["", "[]", '{"vcs_info": {"commit_id": ["x"]}}', '{"vcs_info": {"commit_id": "; rm"}}']
)
def test_a_direct_url_that_says_nothing_of_use(site: Path, told: str) -> None:
    put_triton(site, "0.0.1")
    (site / "triton-0.0.1.dist-info" / "direct_url.json").write_text(told)
    assert install.read_installed(python_of(site)).owners == (Owner("triton", "0.0.1", ""),)
