"""`passes.isolate`: run the failing pass alone, or the shortest failing end of the pipeline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tritonsmith.compiler.dump.index import DumpedKernel, DumpIndex
from tritonsmith.compiler.replay import bindings, run
from tritonsmith.compiler.replay import job as replay_job
from tritonsmith.compiler.replay.pass_chain import PassLink
from tritonsmith.compiler.replay.replayer import Replayer
from tritonsmith.compiler.replay.run import KernelPasses
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import files
from tritonsmith.ir import strip_locations
from tritonsmith.lab import failure
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.reduce.interestingness import OracleAnswer
from tritonsmith.lab.reduce.pass_runner import PassRunner

_DIED = re.compile(r"\b(SIG[A-Z]+)\b")
_PYTHON = {  # what Python's faulthandler says
    "Fatal Python error: Segmentation fault": "SIGSEGV",
    "Fatal Python error: Aborted": "SIGABRT",
}
_TOGETHER = "the last pass does not fail alone, so the passes that it depends on run first"
_FILE = re.compile(r'"(?:[^"\\]|\\.)*/((?:[^"\\/]|\\.)*)"(?=:\d+:\d+)')


@dataclass(frozen=True)
class Isolated:
    """Passes that fail, and what they fail on.

    Attributes:
        seen: the kernel of a dump that they are passes of.
        links: the passes; one if it fails alone.
        way: how they are run.
        text: their input.
        answer: what came of it.
        failure: the same, in short.
        recorded: that of the dump.
        stripped: the input has no locations; otherwise they are without folders.
        notes: what a person should know.
    """

    seen: KernelPasses
    links: tuple[PassLink, ...]
    way: PassRunner
    text: str
    answer: OracleAnswer
    failure: Failure
    recorded: Failure
    stripped: bool
    notes: tuple[str, ...]

    @property
    def names(self) -> str:
        """The passes, as on a command line."""
        return ", ".join(link.dump.argument for link in self.links)

    @property
    def same(self) -> bool:
        """Report whether it fails as the dump says."""
        return _same(self.recorded, self.failure)


def isolate(
    index: DumpIndex, kernel: DumpedKernel, tool: Replayer, space: Workspace, options: Mapping[str, Any]
) -> Isolated:
    """Find the failing pass, and run it alone; with the passes before it if it does not fail alone.

    Raises:
        SmithError: nothing failed in this dump, or the failure cannot be reproduced.
        FactError: the pass that failed cannot be run alone.
    """
    if not kernel.failed:
        hints = [
            f"find the first pass with a text: {command('passes.isolate', index.folder, pattern='TEXT')}",
            f"list all passes: {command('passes.list', index.folder)}",
        ]
        raise SmithError(f"no pass of {kernel.name} failed in this dump", where=index.folder, hints=hints)
    seen = run.look(index, kernel, tool, space, options)
    links = _until(seen)
    recorded = recorded_failure(kernel)
    other: Isolated | None = None
    refused = ""
    for begin in reversed(range(len(links))):
        chosen = links[begin:]
        notes = seen.notes if len(chosen) == 1 else (*seen.notes, _TOGETHER)
        made = way(seen, chosen, tool, space)
        if isinstance(made, str):
            refused = refused or made
            continue
        try:
            found = _run(seen, chosen, made, recorded, notes)
        except UsageError:  # this program has not all of the passes before it
            if len(chosen) == 1:
                raise
            break
        if found and found.same:
            return found
        other = other or found
    if other:
        return other
    if refused:
        raise FactError(
            f"{links[-1].dump.argument} cannot be run alone by this Triton",
            where=tool.python,
            why=refused,
            hints=["triton-opt of a build runs every pass: --triton-opt PATH, --env NAME"],
        )
    raise SmithError(
        f"cannot reproduce: {links[-1].dump.argument} succeeds on the dumped input",
        where=tool.opt or tool.python,
        why=f"failure in the dump: {recorded}",
        hints=[
            f"use the Triton that wrote the dump: {index.triton or 'its version is unknown'}",
            "give options of the compile that the dump does not contain: --option num_stages=4",
        ],
    )


def way(seen: KernelPasses, links: Sequence[PassLink], tool: Replayer, space: Workspace) -> PassRunner | str:
    """Return the runner of some passes, or the reason why they cannot run."""
    told, rehearsed = replay_job.tells_options(seen.links), seen.rehearsal.calls
    pipeline, _ = replay_job.pipeline_of(links, rehearsed, told=told)
    if tool.opt:
        return PassRunner(pipeline, opt=tool.opt)
    assert tool.python is not None  # noqa: S101 - `replayer.choose` found one of the two
    known = bindings.known_bindings(tool.python, space)
    calls, why, _ = replay_job.by_bindings(links, known, rehearsed, told=told)
    return why or PassRunner(pipeline, python=tool.python, calls=calls)


def recorded_failure(kernel: DumpedKernel) -> Failure:
    """The failure recorded in the dump."""
    died = _DIED.search(kernel.error)
    python = next((name for text, name in _PYTHON.items() if text in kernel.error), "")
    return failure.of(kernel.error, crashed=died[1] if died else python)


def _until(seen: KernelPasses) -> tuple[PassLink, ...]:
    """The pipeline's own passes up to the one that failed."""
    own = [link for link in seen.links if not link.inside]
    failed = seen.kernel.failed
    same = [link for link in seen.links if failed in (link.dump.name, link.dump.argument)]
    if not same:
        raise FactError(
            f"{failed} failed, and it is not an MLIR pass with a dumped input",
            where=seen.index.folder,
            why=seen.kernel.error[:2000] or None,
            hints=["invoke reduce FILE -- command {} reduces with any command that checks for the failure"],
        )
    last = same[-1].dump.number
    found = tuple(link for link in own if link.dump.number <= last)
    if not found:
        raise FactError(f"the pass that runs {failed} is not in this dump", where=seen.index.folder)
    return found


