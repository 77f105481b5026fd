"""Pipeline forms, as MLIR prints them: `any(canonicalize{  max-iterations=10 top-down=true})`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tritonsmith.core import brackets

MODULE = "builtin.module"

_NEST = re.compile(r"([\w.]+)\((.*)\)", re.DOTALL)
_PASS = re.compile(r"([\w.-]+)\s*(?:\{(.*)\})?", re.DOTALL)


@dataclass(frozen=True)
class PipelineForm:
    """One pass with its options.

    Attributes:
        argument: of the pass on a command line: `tritongpu-pipeline`.
        options: names and values, in the order of the text.
        nest: operations that it is nested in, outermost first; without `any`, which is whatever it is given.
    """

    argument: str
    options: tuple[tuple[str, str], ...] = ()
    nest: tuple[str, ...] = ()

    def render(self) -> str:
        """The pass as a person would write it, without its nesting."""
        words = " ".join(f"{name}={value}" if value else name for name, value in self.options)
        return f"{self.argument}{{{words}}}" if words else self.argument


def parse(text: str) -> PipelineForm:
    """The form of a single pass; of a list, its first."""
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
    """Parts of a text, where the separator is in no bracket and no quotes; empty parts are left out."""
    return [part for part in brackets.split(text, separator) if part]


def parsable(printed: str, operation: str) -> tuple[str, tuple[str, ...]]:
    """What `--pass-pipeline` takes for a pass that ran on an operation.

    A pass manager's own text is `any(cse)`, and a reproducer's up to 3.2 `builtin.module(any(cse))`, which
    would run the pass on what is in the module: so the nesting is made anew. Blanks are single.

    Returns:
        `cse`, or `tt.func(cse)`, which belongs into `builtin.module()`; what does not parse as it was
        printed, and what was done about it.
    """
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
