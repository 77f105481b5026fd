"""Record launches: Triton gets compiled kernels from this recorder, and launches them as it always does.

Triton's own `run` binds the arguments, specialises them, chooses among configs and calls hooks. Only the
compiler is replaced: its requests are recorded, and the kernel that it returns counts launches.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import hashlib
import inspect
import json
import linecache
import os
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .border import RequestRefusedError, encoded, text_of
from .foreign import frames, is_library, package_name, shown
from .messages import CaptureRow, ExampleLaunch, LaunchesRow, RecordedParameter, SpecializedKernel

if TYPE_CHECKING:
    from .border import Table
    from .foreign import AstSource, GpuTarget, JitFunction, Tensor, TritonValue

# Seconds between two writes of counts: a process may be killed at any time, but a program may also launch
# some hundred thousand times, and cannot wait for a disk each time.
_PAUSE = 0.2
_OURS = os.path.dirname(__file__)
_GENERATED: list[str] = []  # folders of generated code, which are deleted after the run
_BELOW = ("triton", "torch", "")  # packages between a launch and the program; generated code has none
ALIGNED = 16
_BEFORE_ARGUMENTS = 6  # of what `JITFunction.run` hands to a kernel after the grid, in Triton 3.0 to 3.9
# Types of torch to letters of `array`: integers that a kernel may use as indices. int8 is data.
_LETTERS = {"int16": "h", "int32": "i", "int64": "q"}
_LISTED = 64  # elements of a tensor that are listed one by one: ends of sequences, sizes of groups
_READ = 1 << 22  # elements of a tensor that are read for the least and the largest
_DIVISIBLE, _RANGE = "tt.divisibility", "tt.pointer_range"


class KernelLaunches:
    """The launches of a specialised kernel, as they are counted."""

    def __init__(self, kernel: SpecializedKernel) -> None:
        self.kernel = kernel
        self.configs: list[Table] = []
        self.forget()

    def forget(self) -> None:
        """Set the counts to 0, as in a process that was forked."""
        self.count = 0
        self.grids: dict[str, int] = {}
        self.sites: dict[str, int] = {}
        self.largest: dict[str, int] = {}
        self.example = ExampleLaunch()

    def add(self, arguments: tuple[Any, ...], grid: tuple[int, ...] = ()) -> None:
        """Keep the largest value of each integer parameter, and the arguments of the largest launch.

        Args:
            arguments: what Triton launches the kernel with: all arguments, or those that are no constants.
            grid: the number of programs along each axis.
        """
        known = self.kernel.constexprs
        names = [parameter.name for parameter in self.kernel.parameters]
        if len(arguments) != len(names):
            names = [name for name in names if name not in known]
        if len(arguments) == len(names):
            for name, value in zip(names, arguments):
                if type(value) is int and name not in known:
                    self.largest[name] = max(value, self.largest.get(name, value))
            taken = {name: value for name, value in zip(names, arguments) if name not in known}
            self._keep_example(grid, taken)

    def _keep_example(self, grid: tuple[int, ...], arguments: dict[str, Any]) -> None:
        """Keep a launch if its tensors have more elements than those of any before."""
        tensors = {name: _elements(value) for name, value in arguments.items() if _is_tensor(value)}
        total = sum(tensors.values())
        if self.example.grid and total <= self.example.elements:
            return
        described: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in tensors:
                described[name] = {"elements": tensors[name], **_integers(value, tensors[name])}
            elif type(value) in (int, float, bool):
                described[name] = value
        self.example = ExampleLaunch(grid, described, total)

    def row(self) -> LaunchesRow:
        """Return the counts of this moment."""
        return LaunchesRow(
            self.kernel,
            self.count,
            self.grids,
            self.sites,
            tuple(self.configs),
            self.largest,
            self.example,
        )


def _is_tensor(value: object) -> bool:
    """Report whether a value is a tensor of torch, or Triton's wrapper of one."""
    # Triton takes any object with an address. Of one that is no tensor, such as an array of CuPy, whose
    # `size` is a number, nothing is known here, and the program goes on.
    base = getattr(value, "base", value)
    return all(
        callable(getattr(base, name, None)) for name in ("data_ptr", "size", "stride", "is_contiguous")
    )


