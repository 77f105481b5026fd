"""`kernel.capture`: run a program that launches kernels, and write a list of them; no GPU is needed."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.compiler import describe, targets, watched_program
from tritonsmith.compiler.capture import recorded
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs, redact, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Write
from tritonsmith.core.plan.steps.run import AttachedRun
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.worker.messages import CaptureRequest

_TASK = "kernel.capture"
_MISSING = re.compile(r"^(?:E +)?ModuleNotFoundError: No module named '(\w+)", re.MULTILINE)
_TRACEBACK = "Traceback (most recent call last):\n"


@dataclass(frozen=True)
class PreparedCapture:
    """A capture that is ready to run.

    Attributes:
        before: steps that make the scratch folder.
        step: the program.
        after: steps that clear up.
        work: the scratch folder.
        out: the list to write.
        target: the GPU that the program sees.
        device: the GPU, as the user spelled it.
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
        """The whole plan, in order."""
        return self.before + Plan(f"capture {self.out.stem}", (self.step,)) + self.after


@dataclass(frozen=True)
class Captured:
    """The result of a capture.

    Attributes:
        recording: of all processes.
        kernels: entries of the list.
        code: the program's exit code, as a shell would report it.
        missing: a module that the program did not find; empty if none.
        failure: the line of the program's last traceback on standard error that names the exception,
            or else the last line there.
    """

    recording: recorded.Recording
    kernels: tuple[Mapping[str, object], ...]
    code: int
    missing: str
    failure: str


