"""Compiles one kernel for many points, in an interpreter that has Triton 3.0 or later: no GPU, no torch.

    python worker.py compile REQUEST      results to the file that the request names, progress to stdout
    python worker.py describe JSON        one JSON object about the kernel, to stdout
    python worker.py serve REQUEST POINT  a process that loads the file for one target, and compiles

One file, Triton and the standard library, Python 3.8 and later, so that any env can run it.

Triton is imported once. Processes forked from here take one point after the other; where one dies, by the
compiler's assertion or crash, or is killed because its time is over, that point is a row and another process
goes on with the rest.

Of the kernel's file only what the kernel needs is run: its definition and the statements that bind or change
a name which it mentions, and what these mention in turn. So a tutorial that measures or exits compiles.
"""

# `open` and os.path: a worker starts in no more time than `import triton` takes, and pathlib is not free.
# ruff: noqa: PTH100, PTH102, PTH103, PTH108, PTH110, PTH118, PTH119, PTH120, PTH122, PTH123, PTH208

from __future__ import annotations

import ast
import contextlib
import dataclasses
import faulthandler
import functools
import gc
import importlib.util
import inspect
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
import types
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

ALIGNED = 16  # the hint that says: divisible by it
EXIT_REFUSED = 2
EXIT_INTERRUPTED = 130
# What OpenMP and the libraries for linear algebra that NumPy and torch bring read, when they are imported.
SINGLE_THREADED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LONGEST_LOG = 100000  # characters of standard error that a result carries
COMPILES_OF_A_LOAD = (
    8  # that take as long as a load of a file that imports much: `import torch` takes 3 s of CPU time
)
LOOKS_UP = 1.0  # seconds between two looks at whether who started this is still there

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    Table = dict[str, Any]  # what JSON carries
    Loader = Callable[[list[Any]], "Loaded | None"]
    Report = Callable[[int, Table], None]


class RefusedError(Exception):
    """The request as a whole cannot be done; `about` is what the tool is told."""

    def __init__(self, kind: str, what: str, **more: Any) -> None:
        super().__init__(what)
        self.about = dict(kind=kind, what=what, **more)


def _beside(name: str) -> Any:
    """A module that lies beside this file: this interpreter has no tritonsmith."""
    full = f"_tritonsmith_{name}"
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    spec = importlib.util.spec_from_file_location(full, path)
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - it is a file
    module = importlib.util.module_from_spec(spec)
    sys.modules[full] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    fake_gpu, stand_ins = _beside("fake_gpu"), _beside("stand_ins")
else:  # for a test
    from tritonsmith.kernels import fake_gpu, stand_ins


class Surroundings:
    """What a kernel's file finds around it that is not here: modules, and the GPU.

    Attributes:
        ledger: what was replaced, and what hangs on it.
        gpu: the one that is asked for.
    """

    def __init__(self, modules: Iterable[str], gpus: Table) -> None:
        self.ledger = stand_ins.Ledger(fake_gpu.PROVIDED)
        self.gpu = fake_gpu.FakeGpu(self.ledger.note, stand_ins.UnknownError, gpus)
        self._watcher = stand_ins.Watcher({"torch": functools.partial(fake_gpu.patched, self.gpu)})
        sys.meta_path.insert(0, self._watcher)
        provide = functools.partial(fake_gpu.provide, self.gpu)
        sys.meta_path.append(stand_ins.Finder(modules, self.ledger, provide))

    def become(self, target: Any) -> None:
        """The GPU is another one from now on."""
        import triton

        self.gpu.become(target)
        triton.runtime.driver.set_active(fake_gpu.FakeDriver(self.gpu))

    def tolerate(self, package: str) -> None:
        """Go on where the `__init__.py` of a package, or of one that it is in, cannot be run to its end.

        It often imports all that the package has, with compiled extensions that are not here; a kernel needs
        little of that, and what it lacks then is an error of its own.
        """

        def run(rest: Callable[[], None], module: types.ModuleType) -> None:
            try:
                rest()
            except (Exception, stand_ins.UnknownError) as error:  # noqa: BLE001 - whatever it does
                self.ledger.note(f"{module.__name__}/__init__.py was not run to its end: {error}")

        parts = package.split(".")
        for length in range(1, len(parts) + 1):
            self._watcher.around[".".join(parts[:length])] = run


# ---------------------------------------------------------------- what of a file is run


def needed(tree: ast.Module, wanted: str) -> list[ast.stmt] | None:
    """The statements of a module that bind or change `wanted` or a name that it needs, in order."""
    facts = [_Statement(node) for node in tree.body]
    data = {name for fact in facts if fact.data for name in fact.binds}
    names: set[str] = {wanted}
    kept: set[int] = set()
    while True:
        more = {
            number
            for number, fact in enumerate(facts)
            if number not in kept and (fact.always or fact.binds & names or fact.changes & names & data)
        }
        if not more:
            break
        kept |= more
        for number in more:
            names |= facts[number].reads
        if names & {"globals", "exec", "eval"}:  # nobody can say what these need
            return list(tree.body)
    if not any(wanted in facts[number].binds or facts[number].star for number in kept):
        return None
    return [tree.body[number] for number in sorted(kept)]


