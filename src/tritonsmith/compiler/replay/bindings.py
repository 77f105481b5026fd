"""Map passes to the bindings of libtriton that add them, and options of a pass to arguments of a binding.

The table is not hard-coded. Each binding is called on a pass manager of its own, whose content is then read;
then again with one argument changed, to see which option changes with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritonsmith.compiler.replay import pipeline
from tritonsmith.compiler.replay.pipeline import PipelineForm
from tritonsmith.worker.messages import BindingRow, CallRequest


@dataclass(frozen=True)
class Call:
    """A binding with its arguments after the pass manager.

    Attributes:
        binding: `passes.ttgpuir.add_pipeline`, below libtriton.
        arguments: numbers, truth values and texts; `{"class": NAME}` for a new object of a class.
    """

    binding: str
    arguments: tuple[Any, ...] = ()

    def request(self) -> CallRequest:
        """Return the call as the worker's request spells it."""
        return CallRequest(self.binding, self.arguments)

    def __str__(self) -> str:
        words = ", ".join(
            argument["class"] if isinstance(argument, Mapping) else repr(argument)
            for argument in self.arguments
        )
        return f"{self.binding}({words})"


@dataclass(frozen=True)
class Binding:
    """The observed behaviour of a binding.

    Attributes:
        path: `passes.ttgpuir.add_pipeline`.
        tries: arguments and the resulting form of the pass; then the same with one argument changed each.
        error: reason why the observation is incomplete.
    """

    path: str
    tries: tuple[tuple[tuple[Any, ...], PipelineForm], ...]
    error: str = ""

    @property
    def argument(self) -> str:
        """The name of its pass on a command line; empty if it could not be observed."""
        return self.tries[0][1].argument if self.tries else ""

    def shown(self) -> dict[int, str]:
        """Return the position of each argument whose value an option shows, with that option's name."""
        options: dict[int, str] = {}
        if not self.tries:
            return options
        first, base = self.tries[0]
        before = dict(base.options)
        for arguments, form in self.tries[1:]:
            (position,) = (number for number, value_ in enumerate(arguments) if value_ != first[number])
            for name, value in form.options:
                if before.get(name) != value and value == _spelled(arguments[position]):
                    options[position] = name
        return options

    def call(self, form: PipelineForm, rehearsed: Call | None = None) -> Call | str:
        """Return the call that adds a pass with these options, or the reason why there is none.

        Arguments that no option shows are taken from a rehearsed call of the same binding.
        """
        first, base = self.tries[0]
        shown, options = self.shown(), dict(form.options)
        arguments = list(first)
        for position, value in enumerate(first):
            if position in shown and shown[position] in options:
                arguments[position] = _value(options[shown[position]], value)
            elif rehearsed and rehearsed.binding == self.path:
                arguments[position] = rehearsed.arguments[position]
            elif not isinstance(value, Mapping):
                return f"argument {position + 1} of {self.path} does not appear in the pass's options"
        mine = {**dict(base.options), **{shown[at]: options.get(shown[at], "") for at in shown}}
        different = sorted(name for name in {*mine, *options} if mine.get(name) != options.get(name))
        if different:
            name = different[0]
            return f"{self.path} adds the pass with {name}={mine.get(name, '')}, not {options.get(name, '')}"
        return Call(self.path, tuple(arguments))


def read(rows: Iterable[BindingRow]) -> tuple[Binding, ...]:
    """Parse the worker's report on bindings."""
    return tuple(
        Binding(
            row.binding,
            tuple((each.arguments, pipeline.parse(each.form)) for each in row.forms),
            row.error,
        )
        for row in rows
    )


def resolve(
    known: Sequence[Binding], argument: str, form: PipelineForm | None, rehearsed: Call | None = None
) -> Call | str:
    """Return the call that adds a pass, or the reason why there is none.

    Args:
        known: all bindings.
        argument: name of the pass on a command line.
        form: the pass with its options; None if the dump does not contain them.
        rehearsed: the call by which this Triton's own backend adds it.
    """
    same = [binding for binding in known if binding.argument == argument]
    if not same:
        return f"no binding adds {argument}"
    if form is None:
        if rehearsed:
            return rehearsed
        plain = [binding for binding in same if not binding.tries[0][0]]
        if plain:
            return Call(plain[0].path)
        return f"the dump does not contain the options of {argument}, which {same[0].path} needs"
    reasons = []
    for binding in same:
        call = binding.call(form, rehearsed)
        if isinstance(call, Call):
            return call
        reasons.append(call)
    return "; ".join(reasons)


def _spelled(value: Any) -> str:
    """Return a value as a pass option spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(text: str, like: Any) -> Any:
    """Parse the text of an option; the inverse of `_spelled`. `like` has the type of the result."""
    if isinstance(like, bool):
        return text == "true"
    return int(text) if isinstance(like, int) else text
