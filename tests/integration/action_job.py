"""A job that uses an action of this repository: its steps, as a runner's shell runs them."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.support import REPOSITORY

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def folder_of(action: str) -> Path:
    """Return the folder of an action of this repository."""
    return REPOSITORY / ".github" / "actions" / action


def content_of(action: str) -> dict[str, Any]:
    """Return what the action.yml of an action of this repository says."""
    content: dict[str, Any] = yaml.safe_load((folder_of(action) / "action.yml").read_text(encoding="utf-8"))
    return content


@dataclass
class Job:
    """What a runner keeps of a job.

    Attributes:
        action: the content of its action.yml.
        place: folder of the runner's files; the job runs in `place/work`.
        environ: of the runner.
        github: of its context.
        code: exit code of the last step; steps after one that fails do not run.
        log: what the steps printed.
        outputs: by step, and of the steps with `uses` what they are given.
    """

    action: dict[str, Any]
    place: Path
    environ: dict[str, str]
    github: dict[str, str]
    code: int = 0
    log: str = ""
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        return (self.place / "summary").read_text(encoding="utf-8")

    def run(self, **given: str) -> Job:
        """Run the action with some inputs."""
        assert set(given) <= set(self.action["inputs"]), "GitHub only warns of an input that is misspelt"
        inputs = {name: str(row["default"]) for name, row in self.action["inputs"].items()} | given
        for name in ("work", "temp"):
            (self.place / name).mkdir(exist_ok=True)
        for name in ("output", "summary"):
            (self.place / name).write_text("")
        for step in self.action["runs"]["steps"]:
            if "uses" in step:
                self.outputs[step["uses"]] = {
                    name: self.resolved(value, inputs) for name, value in step["with"].items()
                }
                continue
            assert step["shell"] == "bash"
            self.step(step, inputs)
            if self.code:
                break
        return self

    def step(self, step: dict[str, Any], inputs: dict[str, str]) -> None:
        script, output = self.place / "script.sh", self.place / "output"
        script.write_text(step["run"], encoding="utf-8")
        output.write_text("")
        environ = {
            **self.environ,
            "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": str(self.place / "summary"),
            "RUNNER_TEMP": str(self.place / "temp"),
            **{name: self.resolved(value, inputs) for name, value in step["env"].items()},
        }
        done = subprocess.run(
            ("bash", "--noprofile", "--norc", "-eo", "pipefail", script),
            cwd=self.place / "work",
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.log += done.stdout
        self.code = done.returncode
        rows = output.read_text(encoding="utf-8").splitlines()
        self.outputs[step["id"]] = dict(row.split("=", 1) for row in rows)

    def resolved(self, text: str, inputs: dict[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            kind, _, name = match[1].partition(".")
            if kind == "steps":
                step, _, output = name.partition(".outputs.")
                return self.outputs[step].get(output, "")
            return {"inputs": inputs, "github": self.github, "runner": {"os": "Linux"}}[kind][name]

        return EXPRESSION.sub(value, text)
