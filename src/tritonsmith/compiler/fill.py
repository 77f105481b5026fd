"""`cache.fill`: write the entries that Triton's JIT looks up, so that a program starts without a compile.

A cache is filled from a kernels file on any machine: the worker lets the JIT make each key, under a driver
that reports the target. `verify` runs a program on such a cache, and tells which part of a key differs where
it missed.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import call, run, targets, user_program
from tritonsmith.compiler.interpreter import Interpreter, worker_variables
from tritonsmith.compiler.kernels.kernel_list import ListedKernel
from tritonsmith.compiler.request import CompileRequest, expand_points
from tritonsmith.compiler.signature import split_values
from tritonsmith.compiler.source import KernelParameter, KernelSource
from tritonsmith.compiler.targets import Target
from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Remove, Step, Write
from tritonsmith.core.plan.steps.base import AttachedRun, CommandFailedError, StepTools
from tritonsmith.core.plan.steps.cache_entries import FILLING, AddEntries, standing_of
from tritonsmith.core.text import counted, entry_count
from tritonsmith.facts import triton_cache
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import (
    CacheFactsRequest,
    CacheKey,
    Fill,
    FilledRow,
    FillHead,
    FillRecord,
    FillRequest,
    LookedUpRow,
    LookUpRequest,
    NamedKernelRequest,
)

_TASK = "cache.fill"
_SCHEMA = 1
_PLACE = re.compile(r"at \d+:\d+:")
_ELSEWHERE = re.compile(r"(/(?!\.\.?(/|$))[^/\x00-\x1f]+)+")  # normal, as Triton spells its own folder
_ANSWER = 60.0  # seconds: Triton's key is a digest of libtriton.so, too
NO_EXTENSIONS = "--no-extensions"
_DAMAGED = (
    "nothing: this entry is in the cache, but it is damaged, which `cache.fill ... --into` repairs, "
    "or TRITON_ALWAYS_COMPILE is set"
)


@dataclass(frozen=True)
class FillWish:
    """A choice of what to write, and where.

    Attributes:
        out: the cache.
        home: the folder in which it will lie where it is used.
        libcuda: folders of libcuda.so.1 there; those of this machine if empty.
        triton: the folder of the package `triton` there; empty for that of the interpreter.
        extensions: build the C extensions, too.
        tuned: a cache with results of autotuners; None for none.
    """

    out: Path
    home: Path
    libcuda: tuple[str, ...] = ()
    triton: str = ""
    extensions: bool = True
    tuned: Path | None = None


@dataclass(frozen=True)
class PreparedFill:
    """A fill that is ready to run.

    Attributes:
        plan: the steps that compile, into a scratch folder.
        wish: what to write.
        target: the GPU.
        work: that folder.
        refused: a row for each kernel of which no compile can be made.
        interpreter: the Triton.
        points: number of compiles.
    """

    plan: Plan
    wish: FillWish
    target: str
    work: Path
    refused: tuple[FilledRow, ...]
    interpreter: Interpreter
    points: int


@dataclass(frozen=True)
class Filled:
    """The result of a fill.

    Attributes:
        head: what the cache is good for.
        rows: a row for each compile.
        added: names of entries that are new in the cache.
        present: number of entries that were there already, and are left alone.
        tuned: number of results of autotuners that were added.
        repaired: names of entries that were damaged, or named files of another folder.
        blocked: names of entries that somebody else made, and that name files of another folder: they are
            of no use at `home`, and are left alone.
    """

    head: FillHead
    rows: tuple[FilledRow, ...]
    added: tuple[str, ...]
    present: int
    tuned: int = 0
    repaired: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()

    @property
    def bad(self) -> tuple[FilledRow, ...]:
        """The compiles without an entry."""
        return tuple(row for row in self.rows if row.status != "ok")

    @property
    def lacks_extensions(self) -> bool:
        """Report whether the C extensions were asked for and could not be built."""
        launchers = any(row.error for row in self.rows if row.status == "ok")
        return launchers or self.head.without not in ("", NO_EXTENSIONS)

    @property
    def is_incomplete(self) -> bool:
        """Report whether a program would still compile or build something that it was filled for."""
        return bool(self.bad or self.blocked) or self.lacks_extensions


def requests_of(
    entries: Sequence[ListedKernel], path: Path, wanted: tuple[Target, ...]
) -> tuple[tuple[CompileRequest, KernelSource | None], ...]:
    """Return a compile request for each kernel of a list, and its head if the list has it.

    Args:
        entries: the kernels.
        path: the list.
        wanted: targets of the flags; those of the list if empty.

    Raises:
        SmithError: a kernel cannot be read, or has no target.
    """
    requests = []
    for entry in entries:
        # All configs of an autotuner: which of them is the best is known on the GPU only.
        request = entry.request(path.parent, wanted, autotune=bool(entry.configs))
        _check_vendor(entry, wanted, path)
        request = replace(request, targets=wanted or request.targets, name=entry.name, listed=path)
        if not request.targets:
            hints = ["give one: --target h100"]
            raise UsageError("the list names no target", where=f"{path}:{entry.name}", hints=hints)
        requests.append((request, _head(entry)))
    return tuple(requests)


def _check_vendor(entry: ListedKernel, wanted: tuple[Target, ...], path: Path) -> None:
    """Check that a list is not used for another vendor's GPU."""
    # The range of a pointer is a part of AMD's keys, and is recorded for AMD's GPUs only.
    if wanted and entry.targets and wanted[0].backend != entry.targets[0].backend:
        raise UsageError(
            f"this kernel was captured for {entry.targets[0]}, and {wanted[0]} is of another vendor",
            where=f"{path}:{entry.name}",
            hints=[command("kernel.capture", device=str(wanted[0])) + user_program.EXAMPLE],
        )


