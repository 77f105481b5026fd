"""What stubs were asked: a ledger of what was replaced, and of what hangs on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from .frames import INSTALLED, package_name, user_frame, where

if TYPE_CHECKING:
    from .stubs import Stub


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
        stubs: those that answered, by their full names.
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
        self.stubs: dict[str, Stub] = {}
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

    def use(self, name: str) -> None:
        """Note that something of this name was used; the longest name of one expression stays.

        Triton's own host code asks torch, too; what it makes of that is nobody's kernel.
        """
        if name in self.known or package_name(user_frame()) == "triton":
            return
        place = where()
        parent = name.rpartition(".")[0]
        if self.used.get(parent) == place:
            del self.used[parent]
        self.used.setdefault(name, place)

    def miss(self, name: str) -> None:
        """Note that who imports goes on without; what is installed does so on every machine like this one."""
        user = user_frame()
        path = user.f_code.co_filename if user else ""
        if package_name(user) != "triton" and not any(part in path for part in INSTALLED):
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
        while is_kernel(decorated):
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


def is_kernel(thing: Any) -> bool:
    """Whether a decorator of Triton's made it; its autotuner cannot be called."""
    return type(thing).__module__.partition(".")[0] == "triton" and hasattr(thing, "fn")
