"""Fill a cache of Triton's without a GPU, and record which entries a program looks up.

The JIT itself makes the keys: `JITFunction.run` gets stand-ins for the arguments of a recorded launch, under
a driver that reports the target, and Triton's own `compile` writes the entry. The C extensions are made by
the code of Triton's driver, too.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib
import inspect
import itertools
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from .border import (
    EXIT_REFUSED,
    RequestRefusedError,
    decoded,
    nested,
    read_request,
    refusal_text,
    request_of,
    text_of,
)
from .compile_point import ALIGNED, complete, make_source, message_of
from .file_context import FileSurroundings, prepare
from .launches import specialized_kernel
from .load import LoadedKernel, load_checked
from .messages import (
    CacheFactsRequest,
    CacheKey,
    Fill,
    FilledRow,
    FillHead,
    FillRecord,
    FillRequest,
    LookedUpRow,
    LookUpRequest,
    NamedKernelRequest,
    PointRequest,
    SpecializedKernel,
)
from .processes import die_with_parent, in_child, interrupt_with_parent
from .stage import check_gpu
from .stubs import ImportWatcher

if TYPE_CHECKING:
    import types

    from .border import Table
    from .foreign import AstSource, CacheManager, Compiled, GpuTarget, TritonValue

_LINKAGES = ("ELF", "")  # what `platform.architecture` reports with the program `file`, and without it
_BOOLEANS = ("i1", "u1")
_MANY = 3  # annotated integers of which each combination of 1 and another number is compiled
_NVIDIA = "triton.backends.nvidia.driver"
# No call sets them, but they would keep the JIT from writing an entry, or let it write another one.
_IN_THE_WAY = ("TRITON_ALWAYS_COMPILE", "TRITON_KERNEL_OVERRIDE", "TRITON_INTERPRET")


class DifferentKeyError(Exception):
    """The JIT resolves the stand-ins to something else than what was recorded."""


class _BuiltError(BaseException):
    """An extension is in the cache: it is not loaded, since that would take a GPU's driver."""


