"""Compile one kernel for many points; needs no GPU and no torch.

Triton is imported once. A pool of processes compiles the points: forks of this one where its load of the
kernel's file serves a point, else new ones that load the file again. If one dies, its point fails and another
process continues.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import functools
import gc
import itertools
import json
import os
import platform
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TextIO

from .border import EXIT_REFUSED, RequestRefusedError, read_request, refusal_text, row_of, text_of
from .compile_point import attempt, compiler_identity, failed, target_name, write_plainly
from .file_context import EXIT_COLD, FileSurroundings, TorchShelf, prepare, surroundings
from .load import EndlessLoadError, LoadedKernel, content_of, load_checked, parse_ahead, quiet
from .messages import CompiledRow, CompileHead, PointRequest, PointsRequest, ServedRow
from .processes import can_fork, die_with_parent, ignore_interrupts, in_child, interrupt_with_parent
from .stage import check_gpu, listen, read_tail

if TYPE_CHECKING:
    from dataclasses import dataclass

    from .load import Loader
else:
    from .records import dataclass

Report = Callable[[int, CompiledRow], None]

EXIT_INTERRUPTED = 130
LONGEST_REQUEST = 86400.0  # seconds: each point has its own limit
LONGEST_LOG = 100000  # characters of standard error that a result carries
# Compiles that take as long as loading a file with many imports: `import torch` takes 3 s of CPU time.
COMPILES_OF_A_LOAD = 8
IMPORTS_TORCH = re.compile(rb"^(?:import|from)\b[^#\n]*\btorch\b", re.MULTILINE)
_GARBAGE = 100000  # objects until a collection: the front end makes many, and hardly any circle
LOOKS_UP = 1.0  # seconds between two checks that the parent is still alive


def compile_each(first_path: str) -> int:
    """Compile the points of one request after the other, or print files in generic form.

    Each line of input is `compile` or `generic`, and the file of that request. The answer is a line, too: the
    status of the process that did it.

    Args:
        first_path: the first of them; Triton is imported beside its stand-ins.
    """
    from .passes import print_all

    die_with_parent()
    around = surroundings(read_request(PointsRequest, first_path))
    shelf = TorchShelf(around)
    compile_warm = functools.partial(compile_points, around=around, shelf=shelf)
    acts: dict[str, Callable[[str], int]] = {"compile": compile_warm, "generic": print_all}
    # While nobody waits: the first request may come later.
    _look_up(first_path)
    _settle()
    for line in sys.stdin:
        command, _, request_path = line.rstrip("\n").partition(" ")
        if command == PointsRequest.COMMAND:
            _look_up(request_path)
            if not shelf.is_full and shelf.has_torch and _imports_torch(request_path):
                with quiet():
                    shelf.fill()
                if not can_fork():
                    # Each request gets a process of its own then: see `WarmRun`.
                    return 1
                _settle()
        log = f"{request_path}.log"
        # Triton is imported once, here. Each request has a fork of its own, so that what a kernel's file does
        # to its process ends with the request, and a crash costs one row of the results.
        act = functools.partial(_as_alone, acts[command], command, request_path)
        answer = in_child(act, log, LONGEST_REQUEST)
        print(text_of(ServedRow(answer["status"], answer.get("value"), answer.get("error"))), flush=True)
    return 0


def _settle() -> None:
    # As in `_compile_points`: a collection in a child would touch, and so copy, every page of Triton.
    gc.collect()
    gc.freeze()


def _look_up(request_path: str) -> None:
    """Fill the tables about ptxas and Triton's files before the fork: each fork would do so again."""
    # Whatever is wrong with the request is the fork's to say: what stays are the tables of the functions.
    with contextlib.suppress(Exception):
        from triton.backends.compiler import GPUTarget
        from triton.compiler.compiler import make_backend

        request = read_request(PointsRequest, request_path)
        for target in {point.target for point in request.points}:
            if target[0] == "cuda":
                check_gpu(int(target[1]))
            for only_ptxas in (False, True) if request.shared else ():
                compiler_identity(only_ptxas, target)
            # For the name of a cache's folder, a backend asks ptxas for its version.
            make_backend(GPUTarget(*target)).hash()


def _imports_torch(request_path: str) -> bool:
    # Not what the file will do: only a hint that torch, which takes as long as several compiles, is needed.
    # A file that does without it does not see it.
    with contextlib.suppress(Exception):
        request = read_request(PointsRequest, request_path)
        return not request.ir and IMPORTS_TORCH.search(content_of(request.file)) is not None
    return False


def _as_alone(act: Callable[[str], int], command: str, request_path: str) -> int:
    """Do what one line of input says, with everything as in a process that was started for it."""
    # The kernel's file may look at its arguments, read its input, or open files beside it: the input here is
    # the tool's next request.
    sys.argv[1:] = [command, request_path]
    os.chdir(os.path.dirname(request_path))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return act(request_path)


