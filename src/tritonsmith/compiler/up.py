"""Create an environment with a released wheel, and test it by a compile for two vendors: `up`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonsmith.compiler import smoke_test
from tritonsmith.compiler import targets as gpu_targets
from tritonsmith.compiler.interpreter import HostPrograms
from tritonsmith.compiler.targets import Target
from tritonsmith.core import process
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.session import Session
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import Plan, Run
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.wheels import venv

_PIP = 120.0  # seconds; it unpacks one wheel


@dataclass(frozen=True)
class PreparedUp:
    """The plan of `up`.

    Attributes:
        plan: venv, wheel, compile.
        targets: the targets of the test compile.
    """

    plan: Plan
    targets: tuple[Target, ...]


def prepare(settings: Settings, env: EnvDir, programs: HostPrograms) -> PreparedUp:
    """Make the plan for an environment whose settings name a wheel.

    Raises:
        FactError: the base interpreter does not exist.
    """
    wheel = settings.triton.wheel
    requirement = "triton" if wheel == "newest" else f"triton=={wheel}"
    base = venv.base_interpreter(settings.python.interpreter)
    targets = gpu_targets.default()
    torch = (venv.torch_requirement(settings.python.torch),) if settings.python.torch != "none" else ()
    plan = venv.plan(env, base, *torch, (requirement,)) + smoke_test.plan(
        env.path, env.python, targets, programs
    )
    return PreparedUp(plan, targets)


def execute(prepared: PreparedUp, session: Session) -> dict[str, Any]:
    """Run the plan.

    Returns:
        The worker's answer: versions, and per target the stages with their files and sizes in bytes.

    Raises:
        StepError: the wheel could not be installed, or a compile failed.
    """
    try:
        session.run(prepared.plan)
    except CommandFailedError as failure:
        raise _explain(failure) from failure
    answer = smoke_test.read_response(session.env.path)
    session.leave_receipt({"env": session.env.name, "answer": answer})
    return answer


def _of_pip(failure: CommandFailedError) -> list[str]:
    """Return the reason why a new environment has no pip; empty for other failures."""
    # `venv` reports only the exit code of `ensurepip`, so that is run again for its message.
    argv = failure.step.argv if isinstance(failure.step, Run) else ()
    if "venv" not in argv or "ensurepip" not in "\n".join(failure.output):
        return []
    again = process.query((f"{argv[-1]}/bin/python", "-m", "ensurepip", "--default-pip"), timeout=_PIP)
    return again.err.splitlines()[-4:] if again and again.code else []


def _explain(failure: CommandFailedError) -> StepError:
    output = [line for line in failure.output if line.strip()]
    lines = [line for line in output if not line.startswith("WARNING: Retrying")][-12:]
    lines += _of_pip(failure)
    hints = [f"full log: {failure.log}"]
    if failure.step.phase == venv.PHASE and len(lines) < len(output):
        hints = ["check that pip can reach its index; behind a proxy, set https_proxy", *hints]
    elif failure.step.phase == venv.PHASE:
        hints = [
            "on Debian, venv is a separate package: apt install python3-venv",
            "check that pip can reach its index: pip download triton",
            *hints,
        ]
    return StepError(
        f"{failure.step.phase} failed (exit code {failure.code})",
        where=failure.log,
        why="\n".join(lines),
        hints=hints,
    )
