"""The action that a fork of Triton uses for its pull requests: its steps, as a runner's shell runs them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.action_job import Job, content_of, folder_of
from tests.integration.farm_clone import Farm
from tests.integration.harness import SMITH, git
from tests.support import REPOSITORY, require, script_of_python

FOLDER, ACTION = folder_of("farm"), content_of("farm")
STEPS: list[dict[str, Any]] = ACTION["runs"]["steps"]
TITLE = "### Triton `main` to `HEAD`: "
_NO_VERDICT = "no verdict: the run failed, or has not ended"
# As tritonsmith ends: writes a comment, prints, and has an exit code.
_STUB = """\
import os, pathlib, sys
words = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
if {title!r}:
    pathlib.Path(words["--comment"]).write_text({title!r} + "\\n\\n- more\\n")
print("\\n".join(sys.argv[1:]))
print("error: broken\\n```\\n::error::not from here", file=sys.stderr)
sys.exit({code})
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job without a checkout, in which a tritonsmith that was never built may run."""
    require("bash", "git")
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    job = Job(ACTION, tmp_path, path, {"base_ref": "", "action_path": str(FOLDER)})
    (tmp_path / "work").mkdir()
    git(tmp_path / "work", "init", "--quiet")
    return job


def ends(place: Path, code: int, words: str) -> str:
    """A tritonsmith that ends like this."""
    return str(
        script_of_python(place / "stub", _STUB.format(title=f"{TITLE}{words}" if words else "", code=code))
    )


def test_no_script_contains_an_expression() -> None:
    """GitHub puts the value of an expression into a script as it is: a branch's name could be a command."""
    assert not [step["name"] for step in STEPS if "${{" in step.get("run", "")]
    assert all(set(step.get("env", {})) for step in STEPS if "run" in step)
    assert ACTION["outputs"]["verdict"]["value"] == "${{ steps.verdict.outputs.verdict }}"


def test_the_documented_workflow_is_safe_and_fits_the_action() -> None:
    text = (REPOSITORY / "docs" / "farm.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    content: dict[Any, Any] = yaml.safe_load(block)
    assert list(content[True]) == ["pull_request"]  # `on:`, as YAML 1.1 reads it; never pull_request_target
    jobs: dict[str, Any] = content["jobs"]
    # The job that runs a stranger's code has no token that writes, and the one that has it runs no code.
    assert content["permissions"] == {"contents": "read"}
    assert "permissions" not in jobs["farm"]
    assert not [step for step in jobs["comment"]["steps"] if "checkout" in step.get("uses", "")]
    (used,) = [step for step in jobs["farm"]["steps"] if "/.github/actions/farm@" in step.get("uses", "")]
    assert set(used["with"]) <= set(ACTION["inputs"])
    scripts = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert not [script for script in scripts if "${{" in script]


@pytest.mark.parametrize(
    ("code", "words", "inputs", "verdict", "level", "end"),
    [
        (0, "no finding by these terms", {}, "none", "notice", 0),
        (1, "3 findings of 1 kind in 3 of 9 kernels", {}, "findings", "error", 1),
        (1, "3 findings", {"findings": "warn"}, "findings", "warning", 0),
        (5, "not sure: 2 kernels have unknown values", {}, "undecided", "warning", 0),
        (5, "not sure", {"undecided": "fail"}, "undecided", "error", 1),
        (1, _NO_VERDICT, {"findings": "warn"}, "error", "error", 1),
        (2, "", {"findings": "warn"}, "error", "error", 1),
        (130, _NO_VERDICT, {}, "error", "error", 1),
        (3, "3 findings", {"findings": "warn", "undecided": "warn"}, "error", "error", 1),
    ],
)
def test_what_the_exit_code_does(
    job: Job, code: int, words: str, inputs: dict[str, str], verdict: str, level: str, end: int
) -> None:
    job.run(tritonsmith=ends(job.place, code, words), **inputs)
    assert job.code == end, job.log
    assert job.outputs["verdict"]["verdict"] == verdict
    annotation = job.log.splitlines()[-1]
    assert annotation.startswith(f"::{level} title=farm ({verdict})::")
    if verdict == "error":
        assert f"no verdict (exit code {code})" in job.summary
        assert "    error: broken\n    ```\n" in job.summary
    else:
        assert job.summary == f"{TITLE}{words}\n\n- more\n"
        assert annotation.endswith(words)


def test_a_comment_of_an_earlier_run_is_no_verdict(job: Job) -> None:
    (job.place / "work" / "farm.md").write_text(f"{TITLE}no finding\n")
    job.run(tritonsmith=ends(job.place, 1, ""))
    assert (job.code, job.outputs["verdict"]["verdict"]) == (1, "error")


def test_inputs_are_words_and_not_code(job: Job) -> None:
    bad = '$(touch${IFS}pwned)";touch pwned;`touch pwned`'
    names = {name for name in ACTION["inputs"] if name not in ("tritonsmith", "comment", "source")}
    job.run(tritonsmith=ends(job.place, 0, f"no finding %0A::error::{bad}"), **dict.fromkeys(names, bad))
    assert not [*job.place.rglob("pwned")]
    assert f"--head={bad}" in job.log.splitlines()
    assert job.log.splitlines()[-1].startswith("::notice")
    assert "%250A" in job.log.splitlines()[-1]


def test_what_is_kept_goes_by_llvm_and_base(job: Job) -> None:
    work = job.place / "work"
    (work / "cmake").mkdir()
    (work / "cmake" / "llvm-hash.txt").write_text("0123456789abcdef0123\n")
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "--message", "first")
    job.run(tritonsmith=ends(job.place, 0, "no finding"), base="HEAD")
    assert job.outputs["actions/cache@v4"] == {
        "path": str(job.place / "temp" / "tritonsmith-farm"),
        "key": "farm-Linux-0123456789ab-HEAD",
        "restore-keys": "farm-Linux-0123456789ab-",
    }


