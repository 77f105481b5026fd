"""Load a kernel from its file: run the statements that it needs, and unwrap its decorators.

The rest of the file does not run: it may import what is not installed, start a GPU or train a model.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import linecache
import os
import stat
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .border import RequestRefusedError, encoded, refusal_text, request_of, text_of, unknown
from .file_context import FileSurroundings, prepare
from .messages import ConfigRow, DescribedRow, DescribeRequest, FileRequest, ParameterRow, PointRequest
from .processes import interrupt_with_parent
from .stubs import UnknownError, name_of, note_identities

if TYPE_CHECKING:
    from .border import Table
    from .foreign import JitFunction

    # Python 3.8 cannot evaluate this
    Loader = Callable[[tuple[str, int | str, int]], "LoadedKernel | None"]

LARGEST = 64 << 20  # bytes of a kernel's file; the tool itself takes less
_TOO_DEEP = "it is nested too deeply"


class LoadedKernel:
    """A kernel and its decorators.

    Attributes:
        fn: the JITFunction.
        configs: the configs of its autotuners.
        heuristics: the functions that compute constants, by the names of the parameters.
    """

    def __init__(self, fn: JitFunction, configs: list[Any], heuristics: Table) -> None:
        self.fn, self.configs, self.heuristics = fn, configs, heuristics


class EndlessLoadError(BaseException):
    """The kernel's file takes too long to load."""

    # No `Exception`: the file may catch these, as where it tries an import.


def load_checked(request: FileRequest, around: FileSurroundings, number: int = 0) -> LoadedKernel | None:
    """Load as `load_for` does, and check that the kernel has the parameters of all points of this load."""
    with around.reads.watched():
        loaded = load_for(request, around, number)
        if loaded is not None:
            target = request.points[number].target
            served = [point for point in request.points if point.target == target or not around.gpu.queried]
            check_parameters(request, loaded, served)
    return loaded


def load_for(request: FileRequest, around: FileSurroundings, number: int = 0) -> LoadedKernel | None:
    """Return the kernel, loaded for the target of a point; None for IR."""
    from triton.backends.compiler import GPUTarget

    around.become(GPUTarget(*request.points[number].target))
    if request.ir:
        return None
    with quiet(), around.reads.watched():
        return load(request.file, request.kernel, around)


def check_parameters(request: FileRequest, loaded: LoadedKernel, points: Iterable[PointRequest]) -> None:
    """Check the parameters that the tool has read in the file's text."""
    # A decorator of the file's own may add or remove some, and Triton would complain about a signature that
    # the user has never seen.
    names = list(loaded.fn.arg_names)
    for point in points:
        if list(point.signature) != names:
            what = f"{request.kernel} has the parameters {', '.join(names)}"
            raise RequestRefusedError(
                "parameters", what, why=f"the request has {', '.join(point.signature)}", names=names
            )


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Redirect the output of the kernel's file to standard error."""
    # Standard output carries rows, and C++ extensions print past Python's streams.
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def load(path: str, name: str, around: FileSurroundings) -> LoadedKernel:
    """Run the statements that the kernel needs, and unwrap the kernel.

    Args:
        path: the path of the file.
        name: the name of the kernel; `make.k` for one that is defined in the function `make`.
        around: the stand-ins and the GPU.
    """
    head, *inner = name.split(".")
    tree, body = _parsed(path, head)
    # A module's `__getattr__` (PEP 562) may make kernels of any name, from anything in the file.
    makes = any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)
    if body is None and makes:
        body = tree.body
    if body is None:
        raise RequestRefusedError("kernel", f"this file has no kernel {name!r}", names=candidates(tree))
    module = types.ModuleType(os.path.splitext(os.path.basename(path))[0])
    module.__file__ = path
    package, root = package_of(path, body)
    if package:
        module.__package__ = package
        sys.path.insert(0, root)
        # The file's own folder comes last: a module there is a part of the package, and may be called
        # `types`.
        sys.path.append(os.path.dirname(path))
        around.tolerate(package)
    else:
        sys.path.insert(0, os.path.dirname(path))
    # The file may have the name of a module that is loaded already, of the standard library or of Triton.
    if module.__name__ in sys.modules:
        module.__name__ = f"_kernel_{module.__name__}"
    sys.modules[module.__name__] = module
    _run(functools.partial(_execute, ast.Module(body=body, type_ignores=[]), path, module), path)
    note_identities(body, vars(module), path, around.ledger)
    if not hasattr(module, head):
        why = _unmet(body, head, path)
        names = [other for other in candidates(tree) if not why or other != head]
        what = f"{name} is not defined here" if why else f"this file has no kernel {name!r}"
        raise RequestRefusedError("kernel", what, why=why, names=names)
    whole = getattr(module, head)
    for part in inner:
        whole = _run(functools.partial(_inside, whole, part), path)
    loaded = _unwrapped(whole, name, tree)
    _run(functools.partial(check_globals, loaded.fn, around.ledger), path)
    return loaded


