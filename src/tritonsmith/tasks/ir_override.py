"""`ir-override`: change a stage of a kernel by hand, and see what becomes of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tritonsmith.errors import SmithError, UsageError
from tritonsmith.tasks.options import ASKING, REPEATED
from tritonsmith.tasks.task import Words, command_line, given, task

if TYPE_CHECKING:
    from pathlib import Path

    from tritonsmith.kernels.compile.request import CompileRequest
    from tritonsmith.kernels.compile.run import Toolchain
    from tritonsmith.kernels.normalize.diff import Diff
    from tritonsmith.passes.override import OverrideRun

_KEPT = {name: text for name, text in ASKING.items() if name not in ("sweep", "jobs")}


@task(
    tables=True,
    name="ir-override",
    klass=Words,
    positional=["kernel"],
    iterable=[name for name in REPEATED if name in _KEPT],
    help={
        **_KEPT,
        "kernel": "FILE or FILE:KERNEL; a command after -- instead",
        "name": "which kernel, if the command compiles several; or how its hash begins",
        "stage": "to change: ttir, ttgir, llir, ptx, amdgcn",
        "edited": "take this file instead of opening $EDITOR",
        "diff": "print what changed, not only how much",
        "out": "new folder for all of it (default: one in the workspace, made anew)",
    },
)
def ir_override(
    context: Any,
    kernel: str = "",
    signature: str = "",
    target: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    option: Iterable[str] | None = None,
    name: str = "",
    stage: str = "ttgir",
    edited: str = "",
    diff: bool = False,
    out: str = "",
    env: str = "wheel",
    python: str = "",
    timeout: str = "",
) -> None:
    """Edit a stage of a kernel, compile on from it, and show what changed."""
    import os
    import shutil
    from pathlib import Path

    from tritonsmith.passes import override
    from tritonsmith.tasks import options

    _, command = command_line()
    if bool(command) == bool(kernel):
        hints = [
            "invoke ir-override matmul.py --signature ... --stage ttgir",
            "invoke ir-override -- python script.py",
        ]
        raise UsageError("name a kernel's file, or a command after --", hints=hints)
    (wanted,) = options.stages([stage])
    source = Path(edited).expanduser().absolute() if given(edited) else None
    if source and not source.is_file():
        raise UsageError(f"--edited: there is no file {source}")
    editor = () if source else override.editor(os.environ)
    folder = Path(out).expanduser().absolute() if given(out) else None
    if command:
        bench = _of_command(command, python, folder)
    else:
        asked = options.parse_request(
            kernel,
            signature,
            list(target or ()) or [options.target_of(wanted)],
            option,
            (),
            num_warps=num_warps,
            num_stages=num_stages,
            env=env,
            python=python,
        )
        where = options.toolchain(env, python, "1", timeout, asked)
        bench = _of_kernel(asked, where, folder)
    chosen = override.choose(override.first(bench), name, wanted)
    place = override.put(bench, chosen)
    if source:
        shutil.copyfile(source, place)
    else:
        override.edit(place, editor)
    _print(override.second(bench, chosen, place), bench.out, whole=diff)


def _of_kernel(asked: CompileRequest, where: Toolchain, out: Path | None) -> OverrideRun:
    from tritonsmith.facts import installed_tritons
    from tritonsmith.passes import override

    if len(asked.targets) > 1:
        raise UsageError("a stage is changed for one target", hints=["--target h100"])
    found = installed_tritons.of_python(where.python)
    folder = override.prepared(out, where.space)
    launch = partial(_compile, asked, where, folder / "stages")
    return override.OverrideRun(folder, found.version if found else "", launch)


def _of_command(command: list[str], python: str, out: Path | None) -> OverrideRun:
    import os
    from pathlib import Path

    from tritonsmith.envs import workspace
    from tritonsmith.facts import installed_tritons
    from tritonsmith.passes import override

    path = Path(python).expanduser().absolute() if python else None
    found = installed_tritons.of_python(path) if path else installed_tritons.here(os.environ)
    folder = override.prepared(out, workspace.default())
    return override.OverrideRun(folder, found.version if found else "", partial(_run, command))


def _compile(asked: CompileRequest, where: Toolchain, out: Path, change: Mapping[str, str]) -> None:
    import shlex

    from tritonsmith.kernels.compile import report, run

    prepared = run.prepare(asked, where, out).under(change)
    made = run.execute(prepared, where, silent=True).manifest
    if said := "\n".join(report.failures(made)):
        shown = shlex.join(("invoke", "kernel.show", str(out)))
        hints = ["the file that was changed is kept", f"{shown} shows the stages"]
        raise SmithError("Triton did not compile it", where=out, why=said, hints=hints)


def _run(command: list[str], change: Mapping[str, str]) -> None:
    from tritonsmith.plan import process

    code = process.run_attached(command, change=change)
    if code:
        raise SmithError(f"{command[0]} ended with exit code {code}")


def _print(found: tuple[Diff, ...], out: Path, *, whole: bool) -> None:
    from tritonsmith.ui import console, tables

    rows = [[one.stage, str(one.removed), str(one.added)] for one in found]
    title = "lines that changed, locations and numbers of values aside; the first stage is yours"
    console.out().print(tables.plain(title, ["stage", "removed", "added"], rows, right=["removed", "added"]))
    if whole:
        for one in found:
            console.out().print("\n".join(one.lines), markup=False, highlight=False)
    console.out().print(f"{out}", markup=False)
