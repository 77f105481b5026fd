"""What farms are tested with: a clone of mini-Triton with a commit of every kind, and kernels."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import LLVM, Smith, commit, git, plant, ready, require_llvm
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import EXIT_UNDECIDED
from tritonsmith.lab.bisect.candidates import CommitBuilds

KERNELS = """
import triton


@triton.jit
def fine(x):
    return


@triton.jit
def is_refused(x):
    return
"""
LIST = "".join(
    f'[[kernel]]\nfile = "kernels.py"\nkernel = "{name}"\nsignature = "*fp32"\ntargets = ["gfx942"]\n'
    for name in ("fine", "is_refused")
)
AMD, MAIN, INIT = "third_party/amd/amd.c", "python/src/main.c", "python/triton/__init__.py"
TEST = "test/twice.mlir"
RULE = 'strcmp(name, "is_too_long") == 0'
REFUSES = 'strcmp(name, "is_too_long") == 0 || strcmp(name, "is_refused") == 0'


@dataclass(frozen=True)
class Farm:
    """A clone with a commit of every kind, and the tool beside it.

    Attributes:
        smith: in the folder of the kernels.
        clone: the user's.
        hashes: what was changed to the commit; all but `base` have that as their parent.
        env: the settings of its builds.
    """

    smith: Smith
    clone: Path
    hashes: dict[str, str]
    env: Path

    @property
    def libraries(self) -> int:
        """How many native trees were built."""
        return len([*(self.smith.home / "bisect" / "libraries").glob("*/built.json")])

    @property
    def words(self) -> tuple[str | Path, ...]:
        return ("farm", self.smith.root / "kernels.toml", "--source", self.clone, "--env", self.env)

    def told(self, *more: str | Path, code: int = EXIT_UNDECIDED) -> dict[str, Any]:
        """What the farm says as JSON; these binaries have no resources, so `no finding` is not decided."""
        content: dict[str, Any] = json.loads(self.smith(*self.words, *more, "--json", code=code).out)
        return content


def make(tmp_path_factory: pytest.TempPathFactory) -> Farm:
    """A farm, of which nothing is built yet."""
    require_llvm()
    root = tmp_path_factory.mktemp("farm")
    clone = plant("mini_triton", root / "my clone")
    hashes = {"base": git(clone, "rev-parse", "HEAD").strip()}

    def change(what: str, file: str, old: str, new: str) -> None:
        git(clone, "checkout", "--quiet", "-b", what, hashes["base"])
        path = clone / file
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
        hashes[what] = commit(clone, what).strip()

    change("tests", TEST, "", "// more\n")
    change("python", INIT, "tt.func @", "tt.func  @")
    change("native", MAIN, RULE, REFUSES)
    change("comment", MAIN, "", "// no code\n")
    change("broken", AMD, "", "not C\n")
    git(clone, "checkout", "--quiet", "main")
    (root / "kernels.py").write_text(KERNELS, encoding="utf-8")
    (root / "kernels.toml").write_text(LIST, encoding="utf-8")
    env = root / "mine.toml"
    env.write_text(f'[llvm]\ndir = "{LLVM}"\n[triton]\nbackends = ["amd"]\n', encoding="utf-8")
    smith = Smith(root, cwd=root)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in smith.environ.items():
            patch.setenv(name, value)
        builds = CommitBuilds(clone, settings.load(str(env), only_shown=True), Workspace(smith.home))
        ready(replace(smith, cwd=clone), tmp_path_factory, builds.env("").name)
    return Farm(smith, clone, hashes, env)
