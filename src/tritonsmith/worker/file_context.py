"""Set up a kernel's file: stand-ins for missing modules, the fake GPU, Triton; record what its load reads."""

from __future__ import annotations

import builtins
import contextlib
import dataclasses
import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time
import types
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any

from .border import RequestRefusedError
from .fake_gpu import FakeDriver, FakeGpu
from .fake_torch import PROVIDED, patched, provide, triton_found
from .foreign import INSTALLED
from .messages import DisassemblerRequest, FileRequest, PointsRequest
from .stubs import ImportWatcher, Ledger, LentFinder, StubFinder, UnknownError

if TYPE_CHECKING:
    from .border import Table
    from .foreign import GpuTarget

# OpenMP and the linear algebra libraries of NumPy and torch read these when they are imported. A process with
# threads must not fork: a lock that another thread holds stays locked in the child.
SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
UNKNOWN = ""  # in place of a digest
_MOST_READ = 2000  # files; `compiler.source_tree` takes no more of a package either
_LARGEST_READ = 64 << 20  # bytes of a file; the tool itself reads no larger one
_WRITES = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_OF_LINUX = ("/proc", "/sys")  # not /dev: what is a regular file there is a user's, in /dev/shm


class FileSurroundings:
    """The surroundings of a kernel's file: stand-ins for missing modules, and the fake GPU.

    Attributes:
        ledger: a record of replaced modules, and of the code that depends on them.
        gpu: the target's GPU.
        disassemblers: the disassembler of each binary stage, with those of its programs that exist.
        watcher: runs code around the import of some modules.
        reads: a record of the files that the file's load reads.
    """

    def __init__(self, modules: Iterable[str], gpus: Table, lent: Table) -> None:
        self.ledger = Ledger(PROVIDED)
        self.gpu = FakeGpu(self.ledger.note, UnknownError, gpus)
        self.disassemblers: dict[str, DisassemblerRequest] = {}
        self.reads = FileReads()
        around = {"torch": patched, "torch.utils._triton": triton_found}
        self.watcher = ImportWatcher(
            {name: functools.partial(change, self.gpu) for name, change in around.items()}
        )
        for name in self.gpu.packages():
            self.watcher.around[name] = self._with_variables
        self._lent = LentFinder(dict(lent))
        self._stubs = StubFinder(modules, self.ledger, functools.partial(provide, self.gpu))
        # Installed modules win: stand-ins are for what nobody else finds. A lent package is a real one, so it
        # comes before them.
        sys.meta_path.insert(0, self.watcher)
        sys.meta_path.append(self._lent)
        sys.meta_path.append(self._stubs)

    def renew(self, request: FileRequest) -> None:
        """Take the facts of another request, before its file is loaded."""
        # A request has facts about its own targets only: a file would find the GPU of a later one unknown.
        for name in self.gpu.packages():
            self.watcher.around.pop(name, None)
        self.gpu.every = request.gpus
        for name in self.gpu.packages():
            self.watcher.around[name] = self._with_variables
        self._lent.folders, self._stubs.names = request.lent, frozenset(request.stand_ins)

    def become(self, target: GpuTarget) -> None:
        """Switch to the GPU of another target."""
        import triton

        self.gpu.become(target)
        triton.runtime.driver.set_active(FakeDriver(self.gpu))

    def _with_variables(self, run: Callable[[], None], module: types.ModuleType) -> None:
        """Import a package that detects the GPU by environment variables, or else by driver programs."""
        os.environ.update(self.gpu.environment(module.__name__))
        run()

    def tolerate(self, package: str) -> None:
        """Continue if the `__init__.py` of a package, or of a parent package, fails."""

        # It often imports the whole package, with compiled extensions that are missing here. A kernel needs
        # little of that, and whatever it lacks later is an error of its own.
        def run(rest: Callable[[], None], module: types.ModuleType) -> None:
            try:
                if module.__name__ in self.gpu.packages():
                    self._with_variables(rest, module)
                else:
                    rest()
            except (Exception, UnknownError) as error:  # noqa: BLE001 - whatever it does
                self.ledger.note(f"{module.__name__}/__init__.py failed: {error}")

        parts = package.split(".")
        for length in range(1, len(parts) + 1):
            self.watcher.around[".".join(parts[:length])] = run


