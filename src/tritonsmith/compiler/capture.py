"""`kernel.capture`: run a program that launches kernels, and write a list of them; no GPU is needed.

Each process of the program writes a record of its own. The records are merged, and become a kernels file that
compiles the same specializations again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.compiler import call, interpreter, signature, targets, user_program
from tritonsmith.compiler.kernels import kernel_list
from tritonsmith.compiler.signature import parse_value, spell_value
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs, redact, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Write
from tritonsmith.core.plan.steps.base import AttachedRun
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.worker.messages import (
    CaptureRequest,
    CaptureRow,
    ExampleLaunch,
    LaunchesRow,
    SpecializedKernel,
)

_TASK = "kernel.capture"
_FEW = 8  # grids and call sites of one kernel
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
        recording: the merged record of all processes.
        kernels: entries of the list.
        code: the program's exit code, as a shell would report it.
        missing: a module that the program did not find; empty if none.
        failure: the line of the program's last traceback on standard error that names the exception,
            or else the last line there.
        errors: its standard error.
    """

    recording: Recording
    kernels: tuple[Mapping[str, object], ...]
    code: int
    missing: str
    failure: str
    errors: str = ""


@dataclass
class Launches:
    """A kernel specialization and its launches.

    Attributes:
        kernel: the kernel and its specialization.
        count: number of launches.
        grids: each grid, with its number of launches.
        sites: each call site, with its number of launches.
        configs: the configs of its autotuner.
        largest: the largest value of each parameter that is an integer.
        example: the launch with the most elements.
    """

    kernel: SpecializedKernel
    count: int = 0
    grids: Counter[str] = field(default_factory=Counter)
    sites: Counter[str] = field(default_factory=Counter)
    configs: tuple[dict[str, Any], ...] = ()
    largest: dict[str, int] = field(default_factory=dict)
    example: ExampleLaunch = field(default_factory=ExampleLaunch)


@dataclass
class Recording:
    """The merged record of all processes of a program.

    Attributes:
        kernels: the kernels, in the order of their first launch.
        texts: sources that are in no file, such as a notebook cell, by the name that Python gives them.
        notes: messages for the user, in order; the values are unused.
        versions: the versions of Triton, torch and Python.
        processes: number of processes that ran Python.
    """

    kernels: list[Launches] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    processes: int = 0


