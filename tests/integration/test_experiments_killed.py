"""Experiments that are killed in their tests: the next run tests nothing twice and ends alike."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import SMITH, Smith
from tests.unit.lab.compare import compiler
from tritonsmith.compiler.manifest import folder_name

# A test that comes for the first time kills the tool, with all that it has started, before it ends: what it
# has left in its folder by then, a cache and a result, is not to be taken for that of the next.
SCRIPT = """
import os, pathlib, signal
steps, folder = pathlib.Path(os.environ["STEPS"]), pathlib.Path(os.environ["TRITON_CACHE_DIR"])
assert not folder.exists(), "the cache of a test that was killed"
folder.mkdir()
(folder / "kernel.ptx").touch()
name = folder.parent.name.rpartition("-")[0] or folder.parent.name
with open(steps / "tested", "a") as tested:
    tested.write(name + "\\n")
if name in (steps / "killing").read_text().split():
    try:
        (steps / name).mkdir()
    except FileExistsError:
        pass
    else:
        os.killpg(int((steps / "group").read_text()), signal.SIGKILL)
assert os.environ.get("DISABLE_LLVM_OPT") or os.environ.get("TRITON_INTERPRET"), "wrong"
"""

# Both baselines, a test in which the symptom stays, the one in which it goes, and one that cannot be made.
_KILLING = (
    "nothing_changed",
    "nothing_changed,_again",
    "ptxas_not_optimizing",
    "LLVM_not_optimizing",
    "num_warps=8",
)


@dataclass(frozen=True)
class Killed:
    """The tool in a folder with a script that kills it.

    Attributes:
        smith: the tool.
        steps: a folder for each test that was killed, and what was tested.
    """

    smith: Smith
    steps: Path

    def run(self, *argv: str | Path, killed: bool = True) -> subprocess.CompletedProcess[str]:
        """Run it in a process group of its own."""
        (self.steps / "tested").write_text("")
        (self.steps / "killing").write_text("\n".join(_KILLING) if killed else "")
        return subprocess.run(
            ("sh", "-c", 'echo $$ > "$STEPS/group"; exec "$@"', "sh", SMITH, *argv),
            cwd=self.smith.cwd,
            env={**self.smith.environ, "STEPS": str(self.steps)},
            capture_output=True,
            text=True,
            timeout=300,
            start_new_session=True,
            check=False,
        )

    def tested(self) -> Counter[str]:
        """What the last run has tested."""
        return Counter((self.steps / "tested").read_text().split())


@pytest.fixture
def killed(tmp_path: Path) -> Killed:
    for name in ("mine", "steps", "home"):
        (tmp_path / name).mkdir()
    (tmp_path / "mine" / "script.py").write_text(SCRIPT)
    # What is killed leaves its scratch folder.
    temporary = {"TMPDIR": str(tmp_path / "home")}
    return Killed(Smith(tmp_path / "home", cwd=tmp_path / "mine", more=temporary), tmp_path / "steps")


def timeless(answer: Any) -> Any:
    """Leave out wall times."""
    if isinstance(answer, dict):
        return {name: timeless(value) for name, value in answer.items() if name != "seconds"}
    return [timeless(value) for value in answer] if isinstance(answer, list) else answer


@pytest.mark.slow
def test_a_triage_that_is_killed_again_and_again_ends_in_the_same_verdict(killed: Killed) -> None:
    command = ("triage", "--json", "--python", sys.executable, "--", "python", "script.py")
    known: Counter[str] = Counter()
    runs = 0
    done = killed.run(*command)
    while done.returncode == -signal.SIGKILL:
        runs += 1
        known += killed.tested()
        done = killed.run(*command)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "LLVM's optimizations"
    known += killed.tested()
    whole = killed.run(*command, killed=False)
    assert timeless(json.loads(whole.stdout)) == timeless(answer)
    plain = killed.tested()
    assert runs == len(_KILLING)
    # What was killed was begun twice, and the baseline once more by each run that had a journal.
    assert known.pop("nothing_changed") == 1 + runs
    tested = {folder_name(row["variant"]) for row in answer["tried"] if row["symptom"] != "not tested"}
    again = {name: times - plain[name] for name, times in known.items()}
    assert {name: times for name, times in again.items() if name in tested} == {
        name: int(name in _KILLING) for name in tested
    }


@pytest.mark.slow
def test_a_triage_of_other_inputs_begins_anew(killed: Killed) -> None:
    command = ("triage", "--out", "evidence", "--python", sys.executable, "--", "python", "script.py")
    for _ in range(4):
        assert killed.run(*command).returncode == -signal.SIGKILL
    script = killed.smith.cwd / "script.py"
    script.write_text(script.read_text().replace("DISABLE_LLVM_OPT", "DISABLE_PTXAS_OPT"))
    done = killed.run(*command, killed=False)
    assert "it starts over: the stopped run had other inputs" in done.stderr
    assert "verdict: ptxas" in done.stdout, done.stdout
    assert "tests of a run that was stopped" not in done.stderr
    assert killed.tested()["nothing_changed"] == 1


@pytest.mark.slow
def test_a_triage_whose_baseline_is_another_one_begins_anew(killed: Killed) -> None:
    """Something that nobody can compare has changed: here a file outside of the folder of the command."""
    script = killed.smith.cwd / "script.py"
    text = script.read_text().replace('"wrong"', '(steps / "message").read_text()')
    script.write_text(text)
    (killed.steps / "message").write_text("wrong")
    command = ("triage", "--python", sys.executable, "--", "python", "script.py")
    for _ in range(4):
        assert killed.run(*command).returncode == -signal.SIGKILL
    (killed.steps / "message").write_text("another thing")
    done = killed.run(*command, killed=False)
    assert "it starts over: with nothing changed, the result differs from" in done.stderr
    assert "another thing" in done.stdout
    assert killed.tested()["nothing_changed"] == 2, "before, and anew"


# Two or three questions are asked before the search: what is given, and what it begins with.
QUESTION = """\
#!/bin/sh
sha256sum < "$1" >> "$STEPS/tested"
asked=$(wc -l < "$STEPS/tested")
if [ -s "$STEPS/killing" ] && [ "$asked" = "$AT" ]; then kill -KILL "-$(cat "$STEPS/group")"; fi
grep -q "$WANTED" "$1"
"""
IR = """\
module {
  tt.func public @f(%a: i32, %b: i32) {
    %c = test.a %a, %b : i32
    %d = test.b %c, %a : i32
    %e = test.c %d, %c : i32
    test.store %e, %d : i32
    tt.return
  }
}
"""
KERNEL = """\
import triton
import triton.language as tl

