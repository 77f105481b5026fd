"""Compile one point: build Triton's source object, write each stage to a file, and explain a failure."""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import functools
import inspect
import json
import os
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from . import surgery
from .border import RequestRefusedError, decoded, encoded, nested
from .file_context import FileSurroundings, disassembled, keep_slot, read_slot, slot_of
from .load import LoadedKernel, content_of
from .messages import CompiledRow, PointRequest, PointsRequest, StageFile
from .stage import ASSEMBLED, check_gpu, ptxas_for, remarks
from .stubs import UnknownError

if TYPE_CHECKING:
    from .border import Table
    from .foreign import Backend, CacheManager, MlirModule
    from .load import Loader

ALIGNED = 16  # the hint that says: divisible by it


def attempt(
    request: PointsRequest, point: PointRequest, loaded: Loader, around: FileSurroundings
) -> CompiledRow:
    """Compile a point, and return its row; a failure of any kind is a row, too."""
    folder = os.path.join(request.output, point.id)
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "log")
    texts = [tool.stage for tool in around.disassemblers.values()]
    stages = [f"{request.kernel}.{stage}" for stage in [*request.stages, *texts]]
    # Files of an earlier run may be links to files elsewhere, which must not be written through.
    for name in ["log", "metadata.json", *stages]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    # MLIR and ptxas write to the descriptors, past Python's own streams.
    into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.dup2(into, 1)
    os.dup2(into, 2)
    os.close(into)
    began = time.monotonic()
    kernel = None
    operation = surgery.CompileOperation(point.surgery) if point.surgery is not None else None
    try:
        kernel = loaded(point.target)
        # While the file was loaded, an unknown value was a doubt, as it may concern another kernel. Now it is
        # this one.
        around.ledger.strict = True
        row = compile_point(request, point, kernel, around, operation)
    # ^C ends the run, and must not become one more point that failed.
    except KeyboardInterrupt:
        raise
    except UnknownError as error:
        row = failed(point, "failed", str(error), began)
    except RequestRefusedError as error:
        row = failed(point, "failed", "\n".join(filter(None, (str(error), error.refusal.why))), began)
        row = dataclasses.replace(row, loaded=kernel is not None or request.ir)
    except BaseException as error:  # noqa: BLE001 - SystemExit too: a failure of any kind is an answer
        traceback.print_exc()
        # Triton looks up the types of a signature in a table, so an unknown one is a bare KeyError.
        strange = isinstance(error, KeyError) and error.args[0] in point.signature.values()
        what = f"this Triton has no type {error}" if strange else message_of(error, kernel)
        row = failed(point, "failed", what, began)
    around.ledger.strict = False
    if operation:
        row = dataclasses.replace(row, passes=tuple(operation.passes))
    sys.stdout.flush()
    sys.stderr.flush()
    return dataclasses.replace(row, news=around.ledger.news(), reads=around.reads.news())


def failed(point: PointRequest, status: str, error: str, began: float) -> CompiledRow:
    """Return the row of a point that did not compile."""
    return dataclasses.replace(_row(point, status, time.monotonic() - began), error=error)


def _row(point: PointRequest, status: str, seconds: float) -> CompiledRow:
    """Return a row with what is known before the compile."""
    return CompiledRow(
        id=point.id,
        target=target_name(point),
        signature=point.signature,
        constexprs=point.constexprs,
        hints=point.hints,
        options=point.options,
        status=status,
        seconds=seconds,
        surgery=point.surgery,
    )


def target_name(point: PointRequest) -> str:
    """Return a target as the tool spells it: `cuda:90:32`."""
    return ":".join(map(str, point.target))