def prepare(
    argv: Sequence[str],
    target: Target,
    device: str,
    out: Path,
    python: Path | None,
    space: Workspace,
    stand_ins: Sequence[str] = (),
    folders: Sequence[Path] = (),
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
        folders: put before PYTHONPATH.

    Raises:
        UsageError: there is no program, the list's path is a file of other content, or a module's
            name is invalid.
        FactError: the program does not exist.
    """
    for name in stand_ins:
        if not all(part.isidentifier() for part in name.split(".")):
            hints = ["the name that the program imports: --stand-in flash_attn_2_cuda"]
            raise UsageError(f"--stand-in {name!r} is not the name of a module", hints=hints)
    # By the process, so that two captures at the same time keep apart.
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
    # Some packages (flag_gems) run a program of the driver at import to see whose GPU is here, unless these
    # say it.
    vendor = {
        name: text for variables in targets.environment(target).values() for name, text in variables.items()
    }
    command_line = command("kernel.capture", device=device)
    step, site = user_program.watched_step(argv, python, request, work, command_line, vendor, folders)
    before = (
        Remove((work,), space.root, phase="prepare"),
        MakeDir(work / "results", phase="prepare"),
        *site,
    )
    clear = (Remove((work,), space.root, phase="clear"),)
    note = f"between the last two commands, the records in {work / 'results'} are written to {out}"
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


def execute(
    prepared: PreparedCapture,
    space: Workspace,
    *,
    feed: Callable[[bytes], object] | None = None,
    seconds: float = 0.0,
) -> Captured:
    """Run the program with its output on the terminal, and write the list.

    Args:
        prepared: what `prepare` returned.
        space: the workspace.
        feed: gets what the program writes to standard error; None to pass it on.
        seconds: the program is killed after this time; 0 for no limit.

    Raises:
        SmithError: nothing was recorded, or the program did not end in time.
    """
    space.claim()
    log = space.log(_TASK)
    space.run(prepared.before, _TASK, quiet=True, log=log)
    try:
        code = user_program.run_step(prepared.step, space, _TASK, log, feed=feed, seconds=seconds)
        errors = untrusted.text_if_any(prepared.step.errors)
        # The last one: a program may try several imports, and survive the others.
        missing = match[-1] if code and (match := _MISSING.findall(errors)) else ""
        recording = read_records(prepared.work / "results")
        kernels = _write(prepared, recording, space, log) if recording.kernels else ()
        return Captured(recording, tuple(kernels), code, missing, _failure(errors) if code else "", errors)
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
    # A program that fails after its launches has still told what it launches.
    if captured.kernels:
        return
    recording = captured.recording
    by_env = command("kernel.capture", env="wheel") + user_program.EXAMPLE
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
    # Frames and excerpts are indented; the exception comes after them, and its message may have more lines.
    exception = (line for line in lines if not line.startswith((" ", "\t")))
    return (next(exception, "") if _TRACEBACK in errors else (lines or [""])[-1]).strip()


def _provided(module: str) -> Sequence[str]:
    if module == "torch":
        return (
            f"an environment with torch for the CPU: {command('up', env='torch')}, then --env torch",
            "or an interpreter of yours that has it: --python PATH",
        )
    without = f"or capture the rest without it: --stand-in {module}"
    return (*interpreter.provided(module), *(() if module == "triton" else (without,)))


def _write(
    prepared: PreparedCapture, recording: Recording, space: Workspace, log: Path
) -> list[dict[str, object]]:
    out, near = prepared.out, prepared.out.parent
    texts = passing_sources(recording.kernels, recording.texts, [prepared.work])
    folder = near / f"{out.stem}.sources"
    files: dict[str, Path] = {}
    for name, text in texts.items():
        stem = re.sub(r"\W+", "_", Path(name).stem).strip("_") or "cell"
        files[name] = folder / f"{stem}.py"
        # Two cells or two generated files may have one stem.
        if files[name] in list(files.values())[:-1]:
            files[name] = folder / f"{stem}_{len(files)}.py"
        space.run(Plan("sources", (Write(files[name], text, phase="sources"),)), _TASK, quiet=True, log=log)
    # Listed after the sources are written, since an entry has the digest of its file.
    kernels = list_entries(recording, files, prepared.device, near)
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


def read_records(folder: Path) -> Recording:
    """Read the records in a folder, one file per process, and merge them."""
    recording = Recording()
    merged: dict[str, Launches] = {}
    # In the order of their start: a launcher's workers come after it, and so do their kernels in the list.
    for path in sorted(folder.glob("*.jsonl"), key=_start):
        launches: dict[str, LaunchesRow] = {}
        ended = False
        for row in call.recorded(path, CaptureRow):
            ended = ended or row.end
            # A process writes the counts of a kernel again and again, since it may be killed: the last are
            # right.
            if row.launches:
                launches[_key(row.launches.kernel)] = row.launches
            if row.note:
                recording.notes[row.note] = None
            recording.texts |= row.texts
            recording.versions |= row.versions
        recording.processes += 1
        for key, counted in launches.items():
            if counted.count:
                _add(merged.setdefault(key, Launches(counted.kernel)), counted)
        # A killed process has not written the launches since its last row.
        if launches and not ended:
            recording.notes["a process ended before it could write its last counts: they may be low"] = None
    recording.kernels = list(merged.values())
    return recording


def _key(kernel: SpecializedKernel) -> str:
    return json.dumps(asdict(kernel), sort_keys=True)


def _start(path: Path) -> tuple[int, str]:
    _, _, time = path.stem.partition("-")
    return int(time) if time.isdecimal() else 0, path.name


def _add(launches: Launches, row: LaunchesRow) -> None:
    launches.count += row.count
    launches.grids.update(row.grids)
    launches.sites.update(row.sites)
    launches.configs = launches.configs or row.configs
    for name, value in row.largest.items():
        launches.largest[name] = max(value, launches.largest.get(name, value))
    if not launches.example.grid or row.example.elements > launches.example.elements:
        launches.example = row.example


def list_entries(
    recording: Recording, files: Mapping[str, Path], target: str, near: Path
) -> list[dict[str, Any]]:
    """Return the entries of the kernel list; add a note for each kernel that cannot be written.

    Args:
        recording: the recording; notes are added to it.
        files: the present place of a kernel's file, where it differs from the recorded one.
        target: the GPU, as the user spelled it.
        near: the folder of the list: paths in it are written relative to this folder.
    """
    listed: list[dict[str, Any]] = []
    names: Counter[str] = Counter()
    for launches in recording.kernels:
        kernel = launches.kernel
        name = kernel.function
        if not kernel.kernel:
            place = f"{kernel.file}:{kernel.line}"
            recording.notes[f"{name} ({place}) is left out: no name in its file refers to it"] = None
            continue
        if kernel.unwritten:
            recording.notes[f"{name} is left out: {', '.join(kernel.unwritten)} cannot be written"] = None
            continue
        try:
            text = signature_text(kernel)
        except ValueError as error:
            recording.notes[f"{name} is left out: {error}"] = None
            continue
        file = files.get(kernel.file, Path(kernel.file))
        names[name] += 1
        # Relative where it can be: a list that lies beside its kernels may move with them.
        inside = file.is_relative_to(near)
        entry = {
            "name": name if names[name] == 1 else f"{name}-{names[name]}",
            "file": str(file.relative_to(near) if inside else file),
            "kernel": kernel.kernel,
            "signature": text,
            "targets": [target],
            "options": _spelled_options(kernel.options),
            "sha256": hashlib.sha256(untrusted.read_bytes(file)).hexdigest(),
            "count": launches.count,
            "grid": [[int(part) for part in text.split(",")] for text, _ in launches.grids.most_common(_FEW)],
            "where": [place for place, _ in launches.sites.most_common(_FEW)],
        }
        # With its import name, the file's relative imports can be followed; a copy has left its package.
        if kernel.module not in ("", "__main__") and kernel.file not in files:
            entry["module"] = kernel.module
        if largest := _fitting(launches.largest):
            entry["largest"] = largest
        if launches.example.grid:
            example = launches.example
            entry["launch"] = {"grid": list(example.grid), "arguments": _fitting(example.arguments)}
        for large in launches.largest.keys() - largest.keys():
            recording.notes[
                f"{large} of {entry['name']} has no value in the list: one exceeds TOML's range"
            ] = None
        if launches.configs:
            entry["configs"] = [_spelled_options(config) for config in launches.configs]
        listed.append(entry)
    return listed


def _fitting(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table without whole numbers that TOML cannot hold, such as a seed of type u64."""
    fitting: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            fitting[name] = _fitting(value)
        elif all(
            type(part) is not int or untrusted.fits_64_bits(part)
            for part in (value if isinstance(value, (list, tuple)) else (value,))
        ):
            fitting[name] = value
    return fitting


def _spelled_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values for TOML: None, dicts and strings become texts that `parse_value` reads."""
    return {
        name: signature.spell_value(value) if value is None or isinstance(value, (dict, str)) else value
        for name, value in options.items()
    }


def passing_sources(
    kernels: Iterable[Launches], texts: Mapping[str, str], passing: Iterable[Path]
) -> dict[str, str]:
    """Return the sources that will be gone after the run: generated code, and code that is in no file.

    Args:
        kernels: the kernels.
        texts: sources that are in no file, by name.
        passing: folders that are deleted after the run.

    Returns:
        Recorded file name to text.
    """
    # torch.compile writes its kernels into a cache, which for this run lies in the scratch folder.
    gone = [folder.resolve() for folder in passing]
    sources: dict[str, str] = {}
    for launches in kernels:
        name = launches.kernel.file
        if name in texts:
            sources[name] = texts[name]
        elif any(Path(name).resolve().is_relative_to(folder) for folder in gone):
            sources[name] = untrusted.read_text(Path(name))
    return sources


def signature_text(kernel: SpecializedKernel) -> str:
    """Return a kernel's signature: entries by name, in the order of its parameters.

    Raises:
        ValueError: a signature cannot express a constant.
    """
    return ",".join(
        f"{row.name}={_entry(kernel, row.name, kernel.signature[row.name], row.constexpr)}"
        for row in kernel.parameters
    )


def _entry(kernel: SpecializedKernel, path: str, kind: Any, constexpr: bool) -> str:
    if path in kernel.constexprs:
        value = kernel.constexprs[path]
        # Triton makes a constant of each integer argument that is 1; written as `i32:1` it stays an argument,
        # so that the list fits the launch. A `tl.constexpr` that is 1 is a constant.
        specialised = type(value) is int and value == 1 and not constexpr
        return f"{'i32' if kind == 'constexpr' else kind}:1" if specialised else spell_constant(value)
    if isinstance(kind, list):
        parts = [_entry(kernel, f"{path}.{number}", part, constexpr) for number, part in enumerate(kind)]
        return f"({','.join(parts)}{',' if len(parts) == 1 else ''})"
    hint = kernel.hints.get(path)
    return f"{kind}{f':{hint}' if hint else ''}{':r32' if path in kernel.ranges else ''}"


def spell_constant(value: Any) -> str:
    """Spell a constant; strings are quoted, so that none is taken for a type or a number.

    Raises:
        ValueError: a signature cannot express the value.
    """
    if isinstance(value, list):
        text = f"({','.join(map(spell_constant, value))}{',' if len(value) == 1 else ''})"
    else:
        text = spell_value(value) if isinstance(value, dict) else repr(value)
    # A signature's parts are types and constants: a tuple of a dtype and a float, for one, reads as neither.
    if parse_value(text) != (expected := _tuples(value)):
        raise ValueError(f"{expected!r} cannot be written in a signature")
    return text


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
