"""Compile one kernel for many points; needs no GPU and no torch.

Triton is imported once. Where the file's load serves all points, the processes that compile are forks.
"""

from __future__ import annotations

import faulthandler
import functools
import gc
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from . import parent_death
from .backend_options import drop_foreign_options
from .compile_point import attempt
from .file_context import FileSurroundings, prepare, surroundings
from .forked_call import in_child
from .load import LoadedKernel, content_of, load_checked
from .pool import CompileGroup, CompilePool, CompileProcess, can_fork
from .ptxas import listen, read_tail
from .refusal import EXIT_REFUSED, RequestRefusedError

if TYPE_CHECKING:  # Python 3.8 cannot evaluate this
    from .json_types import Table

    Loader = Callable[[list[Any]], LoadedKernel | None]

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
    parent_death.kill()
    with open(first_path, encoding="utf-8") as file:
        around = surroundings(json.load(file))
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request_path = line.rstrip("\n")
        log = f"{request_path}.log"
        answer = in_child(functools.partial(compile_points, request_path, around), log, LONGEST_REQUEST)
        print(json.dumps({key: answer.get(key) for key in ("status", "value", "error")}), flush=True)
    return 0


def compile_points(request_path: str, around: FileSurroundings | None = None) -> int:
    """Compile all points of a request; make new surroundings if none are given."""
    parent_death.interrupt()
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    cache = os.path.join(request["scratch"], "cache")
    shutil.rmtree(cache, ignore_errors=True)  # of a run that was killed
    os.mkdir(cache)
    os.environ.update(TRITON_CACHE_DIR=os.path.join(cache, "triton"), TRITON_HOME=cache, TMPDIR=cache)
    os.environ["TRITON_ALWAYS_COMPILE"] = (
        "1"  # of two points that turn out the same, the second takes its time too
    )
    tempfile.tempdir = None
    try:
        with open(request["results"], "w", encoding="utf-8") as results:
            try:
                good = _compile_points(request, request_path, results, around)
            except RequestRefusedError as error:
                results.write(json.dumps({"refused": error.about}) + "\n")
                print(f"{error}: {error.about.get('why', '')}")
                return EXIT_REFUSED
            except KeyboardInterrupt:
                return EXIT_INTERRUPTED
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    return 1 if request["strict"] and not good else 0


def _compile_points(
    request: Table, request_path: str, results: Any, around: FileSurroundings | None = None
) -> bool:
    around = prepare(request, around)
    first: LoadedKernel | None = None
    refusal: RequestRefusedError | None = None
    try:
        first = load_checked(request, around)
    except RequestRefusedError as error:  # for this target; without a question, or another target, for all
        if not around.gpu.asked or len({tuple(one["target"]) for one in request["points"]}) == 1:
            raise
        refusal = error
    head = about(request, around)
    head["notes"] = drop_foreign_options(request)
    results.write(json.dumps(head) + "\n")
    results.flush()
    total = len(request["points"])
    done: dict[int, bool] = {}
    unloaded: set[int] = set()

    def report(number: int, result: Table) -> None:
        point = request["points"][number]
        if not result.pop("loaded", True):
            unloaded.add(number)
        row = finished(request, point, result)
        results.write(json.dumps(row) + "\n")
        results.flush()
        done[number] = row["status"] == "ok"
        print(f"[{len(done)}/{total}] {point['id']}: {row['status']}", flush=True)
        if request["strict"] and row["error"]:
            print(row["error"], flush=True)

    forks = can_fork()
    targets = [":".join(map(str, point["target"])) for point in request["points"]]
    # Options of LLVM stay set in a process.
    llvm = [tuple((point.get("surgery") or {}).get("llvm", ())) for point in request["points"]]
    if request["ir"]:  # nothing is loaded that could ask
        groups = [CompileGroup(targets[0], not forks, one) for one in llvm]
    else:  # what runs while it compiles may remember an answer: no process takes points of two targets
        asked = around.gpu.asked  # while it was loaded, for the first target
        groups = [
            CompileGroup(target, not forks or (asked and target != targets[0]), one)
            for target, one in zip(targets, llvm)
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


def serve_alone(request_path: str, number: str) -> int:
    """Run the command `serve`: this process loads the file itself, for the target of a point."""
    parent_death.interrupt()
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    with open(os.dup(0), encoding="ascii") as reader, open(os.dup(1), "w", encoding="utf-8") as writer:
        around = prepare(request)
        drop_foreign_options(request)
        try:
            loaded = loader(load_checked(request, around, int(number)), around)
        except RequestRefusedError as error:  # for this target only: others have their rows
            loaded = refuser(error)
        serve(request, loaded, around, reader, writer)
    return 0


def serve(
    request: Table, loaded: Loader, around: FileSurroundings, reader: Iterable[str], writer: Any
) -> None:
    """Read point numbers, one per line; compile each point and write one JSON object per line."""
    parent_death.ignore_interrupts()
    listen()
    faulthandler.enable(2)  # into the log of the point that is being compiled
    for line in reader:
        result = attempt(request, request["points"][int(line)], loaded, around.ledger)
        writer.write(json.dumps(result) + "\n")
        writer.flush()


def loader(first: LoadedKernel | None, around: FileSurroundings) -> Loader:
    """Return a loader; the file was loaded for this target, or did not query the GPU."""
    from triton.backends.compiler import GPUTarget

    def loaded(target: list[Any]) -> LoadedKernel | None:
        around.become(GPUTarget(*target))
        return first

    return loaded


def refuser(error: RequestRefusedError) -> Loader:
    """Return a loader that raises the reason why there is no kernel for a target."""

    def refused(_: list[Any]) -> LoadedKernel | None:
        raise error

    return refused


def finished(request: Table, point: Table, result: Table) -> Table:
    """Return a row with all fields of the manifest."""
    path = os.path.join(request["output"], point["id"], "log")
    if result["status"] == "ok" and (flags := (point.get("surgery") or {}).get("llvm")):
        from . import llvm_options

        llvm_options.shorten(path, flags)
    log = read_tail(path)
    row = {key: point[key] for key in ("id", "signature", "constexprs", "hints", "options")}
    row["surgery"] = point.get("surgery")
    row["target"] = ":".join(map(str, point["target"]))
    row.update(result)
    if result["status"] != "ok":
        printed = log.partition("Traceback (most recent call last)")[0].splitlines()
        said = [line.strip() for line in printed if "error:" in line or "Assertion" in line]
        fresh = [line for line in dict.fromkeys(said) if line not in row["error"]]
        row["error"] = "\n".join([row["error"], *fresh[:5]])
    row["log"] = log[-LONGEST_LOG:]
    if result["status"] == "ok":
        path = os.path.join(request["output"], point["id"], "metadata.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(row["metadata"], file, indent=2)
    return row


def about(request: Table, around: FileSurroundings) -> Table:
    """Return the first line of the results file."""
    import triton

    digest = sha256(content_of(request["file"])).hexdigest()
    return {
        "triton": triton.__version__,
        "variables": variables(),
        "origin": os.path.dirname(triton.__file__),
        "python": platform.python_version(),
        "file_sha256": digest,
        "missing": request["missing"],
        **around.ledger.news(),
    }


def variables() -> dict[str, str]:
    """Return the variables that are set and that, according to Triton, change the compiled code."""
    try:
        from triton._C.libtriton import get_cache_invalidating_env_vars
    except ImportError:
        return {}
    return {name: os.environ[name] for name in get_cache_invalidating_env_vars() if name in os.environ}