def compile_point(
    request: PointsRequest,
    point: PointRequest,
    loaded: LoadedKernel | None,
    around: FileSurroundings,
    operation: surgery.CompileOperation | None = None,
) -> CompiledRow:
    """Compile, write each stage to a file, and return the manifest's row."""
    import triton
    from triton.backends.compiler import GPUTarget

    target = GPUTarget(*point.target)
    if target.backend == "cuda":
        check_gpu(target.arch)
    options = {name: decoded(value) for name, value in point.options.items()}
    signature: dict[str, str] = {}
    constexprs: Table = {}
    source: Any = request.file
    if loaded:
        with around.reads.watched():  # a heuristic may import what it needs
            signature, constexprs = point.signature, complete(loaded, point)
        ranges = point.ranges if target.backend == "hip" else ()
        source = make_source(loaded, signature, constexprs, point.hints, ranges)
    ASSEMBLED.clear()
    if operation:
        operation.prepare()
    began = time.monotonic()
    compiled: Any = None
    stages_so_far: Table = {}
    stopped = contextlib.suppress(surgery.StoppedError)
    shared = shared_stages(request, point)
    placed = neutral_places(request.sent) if request.shared else contextlib.nullcontext()
    with counted(request.last, stages_so_far, shared) as times, surgery.operating(operation), stopped, placed:
        compiled = triton.compile(source, target=target, options=options)
    seconds = time.monotonic() - began
    # Only the whole compile shows that it never came to a pass. Its result then lacks a change that was
    # requested.
    if operation and request.last not in stages_so_far and operation.unmet():
        raise RequestRefusedError("pass", operation.unmet())
    metadata: Table = {}
    if compiled:
        # A GPUTarget and paths are in it, which JSON does not know.
        metadata = json.loads(json.dumps(compiled.metadata._asdict(), default=str))
        if not loaded:
            signature = {f"arg{key}": str(kind) for key, kind in compiled.src.signature.items()}
    if operation and not compiled and request.last not in stages_so_far:
        stages_so_far = operation.stages
    asm = compiled.asm if compiled else stages_so_far
    if shared and compiled:
        times.update(shared.seconds)
        # What was printed, such as a remark of a pass, could not be printed again.
        if not os.path.getsize(os.path.join(request.output, point.id, "log")):
            shared.keep(asm, times)
    metadata["target"] = target_name(point)
    printed = remarks()
    return dataclasses.replace(
        _row(point, "ok", seconds),
        signature=signature,
        constexprs=constexprs,
        stages=_written(request, os.path.join(request.output, point.id), asm, around),
        metadata=metadata,
        remarks=None if printed is None else tuple(printed),
        cpu_seconds=times,
        shared=tuple(shared.seconds) if shared else (),
    )


def _written(
    request: PointsRequest, folder: str, asm: Table, around: FileSurroundings
) -> dict[str, StageFile]:
    """Write the stages that the request keeps."""
    stages = {}
    ending = request.file.rpartition(".")[2]
    # A compile that begins with IR returns the stages after it, and readers expect the first one, too.
    if request.ir and ending not in asm:
        asm[ending] = content_of(request.file).decode()
    for name in request.stages:
        tool = around.disassemblers.get(name)
        text = tool.stage if tool else None
        if name not in asm or (request.keep and not {name, text} & set(request.keep)):
            continue
        content = asm[name]
        raw = content if isinstance(content, bytes) else content.encode()
        stages[name] = write(request, folder, name, raw)
        if tool and request.disassemble:
            read = disassembled(tool, os.path.join(request.output, stages[name].path))
            if read is not None:
                stages[tool.stage] = write(request, folder, tool.stage, read)
    return stages


def complete(loaded: LoadedKernel, point: PointRequest) -> Table:
    """Return the constants of a point, including those that heuristics compute."""
    constexprs = dict(point.constexprs)
    for name, kind in point.signature.items():
        if kind != "constexpr" or name in constexprs:
            continue
        try:
            known = {key: decoded(value) for key, value in constexprs.items()}
            constexprs[name] = encoded(loaded.heuristics[name](known))
        except KeyError as error:
            what = f"{name} is computed by @triton.heuristics, from {error}, which is not a constant here"
            raise RequestRefusedError("value", f"{what}: give it a value, {name}=...") from None
    return constexprs


