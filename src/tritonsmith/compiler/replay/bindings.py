"""Inspect an interpreter's libtriton: the bindings that add passes, and the calls that a backend makes.

Both are cached in the workspace, by the library's path, size and time.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from tritonsmith.compiler import call, targets
from tritonsmith.compiler.call import UnansweredError, WorkerRequest
from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.compiler.replay import pass_chain, replayer
from tritonsmith.compiler.replay.pass_chain import PipelineForm
from tritonsmith.compiler.targets import Target
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Plan, Write, digest
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import (
    BindingRow,
    BindingsRequest,
    CallRequest,
    RehearsedRow,
    RehearseRequest,
)

Row = TypeVar("Row")
# Attributes of a module that name options of the compile; `triton_gpu.` up to 3.2.
_ATTRIBUTE = re.compile(r'"(?:ttg|triton_gpu)\.(num-warps|num-ctas)" = (\d+)')
# Bytes of a dump that are searched for them: the aliases of locations come first, and may be long.
_HEAD = 1 << 20


@dataclass(frozen=True)
class Call:
    """A binding with its arguments after the pass manager.

    Attributes:
        binding: `passes.ttgpuir.add_pipeline`, below libtriton.
        arguments: numbers, truth values and texts; `{"class": NAME}` for a new object of a class.
    """

    binding: str
    arguments: tuple[Any, ...] = ()

    def request(self) -> CallRequest:
        """Return the call as the worker's request spells it."""
        return CallRequest(self.binding, self.arguments)

    def __str__(self) -> str:
        words = ", ".join(
            argument["class"] if isinstance(argument, Mapping) else repr(argument)
            for argument in self.arguments
        )
        return f"{self.binding}({words})"


@dataclass(frozen=True)
class Binding:
    """The observed behaviour of a binding.

    Attributes:
        path: `passes.ttgpuir.add_pipeline`.
        tries: arguments and the resulting form of the pass; then the same with one argument changed each.
        error: reason why the observation is incomplete.
    """

    path: str
    tries: tuple[tuple[tuple[Any, ...], PipelineForm], ...]
    error: str = ""

    @property
    def argument(self) -> str:
        """The name of its pass on a command line; empty if it could not be observed."""
        return self.tries[0][1].argument if self.tries else ""

    def shown(self) -> dict[int, str]:
        """Return the position of each argument whose value an option shows, with that option's name."""
        options: dict[int, str] = {}
        if not self.tries:
            return options
        first, base = self.tries[0]
        before = dict(base.options)
        for arguments, form in self.tries[1:]:
            (position,) = (number for number, value_ in enumerate(arguments) if value_ != first[number])
            for name, value in form.options:
                # Both have to hold: an option may change with an argument without showing it, as one that is
                # derived from two.
                if before.get(name) != value and value == _spelled(arguments[position]):
                    options[position] = name
        return options

    def call(self, form: PipelineForm, rehearsed: Call | None = None) -> Call | str:
        """Return the call that adds a pass with these options, or the reason why there is none.

        Arguments that no option shows are taken from a rehearsed call of the same binding.
        """
        first, base = self.tries[0]
        shown, options = self.shown(), dict(form.options)
        arguments = list(first)
        # A new object of a class (`Mapping`) carries no option: the one of the observation will do.
        for position, value in enumerate(first):
            if position in shown and shown[position] in options:
                arguments[position] = _value(options[shown[position]], value)
            elif rehearsed and rehearsed.binding == self.path:
                arguments[position] = rehearsed.arguments[position]
            elif not isinstance(value, Mapping):
                return f"argument {position + 1} of {self.path} does not appear in the pass's options"
        mine = {**dict(base.options), **{shown[at]: options.get(shown[at], "") for at in shown}}
        # An option that no argument sets has the value that this release compiled in.
        different = sorted(name for name in {*mine, *options} if mine.get(name) != options.get(name))
        if different:
            name = different[0]
            return f"{self.path} adds the pass with {name}={mine.get(name, '')}, not {options.get(name, '')}"
        return Call(self.path, tuple(arguments))


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


def known_bindings(python: Path, space: Workspace) -> tuple[Binding, ...]:
    """Return every binding that adds a pass.

    Raises:
        FactError: the interpreter has no Triton, or one without such bindings.
    """
    # No table could list them for all releases. The worker calls each one on a pass manager of its own and
    # reads what that holds; then again with one argument changed, to see which option changes with it.
    return read_bindings(_cached_answer(python, space, BindingsRequest(), BindingRow))


def read_bindings(rows: Iterable[BindingRow]) -> tuple[Binding, ...]:
    """Parse the worker's report on bindings."""
    return tuple(
        Binding(
            row.binding,
            tuple((each.arguments, pass_chain.parse_form(each.form)) for each in row.forms),
            row.error,
        )
        for row in rows
    )


