"""Which binding of libtriton adds which pass, and how a pass's options become a binding's arguments.

This table is not hard-coded: each binding is called on its own pass manager, and what that
then contains is read; and again with one argument changed, to see which option changes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritonsmith.compiler.replay import pipeline
from tritonsmith.compiler.replay.pipeline import PipelineForm


@dataclass(frozen=True)
class Call:
    """A binding with its arguments after the pass manager.

    Attributes:
        binding: `passes.ttgpuir.add_pipeline`, below libtriton.
        arguments: numbers, truth values and texts; `{"class": NAME}` for a new object of a class.
    """

    binding: str
    arguments: tuple[Any, ...] = ()

    def content(self) -> dict[str, Any]:
        """What the worker is given."""
        return {"binding": self.binding, "arguments": list(self.arguments)}

    def __str__(self) -> str:
        words = ", ".join(one["class"] if isinstance(one, Mapping) else repr(one) for one in self.arguments)
        return f"{self.binding}({words})"


@dataclass(frozen=True)
class Binding:
    """The observed behaviour of a binding.

    Attributes:
        path: `passes.ttgpuir.add_pipeline`.
        tries: arguments, and the form of the pass that they gave; then the same with one of them changed.
        error: why something of it could not be seen.
    """

    path: str
    tries: tuple[tuple[tuple[Any, ...], PipelineForm], ...]
    error: str = ""

    @property
    def argument(self) -> str:
        """Of its pass, on a command line; empty if it could not be seen."""
        return self.tries[0][1].argument if self.tries else ""

    def shown(self) -> dict[int, str]:
        """Position of an argument to the option that shows its value."""
        found: dict[int, str] = {}
        if not self.tries:
            return found
        first, base = self.tries[0]
        before = dict(base.options)
        for arguments, form in self.tries[1:]:
            (position,) = (number for number, one in enumerate(arguments) if one != first[number])
            for name, value in form.options:
                if before.get(name) != value and value == _spelled(arguments[position]):
                    found[position] = name
        return found

    def call(self, form: PipelineForm, rehearsed: Call | None = None) -> Call | str:
        """The call that adds a pass with these options, or why there is none.

        The arguments of a rehearsed call for the same pass count where no option shows them.
        """
        first, base = self.tries[0]
        shown, wanted = self.shown(), dict(form.options)
        arguments = list(first)
        for position, value in enumerate(first):
            if position in shown and shown[position] in wanted:
                arguments[position] = _value(wanted[shown[position]], value)
            elif rehearsed and rehearsed.binding == self.path:
                arguments[position] = rehearsed.arguments[position]
            elif not isinstance(value, Mapping):
                return f"argument {position + 1} of {self.path} does not appear in the pass's options"
        mine = {**dict(base.options), **{shown[at]: wanted.get(shown[at], "") for at in shown}}
        different = sorted(name for name in {*mine, *wanted} if mine.get(name) != wanted.get(name))
        if different:
            name = different[0]
            return f"{self.path} adds the pass with {name}={mine.get(name, '')}, not {wanted.get(name, '')}"
        return Call(self.path, tuple(arguments))


def read(rows: Iterable[Mapping[str, Any]]) -> tuple[Binding, ...]:
    """Parse the worker's report on bindings."""
    return tuple(
        Binding(
            row["binding"],
            tuple((tuple(one["arguments"]), pipeline.parse(one["form"])) for one in row["forms"]),
            row["error"],
        )
        for row in rows
    )


def resolve(
    known: Sequence[Binding], argument: str, form: PipelineForm | None, rehearsed: Call | None = None
) -> Call | str:
    """The call that adds a pass, or why there is none.

    Args:
        known: all bindings.
        argument: of the pass on a command line.
        form: the pass with its options; None if the dump does not tell them.
        rehearsed: what this Triton's own backend calls for it.
    """
    same = [one for one in known if one.argument == argument]
    if not same:
        return f"no binding adds {argument}"
    if form is None:
        if rehearsed:
            return rehearsed
        plain = [one for one in same if not one.tries[0][0]]
        if plain:
            return Call(plain[0].path)
        return f"the dump does not contain the options of {argument}, which {same[0].path} needs"
    reasons = []
    for one in same:
        made = one.call(form, rehearsed)
        if isinstance(made, Call):
            return made
        reasons.append(made)
    return "; ".join(reasons)


def _spelled(value: Any) -> str:
    """A value as an option has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(text: str, like: Any) -> Any:
    """The opposite."""
    if isinstance(like, bool):
        return text == "true"
    return int(text) if isinstance(like, int) else text