def _head(entry: ListedKernel) -> KernelSource | None:
    """Return the head of a captured kernel: its signature names all parameters, in their order."""
    # To run the file for it would import torch, once for each kernel.
    names = [part.partition("=")[0] for part in split_values(entry.signature) if "=" in part]
    if not entry.sha256 or len(names) != len(split_values(entry.signature)):
        return None
    parameters = tuple(
        KernelParameter(name, constexpr=False, has_default=False, default=None) for name in names
    )
    return KernelSource(entry.kernel, parameters, (), autotuned=False)


def prepare(
    requests: Sequence[tuple[CompileRequest, KernelSource | None]], interpreter: Interpreter, wish: FillWish
) -> PreparedFill:
    """Make the plan of the compiles.

    Args:
        requests: what `requests_of` returned.
        interpreter: the Triton that will look the entries up.
        wish: what to write, and where.

    Raises:
        UsageError: the kernels have several targets, or a folder of another machine is no absolute path.
        FactError: the cache cannot be written to, its record cannot be read, or no kernel can be compiled.
    """
    if wish.triton and not _ELSEWHERE.fullmatch(wish.triton):
        # It is a part of a key, letter by letter: a relative path would become one of this machine.
        hints = ["as in the image: --triton-at /usr/lib/python3/dist-packages/triton"]
        raise UsageError(f"--triton-at cannot be {wish.triton!r}: it takes an absolute path", hints=hints)
    _check_writable(wish.out)
    read_record(wish.out)
    if wish.tuned:
        _tuned(wish.tuned)  # not after minutes of compiles
    # The record and the driver's extension are of one target, and so is the question where the cache is used.
    gpus = {str(target) for request, _ in requests for target in request.targets}
    if len(gpus) > 1:
        hints = [f"choose one: --target {target}" for target in sorted(gpus)]
        raise UsageError("a cache is filled for one target at a time", hints=hints)
    kernels, refused = [], []
    for request, head in requests:
        try:
            kernel, points = request.kernel, expand_points(request, head) if head else ()
            if not points:
                kernel, points = run.points_of(request, interpreter)
        # One kernel that cannot be read must not keep the others from being filled.
        except SmithError as error:
            refused.append(
                FilledRow(request.name, "", "failed", "\n".join(filter(None, (error.what, error.why))))
            )
            continue
        question = run.file_request(request.file, kernel, points, interpreter)
        kernels.append(NamedKernelRequest(**vars(question), name=request.name))
    if not kernels:
        raise FactError("no kernel of this list can be compiled", why=refused[0].error if refused else None)
    space = interpreter.space
    # By the process, so that two fills at the same time keep apart.
    work = space.root / "kernels" / ".fill" / str(os.getpid())
    fill_request = FillRequest(
        kernels=tuple(kernels),
        cache=str(work / "cache"),
        results=str(work / "results.jsonl"),
        jobs=interpreter.jobs,
        timeout=interpreter.timeout,
        libcuda=wish.libcuda,
        folder=wish.triton,
        without_extensions="" if wish.extensions else NO_EXTENSIONS,
    )
    phase = "fill"
    steps = (
        Remove((work,), space.root, phase=phase),
        MakeDir(work / "cache", phase=phase),
        *call.steps(
            interpreter.python,
            fill_request,
            work / "request.json",
            env=worker_variables(interpreter),
            phase=phase,
        ),
    )
    note = f"the entries in {work / 'cache'} are then added to {wish.out}"
    number = sum(len(kernel.points) for kernel in kernels)
    return PreparedFill(
        Plan(phase, steps, (note,)), wish, next(iter(gpus)), work, tuple(refused), interpreter, number
    )


