"""The jobs and steps of a checkout's workflow files, and why a step cannot be run here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tritonsmith import configs, untrusted
from tritonsmith.errors import FactError, UsageError, did_you_mean

CONFIG = "ci-replay"
_FOLDER = ".github/workflows"
_EXPRESSION = re.compile(r"\$\{\{\s*(?P<text>.*?)\s*\}\}")
_LIMIT = 4 << 20  # bytes


@dataclass(frozen=True)
class WorkflowStep:
    """One step.

    Attributes:
        name: its own, or the first line of what it runs.
        script: for the shell; empty for an action.
        uses: the action; empty for a script.
        variables: of the environment, those of the workflow and of the job included.
        folder: where it runs, below the checkout.
        why: the reason if it is left out; empty if it can run.
        note: what is different here from there.
    """

    name: str
    script: str
    uses: str
    variables: tuple[tuple[str, str], ...]
    folder: str
    why: str
    note: str = ""


@dataclass(frozen=True)
class WorkflowJob:
    """One job.

    Attributes:
        file: its workflow file, by name.
        key: its id there.
        runner: what it runs on, as written.
        steps: in order.
        why: the reason if all of it is left out.
    """

    file: str
    key: str
    runner: str
    steps: tuple[WorkflowStep, ...]
    why: str = ""

    @property
    def name(self) -> str:
        """`FILE:KEY`."""
        return f"{self.file}:{self.key}"

    @property
    def runnable(self) -> tuple[WorkflowStep, ...]:
        """Steps that can run here."""
        return tuple(step for step in self.steps if not step.why)


def read(root: Path) -> tuple[WorkflowJob, ...]:
    """All jobs of a checkout.

    Raises:
        FactError: there is no workflow file, or one cannot be read.
    """
    files = sorted(path for path in (root / _FOLDER).glob("*.y*ml") if path.suffix in (".yml", ".yaml"))
    if not files:
        raise FactError("this checkout has no workflow files", where=root / _FOLDER)
    return tuple(job for file in files for job in _jobs(file))


def find(jobs: tuple[WorkflowJob, ...], text: str) -> WorkflowJob:
    """The job of `JOB` or `FILE:JOB`.

    Raises:
        UsageError: there is none, or there are several.
    """
    found = [job for job in jobs if text in (job.key, job.name)]
    if not found:
        raise UsageError(f"no job {text!r}", hints=did_you_mean(text, {job.key for job in jobs}))
    if len(found) > 1:
        raise UsageError(f"{text} is a job of several files", hints=[job.name for job in found])
    return found[0]


def _jobs(file: Path) -> Iterator[WorkflowJob]:
    try:
        content = _table(yaml.safe_load(untrusted.read_text(file, _LIMIT)))
    except (yaml.YAMLError, RecursionError) as error:
        raise FactError("cannot read this workflow file", where=file, why=str(error)) from error
    for key, value in _table(content.get("jobs")).items():
        job = _table(value)
        runner = str(job.get("runs-on") or "")
        given = {**_table(content.get("env")), **_table(job.get("env"))}
        folder = _text(_table(_table(job.get("defaults")).get("run")).get("working-directory"))
        raw = job.get("steps")
        steps = tuple(_step(_table(one), given, folder) for one in raw) if isinstance(raw, list) else ()
        why = f"it runs on {runner}" if "macos" in runner or "windows" in runner else ""
        why = f"it calls {job['uses']}" if "uses" in job else why
        yield WorkflowJob(file.name, str(key), runner, steps, why)


def _step(step: Mapping[str, Any], given: Mapping[str, Any], folder: str) -> WorkflowStep:
    script, uses = _text(step.get("run")), _text(step.get("uses"))
    variables = {str(name): _text(text) for name, text in {**given, **_table(step.get("env"))}.items()}
    name = _text(step.get("name")) or uses or _first(script)
    condition = _text(step.get("if"))
    condition = (match["text"] if (match := _EXPRESSION.fullmatch(condition)) else condition).strip()
    why, note = _why(script, uses, variables, _text(step.get("shell"))), ""
    rules = configs.load(CONFIG)["conditions"]
    if not why and condition and condition not in rules["true"]:
        if any(one in condition for one in rules["passed-over"]):
            note = f"there only if {condition}"
        else:
            why = f"only if {condition}: not known here"
    where = _text(step.get("working-directory")) or folder
    return WorkflowStep(name, script, uses, tuple(variables.items()), where, why, note)


def _why(script: str, uses: str, variables: Mapping[str, str], shell: str) -> str:
    if uses:
        return f"an action of GitHub's: {uses}"
    if not script:
        return "it runs nothing"
    if shell and not shell.startswith(("bash", "sh")):
        return f"it is for another shell: {shell}"
    code = re.sub(r"^\s*#.*$", "", script, flags=re.MULTILINE)
    names = " ".join(f"{name}={text}" for name, text in variables.items())
    for row in configs.load(CONFIG)["left-out"]:
        if re.search(row["pattern"], code) and not (
            "unless" in row and re.search(row["unless"], f"{code} {names}")
        ):
            return str(row["why"])
    if expression := _EXPRESSION.search(f"{code} {names}"):
        return f"GitHub would fill in {expression['text']}"
    return ""


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()  # as a workflow has it
    return str(value) if isinstance(value, (str, int, float)) else ""


def _first(script: str) -> str:
    return script.strip().partition("\n")[0]
