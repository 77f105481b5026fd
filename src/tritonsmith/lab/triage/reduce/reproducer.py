"""The file that is written: the kernel, how it is compiled without this tool, and above it what it shows."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import request, source
from tritonsmith.compiler.request import CompilePoint, CompileRequest
from tritonsmith.compiler.signature import CONSTEXPR, spell_value
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.versions import version_key
from tritonsmith.lab.terms import Limit, Term, TextTerm

_SINCE = "3.3"  # ASTSource takes `constexprs` and a table of attributes, triton-lang/triton#5220
_ALIGNED = 16


@dataclass(frozen=True)
class Symptom:
    """The symptom that the file shows.

    Attributes:
        triton: the version; empty if nobody knows.
        expected: in words: `fatal error: ...`, `spills 12`.
        before: lines of the source that it was made of.
        origin: name of that file.
        terms: of `--when`.
        argv: the command that decides; empty for a compile.
        variables: of Triton's, that are set.
        wrong: a pass changes the result.
    """

    triton: str
    expected: str
    before: int
    origin: str
    terms: tuple[Term, ...] = ()
    argv: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    wrong: bool = False

    def shell(self, text: str) -> str:
        """A command under these variables."""
        before = "".join(f"{name}={shlex.quote(value)} " for name, value in self.variables)
        return f"  {before}{text}"


def render(text: str, symptom: Symptom, asked: CompileRequest | None, main: str = "") -> str:
    """The whole file.

    Args:
        text: of the kernel.
        symptom: what it shows.
        asked: its compile, with the name that the file has; None where a command decides.
        main: of `main_program`; empty if `python FILE` is not to compile it.
    """
    comment = "\n".join(_head(symptom, asked, alone=bool(main)))  # messages have several lines
    head = "\n".join(f"# {line}".rstrip() for line in comment.splitlines())
    return f"{head}\n{text.rstrip()}\n" + (f"\n\n{main}" if main else "")


def _head(symptom: Symptom, asked: CompileRequest | None, *, alone: bool) -> Iterator[str]:
    yield f"Reduced by tritonsmith from {symptom.origin}, {symptom.before} lines."
    if asked:
        targets = ", ".join(map(str, asked.targets))
        options = "".join(f", {name}={spell_value(value)}" for name, value in asked.options.items())
        yield f"Triton {symptom.triton}, {targets}{options}; no GPU is needed."
        yield f"Expected: {symptom.expected}"
        yield ""
        for text in _commands(symptom, asked):
            yield symptom.shell(text)
        if alone:
            yield symptom.shell(f"python {shlex.quote(asked.file.name)}{_after(symptom)}")
    else:
        yield "Expected: exit code 0 of"
        yield ""
        yield symptom.shell(shlex.join(symptom.argv))


def _stages() -> list[str]:
    """Return the stages of Triton's own compiler."""
    stages: list[str] = configs.load("kernels")["stages"]["compiler"]
    return stages


def _after(symptom: Symptom) -> str:
    silent = symptom.wrong or any(isinstance(term, Limit) for term in symptom.terms)
    return "  # compiles it, and prints nothing" if silent else ""


def _commands(symptom: Symptom, asked: CompileRequest) -> Iterator[str]:
    """Yield the commands that show it: limits in a table, texts in a stage, failures in a compile."""
    words = shlex.split(replace(asked, file=Path(asked.file.name)).flags())
    texts = [term for term in symptom.terms if isinstance(term, TextTerm)]
    if symptom.wrong:
        yield command("passes.check", *words)
        return
    if len(texts) < len(symptom.terms):
        yield command("kernel.compile --resources", *words)
    for stage in dict.fromkeys(term.stage for term in texts):
        yield command("kernel.show", *words, "--stage", stage)
    if not symptom.terms:
        yield command("kernel.compile", *words)


def main_program(text: str, symptom: Symptom, asked: CompileRequest | None) -> str:
    """Return code that compiles the kernel with Triton alone; empty if there is none for this Triton."""
    if not asked or not symptom.triton or version_key(symptom.triton) < version_key(_SINCE):
        return ""
    kernel = source.find(text, asked.kernel, asked.file)
    texts = [term for term in symptom.terms if isinstance(term, TextTerm) and term.stage in _stages()]
    prints = [
        f"    print({term.needle!r} {'not in' if term.lacks else 'in'} compiled.asm[{term.stage!r}])"
        for term in texts
    ]
    calls = [_call(asked.kernel, point) for point in request.expand_points(asked, kernel)] if kernel else []
    if not calls or not all(calls):
        return ""
    taken = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    head = [] if {"triton"} & taken else ["    import triton"]
    lines = [
        'if __name__ == "__main__":',
        *head,
        "    from triton.backends.compiler import GPUTarget",
        "    from triton.compiler import ASTSource",
        "",
        *(line for call in calls for line in (*call, *prints)),
    ]
    return "\n".join(lines) + "\n"


def _call(kernel: str, point: CompilePoint) -> list[str]:
    bound, target = point.bound, point.target
    if bound is None or any("(" in kind for kind in bound.signature.values()):
        return []
    names = list(bound.signature)
    ones = {name: 1 for name, hint in bound.hints.items() if hint == 1}
    constants = {**bound.constexprs, **ones}
    if any(isinstance(value, Mapping) for value in constants.values()) or "." in "".join(constants):
        return []
    signature = {name: CONSTEXPR if name in constants else kind for name, kind in bound.signature.items()}
    attributes: dict[Any, list[list[Any]]] = {
        (names.index(name),): [["tt.divisibility", _ALIGNED]]
        for name, hint in bound.hints.items()
        if hint == _ALIGNED
    }
    if target.backend == "hip":
        for name in bound.ranges:
            attributes.setdefault((names.index(name),), []).append(["tt.pointer_range", 32])
    chosen = f"GPUTarget({target.backend!r}, {target.arch!r}, {target.warp_size})"
    return [
        "    compiled = triton.compile(",
        "        ASTSource(",
        f"            {kernel},",
        f"            signature={signature!r},",
        f"            constexprs={ {(names.index(name),): value for name, value in constants.items()}!r},",
        f"            attrs={attributes!r},",
        "        ),",
        f"        target={chosen},",
        *([f"        options={dict(point.options)!r},"] if point.options else []),
        "    )",
    ]