def compile_points(
    request_path: str, around: FileSurroundings | None = None, shelf: TorchShelf | None = None
) -> int:
    """Compile all points of a request.

    Args:
        request_path: the request.
        around: the surroundings of its file; None for new ones.
        shelf: what was imported before a fork, for this file if it imports that.
    """
    interrupt_with_parent()
    request = read_request(PointsRequest, request_path)
    # A cache of this run alone: the user's would answer for points that were compiled before.
    cache = os.path.join(request.scratch, "cache")
    shutil.rmtree(cache, ignore_errors=True)  # left by a run that was killed
    os.mkdir(cache)
    os.environ.update(TRITON_CACHE_DIR=os.path.join(cache, "triton"), TRITON_HOME=cache, TMPDIR=cache)
    # Two points may turn out the same; the second must be timed as well, not read from the cache.
    os.environ["TRITON_ALWAYS_COMPILE"] = "1"
    tempfile.tempdir = None  # tempfile remembers its folder: it has to look at TMPDIR again
    try:
        with open(request.results, "w", encoding="utf-8") as results:
            try:
                good = _compile_points(request, request_path, results, around, shelf)
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
    request: PointsRequest,
    request_path: str,
    results: TextIO,
    around: FileSurroundings | None = None,
    shelf: TorchShelf | None = None,
) -> bool:
    around = prepare(request, around)
    if shelf:
        with contextlib.suppress(EndlessLoadError), limited(request.timeout):
            parse_ahead(request)
    with Spares(request, around if shelf else None) as spares:
        try:
            return _compile_with(spares, request, request_path, results, around)
        except EndlessLoadError as error:
            what = f"the file was still being loaded after {request.timeout:.0f} s, in {error}"
            began = time.monotonic() - request.timeout
            rows = [failed(point, "timeout", what, began) for point in request.points]
            results.write("".join(f"{text_of(row)}\n" for row in (about(request, around, []), *rows)))
            return False


def _compile_with(
    spares: Spares, request: PointsRequest, request_path: str, results: TextIO, around: FileSurroundings
) -> bool:
    first: LoadedKernel | None = None
    refusal: RequestRefusedError | None = None
    try:
        with limited(request.timeout):
            first = load_checked(request, around)
    except RequestRefusedError as error:
        # A file that asked about the GPU may load for another target. One that did not ask, or a request for
        # a single target, gets the same answer every time.
        if not around.gpu.queried or len({point.target for point in request.points}) == 1:
            raise
        refusal = error
    request, notes = drop_foreign_options(request)
    results.write(text_of(about(request, around, notes)) + "\n")
    results.flush()
    total = len(request.points)
    done: dict[int, bool] = {}
    unloaded: set[int] = set()

    def report(number: int, result: CompiledRow) -> None:
        # What one process must not import from the shelf, this one must not either: none of it counts.
        if spares.around and result.status == "crashed" and result.error.endswith(f"exit code {EXIT_COLD}"):
            os._exit(EXIT_COLD)
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
    # LLVM's options are global variables of a process: points with other options need another one.
    llvm = [point.surgery.llvm if point.surgery else () for point in request.points]
    if request.ir:  # no code is loaded that could ask about the GPU: targets may share a process
        groups = [CompileGroup(targets[0], not forks, options) for options in llvm]
    else:
        # Code that runs during a compile may remember what the GPU answered, in an lru_cache say, so no
        # process takes points of two targets. If the load itself asked, it is good for its target only.
        file_asked = around.gpu.queried
        groups = [
            CompileGroup(target, not forks or (file_asked and target != targets[0]), options)
            for target, options in zip(targets, llvm)
        ]

    def start(group: CompileGroup, siblings: list[CompileProcess]) -> CompileProcess:
        number = str(targets.index(group.target))
        argv = [sys.executable, os.path.dirname(os.path.abspath(__file__)), "serve", request_path, number]
        loaded = refuser(refusal) if refusal else loader(first, around)
        work = functools.partial(serve, request, loaded, around)
        spare = spares.take(group) if group.loads else None
        return spare or CompileProcess(
            group, work, argv if group.loads else None, [*siblings, *spares.waiting.values()]
        )

    # Without this, the first collection of each child would copy every page that it shares with this process.
    gc.collect()
    gc.freeze()
    CompilePool(request, groups, start, report).run()
    if refusal and len(unloaded) == total:
        raise refusal
    return all(done.values())


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Interrupt the body, which runs in the first thread, after so many seconds.

    A native function that never returns is not interrupted.

    Raises:
        EndlessLoadError: it took longer.
    """

    def end(_number: int, _frame: object) -> None:
        raise EndlessLoadError

    # Only the compiles have processes of their own, which can be killed: the load is for all of them.
    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def drop_foreign_options(request: PointsRequest) -> tuple[PointsRequest, list[str]]:
    """Drop options that only another backend has, with a note on each; refuse those that no backend has."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    # `parse_options` of Triton's backends ignores unknown names, so a misspelled option would have no effect
    # and no error.
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
        serve_loading(request, int(number), prepare(request), reader, writer)
    return 0


