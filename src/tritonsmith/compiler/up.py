"""Create an environment with a released wheel, and prove that its Triton works: `up`.

The proof needs no GPU: the bundled vector-add is compiled for NVIDIA and for AMD.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tritonsmith.compiler import call, run, source, tritons
from tritonsmith.compiler import targets as gpu_targets
from tritonsmith.compiler.interpreter import HostPrograms, Interpreter, worker_variables
from tritonsmith.compiler.request import CompileRequest, expand_points
from tritonsmith.compiler.targets import Target
from tritonsmith.core import process, untrusted
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import MakeDir, Plan, Run, Step, digest, files
from tritonsmith.core.plan.steps.base import CommandFailedError, StepTools
from tritonsmith.wheels import venv
from tritonsmith.worker.messages import CompiledRow, CompileHead

PHASE = "compile vector-add"
KERNEL = "vector_add"
FILE = Path(__file__).parent / "examples" / "vector_add.py"
SIGNATURE = "*fp32:16,*fp32:16,*fp32:16,i32,BLOCK=1024"
_RECORD = ".compiled-by"  # beside its results
_SHELL = frozenset(("_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL"))  # variables that decide nothing
_TIMEOUT = 600  # seconds; a Debug build under load
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
    targets = gpu_targets.default()
    # A kernel task may have installed the wheel before: then the stamps of these steps hold, and only the
    # compile runs.
    installed = tritons.wheel_plan(settings, env)
    return PreparedUp(installed + smoke_test(env.path, env.python, targets, programs), targets)


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
    answer = read_response(session.env.path)
    session.leave_receipt({"env": session.env.name, "answer": answer})
    return answer


@dataclass(frozen=True)
class CompileUnlessSame(Step):
    """Compile the bundled kernel, unless it was compiled by the same files of Triton.

    Attributes:
        compile: the compile.
        request: the file with its request.
        python: interpreter that has Triton.
        results: the file of the results.
        out: the folder of what is compiled.
        record: file with the state that the last success was for.
    """

    compile: Run
    request: Path
    python: Path
    results: Path
    out: Path
    record: Path

    def shell(self) -> list[str]:
        """Return the command line of the compile."""
        return self.compile.shell()

    def act(self, tools: StepTools) -> None:
        """Compile, unless nothing has changed."""
        # Only now: the steps before may have built Triton anew.
        before = tritons.state(self.python)
        if before and untrusted.text_if_any(self.record) == self._key(tools, before):
            tools.write_log("not compiled again: Triton's files, the request and the variables are the same")
            return
        files.remove([self.record])
        self.compile.act(tools)
        # Whoever works on Triton may have edited a file meanwhile.
        if tritons.state(self.python) == before:
            files.write_atomically(self.record, self._key(tools, before))

    def _key(self, tools: StepTools, state: str) -> str:
        variables = {name: text for name, text in tools.environ.items() if name not in _SHELL}
        texts = [untrusted.text_if_any(path) for path in (self.request, self.results)]
        outputs = [(str(path), path.lstat().st_size) for path in sorted(self.out.rglob("*"))]
        return digest(repr(self.compile), texts, outputs, sorted(variables.items()), state)


def smoke_test(
    place: Path,
    python: Path,
    targets: tuple[Target, ...],
    programs: HostPrograms,
    *,
    unless_same: bool = False,
) -> Plan:
    """Return steps that compile the kernel with a cache of its own; they fail if one of the targets does.

    Args:
        place: folder that gets the files, in `kernels`.
        python: interpreter that has Triton.
        targets: the targets.
        programs: programs of this machine.
        unless_same: leave out the compile if it succeeded with the same files of Triton.
    """
    folder = place / "kernels"
    request = CompileRequest(FILE, KERNEL, SIGNATURE, targets)
    kernel = source.find(source.read(FILE), KERNEL, FILE)
    # Without disassemblers: the test is about Triton, and nothing else may fail it.
    needed = HostPrograms(linker=programs.linker)
    interpreter = Interpreter(
        python, Workspace(place), folder, max(1, len(targets)), _TIMEOUT, programs=needed
    )
    points = expand_points(request, kernel)
    out = folder / KERNEL
    question = run.worker_request(request, KERNEL, points, interpreter, out, folder, strict=True)
    stages = tuple(name for name in question.stages if name != "source")
    # This file does not query the GPU, so that the request need not be full of facts about it.
    question = replace(question, stages=stages, gpus={})
    file = folder / f"{KERNEL}.request.json"
    write, test = call.steps(python, question, file, env=worker_variables(interpreter), phase=PHASE)
    last: Step = test
    if unless_same:
        last = CompileUnlessSame(test, file, python, results_file(place), out, folder / _RECORD, phase=PHASE)
    return Plan("compile the bundled vector-add", (MakeDir(out, phase=PHASE), write, last))


def results_file(place: Path) -> Path:
    """Return the worker's results file."""
    return place / "kernels" / "results.jsonl"


def read_response(place: Path) -> dict[str, Any]:
    """Read the results: versions, and per target the stages with their files and sizes in bytes.

    Args:
        place: the folder that the plan was made for.
    """
    head, rows = call.headed_results(results_file(place), CompileHead, CompiledRow)
    # Rows come in the order in which processes end; a table has NVIDIA's first, every time.
    order = [str(target) for target in gpu_targets.default()]
    order += [str(gpu_targets.parse(row.target)) for row in rows]
    results = []
    for row in sorted(rows, key=lambda row: order.index(row.target)):
        stages = {
            name: {"path": str(place / "kernels" / KERNEL / stage.path), "bytes": stage.size}
            for name, stage in row.stages.items()
        }
        results.append({"target": row.target, "seconds": row.seconds, "stages": stages})
    return {"triton": head.triton, "python": head.python, "results": results}


def _explain(failure: CommandFailedError) -> StepError:
    output = [line for line in failure.output if line.strip()]
    # Without a network, pip repeats this warning for minutes, and would fill the lines that are shown.
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


def _of_pip(failure: CommandFailedError) -> list[str]:
    """Return the reason why a new environment has no pip; empty for other failures."""
    # `venv` reports only the exit code of `ensurepip`, so that is run again for its message.
    argv = failure.step.argv if isinstance(failure.step, Run) else ()
    if "venv" not in argv or "ensurepip" not in "\n".join(failure.output):
        return []
    again = process.query((f"{argv[-1]}/bin/python", "-m", "ensurepip", "--default-pip"), timeout=_PIP)
    return again.err.splitlines()[-4:] if again and again.code else []
