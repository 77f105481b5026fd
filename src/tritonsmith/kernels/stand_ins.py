"""Stand-ins for modules that are not installed, and a ledger of what they were asked: for the worker.

Python 3.8 and the standard library, as `worker.py`, which loads this file from beside it.

A stand-in can be inherited from, called, put on as a decorator, be a key of a dictionary or an annotation:
that decides nothing. Where its value decides something (a truth, a comparison, a length, a text), the answer
is noted as a doubt while a kernel's file is loaded, and refused while a kernel is compiled.
"""

# ruff: noqa: PTH100, PTH118, PTH120

from __future__ import annotations

import abc
import ast
import importlib.abc
import linecache
import opcode
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:  # Python 3.8 cannot evaluate these
    Provider = Callable[[types.ModuleType], None]
    Around = Callable[[Callable[[], None], types.ModuleType], None]

_HERE = os.path.dirname(__file__)
_LIBRARY = os.path.dirname(os.__file__)
_INSTALLED = ("site-packages", "dist-packages")
_ASKS = ("hasattr", "getattr")
_ASKERS = ("importlib.util", "pkgutil")  # whether there is a module, and do not import it
# Parts of the standard library that look at whatever they are given: annotations, fields, bases.
_LOOKERS = ("typing", "typing_extensions", "dataclasses", "abc", "enum", "inspect", "functools", "copyreg")
_MISSES = ("ImportError", "ModuleNotFoundError", "Exception", "BaseException")


class UnknownError(BaseException):
    """What is asked for is not known here, and no value would be true.

    Not an Exception: `except Exception` in a kernel's file would turn it into a value again.

    Attributes:
        name: full name of the stand-in that was asked; empty if it was something else.
    """

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


