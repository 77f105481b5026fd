"""Inspect an interpreter's libtriton: the bindings that add passes, and the calls that a backend makes.

Both are cached in the workspace, by the library's path, size and time.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith import worker
from tritonsmith.compiler import targets
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.compiler.replay import bindings, pass_chain, pipeline, replayer
from tritonsmith.compiler.replay.bindings import Binding, Call
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Plan, Write, digest
from tritonsmith.core.plan.process import query

# Attributes of a module that name options of the compile; `triton_gpu.` up to 3.2.
_ATTRIBUTE = re.compile(r'"(?:ttg|triton_gpu)\.(num-warps|num-ctas)" = (\d+)')
_HEAD = 1 << 20  # bytes of a dump in which they stand: after the locations


@dataclass(frozen=True)
class TracedCall:
    """A pass that a backend would add.

    Attributes:
        call: the binding and its arguments.
        printed: its pipeline form.
        stage: such as `ttgir`.
        at: file and line of the backend's Python.
    """

    call: Call
    printed: str
    stage: str = ""
    at: tuple[str, int] = ("", 0)


@dataclass(frozen=True)
class Rehearsal:
    """The calls of a backend's pipelines, matched with the dumps of a kernel.

    Attributes:
        calls: number of a dump to the call that adds its pass.
        complete: the dump has every pass that the backend would run, up to its end, so that a pass without a
            call runs inside another pass.
    """

    calls: Mapping[int, TracedCall]
    complete: bool

    @property
    def own(self) -> frozenset[int] | None:
        """The numbers of the dumps whose passes the pipelines run directly; None if unknown."""
        return frozenset(self.calls) if self.complete else None


NOTHING = Rehearsal({}, complete=False)


def known(python: Path, space: Workspace) -> tuple[Binding, ...]:
    """Return every binding that adds a pass.

    Raises:
        FactError: the interpreter has no Triton, or one without such bindings.
    """
    return bindings.read(_asked(python, space, "bindings", {}))


def rehearse(
    python: Path, space: Workspace, index: DumpIndex, kernel: DumpedKernel, options: Mapping[str, Any]
) -> Rehearsal:
    """Match a kernel's passes with the calls that this Triton's backend makes for the kernel's target.

    Args:
        python: an interpreter that has Triton.
        space: the workspace.
        index: the dump.
        kernel: a kernel of it.
        options: of the backend; those that the IR names may be left out.

    Raises:
        FactError: the interpreter has no Triton, or no backend for this target.
    """
    dumps = pass_chain.passes(index.of(kernel.name))
    if not kernel.target or not dumps:
        return NOTHING
    target = targets.parse(kernel.target)
    all_options = {**_options(index, dumps), **options}
    calls, _ = backend_calls(python, space, target, all_options, input_=index.path(dumps[0]).absolute())
    return align(dumps, calls)


def backend_calls(
    python: Path,
    space: Workspace,
    target: Target,
    options: Mapping[str, Any],
    *,
    input_: Path | None = None,
) -> tuple[list[TracedCall], dict[str, str]]:
    """Return the calls that this Triton's backend makes for a target, and the errors of failed stages.

    Args:
        python: an interpreter that has Triton.
        space: the workspace.
        target: a GPU.
        options: of the compile.
        input_: the first IR; an empty module if None.

    Raises:
        FactError: the interpreter has no Triton, or no backend for this target.
    """
    request = {
        "target": [target.backend, target.arch, target.warp_size],
        "options": dict(options),
        "stand-ins": configs.load("kernels")["stand-ins"]["modules"],
    }
    rows = _asked(python, space, "rehearse", request, {"input": str(input_) if input_ else ""})
    calls = [
        TracedCall(
            Call(call["binding"], tuple(call["arguments"])),
            call["form"],
            row["stage"],
            (call["at"][0], call["at"][1]),
        )
        for row in rows
        for call in row["calls"]
    ]
    return calls, {row["stage"]: row["error"] for row in rows if row["error"]}


def align(dumps: Sequence[Dump], made: Sequence[TracedCall]) -> Rehearsal:
    """Match dumps with calls: those at the same place of both sequences of passes."""
    inside = {link.dump.number for link in pass_chain.of(dumps) if link.inside}
    outer = [dump for dump in dumps if dump.number not in inside]
    mine = [dump.argument for dump in outer]
    theirs = [pipeline.parse(call.printed).argument for call in made]
    calls, matched = {}, 0
    for block in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            calls[outer[block.a + offset].number] = made[block.b + offset]
            matched = block.b + offset + 1
    return Rehearsal(calls, complete=bool(calls) and matched == len(calls))


def _options(index: DumpIndex, dumps: Sequence[Dump]) -> dict[str, int]:
    """Return the options of the compile that the IR itself names."""
    for dump in dumps:
        attributes = _ATTRIBUTE.findall(index.content(dump)[:_HEAD].decode("utf-8", errors="replace"))
        if attributes:
            return {name.replace("-", "_"): int(value) for name, value in attributes}
    return {}


def _asked(
    python: Path,
    space: Workspace,
    what: str,
    request: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Return the worker's answer, cached by the request; `more` is sent too and does not affect it."""
    library = replayer.library(python)
    about = library.stat()
    key = digest(str(library), about.st_size, about.st_mtime_ns, worker.text(), request)
    kept = space.root / "passes" / "bindings" / f"{what}-{key}.jsonl"
    if kept.is_file():
        return [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    argv = (str(python), str(worker.FOLDER), what, json.dumps({**request, **(more or {})}))
    change = {
        "TRITON_INTERPRET": None,
        "TRITON_HOME": str(space.root / "kernels"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    answer = query(argv, change=change, timeout=configs.load("passes-replay")["limits"]["asking"])
    text = answer.out if answer else ""
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if not answer or answer.code or not rows:
        refused = rows[-1].get("refused", "") if rows else ""
        raise FactError(
            "cannot inspect the bindings of this Triton",
            where=python,
            why=refused or (answer.err[-2000:] if answer else "the interpreter did not respond in time"),
            hints=[
                f"check that this works: {python} -c 'import triton'",
                "or use another interpreter: --python PATH",
            ],
        )
    space.claim()
    text = "".join(json.dumps(row) + "\n" for row in rows)
    space.run(Plan("keep", (Write(kept, text, phase="keep"),)), "passes.replay", quiet=True)
    return rows
