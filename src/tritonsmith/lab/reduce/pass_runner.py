"""How to run passes: by bindings, or by `triton-opt` with a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.replay import pipeline
from tritonsmith.compiler.replay.bindings import Binding, Call
from tritonsmith.compiler.replay.pipeline import PipelineForm
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.lab.reduce.interestingness import BindingsOracle, CommandOracle, OptOracle, Oracle

_NAME = "tritongpu-pipeline{num-stages=3}"


@dataclass(frozen=True)
class PassRunner:
    """Passes, and the program that runs them.

    Attributes:
        pipeline: `builtin.module(tritongpu-coalesce)`; empty for a command.
        python: an interpreter with libtriton; None if `opt` or a command is used.
        calls: bindings, one for each pass.
        opt: `triton-opt`; None if bindings are used.
        command: any program instead; `{}` in it is the file.
    """

    pipeline: str = ""
    python: Path | None = None
    calls: tuple[Call, ...] = ()
    opt: Path | None = None
    command: tuple[str, ...] = ()

    def oracle(self, folder: Path, limit: float, name: str = "in.mlir") -> Oracle:
        """One that runs these passes; a command is given a file of this name.

        Raises:
            FactError: the interpreter has no Triton.
        """
        if self.command:
            return CommandOracle(self.command, folder, limit, name)
        if self.opt:
            return OptOracle(self.opt, self.pipeline, folder, limit)
        assert self.python is not None  # noqa: S101 - one of the three
        return BindingsOracle(self.python, self.calls, folder, limit)

    @property
    def who(self) -> str:
        """The program that runs them."""
        return self.command[0] if self.command else str(self.opt or self.python)


def forms(text: str) -> tuple[PipelineForm, ...]:
    """The passes of a pipeline: `builtin.module(a,b{c=d})` or `a,b{c=d}`.

    Raises:
        UsageError: it names no pass.
    """
    inner = text.strip()
    while inner.startswith((f"{pipeline.MODULE}(", "any(")) and len(pipeline.split(inner, ",")) == 1:
        inner = inner.partition("(")[2].removesuffix(")").strip()
    found = tuple(pipeline.parse(part) for part in pipeline.split(inner, ","))
    if not found or not all(one.argument for one in found):
        raise UsageError(
            f"--pass cannot be {text!r}", hints=[f"give one or more passes: --pass '{_NAME},cse'"]
        )
    return found


def spelled(text: str) -> str:
    """A pipeline as `--pass-pipeline` takes it."""
    parts = []
    for form in forms(text):
        inside = form.render()
        for operation in reversed([one for one in form.nest if one != pipeline.MODULE]):
            inside = f"{operation}({inside})"
        parts.append(inside)
    return f"{pipeline.MODULE}({','.join(parts)})"


def calls(text: str, known: Sequence[Binding], python: Path) -> tuple[Call, ...]:
    """Bindings for the passes of a pipeline that a person wrote: options that nobody names are the binding's.

    Raises:
        FactError: no binding adds one of them.
        UsageError: an option is missing or unknown.
    """
    return tuple(_call(form, known, python) for form in forms(text))


def _call(form: PipelineForm, known: Sequence[Binding], python: Path) -> Call:
    same = [one for one in known if one.argument == form.argument]
    if not same:
        names = {one.argument for one in known if one.argument}
        raise FactError(
            f"no binding of this Triton adds {form.argument}",
            where=python,
            hints=[
                "triton-opt of a build has every pass: --triton-opt PATH",
                *did_you_mean(form.argument, names),
            ],
        )
    reasons = []
    for one in same:
        made = one.call(_completed(form, one))
        if isinstance(made, Call):
            return made
        reasons.append(made)
    shown = sorted({name for one in same for name in one.shown().values()})
    words = " ".join(f"{name}=..." for name in shown)
    raise UsageError(
        f"{form.argument} cannot be run with these options",
        why="; ".join(reasons),
        hints=[f"give its options: --pass '{form.argument}{{{words}}}'"] if shown else [],
    )


def _completed(form: PipelineForm, binding: Binding) -> PipelineForm:
    """With the options that the binding gives by itself, where no argument of it does."""
    arguments = set(binding.shown().values())
    base = {name: value for name, value in binding.tries[0][1].options if name not in arguments}
    return PipelineForm(form.argument, tuple({**base, **dict(form.options)}.items()), form.nest)
