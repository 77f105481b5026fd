"""`kernel.show`: print one stage of a kernel."""

from __future__ import annotations

from typing import Any

from tritonsmith.cli.tasks.kernel_options import (
    CompileOptions,
    PoolOptions,
    folder_of,
    parse_stages,
    target_of,
)
from tritonsmith.cli.tasks.option_fields import flag
from tritonsmith.cli.tasks.options import FROM_CACHE, KERNEL
from tritonsmith.cli.tasks.task import task
from tritonsmith.core.errors import UsageError


@task(name="show", reads_outputs=True)
def show_(
    context: Any,
    what: CompileOptions,
    by: PoolOptions,
    kernel: str = KERNEL,
    stage: str = flag("stage to print: ttir, llir, ptx, sass, amdgcn, gcnasm", "ttgir"),
    function: str = flag("print only this function", ""),
    source_lines: bool = flag("show the Python lines that the code comes from", default=False),
    point: str = flag("compiled point, if there are several: its id, or its target", ""),
    link: bool = flag("print a link that opens the stage in Compiler Explorer", default=False),
    from_cache: str = FROM_CACHE,
) -> None:
    """Print one stage of a kernel: ttgir, PTX, SASS ..."""
    from tritonsmith.compiler import manifest, run
    from tritonsmith.core.ui import console
    from tritonsmith.inspect.show import stage as show_stage

    if link and source_lines:
        raise UsageError(
            "--link and --source-lines contradict each other: a link has no lines of Python",
            hints=["omit one of them"],
        )
    (wanted,) = parse_stages([stage])
    if folder := folder_of(kernel):
        what.refuse()
        made = manifest.read(folder)
    else:
        target = target_of(wanted)
        asked = what.request(kernel, target=target, from_cache=from_cache, by=by)
        made = run.compile_all(asked, by.toolchain(asked))
    chosen = show_stage.choose(made, point)
    content = show_stage.text(made, chosen, wanted)
    if source_lines:
        content = show_stage.with_source(content, wanted, function)
    elif function:
        content = show_stage.function(content, wanted, function)
    if link:
        console.note("nothing is sent; whoever opens the link sends the text to godbolt.org")
        console.write(show_stage.link(content, wanted, chosen.target))
        return
    out = console.out()
    if out.is_terminal:
        out.print(show_stage.highlighted(content, wanted), end="")
    else:
        console.write(content, end="")
