"""The action for repositories with kernels, the hooks of pre-commit, and the workflow of a release."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.action_job import Job, content_of, folder_of
from tests.integration.harness import SMITH, Smith, git
from tests.support import REPOSITORY, require, script_of_python
from tritonsmith.cli import commands, modes

ACTION = content_of("kernels")
# As tritonsmith ends: prints what it has found, and has an exit code.
_STUB = """\
import sys
lint = sys.argv[1] == "kernel.lint"
print("ops/k,1.py:7: scalar-access: 100% of ::error::x" if lint else "same: 1 kernel changed")
print("\\n".join(sys.argv[1:]))
sys.exit({code} if lint else 0)
"""
KERNEL = """
import triton
import triton.language as tl


@triton.jit
def scaled(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) * 2, mask=at < n)
"""
LIST = """
[[kernel]]
file = "scale.py"
signature = "*fp32:16,*fp32:16,i32:16,BLOCK=256"
targets = ["h100"]
"""


@pytest.fixture
def job(tmp_path: Path) -> Job:
    require("bash", "git")
    path = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(tmp_path)}
    (tmp_path / "work").mkdir()
    git(tmp_path / "work", "init", "--quiet", "--initial-branch", "main")
    return Job(ACTION, tmp_path, path, {"base_ref": "", "action_path": str(folder_of("kernels"))})


def stub(place: Path, code: int) -> str:
    return str(script_of_python(place / "stub", _STUB.format(code=code)))


def test_no_script_contains_an_expression() -> None:
    """GitHub puts the value of an expression into a script as it is: a branch's name could be a command."""
    steps: list[dict[str, Any]] = ACTION["runs"]["steps"]
    assert not [step["name"] for step in steps if "${{" in step.get("run", "")]


@pytest.mark.parametrize(("code", "level"), [(0, "warning"), (1, "error"), (5, "error")])
def test_findings_are_annotations(job: Job, code: int, level: str) -> None:
    job.run(tritonsmith=stub(job.place, code))
    assert job.code == (1 if code else 0), job.log
    (line,) = re.findall(r"^::(?:error|warning) file=.*", job.log, re.MULTILINE)
    assert line == f"::{level} file=ops/k%2C1.py,line=7::scalar-access: 100%25 of ::error::x"
    assert f"### kernel.lint --changed (exit code {code})" in job.summary
    assert "    same: 1 kernel changed\n" in job.summary
    # What the tool prints is no command for the runner.
    tokens = re.findall(r"^::stop-commands::(stop-\d+)$", job.log, re.MULTILINE)
    assert len(tokens) == 2
    assert all(f"\n::{token}::\n" in job.log for token in tokens)


def test_inputs_are_words_and_not_code(job: Job) -> None:
    bad = '$(touch${IFS}pwned)";touch pwned;`touch pwned`'
    job.run(tritonsmith=stub(job.place, 0), since=bad, kernels=bad, target=bad, triton=bad, strict="true")
    assert not [*job.place.rglob("pwned")]
    assert {f"--since={bad}", f"--kernels={bad}", f"--triton={bad}", "--strict"} <= set(job.log.splitlines())


@pytest.mark.slow
def test_a_pull_request_that_changes_a_kernel(job: Job, with_wheel: Smith) -> None:
    origin, work = job.place / "origin", job.place / "work"
    work.rename(origin)
    (origin / "scale.py").write_text(KERNEL)
    (origin / "kernels.toml").write_text(LIST)
    git(origin, "add", "--all")
    git(origin, "commit", "--quiet", "--message", "a kernel")
    git(origin, "checkout", "--quiet", "-b", "change")
    (origin / "scale.py").write_text(KERNEL.replace("* 2", "* 3"))
    git(origin, "commit", "--quiet", "--all", "--message", "another factor")
    git(job.place, "clone", "--quiet", "--depth", "1", "--branch", "change", f"file://{origin}", "work")
    job.environ = dict(with_wheel.environ)
    job.github["base_ref"] = "main"
    job.run(tritonsmith=str(SMITH), cache=str(with_wheel.home))
    assert job.code == 1, job.log
    assert "nothing found in 1 compile: 1 kernel changed" in job.log
    assert re.search(r"::error file=scale.py,line=7::scaled: .*are different$", job.log, re.MULTILINE)


def test_hooks_select_the_modes_and_take_files() -> None:
    hooks: list[dict[str, Any]] = yaml.safe_load((REPOSITORY / ".pre-commit-hooks.yaml").read_text())
    assert [hook["id"] for hook in hooks] == ["tritonsmith-lint", "tritonsmith-check"]
    for hook in hooks:
        line = [*hook["entry"].split(), *hook["args"], "a.py"]
        task, *words = modes.resolved(line[1:])
        assert task in commands.EVERY
        assert words == ["--", "a.py"]
        assert hook["require_serial"]


WORKFLOW: dict[Any, Any] = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "release.yml").read_text())
BUILD: dict[str, dict[str, Any]] = {
    step["name"]: step for step in WORKFLOW["jobs"]["build"]["steps"] if "name" in step
}


def bash(script: str, place: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script),
        cwd=place,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )


def test_only_the_job_that_publishes_has_a_token_and_runs_nothing_of_ours() -> None:
    assert WORKFLOW[True] == {"push": {"tags": ["v*"]}}  # `on:`, as YAML 1.1 reads it
    assert WORKFLOW["permissions"] == {"contents": "read"}
    build, publish = WORKFLOW["jobs"]["build"], WORKFLOW["jobs"]["publish"]
    assert "permissions" not in build
    assert (publish["environment"], publish["permissions"]) == ("pypi", {"id-token": "write"})
    assert not [step for step in publish["steps"] if "run" in step]
    assert re.fullmatch(r"pypa/gh-action-pypi-publish@[0-9a-f]{40}", publish["steps"][-1]["uses"])
    assert not [step for step in build["steps"] if "${{" in step.get("run", "")]


def test_a_release_is_a_tag_of_the_version_with_a_section_of_the_changelog(tmp_path: Path) -> None:
    script = BUILD["The tag is the version"]["run"]
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(project, encoding="utf-8")
    version = tomllib.loads(project)["project"]["version"]
    (tmp_path / "CHANGELOG.md").write_text("## Unreleased\n")
    other = bash(script, tmp_path, TAG="v99.0")
    assert (other.returncode, other.stdout.startswith("::error file=pyproject.toml::")) == (1, True)
    silent = bash(script, tmp_path, TAG=f"v{version}")
    assert (silent.returncode, silent.stdout.startswith("::error file=CHANGELOG.md::")) == (1, True)
    (tmp_path / "CHANGELOG.md").write_text(f"## Unreleased\n\n## {version} - 2026-01-01\n")
    assert bash(script, tmp_path, TAG=f"v{version}").returncode == 0


@pytest.mark.slow
def test_what_a_release_tries_with_the_wheel_works(tmp_path: Path, with_wheel: Smith) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "tritonsmith.whl").touch()
    # `uvx --from WHEEL tritonsmith ...`, by the tool that these tests run.
    tools = tmp_path / "tools" / "bin"
    tools.mkdir(parents=True)
    (tools / "uvx").write_text(
        f'#!/bin/sh\n[ "$1 $3" = "--from tritonsmith" ] && shift 3 && exec "{SMITH}" "$@"\n'
    )
    (tools / "uvx").chmod(0o755)
    script = BUILD["The wheel alone, in an empty folder"]["run"]
    done = bash(script, tmp_path, **with_wheel.environ, RUNNER_TEMP=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "double by Triton" in done.stdout