class _Statement:
    """What a statement of a module binds, changes and reads."""

    def __init__(self, node: ast.stmt) -> None:
        self.binds: set[str] = set()
        self.changes: set[str] = set()
        self.reads: set[str] = set()
        self.star = self.always = False
        plain = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        self.data = not isinstance(node, plain)
        self._look(node)
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and self.reads & {"sys", "os"}:
            self.always = not _ends(node)  # sys.path.insert(...), os.environ[...] = ...
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            self.always = True

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            self._function(node)
            return
        if isinstance(node, ast.ClassDef):
            self.binds.add(node.name)
            inside = _Statement(
                ast.If(ast.Constant(True), [*node.body, *_expressions(node.decorator_list)], [])
            )
            self.reads |= inside.reads
            node = ast.Tuple([*node.bases, *(keyword.value for keyword in node.keywords)], ast.Load())
        elif isinstance(node, ast.Name):
            (self.reads if isinstance(node.ctx, ast.Load) else self.binds).add(node.id)
        elif isinstance(node, ast.alias):
            self.star = self.always = self.always or node.name == "*"
            self.binds.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            self.changes.add(_root(node.func))
        elif isinstance(node, (ast.Attribute, ast.Subscript)) and not isinstance(node.ctx, ast.Load):
            self.binds.add(_root(node))
        for child in ast.iter_child_nodes(node):
            self._look(child)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
        """What it reads of the module; its own names are nobody's business."""
        body = node.body if isinstance(node.body, list) else _expressions([node.body])
        inside = _Statement(ast.If(ast.Constant(True), body, []))
        everywhere = {name for part in ast.walk(node) if isinstance(part, ast.Global) for name in part.names}
        heads = node.args
        own = {arg.arg for arg in [*heads.posonlyargs, *heads.args, *heads.kwonlyargs]}
        own |= {arg.arg for arg in (heads.vararg, heads.kwarg) if arg}
        self.reads |= everywhere | inside.reads - (own | inside.binds)
        outer = [*heads.defaults, *filter(None, heads.kw_defaults), *getattr(node, "decorator_list", [])]
        outer += [
            arg.annotation for arg in [*heads.posonlyargs, *heads.args, *heads.kwonlyargs] if arg.annotation
        ]
        returns = getattr(node, "returns", None)
        outer += [returns] if returns else []
        for part in outer:
            self._look(part)
        if not isinstance(node, ast.Lambda):
            self.binds.add(node.name)


