"""`kernel.aot`: kernels compiled ahead of time, as C."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tritonsmith.tasks.options import ASKING, REPEATED
from tritonsmith.tasks.task import given, task

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tritonsmith.kernels.aot.emit import PreparedAot
    from tritonsmith.kernels.compile.manifest import Manifest
    from tritonsmith.kernels.compile.request import CompileRequest


@task(
    tables=True,
    iterable=[*REPEATED, "signature", "point"],
    help={
        **ASKING,
        "source": "FILE[:KERNEL], MODULE:KERNEL, or a folder of kernel.compile",
        "grid": "C over parameters and constants: '(n+BLOCK-1)/BLOCK,1,1'",
        "signature": f"{ASKING['signature']} (repeat it: each is a variant)",
        "point": "take this compiled point of the folder only: its id (repeat it)",
        "out_name": "what the functions are called (default: like the kernel)",
        "out": "folder for the C files (default: beside what is compiled)",
        "check": "compile them with the system's C compiler, and link them",
        "json": "print what was made as JSON",
        "dry_run": "print the plan as a shell script, and do nothing",
    },
)
def aot(
    context: Any,
    source: str,
    grid: str = "",
    signature: Iterable[str] | None = None,
    target: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    option: Iterable[str] | None = None,
    sweep: Iterable[str] | None = None,
    point: Iterable[str] | None = None,
    out_name: str = "",
    out: str = "",
    env: str = "wheel",
    python: str = "",
    jobs: str = "",
    timeout: str = "",
    check: bool = False,
    json: bool = False,
    dry_run: bool = False,
) -> None:
    """Write C sources that hold a kernel's binaries and launch them."""
    from json import dumps
    from pathlib import Path

    from tritonsmith.errors import UsageError
    from tritonsmith.kernels.aot import c_types, emit
    from tritonsmith.kernels.aot import grid as grids
    from tritonsmith.kernels.compile import manifest
    from tritonsmith.tasks import options, output
    from tritonsmith.ui import console

    grids.parse(grid)  # before minutes of compiling
    c_types.check_name(out_name)
    folder = Path(source).expanduser()
    into = Path(out).expanduser().absolute() if given(out) else None
    points = list(point or ())
    found: Sequence[Manifest]
    if folder.is_dir():
        options.compiled_already(
            {
                "--signature": signature,
                "--target": target,
                "--option": option,
                "--sweep": sweep,
                "--num-warps": num_warps,
                "--num-stages": num_stages,
            }
        )
        found = [manifest.read(folder.absolute())]
    else:
        if points:
            hints = ["leave it out, or name a folder of kernel.compile"]
            raise UsageError("--point chooses among compiled points", hints=hints)
        asked = [
            options.parse_request(
                source,
                text,
                target,
                option,
                sweep,
                num_warps=num_warps,
                num_stages=num_stages,
                env=env,
                python=python,
            )
            for text in list(signature or ()) or [""]
        ]
        where = options.toolchain(env, python, jobs, timeout, *asked)
        if dry_run:
            for one in emit.compiles(asked, where):
                output.compile_of(one)
            output.warnings(("what is written afterwards depends on what that compiles",))
            return
        found = _compiled(asked, where)
    made = emit.prepare(found, grid, into, out_name=out_name, points=points, check=check)
    if dry_run:
        output.plan(made.plan)
        return
    emit.execute(made)
    if json:
        console.write(dumps(emit.as_json(made, checked=check), indent=2))
    else:
        _show(made, checked=check)


def _compiled(asked: Sequence[CompileRequest], where: Any) -> list[Manifest]:
    from tritonsmith.kernels.aot import emit
    from tritonsmith.kernels.compile import run
    from tritonsmith.ui import console

    made = [run.execute(one, where) for one in emit.compiles(asked, where)]
    for text in dict.fromkeys(note for one in made for note in one.notes):
        console.note(text)
    return [one.manifest for one in made]


def _show(made: PreparedAot, *, checked: bool) -> None:
    from tritonsmith.kernels.aot import emit
    from tritonsmith.ui import console, tables

    for group in made.groups:
        rows = [
            [
                one.name,
                one.algo,
                _hints(one),
                f"{one.binary.stat().st_size / 1024:.1f}",
                str(emit.resources(one).values["launch"] or ""),
            ]
            for one in group.variants
        ]
        title = f"{group.variants[0].point.target}; binaries in KiB"
        columns = ["function", "algorithm", "hints", "binary", "launch"]
        console.out().print(tables.plain(title, columns, rows, right=["binary"]))
    for text in emit.warnings(made):
        console.warn(text)
    count = sum(len(group.sources) for group in made.groups)
    console.out().print(f"{made.folder}", markup=False)
    if checked:
        console.note(f"the C compiler takes all {count} sources, and links them")


def _hints(variant: Any) -> str:
    return ", ".join(f"{one.name}:{one.hint}" for one in variant.arguments if one.hint)
