"""Parse pipeline forms, as MLIR prints them: `any(canonicalize{  max-iterations=10 top-down=true})`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tritonsmith.core.text import split_outside_brackets

MODULE = "builtin.module"

_NEST = re.compile(r"([\w.]+)\((.*)\)", re.DOTALL)
_PASS = re.compile(r"([\w.-]+)\s*(?:\{(.*)\})?", re.DOTALL)


@dataclass(frozen=True)
class PipelineForm:
    """One pass with its options.

    Attributes:
        argument: name of the pass on a command line: `tritongpu-pipeline`.
        options: names and values, in the order of the text.
        nest: operations that it is nested in, outermost first; without `any`, which stands for any operation.
    """

    argument: str
    options: tuple[tuple[str, str], ...] = ()
    nest: tuple[str, ...] = ()

    def render(self) -> str:
        """Return the pass as a person would write it, without its nesting."""
        words = " ".join(f"{name}={value}" if value else name for name, value in self.options)
        return f"{self.argument}{{{words}}}" if words else self.argument


def parse(text: str) -> PipelineForm:
    """Parse the form of a single pass; of a list, only its first."""
    nest: list[str] = []
    rest = text.strip()
    while match := _NEST.fullmatch(rest):
        nest += [] if match[1] == "any" else [match[1]]
        rest = match[2].strip()
    first, *_ = split(rest, ",") or [""]
    match = _PASS.fullmatch(first)
    if match is None:
        return PipelineForm(first)
    options = tuple(
        (name, value) for name, _, value in (word.partition("=") for word in split(match[2] or ""))
    )
    return PipelineForm(match[1], options, tuple(nest))


def split(text: str, separator: str = " ") -> list[str]:
    """Split a text at separators outside brackets and quotes; empty parts are left out."""
    return [part for part in split_outside_brackets(text, separator) if part]


def parsable(printed: str, operation: str) -> tuple[str, tuple[str, ...]]:
    """Return the form that `--pass-pipeline` accepts for a pass that ran on an operation.

    Returns:
        `cse`, or `tt.func(cse)`, to be put into `builtin.module()`; and notes on parts that do not parse as
        they were printed, and how they were changed.
    """
    # A pass manager prints itself as `any(cse)`, a reproducer up to 3.2 has `builtin.module(any(cse))`:
    # inside a module, either would run the pass on the operations in it. So the nesting is rebuilt.
    form = parse(printed)
    changes, options = [], []
    for name, value in form.options:
        if "{" in value and not value.startswith("{"):  # a value ends at the first brace
            changes.append(f"{form.argument}: braces around the value of {name}")
            options.append((name, f"{{{value}}}"))
        else:
            options.append((name, value))
    text = PipelineForm(form.argument, tuple(options)).render()
    return f"{operation}({text})" if operation != MODULE else text, tuple(changes)