def make_source(
    loaded: LoadedKernel,
    signature: dict[str, str],
    constexprs: Table,
    hints: dict[str, int],
    ranges: Iterable[str] = (),
) -> Any:
    """Return Triton's source object; Gluon's kernels have a class of their own."""
    # Up to 3.2 it takes `constants` and a descriptor, then `constexprs` and a dict (triton-lang/triton#5220).
    import triton
    from triton.compiler import ASTSource

    fn = loaded.fn
    if type(fn).__name__ == "GluonJITFunction":
        from triton.experimental.gluon._runtime import GluonASTSource as ASTSource
    names = list(fn.arg_names)

    def path(name: str) -> tuple[int, ...]:
        head, *rest = name.split(".")
        return (names.index(head), *map(int, rest))

    # An integer argument of 1 is a constant to Triton: its own `run` hands it to the compiler as one.
    ones = {name: 1 for name, hint in hints.items() if hint == 1}
    values = {name: decoded(value) for name, value in constexprs.items()}
    values.update(ones)
    if "constexprs" in inspect.signature(ASTSource.__init__).parameters:
        types_ = {name: "constexpr" if name in values else nested(kind) for name, kind in signature.items()}
        attrs = {path(name): [["tt.divisibility", 16]] for name, hint in hints.items() if hint == ALIGNED}
        for name in ranges:
            attrs.setdefault(path(name), []).append(["tt.pointer_range", 32])
        return ASTSource(
            fn=fn,
            signature=types_,
            constexprs={path(key): value for key, value in values.items()},
            attrs=attrs,
        )
    parts = sorted(name for name in values if "." in name) + [k for k, v in signature.items() if v[0] == "("]
    if parts:
        raise RequestRefusedError("version", f"Triton {triton.__version__} has no tuple types: {parts[0]}")
    kinds = {name: kind for name, kind in signature.items() if kind != "constexpr"}
    positions = {names.index(name): hint for name, hint in hints.items()}
    attrs = _descriptor(positions)
    if ranges and hasattr(attrs, "property_values"):  # 3.2; earlier ones have no ranges
        attrs.arg_properties["tt.pointer_range"] = sorted(map(names.index, ranges))
        attrs.property_values["tt.pointer_range"] = 32
    return ASTSource(fn=fn, signature=kinds, constants=values, attrs=attrs)


def _descriptor(hints: dict[int, int]) -> Any:
    """Return the AttrsDescriptor of 3.0 and 3.1, or that of 3.2, which moved (cd1cc2d54b)."""
    try:
        from triton.backends.compiler import AttrsDescriptor

        return AttrsDescriptor.from_hints(hints)
    except ImportError:
        from triton.compiler.compiler import AttrsDescriptor

        sixteen = {position for position, hint in hints.items() if hint == ALIGNED}
        return AttrsDescriptor(divisible_by_16=sixteen, equal_to_1=set(hints) - sixteen)


def write(request: PointsRequest, folder: str, stage: str, raw: bytes) -> StageFile:
    """Write one file, and return its path, size and digest."""
    path = os.path.join(folder, f"{request.kernel}.{stage}")
    # `x` does not follow a link, and `attempt` has removed what an earlier run left.
    with open(path, "xb") as file:
        file.write(raw)
    return StageFile(os.path.relpath(path, request.output), len(raw), sha256(raw).hexdigest())


def message_of(error: BaseException | None, loaded: LoadedKernel | None) -> str:
    """Return the compiler's own message, and its position in the file."""
    text = ""
    # A CompilationError of a called function is the cause of one of its caller. A chain may be a circle.
    for _ in range(20):
        if error is None:
            break
        part = str(error).strip()
        node = getattr(error, "node", None)
        if loaded and node is not None and getattr(error, "src", None) == getattr(loaded.fn, "src", ""):
            part += f"\nat {place_of(loaded.fn.fn, node.lineno)}"
        if not part or part not in text:
            known = type(error).__name__.endswith("CompilationError")
            text += f"{part}\n" if known else f"{type(error).__name__}: {part}\n"
        error = error.__cause__
    return text.strip()


