"""Define the classes of messages: `dataclass(frozen=True)` as in `dataclasses`, without its cost at import.

Before Python 3.13, `dataclasses` compiles each of a frozen class's six methods by an `exec` of its own. The
fifty classes of `messages` took 45 ms, which the tool and each worker paid. Here they share their methods.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Literal

_MISSING = dataclasses.MISSING


def dataclass(*, frozen: Literal[True]) -> Any:  # noqa: ARG001 # spelled as type checkers know it
    """Return a decorator that makes a class a frozen dataclass.

    `dataclasses.fields`, `replace` and `is_dataclass` work on it; type checkers are shown
    `dataclasses.dataclass` in its place. `__post_init__`, `InitVar` and `field(init=False)` have no
    effect, and a subclass has to be made by this decorator, too.
    """
    define = dataclasses.dataclass(init=False, repr=False, eq=False)

    def decorate(kind: type) -> type:
        define(kind)
        kind.__init__ = _initialize  # type: ignore[misc] # as the decorator of dataclasses does
        kind.__eq__ = _equal  # type: ignore[method-assign,assignment]
        kind.__hash__ = _hash  # type: ignore[method-assign,assignment]
        kind.__repr__ = _represent  # type: ignore[method-assign,assignment]
        kind.__setattr__ = kind.__delattr__ = _refuse  # type: ignore[method-assign,assignment]
        return kind

    return decorate


def _initialize(self: object, *values: object, **named: object) -> None:
    fields = _fields(self)
    if len(values) > len(fields):
        raise TypeError(f"{type(self).__name__} takes {len(fields)} values, not {len(values)}")
    content = vars(self)  # directly: `__setattr__` refuses
    for field, value in zip(fields, values):
        content[field.name] = value
    for field in fields[len(values) :]:
        if field.name in named:
            content[field.name] = named.pop(field.name)
        elif field.default is not _MISSING:
            content[field.name] = field.default
        elif field.default_factory is not _MISSING:
            content[field.name] = field.default_factory()
        else:
            raise TypeError(f"{type(self).__name__} lacks {field.name!r}")
    if named:
        raise TypeError(f"{type(self).__name__} has no {next(iter(named))!r}, or has it twice")


def _fields(self: object) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(self)  # type: ignore[arg-type] # of a class that is a dataclass


def _values(self: object) -> tuple[object, ...]:
    content = vars(self)
    return tuple(content[field.name] for field in _fields(self))


def _equal(self: object, other: object) -> Any:  # a bool, or NotImplemented
    if type(self) is not type(other):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: object) -> int:
    return hash(_values(self))


def _represent(self: object) -> str:
    return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


def _refuse(self: object, name: str, *_: object) -> None:
    raise dataclasses.FrozenInstanceError(f"{type(self).__name__}.{name} cannot change")
