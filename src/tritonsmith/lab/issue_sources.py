"""The sources of an issue: folders of other commands, their answers as JSON, and what `reduce` wrote."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import manifest, source, source_tree, tritons
from tritonsmith.compiler import request as requests
from tritonsmith.compiler.dump import index as dumps
from tritonsmith.compiler.dump.index import Dump, DumpIndex
from tritonsmith.compiler.manifest import Manifest, Point, folder_name
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.facts import installed_tritons, libtriton
from tritonsmith.ir import ir_text
from tritonsmith.lab import evidence, failure, questions
from tritonsmith.lab.bisect import command as bisects
from tritonsmith.lab.bisect import session
from tritonsmith.lab.blame import blame, llc
from tritonsmith.lab.compare import report as comparison
from tritonsmith.lab.evidence import HINTS, Blamed, BugEvidence, CheckReport, IssueIr, IssueKernel
from tritonsmith.lab.experiment import BASELINE
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.isolate import failing_pass, issue_folder
from tritonsmith.lab.reduce import oracles
from tritonsmith.wheels import ptxas

# Parses the arguments of a recorded command into its compile; None if it does not compile one kernel.
Parse = Callable[[str], CompileRequest | None]

TRIAGE = "triage.json"  # in the folder of a triage
# The comment at the beginning of a file of `reduce`; see `triage.reduce.testers`.
_HEAD = re.compile(r"^# Triton (?P<triton>\S+), (?P<target>\w+:\w+):\d+", re.MULTILINE)
_EXPECTED = re.compile(r"^# Expected: (?P<text>.+(?:\n# .+)*)", re.MULTILINE)
_COMMAND = re.compile(
    r"^#   (?:\w+=\S+ )*invoke (?P<task>(?:kernel|passes)\.\w+)(?: --resources)? (?P<words>.+)", re.MULTILINE
)
_PYTHON = re.compile(r"^#   (?:\w+=\S+ )*python \S+\.py\b", re.MULTILINE)
_FAILURE = re.compile(r"(?P<kind>[a-z][a-z ]+): (?P<text>.*)", re.DOTALL)
_OTHER_PTXAS = re.compile(r" --ptxas (\d[\d.]+)")


def collect(sources: Sequence[Path], parse: Parse, space: Workspace) -> BugEvidence:
    """Read all sources, and merge what they know.

    Args:
        sources: folders and files that other commands wrote.
        parse: parses a recorded command.
        space: the workspace.

    Raises:
        FactError: nothing in them failed, or one of them cannot be read.
        UsageError: one is no result of such a command, or they are about different bugs.
    """
    reader = EvidenceReader(parse, space)
    # All are read before any is judged: a damaged one must not pass because another one suffices.
    whole = evidence.merged([part for path in sources for part in reader.read(path)])
    if not whole.kind:
        hints = [
            "a command that finds something: `triage`, `passes.check`, `bisect`, `compare` with `--json`"
        ]
        what = "nothing here has failed, computes a wrong result, or got worse"
        raise FactError(what, where=", ".join(map(str, sources)), hints=hints)
    return whole


@dataclass(frozen=True)
class EvidenceReader:
    """Reads what other commands wrote.

    Attributes:
        parse: parses a recorded command.
        space: the workspace, which knows what was made here.
    """

    parse: Parse
    space: Workspace

    def read(self, path: Path) -> list[BugEvidence]:
        """Return what each result in a folder, or a file, knows.

        Raises:
            FactError: it cannot be read.
            UsageError: it is no result.
        """
        if not untrusted.exists(path):
            raise UsageError("no such file or folder", where=path, hints=HINTS)
        if untrusted.is_dir(path):
            readers = [reader for name, reader in self._readers.items() if (path / name).is_file()]
            if readers:
                return [part for reader in readers for part in reader(path)]
        # By the keys, not by the name: it is whatever a shell has redirected there.
        elif path.suffix == ".json":
            return list(self._answered(evidence.read_json(path)))
        elif path.suffix == ".py":
            return [self._reduced_kernel(path)]
        elif path.suffix in (".mlir", ".ttir", ".ttgir"):
            return [_reduced_ir(path)]
        raise UsageError("this is no result of a command of this tool", where=path, hints=HINTS)

    @property
    def _readers(self) -> Mapping[str, Callable[[Path], Iterator[BugEvidence]]]:
        """The files by which a folder is known, and what reads such a folder."""
        # A folder of `--out` may have several: a dump that was checked, a triage with its compiles.
        return {
            issue_folder.RECORD: _isolated,
            dumps.CHECKED: _checked,
            dumps.FILE: self._dumped,
            TRIAGE: self._triaged,
            session.FILE: self._bisected,
            blame.ANSWER: self._blamed,
            comparison.FILE: lambda folder: self._answered(evidence.read_json(folder / comparison.FILE)),
            manifest.FILE: lambda folder: iter((self._compiled(manifest.read(folder)),)),
        }

    def _in_test(self, folder: Path) -> Iterator[BugEvidence]:
        """Yield what the compile or the dump of one test knows; nothing if its folder is not there."""
        for name in (dumps.CHECKED, dumps.FILE, manifest.FILE):
            if (folder / name).is_file():
                yield from self._readers[name](folder)

    def _compiled(self, compiled: Manifest, point_id: str = "") -> BugEvidence:
        """Return what a compile knows, by a point: the named one, the first that failed, or the first."""
        points = [point for point in compiled.points if not point_id or point.id == point_id]
        # `lost` says nothing about the compiler, which never saw it.
        failed = next((point for point in points if point.status not in ("ok", "lost")), None)
        point = failed or next(iter(points), None)
        if point is None:
            return BugEvidence()
        known = BugEvidence(
            function=compiled.kernel,
            target=f"{point.backend}:{point.arch}",
            triton=compiled.triton,
            python=compiled.python,
            kernel=self._kernel(compiled, point),
            **self._versions(compiled, point),
            **_llvm_input(compiled, point),
        )
        if failed is None:
            return known
        how = questions.failure_of(failed)
        # By the error alone: the log may have a position of anything else.
        rejected = evidence.rejection(failed.error, how) if failed.status == "failed" else ""
        return replace(known, rejected=rejected, **_failed(how, f"{failed.log.strip()}\n{failed.error}"))

    def _versions(self, compiled: Manifest, point: Point) -> dict[str, Any]:
        """Return the LLVM and the ptxas of the Triton that compiled, if that Triton is still where it was."""
        # Versions of the run, not of what is installed today: an upgrade since then makes them unknown.
        package = Path(compiled.origin)
        if not package.is_absolute() or installed_tritons.version_of(package) != compiled.triton:
            return {}
        trusted = manifest.trusted_package(compiled, self.space)
        versions: dict[str, Any] = {"llvm": _llvm(package), "package": trusted}
        if point.backend == "cuda":
            # Another one was request for: its version is in the command, and the package does not have it.
            other = _OTHER_PTXAS.search(compiled.command)
            own = _own_ptxas(trusted, compiled.triton, point.arch) if trusted else ""
            versions["ptxas"] = other[1] if other else own
        return versions

    def _kernel(self, compiled: Manifest, point: Point) -> IssueKernel | None:
        """Return the source that a manifest names, if it still has the content that was compiled."""
        file = Path(compiled.file)
        try:
            content, text = source.read_bytes(file), source.read(file)
        except (OSError, SmithError):
            return None
        # The manifest may be a stranger's, and name any file: only what was compiled is shown and run.
        if file.suffix != ".py" or hashlib.sha256(content).hexdigest() != compiled.file_sha256:
            return None
        request = self.parse(compiled.command.partition("kernel.compile ")[2])
        if request:
            request = requests.narrow(request, source.find(text, compiled.kernel, file), point.id)
        request = replace(request, kernel=compiled.kernel, name="", listed=None) if request else None
        return IssueKernel(file.name, text, request, imports=_own_imports(file, compiled.kernel))

    def _dumped(self, folder: Path) -> Iterator[BugEvidence]:
        """Yield what a dump knows, by its first kernel that failed, or else its first one."""
        index = dumps.read(folder)
        kernel = next((kernel for kernel in index.kernels if kernel.failed), next(iter(index.kernels), None))
        if kernel is None:
            return
        # The command and the interpreter of a dump are used only if it was made here.
        python = dumps.own_interpreter(index, self.space)
        package = tritons.package(python) if python else None
        known = BugEvidence(
            function=kernel.function or kernel.name,
            target=kernel.target,
            triton=index.triton,
            llvm=_llvm(package) if package else "",
            package=package,
            kernel=self._named_by(index.command) if python and len(index.kernels) == 1 else None,
        )
        if kernel.failed:
            how = failing_pass.recorded_failure(kernel)
            rejected = evidence.rejection(kernel.error, how)
            known = replace(known, rejected=rejected, **_failed(how, kernel.error, kernel.failed))
        yield known

    def _named_by(self, command: str) -> IssueKernel | None:
        """Return the kernel that a command compiles; None if it is not one kernel of a file that is there."""
        request = self.parse(command)
        if request is None or request.file.suffix != ".py":
            return None
        try:
            text = source.read(request.file)
            name = source.choose(text, request.kernel, request.file)
        except SmithError:
            return None
        return IssueKernel(
            request.file.name, text, replace(request, kernel=name), imports=_own_imports(request.file, name)
        )

    def _triaged(self, folder: Path) -> Iterator[BugEvidence]:
        """Yield what a triage knows: its table, and the compile with nothing changed."""
        yield from evidence.of_triage(evidence.read_json(folder / TRIAGE))
        # A run that went on has compiled it once more, in a folder with a number.
        for place in sorted(folder.glob(f"{folder_name(BASELINE)}*"))[-1:]:
            yield from self._in_test(place)

    def _bisected(self, folder: Path) -> Iterator[BugEvidence]:
        """Yield what a bisect knows: its answer, and the kernel's compile by the bad side.

        Raises:
            FactError: it has not ended.
        """
        begun = session.read(folder)
        if not begun.answer or not (folder / bisects.ANSWER).is_file():
            hints = [command("bisect --resume", folder.name)]
            raise FactError("this bisect has no answer yet", where=folder, hints=hints)
        for part in evidence.of_bisect(evidence.read_json(folder / bisects.ANSWER)):
            yield part
            bad = folder / bisects.TESTS / folder_name(part.culprit.bad) if part.culprit else folder
            for place in sorted(bad.glob("*/")):
                yield from self._in_test(place)

    def _blamed(self, folder: Path) -> Iterator[BugEvidence]:
        """Yield what a blame knows: its answer, and the compile by the second Triton."""
        # B is the side that got worse: `blame --from A --to B`.
        yield from evidence.of_blame(evidence.read_json(folder / blame.ANSWER))
        yield from self._in_test(folder / "b")

    def _answered(self, content: object) -> Iterator[BugEvidence]:
        """Yield what the `--json` of a command knows, by its keys.

        Raises:
            UsageError: it is not the JSON of a command that finds bugs.
        """
        table = content if isinstance(content, dict) else {}
        keys = table.keys()
        if {"outcome", "culprit", "passes"} <= keys:
            yield from evidence.of_check(table)
        elif {"release", "tested", "repeat"} <= keys:
            yield from evidence.of_bisect(table)
        elif {"from", "to", "points"} <= keys:
            yield from evidence.of_blame(table)
        elif {"baseline", "tried", "verdict"} <= keys:
            yield from evidence.of_triage(table)
        elif {"findings", "groups"} <= keys or "violations" in keys:
            for part, folder, point_id in evidence.of_findings(table):
                yield part
                # The compile by the second side is still in its folder, unless that was cleared.
                if folder and (folder / manifest.FILE).is_file():
                    yield self._compiled(manifest.read(folder), point_id)
        else:
            raise UsageError("this is not the JSON of a command that finds bugs", hints=HINTS)

    def _reduced_kernel(self, path: Path) -> BugEvidence:
        """Return what a file that `reduce` wrote knows, by the comment at its beginning.

        Raises:
            UsageError: `reduce` did not write it.
        """
        text = source.read(path)
        head, expected, command = (form.search(text) for form in (_HEAD, _EXPECTED, _COMMAND))
        if not (head and expected and command):
            what = "`reduce` did not write this file, or wrote it to reproduce a command"
            raise UsageError(what, where=path, hints=HINTS)
        # The message may have several lines, each of which is a comment there.
        words = expected["text"].replace("\n# ", "\n").partition("\n#")[0].strip()
        # The comment has the name alone, as the file may lie anywhere by now.
        _, colon, rest = command["words"].partition(":")
        request = self.parse(f"{path.absolute()}{colon}{rest}")
        known = BugEvidence(
            kind="wrong" if command["task"] == "passes.check" else "regression",
            observed=words,
            function=request.kernel if request else "",
            target=head["target"],
            triton=head["triton"],
            kernel=IssueKernel(path.name, text, request, alone=bool(_PYTHON.search(text))),
        )
        how = _FAILURE.fullmatch(words)
        if how and evidence.failure_kind(how["kind"]) == how["kind"]:
            return replace(
                known, kind="crash", failure=Failure(evidence.failure_kind(how["kind"]), how["text"])
            )
        return replace(known, metric=words.partition(" ")[0] if known.kind == "regression" else "")


def _llvm_input(compiled: Manifest, point: Point) -> dict[str, Any]:
    """Return the IR that LLVM's code generator was given, and its call; nothing if a stage was not kept."""
    llir = compiled.path(point, "llir")
    assembly = compiled.path(point, "ptx" if point.backend == "cuda" else "amdgcn")
    if llir is None or assembly is None:
        return {}
    try:
        # Debug locations name files of this machine.
        text = ir_text.without_locations("llvm", untrusted.read_bytes(llir, untrusted.OURS))
        call = llc.options_of(point, untrusted.read_text(assembly, untrusted.OURS), compiled.triton)
    except (OSError, FactError):
        return {}
    return {"llir": text.decode("utf-8", "replace"), "llc": call.words}