def place_of(function: Callable[..., Any], number: int) -> str:
    """Return FILE:LINE of a line of a function; Triton counts lines from the `def`."""
    lines, first = inspect.getsourcelines(function)
    head = next((index for index, line in enumerate(lines) if line.strip().startswith("def ")), 0)
    return f"{inspect.getsourcefile(function)}:{first + head + number - 1}"


REST = "rest"  # the front end, which makes the first IR, and Triton's caches


@contextlib.contextmanager
def counted(
    last: str, stages_so_far: Table, shared: SharedStages | None = None
) -> Iterator[dict[str, float]]:
    """Measure the compiles in the body: yield CPU seconds by stage, for stages that ran to their end.

    Args:
        last: the stage after which a compile ends with a `surgery.StoppedError`; empty for none.
        stages_so_far: gets the stages up to that one, by their names.
        shared: knows what stages made before; None if they all run.
    """
    # CPU time, ptxas and other programs included, does not grow with the load of the machine, as time on the
    # clock would while other points are compiled.
    import triton.backends

    seconds: dict[str, float] = {}
    kinds = [backend.compiler for backend in getattr(triton.backends, "backends", {}).values()]
    before = [kind.add_stages for kind in kinds]
    for kind in kinds:
        kind.add_stages = _counted_stages(kind.add_stages, seconds, last, stages_so_far, shared)
    began = _now()
    try:
        yield seconds
    finally:
        seconds[REST] = round(_now() - began - sum(seconds.values()), 3)
        for kind, real in zip(kinds, before):
            kind.add_stages = real


def _now() -> float:
    return sum(os.times()[:4])


def _counted_stages(
    real: Callable[..., Any],
    seconds: dict[str, float],
    last: str,
    stages_so_far: Table,
    shared: SharedStages | None,
) -> Callable[..., Any]:
    @functools.wraps(real)
    def add_stages(self: Backend, stages: Table, *arguments: Any, **named: Any) -> Any:
        result = real(self, stages, *arguments, **named)
        for name, make in list(stages.items()):
            stages[name] = functools.partial(_counted_stage, seconds, name, make)
        if shared:
            shared.around(stages, arguments[0])
        if last in stages:
            names = list(stages)
            for name in names[: names.index(last) + 1]:
                stages[name] = functools.partial(_kept_stage, stages_so_far, last, name, stages[name])
        return result

    return add_stages


def _counted_stage(seconds: dict[str, float], name: str, make: Callable[..., Any], *arguments: Any) -> Any:
    began = _now()
    output = make(*arguments)
    seconds[name] = round(_now() - began, 3)
    return output


def _kept_stage(stages_so_far: Table, last: str, name: str, make: Callable[..., Any], *arguments: Any) -> Any:
    """Run a stage, and end the compile if it is the last one."""
    output = make(*arguments)
    # As text at once: the next stage changes the very module.
    stages_so_far[name] = output if isinstance(output, (str, bytes)) else str(output)
    if name == last:
        raise surgery.StoppedError(last)
    return output


# Variables that change what a Triton compiles begin with one of these.
_STEERING = (
    "TRITON_",
    "MLIR_",
    "LLVM_",
    "DISABLE_",
    "USE_",
    "NVPTX_",
    "AMDGCN_",
    "ALLOW_",
    "PTXAS_",
    "CUDA_",
)
_OWN = {"TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_ALWAYS_COMPILE"}  # set by this worker, for each run
_TEXT = ("cubin",)  # the stages that programs make of a text, and libtriton has no part in
_SHARED = 1  # another version of the tool that keeps something else has another number
_SLOTS = 16384  # files of the memory, each of some 50 KB


