"""Change a stage of a kernel by hand, and show the effect on the stages after it: `kernel.override`.

The same command runs twice. Triton's own variables do the work: in the first run TRITON_KERNEL_DUMP writes
the stages, and in the second TRITON_KERNEL_OVERRIDE replaces the compiler's results by files of the override
folder.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tritonsmith.compiler import report, run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError, did_you_mean
from tritonsmith.core.plan import MakeDir, Plan, Remove, files, programs
from tritonsmith.facts import installed_tritons, variables
from tritonsmith.ir.normalize import diff
from tritonsmith.ir.normalize.diff import Diff

Launch = Callable[[Mapping[str, str]], None]  # runs the kernel's compile under this change of the environment

_DUMP = "TRITON_DUMP_DIR"


@dataclass(frozen=True)
class Dumped:
    """A stage that Triton wrote into its dump folder.

    Attributes:
        path: `DUMP/<hash of the source>/<kernel>.<stage>`.
    """

    path: Path

    @property
    def key(self) -> str:
        """The hash of the kernel's source: a folder of the dump."""
        return self.path.parent.name

    @property
    def kernel(self) -> str:
        """The name of the function."""
        return self.path.stem

    @property
    def stage(self) -> str:
        """The stage: `ttgir`, `ptx` ..."""
        return self.path.suffix[1:]


@dataclass(frozen=True)
class OverrideRun:
    """A pair of runs: their folder, the version of Triton, and a function that runs the kernel's compile."""

    out: Path
    version: str
    launch: Launch

    def environment(self, dump: str, *, override: bool) -> dict[str, str]:
        """Return the variables of one of the two runs, which writes into a folder below `out`."""
        # A kernel out of a cache is neither dumped nor replaced, and a cache manager of the user's
        # (TRITON_CACHE_MANAGER) need not use the folder below.
        change = {"TRITON_KERNEL_DUMP": "1", "TRITON_ALWAYS_COMPILE": "1"}
        # One cache per run: Triton caches a replaced stage under the usual key.
        change["TRITON_CACHE_DIR"] = str(self.out / "cache" / dump)
        if override:
            change["TRITON_KERNEL_OVERRIDE"] = "1"
        if variables.table()[_DUMP].exists(self.version):
            change |= {_DUMP: str(self.out / dump), "TRITON_OVERRIDE_DIR": str(self.out / "override")}
        else:
            # Before these variables the folders were fixed, below ~/.triton: so the home is moved.
            change["HOME"] = str(self.out / "home" / dump)
        return change

    def folder(self, dump: str, kind: str) -> Path:
        """Return the folder of this version's dumps of a run (`dump`), or of its overrides (`override`)."""
        if variables.table()[_DUMP].exists(self.version):
            return self.out / (dump if kind == "dump" else "override")
        return self.out / "home" / dump / ".triton" / kind


def of_kernel(request: CompileRequest, where: Interpreter, out: Path | None) -> OverrideRun:
    """Return the two compiles of a kernel, before and after the change.

    Args:
        request: the compile request.
        where: the interpreter that compiles.
        out: an empty folder; None for one in the workspace.

    Raises:
        UsageError: the request has several targets, or the folder is not empty.
    """
    # A stage belongs to one target: there would be no telling whose was changed.
    if len(request.targets) > 1:
        raise UsageError("a stage is changed for one target", hints=["--target h100"])
    triton = installed_tritons.of_python(where.python)
    folder = prepare_folder(out, where.space)
    launch = partial(_compile, request, where, folder / "stages")
    return OverrideRun(folder, triton.version if triton else "", launch)


def of_command(program: Sequence[str], python: Path | None, out: Path | None) -> OverrideRun:
    """Return the two runs of a command, before and after the change.

    Args:
        program: the command.
        python: the interpreter whose Triton compiles; None for the one on PATH.
        out: an empty folder; None for one in the workspace.

    Raises:
        UsageError: the folder is not empty.
    """
    triton = installed_tritons.of_python(python) if python else installed_tritons.here(os.environ)
    folder = prepare_folder(out, workspace.default())
    return OverrideRun(folder, triton.version if triton else "", partial(_run, program))


