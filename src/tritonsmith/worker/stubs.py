"""Stand-ins for modules that are not installed: their objects, and the finders by which `import` gets them.

A stub can be inherited from, called, used as a decorator, a dictionary key or an annotation: that decides
nothing. Where its value decides something (a truth, a comparison, a length, a text), a `Ledger` notes the
answer as a doubt while a kernel's file is loaded, and refuses it while a kernel is compiled.
"""

from __future__ import annotations

import abc
import ast
import functools
import importlib.abc
import linecache
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING, Any, NoReturn

from .foreign import (
    INSTALLED,
    asks_whether,
    frames,
    is_jit,
    only_looks,
    package_name,
    shown,
    user_frame,
    where,
)
from .messages import LedgerNews

if TYPE_CHECKING:
    from .foreign import JitFunction

    # Python 3.8 cannot evaluate these.
    Provider = Callable[[types.ModuleType], None]
    Around = Callable[[Callable[[], None], types.ModuleType], None]


class Stub:
    """A stand-in for any object of a module that is not installed."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.__name, self.__ledger = name, ledger
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]

    def __getattr__(self, name: str) -> Any:
        # Triton searches the names of a kernel for other kernels, and skips its own builtins. A stub may be a
        # mere annotation there, so it says that it is one.
        if name == "__triton_builtin__" and is_jit(_caller()):
            return True
        if name.startswith(("__", "_Stub__")):
            raise AttributeError(name)
        return attribute(self.__ledger, self.__name, name)

    def __repr__(self) -> str:
        return f"<stand-in {self.__name}>"

    def __str__(self) -> str:
        """Return the text of the stub, and note a doubt unless Triton asks."""
        # A program may look for `bfloat16` in `str(dtype)`; Triton uses the text in keys and messages only.
        if package_name(_caller()) != "triton":
            self.__decides("the text")
        return repr(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return a new stub; as a decorator, return the function or class unchanged."""
        # Inside a kernel, the effect of the call is unknown.
        if self.__ledger.strict:
            self.__ledger.refuse(self.__name, "a call")
        thing = args[0] if len(args) == 1 and not kwargs else None
        if (callable(thing) or is_kernel(thing)) and not isinstance(thing, Stub):
            self.__ledger.take_off(self.__name, thing)
            return thing
        return Stub(f"{self.__name}()", self.__ledger)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (base_class(self.__name, self.__ledger, bases),)

    def __deepcopy__(self, _: object) -> Any:
        return self

    def __copy__(self) -> Any:
        return self

    __hash__ = object.__hash__

    # A stub is itself, and each name has one stub. Whether two names have the same value is unknown.
    def __eq__(self, other: object) -> bool:
        if self is not other:
            self.__decides("a comparison")
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        self.__decides("the truth value")
        return False

    def __iter__(self) -> Iterator[Any]:
        self.__decides("the elements")
        return iter(())

    def __len__(self) -> int:
        self.__decides("the length")
        return 0

    def __contains__(self, _: object) -> bool:
        self.__decides("the elements")
        return False

    def __instancecheck__(self, _: object) -> bool:
        self.__decides("an instance")
        return False

    def __subclasscheck__(self, _: type) -> bool:
        self.__decides("a subclass")
        return False

    def __lt__(self, _: object) -> bool:
        self.__decides("a comparison")
        return False

    __gt__ = __le__ = __ge__ = __lt__

    # A number cannot be made up: it would be compiled into the kernel, as a size or a count.
    def _no_number(self) -> NoReturn:
        self.__ledger.refuse(self.__name, "the number")

    __index__ = __int__ = __float__ = _no_number

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getitem__(self, _: object) -> Any:
        return self

    def __setitem__(self, *_: Any) -> None:
        pass

    def _itself(self, *_: Any) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _itself
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __invert__ = _itself
    __or__ = __ror__ = __and__ = __rand__ = __lshift__ = __rshift__ = __matmul__ = _itself

    def __decides(self, what: str) -> None:
        if not only_looks(_caller()):
            self.__ledger.doubt(self.__name, what)


_EXCEPTION = re.compile(r"[A-Z]\w*(Error|Exception)(_\w+)?")  # pynvml.NVMLError_NotSupported


def attribute(ledger: Ledger, parent: str, name: str) -> Any:
    """Return the attribute of a stand-in."""
    full = f"{parent}.{name}"
    ledger.use(full)
    # Triton itself looks up every name of a kernel, and decides nothing by it.
    if asks_whether(_caller()) and package_name(_caller()) != "triton":
        ledger.doubt(full, "the presence")
    # `except` takes nothing but a class of exceptions. Nobody raises this one, as its package is missing.
    if _EXCEPTION.fullmatch(name):
        return ledger.exceptions.setdefault(full, type(name, (Exception,), {"__module__": parent}))
    return stub(full, ledger)


