from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.facts.installs import checkout, editable, install, put, site_of, triton
from tritonsmith.facts import distributions, untracked_files
from tritonsmith.facts.untracked_files import Orphans


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return site_of(tmp_path / "env")


def read(site: Path) -> Orphans:
    return untracked_files.read(site, distributions.read([site]))


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
    assert not untracked_files.read(site, ()).leftovers
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
    found = distributions.read([site, other])
    assert len(untracked_files.read(site, found).files) == 1
    assert not untracked_files.read(other, found).any


def test_a_distribution_that_owns_no_triton_owns_none_of_its_files(site: Path) -> None:
    install(site, "torch", "2.9.0", {"torch/x.py": ""})
    assert not read(site).any