def _run(
    seen: KernelPasses, links: Sequence[PassLink], made: PassRunner, recorded: Failure, notes: tuple[str, ...]
) -> Isolated | None:
    """Run passes on the input of the first: without locations, or else with them but for folders."""
    given = seen.index.text(links[0].dump)
    limit = float(configs.load("passes-replay")["limits"]["pass"])
    best: Isolated | None = None
    with files.scratch("isolate-") as folder:
        oracle = made.oracle(folder, limit)
        try:
            plain = strip_locations.without("mlir", given.encode()).decode().strip() + "\n"
            for text, stripped in ((plain, True), (without_folders(given), False)):
                answer = oracle.ask(text)
                if not answer.began and not stripped and len(links) == 1:
                    raise _unreadable(seen, made, answer)
                if answer.failure is None:
                    continue
                found = Isolated(
                    seen, tuple(links), made, text, answer, answer.failure, recorded, stripped, notes
                )
                if found.same:
                    return found
                best = best or found
        finally:
            oracle.close()
    return best


def _unreadable(seen: KernelPasses, made: PassRunner, answer: OracleAnswer) -> FactError:
    return FactError(
        "the input of the failing pass cannot be parsed, or the pass cannot be added",
        where=made.who,
        why=failure.anonymous(answer.log.strip())[-2000:] or None,
        hints=[f"use the Triton that wrote the dump: {seen.index.triton or 'its version is unknown'}"],
    )


def without_folders(text: str) -> str:
    """IR whose locations name files without their folders."""
    return _FILE.sub(r'"\1"', text)


def _same(recorded: Failure, seen: Failure) -> bool:
    """Compare with the dump's failure, which knows less of a signal, and may lack a message."""
    if recorded == seen or recorded == Failure("failure", ""):
        return True
    if recorded.text.startswith(f"{failure.UNREACHABLE} in ") and seen.text.startswith(failure.UNREACHABLE):
        return seen.text.endswith(recorded.text.removeprefix(failure.UNREACHABLE))
    if recorded.kind == seen.kind == "signal":
        return recorded.text.partition(":")[0] == seen.text.partition(":")[0]
    return recorded.kind == "failure" == seen.kind