def serve_loading(
    request: PointsRequest, number: int, around: FileSurroundings, reader: Iterable[str], writer: TextIO
) -> None:
    """Load the file for the target of a point, and compile what is read."""
    request, _ = drop_foreign_options(request)
    try:
        loaded = loader(load_checked(request, around, number), around)
    except RequestRefusedError as error:
        # The refusal is about this target; points of other targets still get their rows.
        loaded = refuser(error)
    serve(request, loaded, around, reader, writer)


def serve(
    request: PointsRequest, loaded: Loader, around: FileSurroundings, reader: Iterable[str], writer: TextIO
) -> None:
    """Read point numbers, one per line; compile each point and write one JSON object per line."""
    ignore_interrupts()
    listen()
    write_plainly()
    gc.set_threshold(_GARBAGE)
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
    else:
        # MLIR prints its diagnostics to the descriptor: the exception in Python says only that a pass failed.
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
        reads=around.reads.news(),
    )


def variables() -> dict[str, str]:
    """Return the variables that are set and that, according to Triton, change the compiled code."""
    try:
        from triton._C.libtriton import get_cache_invalidating_env_vars
    except ImportError:
        return {}
    return {name: os.environ[name] for name in get_cache_invalidating_env_vars() if name in os.environ}


@dataclass(frozen=True)
class CompileGroup:
    """A group of points that can share one load of the kernel's file.

    Attributes:
        target: the target of the load and the compiles: `cuda:90:32`.
        loads: each child of the group loads the file by itself.
        llvm: options of LLVM.
    """

    target: str
    loads: bool
    llvm: tuple[str, ...] = ()


class CompileProcess:
    """A process that compiles points of one group, which share one load of the file."""

    def __init__(
        self,
        group: CompileGroup,
        work: Callable[[Any, Any], None],
        argv: list[str] | None,
        siblings: list[CompileProcess],
    ) -> None:
        """Start the process.

        Args:
            group: the group that its points are in.
            work: the function that a fork runs, on its input and output.
            argv: the command of a new process; None to fork.
            siblings: the existing children.
        """
        self.group = group
        self.number = -1
        self.deadline = self.began = 0.0
        self.buffer = b""
        self.process: subprocess.Popen[bytes] | None = None
        there, self.into = os.pipe()
        self.out, back = os.pipe()
        if argv is None:
            self.pid = os.fork()
            if self.pid == 0:
                self._serve(work, there, back, siblings)
        else:
            self.process = subprocess.Popen(argv, stdin=there, stdout=back, start_new_session=True)
            self.pid = self.process.pid
        os.close(there)
        os.close(back)

    def _serve(
        self, work: Callable[[Any, Any], None], there: int, back: int, siblings: list[CompileProcess]
    ) -> None:
        code = 1
        try:
            os.setpgid(0, 0)
            # A fork inherits the pipes of all children. While a copy of one is open, its child sees no end of
            # its input.
            for child in (self, *siblings):
                os.close(child.into)
                os.close(child.out)
            with open(there, encoding="ascii") as reader, open(back, "w", encoding="utf-8") as writer:
                try:
                    work(reader, writer)
                except BaseException:
                    # Now, not later: once the pipes close, the parent kills this process.
                    traceback.print_exc()
                    raise
            code = 0
        finally:
            os._exit(code)

    def give(self, number: int, timeout: float) -> None:
        """Send a point to compile."""
        self.number, self.began = number, time.monotonic()
        self.deadline = self.began + timeout
        # A child that has died is noticed when its pipe ends, with its exit code.
        with contextlib.suppress(BrokenPipeError):
            os.write(self.into, b"%d\n" % number)

    def end(self) -> str:
        """Stop the process and its children, and return a description of its end."""
        # Its group first, with the ptxas that it runs; a fork that died early has not made its group.
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.into)
        os.close(self.out)
        if self.process:
            code = self.process.wait()
        else:
            status = os.waitpid(self.pid, 0)[1]
            code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        with contextlib.suppress(ValueError):
            return f"the compiler died: {signal.Signals(-code).name}"
        return f"the compiler ended the process: exit code {code}"


