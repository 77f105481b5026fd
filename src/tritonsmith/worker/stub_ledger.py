"""Keep a ledger of stubs: the replaced objects, and the code that depends on the replacements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from .frames import INSTALLED, package_name, user_frame, where
from .messages import LedgerNews

if TYPE_CHECKING:
    from .stubs import Stub


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

    def take_off(self, name: str, decorated: Any) -> None:
        """Remember that a decorator did nothing; whether the function is a kernel is not yet known."""
        while is_kernel(decorated):
            decorated = decorated.fn
        package = name.partition(".")[0]
        text = f"@{name} removed from {getattr(decorated, '__name__', decorated)}: {package} is not installed"
        self._taken_off.append((decorated, f"{where()}: {text}; its configs etc. are lost"))

    def bare(self, function: Any) -> None:
        """Note the decorators that were removed from the function of a kernel."""
        self.doubts.update((text, None) for decorated, text in self._taken_off if decorated is function)

    def refuse(self, name: str, what: str) -> NoReturn:
        """Refuse a question that has no true answer."""
        package = name.partition(".")[0]
        text = f"{what} of {name} is needed, but {package} is not installed"
        self.note(text)  # a bare `except:` may be around
        raise UnknownError(text, name)


def is_kernel(thing: Any) -> bool:
    """Report whether one of Triton's decorators made an object; an autotuner, for one, is not callable."""
    return type(thing).__module__.partition(".")[0] == "triton" and hasattr(thing, "fn")
