"""The jobs and steps of a checkout's workflow files, and the reasons why a step cannot run here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import yaml

from tritonsmith.build.suites import step_script
from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, UsageError, did_you_mean

CONFIG = "ci-replay"
_FOLDER = ".github/workflows"
_BEGIN, _END = "${{", "}}"  # around expressions that GitHub fills in


@dataclass(frozen=True)
class WorkflowStep:
    """One step.

    Attributes:
        name: its own, or the first line of its script.
        script: script for the shell; empty for an action.
        uses: the action; empty for a script.
        variables: environment variables, including those of the workflow and the job.
        folder: working directory, relative to the checkout.
        why: the reason why it is left out; empty if it can run.
        note: the difference between here and CI.
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
        file: name of its workflow file.
        key: its id in that file.
        runner: its runner, as written.
        steps: its steps, in order.
        why: the reason why all of it is left out.
    """

    file: str
    key: str
    runner: str
    steps: tuple[WorkflowStep, ...]
    why: str = ""

    @property
    def name(self) -> str:
        """The name as `FILE:KEY`."""
        return f"{self.file}:{self.key}"

    @property
    def runnable(self) -> tuple[WorkflowStep, ...]:
        """The steps that can run here."""
        return tuple(step for step in self.steps if not step.why)


@dataclass(frozen=True)
class Workflows:
    """The workflow files of a checkout.

    Attributes:
        jobs: jobs of all files that can be read.
        unreadable: the other files, each with the reason.
    """

    jobs: tuple[WorkflowJob, ...]
    unreadable: tuple[tuple[Path, str], ...] = ()


def read(root: Path) -> Workflows:
    """Read all jobs of a checkout.

    Raises:
        FactError: there is no workflow file, or none that can be read.
    """
    files = sorted(path for path in (root / _FOLDER).glob("*.y*ml") if path.suffix in (".yml", ".yaml"))
    if not files:
        raise FactError("this checkout has no workflow files", where=root / _FOLDER)
    limits = configs.load(CONFIG)["limits"]
    jobs: list[WorkflowJob] = []
    unreadable: list[tuple[Path, str]] = []
    left = limits["folder"]
    for file in files:
        try:
            text = untrusted.read_text(file, min(left, limits["bytes"]))
            left -= len(text)
            jobs += _jobs(file, text)
        except OSError as error:
            unreadable.append((file, error.strerror or str(error)))
        except RecursionError:
            unreadable.append((file, "nested too deeply"))
        except (yaml.YAMLError, untrusted.UnreadableError) as error:
            unreadable.append((file, str(error)))
    if len(unreadable) == len(files):
        raise FactError("cannot read this workflow file", where=unreadable[0][0], why=unreadable[0][1])
    return Workflows(tuple(jobs), tuple(unreadable))


def find(jobs: tuple[WorkflowJob, ...], text: str) -> WorkflowJob:
    """Find the job of `JOB` or `FILE:JOB`.

    Raises:
        UsageError: there is no such job, or there are several.
    """
    matches = [job for job in jobs if text in (job.key, job.name)]
    if not matches:
        raise UsageError(f"no job {text!r}", hints=did_you_mean(text, {job.key for job in jobs}))
    if len(matches) > 1:
        raise UsageError(f"{text} is a job of several files", hints=[job.name for job in matches])
    return matches[0]


# Values are read from YAML's nodes as they are written: GitHub, too, takes `on` and `3` as texts here. So an
# alias is never expanded, and a number of a million digits is not converted.


def _jobs(file: Path, text: str) -> list[WorkflowJob]:
    limits = configs.load(CONFIG)["limits"]
    content = _table(yaml.compose(text, Loader=yaml.SafeLoader))
    rows = _table(content.get("jobs"))
    jobs, left, characters = [], limits["steps"], limits["bytes"]
    for key, value in rows.items():
        job = _table(value)
        raw = _items(job.get("steps"))
        left -= len(raw)
        characters -= sum(
            len(_text(_table(step).get("run"), limits["script"])) for step in raw[: limits["steps"]]
        )
        # An alias of YAML may name the same list of steps a thousand times.
        if left < 0 or characters < 0:
            raise untrusted.UnreadableError(f"it has more than {limits['steps']:,} steps, or very long ones")
        runner = _runner(job.get("runs-on"))
        variables = {**_variables(content.get("env")), **_variables(job.get("env"))}
        folder = _text(_table(_table(job.get("defaults")).get("run")).get("working-directory"))
        steps = tuple(_step(_table(step), variables, folder) for step in raw)
        why = f"it runs on {runner}" if "macos" in runner or "windows" in runner else ""
        why = f"it calls {_text(job['uses'])}" if "uses" in job else why
        jobs.append(WorkflowJob(file.name, key, runner, steps, why))
    return jobs


def _step(step: Mapping[str, yaml.Node], inherited: Mapping[str, str], folder: str) -> WorkflowStep:
    limits = configs.load(CONFIG)["limits"]
    script, uses = _text(step.get("run"), limits["script"] + 1), _text(step.get("uses"))
    variables = {**inherited, **_variables(step.get("env"))}
    name = _text(step.get("name")) or uses or _first(script)
    condition = _text(step.get("if")).strip()
    if condition.startswith(_BEGIN) and condition.endswith(_END):
        condition = condition[len(_BEGIN) : -len(_END)].strip()
    where = _text(step.get("working-directory")) or folder
    why, note = _why(script, uses, variables, _text(step.get("shell")), where), ""
    rules = configs.load(CONFIG)["conditions"]
    if not why and condition and condition not in rules["true"]:
        if any(passed in condition for passed in rules["passed-over"]):
            note = f"there only if {condition}"
        else:
            why = f"only if {condition}: not known here"
    return WorkflowStep(name, script[: limits["script"]], uses, tuple(variables.items()), where, why, note)


def _why(script: str, uses: str, variables: Mapping[str, str], shell: str, folder: str) -> str:
    return next(filter(None, _reasons(script, uses, variables, shell, folder)), "")


def _reasons(script: str, uses: str, variables: Mapping[str, str], shell: str, folder: str) -> Iterator[str]:
    """Yield the reasons why a step is left out; the first text that is not empty counts."""
    rules = configs.load(CONFIG)
    most = rules["limits"]["script"]
    yield f"a GitHub action: {uses}" if uses else ""
    yield "" if script else "it runs nothing"
    yield f"its script has more than {most:,} characters" if len(script) > most else ""
    yield f"it is for another shell: {shell}" if shell not in ("", "bash", "sh") else ""
    # Comments mention what a script does not do.
    code = re.sub(r"^[ \t]*#.*$", "", script, flags=re.MULTILINE)
    names = " ".join(f"{name}={text}" for name, text in variables.items())
    for row in rules["left-out"]:
        if re.search(row["pattern"], code) and not (
            "unless" in row and re.search(row["unless"], f"{code} {names}")
        ):
            yield str(row["why"])
    if expression := _expression(f"{code} {names}"):
        yield f"GitHub would fill in {expression}"
    yield from (step_script.refused_variable(name, rules) for name in variables)
    yield "" if _inside(folder) else f"it runs in a folder outside the checkout: {folder}"
    yield step_script.refusal(script, rules)


def _inside(folder: str) -> bool:
    path = PurePosixPath(folder)
    return not path.is_absolute() and ".." not in path.parts and untrusted.fits(Path(folder))


def _expression(text: str) -> str:
    """Return the first expression that GitHub would fill in; empty if there is none."""
    _, begin, rest = text.partition(_BEGIN)
    inside, end, _ = rest.partition(_END)
    return (inside.strip() or _BEGIN) if begin and end else ""


def _runner(node: yaml.Node | None) -> str:
    """Return the runner of a job: a label, several, or a group."""
    if isinstance(node, yaml.MappingNode):
        return ", ".join(filter(None, map(_runner, _table(node).values())))
    return ", ".join(filter(None, map(_text, _items(node)))) or _text(node)


def _variables(node: yaml.Node | None) -> dict[str, str]:
    return {name: _text(value) for name, value in _table(node).items()}


def _table(node: yaml.Node | None) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        return {}
    most = configs.load(CONFIG)["limits"]["keys"]
    if len(node.value) > most:
        raise untrusted.UnreadableError(
            f"line {node.start_mark.line + 1}: a table with more than {most} keys"
        )
    return {_text(key): value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _items(node: yaml.Node | None) -> list[yaml.Node]:
    return node.value if isinstance(node, yaml.SequenceNode) else []


def _text(node: yaml.Node | None, most: int = 0) -> str:
    """Return a text as it is written; empty for null and for anything but a scalar."""
    if not isinstance(node, yaml.ScalarNode) or node.tag == "tag:yaml.org,2002:null":
        return ""
    text = str(node.value)[: most or configs.load(CONFIG)["limits"]["text"]]
    text = text.lower() if node.tag == "tag:yaml.org,2002:bool" and not node.style else text
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}").encode("utf-8", "replace").decode("utf-8")


def _first(script: str) -> str:
    return script.strip().partition("\n")[0][: configs.load(CONFIG)["limits"]["text"]]