class _DType(str):
    """A dtype by Triton's name for it, which the JIT reads as it does torch's."""

    __slots__ = ()

    @property
    def itemsize(self) -> int:
        """Bytes."""
        bits = re.search(r"\d+", self)
        return max(1, int(bits[0]) // 8) if bits else 1


class _Pointer:
    """A tensor, as far as the JIT looks at one."""

    def __init__(self, dtype: str, *, is_aligned: bool, is_near: bool) -> None:
        # Triton's releases from 3.0 on read a dtype by the last word of its text, and take its own names too.
        self.dtype = _DType(dtype)
        self._address = ALIGNED if is_aligned else ALIGNED + 1
        self._range = 0 if is_near else 1 << 40
        self.shape: list[int] = []

    def data_ptr(self) -> int:
        """Return an address that is aligned, or not."""
        return self._address

    def ptr_range(self) -> int:
        """Return the bytes of its memory: for AMD, 32-bit offsets reach it, or not."""
        return self._range


def stand_in(kind: TritonValue, path: str, point: PointRequest, constexprs: Table) -> Any:
    """Return an argument that the JIT specialises as the recorded launch did.

    Args:
        kind: the type of the parameter; a tuple of them for a tuple.
        path: the parameter, or `x.1` for a part of a tuple.
        point: the types and hints.
        constexprs: the constants by path.

    Raises:
        DifferentKeyError: no argument has this type.
    """
    # First, since an argument that is None or 1 has a type as well.
    if path in constexprs:
        return decoded(constexprs[path])
    if isinstance(kind, tuple):
        parts = [stand_in(part, f"{path}.{number}", point, constexprs) for number, part in enumerate(kind)]
        return tuple(parts)
    hint = point.hints.get(path)
    if kind.startswith("*"):
        # A pointer to constants is one by its annotation; the tensor itself has an ordinary dtype.
        dtype = re.sub(r"^k(?=[a-z])", "", kind[1:])
        return _Pointer(dtype, is_aligned=hint == ALIGNED, is_near=path in point.ranges)
    return _descriptor(kind) if kind.startswith("tensordesc<") else _number(kind, path, hint)


def _number(kind: str, path: str, hint: int | None) -> float:
    if kind in ("i1", "u1"):
        return True
    # A fraction: an integer would be given to the JIT as one.
    if re.fullmatch(r"b?fp?\d+", kind):
        return 1.5
    if not re.fullmatch(r"[iu]\d+", kind):
        raise DifferentKeyError(f"no argument of the type {kind} can be made for {path}")
    if hint == 1:
        return 1
    # The JIT chooses the type by the value, unless the parameter is annotated.
    base = {"i64": 1 << 40, "u64": 1 << 63}.get(kind, ALIGNED)
    # An odd number, but not 1, which would become a constant.
    return base if hint == ALIGNED else base + 3


def _descriptor(kind: str) -> Any:
    match = re.fullmatch(r"tensordesc<(\w+)\[([\d, ]+)\]>", kind)
    if match is None:
        raise DifferentKeyError(f"no argument of the type {kind} can be made")
    # Since 3.4. Its checks want aligned memory, and strides that are multiples of 16 bytes.
    module: Any = importlib.import_module("triton.tools.tensor_descriptor")
    block = [int(size) for size in match[2].split(",")]
    base = _Pointer(match[1], is_aligned=True, is_near=False)
    base.shape = [256 * size for size in block]
    strides = [1]
    for size in reversed(base.shape[1:]):
        strides.insert(0, strides[0] * size)
    return module.TensorDescriptor(base, base.shape, strides, block)


def fill(request_path: str) -> int:
    """Write the entries of all kernels of a request into its cache."""
    interrupt_with_parent()
    request = read_request(FillRequest, request_path)
    for name in _IN_THE_WAY:
        os.environ.pop(name, None)
    os.environ["TRITON_CACHE_DIR"] = request.cache
    # The compiler's own temporary files, and the stub of libcuda.
    scratch = os.path.dirname(request.results)
    os.environ["TMPDIR"] = scratch
    tempfile.tempdir = None
    with open(request.results, "w", encoding="utf-8") as results:
        try:
            around, head, extensions = _ready(request, scratch)
        except RequestRefusedError as error:
            results.write(refusal_text(error.refusal) + "\n")
            return EXIT_REFUSED
        results.write(text_of(head) + "\n")
    # By file, which is loaded once for all of its kernels: it may import torch.
    files: dict[str, list[NamedKernelRequest]] = {}
    for kernel in request.kernels:
        files.setdefault(kernel.file, []).append(kernel)
    # Largest first, so that no process is left with a long file at the end.
    groups = sorted(files.values(), key=lambda group: -sum(len(kernel.points) for kernel in group))
    pids = [
        _start(request, groups[number :: request.jobs], around, extensions) for number in range(request.jobs)
    ]
    for pid in pids:
        os.waitpid(pid, 0)
    return 0


def _ready(request: FillRequest, scratch: str) -> tuple[FileSurroundings, FillHead, Extensions | None]:
    """Import Triton, and build the extension that all launches need."""
    try:
        from triton.compiler import compiler
        from triton.runtime import cache
    except ImportError as error:
        what = "this interpreter cannot import Triton 3.0 or later"
        raise RequestRefusedError("triton", what, why=str(error)) from None
    # A compile elsewhere has a cache of its own, and a shorter key; here the key is the point.
    owners = [module for module in (compiler, cache) if hasattr(module, "triton_key")]
    keys = [module.triton_key for module in owners]
    around = prepare(request.kernels[0])
    for module, key in zip(owners, keys):
        module.triton_key = key
    # The digest of libtriton.so takes a second, and is made before the processes part.
    target = target_of(request.kernels[0].points[0])
    if target.backend == "cuda":
        check_gpu(int(target.arch))
    around.become(target)
    extensions: Extensions | None = None
    why = request.without_extensions or ("" if target.backend == "cuda" else "NVIDIA's only can be built")
    shared: tuple[str, ...] = ()
    if not why:
        try:
            extensions = Extensions(request, scratch)
            # Before the fork, too: all launches need it, and gcc takes a second for it.
            shared = extensions.of_driver()
        except _NoExtensionError as error:
            extensions, why = None, str(error)
    head = dataclasses.replace(
        facts(target),
        extensions=shared,
        per_kernel=bool(extensions and extensions.per_kernel),
        libcuda=tuple(extensions.dirs) if extensions else (),
        without=why,
    )
    if request.folder:
        head = dataclasses.replace(head, folder=request.folder)
    return around, head, extensions


def facts(target: GpuTarget) -> FillHead:
    """Return what a cache is good for, without extensions."""
    import triton

    return FillHead(
        triton=triton.__version__,
        key=triton_digest(),
        python=sys.version.split()[0],
        suffix=str(sysconfig.get_config_var("EXT_SUFFIX")),
        folder=os.path.dirname(os.path.abspath(triton.__file__)),
        backend=str(_backend(target).hash()),
        variables=_variables(),
        folder_counts=_folder_counts(),
    )


def _folder_counts() -> bool:
    """Report whether the keys of C extensions depend on the folders that the compiler is given."""
    try:
        build = importlib.import_module("triton.runtime.build")
    except ImportError:  # setuptools, which releases up to 3.2 import there
        return False
    return hasattr(build, "_get_cache_manager")


def print_facts(request_text: str) -> int:
    """Print what a cache is good for that this interpreter fills."""
    request = request_of(CacheFactsRequest, request_text)
    from triton.backends.compiler import GPUTarget

    print(text_of(facts(GPUTarget(*request.target))))
    return 0


def check_record(path: str) -> int:
    """Print why this interpreter would not use what a cache was filled with last; return 1 if it would not.

    An image runs this when it is built: it has neither the rest of the tool nor a GPU.

    Args:
        path: the record, in the cache.
    """
    try:
        from triton.backends.compiler import GPUTarget
    except ImportError as error:
        print(f"{sys.executable} cannot import Triton: {error}")
        print("name the Python that can: docker build --build-arg PYTHON=...")
        return 1
    fill = read_request(FillRecord, path).fills[-1]
    backend, arch, warp_size = fill.target.split(":")
    here = facts(GPUTarget(backend, int(arch) if arch.isdigit() else arch, int(warp_size)))
    reasons = list(unfit(fill, os.path.dirname(os.path.abspath(path)), here))
    if reasons:
        print("\n".join(("programs would compile again what is in the cache:", *reasons)))
        print(f"fill it by Triton {here.triton} for Python {here.python}, --triton-at {here.folder}")
        return 1
    print(f"the cache is valid for Triton {here.triton} in {here.folder}")
    return 0


def unfit(fill: Fill, cache: str, here: FillHead) -> Iterator[str]:
    """Yield the reasons why a Triton would not use what a run has filled.

    Args:
        fill: the run.
        cache: where the cache is.
        here: what the same Triton would fill today.
    """
    head = fill.head
    if not _same_folder(fill.home, cache):
        yield f"its indexes name files in {fill.home}"
    if head.key != here.key:
        yield f"Triton {head.triton} was another build: {head.folder}"
    if head.backend != here.backend:
        yield f"ptxas or the architecture: {' '.join(head.backend.split())}"
    for name in sorted(dict.fromkeys((*head.variables, *here.variables))):
        if head.variables.get(name) != here.variables.get(name):
            yield f"{name} was {head.variables.get(name, 'not set')}"
    # Kernels do not depend on these, so a difference costs a build of the extensions only.
    if head.extensions and head.suffix != here.suffix:
        yield f"its C extensions are for another Python: {head.suffix}"
    if head.extensions and head.folder_counts and not _same_folder(head.folder, here.folder):
        yield f"its C extensions are for Triton in {head.folder}, not in {here.folder}"


def _same_folder(path: str, other: str) -> bool:
    # A cache may be reached through a link: /home is one on some machines.
    try:
        return os.path.realpath(path) == os.path.realpath(other)
    except ValueError:  # of a record that somebody else wrote: a name that no folder can have
        return False


def target_of(point: PointRequest) -> GpuTarget:
    """Return Triton's target of a point."""
    from triton.backends.compiler import GPUTarget

    target: GpuTarget = GPUTarget(*point.target)
    return target


def _start(
    request: FillRequest,
    groups: list[list[NamedKernelRequest]],
    around: FileSurroundings,
    extensions: Extensions | None,
) -> int:
    """Start a process that fills the entries of some files; return its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        die_with_parent()
        for group in groups:
            _fill_file(request, group, around, extensions)
    except BaseException:  # noqa: BLE001 - a full disk, say: the rows that are missing tell
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _fill_file(
    request: FillRequest,
    group: list[NamedKernelRequest],
    around: FileSurroundings,
    extensions: Extensions | None,
) -> None:
    """Fill the entries of a file's kernels, in a process of its own: the file does what it likes there."""
    results = os.open(request.results, os.O_WRONLY | os.O_APPEND)

    def report(row: FilledRow) -> None:
        # At once and whole: other processes write to the same file.
        os.write(results, (text_of(row) + "\n").encode())
        print(f"{row.name} {row.point}: {row.status}", flush=True)

    def act() -> None:
        watch = CompileWatch(_pass_on)
        for kernel in group:
            for row in _filled(kernel, around, extensions, watch):
                report(row)

    points = [(kernel.name, point.id) for kernel in group for point in kernel.points]
    answer = in_child(act, f"{request.results}.{os.getpid()}.log", request.timeout * len(points))
    if answer["status"] != "ok":
        # For those that have no row yet: a reader takes the first row of a point.
        for name, point_id in points:
            report(FilledRow(name, point_id, "failed", str(answer["error"])))
    os.close(results)


def _filled(
    kernel: NamedKernelRequest,
    around: FileSurroundings,
    extensions: Extensions | None,
    watch: CompileWatch,
) -> Iterator[FilledRow]:
    """Yield a row for each point of a kernel."""
    around.renew(kernel)
    loaded: LoadedKernel | None = None
    error: BaseException | None = None
    # What the file prints goes to the log of this process: nothing reads its standard output.
    try:
        loaded = load_checked(kernel, around)
    except BaseException as refused:  # noqa: BLE001 - whatever the file does
        error = refused
    for point in kernel.points:
        began = time.monotonic()
        row = FilledRow(kernel.name, point.id, "failed", _said(error, None) if error else "")
        more: list[FilledRow] = []
        if loaded is not None:
            # From here on an unknown value would become a part of the code, and so of the key.
            around.ledger.strict = True
            try:
                row, *more = _fill_point(kernel.name, point, loaded, extensions, watch)
            except DifferentKeyError as different:
                row = FilledRow(kernel.name, point.id, "different", str(different))
            except KeyboardInterrupt:
                raise
            except BaseException as failed:  # noqa: BLE001 - a compiler's failure is an answer
                traceback.print_exc()
                row = FilledRow(kernel.name, point.id, "failed", _said(failed, loaded))
            around.ledger.strict = False
        yield dataclasses.replace(row, seconds=time.monotonic() - began)
        yield from more


def _said(error: BaseException, loaded: LoadedKernel | None) -> str:
    if isinstance(error, RequestRefusedError):
        return "\n".join(filter(None, (str(error), error.refusal.why)))
    return message_of(error, loaded)


def _fill_point(
    name: str, point: PointRequest, loaded: LoadedKernel, extensions: Extensions | None, watch: CompileWatch
) -> list[FilledRow]:
    """Let the JIT compile a kernel for the arguments of a launch, and build its launcher.

    Returns:
        A row, and one more for each other entry that the JIT looks up for the same types and hints.
    """
    constexprs = complete(loaded, point)
    target = target_of(point)
    ranges = point.ranges if target.backend == "hip" else ()
    expected = specialized_kernel(
        make_source(loaded, point.signature, constexprs, point.hints, ranges), target, {}, _ignore
    )
    fn = loaded.fn
    names = list(fn.arg_names)
    kinds = inspect.signature(fn.fn).parameters
    # By position where it can be: a parameter may be called `grid`, as an argument of `run` is.
    keyword = {key for key in names if kinds[key].kind is inspect.Parameter.KEYWORD_ONLY}
    options = {key: decoded(value) for key, value in point.options.items()}
    compiles: list[tuple[CacheKey, Any]] = []

    def watched(src: AstSource, target: GpuTarget, options: Table, call: Callable[[], Any]) -> Any:
        # Before the compile: an entry under another key would be of no use, and nobody would notice.
        resolved = specialized_kernel(src, target, {}, _ignore)
        if difference := _difference(expected, resolved):
            raise DifferentKeyError(difference)
        key = cache_key(src, target, options)
        compiled = call()
        compiles.append((key, compiled))
        return compiled

    fn.pre_run_hooks = []  # the user's code, which may look at the arguments
    watch.act = watched

    def entry(ones: tuple[str, ...]) -> FilledRow:
        hinted = dataclasses.replace(point, hints={**point.hints, **dict.fromkeys(ones, 1)})
        values = {key: stand_in(nested(point.signature[key]), key, hinted, constexprs) for key in names}
        compiles.clear()
        fn.run(
            *[values[key] for key in names if key not in keyword],
            grid=(1,),
            warmup=True,
            **{key: values[key] for key in names if key in keyword},
            **options,
        )
        if not compiles:
            raise DifferentKeyError("the JIT compiled nothing for these arguments")
        key, compiled = compiles[-1]
        launcher: tuple[str, ...] = ()
        problem = ""
        try:
            launcher = extensions.of_kernel(compiled) if extensions else ()
        except _NoExtensionError as error:
            # The kernel itself is there: it is of use without its launcher.
            problem = f"no launcher: {error}"
        return FilledRow(name, point.id, "ok", problem, entry_of(compiled), key, launcher)

    rows = [entry(())]
    annotated = [key for key in names if _may_be_1(key, point, loaded, constexprs)]
    for ones in _subsets(annotated[:_MANY]):
        # Releases before 3.3 make a constant of each 1, which a list has as a launch of its own; and where
        # the value of a parameter does not count, the JIT looks up no other entry.
        try:
            row = entry(ones)
        except DifferentKeyError:
            continue
        if all(row.entry != other.entry for other in rows):
            rows.append(row)
    if annotated[_MANY:]:
        problem = f"not filled for launches where {' or '.join(annotated[_MANY:])} is 1"
        rows[0] = dataclasses.replace(rows[0], error="; ".join(filter(None, (rows[0].error, problem))))
    return rows


def _may_be_1(key: str, point: PointRequest, loaded: LoadedKernel, constexprs: Table) -> bool:
    """Report whether a parameter's value may have been 1, although it is recorded as no constant.

    An annotation such as `n: tl.int64` keeps the type of a 1, since 3.3; but a 1 has no attributes, where
    other numbers have an empty list of them, and that counts in the key: `create_function_from_signature`
    and `_pack_args` in python/triton/runtime/jit.py.
    """
    if key in constexprs or key in point.hints or not re.fullmatch(r"[iu]\d+", point.signature[key]):
        return False
    annotations = {param.name: getattr(param, "annotation", "") for param in loaded.fn.params}
    return point.signature[key] not in _BOOLEANS and bool(annotations[key])


def _subsets(names: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield the subsets of some names, but for the empty one."""
    for count in range(1, len(names) + 1):
        yield from itertools.combinations(names, count)


def _pass_on(_src: AstSource, _target: GpuTarget, _options: Table, call: Callable[[], Any]) -> Any:
    return call()


def _ignore(_text: str) -> None:
    pass


def _difference(expected: SpecializedKernel, resolved: SpecializedKernel) -> str:
    """Say which part of a kernel's specialization differs; empty if none does."""
    for part in ("signature", "constexprs", "hints", "ranges"):
        first, second = getattr(expected, part), getattr(resolved, part)
        if first == second:
            continue
        if not isinstance(first, dict):
            return f"{part}: recorded {list(first)}, but the JIT makes {list(second)} of it"
        for name in dict.fromkeys([*first, *second]):
            if part == "signature" and _means_same(name, expected, resolved):
                continue
            if first.get(name) != second.get(name):
                recorded, now = first.get(name, "nothing"), second.get(name, "nothing")
                return f"{part} of {name}: recorded {recorded}, but the JIT makes {now} of it"
    return ""


def _means_same(name: str, expected: SpecializedKernel, resolved: SpecializedKernel) -> bool:
    """Report whether two types of a parameter are the same, as releases of Triton spell them."""
    # Up to 3.2 None has the type of a pointer, and is a constant as well.
    if name in expected.constexprs and name in resolved.constexprs:
        return True
    # A bool is `i1` up to 3.2, and `u1` since: a list may be from a capture with another release.
    kinds = (expected.signature.get(name), resolved.signature.get(name))
    return all(kind in _BOOLEANS for kind in kinds)


class CompileWatch:
    """A function that is called in place of each compile of the JIT, with what calls the real one.

    Attributes:
        act: that function; it gets Triton's source object, the target, the options, and the call.
    """

    def __init__(self, act: Callable[..., Any]) -> None:
        """Replace `compile` for the rest of the process."""
        import triton
        from triton.compiler import compiler

        # Once: a JITFunction keeps the `compile` that it has found at its first launch.
        self.act = act
        real = compiler.compile

        def compile_(
            src: AstSource, target: GpuTarget | None = None, options: Table | None = None, **more: Any
        ) -> Any:
            call = functools.partial(real, src, target=target, options=options, **more)
            if not hasattr(src, "fn"):  # IR of a file
                return call()
            target = target or triton.runtime.driver.active.get_current_target()
            return self.act(src, target, dict(options or {}), call)

        # The JIT imports it from one of these, a program from another.
        for module in (triton, triton.compiler, compiler):
            vars(module)["compile"] = compile_


def entry_of(compiled: Compiled) -> str:
    """Return the name of the entry that a compiled kernel was read from."""
    from triton.runtime import cache

    # How the digest becomes the name of a folder differs from release to release.
    manager: Any = cache.get_cache_manager(compiled.hash)
    return os.path.basename(getattr(manager, "cache_dir", None) or str(compiled.hash))


def cache_key(src: AstSource, target: GpuTarget, options: Table) -> CacheKey:
    """Return the parts of the key by which Triton looks a kernel up."""
    backend = _backend(target)
    # As `compile` itself does: options of the source, such as a number of warps in IR, win.
    parsed = vars(backend.parse_options({**options, **src.parse_options()}))
    return CacheKey(
        kernel=specialized_kernel(src, target, {}, _ignore),
        source=str(src.fn.cache_key),
        constants={str(name): _plain(value) for name, value in src.constants.items()},
        options={name: _option(name, value) for name, value in sorted(parsed.items())},
        backend=str(backend.hash()),
        triton=triton_digest(),
        variables=_variables(),
    )


def _plain(value: TritonValue) -> str:
    # A function as a constant counts by its source, as in `ASTSource.hash`.
    return str(getattr(value, "cache_key", value))


def _option(name: str, value: TritonValue) -> str:
    # Files count by their content: `options.hash` of the backends does the same.
    if name == "extern_libs":
        return str([(library, _file_digest(path)) for library, path in value or ()])
    return str(value)


@functools.lru_cache(maxsize=None)
def _file_digest(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return ""


@functools.lru_cache(maxsize=None)
def _backend_of(backend: str, arch: int | str, warp_size: int) -> Any:
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    return make_backend(GPUTarget(backend, arch, warp_size))


def _backend(target: GpuTarget) -> Any:
    return _backend_of(target.backend, target.arch, target.warp_size)


def _variables() -> dict[str, str]:
    """Return the environment variables that count in a key."""
    from triton._C.libtriton import get_cache_invalidating_env_vars

    return {str(name): str(value) for name, value in get_cache_invalidating_env_vars().items()}


@functools.lru_cache(maxsize=None)
def triton_digest() -> str:
    """Return a digest of the part of a key that stands for Triton: its files, and libtriton."""
    from triton.compiler import compiler
    from triton.runtime import cache

    owner: Any = compiler if hasattr(compiler, "triton_key") else cache
    return hashlib.sha256(owner.triton_key().encode()).hexdigest()


def _moved(folders: object, old: str, new: str) -> Any:
    """Return a list of folders with the one at the start of each exchanged; anything else stays."""
    # Triton's releases hand lists of folders in other places: what is no list is a name or a language.
    if not isinstance(folders, list):
        return folders
    return [new + path[len(old) :] if path.startswith(old) else path for path in folders]


class _NoExtensionError(Exception):
    """An extension cannot be built here."""


class Extensions:
    """The C extensions of NVIDIA's driver, which Triton builds at a program's first launches.

    Attributes:
        dirs: folders of libcuda.so.1 on the machine where the cache will be used.
        per_kernel: each signature has an extension of its own, its launcher: Triton up to 3.6 or so.
    """

    def __init__(self, request: FillRequest, scratch: str) -> None:
        self._cache = request.cache
        try:
            self._module: Any = importlib.import_module(_NVIDIA)
            self._build: Any = importlib.import_module("triton.runtime.build")
        except ImportError as error:  # setuptools, which releases up to 3.2 import there
            raise _NoExtensionError(f"Triton's driver cannot be imported: {error}") from None
        # Since 3.7 one function of the driver launches kernels of any signature.
        self.per_kernel = hasattr(self._module, "make_launcher")
        header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
        compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
        if not compiler:
            raise _NoExtensionError("there is no C compiler: neither gcc, nor clang, nor CC")
        if not os.path.exists(header):
            raise _NoExtensionError(f"there is no {header}")
        self.dirs = list(request.libcuda) or self._own_dirs()
        self._link(compiler, scratch)
        # Whatever this machine has: the answer is that of the machine where the cache will be used.
        module: Any = self._module
        here = os.path.realpath(os.path.dirname(sys.modules["triton"].__file__ or ""))
        there = request.folder or here
        library = there + module.libdevice_dir[len(here) :]
        module.libcuda_dirs = lambda: self.dirs
        module.library_dirs = lambda: [library, *self.dirs]
        if _folder_counts():
            module.include_dirs = [there + folder[len(here) :] for folder in module.include_dirs]
        self._watch(here, there)

    def _own_dirs(self) -> list[str]:
        """Return the folders that Triton finds here; the usual one if there is none."""
        try:
            return list(self._module.libcuda_dirs())
        except (AssertionError, OSError, subprocess.SubprocessError):
            return [f"/lib/{sysconfig.get_config_var('MULTIARCH') or 'x86_64-linux-gnu'}"]

    def _link(self, compiler: str, scratch: str) -> None:
        """Let the compiler link to a libcuda whose functions do nothing, where this machine has none."""
        # The folders of a library are options of the compiler, and in some releases a part of the key; this
        # variable is neither. Functions have to be there: linkers that drop what is not needed (`--as-needed`
        # is the default of some distributions) would leave out the library, and nobody loads it then.
        folder = os.path.join(scratch, "libcuda")
        os.makedirs(folder, exist_ok=True)
        source = os.path.join(folder, "functions.c")
        header = os.path.join(os.path.dirname(self._module.__file__), "include", "cuda.h")
        with open(header, encoding="utf-8", errors="replace") as file:
            names = sorted(set(re.findall(r"\bcu[A-Z]\w*", file.read())))
        with open(source, "w", encoding="utf-8") as file:
            file.write("".join(f"void {name}(void) {{}}\n" for name in names))
        library = os.path.join(folder, "libcuda.so.1")
        argv = [compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source]
        done = subprocess.run(argv, capture_output=True, check=False)
        if done.returncode:
            raise _NoExtensionError(f"{compiler} cannot link: {done.stderr.decode(errors='replace').strip()}")
        if not os.path.lexists(os.path.join(folder, "libcuda.so")):
            os.symlink("libcuda.so.1", os.path.join(folder, "libcuda.so"))
        paths = [folder, *filter(None, [os.environ.get("LIBRARY_PATH", "")])]
        os.environ["LIBRARY_PATH"] = os.pathsep.join(paths)

    def _watch(self, here: str, there: str) -> None:
        """Keep Triton from loading what it builds, and build each source once for all platforms.

        Args:
            here: the folder of the package `triton`.
            there: that folder where the cache will be used.
        """
        built: dict[bytes, tuple[str, bytes]] = {}
        real = self._build._build  # noqa: SLF001 - Triton's own name

        def build(name: str, src: str, srcdir: str, *rest: Any, **more: Any) -> str:
            with open(src, "rb") as file:
                content = file.read()
            # The key has the platform in it, but the binary does not.
            if content not in built:
                lists = [_moved(part, there, here) for part in rest]
                path = real(name, src, srcdir, *lists, **more)
                with open(path, "rb") as file:
                    built[content] = (os.path.basename(path), file.read())
            base, binary = built[content]
            path = os.path.join(srcdir, base)
            with open(path, "wb") as file:
                file.write(binary)
            return path

        # Triton takes a failed import for a damaged entry, and builds it again at each launch.
        def load(_name: str, _path: str) -> None:
            raise _BuiltError

        # Up to 3.3 the driver has these names, and later the module that builds.
        for module in (self._module, self._build):
            for name, value in (("_build", build), ("_load_module_from_path", load)):
                if hasattr(module, name):
                    setattr(module, name, value)

    def of_driver(self) -> tuple[str, ...]:
        """Build the extension with the driver's functions; return the names of its entries."""
        return self._made(self._module.CudaUtils)

    def of_kernel(self, compiled: Compiled) -> tuple[str, ...]:
        """Build the launcher of a kernel; return the names of its entries."""
        if not self.per_kernel:
            return ()
        return self._made(functools.partial(self._module.CudaLauncher, compiled.src, compiled.metadata))

    def _made(self, act: Callable[[], Any]) -> tuple[str, ...]:
        names = []
        for _platform in self._platforms():
            name = self._asked(act)
            names.append(name)
        return tuple(dict.fromkeys(names))

    def _platforms(self) -> Iterator[None]:
        """Change the platform in the key: it depends on whether the machine has a program `file`."""
        owners = [module for module in (self._module, self._build) if hasattr(module, "platform_key")]
        if not owners:
            yield None
            return
        real = owners[0].platform_key
        machine, system, bits, *_ = real().split(",")
        for linkage in _LINKAGES:
            for module in owners:
                module.platform_key = lambda linkage=linkage: f"{machine},{system},{bits},{linkage}"
            yield None
        for module in owners:
            module.platform_key = real

    def _asked(self, act: Callable[[], Any]) -> str:
        """Build an extension unless it is there; return the name of its entry."""
        # By the look-up and not by what is new: another kernel may have the same launcher.
        looked_for: list[str] = []
        from triton.runtime import cache

        manager: Any = cache.FileCacheManager
        before = manager.get_file

        def get_file(self: CacheManager, filename: str) -> Any:
            looked_for.append(os.path.basename(self.cache_dir))
            return before(self, filename)

        manager.get_file = get_file
        try:
            act()
        except (_BuiltError, ImportError):
            pass  # it cannot be loaded without a driver, and need not be
        except subprocess.CalledProcessError as error:
            raise _NoExtensionError(f"the C compiler failed with exit code {error.returncode}") from None
        finally:
            manager.get_file = before
        folder = os.path.join(self._cache, looked_for[-1]) if looked_for else ""
        if not folder or not any(name.endswith(".so") for name in os.listdir(folder)):
            raise _NoExtensionError("Triton built no extension")
        return looked_for[-1]


def look_up(request_path: str) -> int:
    """Record each entry that the JIT looks up, from here on in this process."""
    request = read_request(LookUpRequest, request_path)
    sys.meta_path.insert(0, ImportWatcher({"triton": functools.partial(_with_triton, request)}))
    return 0


def _with_triton(request: LookUpRequest, run: Callable[[], None], _triton: types.ModuleType) -> None:
    run()
    name = os.path.join(request.results, f"{os.getpid()}-{time.time_ns()}.jsonl")

    def watched(src: AstSource, target: GpuTarget, options: Table, call: Callable[[], Any]) -> Any:
        try:
            key = cache_key(src, target, options)
        except Exception:  # noqa: BLE001 - the program goes on, and the tool sees a new entry without a row
            return call()
        compiled = call()
        # A line for each look-up, in the file of this process, also after a fork.
        with open(f"{name}.{os.getpid()}.jsonl", "a", encoding="utf-8") as file:
            file.write(text_of(LookedUpRow(entry_of(compiled), key)) + "\n")
        return compiled

    CompileWatch(watched)