def _parsed(path: str, name: str) -> tuple[ast.Module, list[ast.stmt] | None]:
    """Return the tree of a file, and the statements that bind a name; None if none does."""
    try:
        return _parsed_text(content_of(path), path, name)
    except OSError as error:
        raise RequestRefusedError("file", "cannot read this file", why=str(error)) from None
    except (SyntaxError, ValueError) as error:
        number, line = getattr(error, "lineno", None), (getattr(error, "text", None) or "").strip()
        why = str(getattr(error, "msg", error))
        if number:  # an error about the whole file, such as a null byte, has no line
            why = f"line {number}: {why}: {line}"
        raise RequestRefusedError("file", "this Python cannot parse this file", why=why) from None
    except (RecursionError, MemoryError):
        # CPython's parser raises MemoryError, too, where its own stack is full: the machine has memory left.
        raise RequestRefusedError("file", "this Python cannot parse this file", why=_TOO_DEEP) from None


@functools.lru_cache(maxsize=2)
def _parsed_text(content: bytes, path: str, name: str) -> tuple[ast.Module, list[ast.stmt] | None]:
    tree = ast.parse(content, path)
    return tree, needed(tree, name)


def parse_ahead(request: FileRequest) -> None:
    """Parse a kernel's file before the forks that load it, each for a target of its own."""
    # Whatever is wrong with it is an error of the load.
    with contextlib.suppress(RequestRefusedError):
        if not request.ir:
            _parsed(request.file, request.kernel.partition(".")[0])


def content_of(path: str) -> bytes:
    """Return the content of a kernel's file.

    Raises:
        OSError: it is missing, unreadable, too large, or not a regular file.
    """
    # Opening a pipe would wait for somebody who writes to it.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("a pipe or a device, not a file")
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise OSError(f"larger than {LARGEST:,} bytes")
    return content


def _unmet(body: list[ast.stmt], name: str, path: str) -> str:
    """Return the line that decides whether a name is bound; empty if no line does."""
    for node in body:
        inside = [part for part in ast.walk(node) if isinstance(part, ast.FunctionDef) and part.name == name]
        if isinstance(node, (ast.If, ast.Try)) and inside:
            line = linecache.getline(path, node.lineno).strip()
            return f"line {node.lineno} leaves it out, with this interpreter and target: {line}"
    return ""


def _execute(tree: ast.Module, path: str, module: types.ModuleType) -> None:
    # Without `dont_inherit`, the `from __future__ import annotations` of this module would apply to the file,
    # and Triton would see texts in place of `tl.constexpr`.
    code = compile(tree, path, "exec", dont_inherit=True)
    exec(code, vars(module))  # noqa: S102 - the user asks for it


def _inside(function: JitFunction, name: str) -> Any:
    """Return the value that a function without arguments binds to a name while it runs."""
    if not inspect.isfunction(function):
        raise RequestRefusedError(
            "kernel", f"cannot look for {name!r} in a {type(function).__name__}", names=[]
        )
    called = f"{function.__name__}()"
    required = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if required:
        what = f"{called} defines the kernel, but needs arguments: {', '.join(required)}"
        why = f"call it in a file of your own: k = {function.__name__}(...), and compile k"
        raise RequestRefusedError("factory", what, why=why)
    names: Table = {}

    # A local variable can be read only while its function runs. `setprofile` calls back at the return, also
    # of a function that returns something else.
    def at_return(frame: types.FrameType, event: str, _: object) -> None:
        if event == "return" and frame.f_code is function.__code__:
            names.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(at_return)
    try:
        function()
    finally:
        sys.setprofile(before)
    if name not in names:
        raise RequestRefusedError("kernel", f"{called} does not bind {name!r}", names=[])
    return names[name]


