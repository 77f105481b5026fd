"""`kernel.capture`: run a program that launches kernels, and list them; no GPU is needed."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith import configs, untrusted, worker
from tritonsmith.command_line import command
from tritonsmith.envs import settings
from tritonsmith.envs.workspace import Workspace
from tritonsmith.errors import FactError, SmithError, UsageError
from tritonsmith.kernels.capture import recorded
from tritonsmith.kernels.compile import describe, gpu_models, kernel_list_text
from tritonsmith.kernels.compile.targets import Target
from tritonsmith.plan import MakeDir, Plan, Remove, Write, process
from tritonsmith.plan.steps.base import CommandFailedError, Tap
from tritonsmith.plan.steps.run_attached import AttachedRun
from tritonsmith.ui import redact

_TASK = "kernel.capture"
_PROGRAM = " -- python script.py"
_MISSING = re.compile(r"^(?:E +)?ModuleNotFoundError: No module named '(\w+)", re.MULTILINE)
# Called by Python itself, in every process. The user's own `sitecustomize` comes after it.
_SITE = """import os
import runpy
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [part for part in sys.path if os.path.abspath(part or ".") != here]
runpy.run_path({worker!r})["run"]("capture", {request!r})
del sys.modules["sitecustomize"]
try:
    import sitecustomize
except ImportError:
    sys.modules["sitecustomize"] = type(sys)("sitecustomize")