def _ends(node: ast.stmt) -> bool:
    """Whether it does nothing but end the program."""
    call = node.value if isinstance(node, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in ("exit", "_exit", "abort")


def _expressions(nodes: list[ast.expr]) -> list[ast.stmt]:
    return [ast.Expr(node) for node in nodes]


def _root(node: ast.AST) -> str:
    """`configs` of `configs.all[0].append`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def candidates(tree: ast.Module) -> list[str]:
    """Names of the functions that look like kernels; those inside of others nobody can name."""
    found = []
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            waiting = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)] + waiting
        if isinstance(node, ast.FunctionDef):
            words = [ast.dump(decorator) for decorator in node.decorator_list]
            if any(f"'{word}'" in text for text in words for word in ("jit", "autotune", "heuristics")):
                found.append(node.name)
    return found


class Loaded:
    """A kernel and what was put around it.

    `fn` is the JITFunction; `configs` are those of its autotuner, `heuristics` maps names to functions.
    """

    def __init__(self, fn: Any, configs: list[Any], heuristics: Table) -> None:
        self.fn, self.configs, self.heuristics = fn, configs, heuristics


def load(path: str, name: str, around: Surroundings) -> Loaded:
    """Run what the kernel needs of its file, and unwrap it.

    Args:
        path: the file.
        name: of the kernel; `make.k` for one that is defined in the function `make`.
        around: what it finds, the GPU among it.
    """
    try:
        with open(path, "rb") as file:
            text = file.read()
        tree = ast.parse(text, path)
    except OSError as error:
        raise RefusedError("file", "cannot read this file", why=str(error)) from None
    except (SyntaxError, ValueError) as error:
        number, line = getattr(error, "lineno", None), (getattr(error, "text", None) or "").strip()
        why = str(getattr(error, "msg", error))
        if number:  # none where it is about the whole file
            why = f"line {number}: {why}: {line}"
        raise RefusedError("file", "this file is no Python of this interpreter", why=why) from None
    head, *inner = name.split(".")
    body = needed(tree, head)
    makes = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    if body is None and makes:
        body = tree.body
    if body is None:
        raise RefusedError("kernel", f"there is no kernel {name!r} in this file", names=candidates(tree))
    module = types.ModuleType(os.path.splitext(os.path.basename(path))[0])
    module.__file__ = path
    package, root = package_of(path, body)
    if package:
        module.__package__ = package
        sys.path.insert(0, root)
        sys.path.append(os.path.dirname(path))  # the last: what lies there has names of the package
        around.tolerate(package)
    else:
        sys.path.insert(0, os.path.dirname(path))
    if (
        module.__name__ in sys.modules
    ):  # a kernel file named like a module of the standard library or of Triton
        module.__name__ = f"_kernel_{module.__name__}"
    sys.modules[module.__name__] = module
    _run(functools.partial(_execute, ast.Module(body=body, type_ignores=[]), path, module), path)
    stand_ins.note_identities(body, vars(module), path, around.ledger)
    if not hasattr(module, head):
        raise RefusedError("kernel", f"there is no kernel {name!r} in this file", names=candidates(tree))
    whole = getattr(module, head)
    for part in inner:
        whole = _run(functools.partial(_inside, whole, part), path)
    loaded = _unwrapped(whole, name, tree)
    check_globals(loaded.fn, around.ledger)
    return loaded


def _execute(tree: ast.Module, path: str, module: types.ModuleType) -> None:
    code = compile(tree, path, "exec", dont_inherit=True)  # or its annotations would be texts, as those here
    exec(code, vars(module))  # noqa: S102 - what is asked for


def _inside(function: Any, name: str) -> Any:
    """What a function that takes no arguments binds to a name while it runs."""
    if not inspect.isfunction(function):
        raise RefusedError("kernel", f"{name!r} is not looked for in a {type(function).__name__}", names=[])
    called = f"{function.__name__}()"
    wanted = [
        one.name
        for one in inspect.signature(function).parameters.values()
        if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if wanted:
        what = f"{called} has the kernel inside, and needs arguments: {', '.join(wanted)}"
        why = f"bind it in a file of your own: k = {function.__name__}(...), and name k"
        raise RefusedError("factory", what, why=why)
    found: Table = {}

    def at_return(frame: types.FrameType, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is function.__code__:
            found.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(at_return)
    try:
        function()
    finally:
        sys.setprofile(before)
    if name not in found:
        raise RefusedError("kernel", f"{called} binds no {name!r}", names=[])
    return found[name]


def _unwrapped(whole: Any, name: str, tree: ast.Module) -> Loaded:
    """The JITFunction below its decorators."""
    import triton

    kernel = whole
    configs: list[Any] = []
    heuristics: Table = {}
    while not isinstance(kernel, triton.runtime.jit.JITFunction):
        configs += getattr(kernel, "configs", [])
        if isinstance(getattr(kernel, "values", None), dict):
            heuristics.update(kernel.values)
        if not hasattr(kernel, "fn") or stand_ins.name_of(kernel):
            kind = stand_ins.name_of(whole) or f"a {type(whole).__name__}"
            raise RefusedError(
                "kernel", f"{name} is no kernel of Triton's: it is {kind}", names=candidates(tree)
            )
        kernel = kernel.fn
    return Loaded(kernel, configs, heuristics)


def check_globals(kernel: Any, ledger: Any) -> None:
    """Refuse a kernel that reads a constant whose value is a stand-in: it would be compiled into the code.

    Decorators that it, or a kernel that it calls, lacks are noted.
    """
    waiting, seen = [kernel], set()
    while waiting:
        function = getattr(waiting.pop(), "fn", None)
        if not inspect.isfunction(function) or function in seen:
            waiting += [function] if hasattr(function, "fn") else []
            continue
        code = function.__code__
        seen.add(function)
        ledger.bare(function)
        free = inspect.getclosurevars(function).nonlocals
        for name in (*code.co_names, *code.co_freevars):
            value = free.get(name, function.__globals__.get(name))
            ours = type(value).__module__.partition(".")[0] == "triton"  # a constexpr, or another kernel
            constant = function.__globals__.get("__annotations__", {}).get(name)  # X: tl.constexpr = ...
            stood = stand_ins.name_of(getattr(value, "value", None) if ours else value)
            if stood and (constant or ours):
                what = f"{name} of {function.__name__} is {stood}"
                raise unknown(f"{what}, and {stood.partition('.')[0]} is not installed", stood)
            if ours and hasattr(value, "fn"):
                waiting.append(value)


def unknown(what: str, stood: str = "", why: str = "") -> RefusedError:
    """The error about a value that nobody here knows.

    Args:
        what: the whole sentence.
        stood: the stand-in that it is about, if any.
        why: where in the file.
    """
    return RefusedError("unknown", what, why=why, package=stood.partition(".")[0])


def package_of(path: str, body: list[ast.stmt]) -> tuple[str, str]:
    """The package that a file is in, and the folder of that; empty where it is in none.

    As many folders up as have an `__init__.py`, or as relative imports need.
    """
    imports = [node for part in body for node in ast.walk(part) if isinstance(node, ast.ImportFrom)]
    deepest = max((node.level for node in imports), default=0)
    folder = os.path.dirname(os.path.abspath(path))
    names: list[str] = []
    while len(names) < deepest or os.path.exists(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
        if not name:
            return "", ""
    return (".".join(names), folder) if names else ("", "")


def _run(what: Callable[[], Any], path: str) -> Any:
    try:
        return what()
    except RefusedError:
        raise
    except stand_ins.UnknownError as error:
        raise unknown(str(error), error.name, _where(error, path)) from None
    except ImportError as error:  # ModuleNotFoundError included
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        gone = isinstance(error, ModuleNotFoundError) and missing not in sys.modules
        raise RefusedError(
            "import", str(error), why=_where(error, path), module=missing if gone else ""
        ) from None
    except SystemExit as error:
        raise RefusedError(
            "file", f"this file ends the program: exit code {error.code}", why=_where(error, path)
        ) from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        said = f"this file cannot be run: {type(error).__name__}: {error}"
        raise RefusedError("file", said, why=_where(error, path)) from None


def _where(error: BaseException, path: str) -> str:
    """The last line of the user's file that the error passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"line {frames[-1].lineno}: {frames[-1].line}" if frames else ""


# ---------------------------------------------------------------- what ptxas knows and says

ASSEMBLED: list[str] = []  # what it wrote, run by run
REMARK = re.compile(r"^ptxas\b[^:]*\b(?:info *: *(?=\(C\d+\))|warning *: *)(.+)$", re.MULTILINE)


def listen() -> None:
    """Keep what ptxas writes: Triton deletes the file if all went well, and an audit hook sees it go."""

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "os.remove" and str(arguments[0]).endswith(".log"):
            ASSEMBLED.append(text_of(arguments[0]))

    sys.addaudithook(heard)


def remarks() -> list[str] | None:
    """Its warnings, and what it says with a code: of lost performance, say; None if nothing was heard."""
    found = (text.strip() for said in ASSEMBLED for text in REMARK.findall(said))
    return list(dict.fromkeys(found)) if any("ptxas" in said for said in ASSEMBLED) else None


def ptxas_for(arch: int) -> str:
    """The ptxas that this Triton runs for a GPU; empty if it has none, or names it in a way of its own."""
    try:
        from triton.backends.nvidia import compiler

        if not hasattr(compiler, "get_ptxas"):  # 3.0 to 3.2
            return str(compiler._path_to_binary("ptxas")[0])  # noqa: SLF001
        takes = inspect.signature(compiler.get_ptxas).parameters  # none in 3.4 and 3.5
        found = compiler.get_ptxas(arch) if takes else compiler.get_ptxas()
        return str(found[0] if isinstance(found, tuple) else found.path)  # a pair in 3.3
    except Exception:  # noqa: BLE001 - then the compile itself tells what is wrong
        return ""


@functools.lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8
def gpus_of(ptxas: str) -> list[int]:
    """The GPUs that a ptxas makes code for: 80, 90; empty if it does not tell."""
    argv = [ptxas, "--help"]
    with contextlib.suppress(OSError):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        text = done.stdout.decode(errors="replace")
        return sorted({int(number) for number in re.findall(r"'sm_(\d+)[a-z]?'", text)})
    return []


def check_gpu(arch: int) -> None:
    """Refuse what is no GPU, or none of this Triton's: LLVM may abort before ptxas gets to say so."""
    import triton

    ptxas = ptxas_for(arch)
    programs = {ptxas, *map(ptxas_for, gpus_of(ptxas))}  # newer GPUs have one of their own
    known = sorted(number for one in programs for number in gpus_of(one) if ptxas_for(number) == one)
    if known and arch not in known:
        near = min(known, key=lambda number: abs(number - arch))
        names = ", ".join(f"sm_{number}" for number in known)
        what = f"sm_{arch} is no GPU of Triton {triton.__version__}"
        why = f"its ptxas knows {names}; the nearest is sm_{near}"
        raise RefusedError("target", what, why=why)


# ---------------------------------------------------------------- one compile


def decoded(value: Any) -> Any:
    """A value as Triton takes it: lists of JSON are tuples, {"dtype": "float16"} is tl.float16."""
    if isinstance(value, list):
        return tuple(map(decoded, value))
    if isinstance(value, dict):
        import triton.language as tl

        return getattr(tl, value["dtype"])
    return value


def encoded(value: Any) -> Any:
    """The opposite.

    Raises:
        RefusedError: it is a stand-in.
        TypeError: JSON cannot carry it.
    """
    if stand_ins.name_of(value):
        stood = stand_ins.name_of(value)
        raise unknown(
            f"a value of the kernel is {stood}, and {stood.partition('.')[0]} is not installed", stood
        )
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [encoded(part) for part in value]
    import triton.language as tl

    for name, known in vars(tl).items():
        if known is value and isinstance(known, tl.dtype):
            return {"dtype": name}
    raise TypeError(f"a {type(value).__name__} cannot be written down")


def nested(kind: str) -> Any:
    """`(i32,*fp32)` as a tuple of types; a plain type as it is."""
    if not kind.startswith("("):
        return kind
    parts, depth, begin = [], 0, 1
    for position, char in enumerate(kind):
        depth += (char in "([<") - (char in ")]>")
        if (char == "," and depth == 1) or depth == 0:
            parts.append(kind[begin:position])
            begin = position + 1
    return tuple(nested(part) for part in parts if part)


def make_source(loaded: Loaded, signature: dict[str, str], constexprs: Table, hints: dict[str, int]) -> Any:
    """What `triton.compile` takes: `constants` and a descriptor up to 3.2, `constexprs` and a dict since 3.3.

    triton-lang/triton#5220. Gluon's kernels have a class of their own.
    """
    import triton
    from triton.compiler import ASTSource

    fn = loaded.fn
    if type(fn).__name__ == "GluonJITFunction":
        from triton.experimental.gluon._runtime import GluonASTSource as ASTSource
    names = list(fn.arg_names)

    def path(name: str) -> tuple[int, ...]:
        head, *rest = name.split(".")
        return (names.index(head), *map(int, rest))

    ones = {name: 1 for name, hint in hints.items() if hint == 1}
    values = {name: decoded(value) for name, value in constexprs.items()}
    values.update(ones)
    if "constexprs" in inspect.signature(ASTSource.__init__).parameters:
        types_ = {name: "constexpr" if name in values else nested(kind) for name, kind in signature.items()}
        attrs = {path(name): [["tt.divisibility", 16]] for name, hint in hints.items() if hint == ALIGNED}
        return ASTSource(
            fn=fn, signature=types_, constexprs={path(key): one for key, one in values.items()}, attrs=attrs
        )
    parts = sorted(name for name in values if "." in name) + [k for k, v in signature.items() if v[0] == "("]
    if parts:
        raise RefusedError("version", f"Triton {triton.__version__} has no tuples: {parts[0]}")
    kinds = {name: kind for name, kind in signature.items() if kind != "constexpr"}
    positions = {names.index(name): hint for name, hint in hints.items()}
    return ASTSource(fn=fn, signature=kinds, constants=values, attrs=_descriptor(positions))


def _descriptor(hints: dict[int, int]) -> Any:
    """AttrsDescriptor of 3.0 and 3.1, and that of 3.2, which lies elsewhere (cd1cc2d54b)."""
    try:
        from triton.backends.compiler import AttrsDescriptor

        return AttrsDescriptor.from_hints(hints)
    except ImportError:
        from triton.compiler.compiler import AttrsDescriptor

        sixteen = {position for position, hint in hints.items() if hint == ALIGNED}
        return AttrsDescriptor(divisible_by_16=sixteen, equal_to_1=set(hints) - sixteen)


def complete(loaded: Loaded, point: Table) -> Table:
    """The constants of a point, with what heuristics compute from them."""
    constexprs = dict(point["constexprs"])
    for name in point["signature"]:
        if point["signature"][name] != "constexpr" or name in constexprs:
            continue
        try:
            known = {key: decoded(value) for key, value in constexprs.items()}
            constexprs[name] = encoded(loaded.heuristics[name](known))
        except KeyError as error:
            what = f"{name} is computed by @triton.heuristics, from {error}, which is no constant here"
            raise RefusedError("value", f"{what}: give it a value, {name}=...") from None
    return constexprs


def compile_point(request: Table, point: Table, loaded: Loaded | None, folder: str) -> Table:
    """Compile, and write each stage to a file; what the manifest says of it."""
    import triton
    from triton.backends.compiler import GPUTarget

    target = GPUTarget(*point["target"])
    if target.backend == "cuda":
        check_gpu(target.arch)
    options = {name: decoded(value) for name, value in point["options"].items()}
    signature: dict[str, str] = {}
    constexprs: Table = {}
    source = request["file"]
    if loaded:
        signature, constexprs = point["signature"], complete(loaded, point)
        source = make_source(loaded, signature, constexprs, point["hints"])
    ASSEMBLED.clear()
    began = time.monotonic()
    compiled = triton.compile(source, target=target, options=options)
    seconds = time.monotonic() - began
    stages = {}
    if not loaded:
        signature = {f"arg{key}": str(kind) for key, kind in compiled.src.signature.items()}
        if request["file"].rpartition(".")[2] not in compiled.asm:
            with open(request["file"], encoding="utf-8") as file:
                compiled.asm[request["file"].rpartition(".")[2]] = file.read()
    made = request["disassemblers"]
    for name in request["stages"]:
        if name in compiled.asm and (
            not request["keep"] or {name, made.get(name, {}).get("stage")} & set(request["keep"])
        ):
            content = compiled.asm[name]
            raw = content if isinstance(content, bytes) else content.encode()
            stages[name] = write(request, folder, name, raw)
            if name in made and request.get("disassemble", True):
                text = disassembled(made[name], os.path.join(request["output"], stages[name]["path"]))
                if text is not None:
                    stages[made[name]["stage"]] = write(request, folder, made[name]["stage"], text)
    metadata = json.loads(json.dumps(compiled.metadata._asdict(), default=str))
    metadata["target"] = ":".join(map(str, point["target"]))
    result = {"status": "ok", "seconds": seconds, "stages": stages, "metadata": metadata, "error": ""}
    return {**result, "signature": signature, "constexprs": constexprs, "remarks": remarks()}


def write(request: Table, folder: str, stage: str, raw: bytes) -> Table:
    """Write one file; where it is."""
    path = os.path.join(folder, f"{request['kernel']}.{stage}")
    with open(path, "xb") as file:
        file.write(raw)
    return {
        "path": os.path.relpath(path, request["output"]),
        "size": len(raw),
        "sha256": sha256(raw).hexdigest(),
    }


def disassembled(tool: Table, path: str) -> bytes | None:
    """The text of the first disassembler that knows this file; None if none does: the log says why."""
    said = []
    for program in tool["found"]:
        argv = [program, *tool["flags"], path]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode == 0:
            return done.stdout
        said.append(done.stderr.decode(errors="replace"))
    sys.stderr.write("".join(said))
    return None


def find_disassemblers(request: Table, origin: str) -> list[str]:
    """Which programs are there for each; names of the stages that have none."""
    missing: list[str] = []
    for tool in request["disassemblers"].values():
        paths = [path.replace("{triton}", origin) for path in tool["programs"]]
        tool["found"] = [path for path in paths if os.access(path, os.X_OK)]
        missing += [] if tool["found"] else [tool["stage"]]
    return missing


def told(error: BaseException | None, loaded: Loaded | None) -> str:
    """The compiler's own message, and where in the file it is."""
    text = ""
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


def place_of(function: Any, number: int) -> str:
    """FILE:LINE of a line of a function, as Triton counts: from its `def` on."""
    lines, first = inspect.getsourcelines(function)
    head = next((index for index, line in enumerate(lines) if line.strip().startswith("def ")), 0)
    return f"{inspect.getsourcefile(function)}:{first + head + number - 1}"


def one(request: Table, point: Table, loaded: Loader, ledger: Any) -> Table:
    """One point, whatever it does: its result, but for its id."""
    folder = os.path.join(request["output"], point["id"])
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "log")
    made = [tool["stage"] for tool in request["disassemblers"].values()]
    stages = [f"{request['kernel']}.{stage}" for stage in [*request["stages"], *made]]
    for name in ["log", "metadata.json", *stages]:  # of an earlier run, and perhaps links
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.dup2(into, 1)
    os.dup2(into, 2)
    os.close(into)
    began = time.monotonic()
    kernel = None
    try:
        kernel = loaded(point["target"])
        ledger.strict = True
        result = compile_point(request, point, kernel, folder)
    except KeyboardInterrupt:
        raise
    except stand_ins.UnknownError as error:
        result = failed("failed", str(error), began)
    except RefusedError as error:
        result = failed(
            "failed", str(error) + (f"\n{error.about['why']}" if error.about.get("why") else ""), began
        )
        result["loaded"] = kernel is not None or request["ir"]
    except BaseException as error:  # noqa: BLE001 - SystemExit too: a failure of any kind is an answer
        traceback.print_exc()
        strange = isinstance(error, KeyError) and error.args[0] in point["signature"].values()
        what = f"this Triton has no type {error}" if strange else told(error, kernel)
        result = failed("failed", what, began)
    ledger.strict = False
    sys.stdout.flush()
    sys.stderr.flush()
    return {**result, **ledger.news()}


