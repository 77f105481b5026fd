"""What is made small: the text of a file, and how its kernel is compiled; and how large that is."""

from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from typing import Any

from tritonsmith.compiler.signature import parse_value

_COUNTED = (ast.stmt, ast.expr, ast.arg, ast.keyword, ast.alias)


@dataclass(frozen=True)
class KernelCandidate:
    """A file with a kernel.

    Attributes:
        text: of the file.
        entries: parameter and entry of its signature; empty where a command decides.
        options: of the backend, name and value as `values.spell` writes it.
    """

    text: str
    entries: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()

    @property
    def signature(self) -> str:
        """As `--signature` takes it."""
        return ",".join(f"{name}={entry}" for name, entry in self.entries)


@dataclass(frozen=True, order=True)
class CandidateSize:
    """The size of a candidate; the first field that differs decides.

    Attributes:
        nodes: of its tree, and options.
        names: read or bound: a constant is simpler.
        digits: of its constants, and of those of the signature, base 2.
        characters: of the text and the signature.
    """

    nodes: int
    names: int
    digits: int
    characters: int


@dataclass(frozen=True)
class SourceCounts:
    """The counts that a report shows.

    Attributes:
        lines: that are neither blank nor a comment.
        statements: of all functions and of the module.
        arguments: of the kernel.
    """

    lines: int
    statements: int
    arguments: int


def size_of(candidate: KernelCandidate) -> CandidateSize:
    """Measure a candidate."""
    nodes = list(ast.walk(ast.parse(candidate.text)))
    counted = sum(isinstance(node, _COUNTED) for node in nodes)
    digits = [_digits(node.value) for node in nodes if isinstance(node, ast.Constant)]
    digits += [_digits(parse_value(entry)) for _, entry in candidate.entries if not entry.startswith("*")]
    return CandidateSize(
        counted + len(candidate.options),
        sum(isinstance(node, ast.Name) for node in nodes),
        sum(digits),
        len(candidate.text) + len(candidate.signature),
    )


def counts(text: str, kernel: str) -> SourceCounts:
    """Count lines and arguments for a report; no arguments where the kernel's head cannot be found."""
    tree = ast.parse(text)
    lines = [line.strip() for line in text.splitlines()]
    heads = [
        node.args for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == kernel
    ]
    return SourceCounts(
        sum(bool(line) and not line.startswith("#") for line in lines),
        sum(isinstance(node, ast.stmt) for node in ast.walk(tree)),
        sum(len(one.posonlyargs) + len(one.args) + len(one.kwonlyargs) for one in heads[:1]),
    )


def _digits(value: Any) -> int:
    if isinstance(value, int):  # True and False, too
        return abs(value).bit_length()
    if isinstance(value, float) and math.isfinite(value):
        return 1 + 2 * (value not in (0.0, 1.0)) if value else 0
    return 0
