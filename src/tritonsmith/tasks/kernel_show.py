"""`kernel.show`: one stage of a kernel on the screen."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritonsmith.tasks.options import ASKING, REPEATED
from tritonsmith.tasks.task import Words, task


@task(
    name="show",
    klass=Words,
    positional=["kernel"],
    iterable=list(REPEATED),
    help={
        **ASKING,
        "kernel": "FILE, FILE:KERNEL, MODULE:KERNEL, or a folder that kernel.compile wrote",
        "from_cache": "compile what a JIT run left instead: a folder of Triton's cache, or its name",
        "stage": "ttir, ttgir, llir, ptx, sass; amdgcn, gcnasm",
        "point": "which one, if there are several: its name, or its target",
        "function": "this function only",
        "source_lines": "put the lines of Python that the code comes from between its lines",
    },
)
def show_(
    context: Any,
    kernel: str = "",
    stage: str = "ttgir",
    function: str = "",
    source_lines: bool = False,
    point: str = "",
    signature: str = "",
    target: Iterable[str] | None = None,
    num_warps: str = "",
    num_stages: str = "",
    option: Iterable[str] | None = None,
    sweep: Iterable[str] | None = None,
    from_cache: str = "",
    env: str = "wheel",
    python: str = "",
    jobs: str = "",
    timeout: str = "",
) -> None:
    """Print one stage of a kernel: ttgir, PTX, SASS ..."""
    from pathlib import Path

    from tritonsmith.kernels.compile import manifest, run
    from tritonsmith.kernels.show import stage as show_stage
    from tritonsmith.tasks import options
    from tritonsmith.ui import console

    (wanted,) = options.stages([stage])
    if kernel and Path(kernel).expanduser().is_dir():
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
        made = manifest.read(Path(kernel).expanduser())
    else:
        asked = options.parse_request(
            kernel,
            signature,
            list(target or ()) or ([] if from_cache else [options.target_of(wanted)]),
            option,
            sweep,
            num_warps=num_warps,
            num_stages=num_stages,
            from_cache=from_cache,
            env=env,
            python=python,
        )
        where = options.toolchain(env, python, jobs, timeout, asked)
        made = run.compile_all(asked, where)
    chosen = show_stage.choose(made, point)
    content = show_stage.text(made, chosen, wanted)
    if source_lines:
        content = show_stage.with_source(content, wanted, function)
    elif function:
        content = show_stage.function(content, wanted, function)
    out = console.out()
    if out.is_terminal:
        out.print(show_stage.highlighted(content, wanted), end="")
    else:
        console.write(content, end="")