def failed(status: str, error: str, began: float) -> Table:
    """The result of a point that did not compile."""
    return {
        "status": status,
        "seconds": time.monotonic() - began,
        "stages": {},
        "metadata": {},
        "error": error,
    }


def text_of(path: str, most: int = 4 * LONGEST_LOG) -> str:
    """The last bytes of a file, from a line's beginning on; nothing if it cannot be read.

    A log with a dump of each pass may have a gigabyte.
    """
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - most, 0))
            raw = file.read()
    except OSError:
        return ""
    text = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return text if size <= most else text.partition("\n")[2] or text


def finished(request: Table, point: Table, result: Table) -> Table:
    """A result with everything that the manifest has of a point."""
    log = text_of(os.path.join(request["output"], point["id"], "log"))
    row = {key: point[key] for key in ("id", "signature", "constexprs", "hints", "options")}
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


# ---------------------------------------------------------------- many compiles


def loader(first: Loaded | None, around: Surroundings) -> Loader:
    """The kernel for a target: the file was loaded for it, or did not ask for the GPU."""
    from triton.backends.compiler import GPUTarget

    def loaded(target: list[Any]) -> Loaded | None:
        around.become(GPUTarget(*target))
        return first

    return loaded


def refuser(error: RefusedError) -> Loader:
    """No kernel for a target: why."""

    def refused(_: list[Any]) -> Loaded | None:
        raise error

    return refused