@triton.jit
def helper(x, scale):
    return x * scale

@triton.jit
def kernel(a, b, out, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(a + i)
    y = tl.load(b + i)
    for k in range(4):
        x += helper(x, k)
    tl.store(out + i, tl.exp(x) + y)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "name", "text", "wanted", "at"),
    [("passes.reduce", "f.ttgir", IR, "test.c", 5), ("kernel.reduce", "k.py:kernel", KERNEL, "tl.exp", 9)],
)
def test_a_reduction_that_is_killed_again_and_again_asks_for_nothing_twice(
    killed: Killed, command: str, name: str, text: str, wanted: str, at: int
) -> None:
    killed = replace(
        killed, smith=replace(killed.smith, more={**killed.smith.more, "WANTED": wanted, "AT": str(at)})
    )
    here = killed.smith.cwd
    (here / name.partition(":")[0]).write_text(text)
    question = killed.steps / "question"
    question.write_text(QUESTION)
    question.chmod(0o755)
    words = (command, name, "--jobs", "1", "--json", "--out", "small.py", "--", question, "{}")
    plain = killed.run(*words, killed=False)
    assert plain.returncode == 0, plain.stderr
    whole = (here / "small.py").read_text()
    every = killed.tested()
    known: Counter[str] = Counter()
    runs = 0
    done = killed.run(*words)
    while done.returncode == -signal.SIGKILL:
        runs += 1
        known += killed.tested()
        status = json.loads(killed.run(*words[:-3], "--status", *words[-3:], killed=False).stdout)
        assert not status["ended"]
        assert status["tests"]
        assert not killed.tested(), "--status tests nothing"
        done = killed.run(*words)
    assert done.returncode == 0, done.stderr
    known += killed.tested()
    assert runs > 1
    assert (here / "small.py").read_text() == whole
    answers = [timeless(json.loads(run.stdout)) for run in (plain, done)]
    assert answers[0] == answers[1]
    # What is asked before the search, and the question that was killed, were asked for by each run.
    again = {name: times - every[name] for name, times in known.items() if times > every[name]}
    assert set(known) == set(every)
    assert sum(sorted(again.values())[:-3]) <= runs, again
    assert not list((killed.smith.home / "passes" / "reduce").glob("*"))
    assert not list((killed.smith.home / "reduce").glob("*"))


@pytest.mark.slow
def test_a_study_that_is_killed_compiles_nothing_twice(tmp_path: Path) -> None:
    python = compiler.make(tmp_path / "venv")
    names = [f"k{number}" for number in range(6)]
    for name in names:
        compiler.kernel(tmp_path, name)
    entries = (f'[[kernel]]\nfile = "{name}.py"\nsignature = "*fp32,64"\n' for name in names)
    (tmp_path / "kernels.toml").write_text("".join(entries))
    smith = Smith(tmp_path / "home", cwd=tmp_path)
    (tmp_path / "home").mkdir()
    flags = ("--triton", str(python), "--target", "a100", "--out", "study", "--jobs", "1")
    command = ("compare", "kernels.toml", *flags)
    process = subprocess.Popen(
        (SMITH, *command),
        cwd=tmp_path,
        env=smith.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while len(list((tmp_path / "study").rglob("manifest.json"))) < 2 and process.poll() is None:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    complete = {path.parent.name for path in (tmp_path / "study").rglob("manifest.json")}
    status = json.loads(smith(*command, "--status", "--json").out)
    assert {row["change"].split()[0] for row in status["tests"]} <= complete
    assert not status["ended"]
    result = json.loads(smith(*command, "--json", code=1).out)  # the interpreter of the test makes no binary
    assert [row["kernel"] for row in result["rows"]] == names
    times = Counter(line.split()[0] for line in compiler.compiled(python))
    assert set(times) == set(names)
    assert {name for name, number in times.items() if number > 1} <= set(names) - complete