class FileReads:
    """The files that the load of a kernel's file reads: what was compiled holds while they stay the same.

    Neither a data file nor a module that is found by a name made at run time is in the file's text. What is
    installed, Python's own library, Triton and this tool are left out.
    """

    def __init__(self) -> None:
        # Modules may have been imported before anything is watched, such as a torch for several forks.
        self._began = time.time_ns()
        self._opened: dict[str, tuple[int, ...]] = {}  # the state of each file when it was opened
        self._before = frozenset(sys.modules)
        self._modules = 0  # number of those that were looked at
        self._written: set[str] = set()
        self._missed: set[str] = set()
        self._digests: dict[str, str] = {}
        self._told: set[str] = set()
        self._left_out: tuple[str, ...] = ()
        self._counts: dict[str, bool] = {}  # by folder
        self._file = ""
        self._depth = 0
        self._hooked = False

    def leave_out(self, file: str, folders: Iterable[str]) -> None:
        """Do not count a kernel's file, whose content is known otherwise, nor the files in some folders."""
        own = [os.path.dirname(os.path.abspath(__file__)), *_OF_LINUX]
        own += [sysconfig.get_path(name) or "" for name in ("stdlib", "platstdlib")]
        every = [os.path.abspath(folder) for folder in (*own, *folders) if folder]
        every += [os.path.realpath(folder) for folder in every]
        self._left_out = tuple({os.path.join(folder, "") for folder in every})
        self._file = os.path.abspath(file)
        self._counts.clear()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Count what the body of a `with` opens; a refusal in it tells what was read until then."""
        if not self._hooked:
            sys.addaudithook(self._hear)  # for good: a hook cannot be removed
            self._hooked = True
        self._depth += 1
        try:
            yield
        except RequestRefusedError as error:
            # What was looked for and is not there may be the reason, so the refusal is not for good.
            reads = {**self._every(), **dict.fromkeys(sorted(self._missed)[:1], UNKNOWN)}
            error.refusal = dataclasses.replace(error.refusal, reads=reads)
            raise
        finally:
            self._depth -= 1

    def news(self) -> dict[str, str]:
        """Return the files that were not told before, each with the digest of what was read."""
        news = {name: content for name, content in self._every().items() if name not in self._told}
        self._told.update(news)
        return news

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        """Note what Python is about to do: see `sys.addaudithook`."""
        if not self._depth or event not in ("open", "import", "os.rename"):
            return
        # An exception would be one of the code that opens the file.
        with contextlib.suppress(Exception):
            if event == "os.rename":
                self._written.add(_path_of(arguments[1]))
            elif event == "import":
                if arguments[1]:  # an extension, which the system opens
                    self._open(_path_of(arguments[1]))
            elif not isinstance(arguments[0], int):
                path, flags = _path_of(arguments[0]), arguments[2]
                if isinstance(flags, int) and flags & _WRITES:
                    self._written.add(path)
                else:
                    self._open(_source_of(path))

    def _open(self, path: str) -> None:
        if self._does_count(path) and path not in self._opened:
            try:
                status = os.stat(path)
            except FileNotFoundError:
                self._missed.add(path)
                return
            if stat.S_ISREG(status.st_mode):
                self._opened[path] = _state(status)

    def _does_count(self, path: str) -> bool:
        folder = os.path.dirname(path)
        if folder not in self._counts:
            installed = any(part in INSTALLED for part in folder.split(os.sep))
            self._counts[folder] = not installed and not os.path.join(folder, "").startswith(self._left_out)
        return self._counts[folder] and path != self._file

    def _every(self) -> dict[str, str]:
        names = {*self._opened, *self._digests}
        if len(sys.modules) != self._modules:
            modules = {name: module for name, module in sys.modules.items() if name not in self._before}
            self._modules = len(sys.modules)
            names.update(filter(self._does_count, filter(None, map(_file_of, modules.values()))))
        names -= self._written
        if len(names) > _MOST_READ:
            return {min(names): UNKNOWN}
        depth, self._depth = self._depth, 0  # what is opened here counts for nothing
        for name in sorted(names - set(self._digests)):
            content = self._digest(name)
            if content is not None:
                self._digests[name] = content
        self._depth = depth
        return {name: self._digests[name] for name in sorted(names) if name in self._digests}

    def _digest(self, path: str) -> str | None:
        """Return the digest of what was read of a file; None if it cannot be read, and so was not."""
        try:
            before = os.stat(path)
            if not stat.S_ISREG(before.st_mode) or before.st_size > _LARGEST_READ:
                return UNKNOWN
            with open(path, "rb") as file:
                content = sha256(file.read(_LARGEST_READ)).hexdigest()
            after = _state(os.stat(path))
        except FileNotFoundError:
            return UNKNOWN
        except OSError:
            return None
        # What was edited since it was opened, or perhaps since it was imported, was read as it was before.
        same = after == self._opened[path] if path in self._opened else before.st_ctime_ns <= self._began
        return content if same and after == _state(before) else UNKNOWN


def _path_of(name: object) -> str:
    return os.path.abspath(os.fsdecode(name))  # type: ignore[arg-type] # else an exception


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _source_of(path: str) -> str:
    """Return the source of a file of bytecode; any other file unchanged."""
    with contextlib.suppress(ValueError, NotImplementedError):
        source = importlib.util.source_from_cache(path) if path.endswith(".pyc") else path
        return source if os.path.exists(source) else path
    return path


def _file_of(module: object) -> str:
    """Return the file of a module; empty if it has none."""
    # Not `getattr`, which may run a module's own `__getattr__`.
    path = getattr(module, "__dict__", {}).get("__file__")
    return os.path.abspath(path) if isinstance(path, str) else ""


# What a compile sets for itself before it loads the kernel's file: `import torch` reads none of it.
_OF_A_COMPILE = ("TRITON_CACHE_DIR", "TRITON_HOME", "TMPDIR", "TRITON_ALWAYS_COMPILE")
EXIT_COLD = 9  # of a fork whose file needs a process of its own


class TorchShelf(importlib.abc.MetaPathFinder):
    """An installed torch that was imported before a fork, and that a file gets when it imports torch.

    Until then, torch and the packages that it imports are not among the modules, so that a file that does
    without them is compiled as beside no torch. `import torch` takes 2.5 s of CPU, more than most compiles.

    Args:
        around: the surroundings, beside which torch is imported.
    """

    def __init__(self, around: FileSurroundings) -> None:
        self._around = around
        self._modules: dict[str, dict[str, types.ModuleType]] = {}  # by package
        self._names: set[str] = set()  # of all that torch imports, Python's own library included
        self._state: list[Any] = []
        self._path: list[str] = []
        self._news: Callable[[], None] = lambda: None

    @property
    def is_full(self) -> bool:
        """Report whether torch is there."""
        return bool(self._modules)

    @functools.cached_property
    def has_torch(self) -> bool:
        """Report whether a torch is installed, which needs no stand-in."""
        return importlib.machinery.PathFinder.find_spec("torch") is not None

    def fill(self) -> None:
        """Import torch, and hide it."""
        ledger, gpu, before = self._around.ledger, self._around.gpu, set(sys.modules)
        earlier = dict(ledger.used), dict(ledger.gone), dict(ledger.doubts)
        queried = gpu.queried
        torch = importlib.import_module("torch")

        # What the import noted is noted again when the file imports torch, as if it were imported then.
        after, now_asked = (dict(ledger.used), dict(ledger.gone), dict(ledger.doubts)), gpu.queried
        (ledger.used, ledger.gone, ledger.doubts), gpu.queried = earlier, queried

        def notes() -> None:
            for name, place in after[0].items():
                ledger.used.setdefault(name, place)
            for name, place in after[1].items():
                ledger.gone.setdefault(name, place)
            ledger.doubts.update(after[2])
            gpu.queried = gpu.queried or now_asked

        self._news = notes
        self._names = {name.partition(".")[0] for name in set(sys.modules) - before}
        for package in self._names:
            top = sys.modules.get(package)
            path = str(getattr(top, "__file__", None) or "")
            if top is torch or any(part in path for part in INSTALLED):
                names = [name for name in sys.modules if name.partition(".")[0] == package]
                self._modules[package] = {name: sys.modules.pop(name) for name in names}
        sys.meta_path.insert(0, self)
        self._state, self._path = self._now(), list(sys.path)

    def _now(self) -> list[Any]:
        """Return what an import of torch depends on."""
        ours = {*_OF_A_COMPILE, *self._around.gpu.variables()}
        environ = {name: value for name, value in os.environ.items() if name not in ours}
        # Of a file that is a part of torch, `tolerate` replaces what is done around the import.
        watched = {name: self._around.watcher.around.get(name) for name in self._modules}
        return [environ, watched, list(sys.meta_path), list(sys.path_hooks), builtins.__import__]

    def check(self) -> None:
        """End this process if torch, imported now, might not be the torch that was imported before."""
        if not self._modules or "torch" in sys.modules:
            return
        own = (name for modules in self._modules.values() for name in modules)
        foreign = [name for name in own if name in sys.modules and not self._is_ours(name)]
        # A folder of the user's that is new may have a `queue.py`, which torch would import.
        folders = [part for part in sys.path if part not in self._path]
        shadows = [part for part in folders if self._names & _modules_in(part)]
        if foreign or shadows or self._now() != self._state:
            # Not an exception, which the file might catch.
            os._exit(EXIT_COLD)

    def _is_ours(self, name: str) -> bool:
        return sys.modules[name] is self._modules[name.partition(".")[0]].get(name)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the usual spec of a hidden package, with a loader that has loaded it already."""
        if name not in self._modules:
            return None
        self.check()
        # Not the watcher: what it does around an import is done.
        others = (each for each in sys.meta_path if not isinstance(each, (TorchShelf, ImportWatcher)))
        specs = (each.find_spec(name, path, target) for each in others if hasattr(each, "find_spec"))
        spec = next((spec for spec in specs if spec), None)
        module = self._modules[name][name]
        old = getattr(module, "__spec__", None)
        if spec is None or spec.loader is None or old is None or spec.origin != old.origin:
            os._exit(EXIT_COLD)

        def exec_module(_: types.ModuleType) -> None:
            shown = self._modules.values() if name == "torch" else [self._modules[name]]
            for modules in shown:
                sys.modules.update(modules)
            if name == "torch":
                self._news()

        loader: Any = spec.loader
        loader.create_module, loader.exec_module = lambda _: module, exec_module
        return spec