def serve(request: Table, loaded: Loader, around: Surroundings, reader: Iterable[str], writer: Any) -> None:
    """Compile the points whose numbers come in, one a line; one JSON object a line goes out."""
    die_with_parent()
    listen()
    faulthandler.enable(2)  # into the log of the point that is being compiled
    for line in reader:
        result = one(request, request["points"][int(line)], loaded, around.ledger)
        writer.write(json.dumps(result) + "\n")
        writer.flush()


def die_with_parent() -> None:
    """What a killed worker started must not go on."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(Exception):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # writing one takes longer than the compile
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


@dataclasses.dataclass(frozen=True)
class Group:
    """Points for which one load of the kernel's file serves.

    Attributes:
        target: for which it is loaded and compiled: `cuda:90:32`.
        loads: each child of the group loads the file by itself.
    """

    target: str
    loads: bool


class Child:
    """One process that compiles points of one group: those for which one load of the file serves."""

    def __init__(
        self, group: Group, work: Callable[[Any, Any], None], argv: list[str] | None, siblings: list[Child]
    ) -> None:
        """Start it.

        Args:
            group: of its points.
            work: what it does with what comes in and goes out, if it is forked.
            argv: the command of a process that is started instead, because a fork would not do.
            siblings: those that are there.
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

    def _serve(self, work: Callable[[Any, Any], None], there: int, back: int, siblings: list[Child]) -> None:
        code = 1
        try:
            os.setpgid(0, 0)
            for child in (self, *siblings):  # or their pipes would never seem closed
                os.close(child.into)
                os.close(child.out)
            with open(there, encoding="ascii") as reader, open(back, "w", encoding="utf-8") as writer:
                try:
                    work(reader, writer)
                except BaseException:  # why; before the pipes close, and it is killed
                    traceback.print_exc()
                    raise
            code = 0
        finally:
            os._exit(code)

    def give(self, number: int, timeout: float) -> None:
        """Let it compile a point."""
        self.number, self.began = number, time.monotonic()
        self.deadline = self.began + timeout
        with contextlib.suppress(BrokenPipeError):
            os.write(self.into, b"%d\n" % number)

    def end(self) -> str:
        """Stop it with all that it started; how it ended, in words."""
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