def _check_writable(folder: Path) -> None:
    """Check that a cache can be written to before anything is compiled."""
    # The folder itself need not exist: what counts is the nearest one that does.
    above = next(path for path in (folder, *folder.parents) if path.exists())
    if not above.is_dir():
        raise FactError("this is not a folder", where=above)
    if not os.access(above, os.W_OK | os.X_OK):
        raise FactError("cannot write into this folder", where=above, hints=["choose another one: --out DIR"])


def execute(prepared: PreparedFill) -> Filled:
    """Compile, and add the entries to the cache; what is in the cache stays as it is.

    Raises:
        SmithError: nothing could be compiled.
    """
    space, work, wish = prepared.interpreter.space, prepared.work, prepared.wish
    space.claim()
    log = space.log(_TASK)
    results = work / "results.jsonl"
    try:
        try:
            space.run(prepared.plan, _TASK, log=log)
        except CommandFailedError as failure:
            refusal = call.refusal_in(results)
            why = refusal.why or None if refusal else "\n".join(failure.output[-8:]) or None
            what = refusal.what if refusal else f"the compiler process failed with exit code {failure.code}"
            raise SmithError(what, where=failure.log, why=why) from failure
        head, written = call.headed_results(results, FillHead, FilledRow)
        rows = (*_complete(prepared, written), *prepared.refused)
        names = tuple(dict.fromkeys((*head.extensions, *(name for row in rows for name in _entries(row)))))
        tuned = _tuned(wish.tuned) if wish.tuned else {}
        folders = {name: work / "cache" / name for name in names} | tuned
        old = read_record(wish.out)
        # Before anything is added, so that what is new can be told from what was there.
        index, ours = triton_cache.index(), frozenset(_recorded_entries(old))
        standing = {
            name: standing_of(path, wish.out, wish.home, index) if untrusted.is_dir(path) else "missing"
            for name, path in folders.items()
        }
        blocked = tuple(name for name in names if standing[name] == "elsewhere" and name not in ours)
        # What is of no use is not recorded as filled.
        good = tuple(row for row in rows if row.entry not in blocked)
        # The record comes last: after a kill, entries without a record are used all the same.
        last = RecordFill(wish.out, Fill(prepared.target, str(wish.home), head, good), phase="add")
        places = tuple(folders.values())
        steps = (
            MakeDir(wish.out, phase="add"),
            AddEntries(wish.out, places, wish.home, index, ours, last, phase="add"),
        )
        space.run(Plan("add", steps), _TASK, quiet=True, log=log)
        added = tuple(name for name in names if standing[name] == "missing")
        present = sum(standing[name] == "whole" for name in names)
        repaired = tuple(
            name for name in names if standing[name] in ("damaged", "elsewhere") and name not in blocked
        )
        new = sum(standing[name] == "missing" for name in tuned)
        return Filled(head, rows, added, present, new, repaired, blocked)
    finally:
        # An interrupted fill leaves nothing behind, and the next one begins anew: half an entry is of no use.
        space.run(Plan("clear up", (Remove((work,), space.root, phase="clear"),)), _TASK, quiet=True, log=log)