def _modules_in(folder: str) -> set[str]:
    """Return the names that may be modules or packages in a folder."""
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return set()
    return {name.partition(".")[0] for name in names if "." not in name or name.endswith((".py", ".so"))}


def prepare(request: FileRequest, around: FileSurroundings | None = None) -> FileSurroundings:
    """Import Triton if need be, find disassemblers, and return the surroundings of a kernel's file."""
    if around is None:
        around = surroundings(request)
    else:
        around.renew(request)
    import triton

    origin = os.path.dirname(triton.__file__)
    around.disassemblers = {name: available(tool, origin) for name, tool in request.disassemblers.items()}
    scratch = request.scratch if isinstance(request, PointsRequest) else ""
    around.reads.leave_out(request.file, (origin, scratch))
    return around


def surroundings(request: FileRequest) -> FileSurroundings:
    """Import Triton, and return the surroundings of a kernel's file."""
    for name in SINGLE_THREADED:
        os.environ.setdefault(name, "1")
    around = FileSurroundings(request.stand_ins, request.gpus, request.lent)
    try:
        # Triton imports its code generator at the first compile: each child would do so again.
        import triton
        import triton.compiler.code_generator
        import triton.compiler.compiler
        import triton.runtime.cache
    except ImportError as error:
        raise RequestRefusedError(
            "triton", "this interpreter cannot import Triton 3.0 or later", why=str(error)
        ) from None
    # Triton's part of a cache key is a digest of libtriton.so, which may have gigabytes: it takes longer than
    # `import triton`. Only this Triton uses this run's cache, so any constant will do.
    for module in (triton.compiler.compiler, triton.runtime.cache):
        if hasattr(module, "triton_key"):
            module.triton_key = lambda: "tritonsmith"
    return around