def _failed(how: Failure, log: str, place: str = "") -> dict[str, Any]:
    """Return what is known of a compile that failed."""
    log = evidence.bounded(log)
    place = place or failure.pass_of(log)
    return {
        "kind": "crash",
        "observed": str(how),
        "failure": how,
        "failed_in": place,
        "log": log,
        "blamed": tuple(evidence.by_message(log, place)),
    }


def _llvm(package: Path) -> str:
    """Return version and commit of the LLVM in a Triton; empty if its library does not have them."""
    # More than one library is a fault of the installation, and the doctor's business.
    for path in libtriton.find(package):
        library = libtriton.read(path)
        return " ".join(filter(None, (library.llvm_version, library.llvm_commit)))
    return ""


def _own_ptxas(package: Path, triton: str, arch: str) -> str:
    """Return the version of the ptxas that a Triton runs for a target; empty if it cannot be run."""
    name = ptxas.row_for(triton, f"{arch[:-1]}.{arch[-1]}")["name"]
    return ptxas.version_of(package / "backends" / "nvidia" / "bin" / name)


def _own_imports(file: Path, kernel: str) -> tuple[str, ...]:
    """Return the names of files that a kernel's file imports from beside it."""
    tree = source_tree.of(file, kernel)
    return tuple(name for name, _ in tree.sums if name != tree.main)