def _unwrapped(whole: JitFunction, name: str, tree: ast.Module) -> LoadedKernel:
    """Return the JITFunction below the decorators."""
    kernel = whole
    configs: list[Any] = []
    heuristics: Table = {}
    while not _is_kernel(kernel):
        configs += getattr(kernel, "configs", [])
        if isinstance(getattr(kernel, "values", None), dict):
            heuristics.update(kernel.values)
        if not hasattr(kernel, "fn") or name_of(kernel):
            kind = name_of(whole) or f"a {type(whole).__name__}"
            raise RequestRefusedError(
                "kernel", f"{name} is not a Triton kernel but {kind}", names=candidates(tree)
            )
        kernel = kernel.fn
    return LoadedKernel(kernel, configs, heuristics)


def _is_kernel(value: object) -> bool:
    """Report whether an object is a result of `@triton.jit`."""
    # Under TRITON_INTERPRET=1 that is an object of another class, compared by its name, as its module needs
    # NumPy.
    import triton

    return isinstance(value, triton.runtime.jit.JITFunction) or type(value).__name__ == "InterpretedFunction"


def check_globals(kernel: JitFunction, ledger: Any) -> None:
    """Refuse a kernel that reads a constant whose value is a stand-in: it would be compiled into the code.

    Decorators that this kernel or a called kernel lacks are noted.
    """
    waiting, visited = [kernel], set()
    while waiting:
        function = getattr(waiting.pop(), "fn", None)
        if not inspect.isfunction(function) or function in visited:
            waiting += [function] if hasattr(function, "fn") else []
            continue
        code = function.__code__
        visited.add(function)
        ledger.bare(function)
        free = inspect.getclosurevars(function).nonlocals
        for name in (*code.co_names, *code.co_freevars):
            value = free.get(name, function.__globals__.get(name))
            # A constexpr, or another kernel. Triton lets a kernel read no other global variable, except one
            # that is annotated `X: tl.constexpr = ...`.
            ours = type(value).__module__.partition(".")[0] == "triton"
            stood = name_of(getattr(value, "value", None) if ours else value)
            if stood and (ours or _annotated(function.__globals__, name)):
                what = f"{name} of {function.__name__} is {stood}"
                raise unknown(f"{what}, but {stood.partition('.')[0]} is not installed", stood)
            if ours and hasattr(value, "fn"):
                waiting.append(value)


def _annotated(variables: Table, name: str) -> bool:
    """Report whether a module's variable has an annotation whose value is known."""
    # Python 3.14 keeps a function that evaluates the annotations on demand (PEP 649).
    annotations: Table = variables.get("__annotations__", {})
    if sys.version_info >= (3, 14) and not annotations and "__annotate__" in variables:
        import annotationlib

        annotate, names_stay = variables["__annotate__"], annotationlib.Format.FORWARDREF
        annotations = annotationlib.call_annotate_function(annotate, names_stay)
    annotation = annotations.get(name)
    return annotation is not None and not name_of(annotation)


def package_of(path: str, body: list[ast.stmt]) -> tuple[str, str]:
    """Return the package of a file, and the folder of that package; empty if there is none."""
    # The package has as many levels as folders have an `__init__.py`, or as relative imports need.
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
    """Run a part of the user's file; whatever it raises refuses the request."""
    try:
        return what()
    except RequestRefusedError:
        raise
    except UnknownError as error:
        raise unknown(str(error), error.name, _where(error, path)) from None
    except ImportError as error:  # ModuleNotFoundError included
        missing = (getattr(error, "name", None) or "").partition(".")[0]
        gone = isinstance(error, ModuleNotFoundError) and missing not in sys.modules
        raise RequestRefusedError(
            "import", str(error), why=_where(error, path), module=missing if gone else ""
        ) from None
    except SystemExit as error:
        raise RequestRefusedError(
            "file", f"this file exits: exit code {error.code}", why=_where(error, path)
        ) from None
    except KeyboardInterrupt:
        raise
    except EndlessLoadError as error:
        raise EndlessLoadError(_where(error, path) or "a module that it imports") from None
    except BaseException as error:  # noqa: BLE001 - whatever the user's code raises
        message = f"cannot run this file: {type(error).__name__}: {error}"
        raise RequestRefusedError("file", message, why=_where(error, path)) from None


