"""Run a single stage of the pipeline on the text of another stage, and watch the ptxas that stages run.

`triton.compile` accepts IR files too, but not `llir`, and runs all following stages. Of ptxas, this module
knows which GPUs it supports, its remarks about a kernel, and its command line.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import re
import subprocess
import sys
import traceback
from typing import TYPE_CHECKING, Any

from .border import RequestRefusedError, read_request, text_of
from .load import content_of
from .messages import StageRequest, StageRow
from .processes import interrupt_with_parent
from .stubs import Ledger, StubFinder

if TYPE_CHECKING:
    from .border import Table


LONGEST_TAIL = 400000  # bytes
SHOWN = 3000  # bytes of what was printed, in an error
PARSED = ("ttir", "ttgir")  # modules of MLIR; other stages take texts
ASSEMBLED: list[str] = []  # the output of ptxas, run by run
REMARK = re.compile(r"^ptxas\b[^:]*\b(?:info *: *(?=\(C\d+\))|warning *: *)(.+)$", re.MULTILINE)


def listen() -> None:
    """Keep the output of ptxas, which Triton deletes when ptxas succeeds."""

    # The deletion is an audit event, raised while the file is still there.
    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.remove" and str(arguments[0]).endswith(".log"):
            ASSEMBLED.append(read_tail(arguments[0]))

    sys.addaudithook(heard)


def remarks() -> list[str] | None:
    """Return the warnings and advisories of ptxas, such as lost performance; None if it printed nothing."""
    lines = (text.strip() for printed in ASSEMBLED for text in REMARK.findall(printed))
    return list(dict.fromkeys(lines)) if any("ptxas" in printed for printed in ASSEMBLED) else None


def ptxas_for(arch: int) -> str:
    """Return the ptxas that this Triton runs for a GPU; empty if there is none, or if the lookup fails."""
    try:
        from triton.backends.nvidia import compiler

        if not hasattr(compiler, "get_ptxas"):  # 3.0 to 3.2
            return str(compiler._path_to_binary("ptxas")[0])  # noqa: SLF001
        takes = inspect.signature(compiler.get_ptxas).parameters  # none in 3.4 and 3.5
        ptxas = compiler.get_ptxas(arch) if takes else compiler.get_ptxas()
        return str(ptxas[0] if isinstance(ptxas, tuple) else ptxas.path)  # a pair in 3.3
    except Exception:  # noqa: BLE001 - a check must not fail where the compile may succeed, or explain itself
        return ""


@functools.lru_cache(maxsize=None)
def gpus_of(ptxas: str) -> list[int]:
    """Return the GPUs that a ptxas supports: 80, 90; empty if ptxas does not list them."""
    argv = [ptxas, "--help"]
    with contextlib.suppress(OSError):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        text = done.stdout.decode(errors="replace")
        return sorted({int(number) for number in re.findall(r"'sm_(\d+)[a-z]?'", text)})
    return []


def check_gpu(arch: int) -> None:
    """Refuse GPUs that this Triton does not support."""
    # LLVM knows only the GPUs of its own release, and may abort on others before ptxas can report an error.
    import triton

    ptxas = ptxas_for(arch)
    # Newer releases bring a second ptxas for Blackwell: each counts for the GPUs that Triton uses it for.
    programs = {ptxas, *map(ptxas_for, gpus_of(ptxas))}
    known = sorted(
        number for program in programs for number in gpus_of(program) if ptxas_for(number) == program
    )
    if known and arch not in known:
        near = min(known, key=lambda number: abs(number - arch))
        names = ", ".join(f"sm_{number}" for number in known)
        what = f"Triton {triton.__version__} does not support sm_{arch}"
        why = f"its ptxas supports {names}; the nearest is sm_{near}"
        raise RequestRefusedError("target", what, why=why)


def read_tail(path: str, most: int = LONGEST_TAIL) -> str:
    """Return the last bytes of a file, from the start of a line; empty if the file cannot be read."""
    # A log with a dump of each pass may have a gigabyte.
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - most, 0))
            raw = file.read()
    except OSError:
        return ""
    text = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return text if size <= most else text.partition("\n")[2] or text


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
        content = output_of(request)
    except Exception as error:  # noqa: BLE001 - whatever the compiler raises is the answer
        traceback.print_exc()
        sys.stderr.flush()
        printed = [line for line in read_tail(request.log, SHOWN).splitlines() if "error:" in line]
        row = StageRow("\n".join([f"{type(error).__name__}: {error}", *printed[:3]]))
    else:
        with open(request.out, "wb") as out:
            out.write(content if isinstance(content, bytes) else str(content).encode())
        row = StageRow("", tuple(assembled[-1]) if assembled else ())
    with open(request.result, "w", encoding="utf-8") as results:
        results.write(text_of(row) + "\n")
    return 0


def output_of(request: StageRequest) -> Any:
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