def _elements(tensor: Tensor) -> int:
    """Return how many elements lie from the first of a tensor, or of Triton's wrapper of one, to its last."""
    base = tensor.base if hasattr(tensor, "base") else tensor
    sizes = [int(size) for size in base.size()]
    if 0 in sizes:
        return 0
    return 1 + sum((size - 1) * abs(int(step)) for size, step in zip(sizes, base.stride()))


def _integers(tensor: Tensor, elements: int) -> dict[str, Any]:
    """Return what integers a tensor has: all of a few, or the least and the largest.

    A kernel may use them as indices: others would lead it out of its memory. They are read from memory, as a
    tensor's own methods would count as reads of the program's.
    """
    base = tensor.base if hasattr(tensor, "base") else tensor
    letter = _LETTERS.get(str(base.dtype).rpartition(".")[2])
    if letter is None or not 0 < elements <= _READ or not base.is_contiguous():
        return {}
    content = array.array(letter)
    content.frombytes(ctypes.string_at(base.data_ptr(), elements * content.itemsize))
    if elements <= _LISTED:
        return {"values": list(content)}
    return {"low": min(content), "high": max(content)}


class Recorder:
    """A recorder of one process's launches, which are written to a file of its own at once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        _GENERATED.append(os.path.join(os.path.dirname(folder), "cache", ""))
        self._lock = threading.RLock()
        self._launches: dict[str, KernelLaunches] = {}
        self._changed: dict[str, None] = {}
        self._notes: set[str] = set()
        self._wrote = 0.0
        self.tuning = threading.local()
        self.begin()
        atexit.register(self.end)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forked)

    def begin(self) -> None:
        """Open the file of this process."""
        # With the time, as a long run may see the number of a process again.
        name = f"{os.getpid()}-{time.time_ns()}.jsonl"
        self._file = open(  # noqa: SIM115 - until the process ends
            os.path.join(self._folder, name), "x", encoding="utf-8"
        )
        self._write(CaptureRow(versions={"python": sys.version.split()[0]}))

    def _forked(self) -> None:
        # Another thread may have held the lock when the process was forked, and will never release it here.
        self._lock = threading.RLock()
        for launches in self._launches.values():
            launches.forget()
        self._changed.clear()
        self.begin()
        # Processes of multiprocessing end by `os._exit`, without `atexit`, but run its own finalizers.
        util = sys.modules.get("multiprocessing.util")
        if util:
            util.register_after_fork(
                self, lambda recorder: util.Finalize(recorder, recorder.end, exitpriority=0)
            )

    def end(self) -> None:
        """Write the last counts."""
        with self._lock:
            self._flush()
            self._write(CaptureRow(end=True))

    def version(self, package: str, version: str) -> None:
        """Record the version of a package that the program imports."""
        with self._lock:
            self._write(CaptureRow(versions={package: str(version)}))

    def note(self, text: str) -> None:
        """Record a message for the user, once."""
        with self._lock:
            if text not in self._notes:
                self._notes.add(text)
                self._write(CaptureRow(note=text))

    def requested(self, src: AstSource, target: GpuTarget, options: Table) -> str:
        """Record a compile request, and return the key of its launches."""
        kernel = specialized_kernel(src, target, options, self.note)
        # Sorted, as two launches may name the same options in another order.
        key = json.dumps(json.loads(text_of(kernel)), sort_keys=True)
        with self._lock:
            if key not in self._launches:
                self._launches[key] = KernelLaunches(kernel)
                # Written at once, as the first launch may be what the program crashes in.
                self._text(kernel.file)
                self._changed[key] = None
                self._flush()
        return key

    def launch(self, key: str, grid: Iterable[Any], arguments: tuple[Any, ...] = ()) -> None:
        """Count a launch."""
        trial = getattr(self.tuning, "trial", None)
        if trial is not None:
            trial.append(self._launches[key].kernel)
            return
        place = site()
        sizes = tuple(int(part) for part in grid)
        text = ",".join(map(str, sizes))
        configs = getattr(self.tuning, "configs", None)
        with self._lock:
            launches = self._launches[key]
            if configs is not None and not launches.configs:
                launches.configs = configs()
            launches.count += 1
            launches.add(arguments, sizes)
            launches.grids[text] = launches.grids.get(text, 0) + 1
            launches.sites[place] = launches.sites.get(place, 0) + 1
            self._changed[key] = None
            if time.monotonic() - self._wrote > _PAUSE:
                self._flush()

    def launched(self) -> bool:
        """Report whether a kernel was launched that a GPU would have run."""
        return any(launches.count for launches in self._launches.values())

    @contextlib.contextmanager
    def trial(self) -> Iterator[list[SpecializedKernel]]:
        """Collect launches while an autotuner tries a config: they do not count as the program's."""
        before = getattr(self.tuning, "trial", None)
        self.tuning.trial = []
        try:
            yield self.tuning.trial
        finally:
            self.tuning.trial = before

    @contextlib.contextmanager
    def configs_of(self, configs: Callable[[], list[Table]]) -> Iterator[None]:
        """Assign an autotuner's configs to the launches in the body."""
        before = getattr(self.tuning, "configs", None)
        self.tuning.configs = configs
        try:
            yield
        finally:
            self.tuning.configs = before

    def _flush(self) -> None:
        for key in self._changed:
            self._write(CaptureRow(self._launches[key].row()))
        self._changed.clear()
        self._wrote = time.monotonic()

    def _text(self, path: str) -> None:
        """Keep a source that is in no file: a cell of a notebook, generated code."""
        if not os.path.isfile(path):
            self._write(CaptureRow(texts={path: "".join(linecache.getlines(path))}))

    def _write(self, row: CaptureRow) -> None:
        self._file.write(text_of(row) + "\n")
        self._file.flush()