class Pool:
    """Hands points to children, and rows to `report`."""

    def __init__(
        self,
        request: Table,
        groups: list[Group],
        start: Callable[[Group, list[Child]], Child],
        report: Report,
    ) -> None:
        """Nothing runs yet.

        Args:
            request: what is asked for.
            groups: of each point.
            start: starts a child for a group, beside others.
            report: is told the result of each point.
        """
        self.request, self.start, self.report = request, start, report
        self.waiting: dict[Group, list[int]] = {}
        for number in reversed(range(len(groups))):
            self.waiting.setdefault(groups[number], []).append(number)
        self.chosen = selectors.DefaultSelector()
        self.children: list[Child] = []
        self.asker = os.getppid()

    def run(self) -> None:
        """Until every point has its row."""
        try:
            for _ in range(min(self.request["jobs"], len(self.request["points"]))):
                self._more()
            while self.children:
                if os.getppid() != self.asker:  # killed: nobody waits for this, and its lock is free
                    raise KeyboardInterrupt
                nearest = min(child.deadline for child in self.children) - time.monotonic()
                for key, _ in self.chosen.select(min(max(0.0, nearest), LOOKS_UP)):
                    self._hear(key.data)
                for child in [one for one in self.children if one.deadline < time.monotonic()]:
                    seconds = self.request["timeout"]
                    self._lost(child, "timeout", f"given up after {seconds} s")
        finally:
            for child in list(self.children):
                child.end()

    def _more(self) -> None:
        group = self._next()
        if group is not None:
            child = self.start(group, self.children)
            self.children.append(child)
            self.chosen.register(child.out, selectors.EVENT_READ, child)
            child.give(self.waiting[group].pop(), self.request["timeout"])

    def _next(self) -> Group | None:
        """The group that needs a child most; None if all have as many as are worth it.

        Where each child has to load the file, another one costs as much time as several compiles.
        """
        busy = [child.group for child in self.children]
        left = {group: len(waiting) for group, waiting in self.waiting.items() if waiting}
        worth = [
            group
            for group, count in left.items()
            if group not in busy or not group.loads or count > COMPILES_OF_A_LOAD * busy.count(group)
        ]
        return min(worth, key=lambda group: (busy.count(group), -left[group]), default=None)

    def _hear(self, child: Child) -> None:
        heard = os.read(child.out, 1 << 16)
        if not heard:
            self._lost(child, "crashed", "")
            return
        child.buffer += heard
        if child.buffer.endswith(b"\n"):
            result, child.buffer = json.loads(child.buffer), b""
            self.report(child.number, result)
            if self.waiting[child.group]:
                child.give(self.waiting[child.group].pop(), self.request["timeout"])
            else:
                self._gone(child)
                self._more()

    def _lost(self, child: Child, status: str, error: str) -> None:
        ended = self._gone(child)
        self.report(child.number, failed(status, error or ended, child.began))
        self._more()

    def _gone(self, child: Child) -> str:
        self.chosen.unregister(child.out)
        self.children.remove(child)
        return child.end()