def _compile(request: CompileRequest, where: Interpreter, out: Path, change: Mapping[str, str]) -> None:
    prepared_compile = run.prepare(request, where, out).under(change)
    manifest = run.execute(prepared_compile, where, silent=True).manifest
    if why := "\n".join(report.failures(manifest)):
        hints = ["the changed file is kept", f"{command('kernel.show', out)} shows the stages"]
        raise SmithError("Triton did not compile it", where=out, why=why, hints=hints)


def _run(program: Sequence[str], change: Mapping[str, str]) -> None:
    code = programs.run_attached(program, change=change)
    if code:
        raise SmithError(f"{program[0]} ended with exit code {code}")


def prepare_folder(out: Path | None, space: Workspace) -> Path:
    """Return an empty folder: the user's, or one of the workspace, which is emptied.

    Raises:
        UsageError: the user's folder is not empty.
    """
    if out is None:
        folder = space.root / "kernels" / "override"
        steps = (Remove((folder,), space.root, phase="override"), MakeDir(folder, phase="override"))
        space.claim()
        space.run(Plan("a folder for kernel.override", steps), "kernel.override", quiet=True)
        return folder
    # Stages of an earlier run would be taken for this one's, and a folder of the user's is not emptied.
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError("--out is not an empty folder", hints=[f"choose another folder than {out}"])
    files.make_folder(out)
    return out


def run_unchanged(bench: OverrideRun) -> tuple[Dumped, ...]:
    """Run the command unchanged.

    Returns:
        Every stage that was dumped.

    Raises:
        SmithError: the command failed.
        FactError: no kernel was compiled.
    """
    bench.launch(bench.environment("before", override=False))
    stages = tuple(_dumped(bench.folder("before", "dump")))
    if not stages:
        hints = [
            "check that the command compiles a kernel",
            "invoke passes.dump --print-env stages -- COMMAND shows what the command writes",
        ]
        raise FactError("no stage was dumped", where=bench.folder("before", "dump"), hints=hints)
    return stages


def choose(dumped: Sequence[Dumped], kernel: str, stage: str) -> Dumped:
    """Select the stage to change, among those that the first run dumped.

    Args:
        dumped: the stages.
        kernel: a name, or the beginning of a hash, as one function may be compiled for several types;
            empty for the only kernel.
        stage: the stage's name.

    Raises:
        UsageError: there is none, it is a binary, or several kernels have it and none is named.
    """
    kernels = tuple(dict.fromkeys(entry.kernel for entry in dumped))
    # A name wins over a hash: a kernel may be called "add", which is a hash's beginning, too.
    here = [entry for entry in dumped if kernel in ("", entry.kernel)]
    here = here or [entry for entry in dumped if entry.key.startswith(kernel)]
    if not here:
        raise UsageError(f"no kernel {kernel!r} was compiled", hints=did_you_mean(kernel, kernels))
    fitting = [entry for entry in here if entry.stage == stage]
    if not fitting:
        known = tuple(dict.fromkeys(entry.stage for entry in here))
        raise UsageError(f"no stage {stage!r}", hints=did_you_mean(stage, known))
    if not _is_text(fitting[0].path):
        texts = ", ".join(dict.fromkeys(entry.stage for entry in here if _is_text(entry.path)))
        raise UsageError(f"{stage} is a binary stage and cannot be edited", hints=[f"choose one of {texts}"])
    if len(fitting) > 1:
        names = ", ".join(dict.fromkeys(f"{entry.kernel} ({entry.key[:8]})" for entry in fitting))
        raise UsageError(
            f"{len(fitting)} kernels have this stage: {names}",
            hints=[f"--name {fitting[0].kernel}, or the start of its hash: --name {fitting[0].key[:8]}"],
        )
    return fitting[0]


def copy_for_editing(bench: OverrideRun, chosen: Dumped) -> Path:
    """Copy a stage to the place from which the next run reads it."""
    place = bench.folder("after", "override") / chosen.key / chosen.path.name
    files.copy(chosen.path, place)
    return place