"""


@dataclass(frozen=True)
class PreparedCapture:
    """A capture that is ready to run.

    Attributes:
        before: steps that make the scratch folder.
        step: the program.
        after: steps that clear up.
        work: the scratch folder.
        out: the list to write.
        target: what the program is told of.
        device: how that was asked for.
        python: the interpreter, if an environment or a flag names one.
    """

    before: Plan
    step: AttachedRun
    after: Plan
    work: Path
    out: Path
    target: Target
    device: str
    python: Path | None

    @property
    def plan(self) -> Plan:
        """All of it."""
        return self.before + Plan(f"capture {self.out.stem}", (self.step,)) + self.after


@dataclass(frozen=True)
class Captured:
    """What was recorded.

    Attributes:
        recording: of all processes.
        kernels: entries of the list.
        code: the program's exit code, as a shell would have it.
        missing: a module that the program did not find.
    """

    recording: recorded.Recording
    kernels: tuple[Mapping[str, object], ...]
    code: int
    missing: str


def interpreter(env: str, python: Path | None, space: Workspace) -> Path | None:
    """The interpreter that flags name; None if they name none.

    Raises:
        FactError: it is not there.
    """
    if python is None and not env:
        return None
    path = python or space.env(settings.load(env).name).python
    if not (path.is_file() and os.access(path, os.X_OK)):
        hints = [f"{command('up', env=env)} creates it"] if env else ["give the path of an interpreter"]
        raise FactError("no Python interpreter", where=path, hints=hints)
    return path


def prepare(
    argv: Sequence[str], target: Target, device: str, out: Path, python: Path | None, space: Workspace
) -> PreparedCapture:
    """Make the plan.

    Args:
        argv: the program; its flags alone for Python itself: `-m pytest`.
        target: what the program is told of.
        device: how that was asked for.
        out: the list to write.
        python: stands for `python`, and its folder comes before PATH; None for what PATH has.
        space: the workspace.

    Raises:
        UsageError: there is no program, or the list is somebody else's file.
        FactError: there is no such program.
    """
    if not argv:
        example = command("kernel.capture", device=device) + _PROGRAM
        raise UsageError("no program is given", hints=[f"give it after the flags: {example}"])
    words = [*(["python"] if argv[0].startswith("-") or argv[0].endswith(".py") else []), *argv]
    work = space.root / "kernels" / ".capture" / str(os.getpid())
    folders = [str(python.parent)] if python else []
    path = os.pathsep.join([*folders, os.environ.get("PATH", os.defpath)])
    if python and words[0] in ("python", "python3"):
        words[0] = str(python)
    elif (found := process.which(words[0], path)) is None:
        hints = ["give a path, or a name on PATH: -- python script.py"]
        raise FactError(f"no program {words[0]}", hints=hints)
    else:
        words[0] = found
    table = configs.load("capture")
    request = {
        "schema": 1,
        "target": [target.backend, target.arch, target.warp_size],
        "gpus": gpu_models.all_facts([target]),
        "results": str(work / "results"),
        **table["torch"],
    }
    request_file = work / "request.json"
    site = _SITE.format(worker=str(worker.FOLDER / "__main__.py"), request=str(request_file))
    paths = [str(work / "site"), *filter(None, [os.environ.get("PYTHONPATH", "")])]
    environ: dict[str, str | None] = {
        **dict.fromkeys(configs.load("kernels")["variables"]["unset"]),
        **{name: str(work / folder) for name, folder in table["caches"].items()},
        "PYTHONPATH": os.pathsep.join(paths),
        **({"PATH": path, "VIRTUAL_ENV": str(python.parents[1])} if python else {}),
    }
    step = AttachedRun(tuple(words), tuple(environ.items()), work / "stderr", phase="run")
    before = (
        Remove((work,), space.root, phase="prepare"),
        MakeDir(work / "results", phase="prepare"),
        Write(request_file, json.dumps(request, indent=2) + "\n", phase="prepare"),
        Write(work / "site" / "sitecustomize.py", site, phase="prepare"),
    )
    clear = (Remove((work,), space.root, phase="clear"),)
    note = f"between the last two commands, what {work / 'results'} has is written to {out}"
    return PreparedCapture(
        Plan(f"capture {out.stem}", before),
        step,
        Plan("clear up", clear, (note,)),
        work,
        out,
        target,
        device,
        python,
    )


def execute(prepared: PreparedCapture, space: Workspace) -> Captured:
    """Run the program with its output on the terminal, and write the list.

    Raises:
        SmithError: nothing was recorded.
    """
    space.claim()
    log = space.log(_TASK)
    space.run(prepared.before, _TASK, quiet=True, log=log)
    try:
        code = 0
        try:
            tap = Tap(_show, lambda: None)
            space.run(Plan("run", (prepared.step,)), _TASK, quiet=True, log=log, tap=tap)
        except CommandFailedError as failure:
            code = failure.code if failure.code >= 0 else 128 - failure.code
        said = untrusted.text_if_any(prepared.step.errors)
        missing = match[-1] if code and (match := _MISSING.findall(said)) else ""
        found = recorded.read(prepared.work / "results")
        kernels = _write(prepared, found, space, log) if found.kernels else ()
        return Captured(found, tuple(kernels), code, missing)
    finally:
        space.run(prepared.after, _TASK, quiet=True, log=log)


def check(made: Captured, prepared: PreparedCapture) -> None:
    """Check that something was recorded.

    Raises:
        SmithError: nothing was: the error says what to do.
    """
    if made.missing:
        python = prepared.python or Path(prepared.step.argv[0])
        raise SmithError(
            f"the program needs {made.missing}, which its Python does not have",
            where=python,
            hints=_provided(made.missing),
        )
    if made.kernels:
        return
    found = made.recording
    by_env = command("kernel.capture", env="wheel")
    if not found.processes:
        what = "no Python of this program could be watched"
        hints: tuple[str, ...] = (
            "it may ignore PYTHONPATH: -I, -E, a frozen program",
            f"name it: {by_env}{_PROGRAM}",
        )
    elif "triton" not in found.versions:
        what = "the program did not import Triton"
        hints = ("check that its interpreter has Triton", f"or use an environment: {by_env}{_PROGRAM}")
    else:
        what = "the program launched no kernel that can be listed"
        hints = ("check that it launches Triton kernels, on the device `cuda`",)
    raise SmithError(what, why="\n".join(found.notes) or None, hints=hints)


def _provided(module: str) -> Sequence[str]:
    if module == "torch":
        return (
            'in an env file: [python] torch = "cpu"; then `up` and --env of that environment',
            "or an interpreter of yours that has it: --python PATH",
        )
    return describe.provided(module)


def _write(
    prepared: PreparedCapture, found: recorded.Recording, space: Workspace, log: Path
) -> list[dict[str, object]]:
    out, near = prepared.out, prepared.out.parent
    texts = recorded.moved(found.kernels, found.texts, [prepared.work])
    folder = near / f"{out.stem}.sources"
    files: dict[str, Path] = {}
    for name, text in texts.items():
        stem = re.sub(r"\W+", "_", Path(name).stem).strip("_") or "cell"
        files[name] = folder / f"{stem}.py"
        if files[name] in list(files.values())[:-1]:
            files[name] = folder / f"{stem}_{len(files)}.py"
        space.run(Plan("sources", (Write(files[name], text, phase="sources"),)), _TASK, quiet=True, log=log)
    kernels = recorded.entries(found, files, prepared.device, near)
    captured = {
        "command": redact.hidden(shlex.join(prepared.step.argv)),
        **found.versions,
        "device": prepared.device,
        "target": str(prepared.target),
        "notes": list(found.notes),
    }
    text = kernel_list_text.render(kernels, captured=captured)
    space.run(Plan("list", (Write(out, text, phase="list"),)), _TASK, quiet=True, log=log)
    return kernels


def _show(data: bytes) -> None:
    sys.stderr.buffer.write(data)
    sys.stderr.buffer.flush()