def can_fork() -> bool:
    """Whether nothing but this thread runs: a lock that another holds would stay locked in the child."""
    if not hasattr(os, "fork"):
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        import threading

        return threading.active_count() == 1


def check_options(request: Table) -> list[str]:
    """Leave out of points what only another backend knows; refuse what none does.

    `parse_options` of the backends passes over names that it does not know.
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    known: dict[str, set[str]] = {}
    for point in request["points"]:
        name = point["target"][0]
        if name not in known:
            try:
                options = make_backend(GPUTarget(*point["target"])).parse_options({})
            except RuntimeError as error:
                raise RefusedError(
                    "backend", f"this Triton has no backend for {name}", why=str(error)
                ) from None
            known[name] = set(getattr(options, "__dataclass_fields__", vars(options)))
    every: set[str] = set().union(*known.values())
    passed: dict[str, str] = {}
    for point in request["points"]:
        for option in list(point["options"]):
            if option not in every:
                what = f"no backend has an option {option!r}"
                parameters = list(point["signature"])
                raise RefusedError("option", what, name=option, names=sorted(every), parameters=parameters)
            if option not in known[point["target"][0]]:
                passed.setdefault(option, point["target"][0])
                del point["options"][option]
    return [f"{backend} has no option {option}: left out" for option, backend in passed.items()]


def check_parameters(request: Table, loaded: Loaded, points: Iterable[Table]) -> None:
    """The tool read the parameters in the file's text: it must have read the same."""
    names = list(loaded.fn.arg_names)
    for point in points:
        if list(point["signature"]) != names:
            what = f"{request['kernel']} has the parameters {', '.join(names)}"
            raise RefusedError(
                "parameters", what, why=f"and not {', '.join(point['signature'])}", names=names
            )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Whatever the kernel's file prints goes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def prepare(request: Table) -> Surroundings:
    """Import Triton; what a file finds around it."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [part for part in sys.path if os.path.abspath(part or ".") != here]
    for name in SINGLE_THREADED:  # threads that a library starts when it is imported forbid to fork
        os.environ.setdefault(name, "1")
    around = Surroundings(request["stand-ins"], request["gpus"])
    try:
        import triton
        import triton.compiler.code_generator  # imported late by itself, in each process
        import triton.compiler.compiler
        import triton.runtime.cache
    except ImportError as error:
        raise RefusedError(
            "triton", "this interpreter cannot import Triton 3.0 or later", why=str(error)
        ) from None
    # The key of a cache names the Triton that filled it; nobody else sees this run's cache, and the
    # digest of libtriton.so, which may have gigabytes, takes longer than `import triton`.
    for module in (triton.compiler.compiler, triton.runtime.cache):
        if hasattr(module, "triton_key"):
            module.triton_key = lambda: "tritonsmith"
    request["missing"] = find_disassemblers(request, os.path.dirname(triton.__file__))
    return around


def load_checked(request: Table, around: Surroundings, number: int = 0) -> Loaded | None:
    """`load_for`, and the kernel has the parameters of all points that this load serves."""
    loaded = load_for(request, around, number)
    if loaded is not None:
        target = request["points"][number]["target"]
        served = [one for one in request["points"] if one["target"] == target or not around.gpu.asked]
        check_parameters(request, loaded, served)
    return loaded


def load_for(request: Table, around: Surroundings, number: int = 0) -> Loaded | None:
    """The kernel, loaded while the GPU is the target of a point; None for IR."""
    from triton.backends.compiler import GPUTarget

    around.become(GPUTarget(*request["points"][number]["target"]))
    if request["ir"]:
        return None
    with quiet():
        return load(request["file"], request["kernel"], around)


def about(request: Table, around: Surroundings) -> Table:
    """The first line of the results."""
    import triton

    with open(request["file"], "rb") as file:
        digest = sha256(file.read()).hexdigest()
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
    """Those that are set, and of which Triton itself says that they change what is compiled."""
    try:
        from triton._C.libtriton import get_cache_invalidating_env_vars
    except ImportError:
        return {}
    return {name: os.environ[name] for name in get_cache_invalidating_env_vars() if name in os.environ}


def compile_all(request_path: str) -> int:
    """Everything that is asked for."""
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
                good = _compile_all(request, request_path, results)
            except RefusedError as error:
                results.write(json.dumps({"refused": error.about}) + "\n")
                print(f"{error}: {error.about.get('why', '')}")
                return EXIT_REFUSED
            except KeyboardInterrupt:
                return EXIT_INTERRUPTED
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    return 1 if request["strict"] and not good else 0


def _compile_all(request: Table, request_path: str, results: Any) -> bool:
    around = prepare(request)
    first: Loaded | None = None
    refusal: RefusedError | None = None
    try:
        first = load_checked(request, around)
    except RefusedError as error:  # for this target; without a question, or another target, for all
        if not around.gpu.asked or len({tuple(one["target"]) for one in request["points"]}) == 1:
            raise
        refusal = error
    head = about(request, around)
    head["notes"] = check_options(request)
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
    if request["ir"]:  # nothing is loaded that could ask
        groups = [Group(targets[0], not forks)] * len(targets)
    else:  # what runs while it compiles may remember an answer: no process takes points of two targets
        asked = around.gpu.asked  # while it was loaded, for the first target
        groups = [Group(target, not forks or (asked and target != targets[0])) for target in targets]

    def start(group: Group, siblings: list[Child]) -> Child:
        number = str(targets.index(group.target))
        argv = [sys.executable, os.path.abspath(__file__), "serve", request_path, number]
        loaded = refuser(refusal) if refusal else loader(first, around)
        work = functools.partial(serve, request, loaded, around)
        return Child(group, work, argv if group.loads else None, siblings)

    gc.collect()
    gc.freeze()  # or the first collection of each child would copy every page of this process
    Pool(request, groups, start, report).run()
    if refusal and len(unloaded) == total:
        raise refusal
    return all(done.values())


def serve_alone(request_path: str, number: str) -> int:
    """`serve`, in a process that loads the file by itself, for the target of a point."""
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    with open(os.dup(0), encoding="ascii") as reader, open(os.dup(1), "w", encoding="utf-8") as writer:
        around = prepare(request)
        check_options(request)
        try:
            loaded = loader(load_checked(request, around, int(number)), around)
        except RefusedError as error:  # for this target only: others have their rows
            loaded = refuser(error)
        serve(request, loaded, around, reader, writer)
    return 0


def describe(request_text: str) -> int:
    """The kernel's parameters, configs and heuristics, as JSON on standard output."""
    try:
        answer = _described(json.loads(request_text))
    except RefusedError as error:
        answer = {"refused": error.about}
    print(json.dumps(answer))
    return 0


