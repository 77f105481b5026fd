"""The kernels of a triage by other tools: another ptxas, or a Triton build that reports more of a fault."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tritonsmith.build import sanitized_run
from tritonsmith.compiler import tritons
from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.envs import receipts, workspace
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError
from tritonsmith.core.text import version_key
from tritonsmith.facts import libtriton, machine
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.triage.variant import TriageChange
from tritonsmith.lab.triage.verdict import not_tested
from tritonsmith.wheels import ptxas
from tritonsmith.wheels.ptxas import RegistryPtxas

PTX_VERSION = "ptx_version"  # of the backend, since 3.0
# A ptxas that is too old for what it is given, in the words of 12.4, 12.9 and 13.4.
_TOO_OLD = re.compile(
    r"Unsupported \.version [^\n]*|[^\n]*requires PTX ISA[^\n]*|Value '\w+' is not defined for option[^\n]*"
    r"|Unknown option[^\n]*"
)
BuildKind = Literal["", "assertions", "address"]
_ASAN: BuildKind = "address"
_FRAME = re.compile(r"#\d+ 0x[0-9a-f]+ in (?P<name>.+) (?P<place>\S+:\d+(?::\d+)?)$")
_HEAD = re.compile(r"AddressSanitizer: (\S+)")
_DIGITS = 10  # of a commit that is shown


@dataclass(frozen=True)
class OwnPtxas:
    """The ptxas that assembles the kernels when nothing is changed.

    Attributes:
        python: the interpreter beside its Triton.
        package: folder of that Triton.
        capabilities: of the GPUs that are compiled for: `9.0`.
        ptx: the version of PTX that the kernel asks for, as Triton writes it: 87; None if it asks for none.
        scratch: a folder for a file.
    """

    python: Path
    package: Path
    capabilities: frozenset[str]
    ptx: int | None
    scratch: Path


def test_by_ptxas(
    change: TriageChange,
    triton: str,
    own: OwnPtxas,
    look: Callable[[TriageChange], Observation],
    log: Callable[[str], str],
) -> Observation:
    """Test by another ptxas and, if the symptom is gone, by its own with the same version of PTX.

    Args:
        change: names the other ptxas.
        triton: the version of Triton.
        own: its own ptxas.
        look: looks for the symptom, under options and variables.
        log: returns what a test printed, by its change's name.
    """
    try:
        mine = _own_program(triton, own)
        version = ptxas.version_of(mine)
        other = _other(change, triton, own, version)
        # Triton writes the newest PTX that its ptxas takes. Both get the newest that both take, so that
        # nothing differs but the program that assembles it.
        level = _level(mine, other.path, own)
    except InterruptedRunError:
        raise
    except SmithError as error:
        return not_tested(error)
    options, variables = {PTX_VERSION: level}, ptxas.variables(other.path, triton)
    observation = look(replace(change, options=options, variables=variables))
    by = f"PTX {level // 10}.{level % 10} by ptxas {other.version} instead of {version}"
    swapped_observation = replace(
        observation,
        figures=", ".join(filter(None, (observation.figures, by))),
        swapped=(version, other.version),
    )
    if observation.verdict is not Verdict.GOOD:  # a refusal may look like the failure that is tested
        if refused := _TOO_OLD.search(log(change.name)):
            return replace(
                swapped_observation,
                verdict=Verdict.SKIP,
                figures="",
                why=f"ptxas {other.version}: {refused[0].strip()}",
            )
    else:
        # The lower version of PTX alone may make the symptom go.
        control = look(replace(change, name=f"{change.name}, the PTX", options=options))
        if control.verdict is not Verdict.BAD:
            why = "with its own ptxas, this version of PTX does not show it either"
            return replace(swapped_observation, verdict=Verdict.SKIP, why=why)
    return swapped_observation


def _own_program(triton: str, own: OwnPtxas) -> Path:
    """Return its own ptxas, or the one that the user has put in its place.

    Raises:
        FactError: there is none, or more than one.
    """
    programs = set()
    # Newer wheels have a `ptxas-blackwell` beside `ptxas`: two GPUs may need two programs.
    for capability in own.capabilities:
        row = ptxas.row_for(triton, capability)
        named = os.environ.get(row["variable"], "")
        programs.add(Path(named) if named else own.package / "backends" / "nvidia" / "bin" / row["name"])
    if len(programs) != 1:
        what = "its GPUs have several ptxas" if programs else "nothing was compiled to PTX"
        raise FactError(what, hints=["--target with one GPU"] if programs else [])
    [program] = programs
    if not program.is_file():
        raise FactError(f"its own ptxas is not at {program}")
    return program


def _other(change: TriageChange, triton: str, own: OwnPtxas, version: str) -> RegistryPtxas:
    """Return the other ptxas, installed.

    Raises:
        SmithError: there is none, or it cannot be downloaded.
    """
    if not version:
        raise FactError("its own ptxas does not report its version")
    if change.assembler == "newer":
        newest = ptxas.newest_accepted(triton)
    else:
        newest = ptxas.shipped_before(triton, max(own.capabilities, key=version_key), version)
    if not newest or (change.assembler == "newer" and version_key(newest) <= version_key(version)):
        raise FactError(f"no {change.assembler} ptxas than {version} is known for this Triton")
    prepared = ptxas.prepare(newest, workspace.default(), machine.read(), ptxas.pip_python(own.python))
    try:
        ptxas.install(prepared, workspace.default(), silent=True)
    except InterruptedRunError:
        raise
    except SmithError as error:
        hints = [f"{command('up --ptxas', newest)} gets it"]
        raise FactError(f"no ptxas {newest} is available", why=error.what, hints=hints) from error
    return prepared


def _level(mine: Path, other: Path, own: OwnPtxas) -> int:
    """Return the newest PTX that both take, as Triton writes it.

    Raises:
        FactError: one of them does not say, or the kernel asks for a newer one.
    """
    levels = [ptxas.newest_ptx(program, own.scratch) for program in (mine, other)]
    if "" in levels:
        raise FactError("ptxas does not report which PTX versions it accepts")
    least = min(levels, key=version_key)
    level = int(least.replace(".", ""))
    if own.ptx and own.ptx > level:
        raise FactError(
            f"the kernel asks for PTX {own.ptx // 10}.{own.ptx % 10}, but one of the two takes only {least}"
        )
    return own.ptx or level


@dataclass(frozen=True)
class WitnessBuild:
    """A Triton that was built in an environment, and is installed in it.

    Attributes:
        env: the environment.
        about: the build in words, in comparison with the one under test.
    """

    env: EnvDir
    about: str


def find_build(kind: BuildKind, python: Path, triton: str, space: Workspace) -> WitnessBuild:
    """Find a build: one of the same commit as that under test, otherwise the newest.

    Args:
        kind: the kind of build.
        python: the interpreter beside the Triton under test.
        triton: the version of that Triton.
        space: the workspace whose environments are searched.

    Raises:
        FactError: there is none, or the Triton under test is one.
    """
    every = dict(_builds(space))
    own = next((receipt for env, receipt in every.items() if env.python == python), None)
    if _is_built(kind, own, python):
        raise FactError(f"this Triton itself is {_build_title(kind)}: its message is the symptom")
    fitting = [
        env for env, receipt in every.items() if env.python != python and _is_built(kind, receipt, env.python)
    ]
    mine = str(own.get("commit", "")) if own else ""
    if not fitting:
        name = "asan" if kind == _ASAN else "dev"
        tasks = ("setup-mlir", "build-triton", "install-triton")
        raise FactError(
            f"needs {_build_title(kind)}", hints=["; ".join(command(task, env=name) for task in tasks)]
        )
    env = max(
        fitting,
        key=lambda candidate: (
            every[candidate].get("commit") == mine != "",
            str(every[candidate]["finished"]),
        ),
    )
    return WitnessBuild(env, _about_build(env, every[env], mine, triton))


def test_by_build(
    change: TriageChange,
    build: WitnessBuild,
    space: Workspace,
    look: Callable[[TriageChange, Path], Observation],
    log: Callable[[str], str],
) -> Observation:
    """Test the subject with a build; a failure that the build does not explain is no test.

    Args:
        change: the row.
        build: the build that runs it.
        space: the workspace.
        look: looks for the symptom, by an interpreter and under variables.
        log: returns what a test printed, by its change's name.

    Raises:
        SmithError: its sanitizer's runtime is missing.
    """
    folder, fault = build.env.path / "triage", ""
    if change.build == _ASAN:
        before, variables = sanitized_run.environment(_ASAN, build.env, folder, space)
        space.run(before, "triage", quiet=True)
        change = replace(change, variables={**change.variables, **variables})
    # The pattern is searched for below: in `look` it would make every other failure a skip.
    observation = look(replace(change, says=""), build.env.python)
    if change.build == _ASAN:
        fault = short_error(*sanitized_run.first_error(folder, _ASAN))
    elif message := re.search(change.says, log(change.name)):
        fault = message[1]
    if fault:
        return replace(observation, verdict=Verdict.OTHER, figures=f"{fault}, {build.about}", why="")
    # Another commit may fail for a reason of its own, which tells nothing of the symptom.
    if observation.verdict in (Verdict.OTHER, Verdict.SKIP):
        why = f"{change.name} does not report it: {observation.why or observation.figures}"
        return replace(observation, verdict=Verdict.SKIP, figures=build.about, why=why)
    return replace(observation, figures=f"it reports nothing, {build.about}")


def short_error(head: str, lines: Sequence[str]) -> str:
    """Return `heap-buffer-overflow: READ of size 4 in f Coalesce.cpp:100:44`; empty without an error."""
    kind = _HEAD.search(head)
    if not kind:
        return head
    access = next((line.strip().partition(" at ")[0] for line in lines if " of size " in line), "")
    # The topmost frames may be ASan's own, as for `memcpy`, or of a library without line numbers.
    frames = (frame for line in lines if (frame := _FRAME.search(line)))
    mine = next((frame for frame in frames if "sanitizer" not in frame["place"]), None)
    place = f"in {_function(mine['name'])} {Path(mine['place']).name}" if mine else ""
    return f"{kind[1]}: {' '.join(filter(None, (access, place)))}".removesuffix(": ")


def _function(signature: str) -> str:
    """Return `a::f` of `a::f(int) const`."""
    # `(anonymous namespace)::f` begins with a parenthesis that is no argument list.
    return re.sub(r"(?<!^)(?<!:)\(.*", "", signature)


def _builds(space: Workspace) -> Iterator[tuple[EnvDir, Mapping[str, Any]]]:
    """Yield environments with the receipt of what made their library last."""
    for path in sorted((space.root / "envs").glob("*/receipts/build-triton.json")):
        env = space.env(path.parent.parent.name)
        built, installed = receipts.read(path), receipts.read(env.receipt("install-triton"))
        every = [
            receipt
            for receipt in (installed, built)
            # `build-triton triton-opt` may leave an older library where it is.
            if receipt and (receipt is installed or not receipt.get("targets"))
        ]
        if every:
            yield env, max(every, key=lambda receipt: str(receipt["finished"]))


def _is_built(kind: BuildKind, receipt: Mapping[str, Any] | None, python: Path) -> bool:
    """Report whether the library that an interpreter loads is of a kind."""
    # The library is read, not the receipt alone: another install may have replaced it since.
    package = Path(receipt.get("source", "")) / "python" / "triton" if receipt else tritons.package(python)
    if not tritons.installed(python):
        return False
    try:
        libraries = [libtriton.read(path) for path in libtriton.find(package)]
    except OSError:
        return False
    if kind == _ASAN:
        return any(library.asan for library in libraries)
    # ASan changes the layout of memory, so a fault that it hides would count as gone with assertions.
    known = configs.load("triage")["builds"]["assertions"]
    return any(library.asserts and not library.asan for library in libraries) and (
        not receipt or receipt.get("build_type") in known
    )


def _build_title(kind: BuildKind) -> str:
    return "a build with AddressSanitizer" if kind == _ASAN else "a build with assertions"


def _about_build(env: EnvDir, receipt: Mapping[str, Any], mine: str, triton: str) -> str:
    commit = str(receipt.get("commit", ""))[:_DIGITS] or "no commit"
    changed = " with changes" if receipt.get("dirty") else ""
    if mine and mine == receipt.get("commit"):
        # A build with changes need not be of the same sources, though the commit is the same.
        same = ", as the one under test" if not changed else ""
    elif mine:
        same = f", not {mine[:_DIGITS]} as the one under test"
    else:
        same = f", which need not be that of {triton}"
    return f"by env {env.name} of {commit}{changed}{same}"
