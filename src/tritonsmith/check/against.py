"""`kernel.check A --against B`: compile two versions of a kernel, and compare what they compute."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from tritonsmith.check.answer import CONTENTS, plain_json, value_text
from tritonsmith.check.check import generic_texts
from tritonsmith.check.limited import LimitedChecks
from tritonsmith.check.memory import Contents
from tritonsmith.check.versions import ElementPair, KernelVersion, PairRequest, PairResult, PairWitness
from tritonsmith.compiler import run
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.kernels.changed import TouchedKernel
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.signature import CONSTEXPR
from tritonsmith.core import untrusted
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import InterruptedRunError, SmithError, UndecidedError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.core.text import counted
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.facts import git_history

_AT_COMMIT = re.compile(r"(.+\.py)@([^:]+)(?::(.+))?")
_MOST_FILES = 2000
_FIRST = "ttir"
_SHOWN = 4  # sizes, and notes, on the screen


@dataclass(frozen=True)
class Version:
    """A version of a kernel to compile.

    Attributes:
        label: its name on the screen.
        request: the compile.
        where: its Triton.
        grid: the number of programs, as an expression; empty if it is not known.
        captured: the grids of captured launches.
    """

    label: str
    request: CompileRequest
    where: Interpreter
    grid: str = ""
    captured: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class PairOptions:
    """The options of a comparison.

    Attributes:
        stage: the stage whose IR runs; empty for `ttgir` where two Tritons compile, or else `ttir`.
        renames: names of the second version's parameters, to those of the first.
        values: expressions for parameters.
        outputs: the arguments to compare; all if empty.
        finite: leave out inputs with infinities and NaN.
        seeds: how many random sizes; None for the usual number.
        timeout: seconds that one comparison may take; None for the usual limit.
        silent: show no progress.
    """

    stage: str = ""
    renames: Mapping[str, str] = field(default_factory=dict)
    values: tuple[tuple[str, str], ...] = ()
    outputs: tuple[str, ...] = ()
    finite: bool = False
    seeds: int | None = None
    timeout: int | None = None
    silent: bool = False


class NoIrError(UndecidedError):
    """A version did not compile to the stage that is compared.

    Attributes:
        gist: the compiler's own message, in one line.
        is_certain: the compiler ran to an end.
    """

    def __init__(self, what: str, point: Point, *, where: object, why: str) -> None:
        super().__init__(what, where=where, why=why)
        self.gist = point.gist or why
        self.is_certain = point.status not in ("timeout", "lost")

    @property
    def line(self) -> str:
        """The failure and the compiler's own message, which the first lines of `why` do not have."""
        return f"{self.what}: {self.gist}"


@dataclass(frozen=True)
class ComparedVersions:
    """Two versions, compared.

    Attributes:
        first: the label of the first.
        second: the label of the second.
        answer: the answer.
    """

    first: str
    second: str
    answer: PairResult