def stub(name: str, ledger: Ledger) -> Stub:
    """Return the stub of this name: the same one each time."""
    # `{torch.float16: ...}[torch.float16]` has to hit.
    return ledger.stubs.setdefault(name, Stub(name, ledger))


def name_of(value: object) -> str:
    """Return the full name that a stand-in represents; empty for other objects."""
    return value._Stub__name if type(value) is Stub else ""  # noqa: SLF001 - a class of this file


def _caller() -> types.FrameType:
    """Return the caller: the first frame outside of this file."""
    return next(frame for frame in frames() if frame.f_code.co_filename != __file__)


class _Attributes(abc.ABCMeta):
    """A metaclass of classes that inherit from a stand-in, which provides the attributes that they lack."""

    def __getattr__(cls, name: str) -> Any:
        inherited = next((vars(base) for base in cls.__mro__ if "_smith_ledger" in vars(base)), None)
        if inherited is None or name.startswith("__"):
            raise AttributeError(name)
        return attribute(inherited["_smith_ledger"], inherited["_smith_name"], name)


class _Base:
    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __init_subclass__(cls, **_: Any) -> None:
        pass

    def __class_getitem__(cls, _: object) -> Any:
        return cls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(type(self), name)


_bases: dict[tuple[str, type], type] = {}


def base_class(name: str, ledger: Ledger, bases: tuple[Any, ...]) -> type:
    """Return a base class in place of a stand-in.

    Args:
        name: the name of the stand-in.
        ledger: its ledger.
        bases: all bases of the new class.
    """
    # A class has one metaclass. If another base brings one (Enum's), a base with ours would conflict with it:
    # "metaclass conflict". Then missing attributes of the class are errors, which is the smaller harm.
    usual: set[type] = {type, abc.ABCMeta, _Attributes}
    others = {type(base) for base in bases if isinstance(base, type)} - usual
    kind: type = type if others else _Attributes
    known = _bases.get((name, kind))
    if known is None:
        content = {"_smith_name": name, "_smith_ledger": ledger, "__module__": name.rpartition(".")[0]}
        known = _bases[name, kind] = kind(name.rpartition(".")[2], (_Base,), content)
    return known


def stub_module(name: str, ledger: Ledger) -> types.ModuleType:
    """Return a module in place of one that is not installed."""

    # It is a plain module: a kernel that names an object of another type would, for Triton, read a variable.
    def __getattr__(attr: str) -> Any:  # noqa: N807 - PEP 562
        if attr == "__version__":
            full = f"{name}.{attr}"
            ledger.use(full)
            ledger.doubt(full, "the value '0'")
            return "0"
        if attr.startswith("__"):
            raise AttributeError(attr)
        return attribute(ledger, name, attr)

    module = types.ModuleType(name)
    vars(module).update(__getattr__=__getattr__, _smith_ledger=ledger)
    return module


def is_stub_module(module: types.ModuleType | None) -> bool:
    """Report whether `stub_module` created a module."""
    return "_smith_ledger" in getattr(module, "__dict__", {})


class UnknownError(BaseException):  # an Exception would end in the `except Exception` of a kernel's file
    """A value is unknown, and any answer would be wrong.

    Attributes:
        name: the full name of the stand-in; empty if the value is not one.
    """

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


