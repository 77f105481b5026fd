"""Define finders for `import`: for stubs of missing modules, and for code around installed ones."""

from __future__ import annotations

import ast
import importlib.abc
import linecache
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any

from .frames import frames, shown, user_frame
from .stubs import Ledger, is_stub_module, name_of, stub, stub_module

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    Provider = Callable[[types.ModuleType], None]
    Around = Callable[[Callable[[], None], types.ModuleType], None]

_ASKERS = ("importlib.util", "pkgutil")  # they look for a module without importing it
_MISSES = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


class ImportWatcher(importlib.abc.MetaPathFinder):
    """The first finder: modules are found and run as usual, with extra code around their run.

    Attributes:
        around: name of a module, to a function that is called with its run and itself.
    """

    def __init__(self, around: dict[str, Around]) -> None:
        self.around = around

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return another finder's spec with an extended loader; None for a stand-in."""
        if name not in self.around:
            return None
        others = (finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec"))
        specs = (finder.find_spec(name, path, target) for finder in others)
        spec = next((spec for spec in specs if spec), None)
        if spec and spec.loader and not isinstance(spec.loader, StubFinder):
            run = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                self.around[name](lambda: run(module), module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class LentFinder(importlib.abc.MetaPathFinder):
    """A finder of packages that this interpreter lacks, in the environment of the tool.

    Attributes:
        folders: name of a package to the folder that has it; nothing else is found there.
    """

    def __init__(self, folders: dict[str, str]) -> None:
        self.folders = folders

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a lent package."""
        return PathFinder.find_spec(name, [self.folders[name]]) if name in self.folders else None


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: provides modules that no other finder finds and that a compile does not need.

    Attributes:
        names: packages that have stand-ins.
        ledger: of their answers.
        provide: adds known facts to a new stand-in, such as the GPU to `torch.cuda`.
    """

    def __init__(self, names: Iterable[str], ledger: Ledger, provide: Provider | None = None) -> None:
        self.names = frozenset(names)
        self.ledger = ledger
        self.provide = provide

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for packages that have stand-ins, and for all modules below a stand-in."""
        # An installed package that lacks a module does not get one. Code that handles a missing module does
        # so here, too.
        parent, _, _ = name.rpartition(".")
        known = is_stub_module(sys.modules.get(parent)) if parent else name in self.names
        if not known:
            return None
        if self._optional():
            if not parent:
                self.ledger.miss(name)
                return None
            self.ledger.doubt(name, "the presence")
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Create the stand-in."""
        return stub_module(spec.name, self.ledger)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: a stand-in has no code."""
        self.ledger.use(module.__name__)
        if self.provide:
            self.provide(module)

    def _optional(self) -> bool:
        """Report whether the importing code continues without the module."""
        asks = [frame for frame in frames() if frame.f_globals.get("__name__") in _ASKERS]
        user = user_frame()
        return bool(asks) or (user is not None and guarded(user.f_code.co_filename, user.f_lineno))


class AbsentFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder of a running program: missing modules can be imported, but not used.

    Attributes:
        names: the modules that the user names; submodules are included.
        note: called with a message for each import.
    """

    def __init__(self, names: Iterable[str], note: Callable[[str], None]) -> None:
        self.names = tuple(names)
        self.note = note

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for a module that the user names."""
        is_named = any(name == known or name.startswith(f"{known}.") for known in self.names)
        return ModuleSpec(name, self, is_package=True) if is_named else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Create a module whose attributes are all absent."""
        module = types.ModuleType(spec.name)

        def __getattr__(name: str) -> Any:  # noqa: N807 - PEP 562
            if name.startswith("__"):
                raise AttributeError(name)
            return _Absent(f"{spec.name}.{name}")

        vars(module)["__getattr__"] = __getattr__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Note that a program continues without the module."""
        if module.__name__ in self.names:
            self.note(f"{module.__name__} is a stand-in: kernels that it would launch are missing")


class _Absent:
    """An attribute of a module that is not installed: it can be looked up, but not called."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError(f"{self.__name__} cannot run: its module is a stand-in, not installed")

    __bool__ = __len__ = __iter__ = __index__ = __call__


def guarded(path: str, number: int) -> bool:
    """Report whether an ImportError is caught at a line of a file."""
    linecache.checkcache(path)  # a file of that name may have been there before
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and _covers(node.body, number):
            caught = [handler.type for handler in node.handlers]
            if any(kind is None or names_in(kind) & set(_MISSES) for kind in caught):
                return True
        if isinstance(node, ast.With) and _covers(node.body, number):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            if any("suppress" in names_in(call.func) and names_in(call) & set(_MISSES) for call in calls):
                return True
    return False


def _covers(body: list[ast.stmt], number: int) -> bool:
    return body[0].lineno <= number <= (body[-1].end_lineno or 0)


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes in an expression."""
    words = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return words | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


# Find checks of a stub's identity or class: Python does not call the stub, so the source is read.


def note_identities(body: Iterable[ast.stmt], names: dict[str, Any], path: str, ledger: Ledger) -> None:
    """Note the places where `is` and `isinstance` check a stand-in: Python does not call the stand-in.

    Args:
        body: the executed statements of a file.
        names: of the module, after the run.
        path: of the file.
        ledger: of the stand-ins.
    """
    for node in (node for part in body for node in ast.walk(part)):
        looked: list[ast.expr] = []
        if isinstance(node, ast.Compare) and any(
            isinstance(comparison, (ast.Is, ast.IsNot)) for comparison in node.ops
        ):
            looked, what = [node.left, *node.comparators], "the identity"
        elif isinstance(node, ast.Call) and "isinstance" in names_in(node.func):
            looked, what = node.args[:1], "the class"
        for name in filter(None, (name_of(_value(expression, names, ledger)) for expression in looked)):
            text = f"the code depends on {what} of {name}, a stand-in"
            ledger.doubts[f"{shown(path)}:{node.lineno}: {text}"] = None  # type: ignore[attr-defined]


def _value(node: ast.expr, names: dict[str, Any], ledger: Ledger) -> Any:
    """Return the value of an expression that depends only on names of the module: a stand-in, a module."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, (ast.Call, ast.Subscript)):
        value = _value(node.func if isinstance(node, ast.Call) else node.value, names, ledger)
        return value if name_of(value) else None
    if not isinstance(node, ast.Attribute) or node.attr.startswith("__"):
        return None
    parent = _value(node.value, names, ledger)
    if name_of(parent):
        return stub(f"{name_of(parent)}.{node.attr}", ledger)
    if (
        not isinstance(parent, types.ModuleType)
        or not is_stub_module(parent)
        or hasattr(type(parent), node.attr)
    ):
        return None
    return vars(parent).get(node.attr) or stub(f"{parent.__name__}.{node.attr}", ledger)