def _entries(row: FilledRow) -> tuple[str, ...]:
    return (row.entry, *row.extensions) if row.status == "ok" else ()


def _recorded_entries(record: FillRecord | None) -> Iterator[str]:
    """Yield the names of all entries that runs have written."""
    for fill in record.fills if record else ():
        yield from fill.head.extensions
        for row in fill.rows:
            yield from _entries(row)


def is_unfinished(cache: Path) -> bool:
    """Report whether a folder has nothing but what a fill left that was interrupted."""
    # Once it has a record, a fill was finished here, and the user may have put the cache to use.
    return (cache / FILLING).is_dir() and not os.path.lexists(cache / triton_cache.RECORD)


def _complete(prepared: PreparedFill, rows: Sequence[FilledRow]) -> Iterator[FilledRow]:
    """Yield the rows of each compile, at least one: a process that ended early leaves some out."""
    request = untrusted.read_json(prepared.work / "request.json", untrusted.OURS)
    compiles: dict[tuple[str, str], list[FilledRow]] = {}
    for row in rows:
        compiles.setdefault((row.name, row.point), []).append(row)
    for kernel in request["kernels"]:
        for point in kernel["points"]:
            key = (kernel["name"], point["id"])
            first, *more = compiles.get(key) or [
                FilledRow(*key, "failed", "the process ended before it came to this one")
            ]
            yield first
            # A launch of unknown numbers may have several entries. Of a process that died, a row that says so
            # follows those of its points.
            yield from (row for row in more if row.status == first.status == "ok")


def _tuned(cache: Path) -> dict[str, Path]:
    """Return the entries of a cache that are results of autotuners.

    Raises:
        FactError: there are none.
    """
    content = triton_cache.scan(triton_cache.Root("named", cache, "--tuned"))
    results = {entry.name: Path(entry.path) for entry in content.entries if entry.kind == "autotune"}
    if not results:
        why = (
            "Triton writes them where an autotuner has cache_results=True, or with TRITON_CACHE_AUTOTUNING=1"
        )
        raise FactError("this cache has no results of autotuners", where=cache, why=why)
    return results


def read_record(cache: Path) -> FillRecord | None:
    """Return the record of what has filled a cache; None if there is none.

    Raises:
        FactError: it cannot be read, or a later version has written it.
    """
    file = cache / triton_cache.RECORD
    what, remove = "the record of this cache cannot be read", f"or remove it, to begin a new one: rm {file}"
    try:
        text = untrusted.read_text(file, untrusted.OURS)
        table = untrusted.json_of(text)
        schema = table.get("schema") if isinstance(table, dict) else None
        if isinstance(schema, int) and schema > _SCHEMA:
            hints = ["use that version, or a later one", remove]
            raise FactError("a later version of tritonsmith has filled this cache", where=file, hints=hints)
        return call.kept(text, FillRecord)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        hints = [f"if it is damaged, restore it, {remove}"]
        raise FactError(what, where=file, why=str(error), hints=hints) from error