def _where(error: BaseException, path: str) -> str:
    """Return the innermost line of the user's file in the traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return f"line {frames[-1].lineno}: {frames[-1].line}" if frames else ""


def describe(request_text: str) -> int:
    """Print the kernel's parameters, configs and heuristics as JSON."""
    interrupt_with_parent()
    try:
        print(text_of(_described(request_of(DescribeRequest, request_text))))
    except RequestRefusedError as error:
        print(refusal_text(error.refusal))
    return 0


def _described(request: DescribeRequest) -> DescribedRow:
    """Return what is known only by running the file."""
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
        parameters.append(ParameterRow(parameter.name, constexpr, has, default if has else None))
    names = {parameter.name for parameter in parameters}
    configs = []
    for config in loaded.configs:
        options = {}
        for name in ("num_warps", "num_stages", "num_ctas", "maxnreg"):
            value = getattr(config, name, None)
            if value is not None:
                options[name] = encoded(value)
        values = {name: encoded(value) for name, value in config.kwargs.items()}
        # An autotuner passes on all of `kwargs`: options of a backend, such as waves_per_eu, may be among
        # them.
        for name in sorted(set(values) - names):
            options[name] = values.pop(name)
        configs.append(ConfigRow(values, options))
    return DescribedRow(
        tuple(parameters), tuple(configs), tuple(sorted(loaded.heuristics)), bool(around.gpu.queried)
    )


def statements(tree: ast.Module) -> list[StatementNames]:
    """Return the facts about each statement of a module, which `needed` takes for several names."""
    return [StatementNames(node) for node in tree.body]


def needed(tree: ast.Module, target: str, facts: list[StatementNames] | None = None) -> list[ast.stmt] | None:
    """Return the statements of a module that bind or change a name or what it needs, in order.

    Args:
        tree: the module.
        target: the name.
        facts: `statements(tree)`, if they are known.
    """
    # A method call changes an object in place only if a statement made it: `TABLE.update(...)` is needed, a
    # call of a function of an imported module is not.
    facts = statements(tree) if facts is None else facts
    data = {name for fact in facts if fact.data for name in fact.binds}
    names: set[str] = {target}
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
        if names & {"globals", "exec", "eval"}:  # their needs cannot be determined
            return list(tree.body)
    if not any(target in facts[number].binds or facts[number].star for number in kept):
        return None
    return [tree.body[number] for number in sorted(kept)]


class StatementNames:
    """The names that a statement of a module binds, changes and reads."""

    def __init__(self, node: ast.stmt) -> None:
        self.binds: set[str] = set()
        self.changes: set[str] = set()
        self.reads: set[str] = set()
        self.star = self.always = False
        plain = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
        self.data = not isinstance(node, plain)
        self._look(node)
        # `sys.path.insert(...)` or `os.environ[...] = ...` may decide what an import finds, or what it does.
        if isinstance(node, (ast.Expr, ast.Assign, ast.AugAssign)) and self.reads & {"sys", "os"}:
            self.always = not _ends(node)
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            self.always = True

    def _look(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            self._function(node)
            return
        if isinstance(node, ast.ClassDef):
            self.binds.add(node.name)
            inside = StatementNames(
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
        """Add the names of the module that a function reads, without its local names."""
        body = node.body if isinstance(node.body, list) else _expressions([node.body])
        inside = StatementNames(ast.If(ast.Constant(True), body, []))
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
    """Report whether a statement only ends the program."""
    call = node.value if isinstance(node, ast.Expr) else None
    function = call.func if isinstance(call, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in ("exit", "_exit", "abort")


def _expressions(nodes: list[ast.expr]) -> list[ast.stmt]:
    return [ast.Expr(node) for node in nodes]


def _root(node: ast.AST) -> str:
    """Return the first name of an expression: `configs` for `configs.all[0].append`."""
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def candidates(tree: ast.Module) -> list[str]:
    """Return the names of the functions that look like kernels; nested functions cannot be named."""
    names = []
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.If, ast.Try, ast.With)):
            waiting = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)] + waiting
        if isinstance(node, ast.FunctionDef):
            words = [ast.dump(decorator) for decorator in node.decorator_list]
            if any(f"'{word}'" in text for text in words for word in ("jit", "autotune", "heuristics")):
                names.append(node.name)
    return names
