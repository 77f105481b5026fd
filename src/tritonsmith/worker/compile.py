"""Compile one kernel for many points; needs no GPU and no torch.

Triton is imported once. Where the file's load serves all points, the processes that compile are forks.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import functools
import gc
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, TextIO

from .border import EXIT_REFUSED, RequestRefusedError, read_request, refusal_text, text_of
from .compile_point import attempt, target_name
from .compile_pool import CompileGroup, CompilePool, CompileProcess, can_fork
from .file_context import FileSurroundings, prepare, surroundings
from .load import LoadedKernel, content_of, load_checked
from .messages import CompiledRow, CompileHead, PointRequest, PointsRequest, ServedRow
from .processes import die_with_parent, ignore_interrupts, in_child, interrupt_with_parent
from .stage import listen, read_tail

if TYPE_CHECKING:
    from .load import Loader

EXIT_INTERRUPTED = 130
LONGEST_REQUEST = 86400.0  # seconds: each point has its own limit
LONGEST_LOG = 100000  # characters of standard error that a result carries


def compile_each(first_path: str) -> int:
    """Compile the points of one request after the other; each line of input names a request.

    Triton is imported once: each request is compiled by a fork of this process, so that a crash in a child of
    that fork is one row of the results. An answer is a line, too, with the status of the fork.

    Args:
        first_path: a request like the following ones; it decides which modules are replaced in the kernel's
            file.
    """
    die_with_parent()
    around = surroundings(read_request(PointsRequest, first_path))
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request_path = line.rstrip("\n")
        log = f"{request_path}.log"
        answer = in_child(functools.partial(compile_points, request_path, around), log, LONGEST_REQUEST)
        row = ServedRow(answer["status"], answer.get("value"), answer.get("error"))
        print(text_of(row), flush=True)
    return 0


def compile_points(request_path: str, around: FileSurroundings | None = None) -> int:
    """Compile all points of a request; make new surroundings if none are given."""
    interrupt_with_parent()
    request = read_request(PointsRequest, request_path)
    cache = os.path.join(request.scratch, "cache")
    shutil.rmtree(cache, ignore_errors=True)  # of a run that was killed
    os.mkdir(cache)
    os.environ.update(TRITON_CACHE_DIR=os.path.join(cache, "triton"), TRITON_HOME=cache, TMPDIR=cache)
    # Of two points that turn out the same, the second takes its time too.
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    tempfile.tempdir = None
    try:
        with open(request.results, "w", encoding="utf-8") as results:
            try:
                good = _compile_points(request, request_path, results, around)
            except RequestRefusedError as error:
                results.write(refusal_text(error.refusal) + "\n")
                print(f"{error}: {error.refusal.why}")
                return EXIT_REFUSED
            except KeyboardInterrupt:
                return EXIT_INTERRUPTED
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    return 1 if request.strict and not good else 0


def _compile_points(
    request: PointsRequest, request_path: str, results: TextIO, around: FileSurroundings | None = None
) -> bool:
    around = prepare(request, around)
    first: LoadedKernel | None = None
    refusal: RequestRefusedError | None = None
    try:
        first = load_checked(request, around)
    except RequestRefusedError as error:  # for this target; without a question, or another target, for all
        if not around.gpu.asked or len({point.target for point in request.points}) == 1:
            raise
        refusal = error
    request, notes = drop_foreign_options(request)
    results.write(text_of(about(request, around, notes)) + "\n")
    results.flush()
    total = len(request.points)
    done: dict[int, bool] = {}
    unloaded: set[int] = set()

    def report(number: int, result: CompiledRow) -> None:
        if not result.loaded:
            unloaded.add(number)
        row = finished(request, request.points[number], result)
        results.write(text_of(row) + "\n")
        results.flush()
        done[number] = row.status == "ok"
        print(f"[{len(done)}/{total}] {row.id}: {row.status}", flush=True)
        if request.strict and row.error:
            print(row.error, flush=True)

    forks = can_fork()
    targets = [target_name(point) for point in request.points]
    # Options of LLVM stay set in a process.
    llvm = [point.surgery.llvm if point.surgery else () for point in request.points]
    if request.ir:  # nothing is loaded that could ask
        groups = [CompileGroup(targets[0], not forks, options) for options in llvm]
    else:  # what runs while it compiles may remember an answer: no process takes points of two targets
        asked = around.gpu.asked  # while it was loaded, for the first target
        groups = [
            CompileGroup(target, not forks or (asked and target != targets[0]), options)
            for target, options in zip(targets, llvm)
        ]

    def start(group: CompileGroup, siblings: list[CompileProcess]) -> CompileProcess:
        number = str(targets.index(group.target))
        argv = [sys.executable, os.path.dirname(os.path.abspath(__file__)), "serve", request_path, number]
        loaded = refuser(refusal) if refusal else loader(first, around)
        work = functools.partial(serve, request, loaded, around)
        return CompileProcess(group, work, argv if group.loads else None, siblings)

    gc.collect()
    gc.freeze()  # or the first collection of each child would copy every page of this process
    CompilePool(request, groups, start, report).run()
    if refusal and len(unloaded) == total:
        raise refusal
    return all(done.values())


def drop_foreign_options(request: PointsRequest) -> tuple[PointsRequest, list[str]]:
    """Drop options that only another backend has, with a note on each; refuse those that no backend has."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    # `parse_options` of the backends ignores unknown names.
    known: dict[str, set[str]] = {}
    for point in request.points:
        name = point.target[0]
        if name not in known:
            try:
                options = make_backend(GPUTarget(*point.target)).parse_options({})
            except RuntimeError as error:
                raise RequestRefusedError(
                    "backend", f"this Triton has no backend for {name}", why=str(error)
                ) from None
            known[name] = set(getattr(options, "__dataclass_fields__", vars(options)))
    every: set[str] = set().union(*known.values())
    passed: dict[str, str] = {}
    points = []
    for point in request.points:
        own = known[point.target[0]]
        for option in point.options:
            if option not in every:
                what = f"no backend has an option {option!r}"
                names, parameters = tuple(sorted(every)), tuple(point.signature)
                raise RequestRefusedError("option", what, name=option, names=names, parameters=parameters)
            if option not in own:
                passed.setdefault(option, point.target[0])
        kept = {name: value for name, value in point.options.items() if name in own}
        points.append(dataclasses.replace(point, options=kept))
    notes = [f"{backend} has no option {option}: ignored" for option, backend in passed.items()]
    return dataclasses.replace(request, points=tuple(points)), notes


