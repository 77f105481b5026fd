"""The same kernels by another ptxas: of the same PTX, so that nothing else is changed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.core.command_line import command
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError
from tritonsmith.core.text import version_key
from tritonsmith.facts import machine
from tritonsmith.lab.model import Observation, Verdict
from tritonsmith.lab.triage.variant import TriageChange
from tritonsmith.lab.triage.verdict import not_tested
from tritonsmith.wheels import ptxas
from tritonsmith.wheels.ptxas import RegistryPtxas

OPTION = "ptx_version"  # of the backend, since 3.0
# It is too old for what it is given; ptxas 12.4, 12.9 and 13.4 say so.
_TOO_OLD = re.compile(
    r"Unsupported \.version [^\n]*|[^\n]*requires PTX ISA[^\n]*|Value '\w+' is not defined for option[^\n]*"
    r"|Unknown option[^\n]*"
)


@dataclass(frozen=True)
class OwnPtxas:
    """The ptxas that assembles the kernels when nothing is changed.

    Attributes:
        python: the interpreter beside its Triton.
        package: folder of that Triton.
        capabilities: of the GPUs that are compiled for: `9.0`.
        asked: the version of PTX that the kernel asks for, as Triton has it: 87; None for none.
        scratch: a folder for a file.
    """

    python: Path
    package: Path
    capabilities: frozenset[str]
    asked: int | None
    scratch: Path


def test(
    change: TriageChange,
    triton: str,
    own: OwnPtxas,
    look: Callable[[TriageChange], Observation],
    log: Callable[[str], str],
) -> Observation:
    """Under another ptxas, and, if the symptom is gone, under its own with the same version of PTX.

    Triton makes the newest PTX that its ptxas takes. So both get the newest that both take: then all that
    is different is who assembles it.

    Args:
        change: which other.
        triton: version.
        own: what is there.
        look: at the symptom, under options and variables.
        log: returns what a test printed, by its change's name.
    """
    try:
        mine = _program(triton, own)
        version = ptxas.version_of(mine)
        other = _other(change, triton, own, version)
        level = _level(mine, other.path, own)
    except InterruptedRunError:
        raise
    except SmithError as error:
        return not_tested(error)
    options, variables = {OPTION: level}, ptxas.variables(other.path, triton)
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


def _program(triton: str, own: OwnPtxas) -> Path:
    """Return its own ptxas, or the one that the user has put in its place.

    Raises:
        FactError: there is none, or more than one.
    """
    programs = set()
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
    """Return the other one, installed.

    Raises:
        SmithError: there is none, or it cannot be had.
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
    """Return the newest PTX that both take, as Triton has it.

    Raises:
        FactError: one of them does not say, or the kernel asks for a newer one.
    """
    levels = [ptxas.newest_ptx(program, own.scratch) for program in (mine, other)]
    if "" in levels:
        raise FactError("ptxas does not report which PTX versions it accepts")
    least = min(levels, key=version_key)
    level = int(least.replace(".", ""))
    if own.asked and own.asked > level:
        raise FactError(f"the kernel asks for PTX {own.asked // 10}.{own.asked % 10}, and one takes {least}")
    return own.asked or level
