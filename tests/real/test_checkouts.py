"""Facts of real checkouts: as the golden plans assume them, and safe to act on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.build import made
from tritonsmith.build.triton import install, recipe
from tritonsmith.core.envs.settings import LlvmSettings
from tritonsmith.facts import checkout

from .regenerate_checkouts import COMMITS, STORE, History, as_json

Tree = Callable[[str], Path]
each_version = pytest.mark.parametrize("version", COMMITS)

# Read by some setup.py, and of no effect on a build here: where things lie when nothing else says so, what
# is only looked at when downloads are allowed, and a job server that Ninja does not have.
_HARMLESS = {
    "HOME",
    "USERPROFILE",
    "HOMEPATH",
    "MAKEFLAGS",
    "TRITON_USE_ASSERT_ENABLED_LLVM",
    "TRITON_UNSAFE_DISABLE_SHA_CHECK",
    "TRITON_CACHE_DEPENDENCY_DOWNLOADS",
}


@each_version
def test_facts_are_those_of_the_golden_plans(version: str, tree: Tree) -> None:
    stored = json.loads(STORE.read_text(encoding="utf-8"))
    read = checkout.read(tree(version))
    assert as_json(read) == stored[version]
    assert not read.dirty


def test_nothing_stored_is_without_its_commit() -> None:
    stored = json.loads(STORE.read_text(encoding="utf-8"))
    assert {name: row["commit"] for name, row in stored.items()} == COMMITS


@each_version
def test_a_checkout_is_found_from_inside(version: str, tree: Tree) -> None:
    root = tree(version)
    if version == "2.0":
        assert not (root / "third_party").exists()  # the one that only --source finds
        return
    assert checkout.enclosing(root / "lib" / "Analysis") == root


@each_version
def test_what_is_copied_into_a_checkout_overwrites_nothing_that_git_tracks(
    version: str, tree: Tree, history: History
) -> None:
    root = tree(version)
    parts = recipe.components(checkout.read(root), made.workspace(), proton=True)
    assert bool(parts) is (version != "2.0")  # which has its ptxas in git
    for part in parts:
        assert history.tracked(COMMITS[version], part.dest) == [], part.dest


@each_version
def test_setup_py_reads_no_variable_that_is_left_to_chance(version: str, tree: Tree) -> None:
    """Each is set or removed by `install-triton`, or has no effect."""
    root = tree(version)
    files = [root / name for name in ("setup.py", "python/setup.py", "python/build_helpers.py")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files if path.is_file())
    patterns = (
        r"""(?:environ\.get\(|environ\[|getenv\(|check_env_flag\()["'](\w+)["']""",
        r"""variable="(TRITON_\w+)\"""",
        r"""["'](\w+)["'] (?:not )?in os\.environ""",
    )
    wanted = {name for pattern in patterns for name in re.findall(pattern, text)}
    wanted |= {f"TRITON_{name}" for name in re.findall(r'^ +"TRITON_(\w+)",$', text, re.MULTILINE)}
    assert "DEBUG" in wanted
    for proton in (True, False):
        chosen = made.settings(LlvmSettings(), proton=proton)
        inputs = made.inputs(version, chosen=chosen)
        known = dict(install.environment(inputs)).keys() | _HARMLESS
        if inputs.checkout.has("triton-home"):  # and so TRITON_OFFLINE_BUILD: where a download would go
            of_the_profiler = "ROCPROFILER|CUPTI_PATH" if proton else "ROCPROFILER|CUPTI"
            known |= {name for name in wanted if re.search(of_the_profiler, name)}
        assert wanted - known == set()


@each_version
def test_the_link_at_the_root_comes_with_the_variable_for_the_build_folder(version: str, tree: Tree) -> None:
    """`preflight.setup_py` takes the one for the other."""
    read = checkout.read(tree(version))
    setup = (read.setup_dir / "setup.py").read_text(encoding="utf-8")
    links = bool(re.search(r"update_symlink\(.*compile_commands\.json", setup))
    assert links is read.has("build-dir-variable")


@each_version
def test_offline_builds_come_with_triton_home(version: str, tree: Tree) -> None:
    """`install.environment` takes the one for the other."""
    read = checkout.read(tree(version))
    setup = (read.setup_dir / "setup.py").read_text(encoding="utf-8")
    assert ("TRITON_OFFLINE_BUILD" in setup) is read.has("triton-home")