def serve_alone(request_path: str, number: str) -> int:
    """Run the command `serve`: this process loads the file itself, for the target of a point."""
    interrupt_with_parent()
    request = read_request(PointsRequest, request_path)
    with open(os.dup(0), encoding="ascii") as reader, open(os.dup(1), "w", encoding="utf-8") as writer:
        around = prepare(request)
        request, _ = drop_foreign_options(request)
        try:
            loaded = loader(load_checked(request, around, int(number)), around)
        except RequestRefusedError as error:  # for this target only: others have their rows
            loaded = refuser(error)
        serve(request, loaded, around, reader, writer)
    return 0


def serve(
    request: PointsRequest, loaded: Loader, around: FileSurroundings, reader: Iterable[str], writer: TextIO
) -> None:
    """Read point numbers, one per line; compile each point and write one JSON object per line."""
    ignore_interrupts()
    listen()
    faulthandler.enable(2)  # into the log of the point that is being compiled
    for line in reader:
        row = attempt(request, request.points[int(line)], loaded, around)
        writer.write(text_of(row) + "\n")
        writer.flush()


def loader(first: LoadedKernel | None, around: FileSurroundings) -> Loader:
    """Return a loader; the file was loaded for this target, or did not query the GPU."""
    from triton.backends.compiler import GPUTarget

    def loaded(target: tuple[str, int | str, int]) -> LoadedKernel | None:
        around.become(GPUTarget(*target))
        return first

    return loaded


def refuser(error: RequestRefusedError) -> Loader:
    """Return a loader that raises the reason why there is no kernel for a target."""

    def refused(_: tuple[str, int | str, int]) -> LoadedKernel | None:
        raise error

    return refused


def finished(request: PointsRequest, point: PointRequest, row: CompiledRow) -> CompiledRow:
    """Return a row with what was printed, and write the metadata of a compile that succeeded."""
    path = os.path.join(request.output, point.id, "log")
    if row.status == "ok" and point.surgery and point.surgery.llvm:
        from . import libtriton

        libtriton.shorten(path, point.surgery.llvm)
    log = read_tail(path)
    error = row.error
    if row.status == "ok":
        path = os.path.join(request.output, point.id, "metadata.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(row.metadata, file, indent=2)
    else:  # MLIR prints its errors, and Python's exception knows nothing of them
        printed = log.partition("Traceback (most recent call last)")[0].splitlines()
        errors = [line.strip() for line in printed if "error:" in line or "Assertion" in line]
        fresh = [line for line in dict.fromkeys(errors) if line not in error]
        error = "\n".join([error, *fresh[:5]])
    return dataclasses.replace(row, error=error, log=log[-LONGEST_LOG:])


def about(request: PointsRequest, around: FileSurroundings, notes: list[str]) -> CompileHead:
    """Return the first line of the results file."""
    import triton

    tools = around.disassemblers.values()
    return CompileHead(
        triton=triton.__version__,
        variables=variables(),
        origin=os.path.dirname(triton.__file__),
        python=platform.python_version(),
        file_sha256=sha256(content_of(request.file)).hexdigest(),
        missing=tuple(tool.stage for tool in tools if not tool.programs),
        notes=tuple(notes),
        news=around.ledger.news(),
    )


def variables() -> dict[str, str]:
    """Return the variables that are set and that, according to Triton, change the compiled code."""
    try:
        from triton._C.libtriton import get_cache_invalidating_env_vars
    except ImportError:
        return {}
    return {name: os.environ[name] for name in get_cache_invalidating_env_vars() if name in os.environ}
