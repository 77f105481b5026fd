"""`%%triton_stages`: run a cell, and show its kernels stage by stage."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from invoke.exceptions import ParseError

from tritonsmith.cli.tasks.kernel_options import CompileOptions, parse_stages
from tritonsmith.cli.tasks.option_fields import CommaLists, flag, from_argv, word
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import run, source, source_tree, targets
from tritonsmith.compiler.interpreter import choose_interpreter
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.live import display, stages
from tritonsmith.live.stages import KernelStages, KernelView

NAME = "triton_stages"


@dataclass(frozen=True)
class NotebookCell:
    """A notebook cell to run.

    Attributes:
        shell: IPython's shell.
        text: the text of the cell, without the line of the magic.
    """

    shell: Any
    text: str


def register(shell: Any) -> None:
    """Register the magic in an IPython shell."""
    shell.register_magic_function(partial(triton_stages, shell), "cell", NAME)


def triton_stages(shell: Any, line: str, cell: str) -> None:
    """Run a cell; show the kernels that it launches, or with --signature one that it defines.

    Flags are those of `kernel.compile`: --signature, --target, --num-warps, --stage, --sweep ...
    """
    try:
        cell_stages(NotebookCell(shell, cell), **from_argv(FLAGS, shlex.split(line)))
    except (SmithError, ParseError) as error:
        print(source_tree.name_cells(f"error: {error}"), file=sys.stderr)


def cell_stages(
    context: NotebookCell,
    what: CompileOptions,
    kernel: str = word("kernel to compile, if the cell defines several", ""),
    stage: CommaLists = flag("show only this stage: ttgir, ptx, sass ... (repeatable)", ()),
) -> None:
    """Run a cell, and show its kernels.

    Raises:
        SmithError: a flag makes no sense, there is no kernel, or it is refused.
    """
    kept = parse_stages(stage)
    flags = what.flags()
    # The cell runs in this process, and its launches are watched here: the Triton of an environment cannot
    # help.
    if not find_spec("triton"):
        raise FactError("this notebook's Python has no Triton", where=sys.executable)
    # The cell runs first: with a signature, too, its definitions are what is compiled.
    with launches() as launched:
        done = context.shell.run_cell(context.text)
    if not done.success:  # IPython has shown the traceback
        return
    if what != CompileOptions() or kernel:
        kernels = compiled(context, flags, kernel)
    elif launched:
        kernels = [stages.of_compiled(compiled_kernel) for compiled_kernel in launched.values()]
    else:
        hints = [f"give a signature, to compile without a launch: %%{NAME} --signature '*fp32:16,i32'"]
        raise UsageError("this cell launches no kernel", hints=hints)
    for shown in kernels:
        texts = {name: text for name, text in shown.texts.items() if not kept or name in kept}
        display(KernelView(replace(shown, texts=texts)))


@contextmanager
def launches() -> Iterator[dict[str, Any]]:
    """Record the kernels launched in the body, by name: the last of each, which an autotuner has chosen."""
    from triton.runtime.jit import JITFunction  # noqa: PLC0415 - the notebook's, where there is one

    kernels: dict[str, Any] = {}
    before = JITFunction.run

    # Wrapped on the class: an autotuner and a heuristic end in the same method of the function that
    # they wrap.
    def recorded(self: Any, *args: Any, **kwargs: Any) -> Any:
        kernel = before(self, *args, **kwargs)
        if hasattr(kernel, "asm"):
            kernels[self.__name__] = kernel
        return kernel

    JITFunction.run = recorded
    try:
        yield kernels
    finally:
        JITFunction.run = before


def compiled(cell: NotebookCell, flags: CompileRequest, kernel: str) -> Sequence[KernelStages]:
    """Compile a kernel of a cell with this notebook's Python, and with the definitions of earlier cells.

    Raises:
        SmithError: as `kernel.compile`.
    """
    # A process of its own, as for a file: a crash of the compiler does not end the notebook.
    where = choose_interpreter("", sys.executable)
    # Raw input, since IPython's own translation turns magics into calls of get_ipython().
    cells = cell.shell.history_manager.input_hist_raw[1:]
    file = source_tree.write_cells(cells, "this notebook", Path.cwd(), "notebook")
    name = source.choose(cell.text, kernel, file)
    request = replace(flags, file=file, kernel=name, targets=flags.targets or targets.default()[:1])
    result = run.execute(run.prepare(request, where), where, silent=True)
    for text in result.notes:
        print(f"note: {text}", file=sys.stderr)
    return tuple(stages.of_manifest(result.manifest))


FLAGS = task(name=NAME)(cell_stages)
