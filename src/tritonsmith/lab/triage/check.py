"""`--check "out ~ reference"`: what has to hold of a script's values when it has ended.

Builds in the tool's environments that say more of a fault: with assertions, or with ASan.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tritonsmith.build import sanitized_run
from tritonsmith.compiler import call, tritons
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.text import split_outside_brackets
from tritonsmith.facts import libtriton
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.triage.variant import TriageChange
from tritonsmith.worker.messages import CheckedRow, CheckRequest

_CLOSE = " ~ "
_TOLERANCE = re.compile(r"(rtol|atol)=(\d*\.?\d+(?:e-?\d+)?)", re.ASCII)
_FLAG = re.compile("-")
_HINTS = (
    '--check "out ~ reference": values or functions of the script\'s top level, compared as torch does',
    '--check "out ~ reference, rtol=1e-2, atol=1e-2"',
    '--check "torch.equal(out, reference)", or the name of a function that asserts',
)


@dataclass(frozen=True)
class ResultCheck:
    """One check.

    Attributes:
        text: as it was given.
        left: an expression in the script's names.
        right: what it has to be close to; empty where the left one says by itself whether it holds.
        rtol: relative tolerance; None for torch's own, by the dtypes.
        atol: absolute tolerance; both are given, or the other one is 0.
    """

    text: str
    left: str
    right: str = ""
    rtol: float | None = None
    atol: float | None = None

    def argv(self, argv: Sequence[str], folder: Path, name: str) -> tuple[tuple[str, ...], Path]:
        """The program followed by the check, and the file that will say whether it holds.

        Args:
            argv: `python script.py`, with flags of Python and arguments of the script.
            folder: for the request and the result.
            name: of both.
        """
        at = script_of(argv)
        request, result = folder / f"{name}.request.json", folder / f"{name}.json"
        content = CheckRequest(self.left, self.right, self.rtol, self.atol, str(result))
        python = argv[:at] or ("python",)
        return (*python, *call.script(content, request), *argv[at:]), result


def parse(text: str) -> ResultCheck:
    """Read one.

    Raises:
        UsageError: it is not Python, or a tolerance is not a number.
    """
    left, *rest = split_outside_brackets(text, _CLOSE, quotes="\"'")
    if len(rest) > 1:
        raise UsageError(f"--check compares two, not {len(rest) + 1}", hints=_HINTS)
    right, *words = split_outside_brackets(rest[0], ",", quotes="\"'") if rest else [""]
    tolerances: dict[str, float] = {}
    for word in words:
        if not (match := _TOLERANCE.fullmatch(word)):
            raise UsageError(f"--check: {word!r} is not a tolerance", hints=_HINTS)
        tolerances[match[1]] = float(match[2])
    for expression in (left, right) if rest else (left,):
        try:
            compile(expression, "--check", "eval")
        except SyntaxError as error:
            raise UsageError(f"--check: {expression!r} is not Python", why=error.msg, hints=_HINTS) from error
    return ResultCheck(text, left, right, **tolerances)


def script_of(argv: Sequence[str], what: str = "--check") -> int:
    """Return the position of the script in a command.

    Args:
        argv: the command.
        what: wants one.

    Raises:
        UsageError: the command is not `python script.py`.
    """
    at = next((number for number, word in enumerate(argv) if word.endswith(".py")), -1)
    if at < 0 or (at and "python" not in Path(argv[0]).name) or not all(map(_FLAG.match, argv[1:at])):
        raise UsageError(f"{what} is about a Python script", hints=["-- python script.py ARGUMENTS"])
    return at


def read(result: Path) -> tuple[str, str]:
    """Status and text; empty where the script ended before the check."""
    rows = call.results(result, CheckedRow)
    return (rows[0].status, rows[0].text) if rows else ("", "")


BuildKind = Literal["", "assertions", "address"]
_ASAN: BuildKind = "address"
_FRAME = re.compile(r"#\d+ 0x[0-9a-f]+ in (?P<name>.+) (?P<place>\S+:\d+(?::\d+)?)$")
_HEAD = re.compile(r"AddressSanitizer: (\S+)")
_DIGITS = 10  # of a commit that is shown


@dataclass(frozen=True)
class WitnessBuild:
    """A Triton that was built in an environment, and is installed in it.

    Attributes:
        env: where.
        about: which build it is, against the one under test.
    """

    env: EnvDir
    about: str


def find(kind: BuildKind, python: Path, triton: str, space: Workspace) -> WitnessBuild:
    """Find a build: one of the same commit as that under test, otherwise the newest.

    Args:
        kind: what it has to have.
        python: the interpreter beside the Triton under test.
        triton: the version of that.
        space: whose environments are looked at.

    Raises:
        FactError: there is none, or the Triton under test is one.
    """
    every = dict(_builds(space))
    own = next((receipt for env, receipt in every.items() if env.python == python), None)
    if _is(kind, own, python):
        raise FactError(f"this Triton itself is {_title(kind)}: its message is the symptom")
    fitting = [
        env for env, receipt in every.items() if env.python != python and _is(kind, receipt, env.python)
    ]
    mine = str(own.get("commit", "")) if own else ""
    if not fitting:
        name = "asan" if kind == _ASAN else "dev"
        tasks = ("setup-mlir", "build-triton", "install-triton")
        raise FactError(f"needs {_title(kind)}", hints=["; ".join(command(task, env=name) for task in tasks)])
    env = max(
        fitting,
        key=lambda candidate: (
            every[candidate].get("commit") == mine != "",
            str(every[candidate]["finished"]),
        ),
    )
    return WitnessBuild(env, _about(env, every[env], mine, triton))


def test(
    change: TriageChange,
    build: WitnessBuild,
    space: Workspace,
    look: Callable[[TriageChange, Path], Observation],
    log: Callable[[str], str],
) -> Observation:
    """Test the subject with a build; a failure that the build does not explain is no test.

    Args:
        change: the row.
        build: who is asked.
        space: the workspace.
        look: at the symptom, by an interpreter and under variables.
        log: returns what a test printed, by its change's name.

    Raises:
        SmithError: its sanitizer's runtime is missing.
    """
    folder, fault = build.env.path / "triage", ""
    if change.build == _ASAN:
        before, variables = sanitized_run.environment(_ASAN, build.env, folder, space)
        space.run(before, "triage", quiet=True)
        change = replace(change, variables={**change.variables, **variables})
    observation = look(replace(change, says=""), build.env.python)
    if change.build == _ASAN:
        fault = short(*sanitized_run.first_error(folder, _ASAN))
    elif message := re.search(change.says, log(change.name)):
        fault = message[1]
    if fault:
        return replace(observation, verdict=Verdict.OTHER, figures=f"{fault}, {build.about}", why="")
    if observation.verdict in (Verdict.OTHER, Verdict.SKIP):
        why = f"{change.name} does not report it: {observation.why or observation.figures}"
        return replace(observation, verdict=Verdict.SKIP, figures=build.about, why=why)
    return replace(observation, figures=f"it reports nothing, {build.about}")


def short(head: str, lines: Sequence[str]) -> str:
    """`heap-buffer-overflow: READ of size 4 in f Coalesce.cpp:100:44`; empty without an error.

    The frame is the first one with a line that is not the runtime's own, as of `memcpy`.
    """
    kind = _HEAD.search(head)
    if not kind:
        return head
    access = next((line.strip().partition(" at ")[0] for line in lines if " of size " in line), "")
    frames = (frame for line in lines if (frame := _FRAME.search(line)))
    mine = next((frame for frame in frames if "sanitizer" not in frame["place"]), None)
    place = f"in {_name(mine['name'])} {Path(mine['place']).name}" if mine else ""
    return f"{kind[1]}: {' '.join(filter(None, (access, place)))}".removesuffix(": ")


def _name(signature: str) -> str:
    """`a::f` of `a::f(int) const`; `(anonymous namespace)` has a parenthesis of its own."""
    return re.sub(r"(?<!^)(?<!:)\(.*", "", signature)


def _builds(space: Workspace) -> Iterator[tuple[EnvDir, Mapping[str, Any]]]:
    """Environments with the receipt of what made their library last: a build of some targets did not."""
    for path in sorted((space.root / "envs").glob("*/receipts/build-triton.json")):
        env = space.env(path.parent.parent.name)
        built, installed = receipts.read(path), receipts.read(env.receipt("install-triton"))
        every = [
            receipt
            for receipt in (installed, built)
            if receipt and (receipt is installed or not receipt.get("targets"))
        ]
        if every:
            yield env, max(every, key=lambda receipt: str(receipt["finished"]))


def _is(kind: BuildKind, receipt: Mapping[str, Any] | None, python: Path) -> bool:
    """Report whether the library that an interpreter loads has it: another install may have replaced it."""
    package = Path(receipt.get("source", "")) / "python" / "triton" if receipt else tritons.package(python)
    if not tritons.installed(python):
        return False
    try:
        libraries = [libtriton.read(path) for path in libtriton.find(package)]
    except OSError:
        return False
    if kind == _ASAN:
        return any(library.asan for library in libraries)
    known = configs.load("triage")["builds"]["assertions"]
    return any(library.asserts and not library.asan for library in libraries) and (
        not receipt or receipt.get("build_type") in known
    )


def _title(kind: BuildKind) -> str:
    return "a build with AddressSanitizer" if kind == _ASAN else "a build with assertions"


def _about(env: EnvDir, receipt: Mapping[str, Any], mine: str, triton: str) -> str:
    commit = str(receipt.get("commit", ""))[:_DIGITS] or "no commit"
    changed = " with changes" if receipt.get("dirty") else ""
    if mine and mine == receipt.get("commit"):
        same = ", as the one under test" if not changed else ""
    elif mine:
        same = f", not {mine[:_DIGITS]} as the one under test"
    else:
        same = f", which need not be that of {triton}"
    return f"by env {env.name} of {commit}{changed}{same}"
