"""A bisect over commits that is killed at each of its steps in turn: only the step under way is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from filelock import FileLock

from tests.integration.harness import (
    LLVM,
    SMITH,
    Smith,
    capture,
    commit,
    git,
    plant,
    ready,
    require_llvm,
    wait_for,
)
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.lab import journal
from tritonsmith.lab.bisect import session
from tritonsmith.lab.bisect.candidates import CommitBuilds
from tritonsmith.lab.bisect.session import BisectSession

pytestmark = pytest.mark.xdist_group("killed bisects")  # one by one: each run builds, and has 300 s

AMD = "third_party/amd/amd.c"
NVIDIA = "third_party/nvidia/nvidia.c"
STEP = """\
#!/bin/sh
# A bisect that comes to a step for the first time is killed there, with its process group.
step() { mkdir "$STEPS/$1" 2>/dev/null && kill -KILL "-$(cat "$STEPS/../group")"; }
"""
SHIMS = {
    "git": """\
case "$*" in
clone*) step clone ;;
--work-tree*) step "files $6" ;;
*--detach*) for word; do :; done; step "sources $word" ;;
esac
""",
    "ccache": 'case "$*" in *third_party*.c) step "build $(git -C source rev-parse HEAD)" ;; esac\n',
}
TEST = """\
echo "${VIRTUAL_ENV##*/}" >> "$STEPS/../tested"
step "test ${VIRTUAL_ENV##*/}"
python -c "import sys, triton; sys.exit('gfx950' in str(triton.built_in()))"; code=$?
step "result ${VIRTUAL_ENV##*/}"
exit $code
"""

# Once a commit was tested, the next compile of Triton's own takes minutes.
SLOW = """\
#!/bin/sh
case "$*" in
*third_party*.c) [ -s "$STEPS/../tested" ] && mkdir "$STEPS/slow" 2>/dev/null && sleep 300 ;;
esac
"""
QUICK_TEST = """\
echo "${VIRTUAL_ENV##*/}" >> "$STEPS/../tested"
exec python -c "import sys, triton; sys.exit('gfx950' in str(triton.built_in()))"
"""


@dataclass(frozen=True)
class Killed:
    """A bisect of somebody's clone that is killed again and again.

    Attributes:
        smith: the tool, with programs before others on PATH that kill it.
        clone: the user's.
        question: ends, clone and settings.
        culprit: the first bad commit.
    """

    smith: Smith
    clone: Path
    question: tuple[str | Path, ...]
    culprit: str

    @property
    def steps(self) -> set[str]:
        """At which it was killed."""
        return {path.name for path in (self.smith.root / "steps").iterdir()}

    @property
    def session(self) -> BisectSession | None:
        """What is on disk; None before it began."""
        found = [*(self.smith.home / "bisects").glob(f"*/{session.FILE}")]
        return session.read(found[0].parent) if found else None

    def run(self, *argv: str | Path) -> subprocess.CompletedProcess[str]:
        """Run the tool in a process group of its own; no commit is tested whose outcome is on disk."""
        tested = self.smith.root / "tested"
        tested.write_text("", encoding="utf-8")
        known = self.session.outcomes if self.session else {}
        started = ("sh", "-c", 'echo $$ > "$STEPS/../group"; exec "$@"', "sh", SMITH, *argv)
        done = subprocess.run(
            started,
            cwd=self.smith.cwd,
            env=self.smith.environ,
            capture_output=True,
            text=True,
            timeout=300,
            start_new_session=True,
            check=False,
        )
        again = tested.read_text(encoding="utf-8").split()
        assert not [one for one in again if any(name.startswith(one) for name in known)]
        return done


@pytest.fixture
def killed(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Killed:
    require_llvm()
    clone = plant("mini_triton", tmp_path / "my clone")

    def change(what: str, file: str, new: str, old: str = "") -> str:
        text = (clone / file).read_text(encoding="utf-8") if (clone / file).is_file() else ""
        (clone / file).write_text(text.replace(old, new, 1) if old else text + new, encoding="utf-8")
        return commit(clone, what)

    good = change("docs", "README.md", "More.\n")
    change("nvidia", NVIDIA, "// more\n")
    change("python", "python/triton/__init__.py", "# more\n")
    change("broken", AMD, "not C\n")
    change("mended", AMD, "", "not C\n")
    culprit = change("culprit", AMD, "gfx950", "gfx942")
    change("python again", "python/triton/__init__.py", "# again\n")
    bad = change("nvidia again", NVIDIA, "// again\n")
    file, shims, test = tmp_path / "mine.toml", tmp_path / "shims", tmp_path / "test.sh"
    file.write_text(f'[llvm]\ndir = "{LLVM}"\n[triton]\nbuild-type = "Debug"\n', encoding="utf-8")
    for folder in (shims, tmp_path / "steps"):
        folder.mkdir()
    texts = {
        shims / name: f'{text}exec {capture("which", name).strip()} "$@"\n' for name, text in SHIMS.items()
    }
    for program, text in {**texts, test: TEST}.items():
        program.write_text(STEP + text, encoding="utf-8")
        program.chmod(0o755)
    path = f"{shims}{os.pathsep}{os.environ['PATH']}"
    smith = Smith(tmp_path, cwd=tmp_path, more={"PATH": path, "STEPS": str(tmp_path / "steps")})
    builds = CommitBuilds(clone, settings.load(str(file), only_shown=True), Workspace(smith.home))
    ready(replace(smith, cwd=clone), tmp_path_factory, builds.env("").name)
    question = ("--good", good, "--bad", bad, "--source", clone, "--env", file)
    return Killed(smith, clone, question, culprit)


def state(clone: Path) -> dict[str, tuple[int, int]]:
    """Size and time of every file of a clone, the index and objects of git among them."""
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in clone.rglob("*")
        if path.is_file()
    }


def at_work(smith: Smith) -> list[psutil.Process]:
    """Processes of a bisect, whoever their parent is."""
    return [
        one
        for one in psutil.process_iter(["environ", "name"])
        if (one.info["environ"] or {}).get("STEPS") == smith.more["STEPS"]
    ]


def left(smith: Smith) -> list[Any]:
    """Processes, locks and halves that a bisect has left behind."""
    processes = at_work(smith)
    for path in smith.home.rglob("*lock"):
        with FileLock(path, timeout=0):
            assert path.is_file()
    halves = [
        path for path in smith.home.rglob("*") if path.suffix in {".partial", ".holder", ".tritonsmith"}
    ]
    return [*processes, *halves]


@pytest.mark.slow
def test_a_bisect_that_is_killed_at_each_step_ends_in_the_same_culprit(killed: Killed) -> None:
    before = state(killed.clone)
    begun = ("bisect", *killed.question, "--json", "--", "sh", killed.smith.root / "test.sh")
    done = killed.run(*begun)
    while done.returncode == -signal.SIGKILL:
        done = killed.run("bisect.resume", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["culprit"]["commit"] == killed.culprit
    tested = {one["triton"]: one["verdict"] for one in told["tested"]}
    assert len(tested) == len(told["tested"]) >= 4
    for name, verdict in tested.items():
        assert f"files {name}" in killed.steps or verdict == "skip"
        assert {f"test {name[:12]}", f"result {name[:12]}"} <= killed.steps or verdict == "skip"
    assert {step.split()[0] for step in killed.steps} == {
        "clone", "sources", "build", "files", "test", "result",
    }  # fmt: skip
    assert state(killed.clone) == before
    assert left(killed.smith) == []
    assert git(killed.clone, "status", "--porcelain", "--ignored") == ""

    over = killed.session
    assert over is not None
    *lines, answer = (over.folder / journal.FILE).read_text(encoding="utf-8").splitlines()
    assert "first bad" in answer
    (over.folder / journal.FILE).write_text("\n".join([*lines, ""]), encoding="utf-8")  # killed before it
    told = json.loads(killed.run("bisect.resume", "--json").stdout)
    assert told["culprit"]["commit"] == killed.culprit
    assert (killed.smith.root / "tested").read_text(encoding="utf-8") == ""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT], ids=["SIGKILL", "SIGINT"])
def test_a_bisect_that_ends_during_a_build_goes_on_and_tests_nothing_twice(
    killed: Killed, how: signal.Signals
) -> None:
    """Only the tool is killed: a Ninja left at work holds the locks, and the next run stops it."""
    smith, tested = killed.smith, killed.smith.root / "tested"
    (smith.root / "shims" / "git").unlink()
    (smith.root / "shims" / "ccache").write_text(f'{SLOW}exec {capture("which", "ccache").strip()} "$@"\n')
    (smith.root / "test.sh").write_text(QUICK_TEST)
    tested.touch()
    with smith.running("bisect", *killed.question, "--json", "--", "sh", smith.root / "test.sh") as process:
        wait_for((smith.root / "steps" / "slow").is_dir, process)
        process.send_signal(how)
        process.communicate(timeout=60)
    assert process.returncode == (-how if how is signal.SIGKILL else 130)
    orphans = [(one.pid, one.ppid(), one.status(), one.cmdline()) for one in at_work(smith)]
    assert bool(orphans) == (how is signal.SIGKILL), orphans
    known = [one["triton"] for one in json.loads(smith("bisect.status", "--json").out)["tested"]]
    assert known
    tested.write_text("", encoding="utf-8")
    told = json.loads(smith("bisect.resume", "--json").out)
    assert told["culprit"]["commit"] == killed.culprit
    again = tested.read_text(encoding="utf-8").split()
    assert again
    assert not [one for one in again if any(name.startswith(one) for name in known)]
    assert len(told["tested"]) == len({one["triton"] for one in told["tested"]})
    assert left(smith) == []