def test_without_a_tritonsmith_the_actions_own_is_installed(job: Job) -> None:
    root = job.place / "with space" / "tritonsmith"
    shutil.copytree(FOLDER, root / ".github" / "actions" / "farm")
    own = root / ".venv" / "bin"
    own.mkdir(parents=True)
    Path(ends(own, 0, "no finding")).rename(own / "tritonsmith")
    (root / "bootstrap").write_text('#!/bin/sh\necho "$@" >"$(dirname "$0")/called"\n')
    (root / "bootstrap").chmod(0o755)
    job.github["action_path"] = str(root / ".github" / "actions" / "farm")
    job.run()
    assert job.code == 0, job.log
    assert (root / "called").read_text() == "doctor --packages\n"


@pytest.mark.slow
@pytest.mark.xdist_group("farm")
class TestOfMiniTriton:
    @pytest.fixture
    def real(self, job: Job, farm: Farm) -> Job:
        """A job with a checkout of one commit, as actions/checkout makes it."""
        job.environ = {**farm.smith.environ, "PATH": farm.smith.environ["PATH"]}
        shutil.rmtree(job.place / "work")
        return job

    def run(self, job: Job, farm: Farm, head: str, **inputs: str) -> Job:
        git(job.place, "clone", "--quiet", "--depth", "1", "--branch", head, f"file://{farm.clone}", "work")
        job.github["base_ref"] = "main"
        return job.run(
            tritonsmith=str(SMITH),
            kernels=str(farm.smith.root / "kernels.toml"),
            env=str(farm.env),
            cache=str(farm.smith.home),
            **inputs,
        )

    def test_nothing_worse_is_green(self, real: Job, farm: Farm) -> None:
        done = self.run(real, farm, "tests")
        assert (done.code, done.outputs["verdict"]["verdict"]) == (0, "none"), done.log
        assert done.summary.endswith(": the same compiler\n")
        assert done.outputs["prepare"]["base"] == farm.hashes["base"]

    def test_a_finding_is_red(self, real: Job, farm: Farm) -> None:
        done = self.run(real, farm, "native")
        assert (done.code, done.outputs["verdict"]["verdict"]) == (1, "findings"), done.log
        comment = (real.place / "work" / "farm.md").read_text(encoding="utf-8")
        assert comment == done.summary
        assert "does not compile any more" in comment
        assert done.log.splitlines()[-1].startswith("::error title=farm (findings)::Triton ")

    def test_what_is_not_decided_is_said(self, real: Job, farm: Farm) -> None:
        done = self.run(real, farm, "python")
        assert (done.code, done.outputs["verdict"]["verdict"]) == (0, "undecided"), done.log
        assert done.log.splitlines()[-1].startswith("::warning title=farm (undecided)::")
        assert "not sure" in done.summary

    def test_a_head_that_does_not_build_is_an_error(self, real: Job, farm: Farm) -> None:
        done = self.run(real, farm, "broken", findings="warn")
        assert (done.code, done.outputs["verdict"]["verdict"]) == (1, "error"), done.log
        assert "cannot be built" in done.summary