def resolve(
    known: Sequence[Binding], argument: str, form: PipelineForm | None, rehearsed: Call | None = None
) -> Call | str:
    """Return the call that adds a pass, or the reason why there is none.

    Args:
        known: all bindings.
        argument: name of the pass on a command line.
        form: the pass with its options; None if the dump does not contain them.
        rehearsed: the call by which this Triton's own backend adds it.
    """
    same = [binding for binding in known if binding.argument == argument]
    if not same:
        return f"no binding adds {argument}"
    # Only what this Triton would do itself is a fair guess: defaults of a binding need not be the backend's.
    if form is None:
        if rehearsed:
            return rehearsed
        plain = [binding for binding in same if not binding.tries[0][0]]
        if plain:
            return Call(plain[0].path)
        return f"the dump does not contain the options of {argument}, which {same[0].path} needs"
    # Two bindings may add one pass, such as a newer one with one more argument.
    reasons = []
    for binding in same:
        call = binding.call(form, rehearsed)
        if isinstance(call, Call):
            return call
        reasons.append(call)
    return "; ".join(reasons)


def _spelled(value: Any) -> str:
    """Return a value as a pass option spells it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(text: str, like: Any) -> Any:
    """Parse the text of an option; the inverse of `_spelled`. `like` has the type of the result."""
    if isinstance(like, bool):
        return text == "true"
    return int(text) if isinstance(like, int) else text


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
    request = RehearseRequest(
        (target.backend, target.arch, target.warp_size),
        dict(options),
        tuple(configs.load("kernels")["stand-ins"]["modules"]),
    )
    # The path of the input is no part of the key: which passes a backend adds hardly depends on the IR, and
    # each dump would be asked about anew.
    with_input = replace(request, input=str(input_) if input_ else "")
    rows = _cached_answer(python, space, with_input, RehearsedRow, key=request)
    calls = [
        TracedCall(Call(traced.binding, traced.arguments), traced.form, row.stage, traced.at)
        for row in rows
        for traced in row.calls
    ]
    return calls, {row.stage: row.error for row in rows if row.error}


def align(dumps: Sequence[Dump], traced_calls: Sequence[TracedCall]) -> Rehearsal:
    """Match dumps with calls: those at the same place of both sequences of passes."""
    inside = {link.dump.number for link in pass_chain.of(dumps) if link.inside}
    outer = [dump for dump in dumps if dump.number not in inside]
    mine = [dump.argument for dump in outer]
    theirs = [pass_chain.parse_form(traced.printed).argument for traced in traced_calls]
    calls, matched = {}, 0
    # Not one by one: a backend decides some passes by the IR, which the rehearsal has at the first pass only.
    for block in difflib.SequenceMatcher(None, mine, theirs, autojunk=False).get_matching_blocks():
        for offset in range(block.size):
            calls[outer[block.a + offset].number] = traced_calls[block.b + offset]
            matched = block.b + offset + 1
    # Complete means without a gap from the first call on. A dump may end early, at a pass that failed.
    return Rehearsal(calls, complete=bool(calls) and matched == len(calls))


def _options(index: DumpIndex, dumps: Sequence[Dump]) -> dict[str, int]:
    """Return the options of the compile that the IR itself names."""
    for dump in dumps:
        head = index.content(dump, edited=True)[:_HEAD]
        attributes = _ATTRIBUTE.findall(head.decode("utf-8", errors="replace"))
        if attributes:
            return {name.replace("-", "_"): int(value) for name, value in attributes}
    return {}


def _cached_answer(
    python: Path,
    space: Workspace,
    request: WorkerRequest,
    row: type[Row],
    *,
    key: WorkerRequest | None = None,
) -> list[Row]:
    """Return the worker's answer, cached by `key`: the part of the request that the answer depends on."""
    # Not by the version: a build keeps its version while its sources change.
    library = replayer.library(python)
    about = library.stat()
    name = digest(str(library), about.st_size, about.st_mtime_ns, call.source_text(), text_of(key or request))
    kept = space.root / "passes" / "bindings" / f"{request.COMMAND}-{name}.jsonl"
    if kept.is_file():
        return call.results(kept, row)
    try:
        rows = call.ask(
            python,
            request,
            row,
            space,
            timeout=configs.load("passes-replay")["limits"]["asking"],
            change={"PYTHONDONTWRITEBYTECODE": "1"},
        )
    except UnansweredError as error:
        raise FactError(
            "cannot inspect the bindings of this Triton",
            where=python,
            why=error.why,
            hints=[
                f"check that this works: {python} -c 'import triton'",
                "or use another interpreter: --python PATH",
            ],
        ) from error
    space.claim()
    text = "".join(text_of(each) + "\n" for each in rows)
    space.run(Plan("keep", (Write(kept, text, phase="keep"),)), "passes.replay", quiet=True)
    return rows
