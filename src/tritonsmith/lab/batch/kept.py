"""The memory of all experiments that compile many kernels: a result that is there is not compiled again.

A result is a manifest with its files. A folder that a user named (`compare --triton A,B --out DIR`) counts
where its manifest names the same command and the same content of the kernel's file and its imports. All
others are in the database of the workspace (store.py), by what compiles (`releases/3.6.0`) and by a key:
a digest of the content of all files and of everything else that is asked for, except the target. Commits
that compile alike share their results (`commits/CONTENT`).

The files of results, their code and their metrics are the matter of kept_files.py.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tritonsmith.compiler import call, interpreter, signature, source, source_tree, targets, tritons
from tritonsmith.compiler import manifest as manifests
from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.source_tree import Import, KernelSources, TreeReader
from tritonsmith.compiler.tritons import Triton
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import Copy, MakeDir, Plan, Remove, RunSql, Step, Write, digest
from tritonsmith.core.plan.steps import fetch
from tritonsmith.core.plan.steps.pack import WriteChecksum, checksum_file
from tritonsmith.facts import variables
from tritonsmith.lab.batch import kept_files
from tritonsmith.lab.batch.kept_files import COMMITS, DATABASE, OTHERS, RELEASES, PackedPart, database
from tritonsmith.lab.batch.store import CLEAR, REMOVE, ResultStore, Rows, is_ours

STAGES = "stages"  # outputs of stages by their inputs: see `worker.compile_point.SharedStages`

_LIBRARIES = "extern_libs"  # an option of both backends: names with paths of files
_PROGRAM = "tritonsmith kernel.compile"
_FINAL = ("ok", "failed")  # a crash or a compile that was given up may have been the machine's fault
# But not if LLVM has reported an error in the code, as in inline assembly of another vendor, and ended the
# process. Of a lack of memory it says `LLVM ERROR`.
_REPORTED = "the compiler ended the process: exit code 1\nerror: "
_FOREIGN = re.compile(r"[^\w.+-]")
# Variables that Triton does not name in its own cache key, as they are options or digests of files there:
# their effects, and the tools that make a part of the binary.
_STEERING = ("codegen", "debug", "override", "sanitize")
_TOOLS = (
    "TRITON_AMD_CODEGEN_PATH",
    "TRITON_HIP_LLD_PATH",
    "TRITON_LIBDEVICE_PATH",
    "TRITON_PTXAS-BLACKWELL_PATH",
    "TRITON_PTXAS_BLACKWELL_PATH",
    "TRITON_PTXAS_PATH",
)
_GPUS = ("gpu-limits", "gpu-properties", "gpu-targets")
# Variables that name a machine, a person or a session, and not what to compile: files look for folders by
# them. That of paths is in each key.
_PLACES = ("HOME", "HOSTNAME", "LANG", "PATH", "PWD", "PYTHONPATH", "SHELL", "TERM", "TMPDIR", "USER")


@dataclass(frozen=True)
class CompileJob:
    """A kernel for one Triton.

    Attributes:
        request: what is compiled, before the Triton's own targets and options: see `tritons.applied`.
        triton: the Triton that compiles.
        out: the output folder.
        keyed: the folder's name is a key of the content: its results are kept in the database, whatever path
            the file had, and a kernel that the compiler refused is refused again.
        module: of a keyed job, the import name of the kernel's file; empty if it is no module of a package.
        sources: of a keyed job, a digest of the file and its imports.
        root: of a keyed job, the folder that these are in.
    """

    request: CompileRequest
    triton: Triton
    out: Path
    keyed: bool = False
    module: str = ""
    sources: str = ""
    root: Path = Path()

    @property
    def title(self) -> str:
        """A few words for the progress bar."""
        return f"{self.request.kernel or self.request.file.stem} by {self.triton.label}"


class KeyedJobs:
    """Makes jobs whose results the workspace keeps for every experiment.

    One for all kernels of a list: they share most of their files, which are read once.
    """

    def __init__(self) -> None:
        self._trees = TreeReader(KeptImports())
        programs = [
            # Of this machine's by name: a database may come from another one, where they are elsewhere.
            [name if name.startswith("{triton}") else Path(name).name for name in entry.programs]
            for entry in interpreter.locate_programs(workspace.default()).disassemblers
        ]
        # Another worker may write other files, and tell a kernel's file other facts about the GPU.
        tables = [configs.load(name) for name in ("kernels", *_GPUS)]
        # What the kernel's file imports from elsewhere may be found there first.
        self._tool = digest(call.source_text(), tables), programs, os.environ.get("PYTHONPATH", "")
        # Thousands of kernels have the same few targets, and the same few interpreters.
        self._last: tuple[CompileRequest | None, dict[str, Any]] = (None, {})
        self._packages, self._is_usual = functools.cache(_packages), functools.cache(_is_usual)
        self._variables = _VariablesRead()

    def job(self, request: CompileRequest, triton: Triton, module: str = "") -> CompileJob:
        """Return the job of a kernel.

        Args:
            request: of one kernel.
            triton: a release, a commit, an environment or an interpreter.
            module: the import name of the kernel's file; empty if it is no module of a package.

        Raises:
            SmithError: the kernel's file cannot be read.
        """
        tree = self._trees.of(request.file, request.kernel, module)
        # The name and the entry of the list are for tables; the target is a column of its own.
        # The job of a kernel for the second Triton comes after that for the first.
        if self._last[0] is not request:
            plain = replace(request, file=Path(tree.main), targets=(), name="", listed=None)
            self._last = request, asdict(plain)
        content = self._last[1]
        # A kernel's file may read facts of the GPU, and an H200 has the target of an H100.
        chosen = tritons.applied(request, triton).targets
        others = [targets.gpu_facts(target) for target in chosen if not self._is_usual(target)]
        # Of a user's interpreter, whose packages a kernel may import; the tool's own have Triton alone.
        packages = [] if triton.source or triton.version else self._packages(triton.python)
        linked = _linked(request)
        key = digest(tree.key, content, *self._tool, *others, packages, *linked, *self._variables.of(tree))
        return CompileJob(request, triton, folder_of(triton) / key, True, module, tree.key, tree.root)


class _VariablesRead:
    """Finds the variables that are set and that a kernel's files name: they may decide what these define.

    A name that is put together at run time is not found.
    """

    def __init__(self) -> None:
        # A shell sets `_`, which is a name in many texts.
        names = sorted(name for name in os.environ if len(name) > 1 and name not in _PLACES)
        self._pattern = re.compile(rf"""["']({"|".join(map(re.escape, names)) or "(?!)"})["']""")
        self._by_content: dict[str, frozenset[str]] = {}

    def of(self, tree: KernelSources) -> list[tuple[str, str]]:
        """Return them with their values; nothing for most kernels."""
        named: set[str] = set()
        for name, content in tree.sums:
            if content not in self._by_content:
                text = untrusted.text_if_any(tree.root / name) if name.endswith(".py") else ""
                self._by_content[content] = frozenset(self._pattern.findall(text))
            named |= self._by_content[content]
        return [(name, os.environ[name]) for name in sorted(named)]


def links(request: CompileRequest) -> bool:
    """Report whether a request names libraries to link, whose content its options do not tell."""
    return _LIBRARIES in request.options or any(sweep.name == _LIBRARIES for sweep in request.sweeps)


def _linked(request: CompileRequest) -> Iterator[tuple[str, str]]:
    """Yield the texts in the libraries of a request that are files, each with a digest of the content."""
    sweeps = (sweep.texts for sweep in request.sweeps if sweep.name == _LIBRARIES)
    values = [request.options.get(_LIBRARIES), *(signature.parse_value(text) for text in chain(*sweeps))]
    while values:
        value = values.pop()
        if isinstance(value, str) and untrusted.is_file(Path(value)):
            yield value, source_tree.sum_of(Path(value))
        elif isinstance(value, (list, tuple)):
            values += value
        elif isinstance(value, dict):
            values += value.values()


def _packages(python: str) -> list[str]:
    """Return the names and versions of the packages beside an interpreter's Triton."""
    site = tritons.package(Path(python)).parent if python else None
    return sorted(path.name for path in site.glob("*.dist-info")) if site else []


def _is_usual(target: targets.Target) -> bool:
    """Report whether the model of a target's GPU is the one that its architecture stands for."""
    (usual,) = targets.parse_all([str(target)])
    return targets.gpu_facts(target) == targets.gpu_facts(usual)


class KeptImports:
    """The imports of source files by their content, as the database keeps them: to parse takes the most."""

    def __init__(self) -> None:
        self._reader = _reader_of_imports()
        self._base: ResultStore | None = None

    def __call__(self, sum_of: Callable[[Path], str], path: Path, kernel: str) -> tuple[Import, ...]:
        """Return what a file imports.

        Raises:
            FactError: it cannot be read.
        """
        try:
            content = f"{sum_of(path)}-{self._reader}"
        except FactError:
            return source_tree.imports_of(source.read(path), kernel)  # which has a better message
        # The database is asked for once: of thousands of files, to look whether it is still there takes half.
        base = self._base = self._base or database()
        known = base.imports(content, kernel)
        if known is None:
            known = list(source_tree.imports_of(source.read(path), kernel))
            base.keep_imports(content, kernel, known)
        return tuple(known)


@functools.cache
def _reader_of_imports() -> str:
    # Another version of this code, or of Python, may read another import.
    code = untrusted.read_bytes(Path(source_tree.__file__))
    return digest("lines", call.source_text(), code.decode(), sys.version_info[:2])


def folder_of(triton: Triton) -> Path:
    """Return the folder with all keyed results of a Triton.

    A release has one, and so have all commits of one content. An environment or an interpreter has one, too,
    but its compiles are repeated each time.
    """
    root = workspace.default().root / "kernels"
    other = f"-ptxas-{triton.ptxas}" if triton.ptxas else ""
    # Not by the commit: one that changes tests or documents finds all results of its parent.
    if triton.source:
        return root / COMMITS / f"{triton.source.content}{other}"
    if triton.version:
        return root / RELEASES / f"{triton.version}{other}"
    name = _FOREIGN.sub("_", Path(triton.env or triton.python).name)
    # Most interpreters are called `python`: the digest tells their folders apart.
    return root / OTHERS / f"{name}-{digest(triton.env, triton.python, triton.ptxas)[:8]}"


def check(jobs: Sequence[CompileJob]) -> None:
    """Check that each job has its own folder, and that the folders can be created.

    Raises:
        UsageError: two jobs have one folder: their files would mix; or a file is where the folder goes.
    """
    # Without this, mkdir would fail after hours of compiles, when the files of that one kernel are copied.
    taken: set[Path] = set()
    for job in jobs:
        if job.out in taken:
            hints = ['give one of them another name: name = "..."']
            raise UsageError("two kernels of the list would use the same folder", where=job.out, hints=hints)
        taken.add(job.out)
        nearest = next(path for path in (job.out, *job.out.parents) if path.exists())
        if not nearest.is_dir():
            raise UsageError("the output folder is a file", where=nearest)


def command(job: CompileJob, env: str) -> str:
    """Return the command that recreates the folder.

    Args:
        job: its Triton's targets and options are in the request.
        env: of a Triton that names none.
    """
    triton = job.triton
    named = triton.version or triton.python
    by = {"python": tritons.python_of(triton)} if named else {"env": triton.env or env}
    ptxas = {"ptxas": triton.ptxas} if triton.ptxas else {}
    return f"{_PROGRAM} {job.request.flags(**by, **ptxas, out=job.out.absolute())}"


class _ReadManifest(NamedTuple):
    """A manifest that was read, and everything that it was made of.

    Attributes:
        rows: of the database.
        env: as `ResultFinder` has it.
        request: of the job.
        triton: of the job.
        manifest: with all of the rows; None if none can be read.
    """

    rows: Rows
    env: str
    request: CompileRequest
    triton: Triton
    manifest: Manifest | None


_READ: dict[Path, _ReadManifest] = {}  # by the folder
_MOST_READ = 100_000


class ResultFinder:
    """Finds results that are there, for one step of a run: files and Tritons must not change meanwhile.

    Many Tritons compile the same kernels, whose files take a tenth of a second to read in a large package.

    Args:
        env: of a Triton that names none.
    """

    def __init__(self, env: str) -> None:
        self._env = env
        self._trees: dict[tuple[Path, str], KernelSources | None] = {}
        self._versions: dict[tuple[str, ...], str] = {}
        self._sum = functools.cache(_sum_if_any)
        self._steered = is_steered()

    def sources(self, job: CompileJob) -> str:
        """Return a digest of the kernel's file and its own imports; empty if not needed or not known."""
        # A keyed job needs none, as its folder's name is such a digest.
        tree = None if job.keyed else self._tree(job)
        return tree.key if tree else ""

    def find(self, job: CompileJob) -> Manifest | None:
        """Return the points of a job's folder that are as the job wants them; None if there are none.

        They match if the content of the file and of its imports, the version of the Triton and the whole
        request are the same, and the files still exist.

        Args:
            job: its Triton's targets and options are in the request.
        """
        # A variable that had an influence, then or now, is no part of the key.
        version = "" if self._steered else self._trusted_version(job)
        if not version:
            return None
        return self._kept(job) if job.keyed else self._in_folder(job, version)

    def _kept(self, job: CompileJob) -> Manifest | None:
        names = [str(target) for target in job.request.targets]
        rows = database().find_packed(*kept_files.address(job.out), names)
        # A run asks whether all is there before it takes it, and to read a manifest takes the most of both.
        made_of = (rows, self._env, job.request, job.triton)
        known = _READ.get(job.out)
        if known and known[:-1] == made_of and self._reads_the_same(known.manifest, job):
            return known.manifest
        parts = list[Manifest]()
        for text in ResultStore.unpacked(rows).values():
            # One that cannot be read, as it came from elsewhere, is made again.
            with suppress(FactError, ValueError):
                parts.append(manifests.parse(untrusted.json_of(text), job.out))
        current = [part for part in parts if self._reads_the_same(part, job)]
        if len(current) < len(parts):
            return merged(job, self._env, current) if current else None
        manifest = merged(job, self._env, parts) if parts else None
        if len(_READ) >= _MOST_READ:
            _READ.clear()
        _READ[job.out] = _ReadManifest(*made_of, manifest)
        return manifest

    def _reads_the_same(self, manifest: Manifest | None, job: CompileJob) -> bool:
        """Report whether the files that a compile has read still have the content that they had."""
        if not manifest or not manifest.reads:
            return True
        # Another checkout has the same key, and a file that is not below its root may be another one for it.
        if manifest.file != str(job.request.file) and any(name.startswith("/") for name in manifest.reads):
            return False
        # Texts: of a thousand results, to join `Path`s would take most of all.
        paths = (
            (name if name.startswith("/") else f"{job.root}/{name}", content)
            for name, content in manifest.reads.items()
        )
        return all(content and self._sum(path) == content for path, content in paths)

    def _in_folder(self, job: CompileJob, version: str) -> Manifest | None:
        try:
            old = manifests.read(job.out)
            content = source_tree.sum_of(job.request.file)
        except (FactError, OSError):
            return None
        same = (old.file_sha256, old.triton) == (content, version)
        same = same and _same_request(old, job, self._env) and self._same_sources(old, job)
        if not same or not self._reads_the_same(old, job):
            return None
        # A manifest is written last and whole, so a killed run leaves no half result. But files may be
        # deleted.
        lacking = {point.target for point in old.points if not _whole(old, point)}
        usable = {str(target) for target in job.request.targets} - lacking
        points = tuple(point for point in old.points if point.target in usable)
        return replace(old, points=points) if points else None

    def _same_sources(self, old: Manifest, job: CompileJob) -> bool:
        """Report whether the imports of the kernel's file are those that a folder was compiled with."""
        if (tree := self._tree(job)) is None:
            return False
        # A manifest of `kernel.compile`, or of an older version of this tool, tells nothing about the
        # imports: it counts only for a file that has none.
        return old.sources == tree.key if old.sources else len(tree.sums) == 1

    def _trusted_version(self, job: CompileJob) -> str:
        """Return the version of a job's Triton if that compiles today what it compiled before; else empty."""
        triton = job.triton
        # A commit's package is a checkout, but its content is in the name of the folder.
        if triton.source:
            return (triton.source.version or "unknown") if job.keyed else ""
        key = triton.version, triton.python, triton.env
        if key not in self._versions:
            # A Triton that somebody builds changes while its version stays: so neither an environment (whose
            # version `triton` does not tell) nor a checkout is trusted.
            checkout = triton.python and tritons.is_checkout(Path(triton.python))
            self._versions[key] = "" if checkout else triton.triton
        return self._versions[key]

    def _tree(self, job: CompileJob) -> KernelSources | None:
        place = (job.request.file.absolute(), job.request.kernel)
        if place not in self._trees:
            self._trees[place] = None
            with suppress(SmithError):
                self._trees[place] = source_tree.of(*place)
        return self._trees[place]


def _sum_if_any(path: str) -> str:
    # A result may be a stranger's, and name anything.
    with suppress(FactError, ValueError):
        return source_tree.sum_of(Path(path))
    return ""


def is_steered() -> bool:
    """Report whether a variable of this process changes what a Triton compiles."""
    return any(
        name in os.environ and (row.cache == "invalidates" or row.effect in _STEERING or name in _TOOLS)
        for name, row in variables.table().items()
    )


def keep(job: CompileJob, manifest: Manifest, packed: Sequence[PackedPart]) -> Manifest:
    """Keep what was compiled for a keyed job, with its metrics; return the manifest as it is kept.

    What is not final, or was steered by a variable, is for this run alone: its files go to the job's folder.

    Args:
        job: its Triton's targets and options are in the request.
        manifest: what was compiled.
        packed: the files.

    Raises:
        StepError: the database cannot be written.
    """
    space = workspace.default()
    if job.out.exists():  # files of an earlier result
        space.run(
            Plan("kernel", (Remove((job.out,), space.root, phase="kernel"),)), "kernel.unit", quiet=True
        )
    # A file that was edited since the key was made would be kept under the key of another content.
    tree = TreeReader(KeptImports()).of(job.request.file, job.request.kernel, job.module)
    manifest = replace(manifest, reads=_other_reads(manifest.reads, tree))
    for_good = not is_steered() and tree.key == job.sources and all(manifest.reads.values())
    loose: list[Point] = []
    for target, part in kept_files.by_target(manifest):
        points = part.points
        own = [each for each in packed if each.target == target]
        # Without the file's checksum a refusal is not final: see `run._refusal`.
        if for_good and manifest.file_sha256 and all(map(_is_final, points)):
            kept_files.add(job.out, target, part, own)
            continue
        loose += points
        kept_files.write_packed(job.out, own)
    if loose:
        text = replace(manifest, points=tuple(loose)).render()
        write = Write(job.out / manifests.FILE, text, phase="kernel")
        space.run(Plan("kernel", (write,)), "kernel.unit", quiet=True)
    return manifest


def _other_reads(reads: Mapping[str, str], tree: KernelSources) -> dict[str, str]:
    """Return the files that are no part of a kernel's key, those below its root by their relative paths.

    Two checkouts of a package have the same key, and each its own files.
    """
    sums, roots = dict(tree.sums), tuple(dict.fromkeys((tree.root, tree.root.resolve())))
    others = {}
    for path, content in reads.items():
        below = next((root for root in roots if Path(path).is_relative_to(root)), None)
        name = str(Path(path).relative_to(below)) if below else path
        # Of one that was edited and edited back, the key tells another content than what was compiled.
        if sums.get(name) != content:
            others[name] = "" if name in sums else content
    return others


def are_complete(jobs: Iterable[CompileJob], env: str = "") -> bool:
    """Report whether the results of all jobs are there, so that their Tritons are not needed.

    Args:
        jobs: as `batch.run.compiled` takes them.
        env: of a Triton that names none.
    """
    finder = ResultFinder(env)
    every = (replace(job, request=tritons.applied(job.request, job.triton)) for job in jobs)
    return all(rest(job, finder.find(job)) is None for job in every)


def rest(job: CompileJob, old: Manifest | None) -> CompileJob | None:
    """Return the part of a job that still has to be compiled; None if nothing."""
    known = {point.target for point in old.points} if old else set()
    missing = tuple(target for target in job.request.targets if str(target) not in known)
    return replace(job, request=replace(job.request, targets=missing)) if missing else None


def merged(job: CompileJob, env: str, parts: Sequence[Manifest]) -> Manifest:
    """Return one manifest of a folder that was filled in parts, earlier and now."""
    points = [point for part in parts for point in part.points]
    points.sort(key=lambda point: _position(point, job.request))
    first = next((part for part in parts if part.origin), parts[0])  # one that was refused tells less
    steering = first.command.partition(_PROGRAM)[0]  # variables that had an influence
    return replace(
        first,
        folder=job.out,
        command=f"{steering}{command(job, env)}",
        points=tuple(points),
        stand_ins={name: place for part in parts for name, place in part.stand_ins.items()},
        warnings=tuple(dict.fromkeys(text for part in parts for text in part.warnings)),
        reads=manifests.all_reads(part.reads for part in parts),
    )


def _position(point: Point, request: CompileRequest) -> tuple[int, ...]:
    """Return the position that a point has where all are compiled at once: parts finish in any order."""
    order = {str(target): number for number, target in enumerate(request.targets)}
    by_name = {**point.signature, **point.constexprs, **point.options}
    position = [order[point.target]]
    for sweep in request.sweeps:
        value = by_name.get(sweep.name)
        # A signature's types are texts, as a sweep's are; constants and options are values by now.
        same = (
            n for n, text in enumerate(sweep.texts) if text == value or signature.parse_value(text) == value
        )
        position.append(next(same, len(sweep.texts)))
    return tuple(position)


def _same_request(old: Manifest, job: CompileJob, env: str) -> bool:
    # The targets are compared one by one: a folder may have more of them, or fewer.
    compiled = tuple(dict.fromkeys(targets.parse(point.target) for point in old.points))
    before = replace(job, request=replace(job.request, targets=compiled))
    return old.command == command(before, env)


def _is_final(point: Point) -> bool:
    """Report whether another compile of a point would give the same result."""
    return point.status in _FINAL or (point.status == "crashed" and point.error.startswith(_REPORTED))


def _whole(old: Manifest, point: Point) -> bool:
    if not _is_final(point):
        return False
    paths = [(old.folder / stage.path, stage.size) for stage in point.stages.values()]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


@dataclass(frozen=True)
class KeptResults:
    """The results of one Triton.

    Attributes:
        folder: where its files are written if somebody wants to see them.
        kernels: the number of kernels.
        bytes: of all that is kept; what two Tritons share counts for both.
    """

    folder: Path
    kernels: int
    bytes: int


def results(space: Workspace) -> tuple[KeptResults, ...]:
    """List the kept results of a workspace, Triton by Triton."""
    root = space.root / "kernels"
    if not (root / DATABASE).is_file():
        return ()
    return tuple(KeptResults(root / row.triton, row.kernels, row.bytes) for row in database().usage())


def portable(space: Workspace) -> tuple[KeptResults, ...]:
    """List the kept results that mean the same on another machine: those of releases and commits."""
    return tuple(row for row in results(space) if row.folder.parent.name != OTHERS)


def removal(space: Workspace) -> Plan:
    """Plan the removal of all kept results."""
    root = space.root / "kernels"
    steps: tuple[Step, ...] = ()
    if results(space):
        steps += (RunSql(root / DATABASE, CLEAR, phase="clear"),)
    folders = (root / name for name in (RELEASES, COMMITS, OTHERS, STAGES))
    if views := tuple(folder for folder in folders if folder.exists()):
        steps += (Remove(views, space.root, phase="clear"),)
    return Plan("clear what compare keeps", steps)


def export(dest: str, space: Workspace) -> Plan:
    """Plan to pack the kept results of releases and commits into one file, with its checksum beside it.

    Args:
        dest: a file (`*.db`), a folder, or a URL of an object store.
        space: the workspace.

    Raises:
        FactError: there are none.
        UsageError: the file cannot be replaced.
        SmithError: the client for that kind of URL is missing.
    """
    from tritonsmith.build.store import transfer  # noqa: PLC0415 - takes 0.1 s of each command of the lab

    base = space.root / "kernels" / DATABASE
    if not portable(space):
        # An empty file would look like a success until somebody imports it.
        raise FactError(
            "there are no kept results of releases or commits",
            where=base,
            why="those of environments and interpreters are of this machine alone" if results(space) else "",
            hints=["`invoke compare --from 3.8.0 --to 3.9.0` keeps some"],
        )
    folder = dest.endswith("/") or (not transfer.is_url(dest) and transfer.local(dest).is_dir())
    target = f"{dest.rstrip('/')}/{DATABASE}" if folder else dest
    if transfer.is_url(target):
        fetch.check_object_store(target)
    elif transfer.local(target).exists() and not is_ours(transfer.local(target)):
        hints = ["give a file that does not exist, or a folder"]
        raise UsageError("this file holds no kept results", where=transfer.local(target), hints=hints)
    packed = space.downloads / f"packed-{os.getpid()}" / Path(target).name
    phase = "pack"
    steps: tuple[Step, ...] = (
        Remove((packed.parent,), space.root, phase=phase),
        MakeDir(packed.parent, phase=phase),
        RunSql(base, f"VACUUM INTO '{str(packed).replace(chr(39), chr(39) * 2)}'", phase=phase),
        # Environments and interpreters are those of this machine.
        RunSql(packed, f"{REMOVE.format(OTHERS)} VACUUM;", phase=phase),
        WriteChecksum(packed, phase=phase),
    )
    plan = Plan("pack kept results", steps)
    if transfer.is_url(target):
        return plan + transfer.upload(packed, target, space)
    path = transfer.local(target)
    copies = (
        MakeDir(path.parent, phase=phase),
        Copy(packed, path, phase=phase),
        Copy(checksum_file(packed), checksum_file(path), phase=phase),
        Remove((packed.parent,), space.root, phase=phase),
    )
    return plan + Plan("copy", copies)