class Ledger:
    """What was replaced, where it was used first, and what hangs on it.

    Attributes:
        used: full dotted name of what a stand-in answered for, to the place of its first use.
        gone: name of a module that is not installed, to the place that goes on without it.
        doubts: what a person should know before they believe the result, in words; each once.
        known: names of stand-ins that give true answers.
        strict: refuse instead of doubting: a kernel is being compiled.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.known = frozenset(known)
        self.used: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self.doubts: dict[str, None] = {}
        self.strict = False
        self._things: dict[str, Anything] = {}
        self._told: set[str] = set()
        self._taken_off: list[tuple[Any, str]] = []

    def news(self) -> dict[str, dict[str, str] | list[str]]:
        """What was not told before."""
        found: dict[str, dict[str, str] | list[str]] = {
            "stand-ins": {name: place for name, place in self.used.items() if name not in self._told},
            "gone": {name: place for name, place in self.gone.items() if name not in self._told},
            "doubts": [text for text in self.doubts if text not in self._told],
        }
        self._told.update(self.used, self.gone, self.doubts)
        return found

    def thing(self, name: str) -> Anything:
        """The stand-in of this name: the same one each time, so that it can be a key."""
        return self._things.setdefault(name, Anything(name, self))

    def use(self, name: str) -> None:
        """Note that something of this name was used; the longest name of one expression stays.

        Triton's own host code asks torch, too; what it makes of that is nobody's kernel.
        """
        if name in self.known or _package(_user()) == "triton":
            return
        place = where()
        parent = name.rpartition(".")[0]
        if self.used.get(parent) == place:
            del self.used[parent]
        self.used.setdefault(name, place)

    def miss(self, name: str) -> None:
        """Note that who imports goes on without; what is installed does so on every machine like this one."""
        user = _user()
        path = user.f_code.co_filename if user else ""
        if _package(user) != "triton" and not any(part in path for part in _INSTALLED):
            self.gone.setdefault(name, where())

    def doubt(self, name: str, what: str) -> None:
        """Note that a stand-in decides something; while a kernel is compiled, refuse."""
        if self.strict:
            self.refuse(name, what)
        self.note(f"{what} of {name} decides something, and it is a stand-in")

    def note(self, text: str) -> None:
        """Note what else a person should know, with the place of it."""
        self.doubts[f"{where()}: {text}"] = None

    def take_off(self, name: str, decorated: Any) -> None:
        """Remember that a decorator did nothing: nobody knows yet whether that is a kernel."""
        while _is_kernel(decorated):
            decorated = decorated.fn
        package = name.partition(".")[0]
        text = f"@{name} is taken off {getattr(decorated, '__name__', decorated)}: {package} is not installed"
        self._taken_off.append((decorated, f"{where()}: {text}, and what it sets, such as configs, is gone"))

    def bare(self, function: Any) -> None:
        """Note the decorators that were taken off the function of a kernel."""
        self.doubts.update((text, None) for decorated, text in self._taken_off if decorated is function)

    def refuse(self, name: str, what: str) -> NoReturn:
        """What was asked has no true answer."""
        package = name.partition(".")[0]
        text = f"{what} of {name} is needed, and {package} is not installed"
        self.note(text)  # a bare `except:` may be around
        raise UnknownError(text, name)


def where() -> str:
    """FILE:LINE of the code that is the reason: not of the standard library, of Triton or of this tool."""
    outermost = ""
    for frame in _frames():
        if _is_ours(frame) or _is_library(frame):
            continue
        place = f"{shown(frame.f_code.co_filename)}:{frame.f_lineno}"
        if _package(frame) != "triton":
            return place
        outermost = outermost or place
    return outermost


def shown(path: str) -> str:
    """A file as a person names it: from the folder on that Python imports from."""
    roots = [os.path.join(os.path.abspath(part), "") for part in sys.path if part]
    inside = [root for root in roots if path.startswith(root)]
    return path[len(max(inside, key=len)) :] if inside else path


def _frames() -> Iterator[types.FrameType]:
    frame: types.FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no other way to them
    while frame:
        yield frame
        frame = frame.f_back


def _is_library(frame: types.FrameType) -> bool:
    path = frame.f_code.co_filename
    if path.startswith("<frozen"):
        return True
    return path.startswith(_LIBRARY) and not any(part in path for part in _INSTALLED)


def _user() -> types.FrameType | None:
    """The first frame that is neither of this tool nor of the standard library."""
    return next((frame for frame in _frames() if not _is_ours(frame) and not _is_library(frame)), None)


def _is_ours(frame: types.FrameType) -> bool:
    return os.path.dirname(frame.f_code.co_filename) == _HERE


def _package(frame: types.FrameType | None) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] if frame else ""


def _caller() -> types.FrameType:
    """Who asked: the first frame outside of this file."""
    return next(frame for frame in _frames() if frame.f_code.co_filename != __file__)


def _only_looks(frame: types.FrameType) -> bool:
    return _package(frame) in _LOOKERS or _is_jit(frame)


def _is_jit(frame: types.FrameType) -> bool:
    """Whether it is Triton, that looks at annotations and at what a kernel depends on."""
    return frame.f_globals.get("__name__") == "triton.runtime.jit"


def _is_kernel(thing: Any) -> bool:
    """Whether a decorator of Triton's made it; its autotuner cannot be called."""
    return type(thing).__module__.partition(".")[0] == "triton" and hasattr(thing, "fn")


def _asks_whether(frame: types.FrameType) -> bool:
    """Whether `hasattr`, or `getattr` with a default, wants an attribute, and not the code by its dot."""
    if _is_library(frame) or not set(_ASKS) & set(frame.f_code.co_names):
        return False
    return "CALL" in opcode.opname[frame.f_code.co_code[frame.f_lasti]]


