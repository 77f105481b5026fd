"""Change a compile: skip, repeat or stop after passes, and count them; Triton's files stay as they are.

A backend adds passes by functions of libtriton (`passes.ttgpuir.add_coalesce(pm)`), which it looks up at each
call: replacing them in the modules of libtriton changes the pipelines of all backends, known or not.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import os
import re
import shlex
import sys
import threading
import types
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from . import libtriton
from .border import read_request, text_of
from .introspect import form_of, plain
from .libtriton import bindings_of
from .messages import OperatedRow, OperateRequest, SurgeryRequest
from .stubs import ImportWatcher

if TYPE_CHECKING:
    from .border import Table
    from .foreign import AstSource, MlirModule, PassManager

_BRACES = re.compile(r"\{[^{}]*\}")
_LEAF = re.compile(r"[\w.-]+(?=[,)])")
_HERE = threading.local()  # `operation`: of the compile that this thread is in


class StoppedError(Exception):
    """The end of a compile after the named pass."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the compile ends after {name}, as --stop-after requests")


class CompileOperation:
    """The surgery on one compile.

    Attributes:
        changes: the changes to make.
        passes: a row for each pass that the backend requested.
        stages: the output of each stage that ran: text or bytes.
        stage: the stage that runs now.
    """

    def __init__(self, changes: SurgeryRequest) -> None:
        self.changes = changes
        self.passes: list[Table] = []
        self.stages: Table = {}
        self.stage = ""
        self._stopping = ""
        self._counts: dict[str, int] = {}
        self._met: set[tuple[str, str, int]] = set()
        self._assembled = False

    def prepare(self) -> None:
        """Prepare this process.

        Raises:
            RequestRefusedError: LLVM rejects an option.
        """
        install()
        if self.changes.llvm:
            libtriton.apply(self.changes.llvm)

    def key(self) -> str:
        """Return a digest of the surgery for the keys of Triton's caches."""
        return sha256(text_of(self.changes).encode()).hexdigest()

    def add(self, path: str, names: list[str], real: Callable[[], Any]) -> Any:
        """Add a pass as often as the surgery says.

        Args:
            path: the path of the binding.
            names: the names of its passes, as MLIR spells them.
            real: a function that adds it.
        """
        # A user may write the pass (`tritongpu-coalesce`) or the binding (`add_coalesce`). All are counted,
        # as the number in `NAME#2` counts what is written.
        mine = {*names, path, path.rpartition(".")[2]}
        for name in mine:
            self._counts[name] = self._counts.get(name, 0) + 1
        label = (names or [path])[0]
        kinds = {kind for kind in ("skip", "repeat", "stop") if not self._stopping and self._is(kind, mine)}
        times = 0 if self._stopping or "skip" in kinds else 2 if "repeat" in kinds else 1
        row = {"pass": label, "number": self._counts[label], "binding": path, "stage": self.stage}
        self.passes.append({**row, "times": times})
        if "stop" in kinds:
            self._stopping = label
        result = None
        for _ in range(times):
            result = real()
        return result

    def _passes(self, kind: str) -> tuple[tuple[str, int], ...]:
        """Return the passes to skip, to stop after, or to repeat."""
        return {"skip": self.changes.skip, "stop": self.changes.stop, "repeat": self.changes.repeat}[kind]

    def _is(self, kind: str, mine: set[str]) -> bool:
        # Errors and dumps of MLIR name the class of a pass, TritonGPUCoalesce, and users paste that.
        bare = {_bare(name): name for name in mine}
        met = [
            (kind, name, number)
            for name, number in self._passes(kind)
            if _bare(name) in bare and number in (0, self._counts[bare[_bare(name)]])
        ]
        self._met.update(met)
        return bool(met)

    def ran(self, module: MlirModule) -> None:
        """Note that a pass manager ran.

        Raises:
            StoppedError: it ran the last pass.
        """
        # Passes run when their manager does, not when they are added: so the passes after the last one are
        # left out of it, and the compile ends once it has run.
        if self._stopping:
            self.stages[self.stage] = str(module)
            raise StoppedError(self._stopping)

    def assembling(self, argv: Any) -> Any:
        """Return the command of ptxas, a list or (3.0) a line for a shell, with more flags."""
        self._assembled = True
        more = self.changes.ptxas
        if isinstance(argv, str):
            program, _, rest = argv.partition(" ")
            return " ".join([program, *map(shlex.quote, more), rest])
        return [*argv, *more]

    def unmet(self) -> str:
        """Describe a request without effect; empty if all had one."""
        for kind in ("skip", "stop", "repeat"):
            for name, number in self._passes(kind):
                if (kind, name, number) not in self._met:
                    return self._unmet_pass(name, number)
        if self.changes.ptxas and not self._assembled:
            return "ptxas did not run in this compile: --ptxas-option has no effect"
        return ""

    def _unmet_pass(self, name: str, number: int) -> str:
        count = max((n for known, n in self._counts.items() if _bare(known) == _bare(name)), default=0)
        if count >= max(number, 1):
            return f"this compile ends after {self._stopping}, before it comes to {name}"
        if count:
            return f"this compile reaches {name} {count} time{'s' * (count > 1)}: there is no {name}#{number}"
        near = difflib.get_close_matches(name, sorted(self._counts), n=3)
        names = ", ".join(dict.fromkeys(row["pass"] for row in self.passes))
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has {names}"
        return f"this compile has no pass {name!r}: {hint}"