@dataclass(frozen=True)
class RecordFill(Step):
    """Add a run to the record of a cache.

    Attributes:
        cache: the cache.
        fill: the run.
    """

    cache: Path
    fill: Fill

    def shell(self) -> list[str]:
        """Return the lines that write the record as it would be now."""
        return self._write().shell()

    def act(self, tools: StepTools) -> None:
        """Read the record, and write it with this run."""
        # As the last step of `AddEntries`, this runs under the lock of the cache: what another run has
        # recorded since this one began is read here, and kept.
        self._write().act(tools)

    def _write(self) -> Write:
        record = _recorded(read_record(self.cache), self.fill)
        return Write(self.cache / triton_cache.RECORD, text_of(record) + "\n", phase=self.phase)


def _recorded(old: FillRecord | None, new: Fill) -> FillRecord:
    """Return the record with one more run: rows of runs for the same programs are merged."""
    # Failures are in the result of the run; a record is about what is in the cache.
    good = replace(new, rows=tuple(row for row in new.rows if row.status == "ok"))
    known = {row.entry for row in good.rows}
    fills = []
    for fill in old.fills if old else ():
        if _good_for(fill) != _good_for(new):
            fills.append(fill)
            continue
        kept = tuple(row for row in fill.rows if row.entry not in known)
        if fill.home == new.home:
            good = replace(good, rows=(*kept, *good.rows))
        # The indexes of the others name files of the new home now.
        elif kept:
            fills.append(replace(fill, rows=kept))
    return FillRecord(_SCHEMA, (*fills, good))


def _good_for(fill: Fill) -> tuple[object, ...]:
    """Return what has to be the same where the entries of a run are used, but for their folder."""
    head = fill.head
    return fill.target, head.key, head.suffix, head.backend, head.variables


def facts_of(python: Path, target: str, space: Workspace) -> FillHead:
    """Ask an interpreter what it would fill a cache for.

    Raises:
        UnansweredError: it does not tell.
    """
    parsed = targets.parse(target)
    request = CacheFactsRequest((parsed.backend, parsed.arch, parsed.warp_size))
    return call.ask_one(python, request, FillHead, space, timeout=_ANSWER)


@dataclass(frozen=True)
class PreparedVerify:
    """A program that is ready to run on a filled cache.

    Attributes:
        before: steps that copy the cache.
        step: the program.
        after: steps that clear up.
        work: the scratch folder.
        cache: the filled cache.
        copy: the copy that the program uses.
        record: what has filled the cache.
        command_line: the command that runs the program, for errors.
    """

    before: Plan
    step: AttachedRun
    after: Plan
    work: Path
    cache: Path
    copy: Path
    record: FillRecord
    command_line: str

    @property
    def plan(self) -> Plan:
        """The whole plan, in order."""
        return self.before + Plan("verify", (self.step,)) + self.after


@dataclass(frozen=True)
class Miss:
    """A look-up that found no entry.

    Attributes:
        name: the kernel's name, or that of a C extension.
        file: its file and line; empty for an extension.
        differences: the parts of the key that differ from the nearest entry, each with both values.
    """

    name: str
    file: str
    differences: tuple[str, ...]


@dataclass(frozen=True)
class Verified:
    """The result of a program on a filled cache.

    Attributes:
        looked_up: number of kernels that it looked up.
        misses: those that it compiled, and the extensions that it built.
        code: the program's exit code, as a shell would report it.
        notes: messages for the user.
    """

    looked_up: int
    misses: tuple[Miss, ...]
    code: int
    notes: tuple[str, ...] = field(default=())