def available(tool: DisassemblerRequest, origin: str) -> DisassemblerRequest:
    """Return a tool with those of its programs that exist; `origin` is the folder of Triton's package."""
    paths = [path.replace("{triton}", origin) for path in tool.programs]
    return dataclasses.replace(tool, programs=tuple([path for path in paths if os.access(path, os.X_OK)]))


def disassembled(tool: DisassemblerRequest, path: str) -> bytes | None:
    """Return the text of the first disassembler that can read a file; None if none can: the log says why."""
    # An older cuobjdump on the PATH cannot read cubins of newer GPUs; the next program may.
    errors = []
    folder, name = os.path.split(os.path.abspath(path))
    for program in tool.programs:
        # By its name alone, which llvm-objdump prints: the text of a binary is then the same in any folder.
        argv = [program, *tool.flags, name]
        slot, key = text_slot(tool, program, path)
        text = read_slot(slot, key)
        if text is not None:
            return text
        done = subprocess.run(argv, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode == 0:
            # A text that names its file, as that of llvm-objdump does, is not that of another file.
            if slot and os.fsencode(name) not in done.stdout:
                keep_slot(slot, key, done.stdout)
            return done.stdout
        errors.append(done.stderr.decode(errors="replace"))
    sys.stderr.write("".join(errors))
    return None


# nvdisasm takes half a second of CPU for the smallest kernel, more than the compile, and most compiles of a
# search or of an edited program give a binary that was there before. The folder is a direct-mapped cache: the
# key says which of its files a text replaces, so that it never has to be pruned.
_SLOTS = 16384
_LARGEST = 1 << 20  # bytes, compressed: a kernel's text has some ten thousand


def text_slot(tool: DisassemblerRequest, program: str, path: str) -> tuple[str, bytes]:
    """Return the file that may hold what a program prints of a binary, empty if none is kept, and its key."""
    if not tool.kept:
        return "", b""
    state = os.stat(program)
    with open(path, "rb") as file:
        content = sha256(file.read()).hexdigest()
    # Of the program, as ccache does by default: size and time, since its content is that of a whole LLVM.
    identity = [program, *tool.flags, state.st_size, state.st_mtime_ns, content]
    key = sha256(json.dumps(identity).encode()).digest()
    return slot_of(tool.kept, key), key


def slot_of(folder: str, key: bytes, slots: int = _SLOTS) -> str:
    """Return the file of a folder that may hold what was kept under a key."""
    return os.path.join(folder, f"{int.from_bytes(key[:4], 'big') % slots:04x}")


def read_slot(slot: str, key: bytes) -> bytes | None:
    """Return the content of a file that was kept under a key; None if there is none."""
    # Whatever the file is, the disassembler can be asked.
    with contextlib.suppress(OSError, zlib.error), open(slot, "rb") as file:
        if file.read(len(key)) == key:
            return zlib.decompress(file.read())
    return None


def keep_slot(slot: str, key: bytes, text: bytes) -> None:
    """Keep a content under a key, in place of what the file holds."""
    packed = zlib.compress(text, 1)
    if len(packed) > _LARGEST:
        return
    # A full disk or a folder that is not writable costs time only.
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(slot), exist_ok=True)
        handle, path = tempfile.mkstemp(dir=os.path.dirname(slot))
        try:
            with open(handle, "wb") as file:
                file.write(key + packed)
            os.replace(path, slot)
        except OSError:
            os.unlink(path)
            raise
