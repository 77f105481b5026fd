"""Record launches: Triton gets compiled kernels from this recorder, and launches them as it always does.

Triton's own `run` binds the arguments, specialises them, chooses among configs and calls hooks. Only the
compiler is replaced: its requests are recorded, and the kernel that it returns counts launches.
"""

from __future__ import annotations

import atexit
import contextlib
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

from .frames import frames, is_library, package_name, shown
from .specialization import specialization

if TYPE_CHECKING:
    from .json_types import Table

_PAUSE = 0.2  # seconds between two writes of counts: a process may be killed at any time
_OURS = os.path.dirname(__file__)
_GENERATED: list[str] = []  # folders of generated code that go with the run
_BELOW = (
    "triton",
    "torch",
    "",
)  # between a launch and the program; generated code is of no package


class Recorder:
    """A recorder of one process's launches, which are written to a file of its own at once."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        _GENERATED.append(os.path.join(os.path.dirname(folder), "cache", ""))
        self._lock = threading.RLock()
        self._rows: dict[str, Table] = {}
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
        name = f"{os.getpid()}-{time.time_ns()}.jsonl"
        self._file = open(  # noqa: SIM115 - until the process ends
            os.path.join(self._folder, name), "x", encoding="utf-8"
        )
        self._say(process=os.getpid(), python=sys.version.split()[0])

    def _forked(self) -> None:
        self._lock = threading.RLock()
        for row in self._rows.values():
            row.update(count=0, grids={}, sites={})
        self._changed.clear()
        self.begin()
        util = sys.modules.get("multiprocessing.util")
        if util:  # its processes end without `atexit`
            util.register_after_fork(self, lambda one: util.Finalize(one, one.end, exitpriority=0))

    def end(self) -> None:
        """Write the last counts."""
        with self._lock:
            self._flush()
            self._say(end=True)

    def say(self, **facts: Any) -> None:
        """Record a fact about this process: a version."""
        with self._lock:
            self._say(**facts)

    def note(self, text: str) -> None:
        """Record a message for the user, once."""
        with self._lock:
            if text not in self._notes:
                self._notes.add(text)
                self._say(note=text)

    def row(self, src: Any, target: Any, options: Table) -> Table:
        """Return the row of a compile request."""
        about = {
            **kernel_facts(src.fn),
            **specialization(src, self.note),
            "target": [target.backend, target.arch, target.warp_size],
            "options": options,
        }
        key = json.dumps(about, sort_keys=True)
        with self._lock:
            row = self._rows.get(key)
            if row is None:
                row = self._rows[key] = {"about": about, "count": 0, "grids": {}, "sites": {}, "configs": []}
                self._text(about["file"])
                self._changed[key] = None
                self._flush()
            return {**row, "key": key}

    def launch(self, key: str, grid: Iterable[Any]) -> None:
        """Count a launch."""
        trial = getattr(self.tuning, "trial", None)
        if trial is not None:
            trial.append(self._rows[key]["about"])
            return
        place = site()
        text = ",".join(str(int(part)) for part in grid)
        configs = getattr(self.tuning, "configs", None)
        with self._lock:
            row = self._rows[key]
            if configs is not None and not row["configs"]:
                row["configs"] = configs()
            row["count"] += 1
            row["grids"][text] = row["grids"].get(text, 0) + 1
            row["sites"][place] = row["sites"].get(place, 0) + 1
            self._changed[key] = None
            if time.monotonic() - self._wrote > _PAUSE:
                self._flush()

    def launched(self) -> bool:
        """Report whether a kernel was launched that a GPU would have run."""
        return any(row["count"] for row in self._rows.values())

    @contextlib.contextmanager
    def trial(self) -> Iterator[list[Table]]:
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
            self._say(row=self._rows[key])
        self._changed.clear()
        self._wrote = time.monotonic()

    def _text(self, path: str) -> None:
        """Keep a source that is in no file: a cell of a notebook, generated code."""
        if not os.path.isfile(path):
            self._say(file=path, text="".join(linecache.getlines(path)))

    def _say(self, **facts: Any) -> None:
        self._file.write(json.dumps(facts) + "\n")
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


def kernel_facts(fn: Any) -> Table:
    """Return a kernel's place, and its name in its file's text or its module."""
    function = fn.fn
    while not inspect.isfunction(function):
        function = function.fn
    path = function.__code__.co_filename
    return {
        "file": os.path.abspath(path) if os.path.isfile(path) else path,
        "line": function.__code__.co_firstlineno,
        "function": function.__name__,
        "kernel": _named(fn, function),
        "module": function.__module__,
        "parameters": [{"name": one.name, "constexpr": bool(one.is_constexpr)} for one in fn.params],
    }


def _named(fn: Any, function: types.FunctionType) -> str:
    """Return the `kernel` of FILE:KERNEL: a name of the module, or `make.kernel`; empty if neither exists."""
    bound = function.__globals__
    for name in (function.__name__, *bound):
        value = bound.get(name)
        while value is not None:
            if value is fn:
                return str(name)
            value = vars(value).get("fn") if hasattr(value, "__dict__") else None
    maker, _, rest = function.__qualname__.partition(".<locals>.")
    inside = maker.isidentifier() and rest.isidentifier() and inspect.isfunction(bound.get(maker))
    return f"{maker}.{rest}" if inside else ""


class RecordedKernel:
    """A kernel that is not compiled: its launches are counted; reading an attribute compiles it.

    Attributes:
        function: Triton passes this and the metadata on.
    """

    function = packed_metadata = module = None
    n_regs, n_spills, n_max_threads = 32, 0, 1024

    def __init__(self, recorder: Recorder, key: str, compiled: Any, src: Any = None) -> None:
        self._recorder, self._key, self._compile = recorder, key, compiled
        self.src, self.hash = src, hashlib.sha256(key.encode()).hexdigest()

    def launch_metadata(self, *_: Any) -> None:
        """Return nothing: no hook runs."""

    def run(self, grid_0: Any, grid_1: Any, grid_2: Any, *_: Any) -> None:
        """Count a launch."""
        self._recorder.launch(self._key, (grid_0, grid_1, grid_2))

    def __getitem__(self, grid: Any) -> Any:
        padded = (*grid, 1, 1)[:3]
        return lambda *_, **__: self.run(*padded)

    def _init_handles(self) -> None:
        """Do nothing: there is no GPU to load it on."""
        what = "reads registers or spills of a kernel: 32 and 0 are answered, not those of the compile"
        self._recorder.note(f"{site()} {what}")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "result":  # 3.6 asks: a kernel in the making has it
            raise AttributeError(name)
        if "_real" not in vars(self):
            self._real = self._compile()
        return getattr(self._real, name)