def prepare_verify(argv: Sequence[str], cache: Path, python: Path | None, space: Workspace) -> PreparedVerify:
    """Make the plan.

    Raises:
        SmithError: the cache was not filled by this tool, or there is no such program.
    """
    record = read_record(cache)
    if record is None or not record.fills:
        hints = [
            f"{command('cache.fill', 'captured.toml', out=cache)} fills it",
            "or name the cache: --cache DIR",
        ]
        raise FactError("this cache has no record of a fill", where=cache / triton_cache.RECORD, hints=hints)
    work = space.root / "kernels" / ".verify" / str(os.getpid())
    command_line = command("cache.fill --verify", cache=cache)
    step, site = user_program.watched_step(
        argv, python, LookUpRequest(str(work / "results")), work, command_line
    )
    copy = Path(dict(step.env)["TRITON_CACHE_DIR"] or "")
    folders = tuple(
        path
        for path in sorted(cache.iterdir())
        if path.is_dir() and not path.is_symlink() and not path.name.startswith(untrusted.TRASH)
    )
    before = (
        Remove((work,), space.root, phase="prepare"),
        MakeDir(work / "results", phase="prepare"),
        MakeDir(copy, phase="prepare"),
        # A copy: what the program compiles stays out of the filled cache.
        AddEntries(copy, folders, copy, triton_cache.index(), phase="prepare"),
        *site,
    )
    clear = Plan("clear up", (Remove((work,), space.root, phase="clear"),))
    return PreparedVerify(Plan("verify", before), step, clear, work, cache, copy, record, command_line)


def verify(prepared: PreparedVerify, space: Workspace) -> Verified:
    """Run the program, with its output on the terminal.

    Raises:
        SmithError: its Python has no Triton, or it looked up no kernel.
    """
    space.claim()
    log = space.log(_TASK)
    space.run(prepared.before, _TASK, quiet=True, log=log)
    try:
        before = _files(prepared.copy)
        code = user_program.run_step(prepared.step, space, _TASK, log)
        if code:
            user_program.check_triton(prepared.step, prepared.command_line)
        rows = call.noted(prepared.work / "results", LookedUpRow)
        if not rows:
            hints = [
                "check that it launches a Triton kernel, and that its Python is not started with -I or -E"
            ]
            what = "the program looked up no kernel" + (f", and ended with exit code {code}" if code else "")
            raise SmithError(what, hints=hints)
        unique = {row.entry: row for row in rows}
        after = _files(prepared.copy)
        compiled = _compiled(before, after)
        misses = [
            Miss(*_place(row.key), (_DAMAGED,)) if row.entry in before else _miss(row.key, prepared.record)
            for row in unique.values()
            if row.entry in compiled or row.entry not in before
        ]
        misses += _unseen(prepared.copy, compiled - set(unique))
        misses += _extensions(before, after, prepared.record)
        return Verified(len(unique), tuple(misses), code, tuple(_notes(prepared)))
    finally:
        space.run(prepared.after, _TASK, quiet=True, log=log)


def _notes(prepared: PreparedVerify) -> Iterator[str]:
    here = untrusted.real(prepared.cache)
    homes = {fill.home for fill in prepared.record.fills if untrusted.real(Path(fill.home)) != here}
    if homes:
        yield (
            f"the program used a copy; elsewhere than in {', '.join(sorted(homes))}, every look-up misses: "
            "indexes of entries name absolute paths"
        )


_Files = dict[str, dict[str, tuple[int, int]]]


def _files(cache: Path) -> _Files:
    """Return the files of each folder of a cache, with numbers that change whenever a file is written."""
    entries: _Files = {}
    for folder in cache.iterdir() if cache.is_dir() else ():
        if folder.is_dir():
            stats = {file.name: file.lstat() for file in folder.iterdir()}
            entries[folder.name] = {name: (about.st_ino, about.st_mtime_ns) for name, about in stats.items()}
    return entries


def _compiled(before: _Files, after: _Files) -> set[str]:
    """Return the names of the entries that were compiled: Triton writes the index of each anew."""
    prefix = triton_cache.index().prefix
    return {
        name
        for name, files in after.items()
        for file, about in files.items()
        if file.startswith(prefix) and before.get(name, {}).get(file) != about
    }


def _unseen(copy: Path, compiled: set[str]) -> Iterator[Miss]:
    """Yield the kernels that were compiled without a look-up that was recorded: of IR, or by `python -I`."""
    for entry in triton_cache.scan(triton_cache.Root("named", copy, "the copy")).entries:
        if entry.kind == "kernel" and entry.name in compiled:
            yield Miss(entry.kernel, "?", ("the parts of its key are unknown: it was compiled unseen",))