def site() -> str:
    """Return FILE:LINE of the call that launches a kernel, outside Triton, torch, this tool and wrappers."""
    for frame in frames():
        name = frame.f_code.co_filename
        if os.path.dirname(name) == _OURS or is_library(frame) or package_name(frame) in _BELOW:
            continue
        if name.startswith(tuple(_GENERATED)):
            continue
        if not _wraps_kernel(frame):
            return f"{shown(os.path.abspath(name))}:{frame.f_lineno}"
    return ""


def _wraps_kernel(frame: types.FrameType) -> bool:
    """Report whether a frame runs a method of a package's own autotuner, or of another `KernelInterface`."""
    jit = sys.modules.get("triton.runtime.jit")
    if jit is None or not frame.f_code.co_argcount:
        return False
    return isinstance(frame.f_locals.get(frame.f_code.co_varnames[0]), jit.KernelInterface)


def specialized_kernel(
    src: AstSource, target: GpuTarget, options: Table, note: Callable[[str], None]
) -> SpecializedKernel:
    """Read a kernel's specialization from the source object that Triton hands to its compiler.

    Args:
        src: Triton's ASTSource.
        target: Triton's GPUTarget.
        options: the options to record.
        note: a function that is called with messages about anything that no signature can express.
    """
    # Up to 3.2 the source has names, positions and an AttrsDescriptor; since 3.3 it has paths, so that parts
    # of tuples have attributes, too.
    function = src.fn.fn
    while not inspect.isfunction(function):
        function = function.fn
    path = function.__code__.co_filename
    names = list(src.fn.arg_names)
    constexprs, unwritten = _constants(src, names, note)
    hints, ranges = _hints(src, names, constexprs, note)
    return SpecializedKernel(
        file=os.path.abspath(path) if os.path.isfile(path) else path,
        line=function.__code__.co_firstlineno,
        function=function.__name__,
        kernel=_named(src.fn, function),
        module=function.__module__,
        parameters=tuple(
            [RecordedParameter(parameter.name, bool(parameter.is_constexpr)) for parameter in src.fn.params]
        ),
        target=(target.backend, target.arch, target.warp_size),
        options=options,
        signature={name: _plain(src.signature.get(name, "constexpr")) for name in names},
        constexprs=constexprs,
        hints=hints,
        ranges=tuple(sorted(ranges)),
        unwritten=tuple(unwritten),
    )


def _constants(src: AstSource, names: list[str], note: Callable[[str], None]) -> tuple[Table, list[str]]:
    """Return the constants, and the parameters whose constants JSON cannot carry."""
    constexprs: Table = {}
    unwritten = []
    for key, value in src.constants.items():
        path = _dotted(key, names)
        plain = _value(value)
        try:
            constexprs[path] = encoded(plain)
        except (TypeError, RequestRefusedError):
            name = getattr(plain, "__name__", "")
            kind = f"{type(plain).__name__}{name and f' ({name})'}"
            note(f"{path} of {src.fn.__name__} is a {kind}, which no signature can say")
            unwritten.append(path)
    return constexprs, unwritten