@dataclass(frozen=True)
class _Isolated:
    """The record of `passes.isolate`; see `issue_folder.record`."""

    kernel: str
    pipeline: str
    kind: str
    failure: str
    passes: tuple[str, ...]
    same: bool
    target: str
    triton: str
    llvm: str
    python: str
    system: str


def _isolated(folder: Path) -> Iterator[BugEvidence]:
    """Yield what a folder of `passes.isolate` knows."""
    content = evidence.read_json(folder / issue_folder.RECORD)
    known: _Isolated = evidence.typed(_Isolated, content, folder)
    text = untrusted.text_if_any(folder / "reduced.mlir") or untrusted.text_if_any(folder / "input.mlir")
    # Several if the last one does not fail alone: then the shortest end of the pipeline that fails.
    names = ", ".join(known.passes)
    how = Failure(evidence.failure_kind(known.kind), known.failure)
    alone = f"it fails {'alone on its input' if len(known.passes) == 1 else 'together with those before it'}"
    blamed = Blamed("triton", f"the pass {names}", f"{alone}, as in the compile", proven=True)
    yield BugEvidence(
        kind="crash",
        observed=str(how),
        failure=how,
        failed_in=names,
        log=evidence.bounded(untrusted.text_if_any(folder / "error.txt")),
        function=known.kernel,
        target=known.target,
        triton=known.triton,
        llvm=known.llvm,
        python=known.python,
        system=known.system,
        ir=IssueIr(_without_run_line(text), known.pipeline) if text else None,
        # Another failure than that of the compile may have another cause.
        blamed=(blamed,) if known.same else (),
    )