def _miss(key: CacheKey, record: FillRecord) -> Miss:
    # By the function alone: its file may have moved, and that would be a part of the answer.
    kernel = key.kernel
    known = [row.key for fill in record.fills for row in fill.rows if row.key is not None]
    same = [each for each in known if each.kernel.function == kernel.function]
    if not same:
        return Miss(*_place(key), ("the list that filled the cache has no kernel of this name",))
    nearest = min((tuple(differences(key, each)) for each in same), key=len)
    unknown = ("no part that is recorded differs: a hook or another cache manager may change the key",)
    return Miss(*_place(key), nearest or unknown)


def _place(key: CacheKey) -> tuple[str, str]:
    return key.kernel.function, f"{key.kernel.file}:{key.kernel.line}"


def differences(here: CacheKey, filled: CacheKey) -> Iterator[str]:
    """Yield the parts of two keys that differ, each with what it is here and what it is in the cache."""
    if here.triton != filled.triton:
        # Sources, options and their defaults change with it.
        yield "Triton itself: it is another release, or its Python files or libtriton.so have changed"
        return
    if here.backend != filled.backend:
        yield f"ptxas or the architecture: {here.backend!r} here, {filled.backend!r} in the cache"
    yield from _changed("variable", here.variables, filled.variables)
    if here.source != filled.source:
        yield f"source: {_source(here, filled)}"
    yield from _changed("type of", _texts(here.kernel.signature), _texts(filled.kernel.signature))
    yield from _changed("constant", here.constants, filled.constants)
    yield from _changed("multiple of 16:", _texts(here.kernel.hints), _texts(filled.kernel.hints))
    if here.kernel.ranges != filled.kernel.ranges:
        yield f"pointers to less than 2 GiB: {here.kernel.ranges} here, {filled.kernel.ranges} in the cache"
    yield from _changed("option", here.options, filled.options)


