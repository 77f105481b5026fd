"""CPU seconds of `invoke bisect`, and of `git bisect run` with a clean `pip install -e .` at each step.

`python benchmarks/bisect_run.py CLONE GOOD BAD KERNEL --signature S --when TERM --python PYTHON [--env FILE]
[--samples N] [--set NAME=VALUE ...]`

All that the tool does counts: it begins with an empty workspace and an empty compiler cache, so its first
build is a whole one, and it tests both ends. The other side is what git bisect tests between the ends until
it names the same commit. Of these commits N are installed, each into a clone of its own, by pip of PYTHON,
which has what the build needs (setuptools, wheel, CMake, Ninja, pybind11); `--set` are variables of Triton's
setup.py. Their mean stands for all. The tests themselves are left out there, which favours that side.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
BISECT = (sys.executable, "-m", "invoke", "--search-root", str(REPOSITORY), "bisect")


def measured(argv: tuple[str, ...], environ: Mapping[str, str], cwd: Path) -> tuple[str, float]:
    """What a command that must succeed prints, and its CPU seconds with those of its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, **environ}
    done = subprocess.run(argv, check=True, cwd=cwd, env=env, stdout=subprocess.PIPE, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def git(cwd: Path, *argv: str) -> str:
    """What git prints."""
    return subprocess.run(("git", *argv), check=True, cwd=cwd, capture_output=True, text=True).stdout


def halvings(clone: Path, good: str, bad: str, culprit: str) -> list[str]:
    """The commits that git bisect tests until it names the culprit."""
    git(clone, "bisect", "start", bad, good)
    said = git(clone, "bisect", "run", "sh", "-c", f"! git merge-base --is-ancestor {culprit} HEAD")
    if f"{culprit} is the first bad commit" not in said:
        sys.exit(f"git bisect names another commit:\n{said}")
    return re.findall(r"^git bisect (?:good|bad) (\w+)", git(clone, "bisect", "log"), re.MULTILINE)


def installed(clone: Path, commit: str, python: Path, environ: Mapping[str, str], root: Path) -> float:
    """CPU seconds of an install from nothing."""
    with tempfile.TemporaryDirectory(dir=root) as folder:
        checkout = Path(folder)
        git(checkout, "clone", "--quiet", "--shared", str(clone), ".")
        git(checkout, "checkout", "--quiet", commit)
        project = checkout if (checkout / "setup.py").is_file() else checkout / "python"
        pip = (str(python), "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--editable", ".")
        path = f"{python.parent}{os.pathsep}{environ.get('PATH', os.environ['PATH'])}"
        return measured(pip, {**environ, "PATH": path}, project)[1]


def main() -> None:
    """Print what both sides take, and the ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone", type=Path)
    parser.add_argument("good")
    parser.add_argument("bad")
    parser.add_argument("kernel", help="FILE:KERNEL")
    parser.add_argument("--signature", required=True)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--when", required=True)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--env", default="")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    given = parser.parse_args()
    ends = ("--good", given.good, "--bad", given.bad, "--source", str(given.clone.absolute()))
    asked = ("--kernel", given.kernel, "--signature", given.signature, "--target", given.target)
    env = ("--env", given.env) if given.env else ()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        empty = {"TRITONSMITH_HOME": str(root / "workspace"), "CCACHE_DIR": str(root / "ccache")}
        bisect = (*BISECT, *ends, *asked, "--when", given.when, *env, "--json")
        said, tool = measured(bisect, empty, Path.cwd())
        told = json.loads(said)
        culprit = told["culprit"]["commit"]
        print(f"invoke bisect: {culprit[:12]}, {len(told['tested'])} tests, {tool:.0f} CPU s", flush=True)
        clone = root / "clone"
        git(root, "clone", "--quiet", "--shared", str(given.clone.absolute()), str(clone))
        good, bad = (git(given.clone, "rev-parse", end).strip() for end in (given.good, given.bad))
        commits = halvings(clone, good, bad, culprit)
        environ = dict(one.split("=", 1) for one in given.set)
        taken = []
        for commit in commits[:: max(1, len(commits) // given.samples)][: given.samples]:
            taken.append(installed(clone, commit, given.python.absolute(), environ, root))
            print(f"a clean install of {commit[:12]}: {taken[-1]:.0f} CPU s", flush=True)
    clean = len(commits) * sum(taken) / len(taken)
    print(f"git bisect run: {len(commits)} steps, {clean:.0f} CPU s; ratio {tool / clean:.3f}")


if __name__ == "__main__":
    main()
