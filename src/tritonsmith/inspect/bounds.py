"""Report offsets that overflow, and accesses outside of tensors: `kernel.lint --bounds`."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xdsl.ir import Operation, SSAValue

from tritonsmith.check.bounds import Overflow, Witness, bounds
from tritonsmith.check.module import UnsupportedIrError, integer, name_of, without_locations
from tritonsmith.check.offsets import mask_of
from tritonsmith.check.outside import OutsideAccess, UnlimitedProgram, outside, unlimited
from tritonsmith.check.polynomials import LARGEST, OffsetSymbol, Polynomial, SymbolKind
from tritonsmith.check.runs import TritonKernel, parsed
from tritonsmith.compiler import call
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.signature import CONSTEXPR
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UndecidedError, UsageError, did_you_mean
from tritonsmith.core.plan import digest
from tritonsmith.core.text import counted
from tritonsmith.inspect import show
from tritonsmith.inspect.show import SourceLine

TASK = "kernel.bounds"
OVERFLOW, OUTSIDE, UNLIMITED = "int32-overflow", "outside-tensor", "unlimited-program"  # in configs/lint.toml
_STAGE = "ttir"
_OPERATION = re.compile(r'^\s*(?:%[^=]+ = )?"([\w.]+)"\(')
_NUMBERED = re.compile(r"_\d+$")  # MLIR makes names distinct
_WORDS = {
    "tt.load": "load",
    "tt.store": "store",
    "tt.atomic_rmw": "atomic update",
    "tt.atomic_cas": "atomic update",
}
_PASSED_ON = ("tt.splat", "tt.broadcast", "tt.expand_dims", "arith.extsi", "tt.reshape", "tt.trans")
_SIGNS = {"div": "//", "rem": "%"}
_MOST_TERMS = 4  # of an expression that is shown


@dataclass(frozen=True)
class BoundsFinding:
    """An offset that overflows, or may.

    Attributes:
        origin: the line of Python; None if it is not known.
        source: the text of that line.
        expression: what overflows, by the names of the kernel.
        remedy: what to change.
        overflow: what was found in the IR.
        reached: the lines of the loads and stores with this offset.
    """

    origin: SourceLine | None
    source: str
    expression: str
    remedy: str
    overflow: Overflow
    reached: tuple[str, ...]


@dataclass(frozen=True)
class EndFinding:
    """An access that is outside of its tensor, or may be; or a program id that nothing limits.

    Attributes:
        code: the code of the rule: `outside-tensor`, `unlimited-program`.
        origin: the line of Python; None if it is not known.
        source: the text of that line.
        what: the finding, in one sentence.
        proved: whether a launch shows it, of a tensor whose end the kernel itself says.
        launch: the launch that shows it, in words; empty if there is none.
        remedy: what to change.
    """

    code: str
    origin: SourceLine | None
    source: str
    what: str
    proved: bool
    launch: str
    remedy: str


@dataclass(frozen=True)
class CapturedSizes:
    """The sizes of captured launches of a kernel.

    Attributes:
        grids: the grids.
        largest: the largest value of each integer argument.
    """

    grids: tuple[tuple[int, ...], ...] = ()
    largest: Mapping[str, int] = field(default_factory=dict)

    def of(self, grown: OffsetSymbol) -> int:
        """Return the largest value of an argument, or number of programs; 0 if that is not known."""
        if grown.kind is SymbolKind.PROGRAM:
            return max((grid[grown.number] for grid in self.grids if grown.number < len(grid)), default=0)
        return self.largest.get(grown.name, 0)


def captured(entries: Iterable[ListedKernel]) -> dict[str, CapturedSizes]:
    """Return the sizes of captured launches, by the names of the kernels.

    Args:
        entries: entries of a kernels file; a kernel has one for each set of types and constants.
    """
    sizes: dict[str, CapturedSizes] = {}
    for entry in entries:
        before = sizes.get(entry.kernel, CapturedSizes())
        largest = dict(before.largest)
        for name, value in entry.largest.items():
            largest[name] = max(value, largest.get(name, value))
        sizes[entry.kernel] = CapturedSizes((*before.grids, *entry.grids), largest)
    return sizes


@dataclass(frozen=True)
class PointBounds:
    """The offsets of one compile.

    Attributes:
        kernel: the function's name.
        point: the id of the compile.
        target: its target.
        findings: the offsets that overflow or may.
        accesses: the number of accesses through pointers.
        descriptors: the number of accesses through descriptors.
        unknown: why nothing is known; empty if it is.
        launched: what is known of captured launches.
        ends: the accesses outside of their tensors, and the program ids that nothing limits.
    """

    kernel: str
    point: str
    target: str
    findings: tuple[BoundsFinding, ...] = ()
    accesses: int = 0
    descriptors: int = 0
    unknown: str = ""
    launched: CapturedSizes | None = None
    ends: tuple[EndFinding, ...] = ()

    @property
    def proved(self) -> int:
        """The number of offsets that a witness shows to overflow, by more than one block."""
        return sum(_counts(finding) for finding in self.findings)


def _counts(finding: BoundsFinding) -> bool:
    """Return whether a finding fails the command."""
    return finding.overflow.is_proved and not finding.overflow.is_in_block


def of_manifests(
    manifests: Sequence[Manifest],
    python: Path,
    space: Workspace,
    sizes: Mapping[str, int] | None = None,
    launched: Mapping[str, CapturedSizes] | None = None,
    *,
    quiet: bool = False,
) -> list[PointBounds]:
    """Find the offsets that overflow in compiled kernels.

    Args:
        manifests: the output folders.
        python: an interpreter with the Triton that compiled them.
        space: the workspace.
        sizes: values of arguments that are known.
        launched: the sizes of captured launches, by the names of the kernels.
        quiet: show no progress.

    Raises:
        FactError: the interpreter cannot print the IR.
        UsageError: no kernel has an argument of such a name.
    """
    compiled = [(manifest, point) for manifest in manifests for point in manifest.points]
    usable = [
        (manifest, point, path)
        for manifest, point in compiled
        if (path := manifest.path(point, _STAGE)) is not None
    ]
    own = digest(*(str(path) for _, _, path in usable))[:16]
    work = space.root / "kernels" / "bounds" / f"{own}-{os.getpid()}"
    limits = configs.load("passes-check")["inputs"]
    texts = call.generic_texts(
        [path for _, _, path in usable], (python, space), work, limits, task=TASK, quiet=quiet
    )
    by_point = {id(point): text for (_, point, _), text in zip(usable, texts, strict=True)}
    _require_names(sizes or {}, [point for _, point in compiled])
    return [
        of_point(
            manifest.kernel,
            point,
            by_point.get(id(point), ""),
            sizes or {},
            (launched or {}).get(manifest.kernel),
        )
        for manifest, point in compiled
    ]


def _require_names(sizes: Mapping[str, int], points: Sequence[Point]) -> None:
    known = sorted({name for point in points for name, kind in point.signature.items() if kind != CONSTEXPR})
    for name in sizes:
        if name not in known:
            raise UsageError(f"--size: no argument {name!r}", hints=did_you_mean(name, known))
        for kind in {point.signature.get(name, "") for point in points}:
            bits = re.match(r"([iu])(\d+)", kind)
            if bits and sizes[name] >= 1 << int(bits[2]) - (bits[1] == "i"):
                raise UsageError(f"--size: {name} is {kind}, which cannot be {sizes[name]:,}")


def of_point(
    kernel: str,
    point: Point,
    text: str,
    sizes: Mapping[str, int],
    launched: CapturedSizes | None = None,
) -> PointBounds:
    """Find the offsets that overflow in one compile.

    Args:
        kernel: the function's name.
        point: the compile.
        text: its ttir in generic form; empty if it could not be printed.
        sizes: values of arguments that are known.
        launched: the sizes of captured launches, which are then the usual ones.
    """

    def nothing(why: str) -> PointBounds:
        return PointBounds(kernel, point.id, point.target, unknown=why, launched=launched)

    if not text:
        return nothing(point.gist or f"there is no {_STAGE} that this Triton can print")
    names = [
        name for name, kind in point.signature.items() if kind != CONSTEXPR and point.hints.get(name) != 1
    ]
    try:
        whole = parsed(without_locations(text))
        if whole is None:
            return nothing("the IR has no kernel of Triton's dialect")
        answer = bounds(whole, point.backend, names, sizes, usual=launched.largest if launched else None)
        behind, free = outside(answer.search), unlimited(answer.search)
    except UnsupportedIrError as error:
        return nothing(f"not supported: {error}")
    except FactError as error:
        return nothing(": ".join(filter(None, (error.what, error.why))))
    described = _Description(whole, text, names)
    findings = {
        described.key(overflow): described.finding(overflow) for overflow in reversed(answer.overflows)
    }
    ordered = sorted(findings.values(), key=_order)
    ends = [*map(described.outside, behind), *map(described.unlimited, free)]
    return PointBounds(
        kernel,
        point.id,
        point.target,
        tuple(ordered),
        answer.accesses,
        answer.descriptors,
        "",
        launched,
        tuple(dict.fromkeys(ends)),
    )


def _order(finding: BoundsFinding) -> tuple[bool, str, int]:
    """Return the order of findings: what is proved, then by line."""
    origin = finding.origin
    return not finding.overflow.is_proved, origin.file if origin else "", origin.number if origin else 0


class _Description:
    """The lines of Python and the names of a kernel, for its findings."""

    def __init__(self, kernel: TritonKernel, text: str, names: Sequence[str]) -> None:
        self._origins = _origins(kernel, text)
        self._names = [
            parameter.name_hint or (names[number] if number < len(names) else "its tensor")
            for number, parameter in enumerate(kernel.function.regions[0].blocks[0].args)
        ]
        self._sources: dict[str, list[str]] = {}

    def key(self, overflow: Overflow) -> tuple[object, ...]:
        """Return what two findings have in common that a reader would take for one."""
        return self._origins.get(overflow.operation), expression(overflow.exact), overflow.is_proved

    def finding(self, overflow: Overflow) -> BoundsFinding:
        """Describe an overflow."""
        origin = self._origins.get(overflow.operation)
        reached = {
            f"{_WORDS[name_of(access)]} in line {line.number}": None
            for access in overflow.accesses
            if (line := self._origins.get(access))
        }
        return BoundsFinding(
            origin,
            self._text(origin),
            expression(overflow.exact),
            self._remedy(overflow.operation, origin),
            overflow,
            tuple(reached),
        )

    def outside(self, found: OutsideAccess) -> EndFinding:
        """Describe an access that is outside of its tensor, or may be."""
        origin, line = self._origins.get(found.operation), self._origins.get(found.other)
        size, name = found.size.name, self._names[found.pointer]
        other = f"the {_WORDS[name_of(found.other)]}" + (f" in line {line.number}" if line else "")
        own = "it has no mask" if mask_of(found.operation) is None else f"nothing limits it by {size}"
        if found.wrong_size:
            own = f"its mask compares with {found.wrong_size.name}"
        witness = found.witness
        where = f"element {witness.element:,} of {name}, which has {witness.end:,} by the mask of {other}"
        if not found.same:
            where = f"element {witness.element:,} of {name}; {other} has {witness.end:,} at such offsets"
        return EndFinding(
            OUTSIDE,
            origin,
            self._text(origin),
            f"{'is' if found.is_proved else 'may be'} outside of {name}: {own}; {other} compares with {size}",
            found.is_proved,
            f"{witness.launch_words}: {where}",
            f"compare its offsets with {size} in its mask"
            + ("" if found.is_proved else f", unless {name} is that large"),
        )

    def unlimited(self, found: UnlimitedProgram) -> EndFinding:
        """Describe a program id that nothing limits."""
        origin = self._origins.get(found.operations[0])
        return EndFinding(
            UNLIMITED,
            origin,
            self._text(origin),
            "may be outside of its tensor: no mask, comparison, quotient or loop limits"
            f" {found.program.name}, whose blocks have {found.tile:,} elements",
            proved=False,
            launch="",
            remedy="compare the offsets with the size in a mask, unless each launch has whole blocks, and a"
            " program for each of them",
        )

    def _text(self, origin: SourceLine | None) -> str:
        if origin is None:
            return ""
        if origin.file not in self._sources:
            try:
                self._sources[origin.file] = untrusted.read_text(Path(origin.file)).splitlines()
            except OSError:
                self._sources[origin.file] = []
        lines = self._sources[origin.file]
        return lines[origin.number - 1].strip() if 0 < origin.number <= len(lines) else ""

    def _remedy(self, operation: Operation, origin: SourceLine | None) -> str:
        """Name the factor to widen: the program id itself, or the operand that is no argument."""
        roots = [_root(operand) for operand in operation.operands]
        for root in roots:
            owner = root.owner
            if isinstance(owner, Operation) and name_of(owner) == "tt.get_program_id":
                line = self._origins.get(owner)
                where = f" in line {line.number}" if line and line != origin else ""
                return f"tl.program_id({integer(owner, 'axis')}).to(tl.int64){where}"
        text = self._text(origin)
        for root in roots:
            for name in (root.name_hint or "", _NUMBERED.sub("", root.name_hint or "")):
                if name and re.search(rf"\b{re.escape(name)}\b", text):
                    return f"{name}.to(tl.int64) in this line"
        return "make one operand of this line int64, by .to(tl.int64), before it is multiplied or added"


def _root(value: SSAValue) -> SSAValue:
    """Return the value that a tensor repeats."""
    while isinstance(value.owner, Operation) and name_of(value.owner) in _PASSED_ON:
        value = value.owner.operands[0]
    return value


def _origins(kernel: TritonKernel, text: str) -> dict[Operation, SourceLine]:
    """Return the Python line of each operation."""
    # xDSL drops locations, so operations are matched with lines by their order, which is that of the text.
    module = kernel.function.parent_op()
    operations = list(module.walk())[1:] if module else []
    lines = [
        (match[1], origin)
        for line, origin in zip(text.splitlines(), show.origins(text, _STAGE), strict=True)
        if (match := _OPERATION.match(line)) and match[1] != "builtin.module"
    ]
    if [name for name, _ in lines] != [name_of(operation) for operation in operations]:
        return {}
    # An operation without a location gets that of its text when the text is parsed again.
    return {
        operation: origin
        for operation, (_, origin) in zip(operations, lines, strict=True)
        if origin and not origin.file.endswith(f".{_STAGE}")
    }


def expression(polynomial: Polynomial) -> str:
    """Write a polynomial by the names of the kernel."""
    parts = []
    for monomial, factor in polynomial.terms.items():
        words = [_word(symbol) for symbol in monomial]
        parts.append(" * ".join([*words, *([str(factor)] if factor != 1 or not monomial else [])]))
    if len(parts) > _MOST_TERMS:
        parts = [*parts[:_MOST_TERMS], "..."]
    return " + ".join(parts) or "0"


def _word(symbol: OffsetSymbol) -> str:
    """Return the name of a symbol; of a quotient without one, what is divided."""
    if symbol.name == symbol.operation in _SIGNS:
        left, right = (expression(operand) for operand in symbol.operands)
        return f"({left} {_SIGNS[symbol.operation]} {right})"
    return _NUMBERED.sub("", symbol.name) if symbol.operands else symbol.name


def lines(results: Sequence[PointBounds], *, everything: bool = False) -> Iterator[str]:
    """Yield the findings, and a verdict.

    Args:
        results: the results.
        everything: show those, too, that need a stride of millions within one block.
    """
    for result in results:
        title = f"{result.kernel} {result.point}"
        if result.unknown:
            yield f"{title}: not known: {result.unknown}"
            continue
        for finding in result.findings:
            if everything or not finding.overflow.is_in_block:
                yield from _finding(title, finding, result.launched)
        for end in result.ends:
            yield f"{title} {_place(end.origin)}: {end.what}"
            yield f"    {end.source}"
            yield from [f"    witness: {end.launch}"] if end.launch else []
            yield f"    remedy: {end.remedy}"
    hidden = sum(finding.overflow.is_in_block for result in results for finding in result.findings)
    if hidden and not everything:
        yield f"{counted(hidden, 'offset')} more within one block, by a stride of millions: --all shows them"
    yield verdict(results)


def _finding(title: str, finding: BoundsFinding, launched: CapturedSizes | None) -> Iterator[str]:
    overflow = finding.overflow
    place, witness = _place(finding.origin), overflow.witness
    if witness is None:
        yield f"{title} {place}: may overflow: {finding.expression}; not proved: {overflow.why}"
        return
    yield f"{title} {place}: overflows from {witness.size_words} on: {finding.expression}"
    yield f"    {finding.source}"
    yield f"    witness: {witness.launch_words}"
    yield (
        f"    the element at byte {witness.nearest:,} of its tensor is taken from byte {witness.wrong:,}"
        f" ({', '.join(finding.reached) or 'line of the access not known'})"
    )
    if far := _distance(witness, launched):
        yield f"    {far}"
    yield f"    remedy: {finding.remedy}"


def _place(origin: SourceLine | None) -> str:
    return f"{Path(origin.file).name}:{origin.number}" if origin else "(line not known)"


def _distance(witness: Witness, launched: CapturedSizes | None) -> str:
    """Word how far captured launches are from a witness; empty if that is not known."""
    most = launched.of(witness.grown) if launched else 0
    if not most:
        return ""
    is_grid = witness.grown.kind is SymbolKind.PROGRAM
    have = f"{most:,} programs there" if is_grid else f"{witness.grown.name} = {most:,}"
    if most >= witness.size:
        return f"captured launches have up to {have}: they overflow, if the other sizes were these"
    return f"the captured launches have at most {have}: {witness.size / most:,.0f} times less"


def verdict(results: Sequence[PointBounds]) -> str:
    """Return the result in one sentence."""
    proved = sum(result.proved for result in results)
    unproved = sum(
        not finding.overflow.is_proved and not finding.overflow.is_in_block
        for result in results
        for finding in result.findings
    )
    unknown = sum(bool(result.unknown) for result in results)
    compiles = counted(len(results), "compile")
    parts = [f"{counted(proved, 'offset')} of 32 bits shown to overflow" if proved else ""]
    parts.append(f"{counted(unproved, 'offset')} that may overflow" if unproved else "")
    ends = Counter((end.code, end.proved) for result in results for end in result.ends)
    shown, maybe, free = ends[OUTSIDE, True], ends[OUTSIDE, False], ends[UNLIMITED, False]
    if results and unknown == len(results):
        return f"nothing is known about {compiles}"
    parts = [part for part in parts if part] or ["no offset of 32 bits overflows"]
    parts += [f"{_accesses(shown)} shown to be outside of a tensor"] if shown else []
    parts += [f"{_accesses(maybe)} that may be outside of a tensor"] if maybe else []
    parts += [f"{counted(free, 'program id')} that nothing limits"] if free else []
    return f"{', '.join(parts)} in {compiles}" + (f"; {unknown} not known" if unknown else "")


def _accesses(number: int) -> str:
    return f"{number} access{'' if number == 1 else 'es'}"


def as_json(results: Sequence[PointBounds]) -> dict[str, Any]:
    """Return the results as JSON data."""
    return {
        "schema": 1,
        "verdict": verdict(results),
        "largest": LARGEST,
        "compiles": [
            {
                "kernel": result.kernel,
                "point": result.point,
                "target": result.target,
                "unknown": result.unknown or None,
                "accesses": result.accesses,
                "descriptors": result.descriptors,
                "findings": [
                    *(_as_json(finding, result.launched) for finding in result.findings),
                    *map(_end_as_json, result.ends),
                ],
            }
            for result in results
        ],
    }


def _as_json(finding: BoundsFinding, launched: CapturedSizes | None) -> dict[str, Any]:
    witness = finding.overflow.witness
    shown = None
    if witness:
        shown = {
            "grown": witness.grown.name,
            "from": witness.size,
            "arguments": dict(witness.arguments),
            "program": list(witness.program),
            "byte": witness.nearest,
            "wrong_byte": witness.wrong,
        }
    return {
        "code": OVERFLOW,
        "verdict": "does" if witness else "may",
        "captured": (launched.of(witness.grown) or None) if witness and launched else None,
        "in_block": finding.overflow.is_in_block,
        "file": finding.origin.file if finding.origin else None,
        "line": finding.origin.number if finding.origin else None,
        "source": finding.source,
        "expression": finding.expression,
        "operation": name_of(finding.overflow.operation),
        "witness": shown,
        "why": finding.overflow.why or None,
        "accesses": list(finding.reached),
        "remedy": finding.remedy,
    }


def _end_as_json(end: EndFinding) -> dict[str, Any]:
    return {
        "code": end.code,
        "verdict": "does" if end.proved else "may",
        "file": end.origin.file if end.origin else None,
        "line": end.origin.number if end.origin else None,
        "source": end.source,
        "what": end.what,
        "witness": end.launch or None,
        "remedy": end.remedy,
    }


def failure(results: Sequence[PointBounds]) -> SmithError | None:
    """Return the error that the command ends with; None if something is known, and nothing overflows."""
    if results and all(result.unknown for result in results):
        return UndecidedError(verdict(results), why="\n".join(dict.fromkeys(row.unknown for row in results)))
    shown = [
        f"{result.kernel} {_place(finding.origin)}: from {witness.size_words} on"
        for result in results
        for finding in result.findings
        if (witness := finding.overflow.witness) and _counts(finding)
    ]
    ends = [
        f"{result.kernel} {_place(end.origin)}: {end.what}"
        for result in results
        for end in result.ends
        if end.proved
    ]
    if not shown and not ends:
        return None
    hints = ["--json has the witnesses", "--size NAME=VALUE sets the size of an argument"]
    what = f"{counted(len(shown), 'offset')} of 32 bits overflow{'s' if len(shown) == 1 else ''}"
    if ends:
        outside_ = f"{_accesses(len(ends))} {'is' if len(ends) == 1 else 'are'} outside"
        what = f"{what}, and {outside_} of a tensor" if shown else f"{outside_} of a tensor"
    return SmithError(what, why="\n".join((*shown, *ends)), hints=hints)


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """Parse `NAME=VALUE` of `--size`.

    Raises:
        UsageError: a text has another form.
    """
    sizes = {}
    for text in texts:
        name, _, value = text.partition("=")
        # 4_096 and 4,096 are one number; 1,2 may be meant as two.
        if not name.isidentifier() or not re.fullmatch(r"\d{1,18}|\d{1,3}([_,]\d{3}){1,5}", value):
            raise UsageError(
                f"--size cannot be {text!r}",
                why="expected is the name of an argument and one whole number: NAME=VALUE",
                hints=[
                    "--size n_cols=4096, or 4_096",
                    "for two arguments: --size n_cols=4096 --size n_rows=64",
                ],
            )
        sizes[name] = int(value.replace("_", "").replace(",", ""))
    return sizes