def _texts(table: Mapping[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in table.items()}


def _changed(what: str, here: Mapping[str, str], filled: Mapping[str, str]) -> Iterator[str]:
    for name in dict.fromkeys((*here, *filled)):
        if here.get(name) != filled.get(name):
            yield f"{what} {name}: {here.get(name, 'none')} here, {filled.get(name, 'none')} in the cache"


def _source(here: CacheKey, filled: CacheKey) -> str:
    if here.kernel.line != filled.kernel.line:
        return f"line {here.kernel.line} of {here.kernel.file} here, line {filled.kernel.line} in the cache"
    of = "" if here.kernel.file == filled.kernel.file else f", which was filled from {filled.kernel.file}"
    return f"the kernel, or a function or constant that it uses, has changed in {here.kernel.file}{of}"


def _extensions(before: _Files, after: _Files, record: FillRecord) -> Iterator[Miss]:
    """Yield the C extensions that the program built."""
    # They are no kernels, so no look-up is recorded: the files that the program has written tell.
    suffixes = {fill.head.suffix for fill in record.fills}
    for name, files in sorted(after.items()):
        there = before.get(name, {})
        for file, about in sorted(files.items()):
            if not file.endswith(".so") or there.get(file) == about:
                continue
            library = file.partition(".")[0]
            if file in there:
                why = "the cache has it, but it could not be loaded"
            elif all(fill.head.without for fill in record.fills):
                why = f"the cache has no extensions: {record.fills[0].head.without}"
            # Up to 3.3 the name does not say for which Python it is.
            elif file != f"{library}.so" and not any(file.endswith(suffix) for suffix in suffixes):
                why = f"Python: {file} here, {', '.join(sorted(suffixes))} in the cache"
            elif library == "cuda_utils":
                dirs = ", ".join(record.fills[0].head.libcuda)
                why = f"Triton, its folder, or the folder of libcuda.so.1, which was filled for {dirs}"
            else:
                why = "no kernel with this signature was filled"
            yield Miss(library, "", (why,))


def summary(filled: Filled) -> Iterator[tuple[str, str, str, str]]:
    """Yield kernel, entries, status and error for a table, one row per kernel of the list."""
    by_name: dict[str, list[FilledRow]] = {}
    for row in filled.rows:
        by_name.setdefault(row.name, []).append(row)
    for name, rows in by_name.items():
        counts = Counter(row.status for row in rows)
        bad = [row for row in rows if row.status != "ok"] or [row for row in rows if row.error]
        some = f"{counts['ok']} of {len(rows)}" if counts["ok"] else bad[0].status if bad else ""
        status = "filled" if counts["ok"] == len(rows) else some
        entries = len({row.entry for row in rows if row.status == "ok"})
        yield name, str(entries), status, _headline(bad[0].error) if bad else ""


def _headline(error: str) -> str:
    """Return the line of an error that says what is wrong, and where in the user's file."""
    first, *lines = error.strip().splitlines() or [""]
    # A CompilationError begins with a place in the kernel, and ends with what is wrong there. Of functions
    # that call each other, each has its own, from the outermost on.
    if not _PLACE.fullmatch(first):
        return first
    messages = [line for line in lines if line.strip() not in ("", "^") and not line.startswith("at ")]
    at = next((line for line in lines if line.startswith("at ") and not _PLACE.fullmatch(line)), "")
    return " ".join(filter(None, (messages[-1].strip() if messages else first, at and f"({at})")))


def closing(filled: Filled, cache: Path) -> Iterator[str]:
    """Yield the lines below that table: what was added, what it is good for, and what is left to build."""
    head, present = filled.head, filled.present
    there = f"; {present} {'was' if present == 1 else 'were'} there already" if present else ""
    yield f"{entry_count(len(filled.added))} added to {cache}{there}"
    if filled.repaired:
        yield f"{entry_count(len(filled.repaired))} repaired"
    if filled.blocked:
        yield (
            f"{entry_count(len(filled.blocked))} left alone, of no use here: not recorded as filled by this "
            f"tool, and naming files of another folder: {', '.join(filled.blocked)}"
        )
    if filled.tuned:
        yield f"{counted(filled.tuned, 'autotuner result')} added"
    python = head.python.rpartition(".")[0]
    yield f"valid for Triton {head.triton} as installed in {head.folder}, Python {python}"
    if head.without:
        yield f"without C extensions, which the first launches will build: {head.without}"


def as_json(filled: Filled, wish: FillWish, target: str) -> dict[str, Any]:
    """Return the result of a fill as JSON data."""
    head = filled.head
    return {
        "schema": 1,
        "cache": str(wish.out),
        "at": str(wish.home),
        "target": target,
        "triton": head.triton,
        "python": head.python,
        "extensions": not head.without,
        "why_no_extensions": head.without,
        "added": list(filled.added),
        "present": filled.present,
        "tuned": filled.tuned,
        "repaired": list(filled.repaired),
        "blocked": list(filled.blocked),
        "kernels": [
            {
                "name": row.name,
                "point": row.point,
                "status": row.status,
                "entry": row.entry,
                "launcher": list(row.extensions),
                "error": row.error,
                "seconds": row.seconds,
            }
            for row in filled.rows
        ],
    }


def verdict(verified: Verified) -> str:
    """Return the result of a program in one line."""
    looked = counted(verified.looked_up, "kernel")
    if not verified.misses:
        return f"{looked} looked up, nothing was compiled"
    extensions = sum(not miss.file for miss in verified.misses)
    kernels = len(verified.misses) - extensions
    return f"{looked} looked up, {kernels} compiled, {counted(extensions, 'C extension')} built"


def verified_json(verified: Verified) -> dict[str, Any]:
    """Return the result of a program as JSON data."""
    return {
        "schema": 1,
        "looked_up": verified.looked_up,
        "misses": [
            {"name": miss.name, "where": miss.file, "differences": list(miss.differences)}
            for miss in verified.misses
        ],
        "exit": verified.code,
    }