class Spares:
    """Forks from before the load of the file, each for a target that may need a load of its own.

    Without them, a file that asks about the GPU would cost a new process, which imports Triton and perhaps
    torch, for each further target.

    Attributes:
        around: the surroundings; None if this process was started for its request, and is no fork itself.
        waiting: those that were not needed so far, by target.
    """

    def __init__(self, request: PointsRequest, around: FileSurroundings | None) -> None:
        """Fork once for each target but the first."""
        self.around = around
        self.waiting: dict[str, CompileProcess] = {}
        targets = [target_name(point) for point in request.points]
        for target in dict.fromkeys(targets) if around and not request.ir and can_fork() else ():
            if target != targets[0]:
                work = functools.partial(self._serve, request, targets.index(target))
                siblings = list(self.waiting.values())
                self.waiting[target] = CompileProcess(CompileGroup(target, True), work, None, siblings)

    def __enter__(self) -> Spares:  # noqa: PYI034 - Python 3.8 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        while self.waiting:
            self.waiting.popitem()[1].end()

    def take(self, group: CompileGroup) -> CompileProcess | None:
        """Return the process for a group, if it was not taken before."""
        spare = self.waiting.pop(group.target, None)
        if spare:
            spare.group = group
        return spare

    def _serve(self, request: PointsRequest, number: int, reader: TextIO, writer: TextIO) -> None:
        interrupt_with_parent()
        # Most files ask for no GPU, so that nothing comes and nothing is loaded.
        first = reader.readline()
        if first and self.around:
            serve_loading(request, number, self.around, itertools.chain([first], reader), writer)


class CompilePool:
    """A pool that distributes points to children, and passes rows to `report`."""

    def __init__(
        self,
        request: PointsRequest,
        groups: list[CompileGroup],
        start: Callable[[CompileGroup, list[CompileProcess]], CompileProcess],
        report: Report,
    ) -> None:
        """Create a pool; start no process yet.

        Args:
            request: the request with the points.
            groups: the group of each point.
            start: a function that starts a child for a group, beside its siblings.
            report: a function that is called with the result of each point.
        """
        self.request, self.start, self.report = request, start, report
        # In reverse, since `pop` takes the last: the first point is compiled first.
        self.waiting: dict[CompileGroup, list[int]] = {}
        for number in reversed(range(len(groups))):
            self.waiting.setdefault(groups[number], []).append(number)
        self.chosen = selectors.DefaultSelector()
        self.children: list[CompileProcess] = []
        self.asker = os.getppid()

    def run(self) -> None:
        """Run until every point has its row."""
        try:
            for _ in range(min(self.request.jobs, len(self.request.points))):
                self._more()
            while self.children:
                # The parent was killed, so that nothing waits for results, and the lock of the output is free
                # for another run.
                if os.getppid() != self.asker:
                    raise KeyboardInterrupt
                nearest = min(child.deadline for child in self.children) - time.monotonic()
                for key, _ in self.chosen.select(min(max(0.0, nearest), LOOKS_UP)):
                    self._hear(key.data)
                for child in [child for child in self.children if child.deadline < time.monotonic()]:
                    seconds = self.request.timeout
                    self._lost(child, "timeout", f"timed out after {seconds} s")
        finally:
            for child in list(self.children):
                child.end()

    def _more(self) -> None:
        group = self._next()
        if group is not None:
            child = self.start(group, self.children)
            self.children.append(child)
            self.chosen.register(child.out, selectors.EVENT_READ, child)
            child.give(self.waiting[group].pop(), self.request.timeout)

    def _next(self) -> CompileGroup | None:
        """Return the group that most needs another child; None if no group benefits."""
        # A group whose children load the file gets another child only if enough points wait for it: the load
        # costs as much as several compiles.
        busy = [child.group for child in self.children]
        left = {group: len(waiting) for group, waiting in self.waiting.items() if waiting}
        worth = [
            group
            for group, count in left.items()
            if group not in busy or not group.loads or count > COMPILES_OF_A_LOAD * busy.count(group)
        ]
        return min(worth, key=lambda group: (busy.count(group), -left[group]), default=None)

    def _hear(self, child: CompileProcess) -> None:
        heard = os.read(child.out, 1 << 16)
        if not heard:
            self._lost(child, "crashed", "")
            return
        child.buffer += heard
        if child.buffer.endswith(b"\n"):
            row, child.buffer = row_of(CompiledRow, child.buffer), b""
            self.report(child.number, row)
            # A child stays with its group: another one would need another load of the file.
            if self.waiting[child.group]:
                child.give(self.waiting[child.group].pop(), self.request.timeout)
            else:
                self._gone(child)
                self._more()

    def _lost(self, child: CompileProcess, status: str, error: str) -> None:
        ended = self._gone(child)
        point = self.request.points[child.number]
        self.report(child.number, failed(point, status, error or ended, child.began))
        self._more()

    def _gone(self, child: CompileProcess) -> str:
        self.chosen.unregister(child.out)
        self.children.remove(child)
        return child.end()
