"""Upstream's own code that fetches an LLVM, under the environment of `install-triton`: pins stay apart.

It keeps one LLVM in `$TRITON_HOME/.triton/llvm`, and removes that folder first. The archives are small here.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build.llvm.prebuilt import suffix_for
from tritonsmith.build.triton import install
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.facts import checkout, machine

# setup.py builds as soon as it is imported, so its functions are taken out of it, with the imports they need.
_UPSTREAM = """
import ast, json, os, sys
from dataclasses import replace

root, setup, url, sha256 = sys.argv[1:]
sys.path[:0] = [root, os.path.join(root, "python")]
helpers = os.path.join(root, "python", "build_helpers.py")
newer = "def get_llvm_package_info" in open(helpers).read()
path = helpers if newer else setup
def wanted(node):
    if isinstance(node, ast.ImportFrom):
        known = {*sys.stdlib_module_names, "python", "build_helpers"} - {"distutils"}
        return node.module.split(".")[0] in known
    if isinstance(node, ast.ClassDef):
        return newer or node.name == "Package"
    return isinstance(node, (ast.FunctionDef, ast.Import)) and "pybind11" not in ast.dump(node)
tree = ast.parse(open(path).read())
tree.body = [node for node in tree.body if wanted(node)]
space = {"__name__": "upstream", "__file__": path}
exec(compile(tree, path, "exec"), space)
if not newer:
    package = replace(space["get_llvm_package_info"](), url=url)
    print(json.dumps(space["get_thirdparty_packages"]([package])))
else:
    home = os.environ["TRITON_HOME"]
    fields = dict.fromkeys(space["BuildHelperArgs"].__dataclass_fields__)
    given = dict(cache_path=os.path.join(home, ".triton"), llvm_syspath=os.environ.get("LLVM_SYSPATH"))
    given["offline_build"] = os.environ.get("TRITON_OFFLINE_BUILD") == "ON"
    args = space["BuildHelperArgs"](**{**fields, **given})
    package = replace(space["get_llvm_package_info"](args), url=url)
    if getattr(package, "sha256sum", None):
        package = replace(package, sha256sum=sha256)
    print(json.dumps(space["_get_thirdparty_package_cmake_vars"](package, args)))
"""
PAIRS = [("3.3", "3.5"), ("3.7", "main")]


def inputs(tree: Path, tmp_path: Path) -> Inputs:
    """As `install-triton` has them for a checkout."""
    return made.inputs(
        "3.5",
        checkout=checkout.read(tree),
        workspace=Workspace(tmp_path / "work space"),
        machine=machine.read(),
    )


def archive(given: Inputs, folder: Path) -> Path:
    """What stands for upstream's archive of that pin: one file."""
    pin = given.checkout.pin
    assert pin is not None
    build = f"-{pin.build}" if pin.build is not None else ""
    name = f"llvm-{pin.commit[:8]}-{suffix_for(given.machine, given.checkout.version)}{build}"
    (folder / name / "lib").mkdir(parents=True)
    (folder / name / "lib" / "here").write_text(pin.commit, encoding="utf-8")
    path = folder / f"{name}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        tar.add(folder / name, name)
    return path


def upstream(given: Inputs, tarball: Path, **changes: str | None) -> str:
    """Let upstream's code bring its LLVM; what it hands to CMake."""
    told = {**os.environ, **dict(install.environment(given)), **changes}
    environ = {name: value for name, value in told.items() if value is not None}
    root = given.checkout.root
    sha256 = hashlib.sha256(tarball.read_bytes()).hexdigest()
    argv = (
        sys.executable,
        "-c",
        _UPSTREAM,
        root,
        given.checkout.setup_dir / "setup.py",
        tarball.as_uri(),
        sha256,
    )
    done = subprocess.run(
        argv, env=environ, cwd=root, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return str(json.loads(done.stdout.splitlines()[-1]))


def llvms(home: Path) -> set[str]:
    """Folders that hold an LLVM."""
    return {path.parents[1].name for path in home.rglob("here")}


@pytest.mark.parametrize("versions", PAIRS, ids=" and ".join)
def test_two_pins_keep_both_of_their_llvms(
    versions: tuple[str, str], tree: Callable[[str], Path], tmp_path: Path
) -> None:
    both = [inputs(tree(version), tmp_path) for version in versions]
    archives = [archive(given, tmp_path / "archives") for given in both]
    homes = {given.triton_home for given in both}
    assert len(homes) == 2
    own: dict[str, str | None] = {"LLVM_SYSPATH": None, "TRITON_OFFLINE_BUILD": None}  # pip by hand
    for given, tarball in zip(both, archives, strict=True):
        assert str(given.triton_home / ".triton" / "llvm") in upstream(given, tarball, **own)
    found = {path.name.removesuffix(".tar.gz") for path in archives}
    assert llvms(tmp_path / "work space") == found
    one = str(tmp_path / "one home")  # what happens without
    for given, tarball in zip(both, archives, strict=True):
        upstream(given, tarball, **own, TRITON_HOME=one)
    assert llvms(Path(one)) == {archives[1].name.removesuffix(".tar.gz")}


@pytest.mark.parametrize("version", [version for pair in PAIRS for version in pair])
def test_install_triton_fetches_none(version: str, tree: Callable[[str], Path], tmp_path: Path) -> None:
    given = inputs(tree(version), tmp_path)
    tarball = archive(given, tmp_path / "archives")
    assert str(given.llvm.prefix) in upstream(given, tarball)
    assert llvms(tmp_path / "work space") == set()