class Anything:
    """Stands for whatever a module that is not installed would give."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.__name, self.__ledger = name, ledger
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]

    def __getattr__(self, name: str) -> Any:
        if name == "__triton_builtin__" and _is_jit(_caller()):
            return True  # the search for what a kernel depends on passes over it: it may be an annotation
        if name.startswith(("__", "_Anything__")):
            raise AttributeError(name)
        return attribute(self.__ledger, self.__name, name)

    def __repr__(self) -> str:
        return f"<stand-in {self.__name}>"

    def __str__(self) -> str:
        """A program may look for `bfloat16` in `str(dtype)`; Triton has it in keys and messages only."""
        if _package(_caller()) != "triton":
            self.__decides("the text")
        return repr(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Something new; a function or class that it is put on as a decorator stays.

        A kernel that calls one has it do something: what that was nobody knows.
        """
        if self.__ledger.strict:
            self.__ledger.refuse(self.__name, "a call")
        thing = args[0] if len(args) == 1 and not kwargs else None
        if (callable(thing) or _is_kernel(thing)) and not isinstance(thing, Anything):
            self.__ledger.take_off(self.__name, thing)
            return thing
        return Anything(f"{self.__name}()", self.__ledger)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        return (base_class(self.__name, self.__ledger, bases),)

    def __deepcopy__(self, _: Any) -> Any:
        return self

    def __copy__(self) -> Any:
        return self

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        if self is not other:
            self.__decides("a comparison")
        return self is other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        self.__decides("the truth")
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

    def __lt__(self, _: Any) -> bool:
        self.__decides("a comparison")
        return False

    __gt__ = __le__ = __ge__ = __lt__

    def _no_number(self) -> NoReturn:
        self.__ledger.refuse(self.__name, "the number")

    __index__ = __int__ = __float__ = _no_number

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def __getitem__(self, _: Any) -> Any:
        return self

    def __setitem__(self, *_: Any) -> None:
        pass

    def _itself(self, *_: Any) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _itself
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __invert__ = _itself
    __or__ = __ror__ = __and__ = __rand__ = __lshift__ = __rshift__ = __matmul__ = _itself

    def __decides(self, what: str) -> None:
        if not _only_looks(_caller()):
            self.__ledger.doubt(self.__name, what)


def attribute(ledger: Ledger, parent: str, name: str) -> Any:
    """What a stand-in has under a name."""
    full = f"{parent}.{name}"
    ledger.use(full)
    if _asks_whether(_caller()) and _package(_caller()) != "triton":  # which looks up what a kernel names
        ledger.doubt(full, "the presence")
    return ledger.thing(full)


def name_of(value: Any) -> str:
    """The full name that a stand-in stands for; empty for what is none."""
    return value._Anything__name if type(value) is Anything else ""  # noqa: SLF001 - a class of this file


def note_identities(body: Iterable[ast.stmt], names: dict[str, Any], path: str, ledger: Ledger) -> None:
    """Note where `is` and `isinstance` look at a stand-in: Python does not ask it.

    Args:
        body: what was run of a file.
        names: of the module, after that.
        path: of the file.
        ledger: of the stand-ins.
    """
    for node in (node for part in body for node in ast.walk(part)):
        looked: list[ast.expr] = []
        if isinstance(node, ast.Compare) and any(isinstance(one, (ast.Is, ast.IsNot)) for one in node.ops):
            looked, what = [node.left, *node.comparators], "the identity"
        elif isinstance(node, ast.Call) and "isinstance" in _names(node.func):
            looked, what = node.args[:1], "the class"
        for name in filter(None, (name_of(_value(one, names, ledger)) for one in looked)):
            text = f"{what} of {name} decides something, and it is a stand-in"
            ledger.doubts[f"{shown(path)}:{node.lineno}: {text}"] = None  # type: ignore[attr-defined]


def _value(node: ast.expr, names: dict[str, Any], ledger: Ledger) -> Any:
    """What an expression is, as far as it hangs on names of the module alone: a stand-in, a module."""
    if isinstance(node, ast.Name):
        return names.get(node.id)
    if isinstance(node, (ast.Call, ast.Subscript)):
        value = _value(node.func if isinstance(node, ast.Call) else node.value, names, ledger)
        return value if name_of(value) else None
    if not isinstance(node, ast.Attribute) or node.attr.startswith("__"):
        return None
    parent = _value(node.value, names, ledger)
    if name_of(parent):
        return ledger.thing(f"{name_of(parent)}.{node.attr}")
    if (
        not isinstance(parent, types.ModuleType)
        or not _is_stand_in(parent)
        or hasattr(type(parent), node.attr)
    ):
        return None
    return vars(parent).get(node.attr) or ledger.thing(f"{parent.__name__}.{node.attr}")


class _Attributes(abc.ABCMeta):
    """Of classes that inherit from a stand-in: what they do not define, the stand-in would."""

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

    def __class_getitem__(cls, _: Any) -> Any:
        return cls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(type(self), name)