def _described(request: Table) -> Table:
    around = prepare(request)
    loaded = load_for(request, around)
    assert loaded is not None  # noqa: S101 - `describe` is never asked about IR
    parameters = []
    for parameter in loaded.fn.params:
        constexpr = bool(parameter.is_constexpr)
        default = inspect.signature(loaded.fn.fn).parameters[parameter.name].default
        has = default is not inspect.Parameter.empty
        if has:
            default = encoded(getattr(default, "value", default))
        parameters.append(
            {
                "name": parameter.name,
                "constexpr": constexpr,
                "has_default": has,
                "default": default if has else None,
            }
        )
    configs = []
    for config in loaded.configs:
        options = {}
        for name in ("num_warps", "num_stages", "num_ctas", "maxnreg"):
            value = getattr(config, name, None)
            if value is not None:
                options[name] = encoded(value)
        configs.append(
            {"values": {name: encoded(value) for name, value in config.kwargs.items()}, "options": options}
        )
    names = {parameter["name"] for parameter in parameters}
    for config in configs:  # an option of a backend may stand among the values, such as waves_per_eu
        for name in sorted(set(config["values"]) - names):
            config["options"][name] = config["values"].pop(name)
    found = {"parameters": parameters, "configs": configs, "heuristics": sorted(loaded.heuristics)}
    return {**found, "asked": around.gpu.asked}


def end_with_parent() -> None:
    """Whoever started this may be killed: then nobody waits for it, and it tidies up as after ^C.

    Where there is no such signal, `Pool` looks up from time to time.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGINT)  # PR_SET_PDEATHSIG


def main(what: str, *arguments: str) -> int:
    """What the command line asks for."""
    end_with_parent()
    known: dict[str, Callable[..., int]] = {
        "compile": compile_all,
        "describe": describe,
        "serve": serve_alone,
    }
    return known[what](*arguments)


if __name__ == "__main__":
    exit_code = 1
    try:
        exit_code = main(*sys.argv[1:])
    except KeyboardInterrupt:
        exit_code = EXIT_INTERRUPTED
    except BaseException:  # noqa: BLE001 - a full disk, say: nothing may be printed after it
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(exit_code)  # Triton's destructors take time, and nanobind lists what they leave