def shared_stages(request: PointsRequest, point: PointRequest) -> SharedStages | None:
    """Return the memory of a compile; None if its stages have to run."""
    # A changed pipeline gives other code of the same IR, and one that begins with IR has other stages.
    if not request.shared or point.surgery is not None or request.last or request.ir:
        return None
    # A kernel's file may set this hook, since 3.5, to replace stages by its own.
    runtime = getattr(sys.modules.get("triton.knobs"), "runtime", None)
    if getattr(runtime, "add_stages_inspection_hook", None) is not None:
        return None
    return SharedStages(request.shared, point)


class SharedStages:
    """The outputs of stages by their input: what a compiler made of it once, it makes again.

    So the kernels that a change of the front end leaves alone cost their front end only, and PTX that two
    compilers have in common is assembled once.

    Attributes:
        seconds: CPU seconds of the stages that did not run, as they were when they ran.
    """

    def __init__(self, folder: str, point: PointRequest) -> None:
        self.seconds: dict[str, float] = {}
        self._folder, self._target = folder, point.target
        self._names: list[str] = []
        self._options = ""
        self._known: Table = {}
        self._unknown: list[tuple[str, bytes, Table]] = []  # stage, key, metadata before it
        self._metadata: Table = {}

    def around(self, stages: Table, options: object) -> None:
        """Replace the stages after the first one by those that look for their output first."""
        self._names, self._options = list(stages), _neutral(repr(options))
        for name in self._names[1:]:
            stages[name] = functools.partial(self._stage, name, stages[name])

    def keep(self, asm: Table, seconds: dict[str, float]) -> None:
        """Keep the outputs of a compile for the inputs that were not known."""
        for first, key, before in self._unknown:
            names = self._names[self._names.index(first) :]
            if any(name not in asm for name in names):
                continue
            changes = {name: value for name, value in self._metadata.items() if before.get(name) != value}
            content = {
                "stages": {name: _as_json(asm[name]) for name in names},
                "seconds": {name: seconds.get(name, 0.0) for name in names},
                "metadata": changes,
                "assembled": ASSEMBLED,
            }
            # An object that JSON does not know would come back as something else.
            with contextlib.suppress(TypeError, ValueError):
                keep_slot(slot_of(self._folder, key, _SLOTS), key, json.dumps(content).encode())

    def _stage(self, name: str, make: Callable[..., Any], source: MlirModule, metadata: Table) -> Any:
        if not self._known and (name == self._names[1] or name in _TEXT):
            self._metadata = metadata
            key = self._key(name, str(source), metadata)
            self._known = self._read(key)
            if self._known:
                metadata.update(self._known["metadata"])
                ASSEMBLED.extend(self._known["assembled"])
            else:
                self._unknown.append((name, key, dict(metadata)))
        if not self._known:
            return make(source, metadata)
        self.seconds[name] = self._known["seconds"][name]
        content = self._known["stages"][name]
        return content if isinstance(content, str) else base64.b64decode(content[0])

    def _read(self, key: bytes) -> Table:
        with contextlib.suppress(ValueError, zlib.error):
            return dict(json.loads(read_slot(slot_of(self._folder, key, _SLOTS), key) or b"{}"))
        return {}

    def _key(self, name: str, source: str, metadata: Table) -> bytes:
        own = {key: str(value) for key, value in metadata.items() if key != "hash"}
        steering = {
            key: value
            for key, value in sorted(os.environ.items())
            if key.startswith(_STEERING) and key not in _OWN
        }
        around = [self._options, self._target, steering, compiler_identity(name in _TEXT, self._target)]
        text = _neutral(json.dumps([_SHARED, name, around, own], sort_keys=True))
        return sha256(f"{text}\n{source}".encode()).digest()


