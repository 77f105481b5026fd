"""Run single stages of the pipeline on the text of another stage: `llir` to `ptx`, `ttgir` to `llir`.

`triton.compile` accepts IR files too, but not `llir`, and runs all following stages.
"""

from __future__ import annotations

import inspect
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

from .border import read_request, text_of
from .load import content_of
from .messages import StageRequest, StageRow
from .processes import interrupt_with_parent
from .ptxas_remarks import read_tail
from .stub_finder import StubFinder
from .stubs import Ledger

if TYPE_CHECKING:
    from .border import Table

PARSED = ("ttir", "ttgir")  # modules of MLIR; other stages take texts
SHOWN = 3000  # bytes of what was printed, in an error


def run_stage(request_path: str) -> int:
    """Run the stage that a request names, on its file; the result is a line of JSON."""
    interrupt_with_parent()
    request = read_request(StageRequest, request_path)
    os.environ["TRITON_CACHE_DIR"] = os.path.join(os.path.dirname(request.out), "cache")
    log = os.open(request.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    assembled: list[list[str]] = []
    hear_ptxas(assembled)
    sys.meta_path.append(StubFinder(request.stand_ins, Ledger()))
    try:
        content = made(request)
    except Exception as error:  # noqa: BLE001 - whatever the compiler raises is the answer
        traceback.print_exc()
        sys.stderr.flush()
        said = [line for line in read_tail(request.log, SHOWN).splitlines() if "error:" in line]
        row = StageRow("\n".join([f"{type(error).__name__}: {error}", *said[:3]]))
    else:
        with open(request.out, "wb") as out:
            out.write(content if isinstance(content, bytes) else str(content).encode())
        row = StageRow("", tuple(assembled[-1]) if assembled else ())
    with open(request.result, "w", encoding="utf-8") as results:
        results.write(text_of(row) + "\n")
    return 0


def made(request: StageRequest) -> Any:
    """Return the stage's output for the file."""
    from triton._C.libtriton import ir, llvm
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    target = GPUTarget(*request.target)
    backend = make_backend(target)
    options = backend.parse_options(dict(request.options))
    stages: Table = {}
    if "language" in inspect.signature(backend.add_stages).parameters:  # since 3.4
        from triton.backends.compiler import Language

        backend.add_stages(stages, options, Language.TRITON)
    else:
        backend.add_stages(stages, options)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source: Any
    if request.of in PARSED:
        source = ir.parse_mlir_module(request.file, context)
        source.context = context  # Triton's own stages take the context from there
    else:
        source = content_of(request.file).decode()
        llvm.init_targets()  # normally done by the previous stage
    metadata = {"target": target, "hash": "", **vars(options)}
    return stages[request.stage](source, metadata)


def hear_ptxas(assembled: list[list[str]]) -> None:
    """Keep the command lines of all runs of ptxas that write a file."""

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and "-o" in arguments[1] and "ptxas" in str(arguments[0]):
            assembled.append([str(word) for word in arguments[1]])

    # Backends of all releases start ptxas by `subprocess`, each in a function of its own: the audit event is
    # the one place that they share.
    sys.addaudithook(heard)