def _bare(name: str) -> str:
    """Reduce `tritongpu-coalesce` and `TritonGPUCoalesce` to the same letters."""
    return re.sub(r"[-_]", "", name).lower()


def current() -> CompileOperation | None:
    """Return the operation of this thread."""
    return getattr(_HERE, "operation", None)


@contextlib.contextmanager
def operating(operation: CompileOperation | None) -> Iterator[None]:
    """Apply an operation to the compiles of this thread."""
    before = current()
    _HERE.operation = operation
    try:
        yield
    finally:
        _HERE.operation = before


@functools.lru_cache(maxsize=None)
def install() -> None:
    """Watch this process's Triton; without an operation, its behaviour is unchanged."""
    from triton._C import libtriton
    from triton.backends import backends
    from triton.compiler import compiler
    from triton.runtime import autotuner, cache

    for module, path, name in list(bindings_of(libtriton)):
        _watch(libtriton, module, f"{path}.{name}", name)
    manager = libtriton.ir.pass_manager
    manager.run = _watched_run(manager.run)
    for backend in backends.values():
        known = backend.compiler
        # The globals of its module: up to 3.2 that module is loaded from its file, and not in `sys.modules`.
        names = known.add_stages.__globals__
        known.add_stages = _watched_stages(known.add_stages)
        if "subprocess" in names:
            # A copy for this module alone: other code may run a program that is called ptxas, too.
            real = names["subprocess"]
            names["subprocess"] = types.SimpleNamespace(**{**vars(real), "run": _watched_ptxas(real.run)})
    # Triton's caches must not answer a changed compile with an unchanged kernel, nor the other way round.
    for module in (compiler, cache, autotuner):
        if "triton_key" in vars(module):
            vars(module)["triton_key"] = _watched_key(vars(module)["triton_key"])


def _watch(lib: types.ModuleType, module: types.ModuleType, path: str, name: str) -> None:
    real = getattr(module, name)

    def watched(manager: PassManager, *arguments: Any, **more: Any) -> Any:
        operation = current()
        if operation is None:
            return real(manager, *arguments, **more)
        # Naming the passes calls the binding once more, which must not count.
        with operating(None):
            names = names_of(lib, path, real, arguments, more)
        return operation.add(path, names, lambda: real(manager, *arguments, **more))

    setattr(module, name, functools.update_wrapper(watched, real))


_NAMES: dict[str, list[str]] = {}