def _as_json(content: str | bytes) -> Any:
    return [base64.b64encode(content).decode()] if isinstance(content, bytes) else content


def _neutral(text: str) -> str:
    """Replace the folder of Triton in a text, which tells nothing about what it compiles."""
    import triton

    # With the separator: `triton_kernels` lies beside it.
    return text.replace(os.path.join(os.path.dirname(triton.__file__), ""), os.path.join("triton", ""))


@functools.lru_cache(maxsize=None)
def compiler_identity(only_ptxas: bool, target: tuple[str, int | str, int]) -> str:
    """Return a digest of the files that make the stages after the first.

    Args:
        only_ptxas: of a stage that libtriton has no part in.
        target: of the compile.
    """
    import triton

    origin = os.path.dirname(triton.__file__)
    texts = [os.path.join(origin, name) for name in ("compiler/compiler.py", "knobs.py")]
    others = [] if only_ptxas else [os.path.join(origin, "_C", name) for name in os.listdir(f"{origin}/_C")]
    # An editable install has a link for each backend, to third_party/NAME/backend of its checkout.
    for folder, _, names in os.walk(os.path.join(origin, "backends"), followlinks=True):
        paths = [os.path.join(folder, name) for name in names]
        texts += [path for path in paths if path.endswith(".py" if only_ptxas else (".py", ".bc"))]
    ptxas = ptxas_for(int(target[1])) if target[0] == "cuda" else ""
    digest = sha256()
    for path in sorted(filter(os.path.isfile, texts)):
        digest.update(f"{os.path.relpath(path, origin)}\n".encode() + content_of(path))
    # Of large files the size and time, as ccache does: commits with the same libraries have links to them.
    # And the inode: where builds are reproducible, as those of Nix, every file has the same time.
    for path in sorted(filter(os.path.isfile, [*others, ptxas])):
        status = os.stat(path)
        facts = status.st_size, status.st_mtime_ns, status.st_dev, status.st_ino
        digest.update(f"{os.path.basename(path)} {facts}\n".encode())
    return digest.hexdigest()


@contextlib.contextmanager
def neutral_places(sent: tuple[str, ...] = ()) -> Iterator[None]:
    """Let debug information name Triton's own files relative to its folder.

    A function of Triton that a kernel calls, such as `tl.sum`, has its path in the IR and in the binary: two
    Tritons in two folders would never compile the same.

    Args:
        sent: see `PointsRequest`.
    """
    from triton.compiler.code_generator import CodeGenerator

    real = CodeGenerator.__init__

    @functools.wraps(real)
    def init(self: object, *arguments: Any, **named: Any) -> None:
        if isinstance(named.get("file_name"), str):
            named["file_name"] = _neutral(named["file_name"].replace(*sent) if sent else named["file_name"])
        real(self, *arguments, **named)

    CodeGenerator.__init__ = init
    try:
        yield
    finally:
        CodeGenerator.__init__ = real


def write_plainly() -> None:
    """Let Triton's cache, which is of this run alone, write its files without a folder for each of them.

    Triton makes and removes one for each of some eight files of a compile: on a disk, most of the time.
    """
    manager: Any = getattr(sys.modules.get("triton.runtime.cache"), "FileCacheManager", None)
    if not hasattr(manager, "_make_path"):
        return
    real = manager.put

    @functools.wraps(real)
    def put(self: CacheManager, content: object, filename: str, *more: Any, **named: Any) -> str:
        if not self.cache_dir:  # which is an error
            return str(real(self, content, filename, *more, **named))
        path = str(self._make_path(filename))
        # Two points that turn out the same have the same path, and may be compiled at once.
        partial = f"{path}.{os.getpid()}"
        # A text as Triton writes it, which reads it again.
        with open(partial, "wb" if isinstance(content, bytes) else "w") as file:
            file.write(content if isinstance(content, bytes) else str(content))
        os.replace(partial, path)
        return path

    manager.put = put