def at_commit(text: str, space: Workspace) -> tuple[str, str]:
    """Return a kernel of `FILE.py@COMMIT[:KERNEL]` as one of a file in the workspace, and a label.

    The file is written with the Python files of its package at that commit, and with what these import from
    the folder beside it. Other texts stay as they are.

    Raises:
        UsageError: the file is in no repository, or the commit does not have it.
    """
    match = _AT_COMMIT.fullmatch(text)
    if match is None or untrusted.is_file(Path(text).expanduser()):
        return text, ""
    file, name, kernel = Path(match[1]).expanduser().absolute(), match[2], match[3] or ""
    root = next((folder for folder in file.parents if untrusted.exists(folder / ".git")), None)
    if root is None:
        raise UsageError("this file is in no git repository", where=file, hints=["FILE.py@COMMIT:KERNEL"])
    with git_history.opened(root) as repository:
        commit = git_history.resolve(repository, name)
        if not commit:
            raise UsageError(f"no commit, tag or branch {name!r}", where=root)
        main = file.relative_to(root).as_posix()
        package = PurePosixPath(_package(root, file))
        listed = repository.git.ls_tree("-r", "--name-only", "-z", commit, f"{package.parent}/")
        names = [path for path in listed.split("\0") if path.endswith(".py")]
        if main not in names:
            raise UsageError(f"{commit[:12]} has no file {main}", where=root)
        texts: dict[str, str] = {}
        missing = _of_module(package, names)
        while missing:
            if len(texts) + len(missing) > _MOST_FILES:
                raise UsageError(f"this file needs more than {_MOST_FILES} others", where=file)
            more = {path: git_history.text_at(repository, commit, path) or "" for path in missing}
            texts |= more
            imported = {name for text in more.values() for name in _imported(text)}
            beside = (_of_module(package.parent / name, names) for name in sorted(imported))
            missing = [path for paths in beside for path in paths if path not in texts]
    folder = space.root / "kernels" / "commits" / commit[:16]
    space.claim()
    for path, content in texts.items():
        files.make_folder((folder / path).parent)
        files.write(folder / path, content)
    return f"{folder / main}{kernel and f':{kernel}'}", f"@{name}"


def _of_module(path: PurePosixPath, names: Sequence[str]) -> list[str]:
    """Return the files of a module or a package, of those that a commit has."""
    return [name for name in names if name in (f"{path}", f"{path}.py") or name.startswith(f"{path}/")]


def _imported(text: str) -> Iterator[str]:
    """Yield the first part of each module that a file imports by its full name."""
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        for node in ast.walk(untrusted.python_tree(text)):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0]


def _package(root: Path, file: Path) -> str:
    """Return the outermost package that a file is in, or the file itself, relative to the repository."""
    package = file
    while untrusted.is_file(package.parent / "__init__.py") and package.parent != root:
        package = package.parent
    return package.relative_to(root).as_posix()