def names_of(
    lib: types.ModuleType, path: str, real: Callable[..., Any], arguments: tuple[Any, ...], more: Any
) -> list[str]:
    """Return the passes that a binding adds, as MLIR names them."""
    # They are read from a pass manager that the binding fills for this purpose.
    # By path alone: arguments change a pass's options, not its name.
    if path not in _NAMES:
        if hasattr(lib.ir.pass_manager, "get_pipeline_str"):  # since 3.3
            manager = lib.ir.pass_manager(lib.ir.context())
            real(manager, *arguments, **more)
            text = manager.get_pipeline_str()
        else:
            text = form_of(lib, path, plain(arguments)).get("value", "")
        # From the inside out: options may hold pipelines, which have options again.
        while _BRACES.search(text):
            text = _BRACES.sub("", text)
        _NAMES[path] = _LEAF.findall(text)
    return _NAMES[path]


def _watched_run(real: Callable[..., Any]) -> Callable[..., Any]:
    def run(self: PassManager, module: types.ModuleType, *more: Any, **named: Any) -> Any:
        result = real(self, module, *more, **named)
        operation = current()
        if operation:
            operation.ran(module)
        return result

    return run


def _watched_stages(real: Callable[..., Any]) -> Callable[..., Any]:
    def add_stages(self: PassManager, stages: Table, *arguments: Any, **named: Any) -> Any:
        result = real(self, stages, *arguments, **named)
        if current():
            for name, make in list(stages.items()):
                stages[name] = functools.partial(_watched_stage, name, make)
        return result

    return add_stages


def _watched_stage(name: str, make: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    operation = current()
    if operation is None:
        return make(*arguments, **named)
    operation.stage = name
    content = make(*arguments, **named)
    operation.stages[name] = content if isinstance(content, bytes) else str(content)
    return content


def _watched_ptxas(real: Callable[..., Any]) -> Callable[..., Any]:
    def run(argv: Any, *arguments: Any, **named: Any) -> Any:
        operation = current()
        words = argv.split() if isinstance(argv, str) else [str(word) for word in argv]
        # Triton also runs `ptxas --version`, which compiles nothing.
        if operation and "ptxas" in os.path.basename(words[0]) and "-o" in words:
            argv = operation.assembling(argv)
        return real(argv, *arguments, **named)

    return run


def _watched_key(real: Callable[[], str]) -> Callable[[], str]:
    def triton_key() -> str:
        operation = current()
        return f"{real()}-{operation.key()}" if operation else real()

    return triton_key


def start(request_path: str) -> int:
    """Operate on all compiles of this process; each writes a line to the results."""
    request = read_request(OperateRequest, request_path)
    sys.meta_path.insert(0, ImportWatcher({"triton": functools.partial(_with_triton, request)}))
    return 0


def _with_triton(request: OperateRequest, run: Callable[[], None], triton: types.ModuleType) -> None:
    run()
    from triton.compiler import compiler

    CompileOperation(request.surgery).prepare()
    if request.allocator:
        triton.set_allocator(_allocated)
    replacement = functools.partial(_compile, request, compiler.compile)
    # Each of these modules has a name of its own for the function, and callers use any of them.
    for module in (triton, triton.compiler, compiler):
        vars(module)["compile"] = replacement


def _allocated(size: int, _alignment: int, _stream: int | None) -> Any:
    """Allocate memory with torch, for the scratch memory that Triton adds to a kernel."""
    # The program sets no allocator if its own kernel needs none; options or passes that were changed may.
    torch: types.ModuleType = importlib.import_module("torch")
    return torch.empty(size, dtype=torch.int8, device="cuda")


def _compile(
    request: OperateRequest, real: Callable[..., Any], src: AstSource, *arguments: Any, **named: Any
) -> Any:
    """Replace Triton's `compile`: operate on it, and write its row."""
    operation = CompileOperation(request.surgery)
    error, changed = "", {}
    if request.options:
        launched = dict(named.get("options") or {})
        changed = {
            name: launched.get(name) for name, value in request.options.items() if launched.get(name) != value
        }
        named["options"] = {**launched, **request.options}
    try:
        with operating(operation):
            return real(src, *arguments, **named)
    except Exception as failure:
        error = f"{type(failure).__name__}: {failure}"
        raise
    finally:
        name = str(getattr(src, "name", src))
        row = OperatedRow(name, tuple(operation.passes), error, changed, operation.unmet())
        with open(os.path.join(request.results, f"{os.getpid()}.jsonl"), "a", encoding="utf-8") as file:
            file.write(text_of(row) + "\n")