def _hints(
    src: AstSource, names: list[str], constexprs: Table, note: Callable[[str], None]
) -> tuple[dict[str, int], list[str]]:
    """Return the parameters that are multiples of 16, and the pointers to less than 2 GiB of memory."""
    hints: dict[str, int] = {}
    ranges = []
    for key, name, value in _attributes(src.attrs):
        path = _dotted(key, names)
        if path in constexprs:  # up to 3.2 constants have attributes
            continue
        if name == _DIVISIBLE and value == ALIGNED:
            hints[path] = value
        elif name == _RANGE:
            ranges.append(path)
        else:
            note(f"{path} of {src.fn.__name__} has {name} = {value}, which no signature can say")
    return hints, ranges


def _attributes(attrs: AstSource) -> Iterator[tuple[Any, str, Any]]:
    """Yield path or position, name and value of each attribute."""
    if isinstance(attrs, dict):
        for path, pairs in attrs.items():
            for name, value in pairs:
                yield path, name, value
    elif hasattr(attrs, "arg_properties"):  # 3.2
        for name, positions in attrs.arg_properties.items():
            if name != "tt.equal_to":
                for position in positions:
                    yield position, name, attrs.property_values.get(name, ALIGNED)
    else:
        for position in attrs.divisible_by_16:
            yield position, _DIVISIBLE, ALIGNED


def _dotted(key: TritonValue, names: list[str]) -> str:
    if isinstance(key, str):
        return key
    head, *rest = key if isinstance(key, tuple) else (key,)
    return ".".join([names[head], *map(str, rest)])


def _plain(kind: TritonValue) -> Any:
    return [_plain(part) for part in kind] if isinstance(kind, (list, tuple)) else str(kind)


def _value(value: TritonValue) -> Any:
    while type(value).__name__ == "constexpr":
        value = value.value
    if isinstance(value, (list, tuple)):
        return tuple(_value(part) for part in value)
    return value


def _named(fn: JitFunction, function: types.FunctionType) -> str:
    """Return the `kernel` of FILE:KERNEL: a name of the module, or `make.kernel`; empty if neither exists."""
    # Its own name first: another variable may be bound to the same kernel.
    bound = function.__globals__
    for name in (function.__name__, *bound):
        value = bound.get(name)
        while value is not None:
            if value is fn:
                return str(name)
            # Decorators wrap: an autotuner has the kernel as its `fn`, and so have heuristics.
            value = vars(value).get("fn") if hasattr(value, "__dict__") else None
    maker, _, rest = function.__qualname__.partition(".<locals>.")
    inside = maker.isidentifier() and rest.isidentifier() and inspect.isfunction(bound.get(maker))
    return f"{maker}.{rest}" if inside else ""


class RecordedKernel:
    """A kernel that is not compiled: its launches are counted; reading an attribute compiles it."""

    # Triton hands these to `run`, which ignores them, and to hooks. Programs read the numbers to choose a
    # grid: those of a small kernel on any GPU.
    function = packed_metadata = module = None
    n_regs, n_spills, n_max_threads = 32, 0, 1024

    def __init__(
        self, recorder: Recorder, key: str, compiled: Callable[[], Any], src: AstSource = None
    ) -> None:
        self._recorder, self._key, self._compile = recorder, key, compiled
        self.src, self.hash = src, hashlib.sha256(key.encode()).hexdigest()

    def launch_metadata(self, *_: Any) -> None:
        """Return nothing: no hook runs."""

    def run(self, grid_0: int, grid_1: int, grid_2: int, *rest: Any) -> None:
        """Count a launch."""
        # Before the arguments: the stream, the function, two of metadata, and the hooks before and after.
        self._recorder.launch(self._key, (grid_0, grid_1, grid_2), rest[_BEFORE_ARGUMENTS:])

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        padded = (*grid, 1, 1)[:3]
        return lambda *_, **__: self.run(*padded)

    def _init_handles(self) -> None:
        """Do nothing: there is no GPU to load it on."""
        what = "reads registers or spills of a kernel: it gets 32 and 0, not those of the compile"
        self._recorder.note(f"{site()} {what}")

    def __getattr__(self, name: str) -> Any:
        # Since 3.6 Triton takes an object with `result` for the future of a compile that still runs.
        if name.startswith("__") or name == "result":
            raise AttributeError(name)
        if "_real" not in vars(self):
            self._real = self._compile()
        return getattr(self._real, name)