def _checked(folder: Path) -> Iterator[BugEvidence]:
    """Yield what `passes.check` left in the folder of a dump: its answer, and the input of the pass."""
    content, index = evidence.read_json(folder / dumps.CHECKED), dumps.read(folder)
    # An answer about a dump that was in this folder before is none.
    if isinstance(content, dict) and content.get("index") == index.digest:
        for part in evidence.of_check(content):
            yield replace(part, ir=_input_of(index, evidence.checked_pass(content)))


def _input_of(index: DumpIndex, known: CheckReport) -> IssueIr | None:
    """Return the IR that the culprit of a check was given; None if the dump does not have it as one text."""
    # Of several suspects, the input of the last one was not run, so it need not be right.
    if known.culprit is None or len(known.culprit.suspects) != 1:
        return None
    kernel = dumps.choose_kernel(index, known.kernel)
    # Passes on functions print a part of the module each, which no `triton-opt` takes as its input.
    whole = [dump for dump in index.of(kernel.name) if dump.operation == "builtin.module" and dump.whole]
    place = next((at for at, dump in enumerate(whole) if dump.number == known.culprit.checked.number), 0)
    return _ir(index, whole[place - 1]) if place else None


def _ir(index: DumpIndex, dump: Dump) -> IssueIr | None:
    """Return the text of a dump without its locations, and its pass; None if that has no name."""
    content = index.content(dump, edited=True)
    plain = ir_text.without_locations("mlir", content).decode("utf-8", "replace")
    try:
        return IssueIr(plain.strip(), oracles.spelled(dump.pipeline or dump.argument))
    except UsageError:
        return None


def _reduced_ir(path: Path) -> BugEvidence:
    """Return the IR of a file with a RUN line.

    Raises:
        UsageError: it has none, or cannot be read.
    """
    try:
        text = untrusted.read_text(path)
    except OSError as error:
        raise UsageError("cannot read this file", where=path, why=error.strerror, hints=HINTS) from error
    pipeline = issue_folder.pipeline_of(text)
    if not pipeline:
        raise UsageError("this IR has no RUN line, which names its passes", where=path, hints=HINTS)
    return BugEvidence(ir=IssueIr(_without_run_line(text), pipeline))


def _without_run_line(text: str) -> str:
    return text.partition("\n")[2].strip() if text.startswith("// RUN:") else text.strip()