def prepare(
    argv: Sequence[str],
    target: Target,
    device: str,
    out: Path,
    python: Path | None,
    space: Workspace,
    stand_ins: Sequence[str] = (),
) -> PreparedCapture:
    """Make the plan.

    Args:
        argv: the program; flags alone are flags of Python itself, as in `-m pytest`.
        target: the GPU that the program sees.
        device: the GPU, as the user spelled it.
        out: the list to write.
        python: replaces `python`, and its folder is put before PATH; None to use PATH as it is.
        space: the workspace.
        stand_ins: modules that the program imports and its Python may lack.

    Raises:
        UsageError: there is no program, the list's path is a file of other content, or a module's
            name is invalid.
        FactError: the program does not exist.
    """
    for name in stand_ins:
        if not all(part.isidentifier() for part in name.split(".")):
            hints = ["the name that the program imports: --stand-in flash_attn_2_cuda"]
            raise UsageError(f"--stand-in {name!r} is not the name of a module", hints=hints)
    work = space.root / "kernels" / ".capture" / str(os.getpid())
    facts = configs.load("capture")
    request = CaptureRequest(
        target=(target.backend, target.arch, target.warp_size),
        gpus=targets.all_gpu_facts([target]),
        results=str(work / "results"),
        stand_ins=tuple(stand_ins),
        canaries=str(work.with_name("canaries")),
        **facts["torch"],
    )
    asked_by = command("kernel.capture", device=device)
    vendor = {
        name: text for variables in targets.environment(target).values() for name, text in variables.items()
    }
    step, site = watched_program.prepare(argv, python, request, work, asked_by, vendor)
    before = (
        Remove((work,), space.root, phase="prepare"),
        MakeDir(work / "results", phase="prepare"),
        *site,
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
        code = watched_program.run(prepared.step, space, _TASK, log)
        errors = untrusted.text_if_any(prepared.step.errors)
        missing = match[-1] if code and (match := _MISSING.findall(errors)) else ""
        recording = recorded.read(prepared.work / "results")
        kernels = _write(prepared, recording, space, log) if recording.kernels else ()
        return Captured(recording, tuple(kernels), code, missing, _failure(errors) if code else "")
    finally:
        space.run(prepared.after, _TASK, quiet=True, log=log)


def check(captured: Captured, prepared: PreparedCapture) -> None:
    """Check that something was recorded.

    Raises:
        SmithError: nothing was recorded; its hints say what to do.
    """
    if captured.missing:
        python = prepared.python or Path(prepared.step.argv[0])
        raise SmithError(
            f"the program needs {captured.missing}, which its Python does not have",
            where=python,
            hints=_provided(captured.missing),
        )
    if captured.kernels:
        return
    recording = captured.recording
    by_env = command("kernel.capture", env="wheel") + watched_program.EXAMPLE
    if not recording.processes:
        what = "no Python process of this program could be watched"
        hints: tuple[str, ...] = (
            "it may ignore PYTHONPATH: -I, -E, a frozen program",
            f"name it: {by_env}",
        )
    elif captured.code:
        what = (
            f"the program ended with exit code {captured.code} before it launched a kernel that can be listed"
        )
        what = f"{what}: {captured.failure}" if captured.failure else what
        hints = ("docs/capture.md lists the differences from a GPU",)
    elif "triton" not in recording.versions:
        what = "the program did not import Triton"
        hints = (
            "check that its interpreter has Triton",
            f"or use an environment: {by_env}",
        )
    else:
        what = "the program launched no kernel that can be listed"
        hints = ("check that it launches Triton kernels, on the device `cuda`",)
    raise SmithError(what, why="\n".join(recording.notes) or None, hints=hints)


def _failure(errors: str) -> str:
    """Return the line of a traceback that names the exception, or else the last line."""
    _, _, traceback = errors.rpartition(_TRACEBACK)
    lines = [line for line in traceback.splitlines() if line.strip()]
    named = (line for line in lines if not line.startswith((" ", "\t")))
    return (next(named, "") if _TRACEBACK in errors else (lines or [""])[-1]).strip()


def _provided(module: str) -> Sequence[str]:
    if module == "torch":
        return (
            f"an environment with torch for the CPU: {command('up', env='torch')}, then --env torch",
            "or an interpreter of yours that has it: --python PATH",
        )
    without = f"or capture the rest without it: --stand-in {module}"
    return (*describe.provided(module), *(() if module == "triton" else (without,)))


def _write(
    prepared: PreparedCapture, recording: recorded.Recording, space: Workspace, log: Path
) -> list[dict[str, object]]:
    out, near = prepared.out, prepared.out.parent
    texts = recorded.moved(recording.kernels, recording.texts, [prepared.work])
    folder = near / f"{out.stem}.sources"
    files: dict[str, Path] = {}
    for name, text in texts.items():
        stem = re.sub(r"\W+", "_", Path(name).stem).strip("_") or "cell"
        files[name] = folder / f"{stem}.py"
        if files[name] in list(files.values())[:-1]:
            files[name] = folder / f"{stem}_{len(files)}.py"
        space.run(Plan("sources", (Write(files[name], text, phase="sources"),)), _TASK, quiet=True, log=log)
    kernels = recorded.entries(recording, files, prepared.device, near)
    captured = {
        "command": redact.hidden(shlex.join(prepared.step.argv)),
        **recording.versions,
        "device": prepared.device,
        "target": str(prepared.target),
        "notes": list(recording.notes),
    }
    text = kernel_list.render_kernels(kernels, captured=captured)
    space.run(Plan("list", (Write(out, text, phase="list"),)), _TASK, quiet=True, log=log)
    return kernels


def launch_table(kernels: Sequence[Mapping[str, Any]], title: str) -> Grid:
    """Return a table with one row per kernel."""
    rows = [
        (
            kernel["name"],
            str(kernel["count"]),
            str(len(kernel.get("configs", ())) or ""),
            "x".join(map(str, kernel["grid"][0])) + _more(kernel["grid"]),
            kernel["where"][0] + _more(kernel["where"]),
        )
        for kernel in kernels
    ]
    return tables.plain(
        title, ("kernel", "launches", "configs", "grid", "where"), rows, right=["launches", "configs"]
    )


def _more(parts: Sequence[object]) -> str:
    return f" +{len(parts) - 1}" if len(parts) > 1 else ""


def as_json(
    kernels: Sequence[Mapping[str, Any]], notes: Sequence[str], out: Path, code: int
) -> dict[str, Any]:
    """Return the result as JSON data."""
    return {"schema": 1, "file": str(out), "kernels": list(kernels), "notes": list(notes), "exit": code}