_bases: dict[tuple[str, type], type] = {}


def base_class(name: str, ledger: Ledger, bases: tuple[Any, ...]) -> type:
    """A class to inherit from in the place of a stand-in.

    Args:
        name: of the stand-in.
        ledger: its own.
        bases: all that the new class inherits from: no metaclass, such as Enum's, may be in conflict.
    """
    usual: set[type] = {type, abc.ABCMeta, _Attributes}
    others = {type(base) for base in bases if isinstance(base, type)} - usual
    kind: type = type if others else _Attributes
    known = _bases.get((name, kind))
    if known is None:
        content = {"_smith_name": name, "_smith_ledger": ledger, "__module__": name.rpartition(".")[0]}
        known = _bases[name, kind] = kind(name.rpartition(".")[2], (_Base,), content)
    return known


def module_of(name: str, ledger: Ledger) -> types.ModuleType:
    """A module in the place of one that is not installed.

    It is a plain module: of others Triton thinks that a kernel which names one reads a variable.
    """

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


def _is_stand_in(module: types.ModuleType | None) -> bool:
    return "_smith_ledger" in getattr(module, "__dict__", {})


class Watcher(importlib.abc.MetaPathFinder):
    """The first finder: modules are found and run as ever, and something happens around that.

    Attributes:
        around: name of a module, to what is called with its run and itself.
    """

    def __init__(self, around: dict[str, Around]) -> None:
        self.around = around

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """What another finder gives, with a loader that does more; nothing for a stand-in."""
        if name not in self.around:
            return None
        others = (one for one in sys.meta_path if one is not self and hasattr(one, "find_spec"))
        found = (one.find_spec(name, path, target) for one in others)
        spec = next((one for one in found if one), None)
        if spec and spec.loader and not isinstance(spec.loader, Finder):
            run = spec.loader.exec_module

            def exec_module(module: types.ModuleType) -> None:
                self.around[name](lambda: run(module), module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: a module that nothing else finds, and that a compile can do without.

    Attributes:
        names: packages that have stand-ins.
        ledger: of what these answer.
        provide: puts what is known into a new stand-in, such as the GPU into `torch.cuda`.
    """

    def __init__(self, names: Iterable[str], ledger: Ledger, provide: Provider | None = None) -> None:
        self.names = frozenset(names)
        self.ledger = ledger
        self.provide = provide

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """A spec for packages that have stand-ins, and for all below a stand-in.

        A package that is installed and lacks a module has no such module. Where the code that imports says
        what happens without, that happens.
        """
        parent, _, _ = name.rpartition(".")
        known = _is_stand_in(sys.modules.get(parent)) if parent else name in self.names
        if not known:
            return None
        if self._optional():
            if not parent:
                self.ledger.miss(name)
                return None
            self.ledger.doubt(name, "the presence")
        return ModuleSpec(name, self, is_package=True)

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """The stand-in."""
        return module_of(spec.name, self.ledger)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""
        self.ledger.use(module.__name__)
        if self.provide:
            self.provide(module)

    def _optional(self) -> bool:
        """Whether who imports goes on without."""
        asks = [frame for frame in _frames() if frame.f_globals.get("__name__") in _ASKERS]
        user = _user()
        return bool(asks) or (user is not None and guarded(user.f_code.co_filename, user.f_lineno))


def guarded(path: str, number: int) -> bool:
    """Whether a line of a file stands where an ImportError is caught."""
    linecache.checkcache(path)  # a file of that name may have been there before
    try:
        tree = ast.parse("".join(linecache.getlines(path)))
    except SyntaxError:
        return False
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and _covers(node.body, number):
            caught = [handler.type for handler in node.handlers]
            if any(one is None or _names(one) & set(_MISSES) for one in caught):
                return True
        if isinstance(node, ast.With) and _covers(node.body, number):
            calls = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            if any("suppress" in _names(call.func) and _names(call) & set(_MISSES) for call in calls):
                return True
    return False


def _covers(body: list[ast.stmt], number: int) -> bool:
    return body[0].lineno <= number <= (body[-1].end_lineno or 0)


def _names(node: ast.AST) -> set[str]:
    words = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return words | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