def assignments(texts: Sequence[str], flag: str) -> tuple[tuple[str, str], ...]:
    """Split `NAME=TEXT`, repeated.

    Raises:
        UsageError: one has no name or no text, or two have the same name.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        name, equals, rest = (part.strip() for part in text.partition("="))
        if not (equals and rest and name.isidentifier()):
            raise UsageError(f"{flag} cannot be {text!r}", hints=[f"{flag} x_ptr=X"])
        if name in pairs:
            raise UsageError(f"{flag} has {name} twice: {name}={pairs[name]} and {name}={rest}")
        pairs[name] = rest
    return tuple(pairs.items())


def renames_of(texts: Sequence[str]) -> dict[str, str]:
    """Return the names in B of parameters, to those in A, as `--rename A=B` says.

    Raises:
        UsageError: one has no name, or a parameter has two.
    """
    renames: dict[str, str] = {}
    for first, second in assignments(texts, "--rename"):
        if second in renames:
            what = f"--rename gives {second} of B two names: {renames[second]} and {first}"
            raise UsageError(what, hints=["--rename A=B, once for each parameter of B"])
        renames[second] = first
    return renames


def compare(first: Version, second: Version, options: PairOptions) -> ComparedVersions:
    """Compile two versions, and compare what they compute.

    Raises:
        SmithError: a kernel, a flag or a Triton is wrong, or one of them does not compile.
    """
    if not options.stage:
        # The passes are what tells two Tritons apart: up to `ttir`, most kernels have the same IR.
        same = first.where.python == second.where.python
        options = replace(options, stage=_FIRST if same else "ttgir")
    (a,), (b,) = (_compiled(version, options) for version in (first, second))
    return _compared(a, b, options)


def _compared(a: KernelVersion, b: KernelVersion, options: PairOptions) -> ComparedVersions:
    if a.label == b.label:
        a, b = replace(a, label=f"A ({a.label})"), replace(b, label=f"B ({b.label})")
    b = _renamed(b, options.renames)
    with LimitedChecks(timeout=options.timeout) as checks:
        return ComparedVersions(a.label, b.label, checks.compare(_request(a, b, options)))


def compare_configs(version: Version, options: PairOptions) -> list[ComparedVersions]:
    """Compile all configs of an autotuner, and compare each with the first.

    Raises:
        SmithError: as `compare`.
        UsageError: there is only one config.
    """
    first, *others = _compiled(version, replace(options, stage=options.stage or _FIRST))
    if not others:
        raise UsageError("the kernel has one config, and nothing to compare it with")
    with LimitedChecks(timeout=options.timeout) as checks:
        return [
            ComparedVersions(first.label, other.label, checks.compare(_request(first, other, options)))
            for other in others
        ]


def since_commit(
    touched: TouchedKernel,
    requests: tuple[CompileRequest, CompileRequest],
    commit: str,
    where: Interpreter,
    options: PairOptions,
) -> ComparedVersions:
    """Compare a kernel with what it was at a commit.

    Args:
        touched: the kernel; the commit has it.
        requests: the compile by its entry, and by the one that the kernels file had at the commit.
        commit: the commit.
        where: the Triton.
        options: the options of the comparison.

    Returns:
        The comparison: `broken` if only the version of the commit compiles; `unknown` if that does not
        compile, or if they cannot be compared.
    """
    entry, (request, old_request) = touched.entry, requests
    options = replace(options, stage=options.stage or _FIRST)
    new = Version(entry.name, request, where, captured=entry.grids)
    label = f"{entry.name}@{commit[:8]}"
    status, why = "unknown", ""
    try:
        file = Path(at_commit(f"{touched.old}@{commit}", where.space)[0])
        old = replace(new, label=label, request=replace(request, file=file))
        try:
            (after,) = _compiled(new, options)
        except SmithError as error:
            why = error.line
            if isinstance(error, InterruptedRunError) or (
                isinstance(error, NoIrError) and not error.is_certain
            ):
                raise
            # By its own entry: the old version is not to blame for a wrong type in the new one.
            _compiled(replace(old, request=replace(old_request, file=file)), options)
            status = "broken"
        else:
            (before,) = _compiled(old, options)
            return _compared(before, after, options)
    except InterruptedRunError:
        raise
    except SmithError as error:
        why = why or error.line
    return ComparedVersions(label, entry.name, PairResult(status, why))


def _request(a: KernelVersion, b: KernelVersion, options: PairOptions) -> PairRequest:
    return PairRequest((a, b), options.values, options.outputs, options.finite, options.seeds)


def _compiled(version: Version, options: PairOptions) -> list[KernelVersion]:
    """Compile the points of a version up to a stage, and return the IR of each in generic form."""
    request = replace(version.request, stages=(options.stage,), disassemble=False)
    if len(request.targets) > 1:
        hints = [f"--target {target.spelling()}" for target in request.targets[:3]]
        raise UsageError("versions are compared for one target at a time", hints=hints)
    space = version.where.space
    space.claim()
    parent = space.root / "kernels" / "checks"
    files.make_folder(parent)
    with files.scratch("versions", parent) as folder:
        compiled = run.compile_all(
            request, version.where, folder / "out", silent=options.silent, last=options.stage
        )
        for point in compiled.points:
            if point.status != "ok" or not compiled.path(point, options.stage):
                raise NoIrError(
                    f"{_config(compiled, point) or version.label} does not compile up to {options.stage}",
                    point,
                    where=request.file,
                    why=point.error or f"it has no stage {options.stage}",
                )
        paths = {point.id: path for point in compiled.points if (path := compiled.path(point, options.stage))}
        texts = generic_texts(paths, version.where.python, space, silent=options.silent, task="kernel.check")
    return [
        _version(compiled, point, texts[point.id], version) for point in compiled.points if point.id in texts
    ]


def _version(compiled: Manifest, point: Point, text: str, version: Version) -> KernelVersion:
    fixed = {name for name, hint in point.hints.items() if hint == 1}
    names = tuple(name for name, kind in point.signature.items() if kind != CONSTEXPR and name not in fixed)
    constants = {**point.constexprs, **dict.fromkeys(fixed, 1)}
    where = version.where
    return KernelVersion(
        _config(compiled, point) or version.label,
        text,
        names,
        {},
        {
            name: value
            for name, value in constants.items()
            if isinstance(value, (int, float, str, type(None)))
        },
        version.grid,
        version.captured,
        # Two installations of one release may differ, as a patched one does.
        " ".join(map(str, (compiled.triton, compiled.origin, point.target, where.python, where.variables))),
        str(sorted(point.options.items())),
    )


def _config(compiled: Manifest, point: Point) -> str:
    """Return what tells a point of a sweep from the others; empty if there is only one."""
    return point.id.partition(",")[2] if len(compiled.points) > 1 else ""


def _renamed(version: KernelVersion, renames: Mapping[str, str]) -> KernelVersion:
    """Return a version whose parameters have the names of the first version.

    Raises:
        UsageError: it has no such parameter.
    """
    known = {*version.names, *version.constants}
    if unknown := [name for name in renames if name not in known]:
        hints = [f"its parameters: {', '.join(sorted(known))}"]
        raise UsageError(f"--rename: {version.label} has no parameter {unknown[0]}", hints=hints)
    taken = [new for old, new in renames.items() if new in known and new not in renames and new != old]
    if taken:
        what = f"--rename: {version.label} has a parameter {taken[0]} of its own"
        raise UsageError(what, hints=[f"another name for it: --rename other={taken[0]}"])
    return replace(
        version,
        names=tuple(renames.get(name, name) for name in version.names),
        aliases=dict(renames),
        constants={
            **version.constants,
            **{new: version.constants[old] for old, new in renames.items() if old in version.constants},
        },
    )


# -- report -------------------------------------------------------------------------------------------------


def verdict(compared: ComparedVersions) -> str:
    """Return the verdict in one sentence."""
    answer, pair = compared.answer, f"{compared.first} and {compared.second}"
    if answer.status == "equal":
        return f"{pair} are the same bit by bit"
    if answer.status == "close":
        return f"{pair} are the same within the tolerance"
    if answer.status == "unknown":
        return f"{pair}: undecided"
    if answer.status == "broken":
        return f"{compared.second} does not compile, and {compared.first} does"
    assert answer.witness  # noqa: S101 - that is what makes them differ
    words = {
        "value": f"{pair} are different",
        "reads": f"{compared.second} reads memory that {compared.first} does not reach",
        "endless": f"{compared.second} does not end, and {compared.first} does",
        "order": f"the result of {compared.second} depends on the order of its programs",
    }
    return words[answer.witness.kind]


def answer_lines(compared: ComparedVersions) -> Iterator[str]:
    """Yield the verdict, and the evidence for it."""
    answer = compared.answer
    yield verdict(compared)
    if answer.witness:
        yield from _witness_lines(answer.witness)
    elif answer.largest:
        yield f"  largest difference: {_element(answer.largest)}: {answer.largest.apart:.1e}"
    if answer.why:
        yield f"  {answer.why}"
    yield from _evidence(answer)


def _witness_lines(witness: PairWitness) -> Iterator[str]:
    if witness.element:
        place = f"{witness.element.argument or 'memory'}[{witness.element.offset}]"
        if witness.kind == "reads":
            yield f"  first: {place}; {witness.count} of {witness.written} elements that it reads"
        else:
            yield f"  first: {_element(witness.element)}"
            yield f"  {witness.count} of {witness.written} elements differ"
    numbers = ", ".join(f"{name}={value}" for name, value in witness.arguments.items())
    grids = " and ".join(dict.fromkeys("x".join(map(str, grid)) for grid in witness.grids))
    contents = "" if witness.contents is Contents.PLAIN else f", {CONTENTS[witness.contents]}"
    yield f"  with {numbers or 'no numbers'}; grid {grids}; seed {witness.seed}{contents}"


def _element(element: ElementPair) -> str:
    values = f"{value_text(element.before)} and {value_text(element.after)}"
    return f"{element.argument or 'memory'}[{element.offset}]: {values}"


def _evidence(answer: PairResult) -> Iterator[str]:
    """Yield what was compared, and what was not."""
    if answer.inputs:
        elements = ", ".join(f"{name or 'memory'} {count}" for name, count in answer.elements.items())
        yield f"  compared: {counted(answer.inputs, 'input')}; elements written: {elements}"
        sizes = [
            f"{name} {', '.join(map(str, values[:_SHOWN]))}{' ...' if len(values) > _SHOWN else ''}"
            for name, values in answer.sizes.items()
        ]
        grids = " and ".join(dict.fromkeys("x".join(map(str, grid)) for grid in answer.grids))
        yield f"  sizes: {'; '.join(sizes) or 'none'}; first grid {grids}"
    if answer.guessed:
        yield "  how many programs there are is not known: a few were run (specify it with --grid)"
    for why, count in answer.left_out.items():
        yield f"  {counted(count, 'input')} left out: {why}"
    if nan := {name: count for name, count in answer.unclear.items() if count}:
        yield f"  NaN by both: {', '.join(f'{name} {count}' for name, count in nan.items())}"
    yield from (f"  {note}" for note in answer.notes[:_SHOWN])
    if len(answer.notes) > _SHOWN:
        yield f"  and {len(answer.notes) - _SHOWN} more notes (--json)"


def configs_table(rows: Sequence[ComparedVersions]) -> Grid:
    """Return a table of configs beside the first."""
    words = {
        "equal": "the same bit by bit",
        "close": "the same within the tolerance",
        "differs": "DIFFERENT",
        "unknown": "undecided",
    }
    cells = []
    for row in rows:
        answer = row.answer
        largest = f"{answer.largest.apart:.1e}" if answer.largest else ""
        if answer.witness and answer.witness.element:
            largest = _element(answer.witness.element)
        elif answer.status == "unknown":
            largest = answer.why
        cells.append((row.second, words[answer.status], largest))
    title = f"against {rows[0].first}"
    return tables.plain(title, ["config", "result", "largest difference"], cells)


def as_json(rows: Sequence[ComparedVersions]) -> dict[str, Any]:
    """Return the answers as JSON data."""
    content = [
        {"first": row.first, "second": row.second, "verdict": verdict(row), **asdict(row.answer)}
        for row in rows
    ]
    return {"schema": 1, "outcome": outcome(rows), "compared": plain_json(content)}


def outcome(rows: Sequence[ComparedVersions]) -> str:
    """Return the outcome of all together: `broken`, `different`, `undecided` or `same`, the first that is so.

    No rows are no success: `nothing was compared`.
    """
    statuses = {row.answer.status for row in rows}
    if not statuses:
        return "nothing was compared"
    if "broken" in statuses:
        return "broken"
    if "differs" in statuses:
        return "different"
    return "undecided" if "unknown" in statuses else "same"


def failure(rows: Sequence[ComparedVersions]) -> SmithError | None:
    """Return the error that a comparison ends with; None if all are the same."""
    page = "docs/kernel-check.md says what is compared"
    if different := [row for row in rows if row.answer.status in ("differs", "broken")]:
        what = verdict(different[0]) if len(rows) == 1 else f"{len(different)} of {len(rows)} configs differ"
        return SmithError(what, hints=[page])
    if unknown := [row for row in rows if row.answer.status == "unknown"]:
        what = verdict(unknown[0]) if len(rows) == 1 else f"{len(unknown)} of {len(rows)} are undecided"
        return UndecidedError(what, why=unknown[0].answer.why, hints=[page])
    return None
