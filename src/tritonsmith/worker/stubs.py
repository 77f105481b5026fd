"""Stand-ins for the objects of a module that is not installed.

A stub can be inherited from, called, used as a decorator, a dictionary key or an annotation: that decides
nothing. Where its value decides something (a truth, a comparison, a length, a text), the answer is noted as a
doubt while a kernel's file is loaded, and refused while a kernel is compiled.
"""

from __future__ import annotations

import abc
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from .frames import INSTALLED, asks_whether, frames, is_jit, only_looks, package_name, user_frame, where
from .messages import LedgerNews

if TYPE_CHECKING:
    from .foreign import JitFunction


class Stub:
    """A stand-in for any object of a module that is not installed."""

    def __init__(self, name: str, ledger: Ledger) -> None:
        self.__name, self.__ledger = name, ledger
        self.__name__ = self.__qualname__ = name.rpartition(".")[2]

    def __getattr__(self, name: str) -> Any:
        if name == "__triton_builtin__" and is_jit(_caller()):
            return True  # so Triton's search for a kernel's dependencies skips it: it may be an annotation
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


def attribute(ledger: Ledger, parent: str, name: str) -> Any:
    """Return the attribute of a stand-in."""
    full = f"{parent}.{name}"
    ledger.use(full)
    # Triton itself looks up every name of a kernel, and decides nothing by it.
    if asks_whether(_caller()) and package_name(_caller()) != "triton":
        ledger.doubt(full, "the presence")
    return stub(full, ledger)


def stub(name: str, ledger: Ledger) -> Stub:
    """Return the stub of this name: the same one each time, so that it can be a key."""
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
        name: of the stand-in.
        ledger: its ledger.
        bases: all bases of the new class, so that metaclasses, such as Enum's, do not conflict.
    """
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


# Keep a ledger of stubs: the replaced objects, and the code that depends on the replacements.


class UnknownError(BaseException):
    """A value is unknown, and any answer would be wrong.

    Not an Exception: `except Exception` in a kernel's file would turn it into a value again.

    Attributes:
        name: full name of the stand-in; empty if the value is not one.
    """

    def __init__(self, text: str, name: str = "") -> None:
        super().__init__(text)
        self.name = name


class Ledger:
    """A record of replaced objects, the places of their first use, and the code that depends on them.

    Attributes:
        used: full dotted name that a stand-in answered for, to the place of its first use.
        gone: name of a module that is not installed, to the place that continues without it.
        stubs: the stubs that answered, by full name.
        doubts: warnings about the result as sentences, without duplicates.
        known: names of stand-ins with true answers.
        strict: refuse instead of doubting: a kernel is being compiled.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        self.known = frozenset(known)
        self.used: dict[str, str] = {}
        self.gone: dict[str, str] = {}
        self.doubts: dict[str, None] = {}
        self.strict = False
        self.stubs: dict[str, Stub] = {}
        self._told: set[str] = set()
        self._taken_off: list[tuple[Any, str]] = []

    def news(self) -> LedgerNews:
        """Return the entries that were not reported before."""
        news = LedgerNews(
            {name: place for name, place in self.used.items() if name not in self._told},
            {name: place for name, place in self.gone.items() if name not in self._told},
            tuple(text for text in self.doubts if text not in self._told),
        )
        self._told.update(self.used, self.gone, self.doubts)
        return news

    def use(self, name: str) -> None:
        """Record the use of a name; only the longest name of an expression is kept."""
        # Triton's own host code uses torch too, but that is not part of a kernel.
        if name in self.known or package_name(user_frame()) == "triton":
            return
        place = where()
        parent = name.rpartition(".")[0]
        if self.used.get(parent) == place:
            del self.used[parent]
        self.used.setdefault(name, place)

    def miss(self, name: str) -> None:
        """Record that user code continues without a module; installed packages do that everywhere."""
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
        """Remember that a decorator did nothing; whether the function is a kernel is not yet known."""
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
        self.note(text)  # a bare `except:` may be around
        raise UnknownError(text, name)


def is_kernel(thing: object) -> bool:
    """Report whether one of Triton's decorators made an object; an autotuner, for one, is not callable."""
    return type(thing).__module__.partition(".")[0] == "triton" and hasattr(thing, "fn")