class Ledger:
    """A record of replaced objects, the places of their first use, and the code that depends on them.

    Attributes:
        used: the place of the first use, by the full dotted name that a stand-in answered for.
        gone: the place that continues without a module, by the name of the missing module.
        stubs: the stubs that answered, by full name.
        exceptions: the classes that stand for exceptions, by full name.
        doubts: warnings about the result as sentences, without duplicates.
        known: the names of stand-ins with true answers.
        strict: whether to refuse instead of doubting: a kernel is being compiled.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.known = frozenset(known)
        self.used: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self.doubts: dict[str, None] = {}
        self.strict = False
        self.stubs: dict[str, Stub] = {}
        self.exceptions: dict[str, type[Exception]] = {}
        self._reported: set[str] = set()
        self._taken_off: list[tuple[Any, str]] = []

    def news(self) -> LedgerNews:
        """Return the entries that were not reported before."""
        news = LedgerNews(
            {name: place for name, place in self.used.items() if name not in self._reported},
            {name: place for name, place in self.gone.items() if name not in self._reported},
            tuple(text for text in self.doubts if text not in self._reported),
        )
        self._reported.update(self.used, self.gone, self.doubts)
        return news

    def use(self, name: str) -> None:
        """Record the use of a name; only the longest name of an expression is kept."""
        # Triton's own host code uses torch too, but that is not part of a kernel.
        if name in self.known or package_name(user_frame()) == "triton":
            return
        # `torch.nn.functional` is three uses on one line; the two shorter ones say nothing more.
        place = where()
        parent = name.rpartition(".")[0]
        if self.used.get(parent) == place:
            del self.used[parent]
        self.used.setdefault(name, place)

    def miss(self, name: str) -> None:
        """Record that user code continues without a module."""
        # Installed packages try optional imports everywhere, and none of that is news to the user.
        user = user_frame()
        path = user.f_code.co_filename if user else ""
        if package_name(user) != "triton" and not any(part in path for part in INSTALLED):
            self.gone.setdefault(name, where())

    def doubt(self, name: str, what: str) -> None:
        """Note that code depends on a stand-in; refuse while a kernel is compiled."""
        if self.strict:
            self.refuse(name, what)
        self.note(f"the code depends on {what} of {name}, a stand-in")

    def note(self, text: str) -> None:
        """Note a doubt, with its place."""
        self.doubts[f"{where()}: {text}"] = None

    def take_off(self, name: str, decorated: JitFunction) -> None:
        """Remember that a decorator did nothing, until it is known whether the function is a kernel."""
        while is_kernel(decorated):
            decorated = decorated.fn
        package = name.partition(".")[0]
        text = f"@{name} removed from {getattr(decorated, '__name__', decorated)}: {package} is not installed"
        self._taken_off.append((decorated, f"{where()}: {text}; its configs etc. are lost"))

    def bare(self, function: Callable[..., Any]) -> None:
        """Note the decorators that were removed from the function of a kernel."""
        self.doubts.update((text, None) for decorated, text in self._taken_off if decorated is function)

    def refuse(self, name: str, what: str) -> NoReturn:
        """Refuse a question that has no true answer."""
        package = name.partition(".")[0]
        text = f"{what} of {name} is needed, but {package} is not installed"
        # A bare `except:` around the question would swallow the error, but not the note.
        self.note(text)
        raise UnknownError(text, name)


def is_kernel(thing: object) -> bool:
    """Report whether one of Triton's decorators made an object."""
    # `callable` would not do: an autotuner has no `__call__`.
    return type(thing).__module__.partition(".")[0] == "triton" and hasattr(thing, "fn")


_ASKERS = ("importlib.util", "pkgutil")  # they look for a module without importing it
_MISSES = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


class ImportWatcher(importlib.abc.MetaPathFinder):
    """The first finder: modules are found and run as usual, with extra code around their run.

    Attributes:
        around: for the name of a module, a function that gets what runs it, and the module.
    """

    def __init__(self, around: dict[str, Around]) -> None:
        self.around = around

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return another finder's spec with an extended loader; None for a stand-in."""
        if name not in self.around:
            return None
        # Finders of old packages have `find_module` only, which Python 3.12 dropped.
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
        folders: the folder that has a package, by the package's name; nothing else is found there.
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
        names: the packages that have stand-ins.
        ledger: the ledger of their answers.
        provide: a function that adds known facts to a new stand-in, such as the GPU to `torch.cuda`.
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
        note: a function that is called with a message for each import.
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
    guards = _guards("".join(linecache.getlines(path)))
    return any(first <= number <= last for first, last in guards)


# One file imports many modules, each of which asks.
@functools.lru_cache(maxsize=64)
def _guards(text: str) -> tuple[tuple[int, int], ...]:
    """Return the first and the last line of each block of a source text in which an ImportError is caught."""
    if "try" not in text and "suppress" not in text:
        return ()
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    guards = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Try):
            caught = [handler.type for handler in node.handlers]
            if any(kind is None or names_in(kind) & set(_MISSES) for kind in caught):
                guards.append(_lines(node.body))
        if isinstance(node, ast.With):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            if any("suppress" in names_in(call.func) and names_in(call) & set(_MISSES) for call in calls):
                guards.append(_lines(node.body))
    return tuple(guards)


def _lines(body: list[ast.stmt]) -> tuple[int, int]:
    return body[0].lineno, body[-1].end_lineno or 0


def names_in(node: ast.AST) -> set[str]:
    """Return the names and attributes in an expression."""
    words = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return words | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def note_identities(body: Iterable[ast.stmt], names: dict[str, Any], path: str, ledger: Ledger) -> None:
    """Note the places where `is` and `isinstance` check a stand-in.

    Args:
        body: the executed statements of a file.
        names: the variables of the module, after the run.
        path: the path of the file.
        ledger: the ledger of the stand-ins.
    """
    # Python calls no method of an object for `x is None`, nor for `isinstance(x, int)`, so a stub does not
    # notice these questions: they are looked up in the source.
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