def editor(environ: Mapping[str, str], *, terminal: bool = True) -> tuple[str, ...]:
    """Return the user's editor, as words.

    Args:
        environ: the environment, whose VISUAL or EDITOR names it.
        terminal: there is a terminal for a default editor.

    Raises:
        FactError: no editor is set or installed.
        UsageError: it is not a command, or none is set and there is no terminal.
    """
    variable = "VISUAL" if environ.get("VISUAL") else "EDITOR"
    text = environ.get(variable, "")
    try:
        # Words, not a program's name: `EDITOR="code --wait"` is common, and git reads it in this way, too.
        named = tuple(shlex.split(text))
    except ValueError as error:
        hints = [f"{variable}=nano", "--edited FILE"]
        raise UsageError(f"{variable} cannot be {text!r}", why=str(error), hints=hints) from None
    if not named and not terminal:
        raise UsageError(
            "there is no terminal to open an editor in, and EDITOR is not set",
            hints=[
                "--edited FILE uses a changed file",
                "EDITOR='sed -i s/a/b/' edits by a command",
            ],
        )
    words = named or next(((name,) for name in ("vi", "nano") if process.which(name)), ())
    if not words:
        raise FactError("no editor found", hints=["EDITOR=nano invoke kernel.override ...", "--edited FILE"])
    return words


def open_at(path: Path, line: int | None) -> int:
    """Open a file in the editor, at a line if one is known, and return the editor's exit code.

    Raises:
        FactError: no editor is set or installed.
        UsageError: VISUAL or EDITOR is not a command.
    """
    # `+LINE` is the form that vi, emacs and nano share.
    return programs.run_attached((*editor(os.environ), *([f"+{line}"] if line else []), str(path)))


def edit(path: Path, words: Sequence[str]) -> None:
    """Open a file in the editor.

    Raises:
        SmithError: the editor failed, or removed the file.
    """
    code = programs.run_attached((*words, str(path)))
    if code:
        raise SmithError(f"{words[0]} failed with exit code {code}: nothing was compiled", where=path)
    if not path.is_file():
        raise SmithError(f"{words[0]} removed the file: nothing was compiled", where=path)


def run_changed(bench: OverrideRun, chosen: Dumped, place: Path) -> tuple[Diff, ...]:
    """Run the command with the changed stage.

    Returns:
        The difference of each stage, the edited one first; without locations and value numbers.

    Raises:
        SmithError: nothing was changed, or the command failed: Triton's message says why.
    """
    # Otherwise the second run would end in a page of empty diffs, minutes later.
    if place.read_bytes() == chosen.path.read_bytes():
        hints = ["change the file, or give another one: --edited FILE"]
        raise SmithError("the file was not changed", where=place, hints=hints)
    bench.launch(bench.environment("after", override=True))
    after = {
        entry.stage: entry for entry in _dumped(bench.folder("after", "dump")) if entry.key == chosen.key
    }
    edited = diff.of(_text(chosen.path), _text(place), chosen.stage)
    order = configs.load("kernels")["stages"]["compiler"]
    # The stages before the changed one are compiled as in the first run, so only those after it can differ.
    following = order[order.index(chosen.stage) + 1 :] if chosen.stage in order else []
    differences = [edited]
    for stage in following:
        before = chosen.path.with_suffix(f".{stage}")
        if stage in after and before.is_file() and _is_text(before):
            differences.append(diff.of(_text(before), _text(after[stage].path), stage))
    return tuple(differences)


def _dumped(folder: Path) -> Iterator[Dumped]:
    stages = configs.load("kernels")["stages"]["compiler"]
    for path in sorted(folder.glob("*/*")):
        if path.is_file() and path.suffix[1:] in stages:
            yield Dumped(path)


def _is_text(path: Path) -> bool:
    # The suffix does not tell: a plugin may add stages of either kind.
    with path.open("rb") as file:
        return b"\0" not in file.read(4096)


def _text(path: Path) -> str:
    return untrusted.read_text(path, untrusted.OURS)
